"""Hits in files, `NAME.hits.parquet`, which are read from people whom nobody knows.

A file has several tables of hits of one `Layout`. It has a row for each table, group and cluster,
in this order: their numbers, `n`, and a column for each system and measure, named after both. All
columns are plain numbers. The metadata, under `codesyntax`, is a JSON object: what its maker says
`about` the hits, and in `hits` the names of tables and groups. A cluster of a table that has none
of its groups has a row with an `n` of 0.

*Limits.* A file names its own sizes, so none is believed. Columns are compressed by DEFLATE, which
never unpacks to more than 1,032 times its size; no two of them share bytes; and there are at most
`_CELLS` numbers for each byte. So what a file costs is in proportion to its bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from codesyntax_dataset.batches import columns_of, parquet_file
from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.safe_files import is_name
from probing.runs.ledger_file import NOT_PARQUET, in_order
from probing.runs.records import parse, shown
from probing.stats.hits import PERCENT_UNIT, Group, Hits, Measure

SUFFIX = ".hits.parquet"

_METADATA_KEY = b"codesyntax"
_NAMES = "hits"
_PLACE = ("table", "group", "cluster")
_KEYS = (*_PLACE, "n")
_CELLS = 20
"""The most numbers for each byte of a file. Of the sample, a file has 4."""

_WRITTEN: Any = {
    "compression": "gzip",
    "compression_level": 9,
    "use_dictionary": False,
    "column_encoding": "BYTE_STREAM_SPLIT",  # a fifth smaller than PLAIN
    "write_statistics": False,
    "store_schema": False,
}
_LARGEST_METADATA = 2**20


class Layout(NamedTuple):
    """What the tables of a file have in common: their systems and measures; and of `Hits`, the
    `unit` and the groups that are `left_out` of means."""

    systems: Sequence[str]
    measures: Sequence[Measure]
    unit: str = PERCENT_UNIT
    left_out: Collection[str] = frozenset()

    @property
    def columns(self) -> list[str]:
        measures = list(map(_measure_name, self.measures))
        sums = [f"{system} {measure}" for system in self.systems for measure in measures]
        return [*_KEYS, *sums]

    @property
    def schema(self) -> pa.Schema:
        """That of a file, whose numbers are whole ones of 32 bits."""
        return pa.schema([pa.field(name, pa.int32(), nullable=False) for name in self.columns])


def _measure_name(measure: Measure) -> str:
    if isinstance(measure, tuple):
        return " ".join(map(str, measure))
    return str(measure)


def save(tables: Mapping[str, Hits], layout: Layout, about: Mapping[str, Any]) -> bytes:
    """The file of some tables, the same for the same ones; `about`: a JSON object without
    `hits`."""
    groups = sorted({name for hits in tables.values() for name in hits.groups})
    parts = [_rows(number, hits, groups, layout) for number, hits in enumerate(tables.values())]
    names = {"tables": list(tables), "groups": groups}
    header = {**about, _NAMES: names}
    text = json.dumps(header, allow_nan=False, separators=(",", ":"))
    rows = np.concatenate(parts, axis=1).astype(np.int32)
    table = pa.table(list(rows), layout.schema)
    file = io.BytesIO()
    with pq.ParquetWriter(file, table.schema, **_WRITTEN) as writer:
        writer.write_table(table, row_group_size=len(table))
        writer.add_key_value_metadata({_METADATA_KEY: text})
    return file.getvalue()


def _rows(table: int, hits: Hits, groups: list[str], layout: Layout) -> np.ndarray:
    """The columns of a table, as of `Layout.columns`: (C, rows)."""
    alone = np.ones(len(hits.clusters), bool)
    parts = []
    for name, group in hits.groups.items():
        alone[group.places] = False
        keys = np.broadcast_arrays(table, groups.index(name), hits.clusters[group.places])
        sums = [group.sums[system] for system in layout.systems]
        parts.append(np.vstack([*keys, group.n, *sums]))
    first = groups.index(min(hits.groups)) if hits.groups else 0
    keys = np.broadcast_arrays(table, first, hits.clusters[alone])
    nothing = np.zeros((len(layout.columns) - len(keys), np.count_nonzero(alone)))
    parts.append(np.vstack([*keys, nothing]))
    rows = np.concatenate(parts, axis=1)
    order = np.lexsort(rows[: len(_PLACE)][::-1])
    return rows[:, order]


@dataclass(frozen=True, eq=False)
class HitsFile:
    """A file whose metadata were read: `data`, all of it; `about`: what its maker says."""

    data: bytes
    about: dict[str, Any]
    names: dict[str, list[str]]

    @classmethod
    def open(cls, data: bytes) -> HitsFile:
        """Raises EntryError for bytes that are no such file."""
        try:
            metadata = pq.read_metadata(io.BytesIO(data)).metadata or {}
            header = metadata[_METADATA_KEY]
        except NOT_PARQUET as error:
            raise EntryError(_no_hits_file(error)) from error
        about = parse(header, _LARGEST_METADATA)
        if not isinstance(about, dict):
            raise EntryError(f"the metadata of the file are {shown(about)}, expected an object")
        names = about.pop(_NAMES, None)
        return cls(data, about, names)

    def tables(self, layout: Layout) -> dict[str, Hits]:
        """The tables.

        Raises EntryError if they are not of this layout, out of order, or have more hits than
        things.
        """
        try:
            tables, groups = self.names["tables"], self.names["groups"]
            for texts in (tables, groups):
                twice = len(set(texts)) < len(texts)
                if not texts or twice or not all(map(is_name, texts)):
                    raise ValueError("names of tables or groups that are none, or twice")
            if self.names.keys() != {"tables", "groups"} or groups != sorted(groups):
                raise ValueError("names of groups that are not in order")
            columns = _read_columns(self.data, layout)
        except NOT_PARQUET as error:
            raise EntryError(_no_hits_file(error)) from error
        table, group, cluster, n, *_ = columns.astype(np.int64)
        if n.min() < 0 or not in_order([table, group, cluster]):
            raise EntryError("rows are not in order by table, group and cluster, each once")
        for numbers, texts in ((table, tables), (group, groups)):
            every = np.arange(len(texts))
            if not np.array_equal(np.unique(numbers), every):
                first = ", ".join(map(shown, texts[:3]))
                raise EntryError(f"rows are not of all of {first}, ...")
        hits_of = {}
        for number, name in enumerate(tables):
            of_table = columns[:, table == number]
            hits_of[name] = _hits(of_table, groups, name, layout)
        return hits_of


def _no_hits_file(reason: object) -> str:
    why = " ".join(str(reason).split())[:150]
    return f"the file is no hits file, or a damaged one ({why}): make it again with `codesyntax export`"


def _read_columns(data: bytes, layout: Layout) -> np.ndarray:
    """The numbers of a file of this layout: (C, rows). Raises ValueError for any other."""
    parquet = parquet_file(io.BytesIO(data))
    metadata = parquet.metadata
    if parquet.schema_arrow != layout.schema or metadata.num_row_groups != 1:
        raise ValueError("other columns, or several row groups")
    row_group = metadata.row_group(0)
    chunks = [row_group.column(number) for number in range(metadata.num_columns)]
    plain = [
        chunk.compression == "GZIP" and chunk.num_values == metadata.num_rows for chunk in chunks
    ]
    sizes = [chunk.total_compressed_size for chunk in chunks]
    if not all(plain) or min(sizes) < 0 or sum(sizes) > len(data):
        raise ValueError("columns of another codec or size, or that share bytes")
    cells = metadata.num_rows * len(chunks)
    if not 0 < cells <= _CELLS * len(data):
        raise ValueError(f"{metadata.num_rows:,} rows in {len(data):,} bytes")
    table = columns_of(parquet)
    return np.stack([column.to_numpy() for column in table.columns])


def _hits(columns: np.ndarray, names: list[str], table: str, layout: Layout) -> Hits:
    keys = columns[: len(_KEYS)]
    _, group, cluster, n = keys.astype(np.int64)
    shape = len(layout.systems), len(layout.measures), -1
    sums = columns[len(_KEYS) :].reshape(shape)
    if layout.unit == PERCENT_UNIT:
        outside = (sums < 0) | (sums > n)
        wrong = outside.any(axis=(1, 2))
        if wrong.any():
            system = layout.systems[int(wrong.argmax())]
            raise EntryError(
                f"{table}.{system} has more hits in a function than it has edges, or fewer than none"
            )
    if sums[..., n == 0].any():
        raise EntryError(f"{table} has numbers of nothing")
    clusters, number_of = np.unique(cluster, return_inverse=True)
    groups = {}
    present = np.flatnonzero(n)
    numbers, starts = np.unique(group[present], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(present, starts[1:])):
        of_systems = {system: part[:, rows] for system, part in zip(layout.systems, sums)}
        groups[names[number]] = Group(number_of[rows], n[rows], of_systems)
    return Hits(clusters, groups, tuple(layout.measures), layout.unit, layout.left_out)
