"""The functions in a source file, by the table of its language."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter

from codesyntax_dataset.languages import bounded
from codesyntax_dataset.languages.language import Definition
from codesyntax_dataset.languages.tables.labels import grammar
from codesyntax_dataset.languages.tables.parts import Find, compiled
from codesyntax_dataset.languages.tables.table import Table


def definitions(text: str, table: Table) -> Iterator[Definition]:
    """The named functions and methods of a file, in order; nested ones are part of the outer one.

    Raises SyntaxError where the file does not parse, and ParseError as `bounded.parse`.
    """
    data = text.encode()
    root = bounded.parse(grammar(table.file_grammar or table.grammar), data, keep_text=False).root_node
    if root.has_error:
        raise SyntaxError(f"not code that {table.grammar} reads")
    functions = {node: compiled(path) for node, path in table.functions.items()}
    scopes = {node: compiled(path) for node, path in table.scopes.items()}
    waiting = [(root, "")]
    while waiting:
        node, prefix = waiting.pop()
        if (find := functions.get(node.type)) and (name := _name(node, find, data)):
            first, last = node.start_point.row + 1, node.end_point.row + 1
            yield Definition(prefix + name, first, last, data[node.start_byte : node.end_byte].decode())
            continue
        if (find := scopes.get(node.type)) and (name := _name(node, find, data)):
            prefix += f"{name}."
        waiting += [(child, prefix) for child in reversed(node.named_children)]


def _name(node: tree_sitter.Node, find: Find, data: bytes) -> str:
    return "".join(data[found.start_byte : found.end_byte].decode() for found in find(node)[:1])
