"""The heads that are silenced: of each relation the best on validation, and others to compare it
with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from codesyntax_metric.topk_uas import RULES
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.attention.result import ProbeResult
from probing.instruments.silencing.result import Chosen, HeadGroup
from probing.stats.intervals import FEW_CLUSTERS, paired_p, rejected

TOGETHER = (1, 3, 10)
"""Sizes of the sets of best heads that are silenced together, because one head may replace
another."""


def choose(validation: ProbeResult, test: ProbeResult, draws: int, seed: int) -> dict[str, Chosen]:
    """The heads of each relation of `test` that are best beyond the best offset, on every other
    function of `validation`, with the scores of the best on test, and the heads that they are
    compared with.

    Relations have none unless the best head beats a guess by distance on the rest of validation
    (`beats_guess`).
    """
    ledger, offsets = test.ledger, best_offsets(validation.ledger)
    hard = is_hard(ledger, offsets)
    chosen_on, unseen = halves(validation.ledger.take(is_hard(validation.ledger, offsets)))
    ranked = ranked_heads(chosen_on)
    candidates = beats_guess(unseen, chosen_on, ranked)
    hit, shape = _hit_by_best(ledger, ranked), ledger.ranks.shape[2:]
    heads = {}
    for number, name in enumerate(ledger.relations):
        edges = ledger.relation == number
        if edges.any() and name in candidates:
            of_hard = hit[edges & hard]
            heads[name] = Chosen(
                groups=tuple(_head_groups(ranked[name], shape, draws, seed)),
                edges=int(edges.sum()),
                score=float(100 * hit[edges].mean()),
                hard=len(of_hard),
                beyond=float(100 * of_hard.mean()) if len(of_hard) else None,
            )
    return heads


def halves(ledger: RankLedger) -> tuple[RankLedger, RankLedger]:
    """The edges of every other function, from which heads are chosen, and those of the rest."""
    second = np.unique(ledger.function, return_inverse=True)[1] % 2 == 1
    return ledger.take(~second), ledger.take(second)


def ranked_heads(ledger: RankLedger) -> dict[str, np.ndarray]:
    """Relation -> heads, as numbers over all layers, by their hits with one guess, rule first: the
    best first."""
    hits = np.zeros((len(ledger.relations), *ledger.ranks.shape[2:]), np.int64)
    for part, ranks in ledger.parts():
        np.add.at(hits, ledger.relation[part], ranks[0] == 0)
    return {
        name: np.argsort(-hits_of.reshape(-1), kind="stable")
        for name, hits_of in zip(ledger.relations, hits)
    }


def beats_guess(
    unseen: RankLedger, chosen_on: RankLedger, ranked: Mapping[str, np.ndarray]
) -> set[str]:
    """Relations of which the best head finds more edges of `unseen` functions than a guess that
    ignores the code.

    The guess draws a distance from head to dependent from those of `chosen_on`. Paired by function,
    one-sided at 5 %, corrected (Holm) over relations with enough functions in both.
    """
    hit = _hit_by_best(unseen, ranked)
    drawn, sought = (table.first - table.head for table in (chosen_on, unseen))
    p = {}
    for number, name in enumerate(unseen.relations):
        seen, edges = (table.relation == number for table in (chosen_on, unseen))
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


def _head_groups(
    ranked: np.ndarray, shape: tuple[int, ...], draws: int, seed: int
) -> Iterator[HeadGroup]:
    """The best heads, one and several together, and as many others; not of a number of which there
    are fewer others."""
    places = [(int(layer), int(head)) for layer, head in zip(*np.unravel_index(ranked, shape))]
    for number in TOGETHER:
        best, others = places[:number], sorted(places[number:])
        if number == 1:
            others = [head for head in others if head[0] == best[0][0]]
            if len(others) > draws:
                rng = np.random.default_rng([seed, *best[0]])
                drawn = np.sort(rng.choice(len(others), draws, replace=False))
                others = [others[number] for number in drawn]
            yield HeadGroup(best=tuple(best), matched=tuple((head,) for head in others))
        elif number <= len(others):
            rng = np.random.default_rng([seed, *np.ravel(best).tolist()])
            matched = tuple(tuple(sorted(_as_many(best, others, rng))) for _ in range(draws))
            yield HeadGroup(best=tuple(best), matched=matched)


def _as_many(
    best: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]], rng: np.random.Generator
) -> list[tuple[int, int]]:
    """As many other heads, from the same layers as far as these have so many."""
    wanted, drawn = Counter(layer for layer, _ in best), []
    rest = [others[number] for number in rng.permutation(len(others))]
    for head in [*rest]:
        if wanted[head[0]]:
            wanted[head[0]] -= 1
            drawn.append(head)
            rest.remove(head)
    return [*drawn, *rest[: len(best) - len(drawn)]]
