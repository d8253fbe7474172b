"""Parse untrusted JSON: size, depth, duplicate keys, schema.

Input that fails a check raises EntryError with the reason.
"""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import EntryError

PLAIN = "[ -;=?-~]"
"""A pattern for one printable ASCII character except < and >."""

_MOST = 10**9
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


Check = Callable[[Any, str], object]
"""Raises EntryError unless the value at the given place is as expected."""


def shown(value: Any) -> str:
    """A value for messages: short, and in ASCII."""
    text = ascii(value) if isinstance(value, (str, int, float, bool, type(None))) else f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def expect(fits: bool, value: Any, at: str, expected: str) -> None:
    if not fits:
        raise EntryError(f"{at or 'the entry'} is {shown(value)}, expected {expected}")


def one_of(known: Iterable[Any]) -> Check:
    known = list(known)
    expected = " or ".join(map(shown, known))
    return lambda value, at: expect(
        any(type(value) is type(one) and value == one for one in known), value, at, expected
    )


def whole(least: int, most: int = _MOST) -> Check:
    expected = f"a whole number from {least} to {most}"
    return lambda value, at: expect(type(value) is int and least <= value <= most, value, at, expected)


def mapping(value: Any, at: str) -> dict[str, Any]:
    expect(isinstance(value, dict), value, at, "an object")
    return value


def fields(value: Any, at: str, names: Iterable[str], optional: Iterable[str] = ()) -> list[Any]:
    """The values of exactly these fields, in this order, followed by those of `optional` that are present."""
    members = mapping(value, at)
    names = [*names, *(name for name in optional if name in members)]
    for name in names:
        if name not in members:
            raise EntryError(f"{at or 'the entry'} lacks the field {name}")
    for name in sorted(members.keys() - set(names)):
        raise EntryError(f"{at or 'the entry'} has an unknown field {shown(name)}")
    return [members[name] for name in names]
