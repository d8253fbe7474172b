"""Statistics that reports and boards keep: each is computed once, and found again by a digest of
all it depends on.

They are in the cache (`probing.models.cache_dir`), not beside the results: these travel, and may be
in a folder that cannot be written. A file is named after the digest of the numbers that the
statistic is made from, as they were read just now from the ledgers and the data, of our code and of
the libraries; and after that of its own content, so that a damaged one is computed again. Whoever
can write to the cache can forge what a report or a board says, so only these, within `caching`,
take anything from it: `verify` and `submit` compute.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from codesyntax_dataset import safe_files
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import LedgerError
from probing.models import cache_dir

logger = logging.getLogger(__name__)

Arrays = Mapping[str, np.ndarray]

_LARGEST = 1 << 26
"""The most bytes of a file, many times the usual size."""

_caching = ContextVar("caching", default=False)


@contextmanager
def caching() -> Iterator[None]:
    """Take statistics from the cache within this block, and keep them there."""
    before = _caching.set(True)
    try:
        yield
    finally:
        _caching.reset(before)


def cached(what: str, made_of: Iterable[bytes], compute: Callable[[], Arrays]) -> Arrays:
    """The float64 arrays that `compute` returns, or returned for the same `what` and `made_of`
    before."""
    folder = cache_dir.folder() if _caching.get() else None
    if folder is None:
        return compute()
    digest = hashlib.sha256(f"{_of_code()} {what}".encode())
    for part in made_of:
        digest.update(hashlib.sha256(part).digest())
    key = digest.hexdigest()[:32]
    for file in sorted(folder.glob(f"{key}-*.statistics.json")):
        known = _arrays_in(file)
        if known is not None:
            return known
        logger.warning("%s is damaged: computing its statistics again", file)
    arrays = compute()
    _keep(arrays, folder, key)
    return arrays


@functools.cache
def _of_code() -> str:
    return cache_dir.key("statistics")


def _arrays_in(file: Path) -> Arrays | None:
    """The arrays in a file; None if it is damaged."""
    try:
        data = safe_files.read(file, _LARGEST)
        if file.name.split("-")[1] != f"{hashlib.sha256(data).hexdigest()}.statistics.json":
            return None
        return {
            name: np.frombuffer(base64.b64decode(field["float64"]), "<f8")
            .astype(np.float64)
            .reshape(field["shape"])
            for name, field in json.loads(data).items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _keep(arrays: Arrays, folder: Path, key: str) -> None:
    """Keep arrays; failing to do so is not an error."""
    fields = {
        name: {
            "shape": array.shape,
            "float64": base64.b64encode(np.ascontiguousarray(array, "<f8").tobytes()).decode(),
        }
        for name, array in arrays.items()
    }
    text = json.dumps(fields)
    try:
        write(
            cache_dir.private(folder)
            / f"{key}-{hashlib.sha256(text.encode()).hexdigest()}.statistics.json",
            text,
        )
    except (OSError, LedgerError) as error:
        logger.warning("cannot cache statistics: %s", error)
