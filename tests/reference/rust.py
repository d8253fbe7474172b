"""The edges of Rust functions by the compiler's own tree, which `rustc` prints with `-Zunpretty=ast-tree`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, combinations
from typing import NamedTuple

import pytest
from support.references.reference_parsers import Place

from codesyntax_dataset.schema import Token

_COMMAND = ["rustc", "-Zunpretty=ast-tree", "--edition=2024", "--crate-type=lib", "-"]
_SPAN = re.compile(r"<anon>:(\d+):(\d+): (\d+):(\d+) ")
_FIRST = frozenset("Assign AssignOp Await Call Cast Field Index MethodCall Paren Try".split())
"""Expressions that begin with another: their first part that is one."""


class Node(NamedTuple):
    """A value of the printed tree: its name, empty for a list, and its parts, those without a name by their place."""

    name: str
    parts: dict[str | int, Node]

    def __getitem__(self, part: str | int) -> Node:
        return self.parts[part]

    @property
    def listed(self) -> list[Node]:
        return list(self.parts.values())

    @property
    def given(self) -> Node | None:
        """What is in an `Option`."""
        return self[0] if self.name == "Some" else None

    @property
    def text(self) -> str:
        """A name without the number that the compiler gives it."""
        return self.name.rpartition("#")[0]

    @property
    def within(self) -> Node:
        """An expression without the brackets around it."""
        return self["kind"][0].within if self["kind"].name == "Paren" else self


def _read(lines: Iterator[str], name: str) -> Node:
    parts: dict[str | int, Node] = {}
    for line in lines:
        text = line.strip().removesuffix(",")
        if text in ("}", ")", "]"):
            break
        field, value = re.fullmatch(r"(?:(\w+): )?(.*)", text).groups()
        opens = value.endswith(("{", "(", "[")) and not value.startswith('"')
        node = _read(lines, value[:-1].strip()) if opens else Node(value, {})
        parts[field or len(parts)] = node
    return Node(name, parts)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for part in node.listed:
        yield from _walk(part)


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a function; `tokens` are used to find keywords. Raises SyntaxError if this rustc cannot read it."""
    if shutil.which("rustc") is None:
        pytest.skip("rustc is not installed, whose parser this test compares with")
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1"}  # a stable compiler prints its tree, too
    run = subprocess.run(_COMMAND, input=code, capture_output=True, text=True, env=environment)
    if run.returncode:
        raise SyntaxError(run.stderr)
    starts = list(accumulate((len(line) + 1 for line in code.split("\n")), initial=0))
    found: list[Place] = []
    done: list[Node] = []  # paths that begin with a qualified type

    def span(node: Node, part: str = "span") -> tuple[int, int]:
        line, column, last_line, last_column = map(int, _SPAN.match(node[part].name).groups())
        return starts[line - 1] + column - 1, starts[last_line - 1] + last_column - 1

    def start(node: Node) -> int:
        return span(node)[0]

    def end(node: Node) -> int:
        return span(node)[1]

    def head(node: Node) -> int:
        if node.name == "Expr":
            kind = node["kind"]
            if kind.name == "Binary":
                return head(kind[1])
            if kind.name == "Range" and kind[0].given:
                return head(kind[0].given)
            if kind.name == "MethodCall":
                return head(kind[0]["receiver"])
            if kind.name in _FIRST:
                return head(next(part for part in kind.listed if part.name == "Expr"))
        if node.name == "Pat" and node["kind"].name == "Ident" and node["kind"][0][0].name == "No":
            return word(start(node), node["kind"][1].text)
        return start(node)

    def tail(node: Node) -> int:
        """The end of the last token of what is called, but for brackets."""
        kind = node["kind"]
        if kind.name in ("AddrOf", "Unary"):
            return tail(kind.listed[-1])
        # such as `f::<T>`
        if kind.name == "Path" and (given := kind[1]["segments"].listed[-1]["args"].given):
            return max(
                token.end for token in tokens if token.end <= start(given[0]) and token.text != "::"
            )
        return tail(kind[0]) if kind.name == "Paren" else end(node)

    def word(position: int, *texts: str) -> int:
        """The first token of these from a position on."""
        return next(
            token.start for token in tokens if token.start >= position and token.text in texts
        )

    def path(at: int, segments: list[Node], position: int) -> None:
        """Adds the edges from the first token of a path to its names behind it, which stand from a position on."""
        rooted = False  # `::a` is one name
        for segment in segments:
            name = segment["ident"].text
            if name != "{{root}}":
                place = word(position, name)
                if not rooted:
                    add("Attribute:value->attr", at, (place, place + len(name)))
                given = segment["args"].given
                position = end(given[0]) if given else place + len(name)
            rooted = name == "{{root}}"

    def add(
        relation: str, at: int | Node, first: Node | tuple[int, int], last: Node | None = None
    ) -> None:
        at = at if isinstance(at, int) else head(at)
        if isinstance(first, Node):
            one = first.within if first.name == "Expr" and last in (None, first) else first
            first = span(one) if last in (None, first) else (start(first), end(last))
        if at < first[0] or (relation == "Call:func->args" and at <= first[0]):
            found.append((relation, at, *first))

    def each(construct: str, **parts: int | Node | tuple[int, int]) -> None:
        """The edges of each part to each later one; `_` stands before the names that are keywords."""
        for (one, at), (other, first) in combinations(parts.items(), 2):
            at = start(at) if isinstance(at, Node) and at.name == "Pat" else at
            add(f"{construct}:{one.strip('_')}->{other}", at, first)

    def labelled(label: Node, node: Node, *keywords: str) -> int:
        """The place of the keyword of a loop or block; adds the edge from its label."""
        if not label.given:
            return start(node)
        at = word(start(node), *keywords)
        add("LabeledStatement:label->body", start(node), (at, end(node)))
        return at

    def arguments(at: int, given: list[Node]) -> None:
        if given:
            add("Call:func->args", at, given[0], given[-1])

    def assign(target: int | Node, value: Node | None) -> None:
        if value:
            add("Assign:target->value", target, value)

    for node in _walk(_read(iter(run.stdout.splitlines()[1:]), "Crate")):
        if (
            node.name in ("Expr", "Pat", "Ty")
            and "span" in node.parts
            and node["kind"].name == "Path"
            and (qualified := node["kind"][0].given)
        ):
            whole, ready = node["kind"][1], int(qualified["position"].name)  # `<T as a::B>::c`
            of_trait, behind = span(qualified, "path_span")
            path(of_trait, whole["segments"].listed[:ready], of_trait)
            path(start(node), whole["segments"].listed[ready:], max(behind, end(qualified["ty"])))
            done.append(whole)
        elif (
            node.name == "Path"
            and "segments" in node.parts
            and not any(node is whole for whole in done)
        ):
            path(start(node), node["segments"].listed, start(node))
        elif node.name == "Arm" and (value := node["body"].given):
            add("Case:test->body", start(node["pat"]), value)
        elif node.name == "Base":
            dots = max(
                token.start
                for token in tokens
                if token.text == ".." and token.start < start(node[0])
            )
            add("Spread:spread->value", dots, node[0])
        # such as the kind `Expr` of a statement, which holds an expression
        if "span" not in node.parts:
            continue
        if node.name == "Local":
            assign(node["pat"], node["kind"].parts.get(0))
        elif node.name == "Item" and node["kind"].name in ("Const", "Static"):
            item = node["kind"][0]
            value = (
                item["expr"].given
                if node["kind"].name == "Static"
                else item["rhs_kind"]["rhs"].given
            )
            assign(word(start(node), item["ident"].text), value)
        elif node.name == "Item" and node["kind"].name in ("TyAlias", "Type"):
            alias = node["kind"][0]
            assign(word(start(node), alias["ident"].text), alias["ty"].given)
        elif node.name == "ExprField" and node["is_shorthand"].name == "false":
            add("Dict:key->value", start(node), node["expr"])
        elif node.name == "Expr":
            kind = node["kind"]
            match kind.name:
                case "Assign":
                    assign(kind[0], kind[1])
                case "AssignOp":
                    add("AugAssign:target->value", kind[1], kind[2])
                case "Await":
                    add("Await:value->await", kind[0], (end(node) - len("await"), end(node)))
                case "Binary":
                    add("InfixExpr:left->right", kind[1], kind[2])
                case "Block":
                    labelled(kind[1], node, "{")
                case "Call":
                    arguments(tail(kind[0]), kind[1].listed)
                case "Closure":
                    if inputs := kind[0]["fn_decl"]["inputs"].listed:
                        add("Lambda:params->body", start(inputs[0]), kind[0]["body"])
                case "Field":
                    name = kind[1].text
                    add("Attribute:value->attr", kind[0], (end(node) - len(name), end(node)))
                case "ForLoop":
                    at = labelled(kind["label"], node, "for")
                    each("For", _for=at, target=kind["pat"], iter=kind["iter"], body=kind["body"])
                case "If":
                    each("If", _if=start(node), test=kind[0], body=kind[1])
                    if other := kind[2].given:
                        at = word(end(kind[1]), "else")
                        add("If:if->else", start(node), (at, at + 4))
                        add("If:test->orelse", kind[0], other)
                        add("If:body->orelse", kind[1], other)
                case "Index":
                    add("Subscript:value->slice", kind[0], kind[1])
                case "Let":
                    assign(kind[0], kind[1])
                case "Loop":
                    add("While:while->body", labelled(kind[1], node, "loop"), kind[0])
                case "Match":
                    if not (arms := kind[1].listed):
                        add("Switch:switch->expr", start(node), kind[0])
                    else:
                        attributes = arms[0]["attrs"].listed
                        statement = (
                            start(attributes[0] if attributes else arms[0]),
                            end(arms[-1]["body"][0]),
                        )
                        each("Switch", switch=start(node), expr=kind[0], statement=statement)
                case "MethodCall":
                    call = kind[0]
                    name = call["seg"]["ident"].text
                    add(
                        "Attribute:value->attr",
                        call["receiver"],
                        (start(call), start(call) + len(name)),
                    )
                    arguments(start(call) + len(name), call["args"].listed)
                case "Range":
                    if (lower := kind[0].given) and (upper := kind[1].given):
                        add("Range:lower->upper", lower, upper)
                case "Ret" if value := kind[0].given:
                    add("Return:return->value", start(node), value)
                case "AddrOf":
                    add("UnaryOp:op->operand", start(node), kind[2])
                case "Unary":
                    add("UnaryOp:op->operand", start(node), kind[1])
                case "While":
                    at = labelled(kind[2], node, "while")
                    each("While", _while=at, test=kind[0], body=kind[1])
    return Counter(found)
