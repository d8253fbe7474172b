"""A model in a folder named like a baseline or control has its own scores, not theirs."""

from __future__ import annotations

import shutil

import pytest

from codesyntax_dataset.protocol import BASELINES
from probing import probe
from probing.evidence.gather import find, gather
from probing.evidence.scores import CHANCE, RANDOM_BEST, RANDOM_HEAD
from probing.report.findings import PAPER, read_findings

pytestmark = pytest.mark.slow

MEANS = ("published", "held-out")


@pytest.mark.parametrize("name", [*BASELINES, RANDOM_BEST, RANDOM_HEAD, CHANCE, f"BERT{PAPER}"])
def test_the_model_and_the_system_have_their_own_scores(name, tiny_model, few_functions, tmp_path):
    shutil.copytree(tiny_model, tmp_path / name)
    for split in ("test", "validation"):
        probe(tmp_path / name, few_functions, split=split, output=tmp_path / "results")
    (findings,) = read_findings([tmp_path / "results"], few_functions)
    (evidence,) = gather(find([tmp_path / "results"]), few_functions)
    (subject,) = findings.models
    for protocol in MEANS:
        hits = evidence.hits[protocol].hits
        score = findings.score(subject.name, protocol)
        assert score.value == pytest.approx(float(hits.mean("model").value[0]))
        best = evidence.splits.baselines.hits[protocol]["combined"].hits.mean("combined")
        assert findings.score("combined", protocol).value == pytest.approx(float(best.value[0]))
    assert subject.name != name
