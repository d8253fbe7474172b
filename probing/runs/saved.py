"""Saved results: reading their JSON, and the path of their data in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from codesyntax_dataset.errors import LedgerError

FORMAT = 2
"""The format of a result's JSON: changes whenever its fields, or their meanings, change. Format 1 does not state it."""

LARGEST = 16 * 2**20
"""The most bytes of a result's JSON, many times the usual size."""


def read_text(path: str | os.PathLike) -> str:
    """The text of a result's JSON; raises LedgerError if it cannot be read, or has a newer format."""
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


def ledger_path(result: str | os.PathLike) -> Path:
    """The path of a result's ledger, beside its JSON."""
    path = Path(result)
    return path.with_name(path.name.removesuffix(".json") + ".ledger.parquet")


def data_path_of(text: str) -> str | None:
    """The path of the data in a result's JSON, relative to it; None if it has none."""
    path = _field(text, "data_path")
    return path if isinstance(path, str) else None


def _field(text: str, name: str) -> Any:
    """One field of a text that may be a result; None if it is missing."""
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
