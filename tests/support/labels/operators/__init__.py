"""Every operator beside every other, and in every place of a statement: what a grammar may group otherwise than a language.

A table beside this module has the operators of each language, after the language's own manual. A new operator is a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

_HOLE = re.compile(r"(?<![\w$'])_(?!\w)")
_SIGN = re.compile(r"[^\w\s$@()\[\]{}⦅⦆'\",;:]")


@dataclass(frozen=True)
class Operator:
    """An operator of a language.

    `text`: the operator with `_` for each operand, such as `_ + _`, `not _`, `_ ? _ : _`; where only a name can stand,
    it has a name, as in `v = _`. What has no operand, such as `-1`, is an operand only. `precedence`: operators of
    higher precedence bind their operands first. `associativity`: how operators of one precedence group that stand beside
    each other; with "none" they cannot.
    """

    text: str
    precedence: int
    associativity: Literal["left", "right", "none"] = "none"

    @property
    def operands(self) -> int:
        return len(_HOLE.findall(self.text))

    @property
    def is_infix(self) -> bool:
        """Whether it begins and ends with an operand."""
        return self.text.startswith("_") and self.text.endswith("_")


@dataclass(frozen=True)
class Syntax:
    """The operators of a language.

    `frames`: functions with `_` for an expression in each place of a statement; pairs stand in the first. `operand`: a
    name, whose letter `a` is another one for each operand.
    """

    operators: tuple[Operator, ...]
    frames: tuple[str, ...]
    operand: str = "a"


@dataclass(frozen=True)
class Case:
    """A function with one or two operators in a frame: what stands in what, to tell kinds of differences apart."""

    code: str
    inner: str
    outer: str


def syntax_of(language: str) -> Syntax:
    """The operators of a language, by its table here: those of a precedence and associativity stand below these.

    `\\n` is a line break; `with` names a language whose operators and frames are this one's, too.
    """
    table = Path(__file__).with_name(f"{language}.txt").read_text("utf-8")
    operators: list[Operator] = []
    frames: list[str] = []
    for other in re.findall(r"^with (\w+)$", table, re.MULTILINE):
        operators += syntax_of(other).operators
        frames += syntax_of(other).frames
    for heading, lines in re.findall(r"^(\w.*)\n((?: +.*\n)+)", table, re.MULTILINE):
        texts = [line.strip().replace("\\n", "\n") for line in lines.splitlines()]
        if heading == "frames":
            frames += texts
        else:
            precedence, *associativity = heading.split()
            operators += [Operator(text, int(precedence), *associativity) for text in texts]
    operand = re.search(r"^operand (.*)$", table, re.MULTILINE)
    return Syntax(tuple(operators), tuple(frames), operand[1] if operand else "a")


def filled(text: str, operand: int, inner: str) -> str:
    """The text with another one in place of an operand; signs that would become one are kept apart by a blank."""
    match = [*_HOLE.finditer(text)][operand]
    before, after = text[: match.start()], text[match.end() :]
    left = " " if _SIGN.match(before[-1:]) and _SIGN.match(inner) else ""
    right = " " if _SIGN.match(inner[-1:]) and _SIGN.match(after) else ""
    return before + left + inner + right + after


def named(text: str, syntax: Syntax) -> str:
    """The text with a name for each operand."""
    letters = count(ord("a"))
    return _HOLE.sub(lambda _: syntax.operand.replace("a", chr(next(letters))), text)


def pairs(syntax: Syntax, frames: tuple[str, ...] | None = None) -> Iterator[Case]:
    """Each operator as each operand of each other, in these frames, by default in the first; each text once."""
    texts = {
        filled(outer.text, operand, inner.text): (inner.text, outer.text)
        for outer in syntax.operators
        for operand in range(outer.operands)
        for inner in syntax.operators
    }
    for frame in frames or syntax.frames[:1]:
        for text, construct in texts.items():
            yield Case(filled(frame, 0, named(text, syntax)), *construct)


def alone(syntax: Syntax) -> Iterator[Case]:
    """Each operator in each frame."""
    for frame in syntax.frames:
        for operator in syntax.operators:
            yield Case(filled(frame, 0, named(operator.text, syntax)), operator.text, frame)
