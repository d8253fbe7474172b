"""A column of code, such as `content` of The Stack: Parquet files, or a dataset of them on the Hub.

A cell is a whole source file, whose functions are delimited as in a folder of source files
(`sources.tree`). A source is a Parquet file, a folder of them, or `owner/name`, `owner/name/folder`
or `owner/name@revision` on the Hub; of several configs there, the one named like the language, or
else the default one. Files are read row by row, and none is downloaded first.

If the corpus has the splits `test` and `validation`, these are the partitions. Otherwise all of its
rows are drawn: by repository if a column has it, else one by one. What has no path is named by its
Parquet file and row, from 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import HfFileSystem

from codesyntax_dataset.batches import batches, parquet_file
from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.languages import Language, language_of
from codesyntax_dataset.safe_files import LARGEST_FILE, opened
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources import hub
from codesyntax_dataset.sources.files import (
    TOO_LARGE,
    VALIDATION_FRACTION,
    SourceFile,
    definitions,
    drawn,
    functions,
)

FORM = "Parquet files with the column"
LABELS: str | None = None

_REPOSITORY = ("max_stars_repo_name", "repo_name", "repo")
_PATH = ("max_stars_repo_path", "path")
_PARTITIONS = ("test", "validation")
_HUB = "hf://datasets/"
_ON_HUB = re.compile(
    r"(?P<name>[\w-][\w.-]*/[\w.-]+)(?:/(?P<folder>[\w./-]+))?(?:@(?P<revision>[\w./-]+))?"
)


def fits(source: str, language: Language) -> bool:
    there = os.path.isfile(source) or os.path.isdir(source)
    on_hub = not os.path.exists(source) and _ON_HUB.fullmatch(source) is not None
    return language.definitions is not None and (there or on_hub)


def read(
    source: str,
    config: str,
    skips: Skips,
    column: str,
    validation_fraction: float = VALIDATION_FRACTION,
) -> Iterator[SourceFunction]:
    """The functions of `config`'s language in the texts of `column`, test partition first, by
    Parquet file and row.

    `validation_fraction` is drawn as in `sources.files.drawn`, if the corpus has no partitions.
    Counted in `skips` are cells that are empty, no text, too large, or do not parse. Raises
    SourceError for a source that cannot be read, has no such column of text, or a row group that
    unpacks to gigabytes.
    """
    language = language_of(config)
    with _plain_errors(source):
        splits = _splits(source, language)
        parsed = {
            split: _parsed(source, files, column, config, skips) for split, files in splits.items()
        }
        if _have_partitions(splits):
            for partition in _PARTITIONS:
                for file in parsed[partition]:
                    yield from functions(file, language.name, partition)
        else:
            yield from drawn(
                chain.from_iterable(parsed.values()), language.name, validation_fraction
            )


def partitioned(source: str, config: str) -> bool:
    """True if the corpus has partitions of its own; raises SourceError if it cannot be read."""
    with _plain_errors(source):
        return _have_partitions(_splits(source, language_of(config)))


def unit(source: str, config: str) -> str:
    """The unit by which a corpus without partitions is split: `repository` or `file`."""
    with _plain_errors(source):
        first, *_ = chain.from_iterable(_splits(source, language_of(config)).values())
        with _open(first) as file:
            return "repository" if _texts(pq.read_schema(file)) & set(_REPOSITORY) else "file"


def _have_partitions(splits: Mapping[str, object]) -> bool:
    return set(_PARTITIONS) <= splits.keys()


def _splits(source: str, language: Language) -> dict[str, list[str]]:
    """Split -> paths or addresses of its Parquet files, as `datasets` finds them."""
    import datasets

    if os.path.isfile(source):
        return {"train": [source]}
    where: dict[str, str | None] = {"path": source}
    if not os.path.isdir(source):
        hub.check_reachable(source)
        match = _ON_HUB.fullmatch(source)
        assert match  # see `fits`
        where = {"path": match["name"], "data_dir": match["folder"], "revision": match["revision"]}
    name = language.name if language.name in datasets.get_dataset_config_names(**where) else None
    data_files = datasets.load_dataset_builder(**where, name=name).config.data_files or {}
    splits = {str(split): list(files) for split, files in data_files.items()}
    if others := sorted(
        {file for files in splits.values() for file in files if not file.endswith(".parquet")}
    ):
        raise SourceError(
            f"{source} has {_shown(others[0], source)}, expected Parquet files: the Hub has those of many datasets at "
            f"the revision {hub.PARQUET_EXPORT}"
        )
    return splits


def _parsed(
    source: str, files: Iterable[str], column: str, config: str, skips: Skips
) -> Iterator[SourceFile]:
    """The files of code in `column` of some Parquet files that have functions."""
    for file in files:
        name = _shown(file, source)
        for row, (data, repo, path) in enumerate(_cells(file, name, column)):
            location = f"{name}:{row}"
            if data is None:
                skips.add("row has no text", location)
            elif len(data) > LARGEST_FILE:
                skips.add(TOO_LARGE, location)
            elif functions := definitions(_decoded(data), config, skips, location):
                yield SourceFile(
                    repo or location, repo or _name(source), path or location, location, functions
                )


def _cells(
    file: str, name: str, column: str
) -> Iterator[tuple[bytes | None, str | None, str | None]]:
    """The text of `column` in each row, not decoded, and its repository and path, if they are
    known."""
    with _open(file) as stream:
        parquet = parquet_file(stream)
        texts = _texts(parquet.schema_arrow)
        if column not in texts:
            names = parquet.schema_arrow.names
            problem = (
                f"holds {parquet.schema_arrow.field(column).type}, expected text"
                if column in names
                else "is not there"
            )
            raise SourceError(f"{name}: the column {column!r} {problem}; it has {', '.join(names)}")
        chosen = [column, _first_in(texts, _REPOSITORY), _first_in(texts, _PATH)]
        columns = list({name for name in chosen if name})
        # one row: a few bytes can spell many rows of one large text
        for batch in batches(parquet, 1, columns):
            data, repo, path = (_bytes(batch[name][0]) if name else None for name in chosen)
            yield data, _decoded(repo or b""), _decoded(path or b"")


def _first_in(columns: set[str], names: Iterable[str]) -> str | None:
    return next((name for name in names if name in columns), None)


def _texts(schema: pa.Schema) -> set[str]:
    """The columns of text."""
    return {field.name for field in schema if field.type in (pa.string(), pa.large_string())}


def _bytes(cell: pa.Scalar) -> bytes | None:
    return cell.as_buffer().to_pybytes() if cell.is_valid else None


def _decoded(data: bytes) -> str | None:
    """The text in bytes that Arrow does not check; None if it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


@contextmanager
def _open(file: str) -> Iterator[IO[bytes]]:
    """A Parquet file on this computer or on the Hub, of which only what is read is downloaded."""
    if file.startswith(_HUB):
        with HfFileSystem().open(file, "rb") as stream:
            yield stream
    else:
        with opened(file) as stream:
            yield stream


def _name(source: str) -> str:
    """The repository of rows that do not say theirs."""
    return Path(source).resolve().name if os.path.exists(source) else source.partition("@")[0]


def _shown(file: str, source: str) -> str:
    """A Parquet file as it is named within its source."""
    if file.startswith(_HUB):
        return file.removeprefix(_HUB).split("/", 2)[2]
    return os.path.relpath(file, source) if os.path.isdir(source) else os.path.basename(file)


@contextmanager
def _plain_errors(source: str) -> Iterator[None]:
    try:
        yield
    except SourceError:
        raise
    except Exception as error:  # datasets, huggingface_hub and pyarrow raise errors of many types
        raise SourceError(f"cannot read {source}: {hub.reason(error)}") from error
