"""The methods in a Java file, delimited as in CodeSearchNet, and the constructors, which it leaves
out."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter
import tree_sitter_java

from codesyntax_dataset.languages import bounded
from codesyntax_dataset.languages.language import (
    UNREAD_FUNCTION,
    UNREAD_OUTSIDE,
    Definition,
    Unread,
)

_LANGUAGE = tree_sitter.Language(tree_sitter_java.language())

_TYPES = {
    "annotation_type_declaration",
    "class_declaration",
    "enum_declaration",
    "interface_declaration",
    "record_declaration",
}

_CONSTRUCTOR = "constructor_declaration"


def definitions(text: str) -> Iterator[Definition | Unread]:
    """The methods and constructors with a body in a file's types, from the first modifier on, and
    what cannot be read.

    Raises ParseError as `bounded.parse`.
    """
    data = text.encode()

    def methods(parent: tree_sitter.Node, prefix: str) -> Iterator[Definition | Unread]:
        for node in parent.children:
            first, last = node.start_point.row + 1, node.end_point.row + 1
            name = _text(node.child_by_field_name("name"))
            if node.type in _TYPES:
                yield from methods(node.child_by_field_name("body") or node, f"{prefix}{name}.")
            elif node.type == "enum_body_declarations":
                yield from methods(node, prefix)
            elif node.type in ("method_declaration", _CONSTRUCTOR) and node.child_by_field_name(
                "body"
            ):
                if node.has_error:
                    yield Unread(UNREAD_FUNCTION, first)
                else:
                    yield Definition(
                        f"{prefix}{name}", first, last, _text(node), node.type == _CONSTRUCTOR
                    )
            elif node.has_error or node.is_missing:
                yield Unread(UNREAD_OUTSIDE, first)
                yield from methods(node, prefix)

    def _text(node: tree_sitter.Node | None) -> str:
        return data[node.start_byte : node.end_byte].decode() if node else ""

    return methods(bounded.parse(_LANGUAGE, data, keep_text=False).root_node, "")
