"""The edges of two label variants by their places in the code, and which of them are the same edge.

Variants have different tokens: one may have comments and line breaks among them, or split what is
one token in the other. So an edge is known by the characters where its head token begins, and where
its dependent begins and ends. At the ends of a dependent, blank tokens and those that the other
variant does not have, such as comments, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from codesyntax_dataset.languages.tables.constructs import CHILDREN
from codesyntax_dataset.schema import Annotation, Edge, Token

OPENING, CLOSING = frozenset("([{"), frozenset(")]}")


class Place(NamedTuple):
    """An edge in the code: the characters where its head and its dependent begin, and where that
    ends (exclusive)."""

    relation: str
    head: int
    start: int
    end: int


class Side:
    """The labels of one variant beside those of the `other`: `places` of its edges, and its
    `tokens` that count."""

    def __init__(self, annotation: Annotation, other: Annotation):
        tokens = annotation.tokens
        covered = {
            character for token in other.tokens for character in range(token.start, token.end)
        }
        counts = [
            token.text.strip() != "" and not covered.isdisjoint(range(*token[1:]))
            for token in tokens
        ]
        self.tokens = [token for token, counted in zip(tokens, counts) if counted]
        self.places = [_place(tokens, counts, edge) for edge in annotation.edges]
        self._starts = {token.start: index for index, token in enumerate(self.tokens)}
        self._ends = {token.end: index for index, token in enumerate(self.tokens)}

    def without_brackets(self, span: Place) -> Place:
        """The place after the brackets with which head and dependent begin, and before those with
        which it ends."""
        end = self._ends.get(span.end, -1)
        while end >= 0 and self.tokens[end].text in CLOSING and self.tokens[end].start > span.start:
            end -= 1
        until = self.tokens[end].end if end >= 0 else span.end
        return Place(
            span.relation, self._after_brackets(span.head), self._after_brackets(span.start), until
        )

    def _after_brackets(self, start: int) -> int:
        if (index := self._starts.get(start)) is None:
            return start
        while index + 1 < len(self.tokens) and self.tokens[index].text in OPENING:
            index += 1
        return self.tokens[index].start


def _place(tokens: Sequence[Token], counts: Sequence[bool], edge: Edge) -> Place:
    relation, head, first, last = edge
    while first < last and not counts[first]:
        first += 1
    while last > first and not counts[last]:
        last -= 1
    return Place(relation, tokens[head].start, tokens[first].start, tokens[last].end)


_COMMON: tuple[Callable[[Side, Place], Any], ...] = (
    lambda side, span: span,
    lambda side, span: side.without_brackets(span),
    lambda side, span: span[:3],
    # the children of a node all have the same head
    lambda side, span: None if span.relation == CHILDREN else span[:2],
    lambda side, span: None if span.relation == CHILDREN else (span.relation, span.start),
)
"""What two places have in common if they are those of the same edge; what is the surest sign comes
first."""


def pairs(first: Side, second: Side) -> Iterator[tuple[int | None, int | None]]:
    """The indices of an edge on both sides, for each edge; None on the side that does not have
    it."""
    left, right = dict.fromkeys(range(len(first.places))), dict.fromkeys(range(len(second.places)))
    for common in _COMMON:
        waiting: dict[Any, list[int]] = {}
        for index in right:
            waiting.setdefault(common(second, second.places[index]), []).append(index)
        waiting.pop(None, None)
        for index in list(left):
            if others := waiting.get(common(first, first.places[index])):
                del left[index], right[others[0]]
                yield index, others.pop(0)
    yield from ((index, None) for index in left)
    yield from ((None, index) for index in right)
