"""Heads that look and heads that serve: the cost of silencing the best head of a relation, against matched heads.

The cost is paired by function with the mean cost of the matched heads, other heads of the same layer: with a BCa
interval over functions, the paired test of `probing.evidence.statistics`, and p-values corrected over relations
(Holm 1979). Since any two heads differ in enough functions, how many of the matched heads cost more is counted, too: a
head picked at random from a layer of H costs most of them with the probability 1 / H.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from probing.evidence.effect import Effect, PairedEffect, paired
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.prediction.silencing_result import Costs, SilencingResult


class SilencingEffect(NamedTuple):
    """A relation: what silencing its best head costs, in nats per sub-token, above 0 if the head helps to predict.

    `cost`: the mean over functions; `head`: layer and head; `matched`: the mean over the matched heads, of which there
    are `rivals`, and `costlier` of them cost more than the best; `difference`: of the best head to their mean;
    `together`: number of heads -> the same of the best ones together, to matched sets, corrected over relations.
    """

    cost: Effect
    matched: float
    difference: PairedEffect
    rivals: int
    costlier: int
    head: tuple[int, int]
    together: dict[int, PairedEffect]

    @property
    def few_functions(self) -> bool:
        return self.difference.functions < FEW_FUNCTIONS


def silencing_effects(result: SilencingResult) -> dict[str, SilencingEffect]:
    """Relation -> what its best head serves; the relations of which heads look best come first."""
    costs = result.costs()
    best = {name: one.best for name, one in costs.items()}
    alone = paired(best, {name: np.zeros(len(one)) for name, one in best.items()})
    against = paired(best, {name: one.matched.mean(axis=1) for name, one in costs.items()})
    numbers = sorted({number for one in costs.values() for number in one.together if number > 1})
    together = {number: _together(costs, number) for number in numbers}
    order = sorted(costs, key=lambda name: (-result.heads[name].score, name))
    return {
        name: SilencingEffect(
            cost=alone[name].effect,
            matched=result.relations[name].matched,
            difference=against[name],
            rivals=costs[name].matched.shape[1],
            costlier=result.relations[name].costlier,
            head=result.heads[name].best,
            together={number: of[name] for number, of in together.items() if name in of},
        )
        for name in order
    }


def _together(costs: Mapping[str, Costs], number: int) -> dict[str, PairedEffect]:
    """Relation -> the difference between so many of its best heads and the mean of matched sets."""
    both = {name: one.together[number] for name, one in costs.items() if number in one.together}
    return paired(
        {name: best for name, (best, _) in both.items()},
        {name: matched.mean(axis=1) for name, (_, matched) in both.items()},
    )


def by_chance(relations: dict[str, SilencingEffect]) -> tuple[int, float, float]:
    """The number of heads that are best for a relation; of those, the number that no matched head outdoes; and the
    number expected at random.

    A head that is best for several relations is one fact: it counts once, as the mean over these.
    """
    weight = {head: 1 / count for head, count in Counter(one.head for one in relations.values()).items()}
    most = sum(weight[one.head] for one in relations.values() if not one.costlier)
    return len(weight), most, sum(weight[one.head] / (1 + one.rivals) for one in relations.values())
