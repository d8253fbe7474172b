"""The labels of Java methods: relations between nodes of the JDT-like tree (`tree`), expressed in
tokens (`tokens`).

`annotate` is the published procedure (Shen et al. 2022, section 3): walk the tree, collect the
related nodes, and find the tokens where these nodes start and end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache

from codesyntax_dataset.languages.java.parse import parse_method, token_positions
from codesyntax_dataset.languages.java.tokens import DecodedCode, scan, with_line_breaks
from codesyntax_dataset.languages.java.tree import Node, node_of, unfold
from codesyntax_dataset.schema import Annotation, Edge, Token


def _with_parts(relations: list[str]) -> list[tuple[str, ...]]:
    return [(relation, *relation.partition(":")[2].split("->")) for relation in relations]


RULES = {
    jdt_class: _with_parts(relations)
    for jdt_class, relations in {
        "IfStatement": [
            *("If:if->else", "If:if->test", "If:if->body"),
            *("If:test->body", "If:test->orelse", "If:body->orelse"),
        ],
        "WhileStatement": ["While:while->test", "While:while->body", "While:test->body"],
        "DoStatement": ["Do:body->test", "Do:do->body", "Do:do->test"],
        "ForStatement": [
            *("For:for->body", "For:for->test", "For:for->initializers", "For:for->updaters"),
            *("For:initializers->test", "For:test->updaters", "For:test->body"),
            *("For:initializers->updaters", "For:initializers->body", "For:updaters->body"),
        ],
        "TryStatement": ["Try:body->finalbody", "Try:handler->finalbody", "Try:body->handler"],
        "SwitchStatement": [
            "Switch:expr->statement",
            "Switch:switch->expr",
            "Switch:switch->statement",
        ],
        "LabeledStatement": ["LabeledStatement:label->body"],
        "MethodInvocation": ["Call:func->args", "Attribute:value->attr"],
        "ArrayAccess": ["Subscript:value->slice"],
        "Assignment": ["Assign:target->value"],
        "ConditionalExpression": ["IfExp:test->body", "IfExp:test->orelse", "IfExp:body->orelse"],
        "InfixExpression": ["InfixExpr:left->right"],
        "InstanceofExpression": ["InstanceofExpr:expr->type"],
    }.items()
}
"""JDT class -> its relations in the order of the published lists, as (relation, head, dependent),
where head and dependent are names of parts (see `tree.unfold`)."""

MOST_TOKENS = 100_000
"""Of a method whose tree is wanted: parsers take far longer, or crash, at some longer ones. Java's
own limit for a compiled method, 64 KB, is less."""

_LOST = 0  # the published procedure never writes an edge from or to token 0, so lost positions point there


def annotate(code: str, variant: str) -> Annotation:
    """The labels of a Java method or constructor in a published variant.

    A body with a syntax error (by the rules of Java 1.3, see `parse.parse_method`) has no edges
    inside; the signature keeps its own. Raises ParseError if the code is not exactly one method, or
    cannot be tokenized.
    """
    decoded = DecodedCode(code)
    tokens = scan(decoded)
    if len(tokens) > MOST_TOKENS:
        raise decoded.error(f"more than {MOST_TOKENS:,} tokens", tokens[MOST_TOKENS].start)
    method = node_of(parse_method(decoded, tokens))
    tokens = _in_variant(tokens, decoded, variant)
    head_of, first_of, last_of = _lookups(tokens, decoded.text, variant)
    edges = []
    for relation, head_start, start, end in _relations(method):
        if (
            _LOST
            < (head := head_of(head_start))
            < (first := first_of(start))
            <= (last := last_of(end))
        ):
            edges.append(Edge(relation, head, first, last))
    return Annotation(decoded.in_code(tokens), edges)


def tokenize(code: str, variant: str) -> list[Token]:
    """Only the tokens. Raises ParseError at a character that begins no Java token."""
    decoded = DecodedCode(code)
    return decoded.in_code(_in_variant(scan(decoded), decoded, variant))


def _in_variant(tokens: list[Token], decoded: DecodedCode, variant: str) -> list[Token]:
    return with_line_breaks(tokens, decoded.text) if variant == "with_new_lines" else tokens


def _relations(method: Node) -> Iterator[tuple[str, int, int, int]]:
    """Every relation in the order of the published lists: (relation, start of head, start and end
    of dependent)."""
    waiting = [(method.start, method)]
    while waiting:
        parent_start, node = waiting.pop()
        yield "children:parent->child", parent_start, node.start, node.end
        children, jdt_class, parts = unfold(node)
        if jdt_class:
            for relation, head, dependent in RULES[jdt_class]:
                if head in parts and dependent in parts:
                    yield relation, parts[head].start, parts[dependent].start, parts[dependent].end
        waiting += [(node.start, child) for child in reversed(children)]


def _lookups(tokens: list[Token], text: str, variant: str) -> tuple[Callable[[int], int], ...]:
    """Three functions from positions to tokens: from the start of a node to its token as a head,
    and to its first token as a dependent; from the end of a node to its last token."""
    starts = token_positions(tokens, text)
    words = [token.text for token in tokens]
    opening, closing = {"(", "[", "{", "\n"}, {")", "]", "}"}
    if variant == "skip_semicolon":
        closing.add(";")

    # From each token on the first that is not an opening bracket, and back from it the first that
    # is not a closing one
    forward, back = list(range(len(words))), list(range(len(words)))
    for index in reversed(range(len(words) - 1)):
        if words[index] in opening:
            forward[index] = _LOST if words[index + 1] in closing else forward[index + 1]
    for index in range(1, len(words)):
        if words[index] in closing:
            back[index] = _LOST if words[index - 1] in opening else back[index - 1]

    def is_glued(index: int) -> bool:
        """True if a word directly precedes the token, as in `try{`: the published procedure took
        the two for one."""
        before = tokens[index - 1]
        return before.end == tokens[index].start and (
            before.text[-1].isalnum() or before.text[-1] in "_$"
        )

    @cache
    def head_of(start: int) -> int:
        index = bisect_left(starts, start)
        return index - 1 if is_glued(index) else forward[index]

    @cache
    def first_of(start: int) -> int:
        index = bisect_left(starts, start)
        # a line break comes first where a declaration begins with its Javadoc; the declaration's
        # own text lacks it
        return _LOST if is_glued(index) or words[index] == "\n" else forward[index]

    @cache
    def last_of(end: int) -> int:
        index = bisect_left(starts, end)  # of the token after the dependent
        return back[index if words[index] == "\n" else index - 1]

    return head_of, first_of, last_of
