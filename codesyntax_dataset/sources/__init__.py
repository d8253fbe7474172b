"""Where functions come from: one reader for each form of source, all yielding the same rows.

A reader is a module with `FORM`, its name in words; `fits(source)`, whether a source has its form; and
`read(source, config, skips)`, the functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources import codesearchnet, hub, published, tree

SAMPLE = "sample"
"""The source that comes with this package, so that everything runs offline."""

_LOCAL = (codesearchnet, published, tree)


def read(source: str, config: str, skips: Skips) -> Iterator[SourceFunction]:
    """The functions of `config`'s language in `source`, those of the test partition first.

    `source` is `sample`, a local file or folder, or else a dataset on the Hub (`owner/name` or `owner/name@revision`).
    What has to be left out is counted in `skips`. Raises SourceError where `source` cannot be read.
    """
    return reader(source).read(_located(source), config, skips)


def reader(source: str) -> ModuleType:
    """The reader for `source`; raises SourceError if it has none of the known forms."""
    located = _located(source)
    exists = os.path.exists(located)
    for module in _LOCAL if exists else (hub,):
        if module.fits(located):
            return module
    found = "has none of the known forms" if exists else "does not exist"
    raise SourceError(
        f"source {source!r} {found}: expected a folder or zip of CodeSearchNet v2 (python/final/jsonl/...), "
        f"{', '.join(published.FILES)} or a zip of them, a folder of source files, owner/name on the Hub, or {SAMPLE!r}"
    )


def _located(source: str) -> str:
    return str(Path(__file__).parent.parent / "sample") if source == SAMPLE else source
