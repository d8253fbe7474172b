"""The file of a ledger: Parquet, with how it was made as JSON in its metadata under `codesyntax`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from codesyntax_dataset import safe_files
from codesyntax_dataset.atomic import atomic_path
from codesyntax_dataset.errors import LedgerError

ATTENTION, MASKING, SILENCING, INFORMATION = "attention", "masking", "silencing", "information"
PREFERENCE, SURPRISAL = "preference", "surprisal"
"""What was asked of the model: the ranks of its attention, to restore what is masked, to predict with a silenced head,
what its attention adds to words and positions, which text of a minimal pair is likelier, or how well it foresees
the tokens of nodes."""

_METADATA = b"codesyntax"


def save(
    path: str | os.PathLike, columns: Mapping[str, pa.Array], header: Mapping[str, Any], repeated: Sequence[str]
) -> None:
    """Write a ledger, beside its place first: a reader sees the whole file or none.

    `repeated`: the columns of few different values. Raises LedgerError if the file cannot be written.
    """
    table = pa.table(dict(columns)).replace_schema_metadata({_METADATA: json.dumps(header)})
    try:
        with atomic_path(Path(path)) as place:
            pq.write_table(table, place, compression="zstd", use_dictionary=list(repeated), row_group_size=1 << 16)
    except OSError as error:
        raise LedgerError(f"cannot write the ledger {path}: {error.strerror or error}; is the disk full?") from error


class Identity(NamedTuple):
    """The state of a file, which changes when it is replaced or written to."""

    device: int
    number: int
    bytes: int
    written: int
    changed: int

    @classmethod
    def of(cls, file: BinaryIO) -> Identity:
        found = os.fstat(file.fileno())
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class Opened(NamedTuple):
    """The parts read of a ledger: its table, all of it or some columns, its header, and which file it was."""

    table: pa.Table
    header: dict[str, Any]
    schema: pa.Schema
    identity: Identity


@contextmanager
def opened(path: str | os.PathLike, kind: str, command: str, columns: Sequence[str] | None = None) -> Iterator[Opened]:
    """The contents of a ledger; any failure to read it is a LedgerError.

    `kind`: what the file should be, such as `rank ledger`; `command`: of the command line, that writes it; `columns`:
    those to read, by default all.
    """
    with _refusing(path, kind, command):
        with safe_files.opened(path) as file:
            identity, parquet = Identity.of(file), pq.ParquetFile(file)
            _check_size(parquet, identity.bytes)
            table = parquet.read(columns=columns)
        header = json.loads(table.schema.metadata[_METADATA])
        _check_full(table.columns)
        yield Opened(table, header, parquet.schema_arrow, identity)


def parts(
    path: str | os.PathLike, kind: str, command: str, column: str, rows: int, identity: Identity
) -> Iterator[pa.Array]:
    """Read one column of a ledger, up to so many rows at a time.

    `identity`: that of the file when it was opened. Raises LedgerError as `opened` does, and if the file has changed
    since: numbers would be of two files.
    """
    with _refusing(path, kind, command), safe_files.opened(path) as file:
        _check_same(file, identity, path)
        for batch in pq.ParquetFile(file).iter_batches(rows, columns=[column], use_threads=False):
            _check_full(batch.columns)
            yield batch.column(0)
            _check_same(file, identity, path)


def _check_same(file: BinaryIO, identity: Identity, path: str | os.PathLike) -> None:
    if Identity.of(file) != identity:
        raise LedgerError(f"{path} was written to while it was read: give the command again, when nothing writes to it")


def _check_full(columns: Sequence[pa.Array]) -> None:
    if any(column.null_count for column in columns):
        raise ValueError("empty fields")


@contextmanager
def _refusing(path: str | os.PathLike, kind: str, command: str) -> Iterator[None]:
    try:
        yield
    except LedgerError:
        raise
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
    if safe_files.explodes(unpacked, packed):
        raise ValueError(f"{packed:,} bytes unpack to {unpacked:,}")


def instrument_of(path: str | os.PathLike) -> str | None:
    """The instrument, by the header of a ledger; None for a file of another kind, or that cannot be read."""
    return kind_of(path)[0]


def kind_of(path: str | os.PathLike) -> tuple[str | None, Any]:
    """`instrument_of` and the settings in the header of a ledger, which is not read further."""
    try:
        with safe_files.opened(path) as file:
            header = json.loads(pq.read_schema(file).metadata[_METADATA])
            return header.get("instrument", ATTENTION), header["settings"]
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None, None
