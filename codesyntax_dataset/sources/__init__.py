"""Sources of functions and sentences: one reader per form of source, all yielding the same type.

A reader is a module with `FORM`, its name in words; `LABELS`, whose labels they are, None if rules
make them; `fits(source, language)`, which says whether it can read functions of the language from a
source; and `read(source, config, skips)`, which yields them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.safe_files import printable
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources import codesearchnet, columns, hub, published, tree, treebank
from codesyntax_dataset.sources.files import VALIDATION_FRACTION

SAMPLE = "sample"
"""The source included in this package, so that everything runs offline."""

_LOCAL = (treebank, codesearchnet, published, tree)


class Origin(NamedTuple):
    """Where functions come from, in words.

    `labels`: whose labels they are; None if rules made them. `whole`: whether all splits of the
    source are used.
    """

    form: str
    labels: str | None
    splitting: str
    whole: bool


def read(
    source: str,
    config: str,
    skips: Skips,
    validation_fraction: float | None = None,
    column: str | None = None,
) -> Iterator[SourceFunction]:
    """The functions of `config`'s language in `source`, those of the test partition first.

    `source` is `sample`, a local file or folder, or a dataset on the Hub (`owner/name` or
    `owner/name@revision`); `column` is the one of code in Parquet files, here or there, as
    `sources.columns` reads them. `validation_fraction`, at least 0 and less than 1, is the share of
    whole source files that becomes the validation partition, if the source has no partitions of its
    own (default: `VALIDATION_FRACTION` of `sources.files`). Functions that are left out are counted
    in `skips`. Raises SourceError if `source` cannot be read, or has partitions of its own and a
    fraction is given.
    """
    module, located = reader(source, config, column), _located(source)
    options: dict[str, Any] = {} if column is None else {"column": column}
    if validation_fraction is not None:
        if not isinstance(validation_fraction, (int, float)) or not 0 <= validation_fraction < 1:
            raise SourceError(
                f"validation fraction is {validation_fraction!r}, expected a number at least 0 and less than 1"
            )
        if _partitioned(module, located, config):
            raise SourceError(
                f"{source} already has a validation split: leave out the validation fraction, which is for source "
                "files without partitions, such as a folder without the folders test and validation"
            )
        options["validation_fraction"] = validation_fraction
    return module.read(located, config, skips, **options)


def origin(
    source: str, config: str, validation_fraction: float | None = None, column: str | None = None
) -> Origin:
    """Where the functions of `config` in `source` come from, in words."""
    module, located = reader(source, config, column), _located(source)
    whole = not _partitioned(module, located, config)
    if whole:
        fraction = VALIDATION_FRACTION if validation_fraction is None else validation_fraction
        unit = tree.unit(located) if module is tree else columns.unit(located, config)
        splitting = (
            f"by {unit}, {fraction:g} of them for validation (`--validation-fraction`): those whose paths have the "
            "lowest SHA-256, separately for each language"
        )
    elif module is tree:
        splitting = "the folders `test` and `validation` of the source"
    else:
        splitting = "those of the source"
    form = module.FORM if column is None else f"{module.FORM} `{printable(column)}`"
    return Origin(form, module.LABELS, splitting, whole and module is columns)


def shown(source: str) -> str:
    """The source as cards and pages name it: a path without its parent folders."""
    return printable(Path(source).resolve().name if Path(source).exists() else source)


def reader(source: str, config: str, column: str | None = None) -> ModuleType:
    """The reader for the functions of `config` in `source`; raises SourceError if no reader
    fits."""
    located, language = _located(source), language_of(config)
    exists = os.path.exists(located)
    if column is not None:
        if columns.fits(located, language):
            return columns
        raise SourceError(
            f"source {source!r} has no column {column!r} for {config}: expected Parquet files, here or on the Hub "
            "(owner/name), and a language of code"
        )
    for module in _LOCAL if exists else (hub,):
        if module.fits(located, language):
            return module
    problem = "has none of the known forms" if exists else "does not exist"
    raise SourceError(
        f"source {source!r} {problem}: expected {SAMPLE!r}, a folder of source files, owner/name on the Hub, a folder "
        "or zip of CodeSearchNet v2 (python/final/jsonl/...), a CodeSyntax_*.json of its authors or a zip of them, a "
        "treebank in CoNLL-U, for a config of sentences, or Parquet files, with --column"
    )


def _partitioned(module: ModuleType, located: str, config: str) -> bool:
    """True if a source says which functions are for validation."""
    if module is tree:
        return tree.partitioned(located)
    return module is not columns or columns.partitioned(located, config)


def _located(source: str) -> str:
    return str(Path(__file__).parent.parent / "sample") if source == SAMPLE else source
