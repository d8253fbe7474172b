"""The masking ledger: what a model restored in each masked copy of each function. Every score is computed from it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per copy, sorted by function
(its position in the split), node type and copy: 0 is T1, in which the nodes of the type are masked, the others are its
controls T0, in which as many random sub-tokens are (Velasco et al. 2024, section 3).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from codesyntax_dataset.errors import LedgerError
from probing.runs import ledger_file

SIMILARITIES = ("jaccard", "sorensen_dice", "levenshtein")
"""Of the trees of the source and of the restored text, from 0 to 1."""

HITS = ("hits_1", "hits_5", "hits_10")
"""How many masked sub-tokens have the true one first, or among the first 5 or 10."""

ROW = np.dtype(
    [
        ("function", "<i4"),
        ("node_type", "<i4"),
        ("copy", "<i4"),
        ("seed", "<i8"),  # of the positions
        ("masked", "<i4"),  # sub-tokens
        *((name, "<i4") for name in HITS),
        ("log_probability", "<f8"),  # of the true sub-tokens, the mean over the masked ones, in nats, rounded
        *((name, "<f8") for name in SIMILARITIES),  # NaN if the trees could not be compared
    ]
)
"""What is known of a copy. `node_type` is an index into the ledger's node types."""


@dataclass(eq=False)
class MaskingLedger:
    """N masked copies: `rows` (N,) of the type ROW. `settings`: how the ledger was made, as JSON."""

    node_types: list[str]
    rows: np.ndarray
    settings: dict[str, Any]

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MaskingLedger):
            return NotImplemented
        same = (self.node_types, self.settings) == (other.node_types, other.settings)
        return same and self.rows.tobytes() == other.rows.tobytes()

    def __repr__(self) -> str:
        return f"MaskingLedger: {len(self)} masked copies, {len(self.node_types)} node types"

    def digest(self) -> str:
        """SHA-256 over the content of the ledger, independent of the file format."""
        header = json.dumps({"settings": self.settings, "node_types": self.node_types}, sort_keys=True).encode()
        return hashlib.sha256(len(header).to_bytes(8, "little") + header + self.rows.tobytes()).hexdigest()

    def only(self, functions: np.ndarray) -> MaskingLedger:
        """The copies of some functions: places in the split, as in the column `function`."""
        return MaskingLedger(self.node_types, self.rows[np.isin(self.rows["function"], functions)], self.settings)

    @classmethod
    def concatenate(cls, parts: Iterable[MaskingLedger]) -> MaskingLedger:
        """The parts of one run as one ledger, sorted."""
        parts = list(parts)
        if any((part.node_types, part.settings) != (parts[0].node_types, parts[0].settings) for part in parts):
            raise LedgerError("these ledgers do not belong together: their node types or settings differ")
        rows = np.concatenate([part.rows for part in parts])
        return cls(parts[0].node_types, rows[np.lexsort(_order(rows))], parts[0].settings)

    def save(self, path: str | os.PathLike) -> None:
        """Write the ledger as Parquet, beside its place first: a reader sees the whole file or none."""
        columns: dict[str, pa.Array] = {name: pa.array(self.rows[name]) for name in ROW.names or ()}
        columns["node_type"] = pa.DictionaryArray.from_arrays(columns["node_type"], self.node_types)
        header = {"instrument": ledger_file.MASKING, "node_types": self.node_types, "settings": self.settings}
        ledger_file.save(path, columns, header, repeated=["node_type", "function", "copy", "masked"])

    @classmethod
    def load(cls, path: str | os.PathLike) -> MaskingLedger:
        """Read a ledger; raises LedgerError if the file is not a masking ledger or is damaged."""
        with ledger_file.opened(path, "masking ledger", "mask") as (table, header):
            names, settings = header["node_types"], header["settings"]
            if header["instrument"] != ledger_file.MASKING or not all(isinstance(name, str) for name in names):
                raise ValueError("another kind of ledger")
            rows = np.zeros(len(table), ROW)
            for name in ROW.names or ():
                column = table[name].combine_chunks()
                if name == "node_type":
                    column = pa.array([names.index(kind) for kind in column.to_pylist()], pa.int32())
                rows[name] = column.to_numpy(zero_copy_only=False)
            _check(rows)
        return cls(names, rows, settings)


def _order(rows: np.ndarray) -> Sequence[np.ndarray]:
    return rows["copy"], rows["node_type"], rows["function"]


def _check(rows: np.ndarray) -> None:
    """Raise ValueError for rows that no run makes."""
    places = np.stack(_order(rows)[::-1], axis=1)
    steps = np.diff(places, axis=0)
    later = np.where(steps[:, 0] != 0, steps[:, 0], np.where(steps[:, 1] != 0, steps[:, 1], steps[:, 2]))
    hits = np.stack([rows["masked"], *(rows[name] for name in reversed(HITS))])
    similarities = np.stack([rows[name] for name in SIMILARITIES])
    failed = np.isnan(similarities)
    if (len(places) and places.min() < 0) or (later <= 0).any():
        raise ValueError("rows out of order")
    if (rows["masked"] < 1).any() or (np.diff(hits, axis=0) > 0).any() or (hits < 0).any():
        raise ValueError("hits that cannot be")
    if not ((similarities >= 0) & (similarities <= 1) | failed).all() or (failed != failed[0]).any():
        raise ValueError("similarities that cannot be")
    if not np.isfinite(rows["log_probability"]).all() or (rows["log_probability"] > 0).any():
        raise ValueError("log-probabilities that cannot be")
