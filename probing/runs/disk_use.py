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
_CACHED = (f"{_KEY}-*.parquet", f"{_KEY}.self-check.json", f"{_KEY}-*.statistics.json", f"{_KEY}-*.gguf")
_LEFT = {UNFINISHED: TEMPORARY_FOLDERS, INTERRUPTED: ".*.parts"}
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
    cache, seen = cache_dir.folder(), set[Path]()  # a folder may be given twice, or be in another one
    caches = [cache] if cache and cache.is_dir() else []
    for place in [*caches, *map(Path, folders)]:
        for parent, inner, _ in os.walk(place, onerror=_raise):
            if Path(parent).resolve() in seen:
                inner.clear()
                continue
            seen.add(Path(parent).resolve())
            for path in (Path(parent, name) for name in sorted(inner)):
                kinds = [kind for kind, pattern in _LEFT.items() if fnmatchcase(path.name, pattern)]
                yield from (_item(path, kind) for kind in kinds if not path.is_symlink())
            inner[:] = sorted(name for name in inner if not name.startswith("."))
    for path in (path for place in caches for path in sorted(place.iterdir())):
        if any(fnmatchcase(path.name, pattern) for pattern in _CACHED) and not path.is_symlink():
            yield _item(path, CACHED)
    temporary = Path(tempfile.gettempdir())
    if temporary.resolve() not in seen:
        left = sorted(temporary.glob(TEMPORARY_FOLDERS))
        yield from (_item(path, UNFINISHED) for path in left if os.access(path, os.W_OK))


def _item(path: Path, kind: str) -> DiskItem:
    status = []
    for file in (path, *path.rglob("*")):
        with contextlib.suppress(OSError):  # gone in the meantime
            status.append(file.lstat())
    changed = max((file.st_mtime for file in status), default=0.0)
    in_use = (kind == UNFINISHED and abs(time.time() - changed) < _UNUSED) or (kind == INTERRUPTED and _is_locked(path))
    return DiskItem(path, kind, sum(file.st_size for file in status), in_use)


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
