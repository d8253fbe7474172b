"""A model in a folder named like a baseline or control has its own scores, not theirs."""

from __future__ import annotations

import shutil
from itertools import product

import pytest

from codesyntax_dataset.protocol import BASELINES
from probing import probe
from probing.evidence.gather import find, gather
from probing.evidence.scores import RANDOM_BEST, RANDOM_HEAD, WITHOUT_MODEL
from probing.report import findings as findings_of
from probing.report.findings import read_findings

pytestmark = pytest.mark.slow

MEANS = ("published", "held-out")


NAMES = ["combined", RANDOM_BEST]
"""Of each kind of name one; all of these systems are known by their names."""


def test_the_names_of_all_systems_are_known():
    assert {*BASELINES, RANDOM_BEST, RANDOM_HEAD} <= {*WITHOUT_MODEL}


def test_models_and_systems_have_their_own_scores(tiny_model, few_functions, tmp_path, monkeypatch):
    for name in NAMES:
        shutil.copytree(tiny_model, tmp_path / name)
        for split in ("test", "validation"):
            probe(
                tmp_path / name, few_functions, split=split, limit=20, output=tmp_path / "results"
            )
    all_evidence = gather(find([tmp_path / "results"]), few_functions)
    monkeypatch.setattr(findings_of.gather, "gather", lambda *_: all_evidence)
    (findings,) = read_findings([tmp_path / "results"], few_functions)
    names = {subject.name for subject in findings.models}
    assert len(names) == len(findings.models) == len(all_evidence) == len(NAMES)
    assert not names & {*NAMES}
    for subject, evidence in product(findings.models, all_evidence):  # the same model, renamed
        for protocol in MEANS:
            hits = evidence.hits[protocol].hits
            score = findings.score(subject.name, protocol)
            assert score.value == pytest.approx(float(hits.mean("model").value[0]))
            best = evidence.splits.baselines.hits[protocol]["combined"].hits.mean("combined")
            assert findings.score("combined", protocol).value == pytest.approx(float(best.value[0]))
