"""The notation in which a table says where the parts of a construct stand in the grammar's tree.

A path is a list of steps, joined by `/`; each leads from some nodes to others, in the order of the
text:

    condition   the nodes in this field of the node; an empty statement (`;`) without a name, too
    right+      the node in this field, and so on while it is of the same type: of `a = b = c` the
                last value
    *           the named children, and `_`, which grammars leave without a name
    *';'        the named children, and those that are this sign or keyword
    'else'      the children that are this sign or keyword; 'else elif': any of several
    :1          the named child after the first `:` and before the second; :0: that before the first
    ~           the following siblings
    ~','        those with a name, and those that are this sign or keyword
    ^           the parent
    .           the node itself

After a step, `<a|b>` keeps the nodes of these types, `<!a|b>` the others; `[name]` those that have
this field, `[!name]` the others; and `[0]`, `[-1]` or `[1:]` some by their place. The order counts:
`*[0]<a>` is the first child if it is an `a`, `*<a>[0]` the first `a`. Of paths joined by ` | ` the
first that leads anywhere counts; two joined by ` .. ` are a part that begins with the first node of
one and ends with the last of the other. Comments are no nodes here. A path before ` unless ` leads
nowhere where the one behind it leads anywhere. A relation between a part and itself leads from the
first of its nodes to the others.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import tree_sitter

Nodes = list[tree_sitter.Node]
Find = Callable[[tree_sitter.Node], Nodes]


COUNTED = frozenset({"text_interpolation"})
"""Nodes that grammars let stand anywhere, like comments, but are none."""

_STEP = re.compile(
    r"(?:(?P<field>[a-z_]+)(?P<again>\+)?|(?P<several>[*~])(?:'(?P<sign>[^']+)')?|'(?P<words>[^']+)'"
    r"|:(?P<colon>\d)|(?P<parent>\^)|(?P<itself>\.))"
    r"(?P<kept>(?:<!?[\w|]+>|\[(?:!?[a-z_]+|-?\d+:?)\])*)"
)
_KEPT = re.compile(
    r"<(?P<other>!)?(?P<types>[\w|]+)>|\[(?P<without>!)?(?P<having>[a-z_]+)\]|\[(?P<place>-?\d+)(?P<rest>:)?\]"
)

_SLASH = re.compile(r"/(?=(?:[^']*'[^']*')*[^']*$)")  # outside of quotes


@functools.cache
def compiled(part: str) -> Find:
    """The function that finds a part of a construct, given its node: nodes in the order of the
    text, or none.

    Raises ValueError for what is not in the notation.
    """
    if " | " in part:
        choices = [compiled(choice) for choice in part.split(" | ")]
        return lambda node: next((nodes for choice in choices if (nodes := choice(node))), [])
    if " unless " in part:
        path, *others = map(compiled, part.split(" unless "))
        return lambda node: [] if any(other(node) for other in others) else path(node)
    if " .. " in part:
        begin, end = (compiled(side) for side in part.split(" .. "))

        def both(node: tree_sitter.Node) -> Nodes:
            first, last = begin(node), end(node)
            return [first[0], last[-1]] if first and last else []

        return both
    steps: list[Find] = []
    to_children = False
    for step in _SLASH.split(part):
        if step == "^" and to_children:  # back; in deep trees, to ask for a parent takes long
            steps[-1] = _if_any(steps[-1])
        else:
            steps.append(_step(step))
        to_children = re.match(r"[~^.]|[a-z_]+\+", step) is None
    first, *others = steps
    if not others:
        return first

    def follow(node: tree_sitter.Node) -> Nodes:
        nodes = first(node)
        for step in others:
            nodes = [child for node in nodes for child in step(node)]
        return nodes

    return follow


def _step(text: str) -> Find:
    match = _STEP.fullmatch(text)
    if match is None or (match["words"] and re.search(r"\w\|\w", match["words"])):
        raise ValueError(
            f"{text!r} is not a step between nodes: see codesyntax_dataset/languages/tables/parts.py"
        )
    find = _found(match)
    for selector in _KEPT.finditer(match["kept"]):
        if selector["types"]:
            find = _of_types(find, frozenset(selector["types"].split("|")), bool(selector["other"]))
        elif selector["having"]:
            find = _having(find, selector["having"], bool(selector["without"]))
        else:
            index = int(selector["place"])
            find = _some(
                find,
                slice(index, None) if selector["rest"] or index == -1 else slice(index, index + 1),
            )
    return find


def _found(match: re.Match[str]) -> Find:
    """The function for a step without what selects some of its nodes."""
    if several := match["several"]:
        sign = match["sign"] or "_"
        return lambda node: _named(node.children if several == "*" else _following(node), sign)
    if field := match["field"]:
        if match["again"]:
            return lambda node: _innermost(node, field)
        return lambda node: _in_field(node, field)
    if match["words"]:
        words = frozenset(match["words"].split())
        return lambda node: [
            child for child in node.children if child.type in words and not child.is_named
        ]
    if match["colon"]:
        return lambda node: _between_colons(node, int(match["colon"]))
    if match["itself"]:
        return lambda node: [node]
    return lambda node: [node.parent] if node.parent else []


def _of_types(find: Find, types: frozenset[str], other: bool) -> Find:
    return lambda node: [child for child in find(node) if (child.type in types) != other]


def _having(find: Find, field: str, without: bool) -> Find:
    return lambda node: [
        child for child in find(node) if (child.child_by_field_name(field) is None) == without
    ]


def _if_any(find: Find) -> Find:
    return lambda node: [node for _ in find(node)]


def _some(find: Find, some: slice) -> Find:
    return lambda node: find(node)[some]


def named_children(node: tree_sitter.Node) -> Nodes:
    """The named children of a node, without comments."""
    return _named(node.children)


def _named(nodes: Nodes, sign: str = "_") -> Nodes:
    """Those with a name, and those that are this sign, without comments."""
    return [
        node
        for node in nodes
        if (node.is_named or node.type == sign) and (not node.is_extra or node.type in COUNTED)
    ]


def _innermost(node: tree_sitter.Node, field: str) -> Nodes:
    kind, child = node.type, node.child_by_field_name(field)
    while (
        child is not None
        and child.type == kind
        and (inner := child.child_by_field_name(field)) is not None
    ):
        child = inner
    return [child] if child is not None else []


def _in_field(node: tree_sitter.Node, field: str) -> Nodes:
    """The nodes in a field; an empty statement stands there alone."""
    children = node.children_by_field_name(field)
    named = [child for child in children if child.is_named or child.type == "_"]
    return named or [child for child in children if child.type == ";"]


def _between_colons(node: tree_sitter.Node, number: int) -> Nodes:
    nodes, colons = [], 0
    for child in node.children:
        if child.type == ":":
            colons += 1
        elif colons == number and child.is_named and not child.is_extra:
            nodes.append(child)
    return nodes


def _following(node: tree_sitter.Node) -> Nodes:
    nodes = []
    while (sibling := node.next_sibling) is not None:
        node = sibling
        nodes.append(node)
    return nodes
