"""What tables of attention show of one place in the frame."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from codesyntax_dataset.protocol import BEST_BASELINE
from probing.report.scored import ScoredRow

OFFSET = SimpleNamespace(chosen="offset 2")


def row_of(best, difference):
    """Of a model whose best baseline, and whose difference to it, are these."""
    scores = {BEST_BASELINE: best}
    findings = SimpleNamespace(
        score=lambda name, *_: scores.get(name), difference=lambda *_: difference
    )
    return ScoredRow(findings, "model")


@pytest.mark.parametrize(
    "best, difference, expected",
    [
        (OFFSET, SimpleNamespace(value=-3.0), "offset 2"),
        (OFFSET, None, None),  # a control with other labels is compared with none
        (None, SimpleNamespace(value=-3.0), None),
    ],
)
def test_a_baseline_is_named_where_it_is_compared_with(best, difference, expected):
    assert row_of(best, difference).compared_with == expected


@pytest.mark.parametrize("functions, mark", [(5, "few functions"), (6, "")])
def test_a_relation_in_few_functions_is_marked(functions, mark):
    findings = SimpleNamespace(score=lambda *_: SimpleNamespace(functions=functions))
    assert ScoredRow(findings, "model", group="If:if->test").marked == ["If:if->test", mark]
