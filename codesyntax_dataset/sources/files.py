"""Whole source files: their functions, and the draw of the files that are for validation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from tempfile import TemporaryFile
from typing import NamedTuple

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import Definition, language_of, variant_of
from codesyntax_dataset.languages.language import UNREAD_FUNCTION, UNREAD_OUTSIDE, Unread
from codesyntax_dataset.safe_files import LARGEST_FILE
from codesyntax_dataset.schema import Skips, SourceFunction

VALIDATION_FRACTION = 0.2
"""The default share of files or repositories that is for validation."""

UNPARSED = "file does not parse"
TOO_LARGE = f"file is larger than {LARGEST_FILE:,} bytes"


class SourceFile(NamedTuple):
    """A file and its functions. `unit`: what is drawn, the file or its repository; `url`: the start
    of theirs."""

    unit: str
    repo: str
    path: str
    url: str
    functions: list[Definition]


def definitions(text: str | None, config: str, skips: Skips, location: str) -> list[Definition]:
    """The functions of the file at `location` that a config has, but for those that do not parse.

    Counted in `skips` are a file that is not text (None), one of which no function is kept because
    it does not parse, each function that does not, and others with code outside of functions that
    does not, with the first line of it.
    """
    language, exact = language_of(config), variant_of(config).exact
    assert language.definitions is not None
    if text is None:
        skips.add("file is not text in UTF-8 or the encoding that it declares", location)
        return []
    try:
        parts = list(language.definitions(text))
    except (SyntaxError, ParseError, ValueError, RecursionError, MemoryError) as error:
        skips.add(UNPARSED, f"{location}: {_where(error)}")
        return []
    functions = [
        part
        for part in parts
        if isinstance(part, Definition) and (exact or not part.beyond_published)
    ]
    unread: dict[str, list[int]] = {}  # reason -> the lines
    for reason, line in dict.fromkeys(part for part in parts if isinstance(part, Unread)):
        unread.setdefault(reason, []).append(line)
    for line in unread.get(UNREAD_FUNCTION, ()):
        skips.add(UNREAD_FUNCTION, f"{location}#L{line}")
    if unread and not functions:
        skips.add(UNPARSED, f"{location}#L{min(map(min, unread.values()))}")
    elif UNREAD_OUTSIDE in unread:
        skips.add(UNREAD_OUTSIDE, f"{location}#L{min(unread[UNREAD_OUTSIDE])}")
    return functions


def _where(error: Exception) -> str:
    """The error of a file in one line: for a syntax error, its line and reason."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    return " ".join(str(error).split())[:120] or type(error).__name__


def functions(file: SourceFile, language: str, partition: str) -> Iterator[SourceFunction]:
    for name, first, last, code, _ in file.functions:
        yield SourceFunction(
            language, code, file.repo, file.path, name, f"{file.url}#L{first}-L{last}", partition
        )


def drawn(files: Iterable[SourceFile], language: str, fraction: float) -> Iterator[SourceFunction]:
    """The functions of the files that are for test, and then of those for validation, in their
    order.

    For validation are `fraction` of the units, rounded to a whole number; of two or more, each
    partition gets at least one. Chosen are those whose names have the lowest SHA-256, so the choice
    does not depend on their order. All files take part in the draw: until then they wait in a
    temporary file.
    """
    with TemporaryFile("w+", encoding="ascii") as spool:
        units = set()
        for file in files:
            units.add(file.unit)
            spool.write(json.dumps(file) + "\n")
        chosen = _chosen(units, fraction)
        for partition in ("test", "validation"):
            spool.seek(0)
            for line in spool:
                file = SourceFile(*json.loads(line))
                if (file.unit in chosen) == (partition == "validation"):
                    yield from functions(file, language, partition)


def _chosen(units: Collection[str], fraction: float) -> set[str]:
    number = min(max(round(fraction * len(units)), 1), len(units) - 1) if fraction and units else 0
    return set(sorted(units, key=lambda unit: hashlib.sha256(unit.encode()).digest())[:number])
