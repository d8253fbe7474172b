"""What tables and figures of several sections share: the columns of means, the cells of relations, and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from codesyntax_dataset.protocol import (
    KS,
)
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.gather import PUBLISHED_FIRST
from probing.evidence.protocols import Comparison
from probing.evidence.summary import HeadEstimate
from probing.report.document import Column, separated
from probing.report.figures import Dots, stacked
from probing.report.findings import MEANS, RULE, Cell, Findings, K, Subject
from probing.report.kinds import DIFFERENCE, SCORE

FILTERS = [Column("rule", of=lambda _, rule, *__: rule), Column("k", of=lambda _, rule, k, *__: k)]
"""The first columns of tables by rule and k. Of a record, what is scored comes first, then the rule, and k."""


def shown_means(all_findings: Sequence[Findings]) -> tuple[str, ...]:
    """The means to show: both protocols and, if *held-out* lacks relations of a config, SAME_RELATIONS between them."""
    lacks = any(findings.size("published") != findings.size("held-out") for findings in all_findings)
    return MEANS if lacks else PUBLISHED_FIRST


def mean_columns(mean: str) -> list[Column]:
    """The columns of one of MEANS, for records of a `Scored`, rule and k."""
    return [
        Column("score", SCORE, mean, of=lambda scored, rule, k, *_: scored.cell(mean, rule, k)),
        Column("vs best baseline", DIFFERENCE, mean, of=lambda scored, rule, k, *_: scored.difference(mean, rule, k)),
    ]


def tests_in_words(all_findings: Sequence[Findings]) -> str:
    """The number of tests for which p-values are corrected, in words."""
    numbers = sorted({len(findings.models) for findings in all_findings if findings.models})
    return " or ".join(map(str, numbers)) + (" model" if numbers == [1] else " models")


def gains(model: Subject) -> list[str]:
    """The relations that are not marked for few functions, largest held-out gain over the best baseline first."""
    comparison = model.comparisons["held-out"]
    relations = model.scores["protocols"]["held-out"]["relations"]
    values = {
        name: cell[0]
        for name in comparison.relations
        if not relations[name]["few_functions"] and (cell := difference_on(comparison, name))
    }
    return sorted(values, key=lambda name: (-values[name], name))


def difference_on(comparison: Comparison | None, relation: str, rule: str = RULE, k: str = K) -> list[float] | None:
    """[difference, low, high, p] on a relation, p corrected over relations; None if it was not compared there."""
    if comparison is None or relation not in comparison.relations:
        return None
    return list(comparison.on(relation, rule, int(k))[:4])


def mean_difference(comparison: Comparison, rule: str = RULE, k: str = K) -> list[float]:
    """[difference, low, high, p] of a mean over relations, p uncorrected."""
    return list(comparison.of_mean(rule, int(k))[:4])


def with_marks(relation: str, few_functions: bool = False) -> list[str]:
    """The cell of a relation: its name, and what keeps it out of the mean or makes it unreliable."""
    marks = {"few functions": few_functions, "not in mean": relation in NOT_IN_MEAN}
    return [relation, "; ".join(mark for mark, applies in marks.items() if applies)]


def head_name(cell: HeadEstimate) -> str | None:
    """The attention head of a cell as layer-head; None if it found nothing, so that no head is the best."""
    return head_name_of(cell.layer, cell.head, cell.score[0])


def head_name_of(layer: int, head: int, score: float | None) -> str | None:
    return f"{layer}-{head}" if score else None


def line(scores: Mapping[str, Mapping[str, Cell]], rule: str) -> np.ndarray:
    """The curve of rule -> k -> cell: (3, k), or (1, k) if cells have no interval; NaN for missing ones."""
    bounded = stacked(scores[rule].get(str(k)) for k in KS)
    return bounded[:1] if np.isnan(bounded[1:]).all() else bounded


def dots(label: str, cells: Iterable[Sequence[float | None] | None], colour: str) -> Dots:
    """Differences, [difference, low, high, p] or None, as a figure draws them."""
    known = list(cells)
    filled = [cell is not None and cell[3] is not None and separated(cell[3]) for cell in known]
    return Dots(label, stacked(known), colour, filled)
