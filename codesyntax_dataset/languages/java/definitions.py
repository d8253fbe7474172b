"""The methods in a Java file, delimited as in CodeSearchNet."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter
import tree_sitter_java

from codesyntax_dataset.languages import bounded
from codesyntax_dataset.languages.language import Definition

_LANGUAGE = tree_sitter.Language(tree_sitter_java.language())

_TYPES = {
    "annotation_type_declaration",
    "class_declaration",
    "enum_declaration",
    "interface_declaration",
    "record_declaration",
}


def definitions(text: str) -> Iterator[Definition]:
    """The methods with a body in a file's classes, from the first modifier on.

    Raises SyntaxError where the file does not parse, and ParseError as `bounded.parse`.
    """
    tree = bounded.parse(_LANGUAGE, text.encode(), keep_text=False)
    if tree.root_node.has_error:
        raise SyntaxError("not Java")

    def methods(parent: tree_sitter.Node, prefix: str) -> Iterator[Definition]:
        for node in parent.named_children:
            if node.type in _TYPES:
                yield from methods(_field(node, "body"), f"{prefix}{_text(_field(node, 'name'))}.")
            elif node.type == "enum_body_declarations":
                yield from methods(node, prefix)
            elif node.type == "method_declaration" and node.child_by_field_name("body"):
                first, last = node.start_point.row + 1, node.end_point.row + 1
                yield Definition(f"{prefix}{_text(_field(node, 'name'))}", first, last, _text(node))

    return methods(tree.root_node, "")


def _field(node: tree_sitter.Node, name: str) -> tree_sitter.Node:
    field = node.child_by_field_name(name)
    assert field  # the grammar has one
    return field


def _text(node: tree_sitter.Node) -> str:
    assert node.text is not None  # the tree was parsed from bytes
    return node.text.decode()
