"""The control random attention: scores of heads that rank tokens at random, drawn or by combinatorics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN, RULES, WORST_RANK
from probing.attention.ledger import RankLedger
from probing.evidence.baselines import Edges


def random_attention(edges: Edges, direction: str = HEAD_TO_DEPENDENT, heads: int = 12, seed: int = 0) -> RankLedger:
    """The ledger of one layer of `heads` attention heads with random weights, ranked like any attention.

    The weights of a function are `np.random.default_rng(seed).random((heads, tokens, tokens))`, function by function.
    Only the rows that edges need are kept, and only the tokens that they seek are ranked. Two weights of a row are
    equal once in 2**53: neither is then ranked before the other.
    """
    rng = np.random.default_rng(seed)
    ranks = np.empty((len(RULES), len(edges), 1, heads), np.uint8)
    starts = np.flatnonzero(np.diff(edges.function, prepend=-1))  # edges come function by function
    for start, end in zip(starts, [*starts[1:], len(edges)]):
        tokens, part = int(edges.tokens[start]), slice(start, end)
        left_out = edges.left_out[edges.begin[start] : edges.begin[start] + tokens]
        head, first, last = edges.head[part], edges.first[part], edges.last[part]
        if direction == HEAD_TO_DEPENDENT:
            readers, row = np.unique(head, return_inverse=True)
            weights = _rows(rng, readers, tokens, heads, left_out)
            several = np.flatnonzero(first < last)  # of one token, the three rules seek the same
            span = [weights[:, row[at], first[at] : last[at] + 1].max(axis=-1) for at in several]
            of_last = weights[:, row[several], last[several]]
            sought = np.concatenate([weights[:, row, first], *(one[:, None] for one in span), of_last], axis=1)
            found = _ranks(weights, np.concatenate([row, row[several], row[several]]), sought)
            by_rule = np.repeat(found[:, None, : len(row)], len(RULES), axis=1)
            by_rule[:, 1, several], by_rule[:, 2, several] = np.split(found[:, len(row) :], 2, axis=1)
            by_rule[..., left_out[head]] = WORST_RANK
        else:
            size = last - first + 1
            begin = size.cumsum() - size
            token = np.arange(size.sum()) + np.repeat(first - begin, size)  # of each dependent, edge by edge
            readers, row = np.unique(token, return_inverse=True)
            weights = _rows(rng, readers, tokens, heads, left_out)
            found = _ranks(weights, row, weights[:, row, np.repeat(head, size)])
            found[:, left_out[token]] = WORST_RANK
            parts = found[:, begin], np.minimum.reduceat(found, begin, axis=-1), found[:, begin + size - 1]
            by_rule = np.stack(parts, axis=1)
        ranks[:, part, 0] = np.moveaxis(by_rule, 0, -1)
    settings = {"random_attention": {**edges.settings, "direction": direction, "seed": seed}}
    return RankLedger.of(edges, ranks, settings)


def _rows(rng: np.random.Generator, readers: np.ndarray, tokens: int, heads: int, left_out: np.ndarray) -> np.ndarray:
    """The rows of `readers` of random weights (heads, tokens, tokens): (heads, readers, tokens).

    A token's own weight is 0, and that of a token that is left out -1, which is below every other.
    """
    weights, drawn = np.empty((heads, len(readers), tokens)), np.empty((tokens, tokens))
    for of_head in weights:
        rng.random(out=drawn)  # to skip the other rows would take longer
        of_head[:] = drawn[readers]
    weights[:, np.arange(len(readers)), readers] = 0
    weights[:, :, left_out] = -1
    return weights


def _ranks(weights: np.ndarray, row: np.ndarray, sought: np.ndarray) -> np.ndarray:
    """How many weights of its row (heads, rows, tokens) are larger than each of `sought` (heads, n), which is in `row`
    (n,): uint8 (heads, n), the worst rank for a token that is left out."""
    found = np.empty(sought.shape, np.uint8)
    order = np.argsort(row, kind="stable")
    for number, places in enumerate(np.split(order, np.searchsorted(row[order], np.arange(1, weights.shape[1])))):
        larger = weights[:, number, None] > sought[:, places, None]
        found[:, places] = np.minimum(np.add.reduce(larger.view(np.uint8), axis=-1, dtype=np.uint16), WORST_RANK)
    found[sought < 0] = WORST_RANK
    return found


def expected(of_relation: Mapping[str, np.ndarray], relations: Sequence[str] | None = None) -> np.ndarray:
    """The expected score of one head of random attention: percent, float64 (rules, k), mean over relations.

    `of_relation`: from `by_relation`; `relations`: take the mean over these only. NaN if none is in the mean.
    """
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
    of_all = before[edges.begin + edges.tokens] - before[edges.begin] - 1  # other tokens of the function (E,)
    found, alike = [], []
    for rule in RULES:
        # many edges have the same chance: one of each (3, distinct), and which of these (E,)
        cells = np.stack([of_all, sought[rule] - (own[rule] & may), sought[rule] > 0])  # m without the own one
        _, one, which = np.unique(_as_one(cells), return_index=True, return_inverse=True)
        others, m, there = cells[:, one, None]
        left = np.maximum(others - (k - 1), 1)  # tokens left for the k-th place
        if direction == HEAD_TO_DEPENDENT:
            missed = np.cumprod(np.clip(1 - m / left, 0, 1), axis=1)
        else:
            missed = np.clip(1 - k / np.maximum(others, 1), 0, 1) ** m
        # so many guesses are all tokens, the token itself included
        found.append(np.where((k > others) & (there > 0), 1, 1 - missed))
        alike.append(which)
    places = {name: np.flatnonzero(edges.relation == number) for number, name in enumerate(edges.relations)}
    return {
        name: 100 * np.stack([of_rule[which[at]].mean(axis=0) for of_rule, which in zip(found, alike)])
        for name, at in sorted(places.items())
        if len(at)
    }


def _as_one(cells: np.ndarray) -> np.ndarray:
    """One number for each column of whole numbers (n, E), of which those of a row are few."""
    one = np.zeros(cells.shape[1], np.int64)
    for row in cells - cells.min(axis=1, keepdims=True, initial=0):
        one = one * (row.max(initial=0) + 1) + row
    return one
