"""A rival of minimal pairs that needs no model: what stands near a change, learned from other
pairs.

A logistic regression, with an L2 penalty, on what the valid text has more of than the invalid one:
sequences of up to N tokens that see the change, and for each line its first and last token beside
those of the lines before and behind it. Names and numbers are masked, so that only keywords, signs
and lines are known.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from codesyntax_dataset.pairs.rivals import N, lexed

BUCKETS = 1 << 16
PENALTY = 1.0
"""Half of it is added for each squared weight."""

_WORD = re.compile(r"\w+")

Pair = tuple[str, str]
"""The valid and the invalid text."""


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
