"""The beyond-offset score: what attention heads find where no fixed offset leads.

One fixed offset finds so many edges of most relations that a mean over all edges hardly shows what
a model knows beyond positions. An edge is *hard* if its dependent does not begin at the best offset
of its relation: the distance from head to dependent that is most frequent on the split
`validation`, of equals the nearer. Heads that copy this offset find none of the hard edges, by the
rule `first`.

Heads are chosen on the hard edges of `validation` and scored on those of `test`, as by the held-out
protocol, with the same intervals and tests over functions. Beside them stand, on the same edges,
the best further offsets and keywords, chosen on the same hard edges (`Rivals`). A relation with
fewer than LEAST_HARD_EDGES hard edges on `test`, in fewer than FEW_CLUSTERS functions of it, or
without any on `validation`, is in no mean.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from codesyntax_dataset.protocol import BEST_BASELINE
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.evidence import baselines
from probing.evidence.baselines import Edges
from probing.evidence.protocols import (
    ChosenHits,
    Comparison,
    compare,
    held_out,
)
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import Offsets, best_offsets, is_hard
from probing.stats.intervals import Estimate

LEAST_HARD_EDGES = 30
"""Hard edges of `test` from which a relation is in a mean beyond offsets."""


@dataclass(frozen=True)
class Beyond:
    """Hits of one model's heads on hard edges.

    `offsets`: those that hard edges avoid; `chosen`: the hits on hard edges, of relations with
    LEAST_HARD_EDGES in enough functions.
    """

    offsets: Offsets
    chosen: ChosenHits

    @property
    def in_mean(self) -> list[str]:
        """The relations of the score's mean."""
        return self.chosen.hits.counted

    @cached_property
    def mean(self) -> Estimate:
        """Over relations, by MEASURES."""
        return self.chosen.hits.mean(self.chosen.system)


def beyond(validation: RankLedger, test: RankLedger, unread: Collection[int] = ()) -> Beyond | None:
    """The score of a model beyond the best offsets, from its ledgers of both splits; None if
    neither, or only one, of them has a hard edge. `unread`: functions of `validation` that were not
    read.

    Raises LedgerError as `held_out` does.
    """
    offsets = best_offsets(validation)
    to_choose_on = is_hard(validation, offsets)
    to_find = is_hard(test, offsets)
    if not (to_choose_on.any() and to_find.any()):
        return None
    hard = held_out(validation.take(to_choose_on), test.take(to_find), unread)
    enough = [
        name
        for name, group in hard.hits.groups.items()
        if group.total >= LEAST_HARD_EDGES and not group.few
    ]
    return Beyond(offsets, hard.only(enough))


@dataclass(frozen=True)
class Rivals:
    """Guesses without a model, on the hard edges of some functions.

    `hits`: `offset` (further ones), `keyword` or `combined` -> what it hits, heads being those of a
    baseline's ledger.
    """

    hits: dict[str, ChosenHits]

    def against(self, model: Beyond) -> Comparison:
        """The differences of a model to the combined baseline, on the relations of its score."""
        return compare(model.chosen, self.of(BEST_BASELINE, model.chosen))

    def of(self, kind: str, model: ChosenHits) -> ChosenHits:
        """The hits of a baseline on the relations of a model's."""
        known = self.hits[kind]
        return known.only(set(known.relations) & set(model.relations))


def rivals(validation: Edges, test: Edges, direction: str = HEAD_TO_DEPENDENT) -> Rivals | None:
    """The rivals of all models that were probed on these edges; None if a split has no hard edge.

    The avoided offsets find no hard edge, by the rule `first`, so they take no place in a list of
    guesses.
    """
    offsets = best_offsets(validation)
    chosen_on, scored = (edges.take(is_hard(edges, offsets)) for edges in (validation, test))
    if not (len(chosen_on) and len(scored)):
        return None
    _, hits = baselines.chosen_on(chosen_on, scored, direction, useless=offsets)
    return Rivals(hits)
