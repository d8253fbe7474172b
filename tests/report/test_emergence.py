"""Checkpoints of a training in a report: what is planted comes back, in numbers, in a sentence and on the page."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from codesyntax_dataset.errors import LedgerError
from probing.evidence.compared import Course, emergence
from probing.evidence.gather import Probed
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.attention.result import ProbeResult
from probing.report import means
from probing.report.findings import read_findings
from probing.report.means import course_sentence as sentence

STEPS = (0, 16, 4000)


@pytest.fixture(scope="module")
def checkpoints(evidence):
    """Step -> evidence: at first no head finds anything, then all copy the best offset, in the end they know the edges."""

    def planted(step, split):
        result = getattr(evidence.probed, split)
        offsets = best_offsets(evidence.probed.validation.ledger, 1)
        found = {0: False, 16: ~is_hard(result.ledger, offsets), 4000: True}[step]
        ranks = np.broadcast_to(
            np.where(np.broadcast_to(found, len(result.ledger)), 0, 255)[None, :, None, None],
            result.ledger.ranks.shape,
        )
        made = copy.deepcopy(result.ledger.settings)
        made["run"]["step"] = step
        made["settings"]["revision"] = f"{step:064x}"
        return ProbeResult.from_ledger(
            replace(result.ledger, ranks=ranks.astype(np.uint8), settings=made)
        )

    return {
        step: replace(
            evidence, probed=Probed(planted(step, "test"), planted(step, "validation"), {})
        )
        for step in STEPS
    }


@pytest.fixture(scope="module")
def results(checkpoints, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for one in checkpoints.values():
        for result in (one.probed.test, one.probed.validation):
            result.save(folder)
    return folder


@pytest.mark.slow
def test_a_planted_training(checkpoints):
    """In whatever order its checkpoints come. Heads that copy the best offset score as the offset baseline does."""
    found = emergence([checkpoints[step] for step in (16, 4000, 0)])
    assert found.steps == [*STEPS]
    edges, hard = found.edges, found.hard
    assert edges.scores[0].tolist() == pytest.approx([0, edges.offset, 100])
    assert 0 < edges.offset < 100
    assert edges.differences[:3, 1].tolist() == [0, 0, 0]
    assert hard.scores[0].tolist() == [0, 0, 100]
    assert hard.scores[:, 2].tolist() == [100, 100, 100]
    assert (edges.passes(), hard.passes()) == (2, 2)


def test_what_is_passed_stays_passed():
    def course(*lows):
        lows = np.array(lows, float)
        return Course(np.stack([lows + 1, lows, lows + 2]), 0.0, np.stack([lows, lows, lows, lows]))

    assert course(-1, 2, 3).passes() == 1
    assert course(-1, 2, -1, 3, 4).passes() == 3
    assert course(1, 2).passes() == 0
    assert course(1, 2, 0).passes() is None


@pytest.mark.slow
def test_the_sentence(checkpoints):
    found = emergence(list(checkpoints.values()))
    findings = SimpleNamespace(title="python", trainings=[found])
    offset = f"{found.edges.offset:.1f}"
    assert sentence([findings]) == (
        f"Syntax rises through training: 0.0, {offset}, 100.0 % at steps 0, 16, 4,000; from step 4,000 on, they pass the "
        f"best offset, {offset} %."
    )
    never = replace(
        found,
        steps=[0, 16],
        edges=replace(
            found.edges,
            scores=found.edges.scores[:, :2],
            differences=found.edges.differences[:, :2],
        ),
    )
    assert sentence([SimpleNamespace(title="python", trainings=[never])]).endswith(
        f"at steps 0, 16; none passes the best offset, {offset} %."
    )


@pytest.mark.slow
def test_a_report_shows_every_checkpoint_once(results, few_functions):
    """In a section of its own; everywhere else the last one stands for the model."""
    (findings,) = read_findings([results], few_functions)
    assert [subject.name for subject in findings.subjects] == ["tiny at step 4,000"]
    assert json.loads(findings.subjects[0].file.read_text())["run"]["step"] == 4000
    (section,) = means.emergence([findings])
    ((training,),) = [section.sections]
    drawn, table = training.parts
    assert [row[0] for row in table.rows] == [0, 16, 4000]
    assert [row[3][0] for row in table.rows] == [0, 0, 100]
    assert ">4000</text>" in drawn.svg and "$" not in drawn.svg


@pytest.mark.slow
def test_two_trainings_of_one_name_are_not_one(checkpoints, results, few_functions, tmp_path):
    for result in (checkpoints[16].probed.test, checkpoints[16].probed.validation):
        made = copy.deepcopy(result.ledger.settings)
        made["settings"]["revision"] = "f" * 64
        ProbeResult.from_ledger(replace(result.ledger, settings=made)).save(tmp_path / "others")
    with pytest.raises(LedgerError, match="are both of tiny at step 16, but their weights differ"):
        read_findings([results, tmp_path / "others"], few_functions)
