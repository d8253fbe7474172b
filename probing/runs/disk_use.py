"""Files on disk between runs: the cache, and what a killed process could not remove."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import filelock

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import TEMPORARY_FOLDERS
from codesyntax_dataset.errors import LedgerError
from probing.models import cache_dir

CACHED, UNFINISHED, INTERRUPTED = "cached", "unfinished", "interrupted"
"""A run, self-check, statistics or converted GGUF file in the cache; a file or folder that was being written; a run
that the same command continues."""

_KEY = "[0-9a-f]" * 32
_CACHED = (f"{_KEY}-*.parquet", f"{_KEY}.self-check.json", f"{_KEY}-*.statistics.json")
_CONVERTED = f"{_KEY}-*.gguf"
_UNUSED = 3600  # seconds without a change, after which nobody writes there any more; clocks may be wrong either way


class DiskItem(NamedTuple):
    """A file or folder, its size in bytes, and whether a process may still be writing to it."""

    path: Path
    kind: str
    size: int
    in_use: bool


@checked
def items(folders: Iterable[str | os.PathLike[str]] = ()) -> Iterator[DiskItem]:
    """Yield what is in the cache, and what killed processes left in the folder for temporary files and anywhere in
    `folders`; links are not followed.

    Raises LedgerError for a folder that cannot be read.
    """
    cache = cache_dir.folder()
    places = [*([cache] if cache and cache.is_dir() else []), *map(Path, folders)]
    seen: set[Path] = set()  # a folder may be given twice, or be in another one
    for place in places:
        for parent, inner, files in os.walk(place, onerror=_raise):
            if Path(parent).resolve() in seen:
                inner.clear()
                continue
            seen.add(Path(parent).resolve())
            for name in sorted(inner):
                path = Path(parent, name)
                if path.is_symlink():
                    continue
                if place == cache and fnmatchcase(name, _CONVERTED):
                    yield DiskItem(path, CACHED, _size(path), False)
                elif fnmatchcase(name, TEMPORARY_FOLDERS):
                    yield _unfinished(path)
                elif fnmatchcase(name, ".*.parts"):
                    yield DiskItem(path, INTERRUPTED, _size(path), _is_locked(path))
            inner[:] = sorted(name for name in inner if not name.startswith(".") and not fnmatchcase(name, _CONVERTED))
            if place == cache and Path(parent) == cache:
                for name in sorted(files):
                    if any(fnmatchcase(name, pattern) for pattern in _CACHED):
                        yield DiskItem(Path(parent, name), CACHED, _size(Path(parent, name)), False)
    temporary = Path(tempfile.gettempdir())
    if temporary.resolve() not in seen:
        yield from (_unfinished(path) for path in sorted(temporary.glob(TEMPORARY_FOLDERS)) if os.access(path, os.W_OK))


def _unfinished(path: Path) -> DiskItem:
    return DiskItem(path, UNFINISHED, _size(path), abs(time.time() - _changed(path)) < _UNUSED)


def prune(found: Iterable[DiskItem]) -> list[DiskItem]:
    """Remove what no process is using; return what was removed. Raises LedgerError if something cannot be removed."""
    removed = [item for item in found if not item.in_use]
    for item in removed:
        try:
            if item.path.is_file():
                item.path.unlink(missing_ok=True)
            else:
                shutil.rmtree(item.path)
        except FileNotFoundError:  # its process was alive, and has removed it
            pass
        except OSError as error:
            _raise(error)
    return removed


def _raise(error: OSError) -> None:
    raise LedgerError(f"{error.filename}: {error.strerror}") from error


def _all(path: Path) -> Iterator[os.stat_result]:
    for one in (path, *path.rglob("*")):
        with contextlib.suppress(OSError):  # gone in the meantime
            yield one.lstat()


def _size(path: Path) -> int:
    return sum(status.st_size for status in _all(path))


def _changed(path: Path) -> float:
    return max((status.st_mtime for status in _all(path)), default=0.0)


def _is_locked(parts: Path) -> bool:
    """True if a run holds a lock in its folder."""
    for lock in parts.glob("lock.*"):
        try:
            with filelock.FileLock(lock, timeout=0):
                pass
        except filelock.Timeout:
            return True
        except OSError:  # on a disk that nobody can write to
            pass
    return False
