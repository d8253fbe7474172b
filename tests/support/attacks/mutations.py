"""Small mistakes in Python source, one at a time: what a suite of tests has to notice.

Edits replace a range of bytes, so the rest of a file stays as it is. What only people read is left alone: docstrings,
annotations, imports, and the texts of errors.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

_INSTEAD = """
Lt < <= >=; LtE <= < >; Gt > >= <=; GtE >= > <; Eq == !=; NotEq != ==
Is is is_not; IsNot is_not is; In in not_in; NotIn not_in in; And and or; Or or and
Add + -; Sub - +; Mult * /; Div / *; FloorDiv // *; Mod % *; Pow ** *; BitAnd & |; BitOr | &; LShift << >>
"""
_OPERATORS = {
    getattr(ast, name): [text.replace("_", " ") for text in texts]
    for name, *texts in map(str.split, _INSTEAD.replace("\n", ";").strip(";").split(";"))
}
"""Operator -> its text, and those that may stand for it."""

_OPPOSITES = (
    "min max",
    "minimum maximum",
    "amin amax",
    "any all",
    "argmin argmax",
    "left right",
    "zeros ones",
    "floor ceil",
)
_NAMES = {one: other for pair in map(str.split, _OPPOSITES) for one, other in (pair, pair[::-1])}

_SPLITS = {"test": "validation", "validation": "test"}

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

_CONVERSIONS = {"dict", "float", "int", "list", "set", "sorted", "str", "tuple"}
"""Functions without which an argument often is as good."""

_SYMMETRIC = {"max", "min", "maximum", "minimum", "swapaxes", "array_equal", "intersect1d"}
"""Functions whose arguments may be swapped."""


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
    finder = _Finder(source)
    finder.statements(ast.parse(source).body, None, Counter())
    return sorted(finder.found, key=lambda edit: (edit.begin, edit.end, edit.new))


class _Finder:
    def __init__(self, source: str):
        self.data = source.encode()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Edit] = []
        self.lines: tuple[int, int] | None = None

    def begin(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        return self.data[self.begin(node) : self.end(node)].decode()

    def add(self, begin: int, end: int, new: str, kind: str) -> None:
        self.found.append(Edit(begin, end, new, kind, self.lines))

    def replace(self, node: ast.AST, new: str, kind: str) -> None:
        self.add(self.begin(node), self.end(node), new, kind)

    def operator(self, left: ast.AST, right: ast.AST, texts: list[str], kind: str) -> None:
        """Replace the operator between two operands, `texts[0]`, by each of the others."""
        begin = self.data.index(texts[0].encode(), self.end(left), self.begin(right))
        for new in texts[1:]:
            self.add(begin, begin + len(texts[0]), new, kind)

    def statements(
        self, body: list[ast.stmt], function: ast.AST | None, bound: Counter[str]
    ) -> None:
        """The edits of a block; `bound`: the names that the function has bound before, its parameters among them."""
        for place, node in enumerate(body):
            inner = [
                getattr(node, name)
                for name in ("body", "orelse", "finalbody")
                if getattr(node, name, None)
            ]
            inner += [handler.body for handler in getattr(node, "handlers", [])]
            last = inner[0][0].lineno - 1 if inner else node.end_lineno
            self.lines = (node.lineno, max(node.lineno, last)) if function else None
            docstring = (
                place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            )
            if docstring or isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
                continue
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                defaults = node.args if isinstance(node, ast.FunctionDef) else None
                for default in (
                    [*defaults.defaults, *filter(None, defaults.kw_defaults)] if defaults else ()
                ):
                    self.expression(default)
                parameters = [
                    argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)
                ]
                within = node if isinstance(node, ast.FunctionDef) else function
                self.statements(node.body, within, Counter(parameters))
                continue
            self.statement(node, bound)
            bound.update(name.id for name in ast.walk(node) if _is_bound(name))
            for block in inner:
                self.statements(block, function, bound)

    def statement(self, node: ast.stmt, bound: Counter[str]) -> None:
        """The edits of one statement, without the statements in it."""
        if isinstance(node, ast.Assign):
            targets = [
                name.id for target in node.targets for name in ast.walk(target) if _is_bound(name)
            ]
            item = any(isinstance(target, ast.Subscript) for target in node.targets)
            if item or (targets and all(bound[name] for name in targets)):
                self.replace(node, "pass", "statement removed")
        elif isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            self.replace(node, "pass", "statement removed")
        if isinstance(node, ast.Return) and node.value is not None:
            self.replace(node.value, "None", "return value")
        if isinstance(node, (ast.If, ast.While)):
            self.negate(node.test)
        if isinstance(node, ast.For):
            self.items(node.iter)
        if isinstance(node, ast.AugAssign):
            text = _OPERATORS.get(type(node.op))
            if text:
                self.operator(node.target, node.value, text, "arithmetic")
        if isinstance(node, ast.Raise):  # its text is for people
            return
        for name, value in ast.iter_fields(node):
            if name not in (
                "annotation",
                "body",
                "orelse",
                "finalbody",
                "handlers",
                "decorator_list",
            ):
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, ast.AST):
                        self.expression(part)

    def expression(self, node: ast.AST) -> None:
        if isinstance(node, (ast.JoinedStr, ast.Lambda)):
            if isinstance(node, ast.Lambda):
                self.expression(node.body)
            return
        if isinstance(node, ast.Compare):
            for left, operator, right in zip(
                [node.left, *node.comparators], node.ops, node.comparators
            ):
                self.operator(left, right, _OPERATORS[type(operator)], "comparison")
                if isinstance(operator, _ORDERED) and not isinstance(right, ast.Constant):
                    self.replace(right, f"10 * ({self.text(right)})", "bound moved")
                if isinstance(operator, (ast.In, ast.NotIn)):
                    self.items(right)
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            if not _is_string(node.left) and not _is_string(node.right):
                self.operator(node.left, node.right, _OPERATORS[type(node.op)], "arithmetic")
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:]):
                self.operator(left, right, _OPERATORS[type(node.op)], "and, or")
        elif isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
                self.number(node, -node.operand.value)
                return
            begin, width = self.begin(node), {ast.Not: len("not ")}.get(type(node.op), 1)
            self.add(begin, begin + width, "", "operator removed")
        elif isinstance(node, ast.IfExp):
            self.negate(node.test)
        elif isinstance(node, ast.comprehension):
            self.items(node.iter)
            for condition in node.ifs:
                self.negate(condition)
        elif isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, ast.Slice):
            self.slice(node)
        elif isinstance(node, ast.Attribute) and node.attr in _SPLITS:
            self.add(
                self.end(node) - len(node.attr),
                self.end(node),
                _SPLITS[node.attr],
                "split exchanged",
            )
        for child in ast.iter_child_nodes(node):
            self.expression(child)

    def negate(self, test: ast.expr) -> None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return  # without `not`, already
        self.replace(test, f"not ({self.text(test)})", "condition negated")

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.replace(node, str(not value), "constant")
        elif isinstance(value, (int, float)):
            self.number(node, value)
        elif isinstance(value, str) and value in _NAMES:
            self.replace(node, f'"{_NAMES[value]}"', "opposite")
        elif isinstance(value, str) and value in _SPLITS:
            self.replace(node, f'"{_SPLITS[value]}"', "split exchanged")

    def items(self, node: ast.expr) -> None:
        """Leave out one of the columns, names or cases that a loop or a guard goes through."""
        if not isinstance(node, (ast.Tuple, ast.List, ast.Set)) or len(node.elts) < 2:
            return
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return
        for item, following in zip(node.elts, node.elts[1:]):
            self.add(self.begin(item), self.begin(following), "", "case dropped")
        self.add(
            self.end(node.elts[-2]),
            self.end(node.elts[-1]),
            "," * isinstance(node, ast.Tuple),
            "case dropped",
        )

    def number(self, node: ast.expr, value: float) -> None:
        for new in (value + 1, value - 1):
            self.replace(node, repr(new), "constant")

    def call(self, node: ast.Call) -> None:
        name = node.func
        text = (
            name.id
            if isinstance(name, ast.Name)
            else name.attr
            if isinstance(name, ast.Attribute)
            else ""
        )
        if text in _NAMES:
            self.add(self.end(name) - len(text), self.end(name), _NAMES[text], "opposite")
        alone = (
            len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
        )
        if (
            alone
            and text[:1].islower()
            and text not in _CONVERSIONS
            and not isinstance(node.args[0], ast.GeneratorExp)
        ):
            self.replace(node, f"({self.text(node.args[0])})", "call dropped")
        if len(node.args) > 1 and not isinstance(node.args[-1], ast.Starred):
            self.add(self.end(node.args[-2]), self.end(node.args[-1]), "", "argument dropped")
        for before, keyword in zip([*node.args, *node.keywords], [*node.args, *node.keywords][1:]):
            if isinstance(keyword, ast.keyword) and keyword.arg:
                self.add(self.end(before), self.end(keyword), "", "argument dropped")
        for one, other in zip(node.args, node.args[1:]) if text not in _SYMMETRIC else ():
            if (
                type(one) is type(other)
                and not isinstance(one, ast.Starred)
                and self.text(one) != self.text(other)
            ):
                between = self.data[self.end(one) : self.begin(other)].decode()
                swapped = self.text(other) + between + self.text(one)
                self.add(self.begin(one), self.end(other), swapped, "arguments swapped")

    def slice(self, node: ast.Slice) -> None:
        for bound in filter(None, (node.lower, node.upper)):
            # those are constants that change
            if not isinstance(bound, (ast.Constant, ast.UnaryOp)):
                for step in ("+ 1", "- 1"):
                    self.replace(bound, f"{self.text(bound)} {step}", "slice")
        if node.lower is None and node.step is None:
            self.add(self.begin(node), self.begin(node), "1", "slice")


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
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
