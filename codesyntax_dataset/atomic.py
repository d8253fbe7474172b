"""Atomic file writes; OS errors become one-line messages."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from codesyntax_dataset.errors import LedgerError

_PREFIX, _SUFFIX = ".codesyntax-", ".tmp"

TEMPORARY_FOLDERS = f"{_PREFIX}*{_SUFFIX}"
"""A pattern for the names of folders that `temporary_folder` made; a killed process leaves them
behind."""


def write(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write a file, creating its parent folders; return its path. Raises LedgerError if it cannot
    be written."""
    target = Path(path)
    with os_errors_as_ledger_errors(target), atomic_path(target) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return target


@contextlib.contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path for a new file or folder: renamed to `target` on success, removed on
    failure."""
    with temporary_folder(target.parent) as work:
        temporary = work / target.name
        yield temporary
        os.replace(temporary, target)


@contextlib.contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder in `folder`, removed in the end: what is made there is renamed when it is
    complete.

    Its name is random and only its owner can write to it, so that nobody can place a link there,
    and two writers of the same file do not meet.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=_PREFIX, suffix=_SUFFIX, dir=folder) as work:
        yield Path(work)


def replace(folder: Path, target: Path) -> None:
    """Move a complete `folder` to `target`; what was there is then at the place of `folder`, or
    beside it.

    Both change places in one step where the system can do so, or else in two, each of which leaves
    a whole folder.
    """
    if not target.exists():
        folder.rename(target)
    elif not _exchanged(folder, target):
        replaced = folder.with_name(f"{folder.name}-replaced")
        target.rename(replaced)
        try:
            folder.rename(target)
        except BaseException:
            replaced.rename(target)
            raise


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two paths by renameat2(2) of Linux; False if the system, or this file system, does
    not."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0


@contextlib.contextmanager
def os_errors_as_ledger_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a LedgerError whose one-line message names `path`."""
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"cannot write to {path}: {error.strerror or error}; nothing there was changed"
        ) from error
