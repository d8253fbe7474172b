"""Ledgers of numbered rows: what a model predicted, under what was done to a function or to the model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from codesyntax_dataset.errors import LedgerError
from probing.runs import ledger_file

LOG_PROBABILITY = (-np.inf, 0.0)
"""The bounds of one, in nats."""


@dataclass(eq=False)
class RowLedger:
    """N rows (N,) of the type ROW, sorted by the columns ORDER, which no two rows share.

    `names`: what the column NAMED is an index into; `settings`: how the ledger was made, as JSON. INSTRUMENT: what was
    asked of the model; COMMAND: of the command line, that writes it; REPEATED: the columns of few different values;
    CLUSTER: the column of what is drawn for intervals; BOUNDS: column -> its least and its largest value.
    """

    ROW: ClassVar[np.dtype]
    ORDER: ClassVar[tuple[str, ...]]
    NAMED: ClassVar[str]
    INSTRUMENT: ClassVar[str]
    COMMAND: ClassVar[str]
    REPEATED: ClassVar[tuple[str, ...]]
    CLUSTER: ClassVar[str] = "function"
    BOUNDS: ClassVar[Mapping[str, tuple[float, float]]] = {}

    names: list[str]
    rows: np.ndarray
    settings: dict[str, Any]

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        """Raise ValueError for rows that no run makes: here, with numbers that are not finite or out of BOUNDS."""
        for name, (least, largest) in cls.BOUNDS.items():
            if not (np.isfinite(rows[name]) & (rows[name] >= least) & (rows[name] <= largest)).all():
                raise ValueError(f"{name} that cannot be")

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        same = (self.names, self.settings) == (other.names, other.settings)
        return same and self.rows.tobytes() == other.rows.tobytes()

    def digest(self) -> str:
        """SHA-256 over the content of the ledger, independent of the file format."""
        header = json.dumps({"settings": self.settings, f"{self.NAMED}s": self.names}, sort_keys=True).encode()
        return hashlib.sha256(len(header).to_bytes(8, "little") + header + self.rows.tobytes()).hexdigest()

    def named(self) -> dict[str, np.ndarray]:
        """Each of `names` that has any rows -> which rows, bool (N,)."""
        found = {name: self.rows[self.NAMED] == place for place, name in enumerate(self.names)}
        return {name: chosen for name, chosen in found.items() if chosen.any()}

    def only(self, functions: np.ndarray) -> Self:
        """The rows of some functions: places in the split, as in the column `function`."""
        return type(self)(self.names, self.rows[np.isin(self.rows["function"], functions)], self.settings)

    @classmethod
    def concatenate(cls, parts: Iterable[Self]) -> Self:
        """The parts of one run as one ledger, sorted."""
        parts = list(parts)
        if any((part.names, part.settings) != (parts[0].names, parts[0].settings) for part in parts):
            raise LedgerError(
                f"these ledgers do not belong together: their {cls.NAMED.replace('_', ' ')}s or settings differ"
            )
        return cls(parts[0].names, np.concatenate([part.rows for part in parts]), parts[0].settings).sorted()

    def sorted(self) -> Self:
        """The same ledger with its rows in order."""
        order = np.lexsort([self.rows[name] for name in reversed(self.ORDER)])
        return type(self)(self.names, self.rows[order], self.settings)

    def save(self, path: str | os.PathLike) -> None:
        """Write the ledger as Parquet, beside its place first: a reader sees the whole file or none."""
        columns: dict[str, pa.Array] = {name: pa.array(self.rows[name]) for name in self.ROW.names or ()}
        columns[self.NAMED] = pa.DictionaryArray.from_arrays(columns[self.NAMED], self.names)
        header = {"instrument": self.INSTRUMENT, f"{self.NAMED}s": self.names, "settings": self.settings}
        ledger_file.save(path, columns, header, repeated=self.REPEATED)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read a ledger; raises LedgerError if the file is not such a ledger or is damaged."""
        with ledger_file.opened(path, f"{cls.INSTRUMENT} ledger", cls.COMMAND) as (table, header, *_):
            names, settings = header[f"{cls.NAMED}s"], header["settings"]
            if header["instrument"] != cls.INSTRUMENT or not all(isinstance(name, str) for name in names):
                raise ValueError("another kind of ledger")
            places = {name: place for place, name in enumerate(names)}
            rows = np.zeros(len(table), cls.ROW)
            for name in cls.ROW.names or ():
                column = table[name].combine_chunks()
                if name == cls.NAMED:
                    column = pa.array([places[kind] for kind in column.to_pylist()], pa.int32())
                rows[name] = column.to_numpy(zero_copy_only=False)
            if not _in_order([rows[name] for name in cls.ORDER]):
                raise ValueError("rows out of order")
            cls.check(rows)
        return cls(names, rows, settings)

    @classmethod
    def open(cls, path: str | os.PathLike) -> Self:
        """Read a ledger; its rows are few, and stay in memory."""
        return cls.load(path)


def _in_order(columns: list[np.ndarray]) -> bool:
    """True if places, from the first column to the last, are not negative and rise from row to row."""
    places = np.stack(columns, axis=1)
    steps = np.diff(places, axis=0)
    first = (steps != 0).argmax(axis=1)  # 0 where no column changes
    later = np.take_along_axis(steps, first[:, None], axis=1)
    return bool((places >= 0).all() and (later > 0).all())
