"""Small mistakes in Python source, one at a time: what a suite of tests has to notice.

Each rule changes one node of the syntax tree; the rest of a file stays as it is. What only people or type checkers read is
left alone: docstrings, annotations, imports, asserts, and the texts of errors and of --help.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

_INSTEAD = """
Lt LtE GtE; LtE Lt Gt; Gt GtE LtE; GtE Gt Lt; Eq NotEq; NotEq Eq; Is IsNot; IsNot Is; In NotIn; NotIn In; And Or; Or And
Add Sub; Sub Add; Mult Div; Div Mult; FloorDiv Mod; Mod FloorDiv; Pow Mult; BitAnd BitOr; BitOr BitAnd; LShift RShift
"""
_OPERATORS = {
    getattr(ast, name): [getattr(ast, other)() for other in others]
    for name, *others in map(str.split, _INSTEAD.replace("\n", ";").strip(";").split(";"))
}
"""Operator -> those that may stand for it."""

_SPLITS = {"test": "validation", "validation": "test"}

_CORRECTIONS = {"corrected", "holm"}
"""Functions without which tests are not corrected for their number."""

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

_OF_PEOPLE = ("annotation", "returns", "decorator_list")
"""Parts of a node that have no edits."""

Change = tuple[ast.AST, ast.AST | None, str]
"""A node, what stands in its place, and the kind of mistake that is."""


@dataclass(frozen=True)
class Edit:
    """The bytes from `begin` to `end` of a source become `new`. `kind` is what kind of mistake that is.

    `lines`: the first and last line, from 1, of the statement, or of its head for one with a body; None where it runs
    when the module is imported.
    """

    begin: int
    end: int
    new: str
    kind: str
    lines: tuple[int, int] | None

    def apply(self, source: str) -> str:
        data = source.encode()
        return (data[: self.begin] + self.new.encode() + data[self.end :]).decode()

    def texts(self, source: str) -> tuple[str, str]:
        """The lines that it changes, before and after, without the indentation."""
        data = source.encode()
        begin = data.rfind(b"\n", 0, self.begin) + 1
        end = data.find(b"\n", self.end) % (len(data) + 1)
        new = data[begin : self.begin] + self.new.encode() + data[self.end : end]
        before, after = (
            [line.strip() for line in text.decode().splitlines()] for text in (data[begin:end], new)
        )
        return "\n".join(before), "\n".join(after)


def edits(source: str) -> list[Edit]:
    """All edits of a module, in the order of the source; each leaves it valid Python."""
    lengths = [len(line) for line in source.encode().splitlines(keepends=True)]
    starts = [0, *itertools.accumulate(lengths)]
    found = []
    for (node, new, kind), lines in _walk(ast.parse(source), None, {}):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        found.append(Edit(begin, end, _text(new), kind, lines))
    return sorted(found, key=lambda edit: (edit.begin, edit.end, edit.new))


def _text(node: ast.AST) -> str:
    """The source of a node, in brackets where its neighbours could take a part of it."""
    text = ast.unparse(ast.fix_missing_locations(node))
    loose = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.UnaryOp)
    return f"({text})" if isinstance(node, loose) else text


def _walk(
    node: ast.AST, lines: tuple[int, int] | None, bound: dict[str, int]
) -> Iterator[tuple[Change, tuple[int, int] | None]]:
    """The changes of a node and all in it, each with the lines of its statement.

    `bound`: name -> the line where the function, or the module, binds it first.
    """
    if isinstance(node, ast.stmt):
        if _is_text(node):
            return
        lines = lines and _head(node)
        changes = _of_statement(node, bound)
    else:
        changes = _of_expression(node)
    yield from ((change, lines) for change in changes)
    if isinstance(node, (ast.JoinedStr, ast.Raise)):  # their text is for people
        return
    if isinstance(node, (ast.Module, ast.FunctionDef)):
        bound = _first_bound(node)
    for name, value in ast.iter_fields(node):
        within = lines
        if isinstance(node, ast.FunctionDef) and name == "body":
            within = _head(node)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in _OF_PEOPLE:
                yield from _walk(child, within, bound)


def _head(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    last = body[0].pattern.lineno if isinstance(node, ast.Match) else body and body[0].lineno
    return node.lineno, max(node.lineno, last - 1) if last else node.end_lineno


def _first_bound(function: ast.AST) -> dict[str, int]:
    bound: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            bound[node.arg] = 0
        elif _is_bound(node):
            bound[node.id] = min(node.lineno, bound.get(node.id, node.lineno))
    return bound


def _of_statement(node: ast.stmt, bound: dict[str, int]) -> Iterator[Change]:
    """The changes of one statement, without those of the expressions and statements in it."""
    removed = isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break))
    if isinstance(node, ast.Expr):
        removed = isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):  # without the first one of a name, nothing works
        parts = [part for target in node.targets for part in ast.walk(target)]
        names = [part.id for part in parts if _is_bound(part)]
        removed = any(isinstance(target, ast.Subscript) for target in node.targets) or (
            bool(names) and all(bound[name] < node.lineno for name in names)
        )
    if removed:
        yield node, ast.Pass(), "statement removed"
    match node:
        case ast.Return(value=ast.Constant(value=None) | None):
            pass
        case ast.Return():
            yield node.value, ast.Constant(None), "return value"
        case ast.If() | ast.While():
            yield from _negated(node.test)
        case ast.For():
            yield from _fewer(node.iter)
        case ast.AugAssign():
            for operator in _OPERATORS.get(type(node.op), []):
                yield node, _replaced(node, op=operator), "arithmetic"


def _of_expression(node: ast.AST) -> Iterator[Change]:
    """The changes of one expression, without those of the expressions in it."""
    match node:
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.BinOp():
            if not _is_string(node.left) and not _is_string(node.right):
                for operator in _OPERATORS.get(type(node.op), []):
                    yield node, _replaced(node, op=operator), "arithmetic"
        case ast.BoolOp():
            yield node, _replaced(node, op=_OPERATORS[type(node.op)][0]), "and, or"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            yield from _numbers(node, -value)
        case ast.UnaryOp():
            yield node, node.operand, "operator removed"
        case ast.IfExp():
            yield from _negated(node.test)
        case ast.comprehension():
            yield from _fewer(node.iter)
            for condition in node.ifs:
                yield from _negated(condition)
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value), "constant"
        case ast.Constant(value=int() | float()):
            yield from _numbers(node, node.value)
        case ast.Constant(value="test" | "validation"):
            yield node, ast.Constant(_SPLITS[node.value]), "split exchanged"
        case ast.Attribute(attr="test" | "validation"):
            yield node, _replaced(node, attr=_SPLITS[node.attr]), "split exchanged"
        case ast.Call():
            yield from _of_call(node)
        case ast.Slice():
            yield from _of_slice(node)


def _of_comparison(node: ast.Compare) -> Iterator[Change]:
    for place, (operator, right) in enumerate(zip(node.ops, node.comparators)):
        for other in _OPERATORS[type(operator)]:
            others = [*node.ops[:place], other, *node.ops[place + 1 :]]
            yield node, _replaced(node, ops=others), "comparison"
        if isinstance(operator, _ORDERED) and not isinstance(right, ast.Constant):
            yield right, ast.BinOp(ast.Constant(10), ast.Mult(), right), "bound moved"
        if isinstance(operator, (ast.In, ast.NotIn)):
            yield from _fewer(right)


def _of_call(node: ast.Call) -> Iterator[Change]:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if name in _CORRECTIONS:
        yield node, node.args[0], "correction dropped"
    arguments = [*node.args, *node.keywords]
    for place in range(1, len(arguments)):
        argument = arguments[place]
        if isinstance(argument, ast.keyword):
            if argument.arg == "help":
                continue
            others = [keyword for keyword in node.keywords if keyword is not argument]
            changed = _replaced(node, keywords=others)
        elif place == len(node.args) - 1 and not isinstance(argument, ast.Starred):
            changed = _replaced(node, args=node.args[:-1])
        else:
            continue
        yield node, changed, "argument dropped"


def _of_slice(node: ast.Slice) -> Iterator[Change]:
    for bound in filter(None, (node.lower, node.upper)):
        # constants are changed as such
        if not isinstance(bound, (ast.Constant, ast.UnaryOp)):
            for step in (ast.Add(), ast.Sub()):
                yield bound, ast.BinOp(bound, step, ast.Constant(1)), "slice"
    if node.lower is None and node.step is None:
        yield node, _replaced(node, lower=ast.Constant(1)), "slice"


def _negated(test: ast.expr) -> Iterator[Change]:
    if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
        yield test, ast.UnaryOp(ast.Not(), test), "condition negated"


def _numbers(node: ast.expr, value: float) -> Iterator[Change]:
    for new in (value + 1, value - 1):
        yield node, ast.Constant(new), "constant"


def _fewer(node: ast.expr) -> Iterator[Change]:
    """Leave out one of the columns, names or cases that a loop or a guard goes through."""
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)) or len(node.elts) < 2:
        return
    if not any(isinstance(item, ast.Starred) for item in node.elts):
        for place in range(len(node.elts)):
            others = [*node.elts[:place], *node.elts[place + 1 :]]
            yield node, _replaced(node, elts=others), "case dropped"


def _replaced(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with other fields."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _is_bound(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_text(node: ast.stmt) -> bool:
    """What says something to readers or type checkers only."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert))
