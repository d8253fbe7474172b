"""Saved results: the JSON that a run leaves, and where it says that its data is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from codesyntax_dataset.errors import LedgerError

FORMAT = 2
"""Of the JSON of a result: changes whenever it gets other fields, or its fields other meanings. Format 1 did not say it."""

LARGEST = 16 * 2**20
"""Bytes that the JSON of a result may have, many times what it takes."""


def read_text(path: str | os.PathLike) -> str:
    """The text of a result's JSON; raises LedgerError where there is none, or one of a format from the future."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise LedgerError(f"cannot read the result {path}: it is larger than {LARGEST:,} bytes")
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(
            f"cannot read the result {path}: {error}; expected the JSON that `codesyntax probe` wrote"
        ) from error
    version = _field(text, "format")
    if type(version) is int and version > FORMAT:
        raise LedgerError(
            f"cannot read the result {path}: it is of format {version}, made by a newer codesyntax, and this one reads "
            f"formats up to {FORMAT}: upgrade codesyntax"
        )
    return text


def data_path_of(text: str) -> str | None:
    """Where a result's JSON says that its data is, seen from itself; None where it does not."""
    found = _field(text, "data_path")
    return found if isinstance(found, str) else None


def _field(text: str, name: str) -> Any:
    """What a text that may be a result says in one field; None where it does not."""
    try:
        return json.loads(text)[name]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def seen_from(folder: Path, place: Path) -> str:
    """The path of `place`, relative to `folder` where there is one."""
    try:
        return Path(os.path.relpath(place.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return place.resolve().as_posix()
