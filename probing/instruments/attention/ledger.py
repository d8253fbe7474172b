"""The rank ledger: the rank of the dependent for every edge and attention head. Every score is
computed from it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per edge,
in the order of the dataset: `function` (its position in the split), `relation`, `head`, `first`,
`last`, `tokens` (of the function), and `ranks`: one byte per rule (first, any, last) and attention
head, at index `(rule * layers + layer) * heads + head`, 0 = best, 255 = 255 or worse or never
predicted. The rules share a column because their ranks are often equal, which compresses well. The
settings that made it are in the file's metadata under `codesyntax`.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.safe_files import is_name
from codesyntax_metric.topk_uas import RULES, RankCounts
from probing.instruments.attention.edges import EDGE_COLUMNS, EdgeTable, stacked
from probing.runs import ledger_file
from probing.runs.records import JsonObject

EDGES_AT_ONCE = 1 << 14
"""Edges whose ranks are in memory at once, where a ledger is read in parts."""

MOST_IN_MEMORY = 1 << 28
"""The most bytes of the ranks of several ledgers that are in memory at once."""

_EDGES_OF_A_SOURCE = 1 << 12
"""The same, of each of several ledgers."""

_KIND = "rank ledger", "probe"

# the columns of a file, in their order
_NUMBERS = [name for name in EDGE_COLUMNS if name != "relation"]


@dataclass(eq=False)
class RankLedger(EdgeTable):
    """E edges, and the ranks of their dependents by L x H attention heads.

    `probing.probe` makes it: `result.ledger`. COUNTS: the settings that are counts of the functions
    that were read, and add up.

    Args:
        relations: their names.
        function: int32 (E,), the position of the edge's function in its split, from 0.
        relation: int32 (E,), an index into `relations`.
        head: int32 (E,), index of the head token, from 0.
        first: int32 (E,), index of the dependent's first token.
        last: int32 (E,), index of its last token (inclusive).
        tokens: int32 (E,), how many tokens the function has.
        ranks: uint8 (rules, E, layers, heads), rules in the order of RULES, 0 is best, 255 is 255
            or worse; in memory or made when they are needed.
        settings: how the ledger was made, as JSON.
        over: what intervals are over.

    Examples:
        >>> import probing
        >>> ledger = probing.probe("tiny-code-lm", "codesyntax", limit=4).ledger
        >>> ledger
        RankLedger: 278 edges of 25 relations, 4 layers of 4 heads
        >>> ledger.ranks.shape
        (3, 278, 4, 4)
    """

    INSTRUMENT: ClassVar = ledger_file.ATTENTION
    COMMAND: ClassVar = "probe"
    THINGS: ClassVar = "edges"
    CELLS: ClassVar = "ranks"
    COUNTS: ClassVar = ("skips", "ties")

    ranks: np.ndarray | StoredRanks
    settings: JsonObject

    def __repr__(self) -> str:
        layers, heads = self.ranks.shape[2:]
        return f"RankLedger: {len(self)} edges of {len(self.relations)} relations, {layers} layers of {heads} heads"

    def parts(self, edges_at_once: int = EDGES_AT_ONCE) -> Iterator[tuple[slice, np.ndarray]]:
        """Which edges, and their ranks (rules, some edges, layers, heads), so many edges at a time.

        Raises LedgerError if the ranks are in a file that is damaged, or has changed since it was
        opened.
        """
        if isinstance(self.ranks, StoredRanks):
            yield from self.ranks.parts(edges_at_once)
            return
        for start in range(0, len(self), edges_at_once):
            part = slice(start, min(len(self), start + edges_at_once))
            yield part, self.ranks[:, part]

    def counts(self, edges_at_once: int = EDGES_AT_ONCE) -> RankCounts:
        """The number of times that each rank occurs, for the metric's `score`."""
        counts = RankCounts(*self.ranks.shape[2:])
        names = np.asarray(self.relations, dtype=object)
        for part, ranks in self.parts(edges_at_once):
            counts.add(names[self.relation[part]], ranks)
        counts.functions = len(np.unique(self.function))
        return counts

    def of_heads(self, layer: np.ndarray, head: np.ndarray) -> np.ndarray:
        """The ranks of one head for each rule and relation: uint8 (..., rules, E), of integers
        (..., rules, relations).

        So several choices of heads are read at once.
        """
        ranks_of = np.empty((*layer.shape[:-1], len(self)), np.uint8)
        rule = np.arange(len(RULES))[:, None]
        for part, ranks in self.parts():
            relation = self.relation[part]
            ranks_of[..., part] = ranks[
                rule, np.arange(len(relation)), layer[..., relation], head[..., relation]
            ]
        return ranks_of

    def same_things(self, other: RankLedger) -> bool:
        """True if another ledger has ranks of the same edges, in the same order, by as many heads."""
        if self.ranks.shape != other.ranks.shape:
            return False
        same = np.array_equal(self.relation_names, other.relation_names)
        numbers = (name for name in EDGE_COLUMNS if name != "relation")
        return same and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in numbers
        )

    def differing(self, other: RankLedger) -> tuple[int, int]:
        """How many ranks differ from those of another ledger of the same edges, and of how many."""
        pairs = zip(self.parts(), other.parts())
        differing = sum(int(np.count_nonzero(mine != ranks)) for (_, mine), (_, ranks) in pairs)
        return differing, math.prod(self.ranks.shape)

    def same_ranks(self, other: RankLedger) -> bool:
        """True if another ledger has the same ranks in the same order."""
        return self.ranks.shape == other.ranks.shape and not self.differing(other)[0]

    def digest(self) -> str:
        """SHA-256 over the content of the ledger, independent of the file format."""
        digest = hashlib.sha256()
        names, relation = np.unique(self.relation_names, return_inverse=True)
        header = {"settings": self.settings, "relations": names.tolist(), "shape": self.ranks.shape}
        text = json.dumps(header, sort_keys=True).encode()
        digest.update(len(text).to_bytes(8, "little") + text)
        for numbers in (relation, self.function, self.head, self.first, self.last, self.tokens):
            digest.update(numbers.astype("<i4").tobytes())
        for _, ranks in self.parts(4096):  # earlier digests are of parts of this size
            digest.update(ranks.tobytes())
        return digest.hexdigest()

    def sorted(self) -> RankLedger:
        """The same ledger with its functions in the order of the dataset; edges keep their order
        within a function."""
        return self.take(np.argsort(self.function, kind="stable"))

    def take(self, edges: np.ndarray) -> RankLedger:
        """Some of the edges, by their indices or a mask (E,); in ascending order, ranks in a file
        stay there."""
        columns = {name: column[edges] for name, column in self.columns.items()}
        places = np.arange(len(self))[edges]
        if isinstance(self.ranks, StoredRanks) and (np.diff(places) > 0).all():
            return replace(self, **columns, ranks=self.ranks.of(places))
        return replace(self, **columns, ranks=self.ranks[:, places])

    def only(self, functions: np.ndarray) -> RankLedger:
        """The edges of some functions: places in the split, as in the column `function`."""
        mask = np.isin(self.function, functions)
        return self if mask.all() else self.take(mask)

    @classmethod
    def of(
        cls, edges: EdgeTable, ranks: np.ndarray | StoredRanks, settings: JsonObject
    ) -> RankLedger:
        """The ledger of `edges`, whatever else their table has."""
        return cls(
            edges.relations,
            **edges.columns,
            ranks=ranks,
            settings=settings,
            over=edges.over,
        )

    @classmethod
    def concatenate(cls, parts: Iterable[RankLedger]) -> RankLedger:
        """The parts of one run, each with its functions in the order of the dataset, as one ledger;
        ranks are in memory if they are at most MOST_IN_MEMORY."""
        parts = list(parts)
        settings = ledger_file.added([part.settings for part in parts], cls.COUNTS)
        edges, order = stacked(parts).in_order()
        source = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[order]
        ranks = JoinedRanks([part.ranks for part in parts], source)
        few = math.prod(ranks.shape) <= MOST_IN_MEMORY
        return cls.of(edges, np.asarray(ranks) if few else ranks, settings)

    def save(self, path: StrPath) -> None:
        """Write the ledger as Parquet, beside its place first: a reader sees the whole file or
        none. Ranks of several files are those of this one from then on."""
        layers, heads = self.ranks.shape[2:]
        header = {"layers": layers, "heads": heads, "settings": self.settings}
        ledger_file.save(path, self._file_columns(), header, repeated=["relation"])
        replaced = isinstance(self.ranks, FileRanks) and (
            self.ranks.path.resolve() == Path(path).resolve()
        )
        if replaced or isinstance(self.ranks, JoinedRanks):
            self.ranks = type(self).open(path).ranks

    def _file_columns(self) -> Iterator[dict[str, pa.Array]]:
        """Those of the file, for some edges after the other."""
        names = _text_column(self.relations)
        width = pa.binary(self.ranks.shape[0] * self.ranks.shape[2] * self.ranks.shape[3])
        nothing = slice(0), np.empty(self.ranks.shape, np.uint8)
        for part, ranks in self.parts(ledger_file.ROWS_AT_ONCE) if len(self) else [nothing]:
            # (E, rules, layers, heads)
            cells = pa.py_buffer(np.ascontiguousarray(ranks.swapaxes(0, 1)))
            columns = {name: _number_column(getattr(self, name)[part]) for name in _NUMBERS}
            yield {
                **columns,
                "relation": pa.DictionaryArray.from_arrays(
                    _number_column(self.relation[part]), names
                ),
                "ranks": pa.Array.from_buffers(width, ranks.shape[1], [None, cells]),
            }

    @classmethod
    def load(cls, path: StrPath) -> RankLedger:
        """Read a ledger into memory; raises LedgerError if the file is not a ledger or is
        damaged."""
        return cls._opened_ledger(path, [*_NUMBERS, "relation", "ranks"])

    @classmethod
    def open(cls, path: StrPath) -> RankLedger:
        """Read the edges of a ledger; its ranks stay in the file, and are read some at a time when
        they are needed.

        Raises LedgerError if the file is not a ledger, or if its edges are damaged; damaged ranks
        are found when they are read.
        """
        return cls._opened_ledger(path, [*_NUMBERS, "relation"])

    @classmethod
    def _opened_ledger(cls, path: StrPath, read: Sequence[str]) -> RankLedger:
        """A ledger whose ranks are in memory if they are among the columns to `read`."""
        with ledger_file.opened(path, *_KIND, columns=read) as (table, header, schema, status):
            layers = header["layers"]
            heads = header["heads"]
            relation = table["relation"].combine_chunks().dictionary_encode()
            columns: dict[str, Any] = {
                name: _as_int32(table[name].combine_chunks()) for name in _NUMBERS
            }
            names = relation.dictionary.to_pylist()
            if min(layers, heads) < 1 or not all(map(is_name, names)):
                raise ValueError("fields that are empty or no names")
            width = schema.field("ranks").type.byte_width
            expected = len(RULES) * layers * heads
            if width != expected:
                raise ValueError(f"ranks of {width} bytes, expected {expected}")
            shape = (len(RULES), len(table), layers, heads)
            settings = header["settings"]
            ranks: np.ndarray | StoredRanks = FileRanks(path, status, shape, np.arange(len(table)))
            if "ranks" in read:
                ranks = _rank_cells(table["ranks"].combine_chunks(), layers, heads).swapaxes(0, 1)
        return cls(
            relations=names,
            relation=_as_int32(relation.indices),
            ranks=ranks,
            settings=settings,
            **columns,
        )


def _number_column(values: np.ndarray) -> pa.Array:
    """Whole numbers (n,) as int32. `pa.array` would import pandas, as here and below."""
    buffer = pa.py_buffer(np.ascontiguousarray(values, np.int32))
    return pa.Array.from_buffers(pa.int32(), len(values), [None, buffer])


def _text_column(texts: Sequence[str]) -> pa.Array:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    parts = pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(texts), *parts)


def _as_int32(column: pa.Array) -> np.ndarray:
    """Whole numbers as int32. `to_numpy` would import pandas, which takes longer than all else."""
    return np.from_dlpack(column).astype(np.int32)


def _rank_cells(column: pa.Array, layers: int, heads: int) -> np.ndarray:
    """The ranks in a column: uint8 (E, rules, layers, heads), of the column's memory."""
    width = column.type.byte_width
    cells = np.frombuffer(column.buffers()[1], np.uint8, len(column) * width, column.offset * width)
    return cells.reshape(-1, len(RULES), layers, heads)


class StoredRanks(ABC):
    """The ranks of a ledger, or of some of its edges, which stay in files, and are read some at a
    time when they are needed.

    `shape`: (rules, E, layers, heads).
    """

    shape: tuple[int, int, int, int]

    @abstractmethod
    def of(self, edges: np.ndarray) -> np.ndarray | StoredRanks:
        """Those of some edges, ascending."""

    @abstractmethod
    def parts(self, edges_at_once: int) -> Iterator[tuple[slice, np.ndarray]]:
        """As `RankLedger.parts`."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        ranks = np.empty(self.shape, np.uint8)
        for part, of_part in self.parts(EDGES_AT_ONCE):
            ranks[:, part] = of_part
        return ranks if dtype is None else ranks.astype(dtype)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __reduce__(self) -> Any:  # another process has no such file
        return np.asarray, (np.asarray(self),)


class FileRanks(StoredRanks):
    """Those in one file.

    `status`: that of the file when it was opened; `shape`: (rules, E, layers, heads) in the file;
    `edges`: which of these, ascending. Raises LedgerError when they are read, if the file is
    damaged, or has changed since.
    """

    def __init__(
        self,
        path: StrPath,
        status: tuple[int, ...],
        shape: tuple[int, int, int, int],
        edges: np.ndarray,
    ):
        self.path, self._status, self._of_file, self._edges = Path(path), status, shape, edges
        self.shape = (shape[0], len(edges), *shape[2:])

    def of(self, edges: np.ndarray) -> StoredRanks:
        return FileRanks(self.path, self._status, self._of_file, self._edges[edges])

    def parts(self, edges_at_once: int) -> Iterator[tuple[slice, np.ndarray]]:
        rules, stored, layers, heads = self._of_file
        read, done, waiting = 0, 0, np.empty((0, rules, layers, heads), np.uint8)
        for batch in ledger_file.parts(self.path, *_KIND, "ranks", edges_at_once, self._status):
            first, last = np.searchsorted(self._edges, [read, read + len(batch)])
            cells = _rank_cells(batch, layers, heads)[self._edges[first:last] - read]
            waiting = np.concatenate([waiting, cells])
            read += len(batch)
            while len(waiting) >= edges_at_once:
                yield slice(done, done + edges_at_once), waiting[:edges_at_once].swapaxes(0, 1)
                done += edges_at_once
                waiting = waiting[edges_at_once:]
        if len(waiting):
            yield slice(done, done + len(waiting)), waiting.swapaxes(0, 1)
        if read != stored:
            raise LedgerError(
                f"{self.path} has ranks of {read} edges, expected {stored}: the file is damaged"
            )


class JoinedRanks(StoredRanks):
    """Those of several ledgers, in memory or in files: `source` (E,) says of which each edge is,
    the next one of its edges."""

    def __init__(self, sources: Sequence[np.ndarray | StoredRanks], source: np.ndarray):
        self._sources, self._source = sources, source
        rules, _, *of_model = sources[0].shape
        self.shape = (rules, len(source), *of_model)

    def of(self, edges: np.ndarray) -> StoredRanks:
        place = np.empty(len(self._source), np.int64)  # of each edge, among those of its source
        chosen = []
        for number, ranks in enumerate(self._sources):
            own = np.flatnonzero(self._source == number)
            place[own] = np.arange(len(own))
            some = place[edges[self._source[edges] == number]]
            chosen.append(ranks.of(some) if isinstance(ranks, StoredRanks) else ranks[:, some])
        return JoinedRanks(chosen, self._source[edges])

    def parts(self, edges_at_once: int) -> Iterator[tuple[slice, np.ndarray]]:
        readers = {number: _RankReader(ranks) for number, ranks in enumerate(self._sources)}
        left = np.bincount(self._source, minlength=len(self._sources))
        for start in range(0, len(self._source), edges_at_once):
            source = self._source[start : start + edges_at_once]
            part = np.empty((self.shape[0], len(source), *self.shape[2:]), np.uint8)
            for number in np.unique(source).tolist():
                own = np.flatnonzero(source == number)
                part[:, own] = readers[number].take(len(own))
                left[number] -= len(own)
                if not left[number]:  # its memory is for others
                    readers.pop(number).close()
            yield slice(start, start + len(source)), part


class _RankReader:
    """Reads the ranks of a ledger, in memory or in a file, from the first edge to the last."""

    def __init__(self, ranks: np.ndarray | StoredRanks):
        whole = slice(0, ranks.shape[1])
        self._parts = (
            ranks.parts(_EDGES_OF_A_SOURCE)
            if isinstance(ranks, StoredRanks)
            else iter([(whole, ranks)])
        )
        self._waiting = np.empty((ranks.shape[0], 0, *ranks.shape[2:]), np.uint8)

    def take(self, count: int) -> np.ndarray:
        """Those of so many edges."""
        taken = []
        while count > self._waiting.shape[1]:
            taken.append(self._waiting)
            count -= self._waiting.shape[1]
            _, self._waiting = next(self._parts)
        taken.append(self._waiting[:, :count])
        self._waiting = self._waiting[:, count:]
        return np.concatenate(taken, axis=1)

    def close(self) -> None:
        """Raises LedgerError if the file has more."""
        next(self._parts, None)
