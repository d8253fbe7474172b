"""Whole source files: their functions, and the draw of the files that are for validation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from tempfile import TemporaryFile
from typing import NamedTuple

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import Definition, Language
from codesyntax_dataset.safe_files import LARGEST_FILE
from codesyntax_dataset.schema import SourceFunction

VALIDATION_FRACTION = 0.2
"""The default share of files or repositories that is for validation."""

TOO_LARGE = f"file is larger than {LARGEST_FILE:,} bytes"


class SourceFile(NamedTuple):
    """A file and its functions. `unit`: what is drawn, the file or its repository; `url`: the start of theirs."""

    unit: str
    repo: str
    path: str
    url: str
    functions: list[Definition]


def definitions(text: str | None, language: Language, skip: Callable[[str], None]) -> list[Definition]:
    """The functions of a file; `skip` is told why there are none if it is no text (None), or does not parse."""
    assert language.definitions is not None
    if text is None:
        skip("file is no text in UTF-8 or the encoding that it declares")
        return []
    try:
        return list(language.definitions(text))
    except (SyntaxError, ParseError, ValueError, RecursionError, MemoryError):
        skip("file does not parse")
        return []


def functions(file: SourceFile, language: str, partition: str) -> Iterator[SourceFunction]:
    for name, first, last, code in file.functions:
        yield SourceFunction(language, code, file.repo, file.path, name, f"{file.url}#L{first}-L{last}", partition)


def drawn(files: Iterable[SourceFile], language: str, fraction: float) -> Iterator[SourceFunction]:
    """The functions of the files that are for test, and then of those for validation, in their order.

    For validation are `fraction` of the units, rounded to a whole number; of two or more, each partition gets at least
    one. Chosen are those whose names have the lowest SHA-256, so the choice does not depend on their order. All files
    take part in the draw: until then they wait in a temporary file.
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
