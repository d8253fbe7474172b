"""Hits of a silencing run: what a model predicts whole, and without the best heads or others; and
what this costs."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from probing.instruments.silencing.result import WHOLE as WHOLE_MODEL
from probing.instruments.silencing.result import SilencingResult, by_group
from probing.stats.hits import Hits
from probing.stats.intervals import FEW_CLUSTERS, Estimate, corrected

SYSTEMS = WHOLE, BEST, MATCHED = "whole", "best", "matched"
"""The whole model; without the best heads of a relation; without as many others, the mean over the
matched sets.

A cost is what the whole model has more."""


def hits(result: SilencingResult) -> dict[str, Hits]:
    """Number of heads that are silenced together, in ascending order -> log-probabilities of the
    SYSTEMS, in nats per sub-token, by function and relation, of which a function has one."""
    ledger, named = result.ledger, result.ledger.named()
    cells: dict[int, list[tuple[np.ndarray, ...]]] = {}
    for name in result.relations:
        rows = ledger.rows[named[name]]
        functions = rows["function"][rows["silenced"] == WHOLE_MODEL]
        names = np.full(len(functions), name, object)
        for number, whole, best, matched in by_group(rows, result.heads[name]):
            of_systems = whole, best, matched.mean(axis=1)
            cells.setdefault(number, []).append((functions, names, *of_systems))
    measured = {}
    for number, parts in sorted(cells.items()):
        functions, names, *predictions = map(np.concatenate, zip(*parts))
        measured[str(number)] = Hits.of_rows(
            functions,
            names,
            {system: column[None] for system, column in zip(SYSTEMS, predictions)},
            ("log_probability",),
            unit="nats",
            repositories=ledger.repositories,
        )
    return measured


class SilencingEffect(NamedTuple):
    """A relation: what silencing its best head costs, in nats per sub-token, above 0 if the head
    helps to predict.

    `cost`: the mean over functions; `head`: layer and head; `matched`: the mean over the matched
    heads, of which there are `rivals`, and `costlier` of them cost more than the best;
    `difference`: of the best head to their mean; `together`: number of heads -> the same of the
    best ones together, to matched sets. p is corrected over relations.
    """

    cost: Estimate
    matched: float
    difference: Estimate
    rivals: int
    costlier: int
    head: tuple[int, int]
    together: dict[int, Estimate]

    @property
    def few_functions(self) -> bool:
        return self.difference.n < FEW_CLUSTERS


def silencing_effects(result: SilencingResult) -> dict[str, SilencingEffect]:
    """Relation -> what its best head serves; the relations of which heads look best come first."""
    measured = hits(result)
    costs = measured["1"].each(measured["1"].by_group(WHOLE, BEST))
    differences: dict[int, dict[str, Estimate]] = {}
    together: dict[str, dict[int, Estimate]] = {name: {} for name in costs}
    for number, of_number in measured.items():
        (difference,) = corrected([of_number.by_group(MATCHED, BEST)])
        differences[int(number)] = of_number.each(difference)
        for name, several in differences[int(number)].items() if int(number) > 1 else ():
            together[name][int(number)] = several
    order = sorted(costs, key=lambda name: (-result.heads[name].score, name))
    return {
        name: SilencingEffect(
            cost=costs[name],
            matched=result.relations[name].matched,
            difference=differences[1][name],
            rivals=len(result.heads[name].groups[0].matched),
            costlier=result.relations[name].costlier,
            head=result.heads[name].best,
            together=together[name],
        )
        for name in order
    }


def expected_top_heads(relations: dict[str, SilencingEffect]) -> tuple[int, float, float]:
    """The number of heads that are best for a relation; of those, the number that no matched head
    outdoes; and the number expected at random.

    A head that is best for several relations is one fact: it counts once, as the mean over these.
    """
    times = Counter(effect.head for effect in relations.values())
    most = expected = 0.0
    for effect in relations.values():
        most += (not effect.costlier) / times[effect.head]
        expected += 1 / times[effect.head] / (1 + effect.rivals)
    return len(times), most, expected
