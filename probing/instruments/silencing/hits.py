"""Hits of a silencing run: what a model predicts whole, and without the best heads or others; and
what this costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probing.instruments.silencing.result import WHOLE as WHOLE_MODEL
from probing.instruments.silencing.result import SilencingResult, log_probabilities
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate

SYSTEMS = WHOLE, BEST, MATCHED = "whole", "best", "matched"
"""The whole model; without the best head of a relation; without a matched head, the mean over
these.

A cost is what the whole model has more."""


def hits(result: SilencingResult) -> Hits:
    """The log-probabilities of the SYSTEMS, in nats per sub-token, by function and relation, of
    which a function has one."""
    ledger = result.ledger
    named = ledger.named()
    parts = []
    for name in result.relations:
        rows = ledger.rows[named[name]]
        functions = rows["function"][rows["silenced"] == WHOLE_MODEL]
        whole, best, matched = log_probabilities(rows)
        names = np.full(len(functions), name, object)
        parts.append((functions, names, whole, best, matched.mean(axis=1)))
    functions, names, *predictions = map(np.concatenate, zip(*parts))
    return Hits.of_rows(
        functions,
        names,
        {system: column[None] for system, column in zip(SYSTEMS, predictions)},
        ("log_probability",),
        unit="nats",
        over=ledger.over,
    )


class SilencingEffect(NamedTuple):
    """A relation: what silencing its best head costs, in nats per sub-token, above 0 if the head
    helps to predict.

    `cost`: the mean over functions; `difference`: to the mean over the matched heads; `costlier`:
    how many of these cost more.
    """

    cost: Estimate
    difference: Estimate
    costlier: int


def silencing_effects(result: SilencingResult) -> dict[str, SilencingEffect]:
    """Relation -> what its best head serves; the relations of which heads look best come first."""
    measured = hits(result)
    costs = measured.each(measured.by_group(WHOLE, BEST))
    differences = measured.each(measured.by_group(MATCHED, BEST))
    order = sorted(costs, key=lambda name: (-result.heads[name].score, name))
    return {
        name: SilencingEffect(costs[name], differences[name], result.relations[name].costlier)
        for name in order
    }
