"""Checks, before a command replaces files, that it made them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

from codesyntax_dataset.errors import CodeSyntaxError, LedgerError

_BEGINNING = 2**20  # bytes of a file that are searched for its mark


def check_owned(
    folder: Path,
    command: str,
    mark: tuple[str, str] | None = None,
    *,
    ours: Callable[[str], bool] = lambda file: True,
    only: Collection[str] | None = None,
    error: type[CodeSyntaxError] = LedgerError,
) -> None:
    """Raise `error` if `command` would replace a file in `folder` that it did not write.

    The command replaces the files `only`, or, without them, the folder as a whole. `ours`: whether
    it gives a file this name, a path in the folder. `mark`: one of its files, and a text there that
    nobody else writes.
    """
    if folder.exists() and not folder.is_dir():
        raise error(f"{folder} is a file, expected a folder or a new path: choose another output")
    if only is None:
        paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
        replaced = sorted(path.relative_to(folder).as_posix() for path in paths)
    else:
        replaced = [file for file in only if os.path.lexists(folder / file)]
    marked = mark is None or _has(folder / mark[0], mark[1].encode())
    for file in replaced:
        if not marked or not ours(file):
            raise error(
                f"{folder / file} was not made by `codesyntax {command}`, which would replace it: choose another "
                "output, or move it away"
            )


def _has(file: Path, text: bytes) -> bool:
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as opened:
        return text in opened.read(_BEGINNING)
