"""CuBERT's split of a token into pieces, before its vocabulary splits these into sub-tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from probing.models.cubert.lexemes import IDENTIFIER, NUMBER, WHOLE

_LONGEST = 15
"""Characters of a piece, of the kinds that are split at all."""

_CASE = re.compile(  # of a name, with underscores behind it; a run of capitals ends before the one that begins a word
    """ [A-Z]? [^A-Z_]+ _*  |  [A-Z]+ (?=[A-Z][^A-Z_])  |  [A-Z]+ _*  |  _+ """, re.VERBOSE
)

_BLANKS = re.compile(r"\S+| {1,20}|\t{1,20}|\s")  # of literals: only the same blank or tab stays together


def pieces(kind: int, text: str) -> Iterator[str]:
    """The pieces of a token of a kind, in order; together they are `text`."""
    if kind == WHOLE:
        yield text
        return
    if kind == NUMBER:
        parts = [text]
    elif kind == IDENTIFIER:
        parts = _CASE.findall(text)
    else:
        parts = list(_by_character(text))
    for part in parts:
        for start in range(0, len(part), _LONGEST):
            yield part[start : start + _LONGEST]


_UPPER, _LOWER, _DIGIT, _OTHER = range(4)


def _class(character: str) -> int:
    if character.isupper():
        return _UPPER
    if character.islower():
        return _LOWER
    return _DIGIT if character.isdigit() else _OTHER


def _by_character(text: str) -> Iterator[str]:
    """Cut a literal where the class of characters changes; a capital goes with the small letters behind it."""
    kept = ""  # a capital for the run behind it
    runs = [(kind, "".join(run)) for kind, run in groupby(text, _class)]
    for (kind, run), (behind, _) in zip(runs, [*runs[1:], (_OTHER, "")]):
        run, kept = kept + run, ""
        if kind == _UPPER and behind == _LOWER:
            run, kept = run[:-1], run[-1]
        if kind == _OTHER:
            yield from _BLANKS.findall(run)
        elif run:
            yield run
