"""Choice as part of the error: what the heads would find that are chosen on other functions of
validation, such as those at hand, drawn again (the bootstrap; Efron 1979, Annals of Statistics 7).

Nothing is run again: the ranks of all heads on both splits are in the ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from codesyntax_dataset.one_thread import one_thread
from codesyntax_metric.topk_uas import RULES, WORST_RANK, RankCounts
from probing.instruments.attention.ledger import RankLedger
from probing.runs.clusters import CLUSTERS, FUNCTION, LEAST_REPOSITORIES, REPOSITORY

REDRAWS = 200  # as often validation is drawn again

Best = Callable[[np.ndarray], np.ndarray]
"""The number of the chosen head by each draw (DRAWS,), from what each finds (DRAWS, heads)."""

LEAST_FUNCTIONS = 40
"""Functions of validation from which on they are drawn again, or the repositories that they are
from, if intervals are over these. Of fewer, nothing shows what others would choose."""


class Drawn(NamedTuple):
    """What is drawn again: the plural of a cluster, and the number of that of each edge (E,),
    counted from 0."""

    units: str
    clusters: np.ndarray


def drawn_again(validation: RankLedger) -> Drawn | None:
    """What of a ledger is drawn again; None if there are too few of each."""
    of_edges = {REPOSITORY: np.empty(0), FUNCTION: validation.function}
    if validation.over is not None:
        of_edges[validation.over.unit] = validation.over.number[validation.function]
    for unit, least in ((REPOSITORY, LEAST_REPOSITORIES), (FUNCTION, LEAST_FUNCTIONS)):
        known, numbers = np.unique(of_edges[unit], return_inverse=True)
        if len(known) >= least:
            return Drawn(CLUSTERS[unit], numbers)
    return None


class Redrawn:
    """The scores on `test` of heads that are chosen on draws of `clusters` (E,) of `validation`:
    those of two systems on the same functions are of the same draws."""

    def __init__(self, validation: RankLedger, test: RankLedger, clusters: np.ndarray, best: Best):
        self._validation, self._test, self._clusters = validation, test, clusters
        self._best = best
        self._known: dict[tuple[str, str, int], np.ndarray] = {}

    @cached_property
    def _weights(self) -> np.ndarray:
        """How often each draw has each cluster: (DRAWS, clusters)."""
        number = int(self._clusters.max()) + 1
        rng = np.random.default_rng(0)
        return rng.multinomial(number, np.full(number, 1 / number), REDRAWS).astype(np.float32)

    @cached_property
    def _scored(self) -> RankCounts:
        return self._test.counts()

    def mean(self, relations: Sequence[str], measures: Sequence[tuple[str, int]]) -> np.ndarray:
        """The mean over relations by each draw and measure, in percent: (DRAWS, M)."""
        total = np.zeros((REDRAWS, len(measures)))
        for relation in relations:
            self._choose(relation, measures)
            total += np.stack([self._known[relation, *measure] for measure in measures], axis=-1)
        return total / len(relations)

    def _choose(self, relation: str, measures: Sequence[tuple[str, int]]) -> None:
        missing = [measure for measure in measures if (relation, *measure) not in self._known]
        if not missing:
            return
        number = self._validation.relations.index(relation)
        edges = np.flatnonzero(self._validation.relation == number)
        ledger = self._validation.take(edges)
        clusters, which = np.unique(self._clusters[edges], return_inverse=True)
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], np.arange(len(clusters)))
        ranks = np.asarray(ledger.ranks)[:, order].reshape(len(RULES), len(edges), -1)
        weights = self._weights[:, clusters]
        # a draw without any edge chooses nothing: the heads that were chosen on all stay
        weights[weights.sum(axis=1) == 0] = 1
        found = {rule: self._scored.hits(relation, rule).reshape(-1, WORST_RANK) for rule in RULES}
        with one_thread():
            for rule, k in missing:
                within = ranks[RULES.index(rule)] < k
                hits = np.add.reduceat(within, starts, axis=0, dtype=np.float32)
                best = self._best(weights @ hits)
                share = found[rule][best, k - 1] / self._scored.edges(relation)
                self._known[relation, rule, k] = 100 * share
