"""The edges of Python functions by `ast`, the interpreter's own parser.

`OTHER` is its compiler: whether a function is valid, much of which the parser does not ask.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, combinations

from support.references.reference_parsers import Place, balanced

from codesyntax_dataset.schema import Token

_FIRST = {  # node -> what it begins with
    ast.Assign: "targets",
    ast.AnnAssign: "target",
    ast.Attribute: "value",
    ast.AugAssign: "target",
    ast.BinOp: "left",
    ast.BoolOp: "values",
    ast.Call: "func",
    ast.Compare: "left",
    ast.Expr: "value",
    ast.IfExp: "body",
    ast.MatchAs: "pattern",
    ast.MatchOr: "patterns",
    ast.NamedExpr: "target",
    ast.Subscript: "value",
}

_LAST = {  # node -> what it ends with
    ast.BinOp: "right",
    ast.BoolOp: "values",
    ast.Compare: "comparators",
    ast.IfExp: "orelse",
    ast.Starred: "value",
    ast.UnaryOp: "operand",
}


def _outermost(node: ast.AST, parts: dict[type, str], place: int) -> ast.AST:
    """The first part of the first part, and so on; or the last of the last."""
    while type(node) in parts and (part := getattr(node, parts[type(node)])) is not None:
        node = part[place] if isinstance(part, list) else part
    return node


class OTHER:
    @staticmethod
    def edges(code: str) -> None:
        """Raises SyntaxError for what the compiler refuses."""
        compile(code, "", "exec", dont_inherit=True)


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a function; `tokens` are used only to find brackets."""
    lines = code.splitlines(keepends=True) or [""]
    starts = list(accumulate(map(len, lines), initial=0))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def start(node) -> int:
        at = place(node.lineno, node.col_offset)
        if decorators := getattr(node, "decorator_list", []):
            at = max(
                token.start
                for token in tokens
                if token.text == "@" and token.start < start(decorators[0])
            )
        return at

    def end(node) -> int:
        return place(node.end_lineno, node.end_col_offset)

    def enclosed(node) -> bool:
        """Whether the brackets that a node begins with end where it does."""
        depth = 0
        for token in tokens:
            if start(node) <= token.start < end(node):
                depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
                if depth == 0:
                    return token.end == end(node)
        return True

    def head(node) -> int:
        node = _outermost(node, _FIRST, 0)
        elements = getattr(node, "elts", getattr(node, "patterns", None))
        bare = isinstance(node, (ast.Tuple, ast.MatchSequence)) and not enclosed(node)
        return head(elements[0]) if bare else start(node)

    def tail(node) -> int:
        return end(_outermost(node, _LAST, -1))

    found = []

    def add(relation: str, heads, dependents) -> None:
        if not heads or not dependents:
            return
        from_last = relation in ("Call:func->args", "Call:args->keywords", "Call:func->keywords")
        at = heads if isinstance(heads, int) else tail(heads[-1]) if from_last else head(heads[0])
        span = (
            dependents
            if isinstance(dependents, tuple)
            else (start(dependents[0]), end(dependents[-1]))
        )
        span = balanced(tokens, *span)
        if at < span[0] or (from_last and at <= span[0]):
            found.append((relation, at, *span))

    def each(construct: str, **parts) -> None:
        """The edges of each part to each later one; `_` stands before the names that are keywords."""
        for (one, heads), (other, dependents) in combinations(parts.items(), 2):
            add(f"{construct}:{one.strip('_')}->{other}", heads, dependents)

    def word(position: int, *texts: str) -> int:
        """The first token of these from a position on."""
        return next(
            token.start for token in tokens if token.start >= position and token.text in texts
        )

    def generator(node) -> tuple[int, int]:
        return start(node.generators[0].target), end(node.generators[-1].iter)

    def spread(sign: str, value: ast.expr) -> None:
        at = max(
            token.start for token in tokens if token.text == sign and token.start < start(value)
        )
        add("Spread:spread->value", at, [value])

    for node in _nodes(ast.parse(code)):
        match node:
            case ast.match_case():
                add("Case:test->body", [node.pattern], node.body)
            case ast.keyword() if node.arg is None:
                spread("**", node.value)
            case ast.Starred() if isinstance(node.ctx, ast.Load):
                spread("*", node.value)
            case ast.Assign():
                for target in node.targets:
                    add("Assign:target->value", [target], [node.value])
            case ast.AnnAssign() | ast.NamedExpr() if node.value:
                add("Assign:target->value", [node.target], [node.value])
            case _ if isinstance(node, getattr(ast, "TypeAlias", ())):
                add("Assign:target->value", [node.name], [node.value])
            case ast.Attribute():
                name = end(node) - len(node.attr), end(node)
                add("Attribute:value->attr", [node.value], name)
            case ast.AugAssign():
                add("AugAssign:target->value", [node.target], [node.value])
            case ast.BinOp():
                add("BinOp:left->right", [node.left], [node.right])
            case ast.BoolOp():
                for value in node.values[1:]:
                    add("BoolOp:value->value", [node.values[0]], [value])
            case ast.Call():
                each("Call", func=[node.func], args=node.args, keywords=node.keywords)
            case ast.Compare():
                add("Compare:left->comparator", [node.left], node.comparators)
            case ast.arguments():
                every = [*node.posonlyargs, *node.args]
                for one, value in [
                    *zip(every[::-1], node.defaults[::-1]),
                    *zip(node.kwonlyargs, node.kw_defaults),
                ]:
                    add("Default:name->value", [one], value and [value])
            case ast.Dict():
                for key, value in zip(node.keys, node.values):
                    add("Dict:key->value", key and [key], [value])
                    if key is None:
                        spread("**", value)
            case ast.DictComp():
                each("DictComp", key=[node.key], value=[node.value], generator=generator(node))
            case ast.For() | ast.AsyncFor():
                at = word(start(node), "for")
                each("For", _for=at, target=[node.target], iter=[node.iter], body=node.body)
                add("For:for->orelse", at, node.orelse)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                add(f"{type(node).__name__}:elt->generator", [node.elt], generator(node))
            case ast.If():
                each("If", _if=start(node), test=[node.test], body=node.body)
                if node.orelse:
                    at = word(end(node.body[-1]), "else", "elif")
                    add("If:if->else", start(node), (at, at + 4))
                    add("If:test->orelse", [node.test], node.orelse)
                    add("If:body->orelse", node.body, node.orelse)
            case ast.IfExp():
                each("IfExp", body=[node.body], test=[node.test], orelse=[node.orelse])
            case ast.Lambda():
                arguments = node.args
                every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                if every or arguments.vararg or arguments.kwarg:
                    inside = [token.start for token in tokens if start(node) < token.start]
                    add("Lambda:params->body", inside[0], [node.body])
            case ast.Match():
                patterns = node.cases[0].pattern
                case = max(
                    token.start
                    for token in tokens
                    if token.text == "case" and token.start < start(patterns)
                )
                statement = case, end(node.cases[-1].body[-1])
                each("Switch", switch=start(node), expr=[node.subject], statement=statement)
            case ast.Await():
                add("Await:await->value", start(node), [node.value])
            case ast.Raise() if node.exc:
                add("Raise:raise->value", start(node), [node.exc])
            case ast.Return() if node.value:
                add("Return:return->value", start(node), [node.value])
            case ast.UnaryOp():
                add("UnaryOp:op->operand", start(node), [node.operand])
            case ast.Slice():
                add("Slice:lower->upper", node.lower and [node.lower], node.upper and [node.upper])
            case ast.Subscript():
                add("Subscript:value->slice", [node.value], [node.slice])
            case ast.Try() | ast.TryStar():
                add("Try:body->handler", node.body, node.handlers)
                add("Try:handler->orelse", node.handlers, node.orelse)
                add("Try:handler->finalbody", node.handlers, node.finalbody)
                add("Try:body->orelse", node.body, node.orelse)
                add("Try:body->finalbody", node.body, node.finalbody)
            case ast.While():
                each("While", _while=start(node), test=[node.test], body=node.body)
                add("While:while->orelse", start(node), node.orelse)
            case ast.With() | ast.AsyncWith():
                add("With:item->body", [node.items[0].context_expr], node.body)
            case ast.Yield() | ast.YieldFrom() if node.value:
                add("Yield:yield->value", start(node), [node.value])
            case ast.comprehension():
                add("comprehension:target->iter", [node.target], [node.iter])
    return Counter(found)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, but for those inside of f-strings before Python 3.12, which does not know their places."""
    yield tree
    if not isinstance(tree, ast.JoinedStr) or sys.version_info >= (3, 12):
        for child in ast.iter_child_nodes(tree):
            yield from _nodes(child)
