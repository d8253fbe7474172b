"""Sources of functions and sentences: one reader per form of source, all yielding the same type.

A reader is a module with `FORM`, its name in words; `LABELS`, whose labels they are, None if rules make them;
`fits(source, language)`, which says whether it can read functions of the language from a source; and `read(source,
config, skips)`, which yields them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.foreign import printable
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources import codesearchnet, hub, published, tree, treebank

SAMPLE = "sample"
"""The source included in this package, so that everything runs offline."""

_LOCAL = (treebank, codesearchnet, published, tree)


def read(source: str, config: str, skips: Skips, validation_fraction: float | None = None) -> Iterator[SourceFunction]:
    """The functions of `config`'s language in `source`, those of the test partition first.

    `source` is `sample`, a local file or folder, or a dataset on the Hub (`owner/name` or `owner/name@revision`).
    `validation_fraction`, at least 0 and less than 1, is the share of a folder of source files that becomes the
    validation partition, if the folder has no partitions of its own (default: `VALIDATION_FRACTION` of
    `sources.tree`). Functions that are left out are counted in `skips`. Raises SourceError if `source` cannot be read,
    or has partitions of its own and a fraction is given.
    """
    module, located = reader(source, config), _located(source)
    if validation_fraction is None:
        return module.read(located, config, skips)
    if not isinstance(validation_fraction, (int, float)) or not 0 <= validation_fraction < 1:
        raise SourceError(
            f"validation fraction is {validation_fraction!r}, expected a number at least 0 and less than 1"
        )
    if module is not tree or tree.partitioned(located):
        raise SourceError(
            f"{source} already says which functions are for validation: leave out the validation fraction, which "
            "applies to a folder of source files without the folders test and validation"
        )
    return tree.read(located, config, skips, validation_fraction)


def splitting(source: str, config: str, validation_fraction: float | None = None) -> str:
    """How the functions of `config` in `source` are split, in words."""
    located = _located(source)
    if reader(source, config) is not tree:
        return "those of the source"
    if tree.partitioned(located):
        return "the folders `test` and `validation` of the source"
    fraction = tree.VALIDATION_FRACTION if validation_fraction is None else validation_fraction
    return (
        f"by {tree.unit(located)}, {fraction:g} of them for validation (`--validation-fraction`): those whose paths "
        "have the lowest SHA-256, separately for each language"
    )


def shown(source: str) -> str:
    """The source as cards and pages name it: a path without its parent folders."""
    return printable(Path(source).resolve().name if Path(source).exists() else source)


def reader(source: str, config: str) -> ModuleType:
    """The reader for the functions of `config` in `source`; raises SourceError if no reader fits."""
    located, language = _located(source), language_of(config)
    exists = os.path.exists(located)
    for module in _LOCAL if exists else (hub,):
        if module.fits(located, language):
            return module
    problem = "has none of the known forms" if exists else "does not exist"
    raise SourceError(
        f"source {source!r} {problem}: expected a folder or zip of CodeSearchNet v2 (python/final/jsonl/...), "
        f"{', '.join(published.files())} or a zip of them, a folder of source files, owner/name on the Hub, a treebank "
        f"in CoNLL-U, for a config of sentences, or {SAMPLE!r}"
    )


def _located(source: str) -> str:
    return str(Path(__file__).parent.parent / "sample") if source == SAMPLE else source
