"""Other words: the edits of identifiers and literals. No token is added, so that every distance
stays."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from string import ascii_letters, ascii_lowercase

from codesyntax_dataset.edits.changes import Change
from codesyntax_dataset.edits.function import Function
from codesyntax_dataset.errors import EditError
from codesyntax_dataset.languages import LANGUAGES

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of an identifier, as camel case and signs between words delimit it."""

_VOWELS, _CONSONANTS = "aeiou", "bdfgklmnprstvz"


def rename_words(function: Function) -> list[Change]:
    """Each word of an identifier becomes another of the same length, from functions that are not
    this one."""
    return _renamed(function, _by_words(function, _others))


def rename_nonsense(function: Function) -> list[Change]:
    """Each word of an identifier becomes a pronounceable one of the same length that is none."""
    return _renamed(function, _by_words(function, _nonsense))


def rename_letters(function: Function) -> list[Change]:
    """Each identifier becomes one letter; if there are more than letters, two."""
    capitals = function.editing.capitals
    letters = iter(function.draws.shuffled(ascii_lowercase if capitals else ascii_letters))
    pairs = (first + second for first in ascii_lowercase for second in ascii_lowercase)
    free = (name for names in (letters, pairs) for name in names if not function.is_taken(name))

    def rename(identifier: str) -> str:
        try:
            name = next(free)
        except StopIteration:
            raise EditError("it has more identifiers than there are pairs of letters") from None
        return _cased_as(identifier, name) if capitals else name

    return _renamed(function, rename)


def literals(function: Function) -> list[Change]:
    """The words in strings become others of the same length, and so do the digits of plain
    numbers."""
    other, digits = _one_to_one(function, _others), _other_digits(function)
    changes = []
    for index, token in enumerate(function.tokens):
        text = function.code[token.start : token.end]
        if match := function.editing.string.fullmatch(text):
            start = token.start + match.start("text")
            fields = {field.start for field in function.fields(index)}
            changes += [
                Change(
                    start + word.start("word"),
                    start + word.end("word"),
                    _cased_as(word["word"], other(word["word"])),
                )
                for word in _WORD_OF_TEXT.finditer(match["text"])
                if word["word"] and start + word.start("word") not in fields
            ]
        elif number := _NUMBER.fullmatch(text):
            changes.append(
                Change(token.start, token.start + number.end("digits"), digits(number["digits"]))
            )
    return changes


def _drawn_digits(function: Function, length: int) -> str:
    first = function.draws.one("123456789")
    return first + "".join(function.draws.one("0123456789") for _ in range(length - 1))


def _other_digits(function: Function) -> Callable[[str], str]:
    """Digits -> as many others, always the same; two numbers never become one, as labels of cases
    must differ."""
    used: set[str] = set()

    @functools.cache
    def other(digits: str) -> str:
        drawn = (_drawn_digits(function, len(digits)) for _ in range(1000))
        # itself, where all others are taken
        every = map(str, range(10 ** (len(digits) - 1), 10 ** len(digits)))
        free = (number for numbers in (drawn, every) for number in numbers if number not in used)
        chosen = next((number for number in free if number != digits), digits)
        used.add(chosen)
        return chosen

    return other


_WORD_OF_TEXT = re.compile(r"\\[Nu]\{[^}]*\}|\\.[^\W_]*|%\w|(?P<word>[A-Za-z]{2,})", re.DOTALL)
_NUMBER = re.compile(r"(?P<digits>[1-9][0-9]{0,8})(\.[0-9]*)?")


def some_words(function: Function, number: int) -> list[str]:
    """Words that are not in the function, and may be names in it."""
    length = 2 + function.draws.below(7)
    words = (word for word in _others(function, length) if not function.is_taken(word))
    return list(islice(words, number))


def _renamed(function: Function, rename: Callable[[str], str]) -> list[Change]:
    names: dict[str, str] = {}
    changes = []
    for token in (*function.identifiers, *function.interpolated):
        name = function.code[token.start : token.end]
        if any(map(str.isalpha, name)):  # `_` means something in some languages
            if name not in names:
                names[name] = rename(name)
            changes.append(Change(token.start, token.end, names[name]))
    if len(set(names.values())) < len(names):
        raise EditError("two of its identifiers would become one")
    return changes


def _by_words(
    function: Function, candidates: Callable[[Function, int], Iterator[str]]
) -> Callable[[str], str]:
    other = _one_to_one(function, candidates)
    return lambda identifier: _PART.sub(lambda part: _cased_as(part[0], other(part[0])), identifier)


def _one_to_one(
    function: Function, candidates: Callable[[Function, int], Iterator[str]]
) -> Callable[[str], str]:
    """Word -> another, always the same, which the function does not have and no other word
    becomes."""
    names = (*function.identifiers, *function.interpolated)
    used = {part.lower() for token in names for part in _PART.findall(token.text)}
    streams: dict[int, Iterator[str]] = {}

    @functools.cache
    def other(word: str) -> str:
        stream = streams.setdefault(len(word), candidates(function, len(word)))
        chosen = next(
            candidate
            for candidate in stream
            if candidate not in used and not function.is_taken(candidate)
        )
        used.add(chosen)
        return chosen

    return lambda word: other(word.lower() if _cased_as(word, word.lower()) == word else word)


def _cased_as(word: str, other: str) -> str:
    if word.isupper() and (len(word) > 1 or len(other) == 1):
        return other.upper()
    return other.capitalize() if word[0].isupper() else other


def _others(function: Function, length: int) -> Iterator[str]:
    """Words of the functions that come with this package: those of `length`, then those of nearest
    length."""
    by_length = _vocabulary()
    for near in sorted(by_length, key=lambda other: (abs(other - length), other)):
        yield from function.draws.shuffled(by_length[near])
    yield from _nonsense(function, length)


def _nonsense(function: Function, length: int) -> Iterator[str]:
    while True:
        for _ in range(100):
            begins = function.draws.one((_VOWELS, _CONSONANTS))
            yield "".join(
                function.draws.one(
                    _VOWELS if (begins == _VOWELS) == (index % 2 == 0) else _CONSONANTS
                )
                for index in range(length)
            )
        length += 1  # few words are so short


@functools.cache
def _vocabulary() -> dict[int, list[str]]:
    """Length -> words of the identifiers of the sample's code, sorted, and the letters."""
    words = set(ascii_lowercase)
    sample = Path(__file__).parent.parent / "sample"
    for language in LANGUAGES.values():
        if language.editing is None:
            continue
        for suffix in language.suffixes:
            for file in sample.rglob(f"*{suffix}"):
                function = Function(
                    file.read_text(encoding="utf-8"), language, language.variant_names[0], ""
                )
                words |= {
                    part.lower()
                    for token in function.identifiers
                    for part in _PART.findall(token.text)
                }
    by_length: dict[int, list[str]] = {}
    for word in sorted(words):
        by_length.setdefault(len(word), []).append(word)
    return by_length
