"""Hits of chosen heads by function, and sums of them over functions that are drawn or exchanged at random.

Of a whole dataset most of these numbers are the same, or 0: a relation is in a part of the functions, and its hits are
often equal for several rules and k. They are therefore kept relation by relation, for its functions only and once for
each distinct column, and summed in this form. Sums of whole numbers in float32 are exact below 2**24 edges, in any
order, so they are what sums over all functions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from codesyntax_dataset.protocol import KS, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.statistics import unexchanged

Choice = dict[str, np.ndarray]
"""Relation -> layer and head of the attention head by each rule and k of KS: integers (rules, k, 2)."""

TABLE_PLACES = [KS.index(int(k)) for k in TABLE_KS]
"""Where the k of tables are among KS."""

_AT_ONCE = 128
"""Draws or exchanges of a relation's functions in memory at once, which fit a processor's cache: a multiple of 8, as
exchanges are kept as bits."""


@dataclass(frozen=True, eq=False)
class Found:
    """The counts of one relation in the f functions that have it, such as its hits.

    `places` (f,): which functions these are; `edges` int64 (f,); `columns`: integers (columns, f), each column once;
    `which` (rules, k): the index in `columns`.
    """

    places: np.ndarray
    edges: np.ndarray
    columns: np.ndarray
    which: np.ndarray

    @classmethod
    def of(cls, places: np.ndarray, edges: np.ndarray, counts: np.ndarray) -> Found:
        """From `counts` (rules, k, f)."""
        rules, ks, functions = counts.shape
        distinct: dict[bytes, int] = {}
        rows = np.ascontiguousarray(counts.reshape(rules * ks, functions))
        which = [distinct.setdefault(row.tobytes(), len(distinct)) for row in rows]
        firsts = np.unique(which, return_index=True)[1]
        return cls(places, edges.astype(np.int64), rows[firsts], np.reshape(which, (rules, ks)))

    @property
    def counts(self) -> np.ndarray:
        """(rules, k, f)."""
        return self.columns[self.which]

    @property
    def total(self) -> np.ndarray:
        """Over all functions: int64 (rules, k)."""
        return self.columns.sum(axis=1, dtype=np.int64)[self.which]

    def minus(self, other: Found, places: Sequence[int] | slice = slice(None)) -> Found:
        """The differences to another one of the same edges, at some places on the axis of k."""
        return Found.of(self.places, self.edges, self.counts[:, places].astype(np.int32) - other.counts[:, places])


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The hits of the chosen heads by function: F functions, R relations sorted by name.

    `functions` (F,): positions in the split; `edges`: int32 (F, R); `found`: the hits of each relation. `unchosen`:
    relations that have edges to score but none to choose on, with their number of edges; not in `relations`.
    """

    relations: list[str]
    functions: np.ndarray
    edges: np.ndarray
    found: list[Found]
    choice: Choice
    unchosen: dict[str, int]

    @property
    def in_mean(self) -> np.ndarray:
        """Which relations count in the mean: bool (R,)."""
        return np.array([name not in NOT_IN_MEAN for name in self.relations], bool)

    def content(self) -> Iterator[bytes]:
        """All that statistics of these outcomes depend on."""
        yield repr([self.relations, len(self.functions), self.shape, self.edges.flags.f_contiguous]).encode()
        for found in self.found:
            for array in (found.places, found.edges, found.columns, found.which):
                yield repr(array.shape).encode()
                yield np.ascontiguousarray(array, np.int64).tobytes()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rules and of k."""
        return self.found[0].which.shape if self.found else (len(RULES), len(KS))

    @property
    def hits(self) -> np.ndarray:
        """The hits of all functions, most of them 0: integers (rules, k, F, R)."""
        kind = np.result_type(np.int16, *(found.columns.dtype for found in self.found))
        dense = np.zeros((len(self.found), *self.shape, len(self.functions)), kind)
        for found, of_relation in zip(self.found, dense):
            of_relation[..., found.places] = found.counts
        return np.moveaxis(dense, 0, -1)

    @property
    def total(self) -> np.ndarray:
        """The hits in all functions: int64 (rules, k, R)."""
        totals = np.array([found.total for found in self.found], np.int64).reshape(-1, *self.shape)
        return np.moveaxis(totals, 0, -1)

    def only(self, relations: Iterable[str]) -> Outcomes:
        """The same, restricted to these relations, such as those of the other protocol, so that means compare."""
        columns = [self.relations.index(name) for name in sorted(relations)]
        names = [self.relations[column] for column in columns]
        return replace(self, relations=names, edges=self.edges[:, columns], found=[self.found[at] for at in columns])

    def at(self, rules: Sequence[str], ks: Sequence[int]) -> Outcomes:
        """The same, restricted to these of RULES and KS."""
        cells = np.ix_([RULES.index(rule) for rule in rules], [KS.index(k) for k in ks])
        return replace(
            self, found=[Found.of(one.places, one.edges, one.columns[one.which[cells]]) for one in self.found]
        )

    @property
    def one_guess(self) -> Outcomes:
        """The same with one guess, by the rule `first`."""
        return self.at(RULES[:1], KS[:1])


def resampled(parts: Sequence[Found], functions: int, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums over functions drawn with replacement: of edges (B, R), and of counts (B, rules * k, R), both float32."""
    weight = _weights(functions, resamples, seed)
    edges = np.empty((resamples, len(parts)), np.float32)
    counts = np.empty((resamples, parts[0].which.size, len(parts)), np.float32)
    for number, part in enumerate(parts):
        columns, which = np.vstack([part.edges, part.columns]).astype(np.float32), 1 + part.which.ravel()
        for start in range(0, resamples, _AT_ONCE):
            drawn = slice(start, min(start + _AT_ONCE, resamples))
            sums = columns @ weight[part.places, drawn].astype(np.float32)
            edges[drawn, number] = sums[0]
            counts[drawn, :, number] = sums[which].T
    return edges, counts


def exchanged(parts: Sequence[Found], functions: int, permutations: int, seed: int) -> Iterator[list[np.ndarray]]:
    """Sums of the columns of each part over functions, each exchanged (its sign changed) or not, at random.

    Yields the parts' sums (columns, exchanges), some exchanges at a time.
    """
    rows = [part.columns.any(axis=0) for part in parts]  # what is 0 has no sign
    places = [part.places[kept] for part, kept in zip(parts, rows)]
    columns = [part.columns[:, kept].astype(np.float32) for part, kept in zip(parts, rows)]
    for bits, number in _blocks(functions, permutations, seed):
        yield [_sums(of_part, bits[at], number) for of_part, at in zip(columns, places)]


def exchanged_together(table: np.ndarray, permutations: int, seed: int) -> Iterator[np.ndarray]:
    """The same for float64 (n, F), such as weighted sums of all relations: yields (n, exchanges)."""
    for bits, number in _blocks(table.shape[1], permutations, seed):
        yield _sums(table, bits, number)


def _blocks(functions: int, permutations: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """The exchanges, some at a time, as bits (F, exchanges / 8), and how many they are."""
    exchanges = _exchanges(functions, permutations, seed)
    for start in range(0, permutations, _AT_ONCE):
        bits = np.ascontiguousarray(exchanges[:, start // 8 : (start + _AT_ONCE) // 8])
        yield bits, min(_AT_ONCE, permutations - start)


def _sums(columns: np.ndarray, bits: np.ndarray, number: int) -> np.ndarray:
    """The sums (columns, exchanges) of `columns` (columns, f), each of the f with its sign."""
    kept = np.unpackbits(bits, axis=1, count=number).astype(columns.dtype)
    return 2 * (columns @ kept) - columns.sum(axis=1, keepdims=True)


@lru_cache(maxsize=4)
def _weights(functions: int, resamples: int, seed: int) -> np.ndarray:
    """The number of times each function is drawn in each resample: (F, B)."""
    drawn = np.random.default_rng(seed).multinomial(functions, np.full(functions, 1 / functions), resamples)
    return np.ascontiguousarray(drawn.T, np.min_scalar_type(drawn.max(initial=0)))


@lru_cache(maxsize=4)
def _exchanges(functions: int, permutations: int, seed: int) -> np.ndarray:
    """Which functions keep their sign in each exchange, as bits: uint8 (F, exchanges / 8)."""
    some = unexchanged(functions, permutations, seed, _AT_ONCE)
    return np.hstack([np.packbits(kept.T.astype(bool), axis=1) for kept in some])
