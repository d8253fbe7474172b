"""Parse untrusted JSON: size, depth, duplicate keys.

Input that fails a check raises EntryError with the reason.
"""

from __future__ import annotations

import json
import stat
from collections import Counter
from pathlib import Path
from typing import Any

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import EntryError

PLAIN = "[ -;=?-~]"
"""A pattern for one printable ASCII character except < and >."""

_MOST_FIELDS = 10_000


def read(path: Path, most: int) -> bytes:
    """The first bytes of a regular file, at most one more than `most`."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise EntryError("this is a link, a device or a folder, expected a regular file")
        with safe_files.opened(path) as file:
            return file.read(most + 1)
    except EntryError:
        raise
    except (OSError, ValueError) as error:
        raise EntryError(f"the file cannot be read: {error}") from error


def parse(data: bytes, most: int) -> Any:
    """Parse a JSON value of at most `most` bytes."""
    if len(data) > most:
        raise EntryError(f"the file is larger than {most:,} bytes")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except EntryError:
        raise
    except RecursionError as error:
        raise EntryError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise EntryError(f"the file is not JSON in UTF-8: {error}") from error


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_FIELDS:  # each unknown one is looked at when the fields are checked
        raise EntryError(f"an object has {len(pairs):,} fields, expected at most {_MOST_FIELDS:,}")
    fields = dict(pairs)
    if len(fields) < len(pairs):
        times = Counter(name for name, _ in pairs)
        duplicate = next(name for name, number in times.items() if number > 1)
        raise EntryError(f"the field {shown(duplicate)} occurs twice")
    return fields


def _no_constant(name: str) -> None:
    raise EntryError(f"{name} is not a number in JSON")


def shown(value: Any) -> str:
    """A value for messages: short, and in ASCII."""
    text = ascii(value) if isinstance(value, (str, int, float, bool, type(None))) else f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
