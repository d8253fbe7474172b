"""Other distances: what is put between a head and its dependent, so that no fixed offset leads from
one to the other.

Brackets alone do most of it. Arguments and statements are put in behind others, where few relations
with a usual offset reach across them, and a statement in front would be where its block begins.
"""

from __future__ import annotations

import tree_sitter

from codesyntax_dataset.edits.changes import Change
from codesyntax_dataset.edits.function import Function
from codesyntax_dataset.edits.words import some_words

MOST_BRACKETS, MOST_ARGUMENTS, MOST_STATEMENTS = 3, 3, 5


def brackets(function: Function) -> list[Change]:
    """Up to MOST_BRACKETS pairs of redundant brackets around every expression that may have
    them."""
    editing = function.editing
    opening, closing = [], []
    bare = {node.start_byte for node in function.nodes if _has_field(node, editing.bare)}
    for parent in function.nodes:
        for index, node in enumerate(parent.children):
            field = parent.field_name_for_child(index) or "*"
            start, end = function.span(node)
            if (
                node.type in editing.expressions
                and f"{parent.type}.{field}" in editing.bracketed
                and node.type != parent.type  # brackets in a chain of operators would regroup it
                and node.start_point.row
                == node.end_point.row  # line breaks matter outside of brackets alone
                and end < function.end
                and node.start_byte not in bare
            ):
                number = function.draws.below(MOST_BRACKETS + 1)
                if (
                    editing.cast
                    and (cast := editing.cast.match(function.code, start))
                    and cast.end() == end
                ):
                    number = 0
                closing.append(Change(end, end, ")" * number))
                opening.append(Change(start, start, "(" * number))
    return closing + opening


def _has_field(node: tree_sitter.Node, names: frozenset[str]) -> bool:
    for name in names:
        kind, _, field = name.partition(".")
        if node.type == kind and (node.child_by_field_name(field) or _has_child(node, field)):
            return True
    return False


def _has_child(node: tree_sitter.Node, kind: str) -> bool:
    return any(child.type == kind for child in node.children)


def distance(function: Function) -> list[Change]:
    """Brackets, arguments and statements."""
    return brackets(function) + _arguments(function) + _statements(function)


def _arguments(function: Function) -> list[Change]:
    """One to MOST_ARGUMENTS further arguments behind the first of every call that has one."""
    calls = [
        node
        for node in function.nodes
        if node.type in function.editing.arguments and node.named_children
    ]
    # the last token of a call's first argument is the head of some relations
    heads = {node.named_children[0].end_byte for node in calls if len(node.named_children) > 1}
    changes = []
    for node in calls:
        argument = node.named_children[0]
        start, end = function.span(argument)
        text = function.code[start:end]
        if (
            argument.type in function.editing.expressions
            and node.end_byte not in heads
            and not any(
                other.type in function.editing.keywords for other in node.named_children[1:2]
            )
            and not _ends_empty(text)
            and "\n" not in text
        ):
            words = some_words(function, 1 + function.draws.below(MOST_ARGUMENTS))
            changes.append(Change(end, end, "".join(f", {word}" for word in words)))
    return changes


def _statements(function: Function) -> list[Change]:
    """One to MOST_STATEMENTS statements that do nothing behind every statement of a block that may
    have them."""
    editing = function.editing
    changes = []
    for block in function.nodes:
        if block.type in editing.blocks:
            for node in block.named_children:
                start, end = function.span(node)
                if (
                    node.type not in editing.alone
                    and end < function.end
                    and not _ends_empty(function.code[start:end])
                ):
                    changes.append(
                        Change(
                            end, end, editing.no_op * (1 + function.draws.below(MOST_STATEMENTS))
                        )
                    )
    return changes


def _ends_empty(text: str) -> bool:
    """True if it ends with empty brackets: labels take these for its end, or do without an end."""
    return text.rstrip(")]} \t\r\n")[-1:] in ("(", "[", "{")
