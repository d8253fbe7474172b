"""The cache of runs: a repeated run is answered at once from the files of an earlier one.

They are in the folder of `probing.models.cache_dir`. A run is found by a digest of all that its ranks depend on: the
commit of the model and of every model in `also_fits`, or the files of a local folder; the current labels; all settings;
the type of the device; the versions of the libraries; and our code. A dataset in memory is identified by its labels. A
model in memory is always probed, because it may run any code.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import LedgerError, ModelError
from probing.models import cache_dir
from probing.models.location import loading, locate, sha256
from probing.runs.data import Functions

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Slot(NamedTuple):
    """The location of one run's file: `<key>-<SHA-256 of the file>.parquet` in `folder`, if it exists."""

    folder: Path
    key: str
    contents: str  # of the model, before it was loaded

    def load(self, read: Callable[[Path], T]) -> T | None:
        """The result of `read` on the saved file; None if there is none, or only damaged ones."""
        for file in sorted(self.folder.glob(f"{self.key}-*.parquet")):
            try:
                if file.stem == f"{self.key}-{sha256([file])}":
                    return read(file)
            except (OSError, LedgerError):
                pass
            logger.warning("%s is damaged: probing the model again", file)
        return None

    def save(self, write: Callable[[Path], None], contents: str) -> None:
        """Keep the file that `write` writes, unless the model has other `contents` now; failing to do so is not an
        error."""
        if contents != self.contents:
            return
        try:
            with temporary_folder(cache_dir.private(self.folder)) as place:
                file = place / "run.parquet"
                write(file)
                os.replace(file, self.folder / f"{self.key}-{sha256([file])}.parquet")
        except (OSError, LedgerError) as error:
            logger.warning("cannot cache the run: %s", error)


def slot(
    model: str | tuple,
    functions: Functions,
    *,
    revision: str | None,
    device: str | None,
    also_fits: Sequence[str],
    **settings: Any,
) -> Slot | None:
    """The location of the file of a probe with these arguments of `probe`; None if none is kept.

    Requests the model's commit, but loads and tokenizes nothing. Raises what `probe` raises for a model that does not
    exist.
    """
    place = cache_dir.folder()
    if place is None or not isinstance(model, str):
        return None
    named = _named(model, revision)
    makes = {
        "model": named,
        "also_fits": [(other, *_named(other)) for other in also_fits],
        "data": [functions.name, functions.config, functions.split, functions.labels, str(functions.limit)],
        "device": (device or ("cuda" if torch.cuda.is_available() else "cpu")).partition(":")[0],
        "control": functions.control and [functions.control, functions.seed],
        "settings": settings,
    }
    return Slot(place, cache_dir.key(makes), named[1])


def contents(model: Any, revision: str | None) -> str:
    """The commit of a model, or the digest of its files; empty if it is gone."""
    try:
        return _named(model, revision)[1]
    except ModelError:
        return ""


def _named(model: str, revision: str | None = None) -> tuple[str, str]:
    """A model's name in results, and its commit or the digest of its files."""
    with loading(model):
        location = locate(model, revision)
        return location.name, location.contents()
