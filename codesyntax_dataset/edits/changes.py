"""Changes to a text, and the image of its labels under them: the proof that an edit kept the
syntax.

The image of a token is the token that stands where the changes moved it. The image of an edge has
the same relation, and the images of its head and of the first and last token of its dependent. One
thing may differ: where tokens were put in behind the last token, and only they, brackets and blanks
follow, the dependent may end with one of them, because a block ends with the statement, and a call
with the argument, that was put behind its last one. And it may begin with brackets that were put in
before its first token, if they close inside it: in `(a) + b` they belong to the sum, as exact
labels say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, product
from typing import NamedTuple

from codesyntax_dataset.schema import Annotation, Edge, Token


class Change(NamedTuple):
    """`text` in place of the characters `start` to `end` (exclusive); what is put in, if the two
    are equal, stands before the token that starts there."""

    start: int
    end: int
    text: str


class Edited(NamedTuple):
    """A text after changes, which are sorted and do not overlap."""

    code: str
    changes: list[Change]

    def moved(self, positions: Sequence[int]) -> list[int]:
        """Where characters of the text before, at which no change goes on, are now."""
        starts = [change.start for change in self.changes]
        shifts = [
            0,
            *accumulate(len(change.text) - (change.end - change.start) for change in self.changes),
        ]
        moved = []
        for position in positions:
            before = bisect_right(starts, position)
            # the change begins with this character
            while before and self.changes[before - 1].end > position:
                before -= 1
            moved.append(position + shifts[before])
        return moved


def changed(code: str, changes: Iterable[Change]) -> Edited:
    """`code` after `changes`, which must not overlap; those at one place stay in their order."""
    ordered = sorted(changes, key=lambda change: (change.start, change.end))
    pieces, position = [], 0
    for start, end, text in ordered:
        assert start >= position, "changes overlap"
        pieces += [code[position:start], text]
        position = end
    return Edited("".join([*pieces, code[position:]]), ordered)


def image(before: Annotation, edited: Edited, after: Annotation) -> list[Edge] | None:
    """The labels `before`, in the tokens of `after`, or None if `after` does not have exactly them.

    Edges of `after` that begin or end with a token that was put in have no image, and are left
    aside.
    """
    images = _images(before.tokens, edited, after.tokens)
    if images is None:
        return None
    unchanged = set(images)
    begins, ends = _begins(after.tokens, unchanged), _ends(after.tokens, unchanged)
    remaining = Counter(after.edges)
    result = []
    for relation, head, first, last in before.edges:
        spans = product(begins[images[first]], ends[images[last]])
        edges = [
            Edge(relation, images[head], begin, end)
            for begin, end in spans
            if begin == images[first] or _balanced(after.tokens[begin : end + 1])
        ]
        same = next((edge for edge in edges if remaining[edge]), None)
        if same is None:
            return None
        remaining[same] -= 1
        result.append(same)
    further = (edge for edge, count in remaining.items() if count)
    return (
        None
        if any(edge.head in unchanged and edge.first in unchanged for edge in further)
        else result
    )


def _images(before: Sequence[Token], edited: Edited, after: Sequence[Token]) -> list[int] | None:
    """For each token its image; None if a token has none.

    That of an empty token, such as a DEDENT, is the next empty one: it stands before what is put in
    before a token.
    """
    images: list[int] = []
    index = 0
    for token, start in zip(before, edited.moved([token.start for token in before])):
        while index < len(after) and (
            bool(after[index].text) != bool(token.text)
            or (token.text and after[index].start < start)
        ):
            index += 1
        if index == len(after) or after[index].start > start:
            return None
        images.append(index)
        index += 1
    return images


def _begins(tokens: Sequence[Token], unchanged: set[int]) -> list[list[int]]:
    """For each token, itself and the brackets put in before it with which a dependent may begin in
    its stead."""
    begins: list[list[int]] = []
    before: list[int] = []
    for index, token in enumerate(tokens):
        begins.append([index, *before])
        before = [index, *before] if index not in unchanged and token.text == "(" else []
    return begins


def _balanced(tokens: Sequence[Token]) -> bool:
    depths = list(
        accumulate(
            (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}")) for token in tokens
        )
    )
    return min(depths) >= 0 and depths[-1] == 0


def _ends(tokens: Sequence[Token], unchanged: set[int]) -> list[list[int]]:
    """For each token, itself and the tokens put in with which a dependent may end in its stead."""
    ends: list[list[int]] = []
    behind: list[int] = []
    for index in reversed(range(len(tokens))):
        ends.append([index, *behind])
        if index not in unchanged:
            behind = [index, *behind]
        elif tokens[index].text.strip() and tokens[index].text not in (")", "]", "}"):
            behind = []
    return ends[::-1]
