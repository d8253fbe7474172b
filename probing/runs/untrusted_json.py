"""JSON from strangers: size, encoding, nesting, twins, which values may stand where.

Whatever is refused is an EntryError with the reason.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from codesyntax_dataset.errors import EntryError

PLAIN = "[ -;=?-~]"
"""A pattern: a character of ASCII that shows, without < and >."""

_MOST = 10**9


def read(path: Path, most: int) -> bytes:
    """The first bytes of a plain file, one more than `most` at most."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise EntryError("this is a link or a device or a folder, expected a plain file")
        with path.open("rb") as file:
            return file.read(most + 1)
    except EntryError:
        raise
    except (OSError, ValueError) as error:
        raise EntryError(f"the file cannot be read: {error}") from error


def parse(data: bytes, most: int) -> Any:
    """The JSON value that `data` is, of `most` bytes at most."""
    if len(data) > most:
        raise EntryError(f"the file is larger than {most:,} bytes")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_no_twins, parse_constant=_no_constant)
    except EntryError:
        raise
    except RecursionError as error:
        raise EntryError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise EntryError(f"the file is no JSON in UTF-8: {error}") from error


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise EntryError(f"the field {shown(twin)} stands there twice")
    return fields


def _no_constant(name: str) -> None:
    raise EntryError(f"{name} is no number that JSON knows")


Check = Callable[[Any, str], None]
"""Raises EntryError unless the value, which stands at the place, is as expected."""


def shown(value: Any) -> str:
    """For messages: short, and in ASCII."""
    said = ascii(value) if isinstance(value, (str, int, float, bool, type(None))) else f"a {type(value).__name__}"
    return said if len(said) <= 80 else f"{said[:77]}..."


def expect(fits: bool, value: Any, at: str, expected: str) -> None:
    if not fits:
        raise EntryError(f"{at or 'the entry'} is {shown(value)}, expected {expected}")


def one_of(known: Iterable[Any]) -> Check:
    known = list(known)
    expected = " or ".join(map(shown, known))
    return lambda value, at: expect(
        any(type(value) is type(one) and value == one for one in known), value, at, expected
    )


def text(pattern: str, expected: str) -> Check:
    return lambda value, at: expect(
        isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None, value, at, expected
    )


def whole(least: int, most: int = _MOST) -> Check:
    expected = f"a whole number from {least} to {most}"
    return lambda value, at: expect(type(value) is int and least <= value <= most, value, at, expected)


def list_of(check: Check) -> Check:
    def check_list(value: Any, at: str) -> None:
        expect(isinstance(value, list), value, at, "a list")
        for number, item in enumerate(value):
            check(item, f"{at}.{number}")

    return check_list


def mapping(value: Any, at: str) -> dict[str, Any]:
    expect(isinstance(value, dict), value, at, "an object")
    return value


def fields(value: Any, at: str, names: Iterable[str], optional: Iterable[str] = ()) -> list[Any]:
    """The values of exactly these fields, in this order; of those in `optional` that are there, too."""
    of = mapping(value, at)
    names = [*names, *(name for name in optional if name in of)]
    for name in names:
        if name not in of:
            raise EntryError(f"{at or 'the entry'} lacks the field {name}")
    for name in sorted(of.keys() - set(names)):
        raise EntryError(f"{at or 'the entry'} has an unknown field {shown(name)}")
    return [of[name] for name in names]


def record(checks: dict[str, Check], **optional: Check) -> Check:
    """Exactly these fields, and perhaps the optional ones, each as its check expects."""

    def check_record(value: Any, at: str) -> None:
        fields(value, at, checks, optional)
        for name, check in {**checks, **optional}.items():
            if name in value:
                check(value[name], f"{at}.{name}" if at else name)

    return check_record


def counts(value: Any, at: str) -> None:
    """An object of things, in plain words, and how often they were."""
    for name, count in mapping(value, at).items():
        text(PLAIN + "{1,200}", "plain text")(name, f"a name in {at}")
        whole(1)(count, f"{at}.{name}")
