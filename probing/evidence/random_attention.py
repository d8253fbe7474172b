"""The control random attention: scores of heads that rank tokens at random, drawn or by
combinatorics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES, WORST_RANK
from probing.evidence.baselines import Edges
from probing.instruments.attention.ledger import RankLedger, RanksInParts

GUESSES = max(KS)
"""As many tokens of a row are ranked: no score needs more."""

_FEW = 4  # tokens that a row seeks, one by one: it is faster to draw where they stand than what is best

_EDGES = 1 << 12  # at once, and the rest of their function


def random_attention(
    edges: Edges, direction: str = HEAD_TO_DEPENDENT, heads: int = 12, seed: int = 0
) -> RankLedger:
    """The ledger of one layer of `heads` attention heads, each of whose rows ranks the other tokens
    in random order.

    The ranks are drawn from `np.random.default_rng(seed)` each time that they are read, function by
    function. Of each row the best GUESSES tokens are known, those behind them have WORST_RANK. A
    token itself comes after all others of its row, and those that are never predicted have
    WORST_RANK.
    """
    settings = {"random_attention": {**edges.settings, "direction": direction, "seed": seed}}
    return RankLedger.of(edges, _RandomRanks(edges, direction, heads, seed), settings)


class _Search(NamedTuple):
    """In the row of each of q `reader`s, the tokens from `first` to `last` are sought; (q,) each.

    All are places among the tokens of all functions; those of the reader's own are from `begin`
    until `end`.
    """

    reader: np.ndarray
    first: np.ndarray
    last: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def take(self, which: np.ndarray) -> _Search:
        return _Search(*(column[which] for column in self))


class _RandomRanks(RanksInParts):
    def __init__(self, edges: Edges, direction: str, heads: int, seed: int):
        self._edges = edges
        self._direction = direction
        self._heads = heads
        self._seed = seed
        self.shape = (len(RULES), len(edges), 1, heads)
        self._may = ~edges.left_out
        self._before = _counted_before(self._may)

    def chunks(self, edges_at_once: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(self._seed)
        # edges come function by function
        starts = np.flatnonzero(np.diff(self._edges.function, prepend=-1))
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
        end = begin + edges.tokens[part]
        head = begin + edges.head[part]
        first = begin + edges.first[part]
        last = begin + edges.last[part]
        ranks = np.empty((len(begin), len(RULES), 1, self._heads), np.uint8)
        by_first, by_any, by_last = ranks[:, :, 0].transpose(1, 0, 2)
        if self._direction == HEAD_TO_DEPENDENT:
            several = np.flatnonzero(first < last)  # of one token, the three rules seek the same
            of_first = _Search(head, first, first, begin, end)
            of_any = _Search(head, first, last, begin, end).take(several)
            of_last = _Search(head, last, last, begin, end).take(several)
            columns = zip(of_first, of_any, of_last)
            found_at = self._ranks(rng, _Search(*map(np.concatenate, columns)))
            ranks[:, :, 0] = found_at[: len(head), None]
            further = found_at[len(head) :]
            by_any[several] = further[: len(several)]
            by_last[several] = further[len(several) :]
            return ranks
        size = last - first + 1
        # each token of each dependent looks for the head
        edge = np.repeat(np.arange(len(size)), size)
        start = size.cumsum() - size
        token = first[edge] + np.arange(len(edge)) - start[edge]
        search = _Search(first, head, head, begin, end).take(edge)
        found_at = self._ranks(rng, search._replace(reader=token))
        by_first[:] = found_at[start]
        by_any[:] = np.minimum.reduceat(found_at, start, axis=0)
        by_last[:] = found_at[start + size - 1]
        return ranks

    def _ranks(self, rng: np.random.Generator, search: _Search) -> np.ndarray:
        """Where the row of each of q readers has the first token that it seeks: uint8 (q,
        heads)."""
        before = self._before
        may = self._may
        reader, first, last, begin, end = search
        _, example, row = np.unique(reader, return_index=True, return_inverse=True)
        counted = may[reader]
        in_front = before[begin]
        others = before[end] - in_front - counted
        # from which to which of the others is sought
        low = before[first] - in_front - (counted & (reader < first))
        high = before[last + 1] - in_front - (counted & (reader <= last))
        width = high - low
        number = _numbers_within(row, low)
        # rows that draw what is best, not where tokens stand
        by_guess = np.zeros(len(example), bool)
        by_guess[row[(width > 1) | (number >= _FEW)]] = True
        of_row = others[example]
        as_bytes = of_row < 2**8 - GUESSES  # of which places are bytes, which takes half the time
        ranks = np.full((len(reader), self._heads), WORST_RANK, np.uint8)
        for rows in (by_guess & as_bytes, by_guess & ~as_bytes):
            asked, drawn_row = _asked(rows, row, width)
            best = _different(rng, of_row[rows], self._heads, GUESSES)
            ranks[asked] = _first_within(best, drawn_row, low[asked], width[asked])
        # where the few that are sought stand is as random as which stand at the best places
        asked, drawn_row = _asked(~by_guess, row, width)
        places = _different(rng, of_row[~by_guess], self._heads, _FEW)
        stands = places[number[asked], drawn_row]
        ranks[asked] = np.where(stands < GUESSES, stands, WORST_RANK)
        inside = (first <= reader) & (reader <= last)
        own = np.flatnonzero(inside & (others < GUESSES))
        behind_all = others[own, None].astype(np.uint8)
        ranks[own] = np.minimum(ranks[own], behind_all)
        ranks[~counted] = WORST_RANK
        return ranks


def _counted_before(may: np.ndarray) -> np.ndarray:
    """How many tokens before each of all may be predicted, and in all: (T + 1,), from bool (T,)."""
    return np.append(0, np.cumsum(may))


def _numbers_within(row: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Which of the distinct `low` (q,) of its row each is, from 0: (q,)."""
    most = int(low.max(initial=0)) + 1
    pairs, pair = np.unique(row * most + low, return_inverse=True)
    row_of_pair = pairs // most
    within = np.arange(len(pairs)) - np.searchsorted(row_of_pair, row_of_pair)
    return within[pair]


def _asked(rows: np.ndarray, row: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of q that seek anything are of some `rows`, bool (all rows,), and the numbers of their
    rows among these."""
    asked = np.flatnonzero(rows[row] & (width > 0))
    numbers = np.cumsum(rows) - 1
    return asked, numbers[row[asked]]


def _first_within(
    guesses: np.ndarray, row: np.ndarray, low: np.ndarray, width: np.ndarray
) -> np.ndarray:
    """The first of the guesses (n, rows, heads) of the row of each of q that is one of `width` from
    `low` on: uint8 (q, heads), WORST_RANK if none is."""
    low = low.astype(guesses.dtype)[:, None]
    width = width.astype(guesses.dtype)[:, None]
    first = np.full((len(row), guesses.shape[2]), WORST_RANK, np.uint8)
    for number in reversed(range(len(guesses))):
        guess = guesses[number].take(row, axis=0)
        within = guess - low < width  # below 0 it wraps around
        first ^= (first ^ np.uint8(number)) * within
    return first


def _different(rng: np.random.Generator, below: np.ndarray, heads: int, number: int) -> np.ndarray:
    """So many different whole numbers from 0 to `below` (rows,), drawn at random: unsigned (number,
    rows, heads).

    Fisher and Yates: the n-th is drawn from place n on, and what stood at n takes its place. So
    what stands at a place is found by following, from the last exchange back to the first, where it
    came from. Where no number is left, the largest of the type stands for none.
    """
    kind = np.min_scalar_type(int(below.max(initial=0)) + number).type
    drawn = np.empty((number, len(below), heads), kind)
    for step, chosen in enumerate(drawn):
        # as float32 a draw is below 1 by 2**-24 at least, so that its product stays below the
        # number of the rest
        rest = np.maximum(below - step, 0).astype(np.float32)[:, None]
        chosen[:] = rng.random(chosen.shape, np.float32) * rest
        chosen += kind(step)
    different = drawn.copy()
    for step, origin in enumerate(different):
        for earlier in reversed(range(step)):
            origin ^= (origin ^ kind(earlier)) * (origin == drawn[earlier])
        origin[below <= step] = np.iinfo(kind).max
    return different


def by_relation(edges: Edges, direction: str = HEAD_TO_DEPENDENT) -> dict[str, np.ndarray]:
    """The expected score of one head of random attention on each relation: percent, by MEASURES
    (M,).

    The best k of n other tokens are any k of them. A row finds one of m tokens with probability 1 -
    C(n - m, k) / C(n, k), and m rows that each look for one token find it with 1 - (1 - k / n) **
    m. A token itself ranks last in its row. Tokens that are never predicted count neither in n nor
    in m.
    """
    before = _counted_before(~edges.left_out)
    begin = edges.begin
    head = begin + edges.head
    first = begin + edges.first
    last = begin + edges.last
    may = ~edges.left_out[head]
    others = before[begin + edges.tokens] - before[begin] - 1  # of the function (E,)
    ends = {"first": (first, first), "any": (first, last), "last": (last, last)}
    chances = []  # of each rule: the distinct ones (distinct, k), and which is each edge's (E,)
    for rule in RULES:
        low, high = ends[rule]
        sought = (before[high + 1] - before[low]) * may
        own = (low <= head) & (head <= high)
        cells = np.stack([others, sought - (own & may), sought > 0])  # m without the own one
        _, example, which = np.unique(cells, axis=1, return_index=True, return_inverse=True)
        n, m, there = cells[:, example, None]
        chances.append((_chance(n, m, there, direction), which))
    scores = {}
    for number, name in sorted(enumerate(edges.relations), key=lambda item: item[1]):
        index = np.flatnonzero(edges.relation == number)
        if len(index):
            by_rule = [chance[which[index]].mean(axis=0) for chance, which in chances]
            scores[name] = 100 * np.concatenate(by_rule)
    return scores


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
