"""Rows of Parquet files in batches: neither a large file nor one that was made to exhaust readers
fills the memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from codesyntax_dataset.safe_files import explodes

LARGEST_ROW_GROUP = 1 << 31
"""Bytes that the columns of a row group which are read may unpack to."""

_BUFFER = 1 << 18  # bytes that are read ahead, of each column


def parquet_file(source: Path | IO[bytes] | pa.BufferReader) -> pq.ParquetFile:
    """A Parquet file, of which only what is being read is in memory; by default Arrow would keep
    all that was read."""
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER)


def columns_of(parquet: pq.ParquetFile, columns: Collection[str] | None = None) -> pa.Table:
    """All rows of some columns, by default of all.

    Without threads of Arrow, here and in `batches`: one that still holds a Python object when the
    interpreter ends, as after an error, ends the process with a signal (apache/arrow#34314)."""
    return parquet.read(columns=None if columns is None else list(columns), use_threads=False)


def batches(
    parquet: pq.ParquetFile, rows: int, columns: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches of so many rows, the last with fewer; raises what `check_row_groups` does."""
    check_row_groups(parquet, columns)
    yield from parquet.iter_batches(rows, columns=columns, use_threads=False)


def check_row_groups(parquet: pq.ParquetFile, columns: Collection[str] | None = None) -> None:
    """Raise pa.ArrowInvalid for a row group whose `columns` unpack to gigabytes, or to far more
    than code does."""
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        chunks = [group.column(column) for column in range(group.num_columns)]
        chunks = [
            chunk
            for chunk in chunks
            if columns is None or chunk.path_in_schema.split(".")[0] in columns
        ]
        unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
        packed = sum(chunk.total_compressed_size for chunk in chunks)
        if unpacked > LARGEST_ROW_GROUP or explodes(unpacked, packed):
            raise pa.ArrowInvalid(
                f"row group {number} unpacks to {unpacked:,} bytes, from {packed:,}: expected at most "
                f"{LARGEST_ROW_GROUP:,}, write it again with smaller row groups"
            )
