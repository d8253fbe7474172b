"""The functions in a source file, by the table of its language."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import tree_sitter

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import bounded
from codesyntax_dataset.languages.language import (
    UNREAD_FUNCTION,
    UNREAD_OUTSIDE,
    Definition,
    Unread,
)
from codesyntax_dataset.languages.tables.labels import grammar
from codesyntax_dataset.languages.tables.parts import Find, compiled
from codesyntax_dataset.languages.tables.table import Table


def definitions(text: str, table: Table) -> list[Definition | Unread]:
    """The named functions and methods of a file, in order, and what cannot be read; nested ones are
    part of the outer.

    Of several grammars, the first that reads the file, or the one that reads most of its functions,
    if need be without the words that the table calls `unread`. Raises ParseError as
    `bounded.parse`.
    """
    data = text.encode()
    plain = table.unread.sub(lambda word: b" " * len(word[0]), data) if table.unread else data
    readings: list[list[Definition | Unread]] = []
    grammars = dict.fromkeys(
        (table.file_grammar or table.grammar, *(dialect.grammar for dialect in table.dialects))
    )
    for name, source in product(grammars, dict.fromkeys((plain, data))):
        try:
            root = bounded.parse(grammar(name), source, keep_text=False).root_node
        except ParseError as wrong:
            unbounded = wrong
            continue
        readings.append(list(_defined(root, data, table)))
        if not root.has_error:
            return readings[-1]
    if not readings:
        raise unbounded
    return max(readings, key=_length_of_functions)


def _length_of_functions(reading: list[Definition | Unread]) -> int:
    return sum(len(definition.code) for definition in reading if isinstance(definition, Definition))


def _defined(
    root: tree_sitter.Node, data: bytes, table: Table, prefix: str = "", inside: bool = False
) -> Iterator[Definition | Unread]:
    """The definitions in a node, or only `inside` it."""
    functions = {node: compiled(path) for node, path in table.functions.items()}
    callbacks = {node: compiled(path) for node, path in table.callbacks.items()}
    scopes = {node: compiled(path) for node, path in table.scopes.items()}
    waiting = [(root, prefix)]
    while waiting:
        node, prefix = waiting.pop()
        first, last = node.start_point.row + 1, node.end_point.row + 1
        itself = not (inside and node == root)
        if name := _name(node, scopes, data):
            prefix += f"{name}."
        name = _name(node, functions, data) if itself else ""
        if not name and itself and (callback := _name(node, callbacks, data)):
            nested = list(_defined(node, data, table, prefix, inside=True))
            if nested:  # it is only the place where others are defined, such as a module or a suite of tests
                yield from nested
                continue
            name = callback
        if name:
            if node.has_error:
                yield Unread(UNREAD_FUNCTION, first)
            else:
                yield Definition(
                    prefix + name, first, last, data[node.start_byte : node.end_byte].decode()
                )
            continue
        if node.is_error or node.is_missing:
            yield Unread(UNREAD_OUTSIDE, first)
        children = node.children if node.has_error else node.named_children
        waiting += [(child, prefix) for child in reversed(children)]


def _name(node: tree_sitter.Node, paths: dict[str, Find], data: bytes) -> str:
    """The text of what the path for nodes of this type leads to: of its first node, or from the
    first to the last."""
    parts = paths[node.type](node) if node.type in paths else []
    if not parts:
        return ""
    whole = len(parts) == 2 and parts[1].type in ("string", "template_string")
    name = data[parts[0].start_byte : parts[whole].end_byte].decode()
    return f"{name})" if whole else name
