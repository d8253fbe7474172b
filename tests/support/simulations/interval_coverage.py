"""How often the 95 % intervals of single relations hold, by simulation from real functions.

The functions of a test split that hold a relation are taken for all that there are, so that the true score of a
predictor is known: of offset and keyword baselines by each rule at k = 1, 3, 10 and 20, as far as it is neither 0 nor
100. Functions are then drawn from them at random, as many as a smaller split would have, and the interval is made of
these alone. Differences are of two predictors by the same rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from support.evidence.hits import from_hits

from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence import uncertainty
from probing.evidence.baselines import KINDS, ledger, only, pick, read_edges
from probing.evidence.selection import Outcomes, published
from probing.evidence.uncertainty import Estimate, compare, estimate

FEWEST = 30
"""Functions that a relation has to have, to be drawn from."""


class Predictor(NamedTuple):
    """What a predictor hits (F,) of the edges (F,) of the F functions that hold a relation."""

    rule: str
    edges: np.ndarray
    hits: np.ndarray

    @property
    def score(self) -> float:
        return 100 * self.hits.sum() / self.edges.sum()


def predictors(data: str | Path, config: str) -> list[list[Predictor]]:
    """For each relation of a test split with enough functions: predictors whose scores differ."""
    edges = read_edges(data, config, "test")
    ranks = ledger(edges, pick(edges))
    found = []
    of_kinds = [published(only(ranks, kind)) for kind in KINDS]
    for column in range(len(of_kinds[0].relations)):
        of_relation: dict[tuple, Predictor] = {}
        for outcomes, rule, k in itertools.product(of_kinds, RULES, TABLE_KS):
            holds = outcomes.edges[:, column] > 0
            hits = outcomes.at([rule], [int(k)]).only([outcomes.relations[column]]).hits[0, 0, holds, 0]
            one = Predictor(rule, outcomes.edges[holds, column], hits)
            if holds.sum() >= FEWEST and 0 < one.score < 100:
                of_relation.setdefault((rule, *hits.tolist()), one)
        found.append(list(of_relation.values()))
    return found


def drawn(predictor: Predictor, places: np.ndarray) -> Outcomes:
    """Outcomes on the functions at `places` (functions, draws): each draw is a relation."""
    edges, hits = predictor.edges[places], predictor.hits[places]
    names = [f"draw {number}" for number in range(places.shape[1])]
    return from_hits(names, edges, hits[None, None])


def covered(
    one: Predictor, other: Predictor | None, functions: int, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The share of `draws` of so many functions whose interval holds the true score, or difference; the mean width."""
    places = rng.integers(0, len(one.edges), (functions, draws))
    truth, found = one.score, drawn(one, places)
    with patch.multiple(uncertainty, RESAMPLES=10, PERMUTATIONS=1):
        if other is None:
            estimated: Estimate = estimate(found)
        else:
            truth -= other.score
            estimated = compare(found, drawn(other, places)).difference
    score, low, high = estimated.relations[:, 0, 0]
    if not ((low <= score) & (score <= high) & (-100 <= low) & (high <= 100)).all():
        raise SystemExit("an interval does not hold its own score, or leaves the scale")
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean())


def coverage(
    of_relations: Sequence[Sequence[Predictor]],
    sizes: Sequence[int],
    differences: bool,
    draws: int,
    most: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Coverage and width for each of at most `most` predictors, or pairs, and each of `sizes`; percent."""
    rng = np.random.default_rng(seed)
    things = list(_pairs(of_relations) if differences else ((one, None) for of in of_relations for one in of))
    chosen = rng.permutation(len(things))[:most]
    cells = [
        covered(*things[place], functions, draws, rng)
        for place in chosen
        for functions in sizes
        if functions <= max(FEWEST, 2 * len(things[place][0].edges))
    ]
    share, width = np.array(cells).T
    return 100 * share, width


def _pairs(of_relations: Sequence[Sequence[Predictor]]) -> Iterator[tuple[Predictor, Predictor]]:
    for of in of_relations:
        yield from ((one, other) for one, other in itertools.combinations(of, 2) if one.rule == other.rule)
