"""The numbers of one protocol as JSON has them: means and relations, by rule and k, with intervals
and heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.protocols import MEASURES, ChosenHits
from probing.runs.records import FieldsByName
from probing.stats.intervals import Estimate

Means = dict[str, dict[str, list[float | None] | None]]
"""Rule -> k -> [score, low, high] of a mean over relations, in percent, or None if no relation
counts; without bounds for fewer than three functions."""


class HeadEstimate(FieldsByName):
    """[score, low, high] of a relation in percent, and its head; in few functions there is no
    interval."""

    score: list[float | None]
    layer: int
    head: int


class RelationSummary(FieldsByName):
    """The scores of a relation by each rule: k -> score and head."""

    edges: int
    functions: int
    few_functions: bool
    in_mean: bool
    first: dict[str, HeadEstimate]
    any: dict[str, HeadEstimate]
    last: dict[str, HeadEstimate]


class Summary(FieldsByName):
    """Everything about a protocol's scores. `unchosen`: relation without a chosen head -> its
    edges."""

    scores: Means
    relations: dict[str, RelationSummary]
    unchosen: dict[str, int]


def summary(chosen: ChosenHits) -> Summary:
    """The summary of one protocol."""
    hits = chosen.hits
    by_relation = chosen.hits.by_group(chosen.system)
    scores = each_bounded(by_relation)  # [measure][relation]
    relations = {
        name: _of_relation(chosen, name, [of_measure[column] for of_measure in scores])
        for column, name in enumerate(hits.groups)
    }
    return Summary(
        scores=means(hits.mean(chosen.system)), relations=relations, unchosen=dict(chosen.unchosen)
    )


def _of_relation(
    chosen: ChosenHits, name: str, scores: list[list[float | None]]
) -> RelationSummary:
    group = chosen.hits.groups[name]
    heads = chosen.choice[name].reshape(-1, 2)
    by_rule: dict[str, dict[str, HeadEstimate]] = {rule: {} for rule in RULES}
    for (rule, k), score, (layer, head) in zip(MEASURES, scores, heads.tolist()):
        by_rule[rule][str(k)] = HeadEstimate(score=score, layer=layer, head=head)
    return RelationSummary(
        edges=group.total,
        functions=len(group.places),
        few_functions=group.few,
        in_mean=name not in NOT_IN_MEAN,
        **by_rule,
    )


def means(mean: Estimate) -> Means:
    """The means by MEASURES as JSON: rule -> k -> [score, low, high], or None if no relation
    counts."""
    cells: Means = {rule: dict.fromkeys(map(str, KS)) for rule in RULES}
    for (rule, k), cell in zip(MEASURES, each_bounded(mean)):
        cells[rule][str(k)] = None if cell[0] is None else cell
    return cells


def each_bounded(estimates: Estimate) -> list[Any]:
    """Score, lower and upper bound of arrays of estimates as nested lists, with None for NaN."""
    cells = np.stack(estimates[:3], axis=-1)
    return np.where(np.isnan(cells), None, cells).tolist()  # type: ignore[call-overload]
