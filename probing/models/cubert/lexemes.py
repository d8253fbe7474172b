"""The unified tokens of CuBERT: what its language lexers give, with the characters that each token stands for, and the
pieces into which CuBERT splits a token before its vocabulary splits these into sub-tokens.

The lexers are those of the labels, which do not depend on the interpreter: Python's `tokenize` as up to 3.11, and
javalang. Keywords, punctuation and errors are one kind here, because all three stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages.java import tokens as java_tokens
from codesyntax_dataset.languages.python import tokens as python_tokens
from probing.models.cubert import DROPPABLE, LANGUAGES

IDENTIFIER, LITERAL, COMMENT, NUMBER, WHITESPACE, NEWLINE, WHOLE = range(7)
"""The kinds of tokens, which decide how they are split; a LITERAL is a string or a character."""

KINDS = dict(zip(DROPPABLE, (COMMENT, WHITESPACE)))
"""Name of what a tokenizer may drop -> kind of token."""

_LINE_BREAK = re.compile(r"\r?\n")


class Lexeme(NamedTuple):
    """A token: its kind, how it is spelled, and from which character to which (exclusive) of the code it is.

    `name` is the name between triple underscores that goes before the spelling of tokens without a text of their own,
    such as line breaks. It stands for all characters of the token, the spelling behind it for none.
    """

    kind: int
    spelling: str
    start: int
    end: int
    name: str = ""


def lex(language: str, code: str) -> tuple[list[Lexeme], Sequence[int]]:
    """The tokens of code in one of LANGUAGES, and the place in the code of every character that they count.

    Code that cannot be tokenized is one token, ERROR; blank code has none.
    """
    if not code.strip():
        return [], range(1)
    try:
        return _LEXERS[language](code)
    except ParseError:
        return [Lexeme(WHOLE, "", 0, len(code), "ERROR")], range(len(code) + 1)


def _python(code: str) -> tuple[list[Lexeme], Sequence[int]]:
    text = code.rstrip()
    line_break = _LINE_BREAK.search(code, len(text))
    start, end = line_break.span() if line_break else (len(text), len(text))
    return [*_python_lexemes(text), Lexeme(NEWLINE, "", start, end, "NEWLINE")], range(len(code) + 1)


def _python_lexemes(text: str) -> Iterator[Lexeme]:
    depth = blocks = 0  # of brackets, and of indentation
    blank = True  # nothing but comments yet on a logical line
    commented = False  # the last token is a comment
    for token, start, end in python_tokens.tokenize(text):
        if start == end == len(text):  # the tokens of the end
            break
        commented = token.startswith("#")
        if not token:
            blocks -= 1
            yield Lexeme(WHOLE, "", start, end, "DEDENT")
        elif token.endswith("\n"):
            yield Lexeme(WHOLE, "", start, end, "NL") if depth or blank else Lexeme(NEWLINE, "", start, end, "NEWLINE")
            blank = blank or not depth
        elif blank and token.isspace():
            blocks += 1
            yield Lexeme(WHOLE, token, start, end, "INDENT")
        else:
            depth += (token in "([{") - (token in ")]}")
            blank = blank and commented
            yield Lexeme(_python_kind(token), token, start, end)
    if commented and blank:
        yield Lexeme(WHOLE, "", len(text), len(text), "NL")
    for _ in range(blocks):
        yield Lexeme(WHOLE, "", len(text), len(text), "DEDENT")


def _python_kind(token: str) -> int:
    if token[0] == "#":
        return COMMENT
    if token[-1] in "\"'" and len(token) > 1:
        return LITERAL
    return _kind_of_word(token)


def _kind_of_word(token: str) -> int:
    if token[0].isdecimal() or (token[0] == "." and token[1:2].isdecimal()):
        return NUMBER
    return IDENTIFIER if token[0].isidentifier() or token[0] == "$" else WHOLE


def _java(code: str) -> tuple[list[Lexeme], Sequence[int]]:
    decoded = java_tokens.DecodedCode(code)
    return list(_java_lexemes(decoded)), decoded.places


def _java_lexemes(decoded: java_tokens.DecodedCode) -> Iterator[Lexeme]:
    text, at = decoded.text, 0
    for token, start, end in java_tokens.scan(decoded, everything=True):
        yield from _java_gap(text, at, start)
        if token.startswith("//"):
            end += text.startswith("\n", end)  # a comment to the end of the line has its line break
        at = end
        yield Lexeme(_java_kind(token), text[start:end], start, end)
    yield from _java_gap(text, at, len(text))


def _java_gap(text: str, start: int, end: int) -> Iterator[Lexeme]:
    """The pieces between two tokens: a NEWLINE for each line break, and the blanks behind the last one, as spaces."""
    for line_break in _LINE_BREAK.finditer(text, start, end):
        yield Lexeme(NEWLINE, "", *line_break.span(), "NEWLINE")
        start = line_break.end()
    if start < end:
        yield Lexeme(WHITESPACE, " " * (end - start), start, end)


def _java_kind(token: str) -> int:
    if token.startswith(("//", "/*")):
        return COMMENT
    return LITERAL if token[0] in "\"'" and len(token) > 1 else _kind_of_word(token)


_LEXERS: dict[str, Callable[[str], tuple[list[Lexeme], Sequence[int]]]] = dict(zip(LANGUAGES, (_python, _java)))


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
