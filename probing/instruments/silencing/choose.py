"""The heads that are silenced: of each relation the best on validation, and others to compare it
with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from codesyntax_metric.topk_uas import RULES
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.attention.result import ProbeResult
from probing.instruments.silencing.result import Chosen, HeadPlace
from probing.stats.intervals import FEW_CLUSTERS, paired_p, rejected


def choose_heads(
    validation: ProbeResult, test: ProbeResult, draws: int, seed: int
) -> dict[str, Chosen]:
    """The heads of each relation of `test` that are best beyond the best offset, on every other
    function of `validation`, with the scores of the best on test, and the heads that they are
    compared with.

    Relations have none unless the best head beats a guess by distance on the rest of validation
    (`beats_guess`).
    """
    ledger = test.ledger
    offsets = best_offsets(validation.ledger)
    hard = is_hard(ledger, offsets)
    chosen_on, unseen = halves(validation.ledger.take(is_hard(validation.ledger, offsets)))
    ranked = ranked_heads(chosen_on)
    candidates = beats_guess(unseen, chosen_on, ranked)
    hit = _hit_by_best(ledger, ranked)
    heads = ledger.ranks.shape[-1]
    chosen = {}
    for number, name in enumerate(ledger.relations):
        edges = ledger.relation == number
        if edges.any() and name in candidates:
            of_hard = hit[edges & hard]
            best = divmod(int(ranked[name][0]), heads)
            chosen[name] = Chosen(
                best=best,
                matched=_others_of_layer(best, heads, draws, seed),
                edges=int(edges.sum()),
                score=float(100 * hit[edges].mean()),
                hard=len(of_hard),
                beyond=float(100 * of_hard.mean()) if len(of_hard) else None,
            )
    return chosen


def halves(ledger: RankLedger) -> tuple[RankLedger, RankLedger]:
    """The edges of every other function, from which heads are chosen, and those of the rest."""
    second = np.unique(ledger.function, return_inverse=True)[1] % 2 == 1
    return ledger.take(~second), ledger.take(second)


def ranked_heads(ledger: RankLedger) -> dict[str, np.ndarray]:
    """Relation -> heads, as numbers over all layers, by their hits with one guess, rule first: the
    best first."""
    return {
        name: np.argsort(-of_heads, kind="stable")
        for name, of_heads in _hits_of_heads(ledger).items()
    }


def heads_that_find(ledger: RankLedger) -> dict[str, np.ndarray]:
    """`ranked_heads`, without those that find no dependent of a relation; a relation of which no
    head finds any is left out."""
    return {
        name: np.argsort(-of_heads, kind="stable")[: np.count_nonzero(of_heads)]
        for name, of_heads in _hits_of_heads(ledger).items()
        if of_heads.any()
    }


def _hits_of_heads(ledger: RankLedger) -> dict[str, np.ndarray]:
    hits = np.zeros((len(ledger.relations), *ledger.ranks.shape[2:]), np.int64)
    for part, ranks in ledger.parts():
        np.add.at(hits, ledger.relation[part], ranks[0] == 0)
    return dict(zip(ledger.relations, hits.reshape(len(hits), -1)))


def beats_guess(
    unseen: RankLedger, chosen_on: RankLedger, ranked: Mapping[str, np.ndarray]
) -> set[str]:
    """Relations of which the best head finds more edges of `unseen` functions than a guess that
    ignores the code.

    The guess draws a distance from head to dependent from those of `chosen_on`. Paired by function,
    one-sided at 5 %, corrected (Holm) over relations with enough functions in both.
    """
    hit = _hit_by_best(unseen, ranked)
    drawn = chosen_on.first - chosen_on.head
    sought = unseen.first - unseen.head
    p = {}
    for number, name in enumerate(unseen.relations):
        seen = chosen_on.relation == number
        edges = unseen.relation == number
        functions, function = np.unique(unseen.function[edges], return_inverse=True)
        if min(len(functions), len(np.unique(chosen_on.function[seen]))) < FEW_CLUSTERS:
            continue
        ordered = np.sort(drawn[seen])
        below, reached = (
            np.searchsorted(ordered, sought[edges], side) for side in ("left", "right")
        )
        gained = np.bincount(function, hit[edges] - (reached - below) / len(ordered))
        p[name] = paired_p(gained) / 2 if gained.sum() > 0 else 1.0
    return {name for name, beats in zip(p, rejected(np.array([*p.values()], float))) if beats}


def _hit_by_best(ledger: RankLedger, ranked: Mapping[str, np.ndarray]) -> np.ndarray:
    """Whether the best head of its relation finds each edge with one guess, rule first: (E,)."""
    best = [ranked[name][0] if name in ranked else 0 for name in ledger.relations]
    return ledger.of_heads(*np.unravel_index([best] * len(RULES), ledger.ranks.shape[2:]))[0] == 0


def _others_of_layer(best: HeadPlace, heads: int, draws: int, seed: int) -> tuple[HeadPlace, ...]:
    """The other `heads` of the layer of the best one, or `draws` of them, drawn by `seed`."""
    layer, number = best
    others = np.delete(np.arange(heads), number)
    if len(others) > draws:
        drawn = np.random.default_rng([seed, *best]).choice(len(others), draws, replace=False)
        others = others[np.sort(drawn)]
    return tuple((layer, other) for other in others.tolist())
