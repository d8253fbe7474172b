"""Classes of wrong first choices (after Shen et al. 2022, Table 7, which was made by hand).

Every wrong choice is in exactly one class, the first of CLASSES that applies:

- *no prediction*: the reading token has no sub-tokens, or attends to no token but itself.
- *bracket*, *separator* (`, ; : .`), *operator* (all other punctuation, such as `=`), *line break* (or indentation): by
  the token's own text.
- *same text as the head*: another token that is spelled as the edge's head token, such as a second `if` for an `if`.
- *keyword* (of the language, as in the published lists, which include `True` and `null`): by the token's own text.
- *literal*: a string, character, number, symbol or regular expression.
- *inside the dependent*: a name among the dependent's tokens, but not the one that counts by the rule.
- *inside its block*, *outside its block*: any other name. The block is that of the dependent's first token, by the
  rule of the language (`codesyntax_dataset.languages.blocks`).
- *other*: anything else: a comment (a token in Python), text between tags, a character that the language does not know.

In addition, every wrong choice except *no prediction* is at exactly one of PLACES: before the head token, between it
and the dependent, inside the dependent, or behind it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from codesyntax_dataset.languages import Language
from codesyntax_dataset.schema import Token

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
_LITERAL = re.compile(
    r"""[A-Za-z]{0,3}["'`] | [A-Za-z]{1,3}\#+"  # strings, also those in Rust that begin with r#
      | \.?[0-9]
      | <<[<~-]? [ ]* ["'`]?\w  # here documents
      | :["\w] | %[A-Za-z]?[(\[{<|/]  # symbols, and strings and lists of Ruby
      | /(?![/*]) .+ /[a-z]*\Z  # regular expressions""",
    re.DOTALL | re.VERBOSE,
)
_NAME = re.compile(r"(?:@@?|\\)? [^\W\d]\w* (?:\\\w+)* [?!]?", re.VERBOSE)  # also with a sigil, or a namespace


class Tokens:
    """The tokens of one function, at the characters `start` to `end` (exclusive) of its `code`."""

    def __init__(self, code: str, start: Sequence[int], end: Sequence[int], language: Language):
        self.texts = [code[s:e] for s, e in zip(start, end)]
        self.keywords = language.keywords
        self._kinds: dict[str, str] = {}
        self._blocks = language.blocks(code, list(map(Token, self.texts, start, end)))

    def block(self, token: int) -> tuple[int, int]:
        """The first and last token of a token's block."""
        return self._blocks[token]

    def classify(self, chosen: int, reader: int, head: int, first: int, last: int) -> str:
        """The class of the wrong choice `chosen` (-1: none), made in the row of `reader` for an edge."""
        if chosen < 0 or chosen == reader:
            return "no prediction"
        text = self.texts[chosen]
        kind = self._kinds.get(text) or self._kinds.setdefault(text, _kind(text, self.keywords))
        if kind in ("keyword", "literal", "name", "other") and text == self.texts[head]:
            return "same text as the head"
        if kind != "name":
            return kind
        if first <= chosen <= last:
            return "inside the dependent"
        begin, end = self.block(first)
        return "inside its block" if begin <= chosen <= end else "outside its block"


def place(chosen: int, head: int, first: int, last: int) -> str:
    """The place of a wrong choice, one of PLACES, relative to the edge `head`, `first`, `last`."""
    if first <= chosen <= last:
        return "inside"
    if chosen > last:
        return "behind"
    return "between" if chosen > head else "before the head"


def _kind(text: str, keywords: Collection[str]) -> str:
    """The kind of a token by its text: one of CLASSES, or `name`."""
    if not text.strip():
        return "line break"
    if text in _OPENING or text in _CLOSING:
        return "bracket"
    if text in _SEPARATORS:
        return "separator"
    if _OPERATOR.fullmatch(text):
        return "operator"
    if text in keywords:
        return "keyword"
    if _LITERAL.match(text):
        return "literal"
    return "name" if _NAME.fullmatch(text.replace("$", "_")) else "other"
