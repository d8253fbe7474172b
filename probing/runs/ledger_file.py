"""Ledgers in files: Parquet, with how they were made as JSON in the metadata under `codesyntax`;
shards of ledgers; and ledgers of numbered rows: what a model predicted, under what was done to a
function or to the model.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from codesyntax_dataset import safe_files
from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import atomic_path
from codesyntax_dataset.batches import columns_of, parquet_file
from codesyntax_dataset.errors import ArgumentError, LedgerError
from codesyntax_dataset.safe_files import is_name
from probing.runs.clusters import Clusters
from probing.runs.records import Count, JsonObject, Record, explain

ATTENTION, MASKING, SILENCING, INFORMATION = "attention", "masking", "silencing", "information"
PREFERENCE, SURPRISAL, CARRYING = "preference", "surprisal", "carrying"
"""What was asked of the model: the ranks of its attention, to restore what is masked, to predict
with a silenced head, what its attention adds to words and positions, which text of a minimal pair
is likelier, how well it foresees the tokens of nodes, or which text is likelier with silenced
heads."""

_METADATA = b"codesyntax"

ROWS_AT_ONCE = 1 << 16
"""Rows of a file that are written at once."""

NOT_PARQUET = (
    OSError,
    pa.ArrowException,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
)
"""What reading a file that is no Parquet file of ours, or a damaged one, raises."""

_MOST_SHARDS = 10_000


def save(
    path: StrPath,
    tables: Iterable[Mapping[str, pa.Array]],
    header: Mapping[str, Any],
    repeated: Sequence[str],
) -> None:
    """Write a ledger, beside its place first: a reader sees the whole file or none.

    `tables`: its columns, for ROWS_AT_ONCE after the other, at least once; `repeated`: those of few
    different values. Raises LedgerError if the file cannot be written.
    """
    metadata = {_METADATA: json.dumps(header)}
    each = (pa.table(dict(columns)).replace_schema_metadata(metadata) for columns in tables)
    first = next(each)
    try:
        # an open file, since pyarrow takes a path like `a:0/b` for an address
        with (
            atomic_path(Path(path)) as temporary,
            temporary.open("xb") as file,
            pq.ParquetWriter(
                file, first.schema, compression="zstd", use_dictionary=list(repeated)
            ) as writer,
        ):
            for table in chain([first], each):
                writer.write_table(table, row_group_size=ROWS_AT_ONCE)
    except OSError as error:
        raise LedgerError(
            f"cannot write the ledger {path}: {error.strerror or error}; is the disk full?"
        ) from error


class Opened(NamedTuple):
    """The parts read of a ledger: its table, all of it or some columns, its header, and the
    `status` of its file."""

    table: pa.Table
    header: JsonObject
    schema: pa.Schema
    status: tuple[int, ...]


@contextmanager
def opened(
    path: StrPath, kind: str, command: str, columns: Sequence[str] | None = None
) -> Iterator[Opened]:
    """The contents of a ledger; any failure to read it is a LedgerError.

    `kind`: what the file should be, such as `rank ledger`; `command`: of the command line, that
    writes it; `columns`: those to read, by default all.
    """
    with _refusing(path, kind, command):
        with safe_files.opened(path) as file:
            status = _status(file)
            parquet = parquet_file(file)
            _check_size(parquet, os.fstat(file.fileno()).st_size)
            table = columns_of(parquet, columns)
        header = json.loads((table.schema.metadata or {})[_METADATA])
        _check_full(table.columns)
        yield Opened(table, header, parquet.schema_arrow, status)


def parts(
    path: StrPath,
    kind: str,
    command: str,
    column: str,
    rows: int,
    status: tuple[int, ...],
) -> Iterator[pa.Array]:
    """Read one column of a ledger, up to so many rows at a time.

    `status`: that of the file when it was opened. Raises LedgerError as `opened` does, and if the
    file has changed since: numbers would be of two files.
    """
    with _refusing(path, kind, command), safe_files.opened(path) as file:
        _check_same(file, status, path)
        for batch in parquet_file(file).iter_batches(rows, columns=[column], use_threads=False):
            _check_full(batch.columns)
            yield batch.column(0)
            _check_same(file, status, path)


def _status(file: BinaryIO) -> tuple[int, ...]:
    """What changes when a file is replaced or written to."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _check_same(file: BinaryIO, status: tuple[int, ...], path: StrPath) -> None:
    if _status(file) != status:
        raise LedgerError(
            f"{path} was written to while it was read: give the command again, when nothing writes to it"
        )


def _check_full(columns: Sequence[pa.Array]) -> None:
    if any(column.null_count for column in columns):
        raise ValueError("empty fields")


@contextmanager
def _refusing(path: StrPath, kind: str, command: str) -> Iterator[None]:
    try:
        yield
    except LedgerError:
        raise
    except NOT_PARQUET as error:
        what = f"is no {kind}, or a damaged one ({error})"
        if isinstance(error, FileNotFoundError):
            what = "is not there"
        elif isinstance(error, KeyError):
            what = f"is no {kind}, or a damaged one (it lacks {error})"
        raise LedgerError(
            f"{path} {what}: expected the Parquet file that `codesyntax {command}` wrote, beside its result"
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


def instrument_of(path: StrPath) -> str | None:
    """The instrument, by the header of a ledger; None for a file of another kind, or that cannot be
    read."""
    return kind_of(path)[0]


def kind_of(path: StrPath) -> tuple[str | None, Any]:
    """`instrument_of` and the settings in the header of a ledger, which is not read further."""
    try:
        with safe_files.opened(path) as file:
            header = json.loads(pq.read_schema(file).metadata[_METADATA])
            return header.get("instrument", ATTENTION), header["settings"]
    except NOT_PARQUET:
        return None, None


class Shard(NamedTuple):
    """One of the shards, `total` in all, that a run is split into; `number` counts from 1.

    Shards are shared among jobs that know nothing of each other, such as those of a SLURM array. A
    shard in a file is the ledger of its functions, which says in its settings, under `shard`, what
    it is. The smallest shard is one part, as an interrupted run keeps it.
    """

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard in a text such as `2/7`; raises ArgumentError for any other text."""
        match = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text, re.ASCII)
        shard = cls(int(match[1]), int(match[2])) if match else cls(0, 0)
        if not 1 <= shard.number <= shard.total <= _MOST_SHARDS:
            raise ArgumentError(
                f"shard is {text!r}, expected I/N, shard I of N, counted from 1: 1/7 to 7/7 for the seven jobs of "
                f"`sbatch --array=1-7`; N is at most {_MOST_SHARDS:,}"
            )
        return shard

    def parts(self, count: int) -> range:
        """The numbers of its parts, of `count` in the run."""
        return range(self.number - 1, count, self.total)

    def __str__(self) -> str:
        return f"shard-{self.number}-of-{self.total}"


class ShardRecord(Record):
    """A shard's record in its file: which it is, of a run of so many `parts`; the digest of its
    `ledger` without this record; and the paths of the run's data and model, as in a result, if they
    are local.
    """

    number: Count
    total: Count
    parts: Count
    ledger: str
    data_path: str | None = None
    model_path: str | None = None

    @property
    def shard(self) -> Shard:
        return Shard(self.number, self.total)


def added(each: Sequence[JsonObject], counts: Sequence[str]) -> JsonObject:
    """The settings of some ledgers, the same but for `counts`, as those of all of them: counts are
    added up.

    Raises LedgerError if they differ otherwise.
    """
    first = without(each[0], counts)
    if any(without(settings, counts) != first for settings in each):
        raise LedgerError("these ledgers do not belong together: their settings differ")
    sums: dict[str, Counter[str]] = {name: Counter() for name in counts}
    for name, total in sums.items():
        for settings in each:
            total.update(settings.get(name, {}))  # `+` would leave out what there is none of
    return {
        name: dict(sorted(sums[name].items())) if name in sums else value
        for name, value in each[0].items()
    }


def without(settings: JsonObject, counts: Sequence[str]) -> JsonObject:
    """The settings but for some that are counts."""
    return {name: value for name, value in settings.items() if name not in counts}


def save_shard(
    table: Any, shard: Shard, parts: int, file: Path, places: Mapping[str, str] = {}
) -> None:
    """Write the ledger of a shard, with its record; raises LedgerError if that cannot be done."""
    record = ShardRecord.model_validate(
        {**shard._asdict(), "parts": parts, "ledger": table.digest(), **places}
    )
    replace(table, settings={**table.settings, "shard": record.model_dump()}).save(file)


def load_shard(file: Path, read: Callable[[Path], Any]) -> tuple[Any, ShardRecord]:
    """The ledger of a shard as it was before `save_shard`, and its record.

    Raises LedgerError if either is not as written.
    """
    table = read(file)
    settings, record = split_shard(file, table.settings)
    table = replace(table, settings=settings)
    if table.digest() != record.ledger:
        raise LedgerError(
            f"{file} is damaged or was altered: its ledger is not the one that was written"
        )
    return table, record


def split_shard(file: Path, settings: Any) -> tuple[JsonObject, ShardRecord]:
    """The origin of the ledger in a shard's file, and the record of the shard, from the settings
    there."""
    if not isinstance(settings, dict) or "shard" not in settings:
        raise LedgerError(f"{file} is not a shard: expected a file that a run with --shard wrote")
    try:
        record = ShardRecord.model_validate(settings["shard"])
    except ValidationError as error:
        raise LedgerError(
            f"{file} is not a shard, or a damaged one: {explain(error, 'the shard')}"
        ) from error
    return {name: value for name, value in settings.items() if name != "shard"}, record


LOG_PROBABILITY = (-np.inf, 0.0)
"""The bounds of one, in nats."""


@dataclass(eq=False, repr=False)
class RowLedger:
    """N rows (N,) of the type ROW, sorted by the columns ORDER, which no two rows share.

    `names`: what the column GROUP_COLUMN is an index into; `settings`: how the ledger was made, as
    JSON. INSTRUMENT: what was asked of the model; COMMAND: of the command line, that writes it;
    DICTIONARY_COLUMNS: the columns of few different values; BOUNDS: column -> its least and its
    largest value; OF_DATA: further columns that follow from the data alone. THINGS, CELLS: what it
    has one row for, and what may differ between two runs, in words.
    COUNTS: as of `RankLedger`. `over`: as in `probing.stats.hits.Hits`.
    """

    ROW: ClassVar[np.dtype]
    ORDER: ClassVar[tuple[str, ...]]
    GROUP_COLUMN: ClassVar[str]
    INSTRUMENT: ClassVar[str]
    COMMAND: ClassVar[str]
    DICTIONARY_COLUMNS: ClassVar[tuple[str, ...]]
    BOUNDS: ClassVar[Mapping[str, tuple[float, float]]] = {}
    OF_DATA: ClassVar[tuple[str, ...]] = ()
    THINGS: ClassVar[str] = "rows"
    CELLS: ClassVar[str] = "rows"
    COUNTS: ClassVar[tuple[str, ...]] = ()

    names: list[str]
    rows: np.ndarray
    settings: JsonObject
    over: Clusters | None = field(default=None, kw_only=True)

    @property
    def function(self) -> np.ndarray:
        """The place in the split of the function of each row."""
        return self.rows["function"]

    @property
    def group_names(self) -> np.ndarray:
        """The name of the group of each row: (N,)."""
        return np.array(self.names, object)[self.rows[self.GROUP_COLUMN]]

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        """Raise ValueError for rows that no run makes: here, with numbers that are not finite or
        out of BOUNDS."""
        for name, (least, largest) in cls.BOUNDS.items():
            if not (
                np.isfinite(rows[name]) & (rows[name] >= least) & (rows[name] <= largest)
            ).all():
                raise ValueError(f"{name} that cannot be")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        groups = f"{self.GROUP_COLUMN.replace('_', ' ')}s"
        return f"{type(self).__name__}: {len(self)} rows of {len(self.names)} {groups}"

    def digest(self) -> str:
        """SHA-256 over the content of the ledger, independent of the file format."""
        header = json.dumps(
            {"settings": self.settings, f"{self.GROUP_COLUMN}s": self.names}, sort_keys=True
        ).encode()
        return hashlib.sha256(
            len(header).to_bytes(8, "little") + header + self.rows.tobytes()
        ).hexdigest()

    def named(self) -> dict[str, np.ndarray]:
        """Each of `names` that has any rows -> which rows, bool (N,)."""
        rows = {
            name: self.rows[self.GROUP_COLUMN] == number for number, name in enumerate(self.names)
        }
        return {name: chosen for name, chosen in rows.items() if chosen.any()}

    def only(self, functions: np.ndarray) -> Self:
        """The rows of some functions: places in the split, as in the column `function`."""
        return replace(self, rows=self.rows[np.isin(self.function, functions)])

    def same_things(self, other: Self) -> bool:
        """True if another ledger has rows of the same things, in the same order."""
        same = self.names == other.names and len(self) == len(other)
        columns = (*self.ORDER, self.GROUP_COLUMN, *self.OF_DATA)
        return same and all(np.array_equal(self.rows[name], other.rows[name]) for name in columns)

    def differing(self, other: Self) -> tuple[int, int]:
        """How many rows differ from those of another ledger of the same things, and of how many."""
        differing = np.zeros(len(self), bool)
        for name in self.ROW.names or ():
            mine, theirs = self.rows[name], other.rows[name]
            unknown = (mine != mine) & (theirs != theirs)  # NaN in both
            differing |= (mine != theirs) & ~unknown
        return int(np.count_nonzero(differing)), len(self)

    @classmethod
    def concatenate(cls, parts: Iterable[Self]) -> Self:
        """The parts of one run as one ledger, sorted."""
        parts = list(parts)
        if any(
            (part.names, part.settings) != (parts[0].names, parts[0].settings) for part in parts
        ):
            raise LedgerError(
                f"these ledgers do not belong together: their {cls.GROUP_COLUMN.replace('_', ' ')}s or settings differ"
            )
        return cls(
            parts[0].names, np.concatenate([part.rows for part in parts]), parts[0].settings
        ).sorted()

    def sorted(self) -> Self:
        """The same ledger with its rows in order."""
        order = np.lexsort([self.rows[name] for name in reversed(self.ORDER)])
        return type(self)(self.names, self.rows[order], self.settings)

    def save(self, path: StrPath) -> None:
        """Write the ledger as Parquet, beside its place first: a reader sees the whole file or
        none."""
        columns = {name: pa.array(self.rows[name]) for name in self.ROW.names or ()}
        columns[self.GROUP_COLUMN] = pa.DictionaryArray.from_arrays(
            columns[self.GROUP_COLUMN], self.names
        )
        header = {
            "instrument": self.INSTRUMENT,
            f"{self.GROUP_COLUMN}s": self.names,
            "settings": self.settings,
        }
        save(path, [columns], header, repeated=self.DICTIONARY_COLUMNS)

    @classmethod
    def load(cls, path: StrPath) -> Self:
        """Read a ledger; raises LedgerError if the file is not such a ledger or is damaged."""
        with opened(path, f"{cls.INSTRUMENT} ledger", cls.COMMAND) as (table, header, *_):
            names = header[f"{cls.GROUP_COLUMN}s"]
            settings = header["settings"]
            if header["instrument"] != cls.INSTRUMENT or not all(map(is_name, names)):
                raise ValueError("another kind of ledger")
            places = {name: number for number, name in enumerate(names)}
            rows = np.zeros(len(table), cls.ROW)
            for name in cls.ROW.names or ():
                column = table[name].combine_chunks()
                if name == cls.GROUP_COLUMN:
                    rows[name] = [places[kind] for kind in column.to_pylist()]
                else:  # `to_numpy` and `pa.array` would import pandas, which takes half a second
                    rows[name] = np.from_dlpack(column)
            if not is_in_order([rows[name] for name in cls.ORDER]):
                raise ValueError("rows out of order")
            cls.check(rows)
        return cls(names, rows, settings)

    @classmethod
    def open(cls, path: StrPath) -> Self:
        """Read a ledger; its rows are few, and stay in memory."""
        return cls.load(path)


def is_in_order(columns: list[np.ndarray]) -> bool:
    """True if places, from the first column to the last, are not negative and rise from row to
    row."""
    places = np.stack(columns, axis=1)
    steps = np.diff(places, axis=0)
    first = (steps != 0).argmax(axis=1)  # 0 where no column changes
    later = np.take_along_axis(steps, first[:, None], axis=1)
    return bool((places >= 0).all() and (later > 0).all())
