"""Near copies among the functions of a split, which are no independent observations.

Two functions are near copies if at least ALIKE of the different sequences of N tokens that either
has are in both: Jaccard's index, estimated from the SKETCH sequences with the least hash (Broder
1997, "On the resemblance and containment of documents").
"""

from __future__ import annotations

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


class Twins:
    """The functions of a split so far, in order."""

    def __init__(self) -> None:
        self._sketches: list[np.ndarray] = []
        self._first: list[int] = []
        self._known: dict[int, list[int]] = {}

    def first_of(self, id_: int, code: str) -> int:
        """The id of the first function of which the next one, `id_`, is a near copy, or a near copy
        of a near copy; its own if there is none."""
        sketch = _sketch(code)
        looked_up = sketch[:_LOOKED_UP].tolist()
        shared = {place for key in looked_up for place in self._known.get(key, ())}
        first = next(
            (
                self._first[place]
                for place in sorted(shared)
                if _resemblance(sketch, self._sketches[place]) >= ALIKE
            ),
            id_,
        )
        for key in looked_up:
            self._known.setdefault(key, []).append(len(self._first))
        self._sketches.append(sketch)
        self._first.append(first)
        return first


def _sketch(code: str) -> np.ndarray:
    """The least hashes of the sequences of N tokens, ascending; of fewer tokens, of all as one."""
    windowed = windows(lexed(code))
    return np.unique(hashes(windowed[min(N, len(windowed)) - 1 :]))[:SKETCH]


def _resemblance(one: np.ndarray, other: np.ndarray) -> float:
    """The share of sequences that are in both, of those in either."""
    times = np.unique(np.concatenate([one, other]), return_counts=True)[1]
    return float((times[:SKETCH] == 2).mean())
