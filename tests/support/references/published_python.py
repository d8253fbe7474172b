"""A slow, plain reference for the labels of Python code: it tokenizes again and again, as the published procedure did.

Where a node stands is found by tokenizing all code before it, with a word put in its place; where it ends by tokenizing
its own text. Both count how many tokens agree with those of the whole code. It shares nothing with the annotator, and it
runs on Python 3.10 and 3.11 only, whose `tokenize` and `ast` are still those behind the published labels.
"""

from __future__ import annotations

import ast
import contextlib
import io
import tokenize
from functools import lru_cache

LINE_BREAKS = ("\n", "\r\n")


def labels(code: str, with_new_lines: bool) -> tuple[list[str], list[tuple[str, int, int, int]]]:
    """The strings of the tokens, and the edges (relation, head, first, last)."""
    reference = _Reference(code, with_new_lines)
    reference.visit(ast.parse(code))
    return reference.tokens, reference.edges


# most texts are asked for again and again: by each child, and by first and last
@lru_cache(maxsize=2000)
def strings(code: str) -> list[str]:
    """The strings of the standard tokens of `code`, up to where tokenizing fails."""
    found = []
    with contextlib.suppress(tokenize.TokenError, IndentationError):
        found.extend(
            token.string
            for token in tokenize.generate_tokens(io.StringIO(code, newline="\n").readline)
        )
    return found


def agreeing(some: list[str], others: list[str]) -> int:
    """How many tokens at the start of the two lists are the same."""
    count = 0
    while count < min(len(some), len(others)) and some[count] == others[count]:
        count += 1
    return count


class _Reference:
    def __init__(self, code: str, with_new_lines: bool):
        self.lines = code.split("\n")
        self.tokens = strings(code)
        self.with_new_lines = with_new_lines
        self.edges: list[tuple[str, int, int, int]] = []

    def position(self, line: int, column: int) -> tuple[int, int]:
        """Line from 0 and column in characters, from a line from 1 and a column in bytes."""
        return line - 1, len(self.lines[line - 1].encode()[:column].decode())

    def before(self, node: ast.AST) -> int:
        """How many tokens stand before the node."""
        line, column = self.position(node.lineno, node.col_offset)
        return agreeing(
            self.tokens,
            strings("\n".join([*self.lines[:line], self.lines[line][:column] + "_THE_NODE_"])),
        )

    def first(self, node: ast.AST) -> int:
        index = self.before(node)
        while self.tokens[index] in ("(", "[", "{") and self.tokens[index + 1] not in (
            ")",
            "]",
            "}",
        ):
            index += 1
        return index

    def last(self, node: ast.AST) -> int:
        (line, column), (end_line, end) = (
            self.position(node.lineno, node.col_offset),
            self.position(node.end_lineno, node.end_col_offset),
        )
        text = "\n".join([*self.lines[line:end_line], self.lines[end_line][:end]])
        blanks = self.lines[line][:column]
        own = strings(text if blanks.isspace() else text[column:])
        if blanks.isspace() and own[0].isspace():
            own = own[1:]
        before = self.before(node)
        count = agreeing(self.tokens[before:], own)
        if (
            self.with_new_lines
            and before + count < len(self.tokens)
            and self.tokens[before + count] in LINE_BREAKS
        ):
            count += 1
        while self.tokens[before + count - 1] in (")", "]", "}"):
            count -= 1
        return before + count - 1

    def add(self, relation, head, first, last):
        if 0 < head < first <= last:
            self.edges.append((relation, head, first, last))

    def relate(self, relation, head, first, last):
        self.add(relation, self.first(head), self.first(first), self.last(last))

    def visit(self, node: ast.AST):
        getattr(self, "visit_" + type(node).__name__, lambda node: None)(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            children = node.body
        else:
            children = list(ast.iter_child_nodes(node))
        for child in children:
            pair = (node, child)
            functions = any(
                isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) for one in pair
            )
            if not functions and all(hasattr(one, "lineno") for one in pair):
                self.relate("children:parent->child", node, child, child)
            self.visit(child)

    def visit_If(self, node):
        if node.orelse:
            for index in range(self.last(node.body[-1]) + 1, self.first(node.orelse[0]) + 1):
                if self.tokens[index] in ("else", "elif"):
                    self.add("If:if->else", self.first(node), index, index)
                    break
        self.relate("If:if->test", node, node.test, node.test)
        self.relate("If:if->body", node, node.body[0], node.body[-1])
        self.relate("If:test->body", node.test, node.body[0], node.body[-1])
        if node.orelse:
            self.relate("If:test->orelse", node.test, node.orelse[0], node.orelse[-1])
            self.relate("If:body->orelse", node.body[0], node.orelse[0], node.orelse[-1])

    def visit_Call(self, node):
        def relate(relation, head, dependent):
            self.add(relation, self.last(head), self.first(dependent[0]), self.last(dependent[-1]))

        if node.args:
            relate("Call:func->args", node.func, node.args)
        if node.args and node.keywords:
            relate("Call:args->keywords", node.args[0], node.keywords)
        if node.keywords:
            relate("Call:func->keywords", node.func, node.keywords)

    def visit_Assign(self, node):
        self.relate("Assign:target->value", node.targets[0], node.value, node.value)

    def visit_AugAssign(self, node):
        self.relate("AugAssign:target->value", node.target, node.value, node.value)

    def visit_While(self, node):
        self.relate("While:while->test", node, node.test, node.test)
        self.relate("While:while->body", node, node.body[0], node.body[-1])
        self.relate("While:test->body", node.test, node.body[0], node.body[-1])

    def visit_For(self, node):
        self.relate("For:for->body", node, node.body[0], node.body[-1])
        self.relate("For:for->target", node, node.target, node.target)
        self.relate("For:for->iter", node, node.iter, node.iter)
        self.relate("For:target->iter", node.target, node.iter, node.iter)
        self.relate("For:target->body", node.target, node.body[0], node.body[-1])
        self.relate("For:iter->body", node.iter, node.body[0], node.body[-1])

    def visit_BinOp(self, node):
        self.relate("BinOp:left->right", node.left, node.right, node.right)

    def visit_BoolOp(self, node):
        self.relate("BoolOp:value->value", node.values[0], node.values[1], node.values[1])

    def visit_Compare(self, node):
        self.relate(
            "Compare:left->comparator", node.left, node.comparators[0], node.comparators[-1]
        )

    def visit_Try(self, node):
        if node.handlers:
            self.relate("Try:body->handler", node.body[0], node.handlers[0], node.handlers[-1])
            if node.orelse:
                self.relate("Try:handler->orelse", node.handlers[0], node.orelse[0], node.orelse[0])
            if node.finalbody:
                self.relate(
                    "Try:handler->finalbody",
                    node.handlers[0],
                    node.finalbody[0],
                    node.finalbody[-1],
                )
        if node.orelse:
            self.relate("Try:body->orelse", node.body[0], node.orelse[0], node.orelse[-1])
        if node.finalbody:
            self.relate("Try:body->finalbody", node.body[0], node.finalbody[0], node.finalbody[-1])

    def visit_IfExp(self, node):
        self.relate("IfExp:body->test", node.body, node.test, node.test)
        self.relate("IfExp:test->orelse", node.test, node.orelse, node.orelse)
        self.relate("IfExp:body->orelse", node.body, node.orelse, node.orelse)

    def visit_Attribute(self, node):
        self.add("Attribute:value->attr", self.first(node.value), self.last(node), self.last(node))

    def visit_Dict(self, node):
        for key, value in zip(node.keys, node.values):
            if key is not None:
                self.relate("Dict:key->value", key, value, value)

    def visit_Subscript(self, node):
        self.relate("Subscript:value->slice", node.value, node.slice, node.slice)

    def visit_Slice(self, node):
        if node.lower and node.upper:
            self.relate("Slice:lower->upper", node.lower, node.upper, node.upper)

    def visit_With(self, node):
        self.relate("With:item->body", node.items[0].context_expr, node.body[0], node.body[-1])

    def visit_comprehension(self, node):
        self.relate("comprehension:target->iter", node.target, node.iter, node.iter)

    def visit_ListComp(self, node):
        name = type(node).__name__
        self.relate(
            f"{name}:elt->generator", node.elt, node.generators[0].target, node.generators[-1].iter
        )

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node):
        start, end = node.generators[0].target, node.generators[-1].iter
        self.relate("DictComp:key->value", node.key, node.value, node.value)
        self.relate("DictComp:key->generator", node.key, start, end)
        self.relate("DictComp:value->generator", node.value, start, end)
