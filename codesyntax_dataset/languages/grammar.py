"""The tree-sitter grammar of a language: its trees, and the names of its node types."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import tree_sitter

from codesyntax_dataset.errors import ArgumentError, ParseError, UnknownName
from codesyntax_dataset.languages import LANGUAGES, bounded
from codesyntax_dataset.languages.tables.labels import grammar

ERROR = "ERROR"
"""The type of a node around what the grammar cannot read; no grammar lists it."""


@functools.cache
def grammar_of(language: str) -> tree_sitter.Language:
    """The grammar of a language in LANGUAGES.

    Raises UnknownName for an unknown language, ArgumentError if it has no grammar, or one that is
    not installed.
    """
    if language not in LANGUAGES:
        raise UnknownName("language", language, LANGUAGES)
    name = LANGUAGES[language].grammar
    if name is None:
        others = ", ".join(name for name, record in LANGUAGES.items() if record.grammar)
        raise ArgumentError(
            f"{language} has no grammar, so its code has no nodes; these languages have one: {others}"
        )
    try:
        return grammar(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        raise ArgumentError(
            f"the grammar of {language} is not installed: pip install {package}"
        ) from error


@functools.cache
def node_types(language: str) -> tuple[str, ...]:
    """The names of all types that a node can have: those with a name, then those of signs and
    keywords, and ERROR."""
    kinds = {
        (not known.node_kind_is_named(kind), known.node_kind_for_id(kind))
        for known in (grammar_of(language), *_dialects(language))
        for kind in range(known.node_kind_count)
        if known.node_kind_is_visible(kind)
    }
    return (ERROR, *dict.fromkeys(name for _, name in sorted(kinds, key=str) if name))


def checked_node_types(language: str, names: Iterable[str] | None = None) -> list[str]:
    """The node types of these names, by default those that are masked in the language, without
    repetitions.

    Raises UnknownName, which suggests the nearest, for a name that is not in the grammar.
    """
    known = node_types(language)
    chosen = list(dict.fromkeys(LANGUAGES[language].node_types if names is None else names))
    for name in chosen:
        if name not in known:
            raise UnknownName(
                f"{language} node type", name, (name for name in known if name.isidentifier())
            )
    return chosen


def parse(code: str, language: str) -> tree_sitter.Tree:
    """The tree of some code, with ERROR nodes where it does not parse; positions are those of its
    UTF-8 bytes.

    Code that the grammar cannot read is read by the dialects of the language, if one can. Raises
    ParseError for a lone surrogate, which has no UTF-8 bytes, and as `bounded.parse`.
    """
    try:
        data = code.encode()
    except UnicodeEncodeError as error:
        before = code[: error.start]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
        raise ParseError("a lone surrogate, half of a character", line, column) from None
    return bounded.parse_by([grammar_of(language), *_dialects(language)], data)


def parse_framed(code: str, language: str) -> tuple[tree_sitter.Tree, int]:
    """The tree of a function in the first frame in which it parses, or the last one, and the bytes
    before it there."""
    record = LANGUAGES[language]
    framed = [
        (dialect.grammar, frame) for dialect in record.dialects for frame in dialect.frames or ()
    ]
    for before, after in record.frames:
        tree = parse(before + code + after, language)
        if not tree.root_node.has_error:
            return tree, len(before.encode())
    for name, (before, after) in framed:
        tree = bounded.parse(grammar(name), (before + code + after).encode())
        if not tree.root_node.has_error:
            break
    return tree, len(before.encode())


def _dialects(language: str) -> list[tree_sitter.Language]:
    """The grammars that read what has the form of what the language's own reads."""
    return [
        grammar(dialect.grammar) for dialect in LANGUAGES[language].dialects if not dialect.frames
    ]
