"""Rivals that need no syntax, a 5-gram model and a bag of tokens, and the pairs on which both are
at chance.

Pairs are kept two by two, of the same phenomenon: what one adds, the other takes, so that no
weights of tokens prefer the valid text of both; and the 5-gram model prefers the valid text of one
and the invalid text of the other. Where a change only moves tokens, the bag is undecided. So each
rival is right on exactly half of what is kept, by phenomenon.

The 5-gram model (Witten and Bell 1991, interpolated) is trained on the functions of other
repositories: those of each half of them are scored by the model of the other half. Where there is
only one, files are halved.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

N = 5

TRAINING = 1_000_000
"""Tokens that a model is trained on, the first of its half."""

_TOKEN = re.compile(r"\s*\n(?P<indentation>[ \t]*)|\w+|[^\w\s]")

_PREFERS = ("is undecided", "prefers the valid text", "prefers the invalid text")

Windows = np.ndarray
"""For each token the numbers of N tokens, of which it is the last."""


def lexed(text: str) -> list[str]:
    """The tokens of a text for rivals: words, signs, and line breaks with the indentation behind
    them."""
    return [
        match[0] if match["indentation"] is None else "\n" + match["indentation"]
        for match in _TOKEN.finditer(text)
    ]


@functools.lru_cache(1 << 20)
def _number(token: str) -> int:
    return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "big")


def windows(tokens: Sequence[str]) -> Windows:
    """A window for each token; before the first one, all numbers are 0."""
    numbers = np.array([0] * (N - 1) + [_number(token) for token in tokens], dtype=np.uint64)
    return (
        np.lib.stride_tricks.sliding_window_view(numbers, N)
        if tokens
        else np.empty((0, N), np.uint64)
    )


def hashes(windowed: Windows) -> np.ndarray:
    """One number for the tokens of each window; others get the same only by an accident of one in
    2^64."""
    numbers = np.zeros(len(windowed), dtype=np.uint64)
    for column in windowed.T:
        numbers = numbers * np.uint64(0x9E3779B97F4A7C15) + column + np.uint64(1)
    return numbers


class NGrams:
    """An n-gram model of tokens, smoothed as by Witten and Bell."""

    def __init__(self, windowed: Windows):
        self._orders = []
        for order in range(1, N + 1):
            keys, places, counts = np.unique(
                hashes(windowed[:, N - order :]), return_index=True, return_counts=True
            )
            before = hashes(windowed[:, N - order : N - 1])[places]
            contexts, which = np.unique(before, return_inverse=True)
            totals = np.bincount(which, weights=counts, minlength=len(contexts))
            self._orders.append(
                (keys, counts, contexts, totals, np.bincount(which, minlength=len(contexts)))
            )
        self._types = len(self._orders[0][0])

    def log_probabilities(self, windowed: Windows) -> np.ndarray:
        """The logarithm of the probability of the last token of each window, given those before it
        there."""
        probability = np.full(len(windowed), 1 / (self._types + 1))
        for order, (keys, counts, contexts, totals, types) in enumerate(self._orders, start=1):
            count = _looked_up(keys, counts, hashes(windowed[:, N - order :]))
            before = hashes(windowed[:, N - order : N - 1])
            total, kinds = _looked_up(contexts, totals, before), _looked_up(contexts, types, before)
            seen = total > 0
            mixed = (count + kinds * probability) / np.where(seen, total + kinds, 1)
            probability = np.where(seen, mixed, probability)
        return np.log(probability)


def _looked_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if not len(keys):
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0).astype(float)


class Difference:
    """Where two texts differ, in tokens: what is put in and taken, and the windows that see it."""

    def __init__(self, good: str, bad: str):
        tokens = lexed(good), lexed(bad)
        shorter = min(map(len, tokens))
        first = next(
            (index for index in range(shorter) if tokens[0][index] != tokens[1][index]), shorter
        )
        behind = next(
            (
                index
                for index in range(shorter - first)
                if tokens[0][-1 - index] != tokens[1][-1 - index]
            ),
            shorter - first,
        )
        middles = [Counter(text[first : len(text) - behind]) for text in tokens]
        self.put_in = tuple(sorted((middles[1] - middles[0]).elements()))
        self.taken = tuple(sorted((middles[0] - middles[1]).elements()))
        seen = [text[: len(text) - behind + min(behind, N - 1)] for text in tokens]
        self.good, self.bad = (windows(text)[first:] for text in seen)


@dataclass
class Rivals:
    """What rivals say of pairs, which are read twice: once to train, and once to be scored."""

    _half: dict[str, int] = field(default_factory=dict)
    _sizes: list[int] = field(default_factory=lambda: [0, 0])
    _read: list[list[Windows]] = field(default_factory=lambda: [[], []])
    _models: list[NGrams] = field(default_factory=list)
    _cells: dict[tuple, dict[tuple[bool, int], list[str]]] = field(default_factory=dict)
    preferred: dict[str, str] = field(default_factory=dict)
    """Id -> what the 5-gram model says of the pair, in words."""

    def train(self, origin: str, code: str) -> None:
        """Read a function of an origin, a repository or file."""
        half = self._half.setdefault(origin, int(self._sizes[0] > self._sizes[1]))
        self._sizes[half] += len(code)
        if sum(map(len, self._read[half])) < TRAINING:
            self._read[half].append(windows(lexed(code)))

    def score(self, pairs: Iterable[tuple[str, str, str, str, str]]) -> None:
        """Score pairs, each given as id, origin, phenomenon, valid text and invalid text."""
        if not self._models:
            empty = np.empty((0, N), np.uint64)
            self._models = [NGrams(np.concatenate([empty, *read])) for read in self._read]
            self._read = [[], []]
        by_half: list[list[tuple[str, str, Difference]]] = [[], []]
        for id_, origin, phenomenon, good, bad in pairs:
            by_half[self._half[origin]].append((id_, phenomenon, Difference(good, bad)))
        for half, differences in enumerate(by_half):
            model = self._models[1 - half]
            goods = _sums(model, [difference.good for _, _, difference in differences])
            bads = _sums(model, [difference.bad for _, _, difference in differences])
            for (id_, phenomenon, difference), good_sum, bad_sum in zip(differences, goods, bads):
                # sums of the same numbers may differ by rounding
                verdict = int(np.sign(round(good_sum - bad_sum, 9)))
                self.preferred[id_] = _PREFERS[verdict]
                exchange = tuple(sorted((difference.put_in, difference.taken)))
                cells = self._cells.setdefault((phenomenon, exchange), {})
                cells.setdefault((difference.put_in < difference.taken, verdict), []).append(id_)

    def kept(self, without: set[str]) -> set[str]:
        """The ids of the pairs that are kept, `without` some; which of equal ones depends on their
        ids alone."""
        balanced: set[str] = set()
        for (_, exchange), cells in self._cells.items():
            ordered = {cell: sorted({*ids} - without, key=_drawn) for cell, ids in cells.items()}
            moved = exchange[0] == exchange[1]
            for (side, verdict), ids in ordered.items():
                if moved and verdict == 0:
                    balanced.update(ids)
                    continue
                balanced.update(
                    ids[: len(ordered.get((side if moved else not side, -verdict), ()))]
                )
        return balanced


def _sums(model: NGrams, texts: Sequence[Windows]) -> list[float]:
    """The logarithms of the probabilities of some windows, summed over each."""
    if not texts:
        return []
    log = np.concatenate([[0.0], np.cumsum(model.log_probabilities(np.concatenate(texts)))])
    ends = np.cumsum([len(text) for text in texts])
    return [float(log[end] - log[end - len(text)]) for end, text in zip(ends, texts)]


def _drawn(id_: str) -> bytes:
    return hashlib.sha256(id_.encode()).digest()
