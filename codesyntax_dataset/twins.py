"""Near copies among the functions of a split, which are no independent observations.

Two functions are near copies if at least ALIKE of the different sequences of N tokens that either
has are in both: Jaccard's index, estimated from the SKETCH sequences with the least hash (Broder
1997, "On the resemblance and containment of documents").
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from codesyntax_dataset.pairs.rivals import N, hashes, lexed, windows

COLUMN = "twin_of"
"""Of a dataset: the `id` of the first row of which each is a near copy."""

ALIKE = 0.5
SKETCH = 64
"""Functions with at most so many different sequences are compared by all of them."""

_LOOKED_UP = 8
"""Near copies share one of so many sequences with the least hash, but for one pair in some
hundred."""

_MOST = 50
"""A sequence is looked up in the first so many functions that have it: of what stands in more, such
as `return this.`, all pairs would be compared. It hides 2 of 359 copies in CodeSearchNet's Java."""


class Twins:
    """The functions of a split so far, in order."""

    def __init__(self) -> None:
        self._sketches: list[np.ndarray] = []
        self._first: list[int] = []
        self._known: dict[int, tuple[int, ...]] = {}
        self._same: dict[int, int] = {}

    def first_of(self, id_: int, code: str) -> int:
        """The id of the first function of which the next one, `id_`, is a near copy, or a near copy
        of a near copy; its own if there is none."""
        sketch = _sketch(code)
        if not len(sketch):
            return id_
        of_all = hash(sketch.tobytes())
        if of_all in self._same:
            return self._same[of_all]
        looked_up = {key: self._known.get(key, ()) for key in sketch[:_LOOKED_UP].tolist()}
        shared = sorted({*chain.from_iterable(looked_up.values())})
        copied = (place for place in shared if _resemblance(sketch, self._sketches[place]) >= ALIKE)
        first = self._first[place] if (place := next(copied, None)) is not None else id_
        last = len(self._first)
        for key, places in looked_up.items():
            if len(places) < _MOST:
                self._known[key] = (*places, last)
        self._sketches.append(sketch)
        self._first.append(first)
        self._same[of_all] = first
        return first


def _sketch(code: str) -> np.ndarray:
    """The least hashes of the sequences of N tokens, ascending; of fewer tokens, of all as one."""
    windowed = windows(lexed(code))
    numbers = hashes(windowed[min(N, len(windowed)) - 1 :]) >> np.uint64(32)
    return np.unique(numbers.astype(np.uint32))[:SKETCH]


def _resemblance(one: np.ndarray, other: np.ndarray) -> float:
    """The share of sequences that are in both, of those in either."""
    times = np.unique(np.concatenate([one, other]), return_counts=True)[1]
    return float((times[:SKETCH] == 2).mean())
