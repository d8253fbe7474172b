"""From a table to the record of a language."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from codesyntax_dataset.languages.language import Definition, Language, Unread, Variant
from codesyntax_dataset.languages.tables.table import Table
from codesyntax_dataset.languages.variants import EXACT, INTERPOLATED
from codesyntax_dataset.schema import Annotation, Token

Annotate = Callable[[str, str], Annotation]
Tokenize = Callable[[str, str], list[Token]]


_BY_TABLE = (EXACT.name, INTERPOLATED.name)


def language_by(table: Table, **facts: Any) -> Language:
    """The record of a language whose labels are exact, by a table; `facts` are further fields of
    the record."""

    return Language(
        variants=exact_by(table),
        relations=table.relations,
        unparsed="does not parse",
        annotate=annotate_by(table),
        tokenize=tokenize_by(table),
        definitions=definitions_by(table),
        grammar=table.grammar,
        dialects=table.dialects,
        frames=table.frames,
        **facts,
    )


def exact_by(table: Table) -> tuple[Variant, ...]:
    """The variants of exact labels: their relations are those of the table, whatever the other
    variants have."""
    variants = (EXACT, INTERPOLATED) if table.interpolated else (EXACT,)
    return tuple(replace(variant, relations=table.relations) for variant in variants)


def annotate_by(table: Table, published: Annotate | None = None) -> Annotate:
    """A function that labels by the table; with `published`, that labels the other variants."""
    labels = _labels(table)
    return lambda code, variant: (
        published(code, variant)
        if published and variant not in _BY_TABLE
        else labels().annotate(code, interpolated=variant == INTERPOLATED.name)
    )


def tokenize_by(table: Table, published: Tokenize | None = None) -> Tokenize:
    """A function that finds tokens by the table; with `published`, that finds those of the other
    variants."""
    labels = _labels(table)
    return lambda code, variant: (
        published(code, variant)
        if published and variant not in _BY_TABLE
        else labels().tokenize(code, interpolated=variant == INTERPOLATED.name)
    )


def definitions_by(table: Table) -> Callable[[str], Iterable[Definition | Unread]]:
    """A function that finds the functions in a source file by the table."""

    def definitions(text: str) -> Iterable[Definition | Unread]:
        from codesyntax_dataset.languages.tables.definitions import definitions

        return definitions(text, labels())

    labels = _labels(table)
    return definitions


def _labels(table: Table) -> Callable[[], Any]:
    """The labels by a table, made on the first call, because parsers load slowly."""

    @functools.cache
    def made() -> Any:
        from codesyntax_dataset.languages.tables.labels import Labels

        return Labels(table)

    return made
