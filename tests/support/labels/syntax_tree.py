"""The tree of code by the grammar of its language, with the names of fields, as a table refers to them.

python tests/support/labels/syntax_tree.py rust FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

import tree_sitter

from codesyntax_dataset.languages.grammar import parse


def show(node: tree_sitter.Node, depth: int = 0, field: str | None = None) -> None:
    kind = node.type if node.is_named else repr(node.type)
    text = "" if node.children else f"   {(node.text or b'').decode()}" * node.is_named
    print("    " * depth + (f"{field}: " if field else "") + kind + text)
    for index, child in enumerate(node.children):
        show(child, depth + 1, node.field_name_for_child(index))


if __name__ == "__main__":
    show(parse(Path(sys.argv[2]).read_text("utf-8"), sys.argv[1]).root_node)
