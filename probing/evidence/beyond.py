"""The beyond-offset score: what attention heads find where no fixed offset leads.

One fixed offset finds so many edges of most relations that a mean over all edges hardly shows what
a model knows beyond positions. An edge is *hard* if its dependent does not begin at the best offset
of its relation: the distance from head to dependent that is most frequent on the split
`validation`, of equals the nearer. Heads that copy this offset find none of the hard edges, by the
rule `first`.

Heads are chosen on the hard edges of `validation` and scored on those of `test`, as by the held-out
protocol, with the same intervals and tests over functions. Beside them stand, on the same edges,
the best further offsets and keywords, chosen on the same hard edges, and the context baseline, which
passes over the avoided offset (`rivals_beyond`). A relation with
fewer than LEAST_HARD_EDGES hard edges on `test`, in fewer than FEW_CLUSTERS functions of it, or
without any on `validation`, is in no mean.
"""

from __future__ import annotations

from typing import NamedTuple

from codesyntax_dataset.protocol import BEYOND_OFFSET, HELD_OUT, PUBLISHED
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.evidence import baselines
from probing.evidence.baselines import Edges
from probing.evidence.context import Context, ContextRanks, context
from probing.evidence.protocols import ChosenHits, held_out, published
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import Offsets, best_offsets, is_hard

LEAST_HARD_EDGES = 30
"""Hard edges of `test` from which a relation is in a mean beyond offsets."""


class Beyond(NamedTuple):
    """Hits of one model's heads on hard edges.

    `offsets`: those that hard edges avoid; `chosen`: the hits on hard edges, of relations with
    LEAST_HARD_EDGES in enough functions.
    """

    offsets: Offsets
    chosen: ChosenHits


def beyond_offsets(
    validation: RankLedger, test: RankLedger, edges: EdgeTable | None = None
) -> Beyond | None:
    """The score of a model beyond the best offsets, from its ledgers of both splits; None if
    neither, or only one, of them has a hard edge.

    `edges`: all edges of validation, if the model could not read all; then no relation is left out:
    which are in the mean is said by all edges, too (`rivals_beyond`).

    Raises LedgerError as `held_out` does.
    """
    offsets = best_offsets(edges or validation)
    to_choose_on = is_hard(validation, offsets)
    to_find = is_hard(test, offsets)
    if not (to_choose_on.any() and to_find.any()):
        return None
    hard_edges = edges and edges.take(is_hard(edges, offsets))
    hard = held_out(validation.take(to_choose_on), test.take(to_find), hard_edges)
    return Beyond(offsets, _with_enough(hard) if edges is None else hard)


def _with_enough(hard: ChosenHits) -> ChosenHits:
    """Those of relations with LEAST_HARD_EDGES in enough functions."""
    groups = hard.hits.groups
    enough = [
        name for name, group in groups.items() if group.total >= LEAST_HARD_EDGES and not group.few
    ]
    return hard.only(enough)


def hits_by_protocol(
    validation: RankLedger, test: RankLedger, edges: EdgeTable | None = None
) -> dict[str, ChosenHits]:
    """Protocol -> what a model's heads hit: published, held-out and, if a relation is in its mean,
    beyond-offset. `edges`, and what is raised: as of `beyond_offsets`."""
    hits = {PUBLISHED: published(test), HELD_OUT: held_out(validation, test, edges)}
    hard = beyond_offsets(validation, test, edges)
    if hard is not None and hard.chosen.hits.counted:
        hits[BEYOND_OFFSET] = hard.chosen
    return hits


def rivals_beyond(
    validation: Edges,
    test: Edges,
    direction: str = HEAD_TO_DEPENDENT,
    by_context: Context | None = None,
) -> dict[str, ChosenHits]:
    """Guesses without a model: each of BASELINES (further offsets) -> what it hits of hard edges,
    of the relations of a model's score, heads being those of a baseline's ledger; empty if a split
    has no hard edge. `by_context`: as of `baselines.evaluate_baselines`.

    The avoided offsets find no hard edge, by the rule `first`, so they take no place in a list of
    guesses.
    """
    offsets = best_offsets(validation)
    to_choose_on = is_hard(validation, offsets)
    to_find = is_hard(test, offsets)
    if not (to_choose_on.any() and to_find.any()):
        return {}
    ranks = (by_context or context(validation, test, direction)).beyond
    hard = ContextRanks(ranks.validation[:, to_choose_on], ranks.test[:, to_find])
    splits = validation.take(to_choose_on), test.take(to_find)
    *_, hits = baselines.chosen_on(*splits, hard, direction, offsets)
    return {kind: _with_enough(of_kind) for kind, of_kind in hits.items()}
