"""The control random attention: scores of heads that rank tokens at random, drawn or by
combinatorics."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES, WORST_RANK
from probing.evidence.baselines import Edges
from probing.instruments.attention.ledger import RankLedger, StoredRanks

GUESSES = max(KS)
"""As many tokens of a row are ranked: no score needs more."""

_EDGES_AT_ONCE = 1 << 12  # a rank takes as many bytes as there are guesses

_MOST_IN_MEMORY = 1 << 25
"""The most ranks that are kept."""

_Chances = list[tuple[np.ndarray, np.ndarray]]
"""By each rule the distinct chances (distinct, k), and which is each edge's (E,)."""


def random_attention(
    edges: Edges, direction: str = HEAD_TO_DEPENDENT, heads: int = 12, seed: int = 0
) -> RankLedger:
    """The ledger of one layer of `heads` attention heads, each of whose rows ranks the other tokens
    in random order.

    Of each edge and head one number is drawn from `np.random.default_rng(seed)`: its rank by each
    rule is the first k whose chance of a hit is above it. So every edge is hit within k as often as
    in random order, but edges of one row are drawn apart: two dependents may stand at one place.
    Ranks from GUESSES on are WORST_RANK. Many are drawn again whenever they are read.
    """
    settings = {"random_attention": {**edges.settings, "direction": direction, "seed": seed}}
    ranks = _DrawnRanks(_chances(edges, direction), (len(RULES), len(edges), 1, heads), seed)
    few = math.prod(ranks.shape) <= _MOST_IN_MEMORY
    return RankLedger.of(edges, np.asarray(ranks) if few else ranks, settings)


class _DrawnRanks(StoredRanks):
    """The ranks of `random_attention`, from `chances` as of `_chances`."""

    def __init__(self, chances: _Chances, shape: tuple[int, int, int, int], seed: int):
        self._chances = [(chance.astype(np.float32), which) for chance, which in chances]
        self.shape, self._seed = shape, seed

    def of(self, edges: np.ndarray) -> np.ndarray:
        return np.asarray(self)[:, edges]

    def parts(self, edges_at_once: int) -> Iterator[tuple[slice, np.ndarray]]:
        rng, (_, edges, _, heads) = np.random.default_rng(self._seed), self.shape
        for start in range(0, edges, _EDGES_AT_ONCE):
            part = slice(start, min(edges, start + _EDGES_AT_ONCE))
            drawn = rng.random((part.stop - start, 1, heads), np.float32)
            missed = (
                # (some edges, k, heads): in float32 it takes half the time
                (chance[which[part], :, None] <= drawn).sum(axis=1, dtype=np.uint8)
                for chance, which in self._chances
            )
            ranks = np.stack([*missed])[:, :, None]
            yield part, np.where(ranks == GUESSES, np.uint8(WORST_RANK), ranks)


def expected_by_relation(edges: Edges, direction: str) -> dict[str, np.ndarray]:
    """The expected score of one head of random attention on each relation: percent, by MEASURES
    (M,).

    The best k of n other tokens are any k of them. A row finds one of m tokens with probability 1 -
    C(n - m, k) / C(n, k), and m rows that each look for one token find it with 1 - (1 - k / n) **
    m. A token itself ranks last in its row. Tokens that are never predicted count neither in n nor
    in m.
    """
    chances = _chances(edges, direction)
    scores = {}
    for number, name in sorted(enumerate(edges.relations), key=lambda item: item[1]):
        index = np.flatnonzero(edges.relation == number)
        if len(index):
            by_rule = [chance[which[index]].mean(axis=0) for chance, which in chances]
            scores[name] = 100 * np.concatenate(by_rule)
    return scores


def _chances(edges: Edges, direction: str) -> _Chances:
    before = np.append(0, np.cumsum(~edges.left_out))  # tokens before each that may be predicted
    begin = edges.begin
    head = begin + edges.head
    first = begin + edges.first
    last = begin + edges.last
    may = ~edges.left_out[head]
    others = before[begin + edges.tokens] - before[begin] - 1  # of the function (E,)
    ends = {"first": (first, first), "any": (first, last), "last": (last, last)}
    chances = []
    for rule in RULES:
        low, high = ends[rule]
        sought = (before[high + 1] - before[low]) * may
        own = (low <= head) & (head <= high)
        cells = np.stack([others, sought - (own & may), sought > 0])  # m without the own one
        _, example, which = np.unique(cells, axis=1, return_index=True, return_inverse=True)
        n, m, there = cells[:, example, None]
        chances.append((_chance(n, m, there, direction), which))
    return chances


def _chance(others: np.ndarray, m: np.ndarray, there: np.ndarray, direction: str) -> np.ndarray:
    """The chance (E, k) that k guesses find one of m of n `others`, (E, 1) each; all of these find
    what is `there`."""
    k = np.array(KS)
    if direction == HEAD_TO_DEPENDENT:
        left = np.maximum(others - (k - 1), 1)  # tokens left for the k-th place
        each = np.clip(1 - m / left, 0, 1)
        missed = np.cumprod(each, axis=1)
    else:
        each = np.clip(1 - k / np.maximum(others, 1), 0, 1)
        missed = each**m
    everything = k > others  # so many guesses are all tokens, the token itself included
    return np.where(everything & (there > 0), 1, 1 - missed)
