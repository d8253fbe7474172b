"""The file of a ledger: Parquet, with how it was made as JSON in its metadata under `codesyntax`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from codesyntax_dataset import foreign
from codesyntax_dataset.atomic import beside
from codesyntax_dataset.errors import LedgerError

ATTENTION, MASKING, SILENCING = "attention", "masking", "silencing"
"""What was asked of the model: the ranks of its attention, to restore what is masked, or to predict with a silenced
head."""

_METADATA = b"codesyntax"


def save(
    path: str | os.PathLike, columns: Mapping[str, pa.Array], header: Mapping[str, Any], repeated: Sequence[str]
) -> None:
    """Write a ledger, beside its place first: a reader sees the whole file or none.

    `repeated`: the columns of few different values. Raises LedgerError if the file cannot be written.
    """
    table = pa.table(dict(columns)).replace_schema_metadata({_METADATA: json.dumps(header)})
    try:
        with beside(Path(path)) as place:
            pq.write_table(table, place, compression="zstd", use_dictionary=list(repeated), row_group_size=1 << 16)
    except OSError as error:
        raise LedgerError(f"cannot write the ledger {path}: {error.strerror or error}; is the disk full?") from error


@contextmanager
def opened(path: str | os.PathLike, kind: str, command: str) -> Iterator[tuple[pa.Table, dict[str, Any]]]:
    """The table and header of a ledger; whatever goes wrong while they are read is a LedgerError.

    `kind`: what the file should be, such as `rank ledger`; `command`: of the command line, that writes it.
    """
    try:
        with foreign.opened(path) as file:
            parquet = pq.ParquetFile(file)
            _check_size(parquet, os.fstat(file.fileno()).st_size)
            table = parquet.read()
        header = json.loads(table.schema.metadata[_METADATA])
        if any(column.null_count for column in table.columns):
            raise ValueError("empty fields")
        yield table, header
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise LedgerError(
            f"{path} is no {kind}, or a damaged one ({error}): expected the Parquet file that `codesyntax {command}` "
            "wrote"
        ) from error


def _check_size(parquet: pq.ParquetFile, packed: int) -> None:
    """Raise ValueError for a file of `packed` bytes that would need far more memory."""
    groups = [parquet.metadata.row_group(group) for group in range(parquet.metadata.num_row_groups)]
    types = [field.type for field in parquet.schema_arrow]
    if any(not pa.types.is_dictionary(kind) and not hasattr(kind, "bit_width") for kind in types):
        raise ValueError("columns of other types")
    row = sum(getattr(kind, "index_type", kind).bit_width for kind in types) // 8
    unpacked = max(sum(group.total_byte_size for group in groups), row * parquet.metadata.num_rows)
    if foreign.explodes(unpacked, packed):
        raise ValueError(f"{packed:,} bytes unpack to {unpacked:,}")


def instrument_of(path: str | os.PathLike) -> str | None:
    """What read the model, by the header of a ledger; None for a file of another kind, or that cannot be read."""
    return kind_of(path)[0]


def kind_of(path: str | os.PathLike) -> tuple[str | None, Any]:
    """`instrument_of` and the settings in the header of a ledger, which is not read further."""
    try:
        with foreign.opened(path) as file:
            header = json.loads(pq.read_schema(file).metadata[_METADATA])
            return header.get("instrument", ATTENTION), header["settings"]
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None, None
