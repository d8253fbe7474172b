"""Strict reading of UTF-8 text and JSON from outside; errors name the file and the line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from codesyntax_dataset.errors import SourceError


def decode(data: bytes, file: str, line: int = 1) -> str:
    """Decode `data`, without a byte-order mark; `line` is its first line in `file`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise SourceError(
            f"{file}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8, expected UTF-8 text"
        ) from error


def parse_json(data: bytes, file: str, line: int = 1) -> Any:
    """Parse one JSON document that begins at `line` of `file`."""
    text = decode(data, file, line)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{file}, line {line + error.lineno - 1}"
        raise SourceError(
            f"{where}: {error.msg} at column {error.colno}, expected JSON: is the file complete?"
        ) from error
    except RecursionError as error:
        raise SourceError(f"{file}, line {line}: JSON nested too deeply") from error
    except ValueError as error:  # Python converts numbers of thousands of digits on request only
        raise SourceError(f"{file}, line {line}: a number has too many digits") from error


def texts(row: Any, fields: Sequence[str], where: str) -> list[str]:
    """The values of `fields` in the mapping `row`, each of them text that UTF-8 can encode."""
    if not isinstance(row, dict):
        raise SourceError(
            f"{where}: {type(row).__name__} instead of an object with {', '.join(fields)}"
        )
    for field in fields:
        value = row.get(field)
        if not isinstance(value, str):
            problem = (
                f"is {type(value).__name__}"
                if field in row
                else f"is missing among {', '.join(row) or 'no fields'}"
            )
            raise SourceError(f"{where}: field {field!r} {problem}, expected text")
        if not encodable(value):
            raise SourceError(
                f"{where}: field {field!r} has an unpaired surrogate, which is not valid UTF-8 text"
            )
    return [row[field] for field in fields]


def encodable(text: str) -> bool:
    """True if UTF-8 can encode `text`: JSON can spell unpaired surrogates, which it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
