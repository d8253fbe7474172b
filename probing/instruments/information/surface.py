"""What a pair of tokens, a head token and a candidate, shows without any model: the surface
baseline's features.

They are the rival of attention, the same for all models, in three nested sets:

- *positions*: the distance in tokens (each up to FAR, and in powers of two), in characters, lines,
  indentation and bracket depth; how far the candidate is from either end of the function; its word
  class and those of its neighbours; its length, its place in its line, and equality of the two
  words.
- *structure*: what encloses the candidate and what stands between the two: the opening bracket and
  the word before it, the first word of the line, the least depth, commas, equal words and line
  starts between, the next pair of brackets.
- *grams*: pairs of these, hashed: n-grams of word classes, the head token's class with the
  candidate's, distance with class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from probing.runs.data import Row, words_of

FARTHEST_OFFSET = 24
"""Up to this distance, in tokens, each offset has a weight of its own."""

FREQUENT = 120
"""The number of most frequent words that are classes of their own."""

_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_SHAPES = ("name", "number", "text", "mark", "end")
NO_WORD = _SHAPES.index("end")
"""The class beyond either end of a function."""

CLASSES = len(_SHAPES) + FREQUENT
"""The number of word classes."""

_LINES, _COLUMNS, _BRACKETS, _POWERS, _LENGTHS = 8, 16, 4, 10, 8
_NEAR, _FEW = 3, 3
"""Depths and counts of what stands between are told apart up to these."""

_FACTOR = 579  # by which parts are told apart

_POSITIONS = (
    *[CLASSES] * 3,
    _LENGTHS,
    4,
    _POWERS,
    _POWERS,
    2 * FARTHEST_OFFSET + 3,
    2 * _POWERS,
    *(2 * most + 1 for most in (_LINES, _COLUMNS, _BRACKETS)),
    2,
)
_STRUCTURE = (*[CLASSES] * 5, 6, (2 * _NEAR + 1) ** 2, 8 * CLASSES, 8 * CLASSES, 16, 6, 8)
_GRAMS = (4096, 4096, 4096, 2048, 1024, 1024, 4096, 2048, 4096, 2048, 2048)
_SET_SIZES = _POSITIONS + _STRUCTURE + _GRAMS

INDICATORS = sum(_SET_SIZES)
"""The number of indicators of all sets."""

SETS = {
    name: (len(sizes), sum(sizes))
    for name, sizes in (
        ("positions", _POSITIONS),
        ("structure", _POSITIONS + _STRUCTURE),
        ("grams", _SET_SIZES),
    )
}
"""The nested sets, smallest first: the rows of codes and the indicators of each."""


def _shape(word: str) -> str:
    """The class of a word that is not frequent."""
    if word[:1].isdigit():
        return "number"
    if word[:1] in "\"'`" and word:
        return "text"
    return "name" if word.isidentifier() else "mark"


class WordClasses:
    """Numbers of word classes: the frequent words of some functions, and the shapes of all
    others."""

    def __init__(self, rows: Iterable[Row]):
        self._number_words(Counter(word for row in rows for word in words_of(row)))

    @classmethod
    def counted(cls, counts: Mapping[str, int]) -> WordClasses:
        """From how often words stand in some functions."""
        classes = cls([])
        classes._number_words(counts)
        return classes

    def _number_words(self, counts: Mapping[str, int]) -> None:
        frequent = sorted(counts, key=lambda word: (-counts[word], word))[:FREQUENT]
        self.numbers = {word: number for number, word in enumerate(frequent, len(_SHAPES))}

    def of(self, words: Iterable[str]) -> np.ndarray:
        numbers = [self.numbers.get(word) or _SHAPES.index(_shape(word)) for word in words]
        return np.array(numbers, np.int64)


def _power(number: np.ndarray) -> np.ndarray:
    return np.minimum(np.log2(np.abs(number) + 1).astype(np.int64), _POWERS - 1)


@lru_cache(maxsize=4)
def _by_distance(most: int) -> tuple[np.ndarray, np.ndarray]:
    """What distances in tokens from -most to most tell: codes (2, distances) and values (distances,
    4)."""
    distance = np.arange(-most, most + 1)
    offset = np.clip(distance, -FARTHEST_OFFSET - 1, FARTHEST_OFFSET + 1) + FARTHEST_OFFSET + 1
    return np.stack([offset, _power(distance) + _POWERS * (distance > 0)]), np.stack(
        _smooth(distance), 1
    )


def _smooth(apart: np.ndarray) -> list[np.ndarray]:
    """Values of how far a candidate is, on either side."""
    sides = apart > 0, apart < 0
    near = 1 / (1 + np.abs(apart))
    far = np.log1p(np.abs(apart)) / 2
    return [value * side for side in sides for value in (far, near)]


def hashed(buckets: int, salt: int, *parts: Any) -> np.ndarray:
    """A bucket for each combination of the parts, which are whole numbers of 32 bits or more.

    `buckets`: a power of two, so that what 32 bits do not hold makes no difference.
    """
    number: Any = salt * 104729
    for part in parts:
        number = number * _FACTOR + part
    return np.asarray(number & buckets - 1)


def _near(number: np.ndarray, most: int) -> np.ndarray:
    return np.minimum(np.maximum(number, -most), most) + most  # takes half as long as clip


@dataclass(frozen=True)
class Surface:
    """The T tokens of a function as words and positions see them.

    `fixed`: for each set the codes (F, T) of what a candidate is, whatever the head; `ends` (T, 3):
    values of how far it is from either end; `before` (T + 1, classes): how many tokens of each
    class stand before a token; `closing`: the token that closes a bracket, or -1; the others are
    (T,), too.
    """

    word: np.ndarray
    start: np.ndarray
    line: np.ndarray
    indent: np.ndarray
    depth: np.ndarray
    classes: np.ndarray
    begins: np.ndarray
    comma: np.ndarray
    closing: np.ndarray
    before: np.ndarray
    fixed: tuple[np.ndarray, np.ndarray, np.ndarray]
    ends: np.ndarray

    @classmethod
    def of(cls, row: Row, classes: WordClasses) -> Surface:
        code, words, start = row["code"], words_of(row), np.asarray(row["token_start"], np.int64)
        tokens = len(words)
        known = classes.of(words)
        lines = code.expandtabs(4).split("\n")
        line = np.searchsorted(np.flatnonzero(np.array([*code]) == "\n"), start) if code else start
        indents = np.array([len(line) - len(line.lstrip()) for line in lines])
        indent = indents[line]
        opened = [(word in _OPENING) - (word in _CLOSING) for word in words]
        begins = np.diff(line, prepend=-1) != 0
        ends = np.append(begins[1:], True)
        length = np.minimum(np.asarray(row["token_end"]) - start, _LENGTHS - 1)
        here = np.arange(tokens)
        padded = np.pad(known, 2, constant_values=NO_WORD)
        back2, back, ahead, ahead2 = (padded[shift : shift + tokens] for shift in (0, 1, 3, 4))
        first = known[np.maximum.accumulate(np.where(begins, here, 0))]
        enclosing, closing, commas = _brackets(words)
        opener = np.where(enclosing < 0, NO_WORD, known[enclosing])
        caller = np.where(enclosing < 0, NO_WORD, back[enclosing])
        step = 2 * (np.sign(np.diff(indent, prepend=indent[:1])) + 1) + begins
        positions = [
            known,
            ahead,
            back,
            length,
            begins + 2 * ends,
            _power(here),
            _power(tokens - here),
        ]
        structure = [back2, ahead2, first, opener, caller, step]
        grams = [
            hashed(4096, 1, back, known),
            hashed(4096, 2, back2, back),
            hashed(4096, 3, known, ahead),
            hashed(2048, 4, first, known),
            hashed(1024, 5, opener, commas),
            hashed(1024, 6, caller, known),
        ]
        number = {word: position for position, word in enumerate(dict.fromkeys(words))}
        return cls(
            word=np.array([number[word] for word in words]),
            start=start,
            line=line,
            indent=indent,
            depth=np.cumsum(opened),
            classes=known,
            begins=begins,
            comma=np.array([word == "," for word in words]),
            closing=closing,
            before=_marked_before(known[:, None] == np.arange(CLASSES)),
            fixed=(np.stack(positions), np.stack(structure), np.stack(grams)),
            ends=np.stack([np.log1p(here) / 2, 1 / (1 + here), np.log1p(tokens - here) / 2], 1),
        )

    def pairs(self, head: int) -> tuple[np.ndarray, np.ndarray]:
        """The features of all tokens as candidates of one head token: codes (K, T) and values (T,
        D)."""
        tokens = len(self.word)
        farthest = 1 << tokens.bit_length()
        by_distance, of_distance = _by_distance(farthest)
        distances = slice(farthest - head, farthest - head + tokens)
        positions = [
            *by_distance[:, distances],
            _near(self.line - self.line[head], _LINES),
            _near(self.indent - self.indent[head], _COLUMNS),
            _near(self.depth - self.depth[head], _BRACKETS),
            self.word == self.word[head],
        ]
        structure, grams = self._between(head)
        moving = positions, structure, grams
        codes = np.concatenate(
            [part for fixed, rows in zip(self.fixed, moving) for part in (fixed, np.stack(rows))]
        )
        codes += np.cumsum([0, *_SET_SIZES[:-1]])[:, None]
        characters = np.stack(_smooth(self.start - self.start[head]), 1)
        return codes, np.concatenate([of_distance[distances], characters, self.ends], axis=1)

    def _between(self, head: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Codes of what stands between a head token and each token: of the sets structure and
        grams."""
        known = self.classes
        here = np.arange(len(self.classes))
        back = np.append(NO_WORD, known[:-1])
        after = here > head
        low = np.minimum(here, head) + 1
        high = np.maximum(here, head)

        def few(counted: np.ndarray, *column: np.ndarray) -> np.ndarray:
            between = counted[(high, *column)] - counted[(low, *column)]
            return np.clip(between, 0, _FEW) * 2 + after

        level = self.depth - self.depth[head]
        least = np.concatenate(
            [np.minimum.accumulate(level[head::-1])[::-1], np.minimum.accumulate(level[head:])[1:]]
        )
        levels = _near(least, _NEAR) * (2 * _NEAR + 1) + _near(level, _NEAR)
        starts = few(_marked_before(self.begins & (self.indent <= self.indent[head])))
        commas = few(_marked_before(self.comma & (level == 0)))
        bracket = self._next_bracket(head)
        structure = [
            levels,
            back * 8 + few(self.before, back % CLASSES),
            known * 8 + few(self.before, known),
            starts * 2 + self.begins,
            bracket,
            commas,
        ]
        distance = np.clip(here - head, -FARTHEST_OFFSET, FARTHEST_OFFSET)
        grams = [
            hashed(4096, 1, known[head], known),
            hashed(2048, 2, np.append(known[1:], NO_WORD)[head], back),
            hashed(4096, 3, distance, known),
            hashed(2048, 4, bracket, levels, known),
            hashed(2048, 5, back[head], known),
        ]
        return structure, grams

    def _next_bracket(self, head: int) -> np.ndarray:
        """Where a token stands beside the brackets that open within two tokens after the head
        token: (T,)."""
        here = np.arange(len(self.closing))
        opening = next(
            (
                position
                for position in (head + 1, head + 2)
                if (self.closing[position : position + 1] > position).any()
            ),
            None,
        )
        if opening is None:
            return np.full(len(here), 5)
        end = self.closing[opening]
        return np.select([here == end, here == end + 1, here > end, here > head], [0, 1, 2, 3], 4)


def _marked_before(marked: np.ndarray) -> np.ndarray:
    """How many of the rows before each are marked: (T + 1, ...)."""
    return np.concatenate([np.zeros((1, *marked.shape[1:]), np.int64), marked.cumsum(axis=0)])


def _brackets(words: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each token the bracket around it, and of a bracket the one that closes it, or -1; and
    commas before it there.

    The last is 0 to _FEW.
    """
    enclosing, closing, commas = (np.full(len(words), value) for value in (-1, -1, 0))
    stack: list[int] = []
    seen = [0]
    for position, word in enumerate(words):
        if word in _CLOSING and stack:
            closing[stack.pop()] = position
            seen.pop()
        enclosing[position] = stack[-1] if stack else -1
        commas[position] = min(seen[-1], _FEW)
        seen[-1] += word == ","
        if word in _OPENING:
            stack.append(position)
            seen.append(0)
    return enclosing, closing, commas
