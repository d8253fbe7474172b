"""Checkpoints of a training in a report: what is planted comes back, in numbers, in a sentence and on the page."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from codesyntax_dataset.errors import LedgerError
from probing.evidence.gather import Probed
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.attention.result import ProbeResult
from probing.report import means
from probing.report.findings import read_findings
from probing.report.means import course_sentence as sentence
from probing.report.means import first_to_pass
from probing.stats.intervals import family

STEPS = (0, 16, 4000)


@pytest.fixture(scope="module")
def checkpoints(evidence):
    """Step -> evidence: at first no head finds anything, then all copy the best offset, in the end they know the edges."""

    def planted(step, split):
        result = getattr(evidence.probed, split)
        offsets = best_offsets(evidence.probed.validation.ledger)
        found = {0: False, 16: ~is_hard(result.ledger, offsets), 4000: True}[step]
        ranks = np.broadcast_to(
            np.where(np.broadcast_to(found, len(result.ledger)), 0, 255)[None, :, None, None],
            result.ledger.ranks.shape,
        )
        made = copy.deepcopy(result.ledger.settings)
        # validation was probed in a folder that does not say its step
        made["run"]["step"] = step if split == "test" else None
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


@pytest.fixture(scope="module")
def findings(results, few_functions):
    (findings,) = read_findings([results], few_functions)
    return findings


@pytest.mark.slow
def test_a_planted_training(findings, checkpoints):
    """By the held-out means and the differences to the best baseline, with p corrected over the steps."""
    (training,) = findings.trainings
    assert training.steps == [*STEPS]
    for protocol, planted in (("held-out", None), ("beyond-offset", [0, 0, 100])):
        means, differences = zip(*training.means[protocol])
        best = findings.score("combined", protocol).value
        assert 0 < best < 100
        values = [mean.value for mean in means]
        assert [of.value for of in differences] == pytest.approx([of - best for of in values])
        assert (values[0], *means[2][:3]) == (0, 100, 100, 100)
        assert planted is None or values == planted
        assert first_to_pass([difference.low for difference in differences]) == 2
    evidence = [checkpoints[step] for step in STEPS]
    for one, (mean, _) in zip(evidence, training.means["held-out"]):
        assert mean[:3] == pytest.approx(one.hits["held-out"].hits.mean("model").at(0)[:3])
    single = [one.comparisons["held-out"].mean.at(0) for one in evidence]
    corrected = [difference.p for _, difference in training.means["held-out"]]
    assert corrected == pytest.approx([one.p for one in family(single)])
    assert corrected != [one.p for one in single]


def test_what_is_passed_stays_passed():
    assert first_to_pass([-1, 2, 3]) == 1
    assert first_to_pass([-1, 2, -1, 3, 4]) == 3
    assert first_to_pass([1, 2]) == 0
    assert first_to_pass([1, 2, 0]) is None


@pytest.mark.slow
def test_the_sentence(findings):
    (training,) = findings.trainings
    copies = training.means["held-out"][1][0].value
    best = findings.score("combined", "held-out").value
    assert sentence([findings]) == (
        f"Syntax rises through training: 0.0, {copies:.1f}, 100.0 % at steps 0, 16, 4,000. From step 4,000 on, they pass "
        f"the best baseline, {best:.1f} %."
    )
    means = {"held-out": training.means["held-out"][:2]}
    never = replace(findings, trainings=[replace(training, steps=[0, 16], means=means)])
    assert sentence([never]).endswith(
        f"at steps 0, 16. None passes the best baseline, {best:.1f} %."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "low, high, change",
    [
        (31, 40, "rises"),
        (30, 40, "does not change significantly"),
        (10, 20, "does not change significantly"),
        (10, 19, "falls"),
    ],
)
def test_a_change_is_one_of_intervals_that_do_not_meet(findings, low, high, change):
    (training,) = findings.trainings
    ends = [
        (score._replace(low=of[0], high=of[1]), difference)
        for (score, difference), of in zip(training.means["held-out"], [(20, 30), (low, high)])
    ]
    changed = replace(findings, trainings=[replace(training, means={"held-out": ends})])
    assert sentence([changed]).startswith(f"Syntax {change} through training")


@pytest.mark.slow
def test_a_report_shows_every_checkpoint_once(findings):
    """In a section of its own; everywhere else the last one stands for the model."""
    assert [subject.name for subject in findings.subjects] == ["tiny at step 4,000"]
    assert json.loads(findings.subjects[0].file.read_text())["run"]["step"] == 4000
    (section,) = means.emergence([findings])
    ((training,),) = [section.sections]
    drawn, table = training.parts
    assert [row[0] for row in table.rows] == [0, 16, 4000]
    assert [row[3][0] for row in table.rows] == [0, 0, 100]
    assert ">4000</text>" in drawn.svg
    assert "$" not in drawn.svg


@pytest.mark.slow
def test_two_trainings_of_one_name_are_not_one(checkpoints, results, few_functions, tmp_path):
    for result in (checkpoints[16].probed.test, checkpoints[16].probed.validation):
        made = copy.deepcopy(result.ledger.settings)
        made["settings"]["revision"] = "f" * 64
        ProbeResult.from_ledger(replace(result.ledger, settings=made)).save(tmp_path / "others")
    with pytest.raises(LedgerError, match="are both of tiny at step 16, but their weights differ"):
        read_findings([results, tmp_path / "others"], few_functions)
