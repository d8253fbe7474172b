"""CodeSyntax as its authors published it (Shen et al. 2022), so that the published labels can be
scored unchanged.

`CodeSyntax_python.json` holds a list of `{"code", "tokens", "id", "relns": {relation: [[head,
first, last], ...]}}`; the ablations are `CodeSyntax_python_with_new_lines.json` and so on, named
like our configs. A source is one of these files, a zip with some of them, or a folder with files,
zips or both. Ids are kept; the lowest are CodeSearchNet's test partition. Tokens come without
offsets, which are recovered by matching the tokens against the code in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import CodeSyntaxError, SourceError
from codesyntax_dataset.languages import Language, language_of, unedited, variant_of
from codesyntax_dataset.safe_files import explodes
from codesyntax_dataset.schema import Annotation, Edge, Skips, SourceFunction, Token, check
from codesyntax_dataset.sources.archive import ERRORS, open_zip
from codesyntax_dataset.sources.text import encodable, parse_json, texts

FORM = "CodeSyntax as its authors published it"
LABELS = "as published by the authors; token offsets were recovered by matching the tokens against the code in order"

# bytes, far more than the published files; a larger one is a decompression bomb
LARGEST_FILE = 4 * 1024**3


def files() -> dict[str, str]:
    """File name -> config, of the configs that were published."""
    of_the_paper = (
        config for config in unedited() if language_of(config).first_validation_id is not None
    )
    return {
        f"CodeSyntax_{config}.json": config
        for config in of_the_paper
        if not variant_of(config).exact
    }


def fits(source: str, language: Language) -> bool:
    return any(_files(base) for base in _bases(Path(source)))


def read(source: str, config: str, skips: Skips) -> Iterator[SourceFunction]:
    """The functions of `config` with their published labels, test partition first.

    A function whose tokens do not occur in its code in order is kept without labels and counted in
    `skips`. Raises SourceError for a file that is missing, damaged or not of this form.
    """
    language = language_of(config)
    name, entries = _load(source, config)
    functions = [
        _function(entry, f"{name}, entry {number}", language, skips)
        for number, entry in enumerate(entries)
    ]
    # stable, and "test" < "validation"
    return iter(sorted(functions, key=lambda function: function.partition))


def _bases(path: Path) -> list[Path]:
    """The places to look for files: folders and single files first, then zips."""
    if path.is_dir():
        return [path, *sorted(path.glob("CodeSyntax*.zip"))]
    return [path]


def _files(base: Path) -> dict[str, str]:
    """Config -> name of its file in a folder or zip; for a single file, its bare name."""
    if base.suffix == ".zip":
        with open_zip(base) as archive:
            names = archive.namelist()
    else:
        names = [file.name for file in (base.iterdir() if base.is_dir() else [base])]
    known = files()
    return {
        known[file]: name for name in sorted(names) if (file := PurePosixPath(name).name) in known
    }


def _load(source: str, config: str) -> tuple[str, list[Any]]:
    """The name and the entries of the file of `config`."""
    known: list[str] = []
    for base in _bases(Path(source)):
        files = _files(base)
        known += files
        if config not in files:
            continue
        name, data = _bytes(base, files[config])
        entries = parse_json(data, name)
        if not isinstance(entries, list):
            raise SourceError(f"{name}: {type(entries).__name__}, expected a list of functions")
        return name, entries
    raise SourceError(f"{source} has the published labels of {', '.join(known)}, not of {config}")


def _bytes(base: Path, member: str) -> tuple[str, bytes]:
    try:
        if base.suffix == ".zip":
            with open_zip(base) as archive:
                size = archive.getinfo(member).file_size  # no more is unpacked
                if size > LARGEST_FILE or explodes(size, base.stat().st_size):
                    raise SourceError(
                        f"{base}/{member} unpacks to {size} bytes, from {base.stat().st_size}"
                    )
                return f"{base}/{member}", archive.read(member)
        file = base / member if base.is_dir() else base
        return str(file), safe_files.read(file, LARGEST_FILE)
    except ERRORS as error:
        raise SourceError(
            f"{base}: cannot read {member} ({error}): is the file complete?"
        ) from error


def _function(entry: Any, where: str, language: Language, skips: Skips) -> SourceFunction:
    (code,) = texts(entry, ["code"], where)
    tokens, number, relations = entry.get("tokens"), entry.get("id"), entry.get("relns")
    if type(number) is not int or not 0 <= number < 2**63:
        raise SourceError(f"{where}: id is {number!r}, expected a whole number of at least 0")
    if not isinstance(tokens, list) or not all(
        isinstance(token, str) and encodable(token) for token in tokens
    ):
        raise SourceError(f"{where}, id {number}: tokens are not a list of texts")
    edges = _edges(relations, f"{where}, id {number}")
    located = locate(tokens, code, language.between_tokens)
    if located is None:
        skips.add("published tokens are not in the code", number)
        annotation = Annotation([], [])
    else:
        try:
            annotation = check(Annotation(located, edges), code)
        except CodeSyntaxError as error:
            raise SourceError(f"{where}, id {number}: {error}") from error
    first = language.first_validation_id
    partition = "test" if first is None or number < first else "validation"
    return SourceFunction(language.name, code, "", "", "", "", partition, number, annotation)


def _edges(relations: Any, where: str) -> list[Edge]:
    if not isinstance(relations, dict) or not all(
        isinstance(edges, list) for edges in relations.values()
    ):
        raise SourceError(f"{where}: relns is not an object of lists of [head, first, last]")
    edges = []
    for relation, triples in relations.items():
        for triple in triples:
            if not (
                isinstance(triple, list)
                and len(triple) == 3
                and all(type(index) is int for index in triple)
            ):
                raise SourceError(
                    f"{where}: {relation} has {triple!r}, expected [head, first, last]"
                )
            edges.append(Edge(relation, *triple))
    return edges


_UNICODE_ESCAPE = re.compile(
    r"\\u+([Dd][89ABab][0-9A-Fa-f]{2})\\u+([Dd][C-Fc-f][0-9A-Fa-f]{2})|\\u+([0-9A-Fa-f]{4})"
)


def locate(tokens: list[str], code: str, between: re.Pattern[str]) -> list[Token] | None:
    """The tokens with their offsets in `code`, or None if they do not occur there in this order.

    Tokens may be separated by anything that `between` matches. An empty token is placed at the
    start of the next non-empty one, or at the end of the code.
    """
    located, position = [], 0
    gap = _end_of(between, code, 0)  # start of the next token that is not white space
    for token in tokens:
        if not token:
            start = end = gap
        elif token.isspace():  # an indent or a line break, which lies within the gap
            start = code.find(token, position, gap)
            end = start + len(token)
            if start < 0:
                return None
        else:
            start, end = gap, _end(token, code, gap)
            if end < 0:
                return None
            gap = _end_of(between, code, end)
        located.append(Token(token, start, end))
        position = end
    return located


def _end_of(between: re.Pattern[str], code: str, position: int) -> int:
    match = between.match(code, position)
    return match.end() if match else position


def _end(token: str, code: str, position: int) -> int:
    """The offset after `token` at `position`, or -1 if it is not there; Java's Unicode escapes are
    understood."""
    if code.startswith(token, position):
        return position + len(token)
    for character in token:
        if code.startswith(character, position):
            position += 1
        elif (escape := _UNICODE_ESCAPE.match(code, position)) and _unescape(escape) == character:
            position = escape.end()
        else:
            return -1
    return position


def _unescape(escape: re.Match[str]) -> str:
    high, low, single = escape.groups()
    return chr(int(single, 16)) if single else bytes.fromhex(high + low).decode("utf-16-be")
