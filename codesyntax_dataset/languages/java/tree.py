"""The syntax tree behind the published Java labels, derived from tree-sitter's.

The published labels (Shen et al. 2022, section 3) were read from the tree of the Eclipse Java
development tools (JDT) at language level JLS3, which is Java 5. `unfold` gives the same tree, one
node at a time, so that no nesting is too deep. A node with the same start and end as its only child
may be missing, because no edge depends on it. `raw` is always a node of tree-sitter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import tree_sitter

from codesyntax_dataset.languages.java.parse import COMMENTS, children_of

LEAVES = {
    *(
        "identifier",
        "type_identifier",
        "this",
        "true",
        "false",
        "null_literal",
        "string_literal",
        "character_literal",
    ),
    *(
        "decimal_integer_literal",
        "hex_integer_literal",
        "octal_integer_literal",
        "decimal_floating_point_literal",
    ),
    *("void_type", "boolean_type", "integral_type", "floating_point_type"),
    *("lambda_expression", "method_reference", "switch_expression"),  # later than Java 5
}
"""Nodes without children, even if tree-sitter has some."""

TRANSPARENT = {
    *(
        "argument_list",
        "type_arguments",
        "type_parameters",
        "type_bound",
        "formal_parameters",
        "throws",
    ),
    *("superclass", "super_interfaces", "extends_interfaces", "type_list", "finally_clause"),
    "annotation_argument_list",
}
"""Nodes that the JDT does not have; they are replaced by their children."""

ABSENT = COMMENTS | {
    "super",
    "dimensions",
    "resource_specification",
    "receiver_parameter",
    "permits",
}
"""Nodes that the JDT does not have, nor their children."""


class Node(NamedTuple):
    """A node of the tree, not yet unfolded: `content` is tree-sitter's node, or the children if
    they are known."""

    type: str  # tree-sitter's, or one of our own
    start: int
    end: int
    content: tree_sitter.Node | list[Node]

    @property
    def raw(self) -> tree_sitter.Node:
        """The node of tree-sitter; only for nodes whose content is not a list of children."""
        assert isinstance(self.content, tree_sitter.Node)
        return self.content

    @property
    def held(self) -> list[Node]:
        """The children of a node that tree-sitter does not have."""
        assert isinstance(self.content, list)
        return self.content


class Inside(NamedTuple):
    """A node unfolded. `parts` are the ends of relations, by their names in the relations."""

    children: list[Node]
    jdt_class: str | None = None  # if it has relations
    parts: Mapping[str, Node] = MappingProxyType({})


def unfold(node: Node) -> Inside:
    """The children and parts of a node."""
    if node.type in LEAVES:
        return _NOTHING
    if node.type in _UNFOLD:
        return _UNFOLD[node.type](node)
    return Inside(
        node.content if isinstance(node.content, list) else _nodes(node.content.named_children)
    )


_NOTHING = Inside([])


def node_of(raw: tree_sitter.Node) -> Node:
    return Node(raw.type, raw.start_byte, raw.end_byte, raw)


def _nodes(raws: Iterable[tree_sitter.Node]) -> list[Node]:
    """The JDT's nodes among the named children: for most nodes, all children."""
    children = []
    for raw in raws:
        kind = raw.type
        if kind in TRANSPARENT:
            children += _nodes(raw.named_children)
        elif kind == "modifiers":
            children += map(node_of, children_of(raw))
        elif kind not in ABSENT:
            children.append(Node(kind, raw.start_byte, raw.end_byte, raw))
    return children


def _all(nodes: list[Node]) -> Node:
    """The span of a list of nodes, as a part of relations."""
    return Node("list", nodes[0].start, nodes[-1].end, nodes)


def _condition(parenthesized: tree_sitter.Node) -> Node:
    """The condition of a statement, whose brackets belong to the statement."""
    return _nodes(parenthesized.named_children)[0]


def _first_child(node: Node) -> Inside:
    return Inside(_nodes(node.raw.named_children)[:1])


# Declarations


def _with_javadoc(raws: Iterable[tree_sitter.Node]) -> Iterator[tuple[int, tree_sitter.Node]]:
    """All children except comments, with their start, which includes a Javadoc comment directly
    before."""
    javadoc = None
    for raw in raws:
        if raw.type not in COMMENTS:
            yield raw.start_byte if javadoc is None else javadoc, raw
            javadoc = None
        elif raw.text and raw.text.startswith(b"/**") and raw.text != b"/**/":
            javadoc = raw.start_byte


def _members(class_body: tree_sitter.Node) -> list[Node]:
    """The members of a class. Semicolons between them do not count, and the JDT drops annotation
    types."""
    return [
        Node(raw.type, start, raw.end_byte, raw)
        for start, raw in _with_javadoc(class_body.children)
        if raw.is_named and raw.type != "annotation_type_declaration"
    ]


def _anonymous_class(node: Node) -> Inside:
    return Inside(_members(node.raw))


def _class(node: Node) -> Inside:
    *header, body = _nodes(node.raw.named_children)
    return Inside(header + _members(body.raw))


# Statements


def _statement(raw: tree_sitter.Node) -> Node:
    """A statement. To tree-sitter `switch (x) { };` is an expression and its semicolon, to Java two
    statements."""
    if raw.type == "expression_statement" and raw.children[0].type == "switch_expression":
        raw = raw.children[0]
    kind = "switch_statement" if raw.type == "switch_expression" else raw.type
    return Node(kind, raw.start_byte, raw.end_byte, raw)


def _statements(raws: Iterable[tree_sitter.Node]) -> list[Node]:
    """The statements among the children of a block. The JDT drops local interfaces."""
    statements = []
    for start, raw in _with_javadoc(raws):
        if raw.type not in {"{", "}", "interface_declaration", "annotation_type_declaration"}:
            statement = _statement(raw)
            if _takes_javadoc(raw):
                statement = statement._replace(start=start)
            statements.append(statement)
            if statement.end < raw.end_byte:
                statements.append(node_of(raw.children[-1]))
    return statements


def _takes_javadoc(statement: tree_sitter.Node) -> bool:
    """True if the JDT attaches a Javadoc comment: to classes, and to variables with modifiers that
    are not arrays."""
    if statement.type == "local_variable_declaration":
        first, second, *_ = children_of(statement)
        return first.type == "modifiers" and second.type != "array_type"
    return statement.type == "class_declaration"


def _block(node: Node) -> Inside:
    return Inside(_statements(node.raw.children))


def _constructor_invocation(node: Node) -> Inside:
    constructor = children_of(node.raw)[-3]  # this or super, before the arguments and the semicolon
    return Inside(
        [
            child
            for child in _nodes(node.raw.named_children)
            if child.start != constructor.start_byte
        ]
    )


def _if(node: Node) -> Inside:
    _, condition, statement, *otherwise = children_of(node.raw)
    test, body = _condition(condition), _statement(statement)
    children, parts = [test, body], {"if": node, "test": test, "body": body}
    if otherwise:
        keyword, alternative = otherwise
        parts |= {"else": node_of(keyword), "orelse": _statement(alternative)}
        children.append(parts["orelse"])
    return Inside(children, "IfStatement", parts)


def _while(node: Node) -> Inside:
    _, condition, statement = children_of(node.raw)
    test, body = _condition(condition), _statement(statement)
    return Inside([test, body], "WhileStatement", {"while": node, "test": test, "body": body})


def _do(node: Node) -> Inside:
    _, statement, _, condition, _ = children_of(node.raw)
    body, test = _statement(statement), _condition(condition)
    return Inside([body, test], "DoStatement", {"do": node, "body": body, "test": test})


def _for(node: Node) -> Inside:
    _, _, *header, _, statement = children_of(node.raw)
    sections: list[list[Node]] = [[]]
    for raw in header:
        if raw.type == "local_variable_declaration":  # has the semicolon; the JDT ends before it
            *_, last = _nodes(raw.named_children)
            sections = [[Node(raw.type, raw.start_byte, last.end, raw)], []]
        elif raw.type == ";":
            sections.append([])
        elif raw.type != ",":
            sections[-1].append(node_of(raw))
    body = _statement(statement)
    parts = {"for": node, "body": body}
    parts |= {
        name: _all(nodes)
        for name, nodes in zip(("initializers", "test", "updaters"), sections)
        if nodes
    }
    return Inside([*(node for nodes in sections for node in nodes), body], "ForStatement", parts)


def _enhanced_for(node: Node) -> Inside:
    _, _, *variable, _, value, _, body = children_of(node.raw)
    parameter = Node(
        "formal_parameter", variable[0].start_byte, variable[-1].end_byte, _nodes(variable)
    )
    return Inside([parameter, node_of(value), _statement(body)])


def _labeled(node: Node) -> Inside:
    name, _, statement = children_of(node.raw)
    label, body = node_of(name), _statement(statement)
    return Inside([label, body], "LabeledStatement", {"label": label, "body": body})


def _synchronized(node: Node) -> Inside:
    _, lock, block = children_of(node.raw)
    return Inside([_condition(lock), node_of(block)])


def _try(node: Node) -> Inside:
    body, *others = children = _nodes(node.raw.named_children)
    handlers = [child for child in others if child.type == "catch_clause"]
    parts = {"body": body}
    if handlers:
        parts["handler"] = _all(handlers)
    if len(others) > len(handlers):
        parts["finalbody"] = others[-1]
    return Inside(children, "TryStatement", parts)


def _switch(node: Node) -> Inside:
    """Labels and statements form one flat list; an empty one has no relations."""
    _, condition, block = children_of(node.raw)
    expression = _condition(condition)
    statements: list[Node] = []
    for group in block.named_children:
        raws: list[tree_sitter.Node] = []
        for raw in group.children:
            if raw.type == "switch_label":
                label = raw
            elif raw.type in {":", "->"}:
                statements.append(Node("switch_label", label.start_byte, raw.end_byte, label))
                raws = []  # a comment before the colon does not belong to what follows
            elif raw.type == "expression_statement" and group.type == "switch_rule":
                # later than Java 5
                statements.append(Node("empty_statement", raw.start_byte, raw.end_byte, []))
            else:
                raws.append(raw)
        statements += _statements(raws)
    if not statements:
        return Inside([expression])
    parts = {"switch": node, "expr": expression, "statement": _all(statements)}
    return Inside([expression, *statements], "SwitchStatement", parts)


# Expressions


def _expression(jdt_class: str, **places: int) -> Callable[[Node], Inside]:
    """The operands and operators of an expression whose parts are at these positions among
    operators and brackets."""

    def unfold_parts(node: Node) -> Inside:
        raws = children_of(node.raw)
        parts = {name: node_of(raws[index]) for name, index in places.items()}
        return Inside([*parts.values()], jdt_class, parts)

    return unfold_parts


def _method_invocation(node: Node) -> Inside:
    *before, name, arguments = children_of(node.raw)
    qualifiers = _nodes([raw for raw in before if raw.is_named])  # the object, type arguments
    function, args = node_of(name), _nodes(arguments.named_children)
    children = [*qualifiers, function, *args]
    if any(raw.type == "super" for raw in before):
        return Inside(children)  # a separate class in the JDT
    parts = {"func": function, "attr": function}
    if args:
        parts["args"] = _all(args)
    if qualifiers:
        parts["value"] = qualifiers[0]
    return Inside(children, "MethodInvocation", parts)


def _field_access(node: Node) -> Inside:
    children = _nodes(node.raw.named_children)
    # `A.this` has the qualifier only
    return Inside(children[:-1] if children[-1].type == "this" else children)


def _array_creation(node: Node) -> Inside:
    """The type goes up to the last bracket, and the sizes inside it are children of the creation
    itself."""
    brackets = [
        raw for raw in node.raw.named_children if raw.type in {"dimensions", "dimensions_expr"}
    ]
    sizes = [size for raw in brackets for size in _nodes(raw.named_children)]
    element, *initializer = [
        child for child in _annotated_type(node).children if child.type != "dimensions_expr"
    ]
    array = Node("array_type", element.start, brackets[-1].end_byte, [element])
    return Inside([array, *sizes, *initializer])


def _annotated_type(node: Node) -> Inside:
    """The content of a node whose type may be annotated: the node starts at the annotations, which
    are not nodes."""
    children, start = [], None
    for child in _nodes(node.raw.named_children):
        if child.type in {"annotation", "marker_annotation"}:
            start = child.start if start is None else start
        else:
            children.append(child if start is None else child._replace(start=start))
            start = None
    return Inside(children)


# Operators


def _operators(node: Node) -> Inside:
    if not isinstance(node.content, list):
        node = _regroup(_in_text_order(node.content))
    if node.type != _INFIX:
        return Inside(node.held)
    left, right, *_ = node.held
    return Inside(node.held, "InfixExpression", {"left": left, "right": right})


_INFIX = "binary_expression"
_PREFIXES = {"+", "-", "!", "~", "++", "--"}
_PRECEDENCE = {
    operator: level
    for level, operators in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >> >>>", "+ -", "* / %"),
    )
    for operator in operators.split()
}


class _Operand(NamedTuple):
    """An operand, itself perhaps a binary expression without brackets and with this operator."""

    node: Node
    operator: str | None = None
    may_grow: bool = False  # takes another operand after the same operator


def _in_text_order(raw: tree_sitter.Node) -> list[tree_sitter.Node]:
    """Operands and operators from left to right; a cast is represented by its type, before its
    operand."""
    items, waiting = [], [raw]
    while waiting:
        item = waiting.pop()
        if item.type in {"binary_expression", "unary_expression", "update_expression"}:
            waiting += reversed(children_of(item))
        else:
            items.append(item)
            if item.type == "cast_expression":
                waiting.append(children_of(item)[-1])
    return items


def _regroup(items: list[tree_sitter.Node]) -> Node:
    """The tree of operands and operators by Java's rules of precedence.

    tree-sitter's own is wrong: it takes `(int) i++` for `((int) i)++`, `-i++` for `(-i)++` and, in
    some contexts, `(a.b) - c * d` for a cast of `-c` that is multiplied by `d`.
    """
    operands: list[_Operand] = []
    operators: list[str] = []

    def join_down_to(level: int) -> None:
        while operators and _PRECEDENCE[operators[-1]] >= level:
            right = operands.pop()
            operands.append(_join(operands.pop(), operators.pop(), right))

    def operate(operand: Node) -> None:
        operands.append(_Operand(_with_prefixes(prefixes, operand)))
        prefixes.clear()

    prefixes: list[tree_sitter.Node] = []
    operand: Node | None = None
    for item, following in zip(items, [*items[1:], None]):
        if operand is None:
            if item.type == "cast_expression" and _is_name_in_brackets(item, following):
                operand = _name_in_brackets(item)
            elif item.type in _PREFIXES or item.type == "cast_expression":
                prefixes.append(item)
            else:
                operand = node_of(item)
        elif item.type in {"++", "--"}:
            operand = Node("update_expression", operand.start, item.end_byte, [operand])
        else:
            operate(operand)
            join_down_to(_PRECEDENCE[item.type])
            operators.append(item.type)
            operand = None
    assert operand  # tree-sitter has one after each operator
    operate(operand)
    join_down_to(0)
    return operands[0].node


def _join(left: _Operand, operator: str, right: _Operand) -> _Operand:
    """`left operator right` as in the JDT.

    `a + b + c` is one node of three operands, but only if every operator on the way down the left
    side is the same and no right operand, except the last, is itself a binary expression. `==` and
    `!=` always have two operands. Before that, a run of string literals at the left end is merged
    into one operand. The run is split again if exactly one operand follows, so `"a" + "b" + c` has
    three operands; in `"a" + "b" + c + d` the run is the first of three.
    """
    if operator == "+":
        run = _string_literals(left)
        if run and right.node.type == "string_literal":
            return _Operand(_infix([*run, right.node]))
        if len(run) > 1:
            return _Operand(_infix([*run, right.node]), operator, may_grow=right.operator is None)
    if operator == left.operator and left.may_grow:
        operands = left.node.held
        if operator == "+" and operands[0].type == operands[1].type == "string_literal":
            operands = [_infix(operands[:-1]), operands[-1]]
        operands.append(right.node)
        return _Operand(_infix(operands), operator, may_grow=right.operator is None)
    flat = left.operator is None and right.operator is None and operator not in {"==", "!="}
    return _Operand(_infix([left.node, right.node]), operator, may_grow=flat)


def _infix(operands: list[Node]) -> Node:
    return Node(_INFIX, operands[0].start, operands[-1].end, operands)


def _string_literals(operand: _Operand) -> list[Node]:
    """The literals of an operand that is a string literal or a run of them."""
    if operand.node.type == "string_literal":
        return [operand.node]
    return operand.node.held if operand.node.type == _INFIX and operand.operator is None else []


def _is_name_in_brackets(cast: tree_sitter.Node, following: tree_sitter.Node | None) -> bool:
    """True if what tree-sitter reads as a cast is none: a name in brackets before a sign is an
    operand."""
    if following is None or following.type not in {"+", "-"}:
        return False
    return children_of(cast)[1].type in {"type_identifier", "scoped_type_identifier"}


def _name_in_brackets(cast: tree_sitter.Node) -> Node:
    opening, name, closing, _ = children_of(cast)
    return Node("parenthesized_expression", opening.start_byte, closing.end_byte, [node_of(name)])


def _with_prefixes(prefixes: list[tree_sitter.Node], operand: Node) -> Node:
    """The operand with the signs and casts before it; the smallest int and long include their
    sign."""
    for prefix in reversed(prefixes):
        if prefix.type == "cast_expression":
            types = [node_of(part) for part in children_of(prefix)[1:-1] if part.is_named]
            inside = [Node("cast_type", types[0].start, types[-1].end, types[:1]), operand]
        elif (
            prefix.type == "-"
            and operand.type == "decimal_integer_literal"
            and operand.raw.text in _SMALLEST
        ):
            inside = []
        else:
            inside = [operand]
        operand = Node("unary_expression", prefix.start_byte, operand.end, inside)
    return operand


_SMALLEST = {b"2147483648", b"9223372036854775808L", b"9223372036854775808l"}


_UNFOLD: dict[str, Callable[[Node], Inside]] = {
    "class_declaration": _class,
    "interface_declaration": _class,
    "class_body": _anonymous_class,
    "block": _block,
    "constructor_body": _block,
    "explicit_constructor_invocation": _constructor_invocation,
    "if_statement": _if,
    "while_statement": _while,
    "do_statement": _do,
    "for_statement": _for,
    "enhanced_for_statement": _enhanced_for,
    "labeled_statement": _labeled,
    "synchronized_statement": _synchronized,
    "try_statement": _try,
    "try_with_resources_statement": _try,
    "switch_statement": _switch,
    "switch_label": _first_child,
    "catch_type": _first_child,
    "annotated_type": _annotated_type,
    "method_invocation": _method_invocation,
    "field_access": _field_access,
    "array_access": _expression("ArrayAccess", value=0, slice=2),
    "object_creation_expression": _annotated_type,
    "array_creation_expression": _array_creation,
    "assignment_expression": _expression("Assignment", target=0, value=2),
    "ternary_expression": _expression("ConditionalExpression", test=0, body=2, orelse=4),
    "instanceof_expression": _expression("InstanceofExpression", expr=0, type=-1),
    "binary_expression": _operators,
    "unary_expression": _operators,
    "update_expression": _operators,
    "cast_expression": _operators,
}
