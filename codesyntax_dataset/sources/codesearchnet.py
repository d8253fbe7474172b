"""CodeSearchNet v2 as it was distributed (Husain et al. 2019): gzipped JSON lines, in folders or
one zip per language.

    python/final/jsonl/test/python_test_0.jsonl.gz
    python/final/jsonl/valid/python_valid_0.jsonl.gz

`python.zip` has the same layout inside. A source is one of these zips, the folder `python`, or a
folder that contains any of them.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.languages import LANGUAGES, Language, language_of
from codesyntax_dataset.safe_files import explodes, opened
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources.archive import ERRORS, open_zip
from codesyntax_dataset.sources.text import parse_json, texts

FORM = "CodeSearchNet v2 files"
LABELS: str | None = None

PARTITIONS = {"test": "test", "validation": "valid"}
FIELDS = ("code", "repo", "path", "func_name", "url", "language", "partition")

LONGEST_LINE = 1 << 24  # bytes; a line is one function, and a longer one is a decompression bomb


def fits(source: str, language: Language) -> bool:
    path = Path(source)
    return any(_members(base) for name in _names() for base in _bases(path, name))


def read(source: str, config: str, skips: Skips) -> Iterator[SourceFunction]:
    """The functions of `config`'s language, test partition first, each partition in the order of
    its files and lines.

    A validation partition may be missing. Raises SourceError, naming file and line, if anything
    else is missing, damaged or not CodeSearchNet.
    """
    name = name_of(config)
    for partition in PARTITIONS:
        for base, member in _files(source, name, partition):
            for code, repo, path, func_name, url in _rows(base, member, name, partition):
                yield SourceFunction(
                    language_of(config).name, code, repo, path, func_name, url, partition
                )


def name_of(config: str) -> str:
    """The name in CodeSearchNet of `config`'s language; raises SourceError if it has none."""
    language = language_of(config)
    if language.codesearchnet is None:
        raise SourceError(
            f"CodeSearchNet has no {language.name} functions, only functions in {', '.join(_names())}"
        )
    return language.codesearchnet


def _names() -> list[str]:
    return [
        language.codesearchnet
        for language in LANGUAGES.values()
        if language.codesearchnet is not None
    ]


def _files(source: str, language: str, partition: str) -> list[tuple[Path, str]]:
    """The files of a partition in the order of their numbers, each as (folder or zip, name in
    it)."""
    name = PARTITIONS[partition]
    for base in _bases(Path(source), language):
        for prefix in (f"{language}/", ""):
            pattern = re.compile(rf"{prefix}final/jsonl/{name}/{language}_{name}_(\d+)\.jsonl\.gz")
            numbered = [
                (int(match[1]), member)
                for member in _members(base)
                if (match := pattern.fullmatch(member))
            ]
            if numbered:
                return [(base, member) for _, member in sorted(numbered)]
    expected = f"{language}/final/jsonl/{name}/{language}_{name}_0.jsonl.gz"
    if partition == "validation":
        return []
    raise SourceError(
        f"{source} has no {language} functions for {partition}: expected {expected}, as a file or in a zip"
    )


def _bases(path: Path, language: str) -> list[Path]:
    """Where the files of `language` may be: folders first, then zips."""
    if path.is_dir():
        zipped = path / f"{language}.zip"
        return [path, zipped] if zipped.is_file() else [path]
    return [path] if path.suffix == ".zip" else []


def _members(base: Path) -> list[str]:
    """The names of the gzipped JSON lines of a folder or zip, relative to it, with forward
    slashes."""
    if base.is_dir():
        files = [
            file
            for pattern in ("final/jsonl/*/*.gz", "*/final/jsonl/*/*.gz")
            for file in base.glob(pattern)
        ]
        return [file.relative_to(base).as_posix() for file in files]
    with open_zip(base) as archive:
        return [
            name
            for name in archive.namelist()
            if re.search(r"(?:^|/)final/jsonl/[^/]+/[^/]+\.gz$", name)
        ]


@contextmanager
def _open(base: Path, member: str) -> Iterator[tuple[IO[bytes], int]]:
    """A member, packed, and the bytes on disk that it comes from."""
    if base.is_dir():
        with opened(base / member) as file:
            yield file, os.fstat(file.fileno()).st_size
    else:
        with open_zip(base) as archive, archive.open(member) as file:
            yield file, base.stat().st_size


def _rows(base: Path, member: str, language: str, partition: str) -> Iterator[list[str]]:
    file = f"{base}/{member}"
    for number, line in _lines(base, member):
        where = f"{file}, line {number}"
        *fields, own_language, own_partition = texts(parse_json(line, file, number), FIELDS, where)
        if (own_language, own_partition) != (language, PARTITIONS[partition]):
            raise SourceError(
                f"{where}: language {own_language!r} and partition {own_partition!r}, expected {language!r} and "
                f"{PARTITIONS[partition]!r}"
            )
        yield fields


def _lines(base: Path, member: str) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, line) of a gzipped member, with only one line in memory at a time."""
    number, unpacked = 1, 0
    try:
        with _open(base, member) as (compressed, packed), gzip.open(compressed) as lines:
            while line := lines.readline(LONGEST_LINE + 1):
                unpacked += len(line)
                if explodes(unpacked, packed):
                    raise SourceError(
                        f"{base}/{member}, line {number}: {packed} bytes unpack to more than {unpacked}"
                    )
                if len(line) > LONGEST_LINE:
                    raise SourceError(
                        f"{base}/{member}, line {number}: longer than {LONGEST_LINE} bytes, too long for a function"
                    )
                yield number, line.rstrip(b"\r\n")
                number += 1
    except ERRORS as error:
        raise SourceError(
            f"{base}/{member}, line {number}: cannot be read ({error}): is the file complete?"
        ) from error
