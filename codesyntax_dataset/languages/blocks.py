"""The block of code around each token, delimited by curly brackets or by indentation."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from codesyntax_dataset.schema import Token

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
# what separates two tokens of one logical line
_CONTINUED = re.compile(r"([ \t\f]*\\\r?\n)+[ \t\f]*")


def in_curly_brackets(code: str, tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """For each token, the first and last token of the innermost curly brackets around it, or of all
    tokens."""
    opened, inside, closed_at = [-1], [], {-1: len(tokens) - 1}
    for index, token in enumerate(tokens):
        if token.text == "}" and len(opened) > 1:
            closed_at[opened.pop()] = index
        inside.append(opened[-1])
        if token.text == "{":
            opened.append(index)
    return [(max(0, opening), closed_at.get(opening, len(tokens) - 1)) for opening in inside]


def by_indentation(code: str, tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """For each token, the first and last token of the surrounding logical lines with at least its
    line's indentation.

    Brackets and backslashes join lines; a token that begins with `#` is a comment.
    """
    # of each logical line, its first token and the width of its indentation
    lines, indents = (
        [],
        [],
    )
    depth, before = 0, None
    for index, (text, start, end) in enumerate(tokens):
        # line breaks and comments, whose column means nothing
        if not text.strip() or text.startswith("#"):
            continue
        between = "\n" if before is None else code[before:start]
        if depth == 0 and "\n" in between and not _CONTINUED.fullmatch(between):
            lines.append(index)
            indents.append(len(code[code.rfind("\n", 0, start) + 1 : start].expandtabs(8)))
        depth = max(0, depth + (text in _OPENING) - (text in _CLOSING))
        before = end
    blocks = []
    for number, indent in enumerate(indents):
        first, last = number, number
        while first > 0 and indents[first - 1] >= indent:
            first -= 1
        while last + 1 < len(lines) and indents[last + 1] >= indent:
            last += 1
        blocks.append((lines[first], ([*lines, len(tokens)])[last + 1] - 1))
    return [blocks[max(0, bisect_left(lines, index + 1) - 1)] for index in range(len(tokens))]
