"""The rank ledger: the rank of the dependent for every edge and attention head. Every score is computed from it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per edge, in the order of the
dataset: `function` (its position in the split), `relation`, `head`, `first`, `last`, `tokens` (of the function), and
`ranks`: one byte per rule (first, any, last) and attention head, at index `(rule * layers + layer) * heads + head`,
0 = best, 255 = 255 or worse or never predicted. The rules share a column because their ranks are often equal, which
compresses well. The settings that made it are in the file's metadata under `codesyntax`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import RULES, RankCounts
from probing.attention.edges import COLUMNS, EdgeTable, stacked
from probing.runs import ledger_file

_NUMBERS = (
    "function",
    "head",
    "first",
    "last",
    "tokens",
)  # the columns of a file, in their order, but for the relation


@dataclass(eq=False)
class RankLedger(EdgeTable):
    """E edges, and the ranks of their dependents by L x H attention heads.

    `ranks`: uint8 (rules, E, layers, heads), rules in the order of RULES. `settings`: how it was made, as JSON.
    """

    ranks: np.ndarray
    settings: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RankLedger):
            return NotImplemented
        same = (self.relations, self.settings) == (other.relations, other.settings)
        return same and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in (*COLUMNS, "ranks"))

    def __repr__(self) -> str:
        layers, heads = self.ranks.shape[2:]
        return f"RankLedger: {len(self)} edges of {len(self.relations)} relations, {layers} layers of {heads} heads"

    def counts(self, edges_at_once: int = 4096) -> RankCounts:
        """The number of times that each rank occurs, for the metric's `score`."""
        counts = RankCounts(*self.ranks.shape[2:])
        names = np.asarray(self.relations, dtype=object)
        for start in range(0, len(self), edges_at_once):
            part = slice(start, start + edges_at_once)
            counts.add(names[self.relation[part]], self.ranks[:, part])
        counts.functions = len(np.unique(self.function))
        return counts

    def digest(self) -> str:
        """SHA-256 over the content of the ledger, independent of the file format."""
        digest = hashlib.sha256()
        names, relation = np.unique(np.asarray(self.relations, dtype=object)[self.relation], return_inverse=True)
        header = {"settings": self.settings, "relations": names.tolist(), "shape": self.ranks.shape}
        text = json.dumps(header, sort_keys=True).encode()
        digest.update(len(text).to_bytes(8, "little") + text)
        for numbers in (relation, self.function, self.head, self.first, self.last, self.tokens):
            digest.update(numbers.astype("<i4").tobytes())
        for start in range(0, len(self), 4096):
            digest.update(self.ranks[:, start : start + 4096].tobytes())
        return digest.hexdigest()

    def sorted(self) -> RankLedger:
        """The same ledger with its functions in the order of the dataset; edges keep their order within a function."""
        return self.take(np.argsort(self.function, kind="stable"))

    def take(self, edges: np.ndarray) -> RankLedger:
        """Some of the edges, by their indices or a mask (E,)."""
        columns = {name: column[edges] for name, column in self.columns.items()}
        return dataclasses.replace(self, **columns, ranks=self.ranks[:, edges])

    def only(self, functions: np.ndarray) -> RankLedger:
        """The edges of some functions: places in the split, as in the column `function`."""
        kept = np.isin(self.function, functions)
        return self if kept.all() else self.take(kept)

    @classmethod
    def of(cls, edges: EdgeTable, ranks: np.ndarray, settings: dict[str, Any]) -> RankLedger:
        """The ledger of `edges`, whatever else their table has."""
        return cls(edges.relations, **edges.columns, ranks=ranks, settings=settings)

    @classmethod
    def concatenate(cls, parts: Iterable[RankLedger]) -> RankLedger:
        """The parts of one run as one ledger, its functions in the order of the dataset."""
        parts = list(parts)
        if any(part.relations != parts[0].relations or part.settings != parts[0].settings for part in parts):
            raise LedgerError("these ledgers do not belong together: their relations or settings differ")
        ranks = np.concatenate([part.ranks for part in parts], axis=1)
        return cls.of(stacked(parts), ranks, parts[0].settings).sorted()

    def save(self, path: str | os.PathLike) -> None:
        """Write the ledger as Parquet, beside its place first: a reader sees the whole file or none."""
        layers, heads = self.ranks.shape[2:]
        columns = {name: pa.array(getattr(self, name).astype(np.int32)) for name in _NUMBERS}
        columns["relation"] = pa.DictionaryArray.from_arrays(pa.array(self.relation.astype(np.int32)), self.relations)
        cells = np.ascontiguousarray(self.ranks.swapaxes(0, 1))  # (E, rules, layers, heads)
        width = pa.binary(len(RULES) * layers * heads)
        columns["ranks"] = pa.Array.from_buffers(width, len(self), [None, pa.py_buffer(cells)])
        header = {"layers": layers, "heads": heads, "settings": self.settings}
        ledger_file.save(path, columns, header, repeated=["relation"])

    @classmethod
    def load(cls, path: str | os.PathLike) -> RankLedger:
        """Read a ledger; raises LedgerError if the file is not a ledger or is damaged."""
        with ledger_file.opened(path, "rank ledger", "probe") as (table, header):
            layers, heads = header["layers"], header["heads"]
            relation = table["relation"].combine_chunks().dictionary_encode()
            cells = table["ranks"].combine_chunks()
            width = cells.type.byte_width
            ranks = np.frombuffer(cells.buffers()[1], np.uint8, len(cells) * width, cells.offset * width)
            ranks = ranks.reshape(len(table), len(RULES), layers, heads).swapaxes(0, 1)
            columns = {name: table[name].to_numpy().astype(np.int32) for name in _NUMBERS}
            names = relation.dictionary.to_pylist()
            if min(layers, heads) < 1 or not all(isinstance(name, str) for name in names):
                raise ValueError("fields that are empty or no names")
            settings = header["settings"]
        return cls(
            relations=names,
            relation=relation.indices.to_numpy().astype(np.int32),
            ranks=ranks,
            settings=settings,
            **columns,
        )
