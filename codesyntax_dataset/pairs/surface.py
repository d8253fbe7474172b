"""A rival of minimal pairs that needs no model: what stands near a change, and what a text has open
there, learned from other pairs.

A logistic regression, with an L2 penalty, on what the valid text has more of than the invalid one.
It sees words, signs, line breaks and indentation, and no syntax tree; names and numbers are masked,
but that two names of one pair of brackets are equal:

- sequences of up to N tokens that see the change, and for each line its first and last token beside
  those of the lines before and behind it;
- each bracket with the one that closes it, by a stack, those that close nothing or stay open, and
  what separates in a pair of them;
- each line by its first token, beside that of the last line with the same indentation, of the line
  around it and of all lines around that, and whether indentation follows a colon or bracket;
- names that stand twice in one pair of brackets, and whether `=` follows what stands there, in
  order; how many `if`, `else` and `for` a line has inside.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from codesyntax_dataset.one_thread import one_thread
from codesyntax_dataset.pairs.rivals import N, lexed

BUCKETS = 1 << 16
PENALTY = 1.0
"""Half of it is added for each squared weight."""

_WORD = re.compile(r"\w+")

Pair = tuple[str, str]
"""The valid and the invalid text."""


_CLOSES = {"(": ")", "[": "]", "{": "}"}
_BEFORE, _BEHIND = frozenset("(,*"), frozenset("=,)")
"""What stands on either side of a parameter, or of the name of an argument."""

_SEPARATES = frozenset(",;:")
_OPENING = frozenset(":{")
_LOOPS = frozenset(("for", "while", "do"))
_ENDING = frozenset(("break", "continue"))


@dataclass
class _Opened:
    """A bracket that is open: the masked token `before` it, the names that stand in it, and whether
    `=` followed the last of them."""

    token: str
    before: str
    names: Counter[tuple[str, bool]] = field(default_factory=Counter)
    last: str = ""

    def seen(self, name: str, given: bool) -> Iterator[tuple[str, ...]]:
        kind = "=" if given else "name"
        yield "order", self.last, kind
        self.names[name, given] += 1
        self.last = kind

    def repeated(self) -> Iterator[tuple[str, ...]]:
        for (_, given), times in self.names.items():
            yield from [("repeated", str(given), self.before)] * (times - 1)


class SurfaceRival:
    """Fitted on pairs of texts; `keywords`: the words that are not masked."""

    def __init__(self, pairs: Sequence[Pair], keywords: Iterable[str]):
        self.keywords = frozenset(keywords)
        features = self._features(pairs)

        def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
            gain = features @ weights
            wrong = 1 / (1 + np.exp(gain))
            value = np.logaddexp(0, -gain).sum() + PENALTY / 2 * weights @ weights
            return value, PENALTY * weights - features.T @ wrong

        with one_thread():
            self.weights = minimize(loss, np.zeros(BUCKETS), method="L-BFGS-B", jac=True).x

    def prefers(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each pair 1 where it prefers the valid text, -1 where it prefers the other one, and
        else 0: (P,)."""
        return np.sign((self._features(pairs) @ self.weights).round(9)).astype(np.int64)

    def _features(self, pairs: Sequence[Pair]) -> csr_array:
        """How many more of each feature the valid text has: (P, BUCKETS)."""
        columns: list[int] = []
        values: list[int] = []
        ends = [0]
        for good, bad in pairs:
            more = Counter(self._seen(good))
            more.subtract(self._seen(bad))
            differs = {feature: count for feature, count in more.items() if count}
            columns += [zlib.crc32(repr(feature).encode()) % BUCKETS for feature in differs]
            values += differs.values()
            ends.append(len(columns))
        cells = np.array(values, np.float64), np.array(columns, np.int64), np.array(ends)
        return csr_array(cells, (len(pairs), BUCKETS))

    def _seen(self, text: str) -> Iterator[tuple[str, ...]]:
        """The features of a text, each as often as it stands there."""
        tokens = self._masked(text)
        for length in range(1, N + 1):
            yield from zip(*(tokens[start:] for start in range(length)))
        lines = [["", ""], *_lines(tokens), ["", ""]]
        for before, line, behind in zip(lines, lines[1:], lines[2:]):
            yield "first", before[0], line[0]
            yield "joint", before[-1], line[0]
            yield "ends", line[0], line[-1]
            yield "behind", line[-1], behind[0]
        yield from self._in_brackets(text)
        yield from self._levels(text)

    def _in_brackets(self, text: str) -> Iterator[tuple[str, ...]]:
        """Brackets with those that close them, and what stands in one pair of them."""
        tokens = lexed(text)
        opened: list[_Opened] = []
        for before, token, behind in zip(["", *tokens], tokens, [*tokens[1:], ""]):
            if token in _CLOSES:
                opened.append(_Opened(token, before if before in self.keywords else "name"))
            elif token in _CLOSES.values():
                bracket = opened.pop() if opened else _Opened("", "")
                yield "closed", bracket.token, token
                if _CLOSES.get(bracket.token) != token:
                    yield ("unmatched",)
                yield from bracket.repeated()
            elif opened and token in _SEPARATES:
                yield "separates", opened[-1].token, opened[-1].before, token
            elif opened and self._is_name(token) and before in _BEFORE and behind in _BEHIND:
                yield from opened[-1].seen(token, behind == "=")
        for bracket in opened:
            yield "closed", bracket.token, ""
            yield ("unmatched",)

    def _is_name(self, token: str) -> bool:
        return token.isidentifier() and token not in self.keywords

    def _levels(self, text: str) -> Iterator[tuple[str, ...]]:
        """Lines by what begins the lines beside and around them."""
        around: list[tuple[int, str]] = []
        before: tuple[int, str] | None = None
        for indentation, line in self._statements(text):
            first = line[0]
            while around and around[-1][0] > indentation:
                around.pop()
            level = around.pop()[1] if around and around[-1][0] == indentation else ""
            if not level and before is not None and indentation < before[0]:
                level = "none"
            outer = [word for _, word in around]
            yield "beside", level, first
            yield "in", outer[-1] if outer else "", first
            for word in sorted({*outer}):
                yield "within", word, first
            if first in _ENDING:
                yield "loop", first, str(not _LOOPS.isdisjoint(outer))
            if before is not None:
                yield "step", str(np.sign(indentation - before[0])), str(before[1] in _OPENING)
            inside = [str(min(2, line[1:].count(word))) for word in ("if", "else", "for")]
            yield "inside", first, *inside
            around.append((indentation, first))
            before = indentation, line[-1]

    def _statements(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """The columns of indentation and masked tokens of lines that do not go on in brackets."""
        indentation = depth = 0
        line: list[str] = []
        for token in [*lexed(text), "\n"]:
            if not token.startswith("\n"):
                depth += (token in "([{") - (token in ")]}")
                line.append(token if token in self.keywords or not token[0].isalnum() else "name")
            elif depth <= 0:
                if line:
                    yield indentation, line
                indentation, line = len(token) - 1, []

    def _masked(self, text: str) -> list[str]:
        """The tokens, with one for all names, one for all numbers, and line breaks by the step of
        the indentation."""
        masked, indentation = [], 0
        for token in lexed(text):
            if token.startswith("\n"):
                deeper = len(token) - 1 - indentation
                indentation += deeper
                masked.append("\n" + "<=>"[int(np.sign(deeper)) + 1])
            elif _WORD.match(token) and token not in self.keywords:
                masked.append("0" if token[0].isdigit() else "name")
            else:
                masked.append(token)
        return masked


def _lines(tokens: Sequence[str]) -> Iterator[list[str]]:
    """The tokens of each line; of an empty one, an empty text."""
    line: list[str] = []
    for token in tokens:
        if token.startswith("\n"):
            yield line or [""]
            line = []
        else:
            line.append(token)
    yield line or [""]
