"""Files appear whole or not at all, and what the file system refuses is told in one line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from codesyntax_dataset.errors import LedgerError


def write(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write a file, and the folders that it lies in; returns its path. Raises LedgerError where that is not possible."""
    target = Path(path)
    with writing(target), beside(target) as place:
        place.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return target


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A place in the same folder to write to, which becomes `target` at the end, or is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield place
        os.replace(place, target)
    finally:
        place.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the file system refuses into one line that names the place."""
    try:
        yield
    except OSError as error:
        raise LedgerError(f"cannot write to {path}: {error.strerror or error}; nothing there was changed") from error
