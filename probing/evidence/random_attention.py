"""The control random attention: scores of heads that rank tokens at random, drawn or by combinatorics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN, RULES, rank_attention
from probing.attention.ledger import RankLedger
from probing.evidence.baselines import Edges

_WEIGHTS = 1 << 23
"""Random weights in memory at once: 64 MB."""


def random_attention(edges: Edges, direction: str = HEAD_TO_DEPENDENT, heads: int = 12, seed: int = 0) -> RankLedger:
    """The ledger of one layer of `heads` attention heads with random weights, ranked like any attention."""
    rng = np.random.default_rng(seed)
    ranks = np.empty((len(RULES), len(edges), 1, heads), np.uint8)
    starts = np.flatnonzero(np.diff(edges.function, prepend=-1))  # edges come function by function
    for start, end in zip(starts, [*starts[1:], len(edges)]):
        tokens, part = int(edges.tokens[start]), slice(start, end)
        left_out = edges.left_out[edges.begin[start] : edges.begin[start] + tokens]
        names = [edges.relations[relation] for relation in edges.relation[part]]
        function_edges = list(zip(names, edges.head[part], edges.first[part], edges.last[part]))
        at_once = max(1, _WEIGHTS // tokens**2)
        for one in range(0, heads, at_once):
            some = slice(one, min(heads, one + at_once))
            attention = rng.random((1, some.stop - one, tokens, tokens))
            attention[:, :, left_out] = attention[..., left_out] = 0  # as of a token without sub-tokens
            ranks[:, part, :, some] = rank_attention(attention, function_edges, direction)
    settings = {"random_attention": {**edges.settings, "direction": direction, "seed": seed}}
    return RankLedger.of(edges, ranks, settings)


def expected(edges: Edges, direction: str = HEAD_TO_DEPENDENT, relations: Sequence[str] | None = None) -> np.ndarray:
    """The expected score of one head of random attention: percent, float64 (rules, k), mean over relations.

    `relations`: take the mean over these only. NaN if none is in the mean.
    """
    of_relation = by_relation(edges, direction)
    in_mean = [name for name in (of_relation if relations is None else relations) if name not in NOT_IN_MEAN]
    if not in_mean:
        return np.full((len(RULES), len(KS)), np.nan)
    return np.mean([of_relation[name] for name in in_mean], axis=0)


def by_relation(edges: Edges, direction: str = HEAD_TO_DEPENDENT) -> dict[str, np.ndarray]:
    """The expected score of one head of random attention on each relation: percent, float64 (rules, k).

    The best k of n other tokens are any k of them. A row finds one of m tokens with probability
    1 - C(n - m, k) / C(n, k), and m rows that each look for one token find it with 1 - (1 - k / n) ** m. A token itself
    ranks last in its row. Tokens that are never predicted count neither in n nor in m.
    """
    k = np.array(KS)
    before = np.append(0, np.cumsum(~edges.left_out))  # how many tokens before each may be predicted
    head, first, last = (edges.begin + column for column in (edges.head, edges.first, edges.last))
    may = ~edges.left_out[head]

    def single(token: np.ndarray) -> np.ndarray:
        return (may & ~edges.left_out[token]).astype(int)

    sought = {"first": single(first), "any": (before[last + 1] - before[first]) * may, "last": single(last)}
    own = {"first": first == head, "any": (first <= head) & (head <= last), "last": last == head}
    others = (before[edges.begin + edges.tokens] - before[edges.begin] - 1)[:, None]  # (E, 1)
    left = np.maximum(others - (k - 1), 1)  # tokens left for the k-th place
    names = np.array(edges.relations)[edges.relation]
    hits = []
    for rule in RULES:
        m = (sought[rule] - (own[rule] & may))[:, None]  # without the own one
        if direction == HEAD_TO_DEPENDENT:
            missed = np.cumprod(np.clip(1 - m / left, 0, 1), axis=1)
        else:
            missed = np.clip(1 - k / np.maximum(others, 1), 0, 1) ** m
        # so many guesses are all tokens, the token itself included
        hits.append(np.where((k > others) & (sought[rule] > 0)[:, None], 1, 1 - missed))
    found = np.stack(hits)  # (rules, E, k)
    return {name: 100 * found[:, names == name].mean(axis=1) for name in np.unique(names).tolist()}
