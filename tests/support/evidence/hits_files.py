"""Files of hits as plain objects, written and read without the code under test: what forgeries change.

An entry is the object in the metadata, with `tables`: name -> columns: `cluster`, `group` (a name) and `n`, (N,), and
those of each system, (measures, N).
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OPTIONS: dict[str, Any] = {"compression": "gzip", "use_dictionary": False, "store_schema": False}
KEYS = ["cluster", "group", "n"]


def opened(data: bytes) -> dict[str, Any]:
    """The entry in a file."""
    table = pq.read_table(io.BytesIO(data))
    entry = json.loads(pq.read_metadata(io.BytesIO(data)).metadata[b"codesyntax"])
    names = entry.pop("hits")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    columns["group"] = np.array(names["groups"], object)[columns["group"]]
    entry["tables"], entry["measures"] = {}, {}
    for name in table.column_names[4:]:
        system, _, measure = name.partition(" ")
        entry["measures"].setdefault(system, []).append(measure)
    for number, name in enumerate(names["tables"]):
        of = columns["table"] == number
        entry["tables"][name] = {key: columns[key][of].copy() for key in KEYS} | {
            system: np.stack([columns[f"{system} {measure}"][of] for measure in measures])
            for system, measures in entry["measures"].items()
        }
    return entry


def arrow_table(entry: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
    """The columns of an entry, sorted; and its metadata."""
    tables, systems = entry["tables"], entry["measures"]
    groups = sorted({name for of in tables.values() for name in of["group"].tolist()})
    number = [np.full(len(of["n"]), place) for place, of in enumerate(tables.values())]
    columns = {"table": np.concatenate(number)}
    for key in ("group", "cluster", "n"):
        columns[key] = np.concatenate([of[key] for of in tables.values()])
    columns["group"] = np.array([groups.index(name) for name in columns["group"]])
    for system, measures in systems.items():
        for row, measure in enumerate(measures):
            columns[f"{system} {measure}"] = np.concatenate(
                [of[system][row] for of in tables.values()]
            )
    order = np.lexsort([columns[key] for key in ("cluster", "group", "table")])
    arrays = [pa.array(of[order].astype(np.int32)) for of in columns.values()]
    schema = pa.schema([pa.field(name, pa.int32(), nullable=False) for name in columns])
    about = {name: value for name, value in entry.items() if name not in ("tables", "measures")}
    return pa.table(arrays, schema), about | {"hits": {"tables": list(tables), "groups": groups}}


def in_parquet(
    table: pa.Table, text: str | bytes, max_rows: int | None = None, **options: Any
) -> bytes:
    """A file of these columns, with these metadata, and so many rows in a group."""
    file = io.BytesIO()
    with pq.ParquetWriter(file, table.schema, **{**OPTIONS, **options}) as writer:
        writer.write_table(table, row_group_size=max_rows)
        writer.add_key_value_metadata({b"codesyntax": text})
    return file.getvalue()


def written(entry: dict[str, Any]) -> bytes:
    """The file of an entry, as small as that of `submit`."""
    table, about = arrow_table(entry)
    small = {
        "column_encoding": "BYTE_STREAM_SPLIT",
        "compression_level": 9,
        "write_statistics": False,
    }
    return in_parquet(table, json.dumps(about), **small)
