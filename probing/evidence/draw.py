"""Which functions a verification runs again, and how much a forger can still gain when it passes.

The *influence* of a function on a published number is the most points by which a change of the function can have raised
the number. A function whose largest influence is m is drawn with the probability 1 - exp(-rate * m), independently of
all others. Forged functions are therefore all missed with the probability exp(-rate * sum of m): with 5 % or more only
if they gain log(20) / rate points or less. The default rate makes these ENOUGH points for every number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ENOUGH = 0.4
"""Points that changes of functions that are not drawn may gain, with a probability of at least MISSED."""

ROUNDING = 0.1
"""Points by which differences that rounding explains may favour a number, beside honest differences."""

MISSED = 0.05
"""A bound is the largest gain that is accepted with at least this probability."""

_BUDGET = -math.log(MISSED)
_DEVIATIONS = 3.0  # of honest differences


@dataclass(frozen=True)
class Influence:
    """Of F functions, by how many points each may have raised a number.

    `places` (F,): in the split; `means`: the name of a published mean -> points (F,), by which functions are drawn;
    `parts`: a name for several numbers that one function may decide, such as scores of relations -> points (F,) of
    each; `least` (F,): points by which a function is drawn, even if it raises no number.
    """

    places: np.ndarray
    means: dict[str, np.ndarray]
    parts: dict[str, list[np.ndarray]]
    least: np.ndarray

    def at(self, places: np.ndarray, least: np.ndarray) -> Influence:
        """The same of other functions, sorted: those that are new have `least` (F,), and raise no number."""
        _, here, there = np.intersect1d(places, self.places, return_indices=True)

        def moved(points: np.ndarray) -> np.ndarray:
            found = np.zeros(len(places))
            found[here] = points[there]
            return found

        parts = {name: [moved(part) for part in found] for name, found in self.parts.items()}
        return Influence(places, {name: moved(found) for name, found in self.means.items()}, parts, least)

    @property
    def largest(self) -> np.ndarray:
        """(F,)."""
        return np.max([self.least, *self.means.values()], axis=0)


class Draw(NamedTuple):
    """The functions to run again: their `places` (n,), the probabilities (n,) with which they were drawn, and the name
    of each published number -> the largest gain in points that passes with the probability MISSED."""

    places: np.ndarray
    chance: np.ndarray
    bounds: dict[str, float]


def draw(influence: Influence, number: int | None, rng: np.random.Generator, everything: bool = False) -> Draw:
    """Draw functions: about so many, by default as many as ENOUGH asks for, or all."""
    largest = influence.largest
    costs = np.full(len(largest), np.inf) if everything else _rate(largest, number) * largest
    drawn = rng.random(len(largest)) < -np.expm1(-costs)
    drawn[largest.argmax()] = True
    bounds = {name: undetected(points, costs) for name, points in influence.means.items()}
    bounds |= {name: max(undetected(points, costs) for points in of) for name, of in influence.parts.items()}
    return Draw(influence.places[drawn], -np.expm1(-costs[drawn]), bounds)


def undetected(points: np.ndarray, costs: np.ndarray) -> float:
    """The most points that functions gain which are all missed with the probability MISSED; a little more, as if a part
    of a function could be forged.

    `points` (F,) of each; `costs` (F,): the negative logarithms of the probabilities that they are missed.

    >>> undetected(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 9.0]))
    3.0
    """
    possible = (costs <= _BUDGET) & (points > 0)
    points, costs = points[possible], np.maximum(costs[possible], 1e-12)
    order = np.argsort(-points / costs, kind="stable")
    spent = costs[order].cumsum()
    kept = np.clip(1 - (spent - _BUDGET) / costs[order], 0, 1)
    return float((points[order] * kept).sum())


def by_rounding(gained: np.ndarray, chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how many points (n,) differences to what was found again favour numbers, and how many are accepted (n,).

    `gained` (f, n): of each function that was run again; `chance` (f,) with which it was drawn. Rounding takes no side:
    honest differences in favour are about as many as those against, so the latter say what is accepted.
    """
    whole = gained / chance[:, None]
    against = (np.minimum(whole, 0) ** 2).sum(axis=0)
    return whole.sum(axis=0), ROUNDING + _DEVIATIONS * np.sqrt(2 * against)


def _rate(largest: np.ndarray, number: int | None) -> float:
    """The rate at which about so many functions are drawn."""
    if number is None:
        return _BUDGET / ENOUGH
    if number >= np.count_nonzero(largest):
        return math.inf
    low, high = 0.0, 1e9
    for _ in range(100):
        rate = (low + high) / 2
        low, high = (rate, high) if -np.expm1(-rate * largest).sum() < number else (low, rate)
    return high
