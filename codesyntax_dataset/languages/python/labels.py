"""The labels of Python functions: relations between nodes of the `ast` tree (`tree`), expressed in
tokens (`tokens`).

`_RELATED` defines which nodes are related (Shen et al. 2022, section 3 and Table 8), `_NodeTokens`
their tokens. The published procedure tokenized the text of each node again, in isolation; the
effect on the tokens is part of the labels, and is reproduced here from positions and indentation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from codesyntax_dataset.languages.python import tokens as python_tokens
from codesyntax_dataset.languages.python.tokens import column_after
from codesyntax_dataset.languages.python.tree import PLACED, Placed, TokenIndex, children, parse
from codesyntax_dataset.schema import Annotation, Edge, Token

Related = tuple[str, Sequence[Placed], Sequence[Placed]]
"""A relation, its head (the first of some nodes) and its dependent (from the first to the last of
some nodes)."""


def _generators(
    node: ast.DictComp | ast.GeneratorExp | ast.ListComp | ast.SetComp,
) -> list[ast.expr]:
    return [node.generators[0].target, node.generators[-1].iter]


_RELATED: dict[type[ast.AST], Callable[..., list[Related]]] = {
    ast.Assign: lambda node: [("Assign:target->value", node.targets, [node.value])],
    ast.Attribute: lambda node: [("Attribute:value->attr", [node.value], [node])],
    ast.AugAssign: lambda node: [("AugAssign:target->value", [node.target], [node.value])],
    ast.BinOp: lambda node: [("BinOp:left->right", [node.left], [node.right])],
    ast.BoolOp: lambda node: [("BoolOp:value->value", node.values, node.values[1:2])],
    ast.Call: lambda node: [
        ("Call:func->args", [node.func], node.args),
        ("Call:args->keywords", node.args, node.keywords),
        ("Call:func->keywords", [node.func], node.keywords),
    ],
    ast.Compare: lambda node: [("Compare:left->comparator", [node.left], node.comparators)],
    ast.Dict: lambda node: [
        ("Dict:key->value", [k], [v]) for k, v in zip(node.keys, node.values) if k
    ],
    ast.DictComp: lambda node: [
        ("DictComp:key->value", [node.key], [node.value]),
        ("DictComp:key->generator", [node.key], _generators(node)),
        ("DictComp:value->generator", [node.value], _generators(node)),
    ],
    ast.For: lambda node: [
        ("For:for->body", [node], node.body),
        ("For:for->target", [node], [node.target]),
        ("For:for->iter", [node], [node.iter]),
        ("For:target->iter", [node.target], [node.iter]),
        ("For:target->body", [node.target], node.body),
        ("For:iter->body", [node.iter], node.body),
    ],
    ast.GeneratorExp: lambda node: [("GeneratorExp:elt->generator", [node.elt], _generators(node))],
    ast.If: lambda node: [
        ("If:if->else", [node], node.orelse),
        ("If:if->test", [node], [node.test]),
        ("If:if->body", [node], node.body),
        ("If:test->body", [node.test], node.body),
        ("If:test->orelse", [node.test], node.orelse),
        ("If:body->orelse", node.body, node.orelse),
    ],
    ast.IfExp: lambda node: [
        ("IfExp:body->test", [node.body], [node.test]),
        ("IfExp:test->orelse", [node.test], [node.orelse]),
        ("IfExp:body->orelse", [node.body], [node.orelse]),
    ],
    ast.ListComp: lambda node: [("ListComp:elt->generator", [node.elt], _generators(node))],
    ast.SetComp: lambda node: [("SetComp:elt->generator", [node.elt], _generators(node))],
    ast.Slice: lambda node: (
        [("Slice:lower->upper", [node.lower], [node.upper])] if node.lower and node.upper else []
    ),
    ast.Subscript: lambda node: [("Subscript:value->slice", [node.value], [node.slice])],
    ast.Try: lambda node: [
        ("Try:body->handler", node.body, node.handlers),
        ("Try:handler->orelse", node.handlers, node.orelse[:1]),
        ("Try:handler->finalbody", node.handlers, node.finalbody),
        ("Try:body->orelse", node.body, node.orelse),
        ("Try:body->finalbody", node.body, node.finalbody),
    ],
    ast.While: lambda node: [
        ("While:while->test", [node], [node.test]),
        ("While:while->body", [node], node.body),
        ("While:test->body", [node.test], node.body),
    ],
    ast.With: lambda node: [("With:item->body", [node.items[0].context_expr], node.body)],
    ast.comprehension: lambda node: [("comprehension:target->iter", [node.target], [node.iter])],
}
"""The relations of a node of a type. One without a head or a dependent (no `else`, no arguments)
gives no edge."""


_FROM_LAST_TOKEN = {"Call:func->args", "Call:args->keywords", "Call:func->keywords"}
"""The head of these is the last token of its node; every other head is the first."""


def annotate(code: str, variant: str) -> Annotation:
    """The labels of Python code in a published variant, in the published order.

    Raises ParseError if the code is not Python 3.9.
    """
    tokens = tokenize(code, variant)
    nodes = _NodeTokens(code, tokens, with_new_lines=variant == "with_new_lines")
    edges = []
    for relation, heads, dependents in _relations(parse(code, tokens)):
        head = nodes.last(heads[0]) if relation in _FROM_LAST_TOKEN else nodes.first(heads[0])
        last = nodes.last(dependents[-1])
        if relation == "Attribute:value->attr":
            first = last
        elif relation == "If:if->else" and isinstance(heads[0], ast.If):
            first = last = nodes.alternative(heads[0])
        else:
            first = nodes.first(dependents[0])
        # the published procedure never writes an edge from token 0 or backwards
        if 0 < head < first <= last:
            edges.append(Edge(relation, head, first, last))
    return Annotation(tokens, edges)


def tokenize(code: str, variant: str) -> list[Token]:
    """The tokens of Python code, the same in every variant; see `codesyntax_dataset.tokenize`."""
    return python_tokens.tokenize(code)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _relations(tree: ast.AST) -> Iterator[Related]:
    """All relations, depth first: for each node, the one to its parent, then its own.

    Parents and children are nodes with a position, except functions. Of a function only the body is
    visited.
    """
    waiting: list[tuple[Placed | None, ast.AST]] = [(None, tree)]
    while waiting:
        parent, node = waiting.pop()
        relative = node if isinstance(node, PLACED) and not isinstance(node, _FUNCTIONS) else None
        if parent and relative:
            yield "children:parent->child", [parent], [relative]
        for relation, heads, dependents in (
            _RELATED[type(node)](node) if type(node) in _RELATED else ()
        ):
            if heads and dependents:
                yield relation, heads, dependents
        visited = node.body if isinstance(node, _FUNCTIONS) else children(node)
        waiting += [(relative, child) for child in reversed(visited)]


_OPENING, _CLOSING, _LINE_BREAKS = frozenset("([{"), frozenset(")]}"), frozenset(("\n", "\r\n"))
_LINE_START = re.compile(r"(?P<blanks>[ \t\f]*)(?P<nothing>#|\r?\n)?")


class _NodeTokens:
    """The first and the last token of a node in the published labels."""

    def __init__(self, code: str, tokens: list[Token], with_new_lines: bool):
        self._code = code
        self._tokens = tokens
        self._texts = [token.text for token in tokens]
        self._with_new_lines = with_new_lines
        self._index = TokenIndex(code, tokens)
        self._firsts: dict[Placed, int] = {}
        self._lasts: dict[Placed, int] = {}

    def first(self, node: Placed) -> int:
        """The first token of `node` that is not an opening bracket, or the word directly before
        `node`."""
        if node not in self._firsts:
            index = self._index.start(node)
            if self._is_glued(index):
                index -= 1
            while self._texts[index] in _OPENING and self._texts[index + 1] not in _CLOSING:
                index += 1
            self._firsts[node] = index
        return self._firsts[node]

    def last(self, node: Placed) -> int:
        """The last token of `node`, tokenized in isolation, that is not a closing bracket."""
        if node not in self._lasts:
            start = self._index.start(node)
            if self._is_glued(start):
                index = start - 2
            else:
                index = self._last_on_its_own(node, start, self._index.end(node))
                if (
                    self._with_new_lines
                    and index + 1 < len(self._texts)
                    and self._texts[index + 1] in _LINE_BREAKS
                ):
                    index += 1
            while self._texts[index] in _CLOSING:
                index -= 1
            self._lasts[node] = index
        return self._lasts[node]

    def alternative(self, node: ast.If) -> int:
        """The `else` or `elif` of `node`."""
        index = self.last(node.body[-1]) + 1
        while self._texts[index] not in ("else", "elif"):
            index += 1
        return index

    def _is_glued(self, start: int) -> bool:
        """True if a word ends where the token `start` begins: in `sum(x for x in y)` the bracket is
        the generator's."""
        before = self._tokens[start - 1]
        return before.end == self._tokens[start].start and before.text.isidentifier()

    def _last_on_its_own(self, node: Placed, start: int, end: int) -> int:
        """The last token from `start` on up to which the tokens agree with those of the node's text
        in isolation.

        That is `end`, except where the isolated text is tokenized differently: at the end of a
        source without a final line break, and from the second line of an expression that is no
        longer inside brackets.
        """
        if self._texts[end + 1] == "":
            return end + self._empty_tokens(node, start, end)
        if node.lineno != node.end_lineno and not isinstance(node, (ast.stmt, ast.excepthandler)):
            return self._last_in_line(start, end)
        return end

    def _last_in_line(self, start: int, end: int) -> int:
        """The line break before the first line whose indentation differs from that of the
        expression `start` to `end`.

        Without the brackets around the expression that indentation is a token. Lines inside the
        expression's own brackets, empty lines and comments do not matter.
        """
        depth = 0
        for index in range(start, end):
            text = self._texts[index]
            if text in _OPENING:
                depth += 1
            elif text in _CLOSING:
                depth -= 1
            elif depth == 0 and text in _LINE_BREAKS:
                line = _LINE_START.match(self._code, self._tokens[index].end)
                assert line  # the least indentation is none
                if not line["nothing"] and column_after(line["blanks"]) != self._own_column(start):
                    return index
        return end

    def _empty_tokens(self, node: Placed, start: int, end: int) -> int:
        """The number of empty tokens at the end of the source that agree with those at the end of
        the node's text.

        These are a line break (unless the last line looks like a comment), a DEDENT per open block,
        and ENDMARKER.
        """
        texts = self._texts[start : end + 1]
        line_break = node.lineno == node.end_lineno or not self._code.rpartition("\n")[
            2
        ].lstrip().startswith("#")
        indents = sum(text.isspace() and text not in _LINE_BREAKS for text in texts)
        blocks = (self._own_column(start) > 0) + indents - texts.count("")
        return min(line_break + blocks + 1, len(self._texts) - end - 1)

    def _own_column(self, start: int) -> int:
        """The indentation of a text that starts with the token `start`: none, unless that is the
        first on its line."""
        position = self._tokens[start].start
        before = self._code[self._code.rfind("\n", 0, position) + 1 : position]
        return column_after(before) if before.isspace() else 0
