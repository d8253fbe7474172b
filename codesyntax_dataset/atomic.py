"""Atomic file writes; OS errors become one-line messages."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from codesyntax_dataset.errors import LedgerError


def write(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write a file, creating its parent folders; return its path. Raises LedgerError if it cannot be written."""
    target = Path(path)
    with writing(target), beside(target) as place:
        place.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return target


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `target`: renamed to `target` on success, removed on failure."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield place
        os.replace(place, target)
    finally:
        place.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into a LedgerError whose one-line message names `path`."""
    try:
        yield
    except OSError as error:
        raise LedgerError(f"cannot write to {path}: {error.strerror or error}; nothing there was changed") from error
