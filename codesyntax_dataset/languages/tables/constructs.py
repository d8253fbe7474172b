"""The one table of relations that all exact labels share: the same construct has the same name in
every language.

The names of relations and parts are those of the paper (Shen et al. 2022, Tables 1 and 8) wherever
it has one. A language lacks the relations of constructs, and of parts, that its table does not
give. Infix operators are one construct (`InfixExpr`), as in the paper's Java; Python's grammar
tells three apart (`BinOp`, `BoolOp`, `Compare`), as in the paper's Python.
"""

from __future__ import annotations

from typing import NamedTuple


class Construct(NamedTuple):
    """A syntactic construct: its category, and its relations as pairs of parts, each
    `head->dependent`."""

    category: str
    relations: tuple[str, ...]


_ELEMENTS = "comprehension", ("elt->generator",)

CONSTRUCTS = {
    "Assign": Construct("assignment", ("target->value",)),
    "Attribute": Construct("access", ("value->attr",)),
    "AugAssign": Construct("assignment", ("target->value",)),
    "Await": Construct("operator", ("await->value", "value->await")),
    "BinOp": Construct("operator", ("left->right",)),
    "BoolOp": Construct("operator", ("value->value",)),
    "Call": Construct("call", ("func->args", "args->keywords", "func->keywords", "func->block")),
    "Case": Construct("control flow", ("test->body",)),
    "Compare": Construct("operator", ("left->comparator",)),
    "Default": Construct("assignment", ("name->value",)),
    "Defer": Construct("control flow", ("defer->call",)),
    "Dict": Construct("collection", ("key->value",)),
    "DictComp": Construct("comprehension", ("key->value", "key->generator", "value->generator")),
    "Do": Construct("control flow", ("body->test", "do->body", "do->test")),
    "For": Construct(
        "control flow",
        (
            *("for->body", "for->target", "for->iter", "target->iter", "iter->target"),
            *("target->body", "iter->body"),
            *(
                "for->test",
                "for->initializers",
                "for->updaters",
                "initializers->test",
                "test->updaters",
            ),
            *("test->body", "initializers->updaters", "initializers->body", "updaters->body"),
            "for->orelse",
        ),
    ),
    "GeneratorExp": Construct(*_ELEMENTS),
    "Go": Construct("control flow", ("go->call",)),
    "If": Construct(
        "control flow",
        (
            "if->else",
            "if->test",
            "if->body",
            "test->body",
            "test->orelse",
            "body->test",
            "body->orelse",
        ),
    ),
    "IfExp": Construct(
        "conditional expression", ("test->body", "body->test", "test->orelse", "body->orelse")
    ),
    "InfixExpr": Construct("operator", ("left->right",)),
    "InstanceofExpr": Construct("operator", ("expr->type",)),
    "LabeledStatement": Construct("control flow", ("label->body",)),
    "Lambda": Construct("call", ("params->body",)),
    "ListComp": Construct(*_ELEMENTS),
    "New": Construct("call", ("class->args",)),
    "Range": Construct("collection", ("lower->upper",)),
    "Raise": Construct("control flow", ("raise->value",)),
    "Return": Construct("control flow", ("return->value",)),
    "Send": Construct("control flow", ("channel->value",)),
    "SetComp": Construct(*_ELEMENTS),
    "Slice": Construct("access", ("lower->upper",)),
    "Spread": Construct("collection", ("spread->value", "value->spread")),
    "Subscript": Construct("access", ("value->slice",)),
    "Switch": Construct("control flow", ("expr->statement", "switch->expr", "switch->statement")),
    "Try": Construct(
        "control flow",
        (
            "body->handler",
            "handler->orelse",
            "handler->finalbody",
            "body->orelse",
            "body->finalbody",
        ),
    ),
    "UnaryOp": Construct("operator", ("op->operand",)),
    "While": Construct(
        "control flow", ("while->test", "while->body", "test->body", "body->test", "while->orelse")
    ),
    "With": Construct("control flow", ("item->body",)),
    "Yield": Construct("control flow", ("yield->value",)),
    "comprehension": Construct("comprehension", ("target->iter",)),
}
"""Construct -> its category and relations, in the order in which edges are listed."""

FROM_LAST_TOKEN = {
    *("Call:func->args", "Call:args->keywords", "Call:func->keywords", "Call:func->block"),
    "New:class->args",
}
"""The head of these is the last token of its part; every other head is the first (Shen et al.
2022)."""

CHILDREN = "children:parent->child"
"""The relation of any two nodes of the grammar's tree, one directly inside the other."""
