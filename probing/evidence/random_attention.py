"""The control random attention: scores of heads that rank tokens at random, drawn or by combinatorics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN, RULES, WORST_RANK
from probing.evidence.baselines import Edges
from probing.instruments.attention.ledger import RankLedger, RanksInParts

GUESSES = max(KS)
"""As many tokens of a row are ranked: no score needs more."""

_FEW = 4  # tokens that a row seeks, one by one: it is faster to draw where they stand than what is best

_EDGES = 1 << 12  # at once, and the rest of their function


def random_attention(edges: Edges, direction: str = HEAD_TO_DEPENDENT, heads: int = 12, seed: int = 0) -> RankLedger:
    """The ledger of one layer of `heads` attention heads, each of whose rows ranks the other tokens in random order.

    The ranks are drawn from `np.random.default_rng(seed)` each time that they are read, function by function. Of each
    row the best GUESSES tokens are known, those behind them have WORST_RANK. A token itself comes after all others of
    its row, and those that are never predicted have WORST_RANK.
    """
    settings = {"random_attention": {**edges.settings, "direction": direction, "seed": seed}}
    return RankLedger.of(edges, _RandomRanks(edges, direction, heads, seed), settings)


class _RandomRanks(RanksInParts):
    def __init__(self, edges: Edges, direction: str, heads: int, seed: int):
        self._edges, self._direction, self._heads, self._seed = edges, direction, heads, seed
        self.shape = (len(RULES), len(edges), 1, heads)
        self._may = ~edges.left_out
        self._before = np.append(0, np.cumsum(self._may))  # how many tokens before each may be predicted

    def chunks(self, edges_at_once: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(self._seed)
        starts = np.flatnonzero(np.diff(self._edges.function, prepend=-1))  # edges come function by function
        start = 0
        while start < len(self._edges):
            later = starts[np.searchsorted(starts, start + _EDGES) :]
            end = int(later[0]) if len(later) else len(self._edges)
            yield self._of_edges(rng, slice(start, end))
            start = end

    def _of_edges(self, rng: np.random.Generator, part: slice) -> np.ndarray:
        """The ranks of the edges of some functions: uint8 (edges, rules, 1, heads)."""
        edges = self._edges
        begin = edges.begin[part].astype(np.int64)
        columns = edges.tokens, edges.head, edges.first, edges.last
        end, head, first, last = (begin + column[part] for column in columns)
        ranks = np.empty((len(begin), len(RULES), 1, self._heads), np.uint8)
        if self._direction == HEAD_TO_DEPENDENT:
            several = np.flatnonzero(first < last)  # of one token, the three rules seek the same
            sought = np.concatenate([np.arange(len(head)), several, several])
            low = np.concatenate([first, first[several], last[several]])
            high = np.concatenate([first, last[several], last[several]])
            found = self._found(rng, head[sought], low, high, begin[sought], end[sought])
            ranks[:, :, 0] = found[: len(head), None]
            ranks[several, 1, 0], ranks[several, 2, 0] = np.split(found[len(head) :], 2)
        else:
            size = last - first + 1
            of = np.repeat(np.arange(len(size)), size)  # each token of each dependent looks for the head
            at = size.cumsum() - size
            token = first[of] + np.arange(len(of)) - at[of]
            found = self._found(rng, token, head[of], head[of], begin[of], end[of])
            ranks[:, 0, 0], ranks[:, 2, 0] = found[at], found[at + size - 1]
            ranks[:, 1, 0] = np.minimum.reduceat(found, at, axis=0)
        return ranks

    def _found(
        self,
        rng: np.random.Generator,
        reader: np.ndarray,
        first: np.ndarray,
        last: np.ndarray,
        begin: np.ndarray,
        end: np.ndarray,
    ) -> np.ndarray:
        """Where the row of each of q readers has its first token from `first` to `last`: uint8 (q, heads).

        All are places among the tokens of all functions; those of the reader's own are from `begin` until `end`.
        """
        before, may = self._before, self._may
        _, one, row = np.unique(reader, return_index=True, return_inverse=True)
        others = before[end] - before[begin] - may[reader]
        # from which to which of the others is sought
        low = before[first] - before[begin] - (may[reader] & (reader < first))
        width = before[last + 1] - before[begin] - (may[reader] & (reader <= last)) - low
        most = int(low.max(initial=0)) + 1
        pairs, pair = np.unique(row * most + low, return_inverse=True)
        of_row = np.arange(len(pairs)) - np.searchsorted(pairs // most, pairs // most)
        number = of_row[pair]  # of those that a row seeks
        several = np.zeros(len(one), bool)
        several[row[(width > 1) | (number >= _FEW)]] = True
        found = np.full((len(reader), self._heads), WORST_RANK, np.uint8)
        short = others[one] < 2**8 - GUESSES  # of which places are bytes, which takes half the time
        for rows, by_place in ((several & short, False), (several & ~short, False), (~several, True)):
            sought = np.flatnonzero(rows[row] & (width > 0))
            at = (np.cumsum(rows) - 1)[row[sought]]
            if not by_place:
                best = _different(rng, others[one[rows]], self._heads, GUESSES)
                found[sought] = _first_within(best, at, low[sought], width[sought])
            else:  # where the few that are sought stand is as random as which stand at the best places
                stands = _different(rng, others[one[rows]], self._heads, _FEW)[number[sought], at]
                found[sought] = np.where(stands < GUESSES, stands, WORST_RANK)
        own = np.flatnonzero((first <= reader) & (reader <= last) & (others < GUESSES))
        found[own] = np.minimum(found[own], others[own, None].astype(np.uint8))
        found[~may[reader]] = WORST_RANK
        return found


def _first_within(guesses: np.ndarray, row: np.ndarray, low: np.ndarray, width: np.ndarray) -> np.ndarray:
    """The first of the guesses (n, rows, heads) of the row of each of q that is one of `width` from `low` on: uint8
    (q, heads), WORST_RANK if none is."""
    low, width = (part.astype(guesses.dtype)[:, None] for part in (low, width))
    found = np.full((len(row), guesses.shape[2]), WORST_RANK, np.uint8)
    for place, guess in reversed([*enumerate(guesses)]):
        within = guess.take(row, axis=0) - low < width  # below 0 it wraps around
        found ^= (found ^ np.uint8(place)) * within
    return found


def _different(rng: np.random.Generator, below: np.ndarray, heads: int, number: int) -> np.ndarray:
    """So many different whole numbers from 0 to `below` (rows,), drawn at random: unsigned (number, rows, heads).

    Fisher and Yates: the n-th is drawn from place n on, and what stood at n takes its place. So what stands at a place
    is found by following, from the last exchange back to the first, where it came from. Where no number is left, the
    largest of the type stands for none.
    """
    kind = np.min_scalar_type(int(below.max(initial=0)) + number).type
    drawn = np.empty((number, len(below), heads), kind)
    for place, chosen in enumerate(drawn):
        # as float32 a draw is below 1 by 2**-24 at least, so that its product stays below the number of the rest
        rest = np.maximum(below - place, 0).astype(np.float32)[:, None]
        chosen[:] = rng.random(chosen.shape, np.float32) * rest
        chosen += kind(place)
    different = drawn.copy()
    for place, one in enumerate(different):
        for earlier in reversed(range(place)):
            one ^= (one ^ kind(earlier)) * (one == drawn[earlier])
        one[below <= place] = np.iinfo(kind).max
    return different


def expected(of_relation: Mapping[str, np.ndarray], relations: Sequence[str] | None = None) -> np.ndarray:
    """The expected score of one head of random attention: percent, by MEASURES (M,), mean over relations.

    `of_relation`: from `by_relation`; `relations`: take the mean over these only. NaN if none is in the mean.
    """
    in_mean = [name for name in (of_relation if relations is None else relations) if name not in NOT_IN_MEAN]
    if not in_mean:
        return np.full(len(RULES) * len(KS), np.nan)
    return np.mean([of_relation[name] for name in in_mean], axis=0)


def by_relation(edges: Edges, direction: str = HEAD_TO_DEPENDENT) -> dict[str, np.ndarray]:
    """The expected score of one head of random attention on each relation: percent, by MEASURES (M,).

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
        name: 100 * np.concatenate([of_rule[which[at]].mean(axis=0) for of_rule, which in zip(found, alike)])
        for name, at in sorted(places.items())
        if len(at)
    }


def _as_one(cells: np.ndarray) -> np.ndarray:
    """One number for each column of whole numbers (n, E), of which those of a row are few."""
    one = np.zeros(cells.shape[1], np.int64)
    for row in cells - cells.min(axis=1, keepdims=True, initial=0):
        one = one * (row.max(initial=0) + 1) + row
    return one
