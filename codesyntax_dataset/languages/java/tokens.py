"""The tokens of Java code, as given by javalang 0.13, the tokenizer behind the published labels.

Without comments and white space. Its peculiarities are part of the labels: `>` is a separate token
except in `>=`, `>>=` and `>>>=`, `@` always is one, and `01.5` is `01` and `.5`. One regular
expression does what javalang does character by character, with the same result on code that
compiles.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.schema import Token

_LETTER = r"[^\x00-\x7f\s]"  # not ASCII; whether a word may contain it is checked afterwards
_ESCAPE = r"""\\[btnfru"'\\0-7]"""
_DIGITS = r"(?:_*[0-9])*[lL]?"
_HEX_DIGITS = r"(?:_*[0-9a-fA-F])*[lL]?"

_TOKEN = re.compile(
    rf"""
      (?:[A-Za-z_$]|{_LETTER})(?:[A-Za-z0-9_$]+|{_LETTER})*
    | [()\[\]{{}};,@]
    | (?P<comment>//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)
    | "[^"\\]*(?:{_ESCAPE}[^"\\]*)*"|'[^'\\]*(?:{_ESCAPE}[^'\\]*)*'
    | 0[xX]{_HEX_DIGITS}(?:(?:\.{_HEX_DIGITS})?[pP][-+]?{_DIGITS}[fFdD]?)?
    | 0[bB](?:_*[01])*[lL]?
    | 0[0-7](?:_*[0-7])*[lL]?
    | (?:[0-9]{_DIGITS}|(?=\.[0-9]))(?:\.{_DIGITS})?(?:[eE][-+]?{_DIGITS})?[fFdD]?
    | \.\.\.|\.
    | >>>=|>>=|<<=?|\+\+|--|->|&&|\|\||::|/(?!\*)=?|[-+*%&|^!<>=]=|[-+*%&|^!<>=:?~]
    | (?P<unknown>\S)
    """,
    re.VERBOSE,
)

_ENDLESS = re.compile(r"/\*|[\"']")

_UNICODE_ESCAPE = re.compile(
    r"\\(?:u+(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u+(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u+(?P<single>[0-9a-fA-F]{4})|(?P<broken>u)|.)",
    re.DOTALL,
)

_WORD_START = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Pc", "Sc"}  # Unicode categories
_WORD_PART = _WORD_START | {"Mc", "Mn", "Nd"}


class DecodedCode:
    """Java code as a tokenizer reads it: the `text` with Unicode escapes decoded, and its `places`
    in the code.

    An escape that spells an unpaired surrogate is not decoded, because UTF-8 cannot encode that
    character. Raises ParseError if the code contains NUL, a surrogate, or an escape without four
    digits.
    """

    def __init__(self, code: str):
        self.code = self.text = code
        # of every character of the text, and of its end, in the code
        self.places: Sequence[int] = range(len(code) + 1)
        if "\0" in code:
            raise self.error("a NUL character is not valid Java", code.index("\0"))
        try:
            code.encode()
        except UnicodeEncodeError as problem:
            raise self.error("an unpaired surrogate is not valid text", problem.start) from None
        if "\\u" in code:
            self._decode_escapes()

    def _decode_escapes(self) -> None:
        text: list[str] = []  # single characters
        offsets: list[int] = []
        position = 0
        for escape in _UNICODE_ESCAPE.finditer(self.code):
            if escape["broken"]:
                raise self.error("a Unicode escape needs four hexadecimal digits", escape.start())
            if escape["high"]:
                character = bytes.fromhex(escape["high"] + escape["low"]).decode("utf-16-be")
            elif escape["single"] and not 0xD800 <= int(escape["single"], 16) <= 0xDFFF:
                character = chr(int(escape["single"], 16))
            else:
                continue
            text += self.code[position : escape.start()]
            text.append(character)
            offsets += range(position, escape.start() + 1)
            position = escape.end()
        self.text = "".join(text) + self.code[position:]
        self.places = [*offsets, *range(position, len(self.code) + 1)]

    def in_code(self, tokens: list[Token]) -> list[Token]:
        """The tokens of the text with their positions in the code."""
        if self.text == self.code:
            return tokens
        return [Token(text, self.places[start], self.places[end]) for text, start, end in tokens]

    def error(self, message: str, position: int) -> ParseError:
        """The error for a `position` in the text, with its line and column in the code."""
        offset = self.places[position]
        line_start = self.code.rfind("\n", 0, offset) + 1
        return ParseError(message, self.code.count("\n", 0, offset) + 1, offset - line_start)


def scan(decoded: DecodedCode, *, everything: bool = False) -> list[Token]:
    """The tokens of the text of `decoded`; `everything`: also comments, and characters that begin
    no token.

    Raises ParseError at the first literal or comment that has no end, and at the first character
    that begins no token.
    """
    tokens = []
    for match in _TOKEN.finditer(decoded.text):
        kind = match.lastgroup
        if kind is None or (
            everything and not (kind == "unknown" and _ENDLESS.match(decoded.text, match.start()))
        ):
            tokens.append(Token(match.group(), match.start(), match.end()))
        elif kind == "unknown":
            raise decoded.error(_complaint(decoded.text, match.start()), match.start())
    if not decoded.text.isascii():
        for word in tokens:
            if not word.text.isascii() and not word.text.startswith(('"', "'", "//", "/*")):
                _check_word(decoded, word)
    return tokens


def with_line_breaks(tokens: list[Token], text: str) -> list[Token]:
    """The tokens, and one token for every line break between two of them (also for those inside
    comments)."""
    lines: list[Token] = []
    for token in tokens:
        if lines:
            position = text.find("\n", lines[-1].end, token.start)
            while position >= 0:
                lines.append(Token("\n", position, position + 1))
                position = text.find("\n", position + 1, token.start)
        lines.append(token)
    return lines


def _check_word(decoded: DecodedCode, word: Token) -> None:
    allowed = _WORD_START
    for position, character in enumerate(word.text, word.start):
        if unicodedata.category(character) not in allowed:
            raise decoded.error(_complaint(decoded.text, position), position)
        allowed = _WORD_PART


def _complaint(text: str, position: int) -> str:
    if text.startswith("/*", position):
        return "the comment that begins here has no end"
    if text[position] in "\"'":
        return "the literal that begins here has no end or holds an unknown escape"
    return f"{text[position]!r} begins no token of Java"
