"""Operators by the order in which a language groups them, for trees of grammars that group them
otherwise.

A table lists `Level`s from the operators that group last to those that group first. Each operator
competes for the operands at its open ends: it has a power on its left and on its right, and an
operand goes to the neighbour of more power. Where nodes of a tree stand otherwise, `brackets` says
where the language would have brackets if it had to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import tree_sitter


_Span = tuple[int, int]  # in bytes


class Level(NamedTuple):
    """Operators of one precedence: their types of node, and their signs, both apart by blanks; no
    signs are all others.

    `group`: how those beside each other group; "none" if they cannot stand so. Those that are only
    before or behind an operand are `prefix` or `postfix`; a `function` is a prefix, but with a
    bracket right behind it that is its operand. A `range` is between two operands, or lacks either; an
    `ending` one is the last of its operand, so what follows goes on with the operator around it.
    A `target` is a name before an operator such as `=`, which goes to nobody else. `unpacking` is a
    prefix that has brackets around it only as an element, with a comma.
    """

    group: Literal[
        "left",
        "right",
        "none",
        "range",
        "ending",
        "prefix",
        "function",
        "postfix",
        "target",
        "unpacking",
    ]
    nodes: str
    signs: str = ""


class Brackets(NamedTuple):
    """Where brackets would stand, in bytes, and the one that closes."""

    start: int
    end: int
    closing: bytes = b")"


class Rivals(NamedTuple):
    """Types of nodes with which another may begin or end and compete for an operand: nodes of
    others never do."""

    before: frozenset[str]
    behind: frozenset[str]


class _Power(NamedTuple):
    left: int | None  # None where no operand is
    right: int | None
    sign: str
    closing: bytes
    ends: bool

    def asks_before(self, inner: _Power) -> bool:
        """Whether it may ask for an operand of one that it begins with, or of one inside of
        that."""
        if self.left is None:
            return False
        ends = self.left > inner.left if inner.left is not None else False
        return ends or inner.ends or (inner.right is not None and self.left >= inner.right)

    def asks_behind(self, inner: _Power) -> bool:
        """Whether it may ask for an operand of one that it ends with, or of one inside of that."""
        right = self.right
        return right is not None and any(
            end is not None and right > end for end in (inner.left, inner.right)
        )


class _Item(NamedTuple):
    """An operand, or an operator and what is behind it."""

    start: int
    end: int
    power: _Power | None
    lacking: bool  # the operand on its right, which it may have


class Operators:
    """The operators of a language.

    `levels`: from those that group last. `openings`: signs behind an operand that begin one where
    none is before, such as `[`. `wrappers`: nodes around the operand on the right that belong to
    the operator; `labels`: nodes there that are no operand; `continued`: nodes that may lack this
    operand, but not where these match, in bytes, what is behind: a `break` of the line before the
    operand.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        openings: Iterable[str] = (),
        wrappers: Iterable[str] = (),
        labels: Iterable[str] = (),
        continued: Mapping[str, re.Pattern[bytes]] = MappingProxyType({}),
    ):
        self._powers: dict[str, dict[str, _Power]] = {}
        self._prefixes: dict[str, _Power] = {}
        self._functions: set[str] = set()
        self._openings, self._wrappers = frozenset(openings), frozenset(wrappers)
        self._labels, self.continued = frozenset(labels), continued
        for number, (group, nodes, signs) in enumerate(levels):
            power = 2 * number
            left = {
                "prefix": None,
                "function": None,
                "unpacking": None,
                "target": 2 * len(levels),
            }.get(group, power)
            closing = b",)" if group == "unpacking" else b")"
            right: int | None = None if group == "postfix" else power
            if group in ("left", "none", "range", "ending"):
                right = power + 1
            for sign in signs.split() or [""]:
                operator = _Power(left, right, sign, closing, group == "ending")
                for node in nodes.split():
                    self._powers.setdefault(node, {})[sign] = operator
                if group in ("prefix", "range", "ending") and sign:
                    self._prefixes[sign] = operator._replace(left=None)
                if group == "function":
                    self._functions.add(sign)
        self.rivals = {node: self._rivals(node) for node in self._powers}

    def _rivals(self, node: str) -> Rivals:
        """What may compete with a node of this type for operands."""
        before: set[str] = set()
        behind = set(self._wrappers)
        for power, (inner, signs) in product(self._powers[node].values(), self._powers.items()):
            if any(power.asks_before(other) for other in signs.values()):
                before.add(inner)
            if any(power.asks_behind(other) for other in signs.values()):
                behind.add(inner)
        return Rivals(frozenset(before), frozenset(behind))

    def competes(self, node: tree_sitter.Node) -> bool:
        """Whether an operand of this operator may belong to another one that is inside of it."""
        if (power := self._power(node)) is None:
            return False
        if power.left is not None:
            inner = node.children[0]
            while (other := self._power(inner)) and other.right is not None:
                if power.left >= other.right or other.ends:
                    return True
                inner = self._last(inner)
        if power.right is not None:
            inner = self._last(node)
            while (other := self._power(inner)) and other.left is not None:
                if power.right > other.left:
                    return True
                inner = inner.children[0]
        return False

    def line_break(self, node: tree_sitter.Node, data: bytes) -> int | None:
        """The byte of the line break between an operator and its operand, which the grammar takes
        for its end."""
        continued = self.continued.get(node.type)
        following = (
            continued and not node.children[-1].is_named and continued.match(data, node.end_byte)
        )
        return following.start("break") if following else None

    def brackets(self, node: tree_sitter.Node) -> set[Brackets]:
        """Where the expression around an operator lacks brackets that its language does not need:
        with all or none."""
        outermost = self._outermost(node)
        items, nodes = self._flat(outermost)
        grouped = set(self._grouped(items))
        if {(pair.start, pair.end) for pair in grouped} <= nodes:
            return set()
        return grouped - {Brackets(outermost.start_byte, outermost.end_byte)}

    def _power(self, node: tree_sitter.Node) -> _Power | None:
        powers, children = self._powers.get(node.type), node.children
        # the keyword of `await`, and the sign of a node, are of the same type
        if powers is None or not node.is_named or not children:
            return None
        power = next(
            (powers[child.type] for child in children if child.type in powers), powers.get("")
        )
        if power and power.left is not None and not children[0].is_named:  # such as `..b`
            return power._replace(left=None)
        called = (
            power and power.sign in self._functions and children[1].type.startswith("parenthesized")
        )
        return None if called and children[0].end_byte == children[1].start_byte else power

    def _last(self, node: tree_sitter.Node) -> tree_sitter.Node:
        last = node.children[-1]
        return last.children[-1] if last.type in self._wrappers else last

    def _outermost(self, node: tree_sitter.Node) -> tree_sitter.Node:
        while (parent := node.parent) is not None:
            if parent.type in self._wrappers and parent.parent is not None:
                parent = parent.parent
            power = self._power(parent)
            before = power is not None and power.left is not None and parent.children[0] == node
            behind = power is not None and power.right is not None and self._last(parent) == node
            if not (before or behind):
                break
            node = parent
        return node

    def _flat(self, outermost: tree_sitter.Node) -> tuple[list[_Item], set[_Span]]:
        """The operands and operators of an expression, and where the grammar has a node."""
        items: list[_Item] = []
        nodes: set[_Span] = set()
        waiting: list[tree_sitter.Node | _Item] = [outermost]
        while waiting:
            node = waiting.pop()
            if isinstance(node, _Item):
                items.append(node)
            elif (power := self._power(node)) is None:
                items.append(_Item(node.start_byte, node.end_byte, None, False))
            else:
                nodes.add((node.start_byte, node.end_byte))
                last, behind = self._last(node), node.children[0 if power.left is None else 1]
                lacking = power.right is not None and (
                    not last.is_named or last.type in self._labels
                )
                if power.right is not None and not lacking:
                    waiting.append(last)
                waiting.append(_Item(behind.start_byte, node.end_byte, power, lacking))
                if behind.is_named:
                    nodes.add((behind.start_byte, node.end_byte))
                if power.left is not None:
                    waiting.append(node.children[0])
        return items, nodes

    def _grouped(self, items: list[_Item]) -> Iterator[Brackets]:
        """Where each operator begins and ends with its operands."""
        waiting: list[tuple[_Power, int]] = []  # an operator, and where it begins
        start = end = -1  # of the operand before
        ended: _Power | None = None  # by an operator behind which no other takes it
        for item, following in zip(items, [*items[1:], None]):
            power = item.power
            if start < 0 and power and power.left is not None:  # no operand is before
                if power.sign in self._openings:
                    yield Brackets(item.start, item.end)
                power = self._prefixes.get(power.sign)
            if power is None:
                start, end, ended = item.start, item.end, None
                continue
            if ended and item.start == end:  # `..=` before an operand, to the grammar `.. =`
                waiting.append((ended, start))
                start, ended = -1, None
                continue
            if power.left is not None:
                while waiting and (ended or power.left < (waiting[-1][0].right or 0)):
                    before, start = waiting.pop()
                    ended = before if before.ends else None
                    yield Brackets(start, end, before.closing)
            else:
                start = item.start
            if power.right is None or (item.lacking and not self._begins(following)):
                end, ended = item.end, power if power.ends else None
                if start != item.start:
                    yield Brackets(start, end)
            else:
                waiting.append((power, start))
                start = -1
        while waiting:
            before, start = waiting.pop()
            yield Brackets(start, end, before.closing)

    def _begins(self, item: _Item | None) -> bool:
        """Whether an operand begins with it, of an operator that the grammar leaves without one."""
        if item is None or item.power is None:
            return item is not None
        sign = item.power.sign
        return item.power.left is None or sign in self._prefixes or sign in self._openings
