"""Words and positions of a pair of tokens, without any model: the features of the rival of attention.

For a head token i and a candidate j: the distance between the two in tokens (each up to FAR, and in powers of two), in
characters, lines, indentation and bracket depth; how far j is from either end of the function; the word class of j and
of its neighbours; its length, its place in its line, and equality of the two words. They are the same for all models,
and so many that attention which tells only positions and words adds nothing: that of models before training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from probing.runs.data import Row

FAR = 24
"""Up to this distance, in tokens, each offset has a weight of its own."""

FREQUENT = 120
"""The number of most frequent words that are classes of their own."""

_SHAPES = ("name", "number", "text", "mark", "end")
_LINES, _COLUMNS, _BRACKETS, _POWERS, _LENGTHS = 8, 16, 4, 10, 8


def _shape(word: str) -> str:
    """The class of a word that is not frequent."""
    if word[:1].isdigit():
        return "number"
    if word[:1] in "\"'`" and word:
        return "text"
    return "name" if word.isidentifier() else "mark"


class WordClasses:
    """Numbers of word classes: the frequent words of some functions, and the shapes of all others."""

    def __init__(self, rows: Iterable[Row]):
        counts = Counter(word for row in rows for word in words_of(row))
        frequent = sorted(counts, key=lambda word: (-counts[word], word))[:FREQUENT]
        self.numbers = {word: number for number, word in enumerate(frequent, len(_SHAPES))}

    def __len__(self) -> int:
        return len(_SHAPES) + FREQUENT

    def of(self, words: Iterable[str]) -> np.ndarray:
        return np.array([self.numbers.get(word) or _SHAPES.index(_shape(word)) for word in words], np.int64)


def words_of(row: Row) -> list[str]:
    """The tokens of a row of the dataset."""
    return [row["code"][start:end] for start, end in zip(row["token_start"], row["token_end"])]


def _power(number: np.ndarray) -> np.ndarray:
    return np.minimum(np.log2(np.abs(number) + 1).astype(np.int64), _POWERS - 1)


@lru_cache(maxsize=4)
def _by_distance(most: int) -> tuple[np.ndarray, np.ndarray]:
    """What distances in tokens from -most to most tell: codes (2, distances) and values (distances, 4)."""
    distance = np.arange(-most, most + 1)
    offset = np.clip(distance, -FAR - 1, FAR + 1) + FAR + 1
    return np.stack([offset, _power(distance) + _POWERS * (distance > 0)]), np.stack(_smooth(distance), 1)


def _smooth(apart: np.ndarray) -> list[np.ndarray]:
    """Values of how far a candidate is, on either side."""
    sides = apart > 0, apart < 0
    near, far = 1 / (1 + np.abs(apart)), np.log1p(np.abs(apart)) / 2
    return [value * side for side in sides for value in (far, near)]


@dataclass(frozen=True)
class Surface:
    """The T tokens of a function as words and positions see them.

    `fixed` (F, T): the codes of what a candidate is, whatever the head; `ends` (T, 3): values of how far it is from
    either end; `sizes`: how many values each row of codes may have; the others (T,).
    """

    word: np.ndarray
    start: np.ndarray
    line: np.ndarray
    indent: np.ndarray
    depth: np.ndarray
    fixed: np.ndarray
    ends: np.ndarray
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, row: Row, classes: WordClasses) -> Surface:
        code, words, start = row["code"], words_of(row), np.asarray(row["token_start"], np.int64)
        tokens, known = len(words), classes.of(words)
        lines = code.expandtabs(4).split("\n")
        line = np.searchsorted(np.flatnonzero(np.array([*code]) == "\n"), start) if code else start
        indents = np.array([len(one) - len(one.lstrip()) for one in lines])
        opened = np.array([(word in ("(", "[", "{")) - (word in (")", "]", "}")) for word in words])
        begins = np.diff(line, prepend=-1) != 0
        ends, end = np.append(begins[1:], True), _SHAPES.index("end")
        length = np.minimum(np.asarray(row["token_end"]) - start, _LENGTHS - 1)
        here = np.arange(tokens)
        fixed = [known, np.append(known[1:], end), np.append(end, known[:-1]), length, begins + 2 * ends]
        fixed += [_power(here), _power(tokens - here)]
        sizes = (*[len(classes)] * 3, _LENGTHS, 4, _POWERS, _POWERS)
        moving = (2 * FAR + 3, 2 * _POWERS, *(2 * most + 1 for most in (_LINES, _COLUMNS, _BRACKETS)), 2)
        number = {word: place for place, word in enumerate(dict.fromkeys(words))}
        same = np.array([number[word] for word in words])
        smooth = np.stack([np.log1p(here) / 2, 1 / (1 + here), np.log1p(tokens - here) / 2], 1)
        return cls(same, start, line, indents[line], opened.cumsum(), np.stack(fixed), smooth, (*sizes, *moving))

    @property
    def indicators(self) -> int:
        return sum(self.sizes)

    def pairs(self, head: int) -> tuple[np.ndarray, np.ndarray]:
        """The features of all tokens as candidates of one head token: codes (K, T) and values (T, D)."""
        tokens = len(self.word)
        farthest = 1 << tokens.bit_length()
        by_distance, of_distance = _by_distance(farthest)
        distances = slice(farthest - head, farthest - head + tokens)
        moving = [
            np.minimum(np.maximum(places - places[head], -most), most) + most  # takes half as long as clip
            for places, most in ((self.line, _LINES), (self.indent, _COLUMNS), (self.depth, _BRACKETS))
        ]
        codes = np.concatenate([self.fixed, by_distance[:, distances], moving, [self.word == self.word[head]]])
        codes += np.cumsum([0, *self.sizes[:-1]])[:, None]
        characters = np.stack(_smooth(self.start - self.start[head]), 1)
        return codes, np.concatenate([of_distance[distances], characters, self.ends], axis=1)
