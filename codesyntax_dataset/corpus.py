"""From a source to annotated rows: which functions are included, under which id, and which are left
out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from codesyntax_dataset import safe_files, sources, twins
from codesyntax_dataset.edits import edit
from codesyntax_dataset.errors import (
    CodeSyntaxError,
    DatasetError,
    EditError,
    ParseError,
    SourceError,
)
from codesyntax_dataset.languages import LANGUAGES, Variant, annotate, language_of, tokenize
from codesyntax_dataset.safe_files import LARGEST_SOURCE, LONGEST_FUNCTION
from codesyntax_dataset.schema import Annotation, Skips, SourceFunction, check
from codesyntax_dataset.sources.text import decode, parse_json, texts

UNPARSED = "does not parse"

LARGEST_LIST = 1 << 30  # bytes, of repositories to exclude


def read(
    source: str,
    config: str,
    skips: Skips,
    excluded: Collection[str] = (),
    validation_fraction: float | None = None,
    column: str | None = None,
) -> Iterator[SourceFunction]:
    """The functions of `config`, each with its id, as the source yields them: those of the test
    partition first.

    `validation_fraction` and `column` are as in `codesyntax_dataset.sources`. Functions of the
    repositories `excluded` are left out first; all that are left out are counted in `skips`. Ids
    then count from 0 through the test partition and continue through the validation partition, as
    in the published dataset; functions that come with an id keep it. Raises SourceError if the
    source cannot be read, has no functions of the language, or repeats an id.
    """
    number = size = 0
    seen: set[int] = set()  # of ids that come with the functions
    for function in sources.read(source, config, skips, validation_fraction, column):
        if excluded and not function.repo:
            raise SourceError(
                f"{source} does not name the repository of a function, so none can be excluded"
            )
        if function.repo in excluded:
            skips.add("repository is excluded", function.url)
            continue
        if len(function.code) > LONGEST_FUNCTION:
            skips.add(f"longer than {LONGEST_FUNCTION:,} characters", function.url)
            continue
        size += len(function.code)
        if size > LARGEST_SOURCE:
            raise SourceError(
                f"{source} has more than {LARGEST_SOURCE:,} characters of code: build from a part of it"
            )
        if function.id is None:
            function = replace(function, id=number)
        elif function.id in seen:
            raise SourceError(f"{source}: id {function.id} occurs twice")
        else:
            seen.add(function.id)
        number += 1
        yield function
    if not number:
        left_out = "; ".join(
            f"{reason}: {count}, first {skips.names[reason][0]}"
            for reason, count in skips.counts.items()
        )
        language = language_of(config)
        raise SourceError(
            f"{source} has no {language.name} {language.units} (left out: {left_out or 'none'})"
        )


def read_repositories(file: str | os.PathLike[str]) -> frozenset[str]:
    """The names in a list of repositories: one `owner/name` a line, or JSON lines with a field
    `repository`.

    The latter are the manifests of CuBERT's pre-training data. Raises SourceError naming file and
    line.
    """
    try:
        lines = safe_files.read(file, LARGEST_LIST).splitlines()
    except OSError as error:
        raise SourceError(f"{file}: cannot be read ({error.strerror})") from error
    names = set()
    for number, line in enumerate(lines, start=1):
        if line.startswith(b"{"):
            names.update(
                texts(parse_json(line, str(file), number), ["repository"], f"{file}, line {number}")
            )
        elif name := decode(line, str(file), number).strip():
            names.add(name)
    return frozenset(names)


class Unlabelled(NamedTuple):
    """Why a function has no labels, and where in it, or empty."""

    reason: str
    where: str = ""


def label(
    function: SourceFunction, variant: Variant
) -> tuple[SourceFunction, Annotation, Unlabelled | None]:
    """A function as its config has it, its labels, and the reason if it has none.

    Without labels it keeps its code, and its tokens, if it can be tokenized; so does one of which
    an edit does not keep the labels. Raises DatasetError, naming the function, for labels that do
    not match its code.
    """
    try:
        annotation, reason = _annotate(function, variant.name)
        if variant.edit and annotation.edges:
            try:
                code, annotation = edit(
                    function.code, function.language, variant.edit, variant.name
                )
                function = replace(function, code=code)
            except EditError as error:
                annotation = Annotation(annotation.tokens, [])
                reason = Unlabelled(f"not edited, because {error}")
        return function, check(annotation, function.code), reason
    except CodeSyntaxError as error:
        raise DatasetError(
            f"{function.language} function {function.id} ({function.url}): {error}"
        ) from error


def _annotate(function: SourceFunction, variant: str) -> tuple[Annotation, Unlabelled | None]:
    if function.annotation is not None:
        return function.annotation, None
    try:
        return annotate(function.code, function.language, variant), None
    except ParseError as error:
        where = f"line {error.line}"
    language = LANGUAGES[function.language]
    exact = any(each.exact and each.name == variant for each in language.variants)
    unparsed = UNPARSED if exact else language.unparsed
    try:
        return Annotation(tokenize(function.code, function.language, variant), []), Unlabelled(
            unparsed, where
        )
    except ParseError:
        return Annotation([], []), Unlabelled(f"{unparsed}, and its tokens are unknown", where)


def to_row(function: SourceFunction, annotation: Annotation) -> dict[str, Any]:
    """The row of the dataset for a function and its labels."""
    return {
        "id": function.id,
        "code": function.code,
        "tokens": [token.text for token in annotation.tokens],
        "token_start": [token.start for token in annotation.tokens],
        "token_end": [token.end for token in annotation.tokens],
        "relations": [edge._asdict() for edge in annotation.edges],
        "repo": function.repo,
        "path": function.path,
        "func_name": function.func_name,
        "url": function.url,
        "language": function.language,
        twins.COLUMN: function.id,  # until the functions before it are known
    }
