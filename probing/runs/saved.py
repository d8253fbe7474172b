"""Saved results: the JSON that a run leaves, and where it says that its data is."""

from __future__ import annotations

import json
import os
from pathlib import Path

from codesyntax_dataset.errors import LedgerError

LARGEST = 16 * 2**20
"""Bytes that the JSON of a result may have, many times what it takes."""


def read_text(path: str | os.PathLike) -> str:
    """The text of a result's JSON; raises LedgerError where there is none."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise LedgerError(f"cannot read the result {path}: it is larger than {LARGEST:,} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(
            f"cannot read the result {path}: {error}; expected the JSON that `codesyntax probe` wrote"
        ) from error


def data_path_of(text: str) -> str | None:
    """Where a result's JSON says that its data is, seen from itself; None where it does not."""
    try:
        found = json.loads(text)["data_path"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def seen_from(folder: Path, place: Path) -> str:
    """The path of `place`, relative to `folder` where there is one."""
    try:
        return Path(os.path.relpath(place.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return place.resolve().as_posix()
