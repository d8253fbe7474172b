"""Exchanges of words: a keyword becomes another, and what depends on it, far away, is then licensed
by nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from codesyntax_dataset.pairs.code import Code, Node


class Site(NamedTuple):
    """`text` in place of the characters `start` to `end`.

    `critical` is the place of the token that has no licence then, `licensor` that of the token that
    has or would have given it. `rule`: the condition of the phenomenon says that the result is
    invalid, whatever tree-sitter accepts.
    """

    start: int
    end: int
    text: str
    licensor: int
    critical: int
    relation: str = ""
    rule: bool = False


_FUNCTIONS = frozenset(
    "anonymous_function arrow_function async_block closure_expression const_block func_literal function_declaration "
    "function_definition function_expression function_item generator_function generator_function_declaration lambda "
    "lambda_expression class_body class_definition class method method_definition method_declaration singleton_method "
    "do_block begin_block".split()
)
"""Nodes across which no loop licenses."""

_LOOPS = frozenset(
    "while_statement for_statement for_in_statement enhanced_for_statement foreach_statement do_statement while until "
    "for while_modifier until_modifier while_expression for_expression loop_expression".split()
)
_SWITCHES = frozenset(
    "switch_expression switch_statement expression_switch_statement type_switch_statement select_statement".split()
)
_CONTROL = frozenset(
    "break_statement continue_statement break next redo break_expression continue_expression".split()
)
_CLAUSES = frozenset(
    "elif_clause else_clause else_if_clause elsif else except_clause finally_clause catch_clause ensure rescue when "
    "case_clause body_statement".split()
)


def is_function(node: Node) -> bool:
    """True for a node across which no loop licenses; blocks of calls, which Ruby has, license by
    themselves."""
    return node.type in _FUNCTIONS or (
        node.type == "block" and node.parent is not None and node.parent.type == "call"
    )


def _control(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The first `break` or `continue` that this loop alone licenses."""
    loop = token.parent
    assert loop is not None
    for around in loop.ancestors():
        if is_function(around):
            if around.type in ("block", "do_block", "lambda"):
                return
            break
        if around.type in _LOOPS | _SWITCHES:
            return
    if loop.first < token.first or loop.children[1].type in (
        "block",
        "for_clause",
        "pattern_list",
        "range_clause",
    ):
        return  # a label, `async`, several targets or no condition next to it already tell

    def outside(node: Node) -> bool:
        own_else = node.type == "else_clause" and node.parent is loop
        return own_else or is_function(node) or node.type in _LOOPS | _SWITCHES

    for node in loop.descendants(outside):
        plain = len(node.children) <= 1 or (
            len(node.children) == 2 and node.children[1].type == ";"
        )
        if node.type in _CONTROL and plain and node.first > token.last:
            yield token.last, node.first
            return


def _clause(*kinds: str) -> Callable[[Code, Node], Iterator[tuple[int, int]]]:
    """The first clause of these kinds of the statement of which the token is the header."""

    def clause(code: Code, token: Node) -> Iterator[tuple[int, int]]:
        assert token.parent is not None
        if any(child.type == ";" for child in token.parent.children):
            return  # a statement before the condition, which next to `for` already tells
        for child in token.parent.children:
            if child.type in kinds:
                yield token.last, child.first
                return

    return clause


def _within(*words: str) -> Callable[[Code, Node], Iterator[tuple[int, int]]]:
    """The first token with one of these texts in the statement of which the token is the header."""

    def within(code: Code, token: Node) -> Iterator[tuple[int, int]]:
        assert token.parent is not None
        if token.parent.first < token.first:
            return  # `async` or a label next to it already tells
        # names are given in bodies, too
        header = [child for child in token.parent.children if child.type == "with_clause"]
        for index in range(token.last + 1, (header or [token.parent])[0].last + 1):
            if code.tokens[index].type in words:
                yield token.last, index
                return

    return within


def _statement(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The beginning of the statement of whose clause the token is the header."""
    node = token.parent
    while node is not None and node.type in _CLAUSES:
        node = node.parent
    if node is not None:
        yield node.first, token.first


def _behind(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """What stands behind the block that the token is the header of."""
    assert token.parent is not None
    blocks = [
        child for child in token.parent.children if child.first > token.last and child.children
    ]
    if blocks and code.token(blocks[0].last + 1) not in ("", "except", "finally"):
        yield token.last, blocks[0].last + 1


def _no_handler(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The beginning of the statement, if it has no handlers."""
    assert token.parent is not None and token.parent.parent is not None
    if not any(
        clause.type in ("except_clause", "rescue") for clause in token.parent.parent.children
    ):
        yield from _statement(code, token)


def _before(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The beginning of the statement before, if it ends with a block, as one that may have a
    further clause does."""
    statement = token.parent
    assert statement is not None and statement.parent is not None
    siblings = statement.parent.children
    index = siblings.index(statement)
    if index and any(child.type.endswith("block") for child in siblings[index - 1].children[-1:]):
        yield siblings[index - 1].first, token.first


def _bare(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The beginning of the statement, if nothing belongs to the word but a block."""
    behind = code.tokens[token.last + 1 : token.last + 2]
    if behind and code.of(behind[0]) == "{":
        yield from _statement(code, token)


def _name(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The beginning of the statement, if its condition also reads as the name that a handler
    gives."""
    condition = code.tokens[token.last + 2 : token.last + 5]
    if [code.of(part) for part in condition[::2]] == ["(", ")"] and condition[
        1
    ].type == "identifier":
        yield from _statement(code, token)


def _expression(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The beginning of the statement, if what belongs to the word is an expression: no name is
    given."""
    assert token.parent is not None
    following = [child for child in token.parent.children if child.first > token.last][:1]
    named = any(
        inside.type in ("as", ",") for node in following for inside in [node, *node.children]
    )
    if (
        following
        and following[0].type != ":"
        and not named
        and "=>" not in code.text[token.end :].partition("\n")[0]
    ):
        yield from _statement(code, token)


def _elif_in(code: Code, token: Node) -> Iterator[tuple[int, int]]:
    """The first `elif`, if the condition also reads as the target and values of a loop."""
    assert token.parent is not None
    condition = token.parent.children[1]
    words = [code.of(child) for child in condition.children]
    if (
        condition.type == "comparison_operator"
        and words[1:-1] == ["in"]
        and condition.children[0].type == "identifier"
    ):
        yield from _PARTNERS["elif"](code, token)


_PARTNERS: dict[str, Callable[[Code, Node], Iterator[tuple[int, int]]]] = {
    "control": _control,
    "elif": _clause("elif_clause"),
    # in Java and Go the last is a token
    "else": _clause("elif_clause", "else_clause", "else_if_clause", "elsif", "else"),
    "as": _within("as"),
    "case": _within("case", "when", "=>"),
    "body": _within("{"),
    "statement": _statement,
    "behind": _behind,
    "before": _before,
    "no-handler": _no_handler,
    "bare": _bare,
    "name": _name,
    "expression": _expression,
    "elif-in": _elif_in,
}
"""What a token of an exchange is far from: the licensor and the critical token, of which it is
one."""


class _Exchange(NamedTuple):
    parent: str
    words: list[str]
    others: list[str]
    partner: Callable[[Code, Node], Iterator[tuple[int, int]]]
    relation: str
    rule: bool


@functools.cache
def _table(table: str) -> dict[str, dict[tuple[str, str], list[_Exchange]]]:
    """Language -> (type of the parent, token) -> exchanges."""
    exchanges: dict[str, dict[tuple[str, str], list[_Exchange]]] = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        languages, token, others, partner, relation = line.split()
        parent, _, word = token.partition(".")
        words = word.split("+")
        exchange = _Exchange(
            parent,
            words,
            [other.replace("+", " ") for other in others.split("|")],
            _PARTNERS[partner.removesuffix("!")],
            relation,
            partner.endswith("!"),
        )
        for language in languages.split(","):
            exchanges.setdefault(language, {}).setdefault((parent, words[0]), []).append(exchange)
    return exchanges


def exchanged(table: str) -> Callable[[Code], Iterator[Site]]:
    """The sites of a table of exchanges.

    A line has the languages, the token as `parent.token` (with `+` between two tokens that become
    one), what it becomes (`|` between several), what it is far from (`_PARTNERS`; with `!`, the
    rule alone says that the result is invalid), and the relation.
    """

    def sites(code: Code) -> Iterator[Site]:
        exchanges = _table(table).get(code.language, {})
        for token in code.tokens:
            for exchange in exchanges.get(
                (token.parent.type if token.parent else "", code.of(token)), ()
            ):
                last = token.first + len(exchange.words) - 1
                words = [code.token(index) for index in range(token.first, last + 1)]
                follows_if = code.token(last + 1) == "if" and words[-1] == "else"
                if words != exchange.words or follows_if:
                    continue
                for licensor, critical in exchange.partner(code, token):
                    for other in exchange.others:
                        yield Site(
                            token.start,
                            code.tokens[last].end,
                            other,
                            licensor,
                            critical,
                            exchange.relation,
                            exchange.rule,
                        )

    return sites
