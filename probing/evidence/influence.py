"""By how much a function may have raised the published scores of attention heads, as the ledgers of both splits tell.

On `test`, what a function contributes to a mean: its hits by the heads of a protocol. On `validation`, where two
protocols choose their heads, hits move no score but choices: of a relation, another head would have been chosen if it
had M more hits, against the chosen one, and the score would be G points lower. A function in which they can change by
s at most gives up to min(1, s / M) of G: of all heads, the one for which that is most counts. Sums of these are at
least what any set of functions gains. Edges of functions that were not read count as hits of any head (`choose_least`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from codesyntax_dataset.protocol import BEYOND_OFFSET, HELD_OUT, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES, WORST_RANK
from probing.attention.ledger import RankLedger
from probing.evidence.beyond import AVOIDED, Offsets, beyond, is_hard
from probing.evidence.checks import Influence
from probing.evidence.outcomes import TABLE_PLACES, Choice
from probing.evidence.selection import apply, choose, choose_least

_LEAST = 0.05
"""The share of what its edges weigh by which a function is drawn at least: whatever heads claim, somebody looks."""

PART = f"any relation, {RULES[0]}, k = {TABLE_KS[0]}"
"""The name of scores of single relations."""

CELLS = [f"{rule}, k = {k}" for rule in RULES for k in TABLE_KS]
"""The names of a protocol's means, without the protocol."""


class Mean(NamedTuple):
    """The means of a protocol, by each rule and k: the heads that it chooses, the distances that its edges avoid, if
    any, and relation -> the points that one of its edges weighs."""

    protocol: str
    choice: Choice
    offsets: Offsets | None
    weight: dict[str, float]

    def edges(self, ledger: RankLedger) -> RankLedger:
        """Those that count."""
        return ledger if self.offsets is None else ledger.take(is_hard(ledger, self.offsets))

    def chosen(self, rule: str, relation: str) -> list[tuple[int, int]]:
        """The layer and head of each of TABLE_KS."""
        return [self.choice[rule][relation][place] for place in TABLE_PLACES]

    def points(self, ledger: RankLedger) -> tuple[np.ndarray, np.ndarray]:
        """The contribution of each function by its relations: its place (F,), and points (rules * k, F, R)."""
        outcomes = apply(self.edges(ledger), self.choice)
        weight = np.array([self.weight.get(name, 0.0) for name in outcomes.relations])
        hits = outcomes.hits[:, TABLE_PLACES].astype(np.float32) * weight.astype(np.float32)
        return outcomes.functions, hits.reshape(-1, *hits.shape[2:])


def means(test: RankLedger, validation: RankLedger | None, unread: Collection[int] = ()) -> list[Mean]:
    """The published means of these ledgers; without `validation`, those of the protocol *published* alone.

    `unread`: the functions of `validation` that the model could not read.
    """
    found = [_mean(PUBLISHED, choose(test), None, test, test.relations)]
    if validation is None:
        return found
    chosen = choose_least(validation, test, unread) if len(unread) else choose(validation)
    found.append(_mean(HELD_OUT, chosen, None, test, [*chosen[RULES[0]]]))
    hard = beyond(validation, test, AVOIDED[0], unread)
    if hard is not None and hard.in_mean:
        left = test.take(is_hard(test, hard.offsets))
        found.append(_mean(BEYOND_OFFSET, hard.outcomes.choice, hard.offsets, left, hard.outcomes.relations))
    return found


def _mean(protocol: str, choice: Choice, offsets: Offsets | None, test: RankLedger, relations: list[str]) -> Mean:
    edges = dict(zip(test.relations, np.bincount(test.relation, minlength=len(test.relations)).tolist()))
    counted = [name for name in relations if edges.get(name)]
    among = max(1, sum(name not in NOT_IN_MEAN for name in counted))
    return Mean(protocol, choice, offsets, {name: 100 / among / edges[name] for name in counted})


def on_test(test: RankLedger, published: Sequence[Mean]) -> Influence:
    """The influence of the functions of the split that is scored, on the published means."""
    gathered = _Gathered(test)
    for mean in published:
        places, points = mean.points(test)
        rows = np.searchsorted(gathered.places, places)
        for cell, of_cell in zip(CELLS, points):
            gathered.add(mean.protocol, cell, rows, of_cell.sum(axis=1))
        among = _relations(mean)
        for of_relation in points[0].T:
            gathered.add_part(mean.protocol, rows, of_relation * among)
    return gathered.influence()


def on_validation(
    validation: RankLedger, test: RankLedger, published: Sequence[Mean], unread: Collection[int] = ()
) -> Influence:
    """The influence of the functions on which heads are chosen, on those of the published means that choose there."""
    gathered = _Gathered(validation)
    for mean in published[1:]:
        chosen_on, scored = mean.edges(validation), mean.edges(test)
        totals, among = scored.counts(), _relations(mean)
        for rule in RULES:
            for name, places, edges, hits in _by_relation(chosen_on, rule):
                if name not in mean.weight:
                    continue
                rows = np.searchsorted(gathered.places, places)
                found = totals.hits(name, rule).reshape(-1, WORST_RANK)  # (heads, k)
                lost = int(edges[np.isin(places, list(unread))].sum())
                for k, of_k, (layer, head) in zip(TABLE_KS, hits, mean.chosen(rule, name)):
                    best = layer * totals.heads + head
                    points = mean.weight[name] * _of_choice(edges, of_k, found[:, int(k) - 1], best, lost)
                    gathered.add(mean.protocol, f"{rule}, k = {k}", rows, points)
                    if (rule, k) == (RULES[0], TABLE_KS[0]):
                        gathered.add_part(mean.protocol, rows, points * among)
    return gathered.influence()


def _of_choice(edges: np.ndarray, hits: np.ndarray, scored: np.ndarray, chosen: int, lost: int) -> np.ndarray:
    """Hits on test that functions may have gained by the choice of a head: (f,).

    `edges` (f,) and `hits` (f, heads) of functions of validation, of which `lost` edges were not read; `scored`
    (heads,): hits on test; `chosen`: the head.
    """
    totals = hits.sum(axis=0)
    best, worse = int(totals.argmax()), np.flatnonzero(scored < scored[chosen])
    if not len(worse):
        return np.zeros(len(edges))
    margin = np.maximum(totals[best] - lost - totals[worse], 1)
    swing = hits[:, [best]] + edges[:, None] - hits[:, worse]
    return (np.minimum(swing / margin, 1) * (scored[chosen] - scored[worse])).max(axis=1)


def _by_relation(ledger: RankLedger, rule: str) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Each relation, its functions (f,), their edges (f,), and the hits of every head: integers (k, f, heads)."""
    key = ledger.relation.astype(np.int64) << 32 | ledger.function
    pairs, pair, edges = np.unique(key, return_inverse=True, return_counts=True)
    hits = np.zeros((len(TABLE_KS), len(pairs), int(np.prod(ledger.ranks.shape[2:]))), np.int32)
    for part, ranks in ledger.parts():
        order = np.argsort(pair[part], kind="stable")
        of_rule, here = ranks[RULES.index(rule)].reshape(len(order), -1)[order], pair[part][order]
        starts = np.flatnonzero(np.diff(here, prepend=-1))
        for place, k in enumerate(TABLE_KS):
            hits[place, here[starts]] += np.add.reduceat(of_rule < int(k), starts, axis=0, dtype=np.int32)
    relation, function = pairs >> 32, pairs & (2**32 - 1)
    for number in np.unique(relation).tolist():
        of = relation == number
        yield ledger.relations[number], function[of], edges[of], hits[:, of]


def _relations(mean: Mean) -> int:
    return max(1, sum(name not in NOT_IN_MEAN for name in mean.weight))


def least(ledger: RankLedger) -> tuple[np.ndarray, np.ndarray]:
    """The functions of a ledger (F,), and the points (F,) by which each is drawn at least."""
    edges = np.bincount(ledger.relation, minlength=len(ledger.relations))
    places, row = np.unique(ledger.function, return_inverse=True)
    weighs = 100 / np.count_nonzero(edges) / edges[ledger.relation]
    return places, _LEAST * np.bincount(row, weights=weighs)


class _Gathered:
    """Adds up influences on the functions of a ledger."""

    def __init__(self, ledger: RankLedger):
        self.places, self._least = least(ledger)
        self._means: dict[str, np.ndarray] = {}
        self._parts: dict[str, list[np.ndarray]] = {}

    def add(self, protocol: str, cell: str, rows: np.ndarray, points: np.ndarray) -> None:
        self._means.setdefault(f"{protocol}: {cell}", np.zeros(len(self.places)))[rows] += points

    def add_part(self, protocol: str, rows: np.ndarray, points: np.ndarray) -> None:
        part = np.zeros(len(self.places))
        part[rows] = points
        self._parts.setdefault(f"{protocol}: {PART}", []).append(part)

    def influence(self) -> Influence:
        return Influence(self.places, self._means, self._parts, self._least)
