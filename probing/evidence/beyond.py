"""The beyond-offset score: what attention heads find where no fixed offset leads.

One fixed offset finds so many edges of most relations that a mean over all edges hardly shows what
a model knows beyond positions. An edge is *hard* if its dependent does not begin at one of the n
best offsets of its relation: the n distances from head to dependent that are most frequent on the
split `validation`, of equals the nearer. Heads that copy these offsets find none of the hard edges,
by the rule `first`.

Heads are chosen on the hard edges of `validation` and scored on those of `test`, as by the held-out
protocol, with the same intervals and tests over functions. Beside them stand, on the same edges,
chance, which is a guess that ignores the code and draws distances of the relation's hard edges on
`validation`, and the best further offsets and keywords, chosen on the same hard edges (`Rivals`). A
relation with fewer than LEAST_HARD_EDGES hard edges on `test`, in fewer than FEW_CLUSTERS functions of
it, or without any on `validation`, is in no mean.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from codesyntax_dataset.protocol import BEST_BASELINE, KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES
from probing.evidence import baselines
from probing.evidence.baselines import Edges
from probing.evidence.protocols import (
    ChosenHits,
    Comparison,
    compare,
    held_out,
)
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import Offsets, best_offsets, is_hard
from probing.stats.intervals import Estimate

LEAST_HARD_EDGES = 30
"""Hard edges of `test` from which a relation is in a mean beyond offsets."""


@dataclass(frozen=True)
class Beyond:
    """Hits of one model's heads on hard edges.

    `offsets`: those that hard edges avoid; `chosen`: the hits on hard edges, of relations with
    LEAST_EDGES; `shown`: the same of all relations with hard edges in enough functions for a
    score.
    """

    offsets: Offsets
    chosen: ChosenHits
    shown: ChosenHits

    @property
    def in_mean(self) -> list[str]:
        """The relations of the score's mean."""
        return self.chosen.hits.counted

    @cached_property
    def mean(self) -> Estimate:
        """Over relations, by MEASURES."""
        return self.chosen.hits.mean(self.chosen.system)

    @cached_property
    def by_relation(self) -> Estimate:
        """The scores of all relations with a score, (M, R)."""
        return self.shown.hits.by_group(self.shown.system)


def beyond(
    validation: RankLedger, test: RankLedger, avoided: int, unread: Collection[int] = ()
) -> Beyond | None:
    """The score of a model beyond so many offsets, from its ledgers of both splits; None if
    neither, or only one, of them has a hard edge. `unread`: functions of `validation` that were not
    read.

    Raises LedgerError as `held_out` does.
    """
    offsets = best_offsets(validation, avoided)
    to_choose_on = is_hard(validation, offsets)
    to_find = is_hard(test, offsets)
    if not (to_choose_on.any() and to_find.any()):
        return None
    hard = held_out(validation.take(to_choose_on), test.take(to_find), unread)
    shown = hard.only(name for name, group in hard.hits.groups.items() if not group.few)
    enough = [name for name, group in shown.hits.groups.items() if group.total >= LEAST_HARD_EDGES]
    return Beyond(offsets, chosen=shown.only(enough), shown=shown)


@dataclass(frozen=True)
class Rivals:
    """Guesses without a model, on the hard edges of some functions.

    `hits`: `offset` (further ones), `keyword` or `combined` -> what it hits, heads being those of a
    baseline's ledger; `chance`: relation -> the expected score of guesses that ignore the code
    (`guesses`), percent, (M,).
    """

    hits: dict[str, ChosenHits]
    chance: dict[str, np.ndarray]

    def against(self, model: Beyond) -> Comparison:
        """The differences of a model to the combined baseline, on the relations of its score."""
        return compare(model.chosen, self.of(BEST_BASELINE, model.chosen))

    def of(self, kind: str, model: ChosenHits) -> ChosenHits:
        """The hits of a baseline on the relations of a model's."""
        known = self.hits[kind]
        return known.only(set(known.relations) & set(model.relations))

    def guessed(self, model: Beyond) -> np.ndarray:
        """The expected score of a guess: percent, (M,), mean over the relations of a model's
        score."""
        return np.mean([self.chance[name] for name in model.in_mean], axis=0)


def rivals(
    validation: Edges, test: Edges, avoided: int, direction: str = HEAD_TO_DEPENDENT
) -> Rivals | None:
    """The rivals of all models that were probed on these edges; None if a split has no hard edge.

    The avoided offsets find no hard edge, by the rule `first`, so they take no place in a list of
    guesses.
    """
    offsets = best_offsets(validation, avoided)
    chosen_on, scored = (edges.take(is_hard(edges, offsets)) for edges in (validation, test))
    if not (len(chosen_on) and len(scored)):
        return None
    _, hits = baselines.chosen_on(chosen_on, scored, direction, useless=offsets)
    return Rivals(hits, guesses(chosen_on, scored, direction))


def guesses(
    validation: EdgeTable, test: EdgeTable, direction: str = HEAD_TO_DEPENDENT
) -> dict[str, np.ndarray]:
    """Relation of both -> the expected score on `test` of k guesses that ignore the code: percent,
    by MEASURES (M,).

    Each is a distance from head to first token of the dependent (rule `last`: to its last), drawn
    from those of `validation`, whatever the others are. In the other direction each token of the
    dependent guesses for itself.
    """
    scores = {}
    for name in sorted({*validation.relations} & {*test.relations}):
        drawn = _distances(validation, name)
        sought = _distances(test, name)
        if drawn["first"].size and sought["first"].size:
            by_rule = []
            for rule in RULES:
                ends, _ = drawn["last" if rule == "last" else "first"]
                by_rule.append(_guessed(ends, sought[rule], direction))
            scores[name] = np.concatenate(by_rule)
    return scores


def _distances(table: EdgeTable, name: str) -> dict[str, np.ndarray]:
    """Rule -> from which to which distance from the head a relation's edges are found: (2, E)."""
    edges = table.relation == table.relations.index(name)
    head = table.head[edges]
    first = table.first[edges] - head
    last = table.last[edges] - head
    return {
        "first": np.stack([first, first]),
        "any": np.stack([first, last]),
        "last": np.stack([last, last]),
    }


def _guessed(drawn: np.ndarray, sought: np.ndarray, direction: str) -> np.ndarray:
    """Percent (k,) of the edges whose distances `sought` (2, E) are guessed."""
    values, counts = np.unique(drawn, return_counts=True)
    forward = direction == HEAD_TO_DEPENDENT
    share = counts / len(drawn)
    each = share if forward else _log_of_rest(share)
    below = np.append(0, np.cumsum(each))
    low = np.searchsorted(values, sought[0], "left")
    high = np.searchsorted(values, sought[1], "right")
    within = below[high] - below[low]
    missed = _log_of_rest(within) if forward else within
    hit = 1 - np.exp(np.outer(KS, missed))
    return 100 * hit.mean(axis=1)


def _log_of_rest(share: np.ndarray) -> np.ndarray:
    """The logarithm of what is left of 1."""
    return np.log1p(-np.minimum(share, 1 - 1e-12))
