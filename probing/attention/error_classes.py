"""What kind of token a wrong first choice is (after Shen et al. 2022, Table 7, whose classes were told by hand).

Every wrong choice is in exactly one class, the first of CLASSES that fits:

- *no prediction*: the reading token has no sub-tokens, or attends to no token but itself.
- *bracket*, *separator* (`, ; : .`), *operator* (all other punctuation, such as `=`), *line break* (or indentation): by
  the token's own text.
- *same text as the head*: another token that is spelled as the edge's head token, such as a second `if` for an `if`.
- *keyword* (the published lists, so `True` and `null` are here): by the token's own text.
- *literal*: a string, character or number.
- *inside the dependent*: a name among the dependent's tokens, but not the one that the rule asks for.
- *inside its block*, *outside its block*: any other name. The block is that of the dependent's first token: in Python the
  logical lines around it that are indented as far or further, in Java the innermost pair of curly brackets.
- *other*: what is none of all this: a comment (in Python these are tokens), a character that the language does not know.

Apart from that, every wrong choice but *no prediction* is at exactly one of PLACES: before the head token, between it and
the dependent, inside the dependent, or behind it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from probing.evidence.baselines import KEYWORDS

CLASSES = (
    "no prediction",
    "bracket",
    "separator",
    "operator",
    "line break",
    "same text as the head",
    "keyword",
    "literal",
    "inside the dependent",
    "inside its block",
    "outside its block",
    "other",
)

PLACES = ("before the head", "between", "inside", "behind")

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_SEPARATORS = (",", ";", ":", ".")
_OPERATOR = re.compile(r"[-+*/%@&|^~<>=!?:.]+")
_LITERAL = re.compile(r"""[A-Za-z]{0,3}["']|\.?[0-9]""")
_CONTINUED = re.compile(r"([ \t\f]*\\\r?\n)+[ \t\f]*")  # what is between two tokens of one logical line of Python


class Tokens:
    """The tokens of one function, at the characters `start` to `end` (excluded) of its `code`."""

    def __init__(self, code: str, start: Sequence[int], end: Sequence[int], language: str):
        self.texts = [code[s:e] for s, e in zip(start, end)]
        self.language = language
        self._kinds: dict[str, str] = {}
        self._blocks = _indented(code, start, end, self.texts) if language == "python" else _bracketed(self.texts)

    def block(self, token: int) -> tuple[int, int]:
        """The first and last token of the block that a token is in."""
        return self._blocks[token]

    def classify(self, chosen: int, reader: int, head: int, first: int, last: int) -> str:
        """The class of the wrong choice `chosen`, or -1, made in the row of `reader` for the edge `head`, `first`, `last`."""
        if chosen < 0 or chosen == reader:
            return "no prediction"
        text = self.texts[chosen]
        kind = self._kinds.get(text) or self._kinds.setdefault(text, _kind(text, self.language))
        if kind in ("keyword", "literal", "name", "other") and text == self.texts[head]:
            return "same text as the head"
        if kind != "name":
            return kind
        if first <= chosen <= last:
            return "inside the dependent"
        begin, end = self.block(first)
        return "inside its block" if begin <= chosen <= end else "outside its block"


def place(chosen: int, head: int, first: int, last: int) -> str:
    """Where a wrong choice is, one of PLACES, for the edge `head`, `first`, `last`."""
    if first <= chosen <= last:
        return "inside"
    if chosen > last:
        return "behind"
    return "between" if chosen > head else "before the head"


def _kind(text: str, language: str) -> str:
    """What a token is by its text alone: one of CLASSES, or a `name`."""
    if not text.strip():
        return "line break"
    if text in _OPENING or text in _CLOSING:
        return "bracket"
    if text in _SEPARATORS:
        return "separator"
    if _OPERATOR.fullmatch(text):
        return "operator"
    if text in KEYWORDS[language]:
        return "keyword"
    if _LITERAL.match(text):
        return "literal"
    return "name" if text.replace("$", "_").isidentifier() else "other"


def _bracketed(texts: Sequence[str]) -> list[tuple[int, int]]:
    """For each token the innermost curly brackets around it; all tokens where there are none."""
    opened, inside, closed_at = [-1], [], {-1: len(texts) - 1}
    for index, text in enumerate(texts):
        if text == "}" and len(opened) > 1:
            closed_at[opened.pop()] = index
        inside.append(opened[-1])
        if text == "{":
            opened.append(index)
    return [(max(0, opening), closed_at.get(opening, len(texts) - 1)) for opening in inside]


def _indented(code: str, start: Sequence[int], end: Sequence[int], texts: Sequence[str]) -> list[tuple[int, int]]:
    """For each token the logical lines around it that are indented as far as its own, or further."""
    lines, indents = [], []  # of each logical line its first token, and the columns before it
    depth, before = 0, None
    for index, text in enumerate(texts):
        if not text.strip() or text.startswith("#"):  # line breaks and comments, which may stand in any column
            continue
        between = "\n" if before is None else code[before : start[index]]
        if depth == 0 and "\n" in between and not _CONTINUED.fullmatch(between):
            lines.append(index)
            indents.append(len(code[code.rfind("\n", 0, start[index]) + 1 : start[index]].expandtabs(8)))
        depth = max(0, depth + (text in _OPENING) - (text in _CLOSING))
        before = end[index]
    blocks = []
    for number, indent in enumerate(indents):
        first, last = number, number
        while first > 0 and indents[first - 1] >= indent:
            first -= 1
        while last + 1 < len(lines) and indents[last + 1] >= indent:
            last += 1
        blocks.append((lines[first], (lines + [len(texts)])[last + 1] - 1))
    return [blocks[max(0, bisect_left(lines, index + 1) - 1)] for index in range(len(texts))]
