"""Check a dataset folder before it is published: is it complete, and do its card and metadata match
its data?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from codesyntax_dataset import card, metadata, safe_files
from codesyntax_dataset.batches import columns_of, parquet_file
from codesyntax_dataset.errors import DatasetError
from codesyntax_dataset.features import features_of
from codesyntax_dataset.languages import CONFIGS, unedited
from codesyntax_dataset.measure import BuildReport, measure
from codesyntax_dataset.protocol import CARD, MARKER, SUMS
from codesyntax_dataset.schema import Skips


def check_folder(folder: str | os.PathLike[str]) -> BuildReport:
    """Measure the dataset in `folder` from its Parquet files, and check everything else against
    them.

    Raises DatasetError unless `folder` has exactly the files that `codesyntax build` writes, their
    checksums match, the columns are those of its configs, ids are unique, and the card and
    `eval.yaml` agree with the Parquet files.
    """
    folder = Path(folder)
    names = _files(folder)
    _check_sums(folder, names)
    configs: dict[str, list[str]] = {name: [] for name in _configs(folder)}
    for file in sorted(names):
        if (name := file.partition("/")[0]) in configs:
            configs[name].append(file)
    parquet = {name for name in names if name.endswith(".parquet")}
    if unnamed := parquet - {file for files in configs.values() for file in files}:
        raise _not_as_built(
            folder, f"{min(unnamed)} belongs to a config that the card does not name"
        )
    reports = {}
    for config, files in configs.items():
        if not files:
            raise _not_as_built(
                folder, f"the card names the config {config}, but there is no {config}/*.parquet"
            )
        try:
            for file in files:
                _check_columns(folder, file)
            reports[config] = measure(folder / config, Skips())
        except DatasetError:
            raise
        except (
            pa.ArrowException,
            OSError,
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as error:
            # for empty cells and malformed metadata `datasets` and we raise errors of many types
            raise _not_as_built(folder, f"{config} cannot be read: {error}") from error
        _check_ids(folder, config, files)
    _check_card(folder, reports)
    expected = metadata.eval_yaml(reports)
    if (metadata.EVAL in names) != bool(expected):
        why = "missing" if expected else "present, but the dataset has no tasks"
        raise _not_as_built(folder, f"{metadata.EVAL} is {why}")
    if expected:
        _compare(
            folder, metadata.EVAL, _text(folder, metadata.EVAL).splitlines(), expected.splitlines()
        )
    return BuildReport(folder, reports)


def checked_files(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """The files of a dataset that `check_folder` accepts: their names, and the very bytes that were
    checked.

    Raises DatasetError if it does not, or if a file was changed, or replaced by a link, in the
    meantime.
    """
    folder = Path(folder)
    check_folder(folder)
    sums = _bytes(folder, SUMS)
    files = {SUMS: sums}
    for checksum, _, name in (line.partition("  ") for line in sums.decode().splitlines()):
        content = _bytes(folder, name) if name in metadata.files() else b""
        if hashlib.sha256(content).hexdigest() != checksum:
            raise _not_as_built(folder, f"{name} changed while it was checked")
        files[name] = content
    return dict(sorted(files.items()))


def published_files(folder: str | os.PathLike[str], repo: str) -> dict[str, bytes]:
    """The files of `checked_files`, of which the card says how to load the dataset from the Hub's
    repository `repo`."""
    files = checked_files(folder)
    before, files[CARD] = files[CARD], card.published(files[CARD], repo)
    old, new = (hashlib.sha256(text).hexdigest().encode() for text in (before, files[CARD]))
    files[SUMS] = files[SUMS].replace(old, new)
    return files


def _files(folder: Path) -> set[str]:
    if not folder.is_dir():
        raise DatasetError(
            f"{folder} is not a folder: expected a dataset that `codesyntax build` wrote"
        )
    names = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise _not_as_built(folder, f"{name} is a symbolic link")
        if name not in (CONFIGS if path.is_dir() else metadata.files()) or not (
            path.is_dir() or path.is_file()
        ):
            raise _not_as_built(folder, f"{name} does not belong there")
        if path.is_file():
            names.add(name)
    for name in (CARD, SUMS):
        if name not in names:
            raise _not_as_built(folder, f"{name} is missing")
    return names


def _check_sums(folder: Path, names: Iterable[str]) -> None:
    listed = {}
    for line in _text(folder, SUMS).splitlines():
        checksum, _, name = line.partition("  ")
        listed[name] = checksum
    for name in sorted({*names, *listed} - {SUMS}):
        if name not in listed:
            raise _not_as_built(folder, f"{SUMS} does not list {name}")
        if name not in names:
            raise _not_as_built(folder, f"{name}, which {SUMS} lists, is missing")
        try:
            checksum = metadata.sha256(folder / name)
        except OSError as error:
            raise _not_as_built(folder, f"{name} cannot be read: {error.strerror}") from error
        if checksum != listed[name]:
            raise _not_as_built(folder, f"{name} does not have the checksum that {SUMS} lists")


def _configs(folder: Path) -> list[str]:
    """The configs that the card names, in its order."""
    text = _text(folder, CARD)
    if MARKER not in text:
        raise _not_as_built(folder, f"{CARD} was not made by `codesyntax build`")
    try:
        names = [
            config["config_name"] for config in yaml.safe_load(text.split("---\n")[1])["configs"]
        ]
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _not_as_built(
            folder, f"{CARD} does not begin with the YAML header of a dataset: {error}"
        ) from error
    if unknown := [name for name in names if name not in list(CONFIGS)]:
        raise _not_as_built(
            folder,
            f"{CARD} names a config {unknown[0]!r}, known are {', '.join(unedited())}",
        )
    if not names or len(set(names)) < len(names):
        raise _not_as_built(folder, f"{CARD} names no config, or one twice")
    return names


def _check_columns(folder: Path, file: str) -> None:
    schema = pq.read_schema(folder / file)
    features = features_of(file.partition("/")[0])
    if schema.remove_metadata() != features.arrow_schema.remove_metadata():
        raise _not_as_built(
            folder,
            f"{file} has the columns {_shown(schema)}, expected {_shown(features.arrow_schema)}",
        )
    if datasets.Features.from_arrow_schema(schema) != features:
        raise _not_as_built(folder, f"the metadata of {file} declares columns of other types")


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _check_ids(folder: Path, config: str, files: Iterable[str]) -> None:
    ids = pa.concat_tables(columns_of(parquet_file(folder / file), ["id"]) for file in files)
    counts = pc.value_counts(ids["id"])
    repeated = counts.filter(pc.greater(pc.struct_field(counts, "counts"), 1))
    if len(repeated):
        raise _not_as_built(
            folder, f"{config} has the id {repeated[0]['values']} {repeated[0]['counts']} times"
        )


def _check_card(folder: Path, reports: dict) -> None:
    """Compare the rows of the card's tables and its YAML; the rest of a card does not follow from
    Parquet files."""
    text = _text(folder, CARD)
    expected = card.render(reports, {}, source="", exclusion=None)
    _compare(folder, CARD, _table_rows(text), _table_rows(expected))
    front_matter = yaml.safe_dump(
        yaml.safe_load(text.split("---\n")[1]), sort_keys=False, allow_unicode=True
    )
    _compare(folder, CARD, front_matter.splitlines(), card.front_matter(reports).splitlines())


def _table_rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def _compare(folder: Path, name: str, lines: list[str], expected: list[str]) -> None:
    for ours, theirs in zip_longest(expected, lines, fillvalue=""):
        if ours != theirs:
            raise _not_as_built(
                folder, f"{name} says {_short(theirs)}, but its Parquet files give {_short(ours)}"
            )


def _short(line: str) -> str:
    line = line.strip()
    return repr(line if len(line) <= 120 else f"{line[:120]}...") if line else "nothing"


def _text(folder: Path, name: str) -> str:
    try:
        return _bytes(folder, name).decode()
    except UnicodeDecodeError as error:
        raise _not_as_built(folder, f"{name} is not UTF-8 text: {error}") from error


def _bytes(folder: Path, name: str) -> bytes:
    try:
        with safe_files.opened(folder / name) as file:
            return file.read()
    except OSError as error:
        raise _not_as_built(folder, f"{name} cannot be read: {error.strerror}") from error


def _not_as_built(folder: Path, reason: str) -> DatasetError:
    return DatasetError(
        f"{folder} is not as `codesyntax build` writes a dataset: {reason}. Build it again"
    )
