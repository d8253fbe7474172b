"""The tokens of Python code, as given by Python 3.9's `tokenize`, the tokenizer behind the
published labels.

Its successors split f-strings (PEP 701) and, since the rewrite in 3.12, reject invalid Python or
split it differently: with the standard module, tokens would depend on the interpreter. One regular
expression does what 3.9's tokenizer does, also for code that does not parse, such as Python 2.
"""

from __future__ import annotations

import re
import unicodedata

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.schema import Token

_PREFIX = r"(?:[bB][rR]?|[rR][bBfF]?|[fF][rR]?|[uU])?"
_STRING = rf"""{_PREFIX}
    (?: '''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''
      | \"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*\"""
      | '(?!'')[^\n'\\]*(?:\\(?:\r\n|.)[^\n'\\]*)*'
      | "(?!"")[^\n"\\]*(?:\\(?:\r\n|.)[^\n"\\]*)*"
    )"""
_UNENDED_STRING = rf"""{_PREFIX}
    (?: ''' | \""" | '[^\n'\\]*(?:\\.[^\n'\\]*)*\\\r?\n | "[^\n"\\]*(?:\\.[^\n"\\]*)*\\\r?\n )"""
_DIGITS = r"[0-9](?:_?[0-9])*"
_EXPONENT = rf"[eE][-+]?{_DIGITS}"
_NUMBER = rf"""
    (?: {_DIGITS}\.(?:{_DIGITS})? | \.{_DIGITS} ) (?:{_EXPONENT})? [jJ]?
  | {_DIGITS} (?: {_EXPONENT}[jJ]? | [jJ] )
  | 0[xX](?:_?[0-9a-fA-F])+ | 0[bB](?:_?[01])+ | 0[oO](?:_?[0-7])+ | 0(?:_?0)* | [1-9](?:_?[0-9])*"""
_OPERATOR = r"\*\*=? | //=? | >>=? | <<=? | -> | := | != | [-+*/%&@|^=<>]=? | \.\.\. | [~.,:;]"

_TOKEN = re.compile(
    rf"""
    [ \f\t]*+
    (?: (?P<string> {_STRING} )
      | (?P<unended> {_UNENDED_STRING} )
      | (?P<word> {_NUMBER} | \w+ | {_OPERATOR} )
      | (?P<newline> \r?\n )
      | (?P<opening> [(\[{{] )
      | (?P<closing> [)\]}}] )
      | (?P<comment> \#[^\r\n]* )
      | (?P<continuation> \\\r?\n )
    )
  | [ \f\t]++ \Z
  | (?P<stray> [ \f\t]++ | . )  # what starts no token; each of the blanks in front of it is a stray, too
    """,
    re.VERBOSE | re.DOTALL,
)

MOST_QUOTES = 100
"""Quotes that begin no string, in one function: to know it of each, the rest of its line is
read."""

_UNREADABLE = re.compile(r"\0|\r(?!\n)|[\ud800-\udfff]")


def tokenize(code: str) -> list[Token]:
    """The tokens of `code`, with the strings that Python 3.9's `tokenize.generate_tokens` gives.

    A line break keeps its text in `code`, `"\\n"` or `"\\r\\n"`. NEWLINE at the end of a last line
    without a line break, DEDENT and ENDMARKER are empty and placed where the next token starts. A
    character that starts no token is a token.

    Raises ParseError for code that cannot be tokenized: a string, bracket or continued line that
    does not end, or an indentation that matches no outer block; and for code that interpreters read
    differently: a statement that starts with a backslash, NUL, surrogates, a carriage return alone,
    and, outside strings and comments, characters that are not in Unicode 3.2, the only version that
    every interpreter knows; and for more than MOST_QUOTES quotes that begin no string.
    """
    if unreadable := _UNREADABLE.search(code):
        raise error_at(
            code, unreadable.start(), f"cannot read the character {unreadable[0]!r} in Python code"
        )
    tokens: list[Token] = []
    columns = [0]  # the indentations of the open blocks
    depth = 0  # of brackets
    line_start = 0
    quotes = 0  # that begin no string
    fresh = True  # no token yet on a line that continues nothing
    kind = None
    for match in _TOKEN.finditer(code):
        kind = match.lastgroup
        if kind is None:  # blanks at the end
            continue
        start, end = match.span(kind)
        if fresh and kind != "newline" and kind != "comment":
            if kind == "stray" and code[start] in " \f\t":
                continue
            if kind == "continuation":
                raise error_at(code, start, "a line that starts with a backslash")
            fresh = False
            indentation = code[line_start:start]
            column = column_after(indentation)
            if column > columns[-1]:
                columns.append(column)
                tokens.append(Token(indentation, line_start, start))
            while column < columns[-1]:
                columns.pop()
                tokens.append(Token("", start, start))
            if column != columns[-1]:
                raise error_at(code, start, "this indentation matches no outer block")
        if kind == "newline":
            line_start = end
            fresh = depth == 0
        elif kind == "opening":
            depth += 1
        elif kind == "closing":
            depth -= 1
        elif kind == "unended":
            raise error_at(code, start, "this string does not end")
        if kind == "stray":
            quotes += code[start] in "'\""
            if quotes > MOST_QUOTES:
                raise error_at(
                    code,
                    start,
                    f"the quotes up to here begin no string, more than {MOST_QUOTES} of them",
                )
            tokens += [Token(code[index], index, index + 1) for index in range(start, end)]
        elif kind != "continuation":
            tokens.append(Token(code[start:end], start, end))
    if depth or kind == "continuation":
        raise error_at(code, len(code), "the code ends inside brackets or a continued line")
    last_line = code[code.rfind("\n") + 1 :]
    if kind == "comment" if fresh else last_line and not last_line.lstrip().startswith("#"):
        tokens.append(Token("", len(code), len(code)))  # the line break that the last line lacks
    tokens += [Token("", len(code), len(code))] * len(columns)  # DEDENTs and ENDMARKER
    if not code.isascii():
        _check_letters(tokens, code)
    return tokens


def _check_letters(tokens: list[Token], code: str) -> None:
    for text, start, _ in tokens:
        if not (text.isascii() or text.startswith("#") or text.endswith(("'", '"'))):
            for position, character in enumerate(text, start):
                if unicodedata.ucd_3_2_0.category(character) == "Cn":
                    raise error_at(
                        code,
                        position,
                        f"cannot read the character {character!r} outside of strings",
                    )


def column_after(blanks: str) -> int:
    """The column after the blanks at the start of a line: a tab goes to the next multiple of 8, a
    form feed to 0."""
    return len(blanks.rpartition("\f")[2].expandtabs(8))


def error_at(code: str, position: int, message: str) -> ParseError:
    """The ParseError for the character at `position` of `code`."""
    line_start = code.rfind("\n", 0, position) + 1
    return ParseError(message, code.count("\n", 0, line_start) + 1, position - line_start)
