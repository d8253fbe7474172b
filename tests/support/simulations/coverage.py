"""How often intervals hold and tests reject, by simulation: what is true is known, because it was made up.

Each draw is a measure of the same hits, so that all draws of a cell of the table are one call of `Hits`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from probing.stats.hits import PERCENT_UNIT, Hits
from probing.stats.intervals import Estimate

GROUPS = 4

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

AMOUNTS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
    "discrete": lambda rng, size: rng.integers(-2, 3, size) / 2,
}
"""What clusters differ by, with the mean 0."""

SHARES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, size: np.clip(rng.normal(0.5, 0.15, size), 0, 1), 0.5),
    "skewed": (lambda rng, size: rng.beta(1, 4, size), 0.2),
    "discrete": (lambda rng, size: (rng.random(size) < 0.7).astype(float), 0.7),
}
"""With which probability a cluster's things are hit, and the mean of that: discrete ones are all hit, or none."""


class Simulated(NamedTuple):
    """Hits of many draws, as measures. `truth`: the score of `first`, and its difference to `second`; `same` is no
    better than `first`."""

    hits: Hits
    score: float
    difference: float


def simulated(
    unit: str, shape: str, clusters: int, groups: int, draws: int, seed: int
) -> Simulated:
    """So many draws of what two systems get right in so many clusters, of amounts or of things that are hit.

    A cluster is in two thirds of several groups, and its scores there are alike.
    """
    rng = np.random.default_rng(seed)
    present = np.ones((groups, clusters), bool)
    while groups > 1:
        present = rng.random((groups, clusters)) < 2 / 3
        if present.any(axis=0).all() and (present.sum(axis=1) >= 3).all():
            break
    group, cluster = np.nonzero(present)
    size = draws, len(group)
    names = [f"group {number}" for number in group]
    if unit == PERCENT_UNIT:
        draw, mean = SHARES[shape]
        n = 1 + rng.poisson(2, len(group))
        alike = rng.random(size) < 0.5
        share, other = (
            np.where(alike, draw(rng, (draws, clusters))[:, cluster], draw(rng, size))
            for _ in range(2)
        )
        probabilities = {
            "first": share,
            "second": share / 2 + 0.1,
            "same": np.where(rng.random(size) < 0.5, share, other),
        }
        sums = {system: rng.binomial(n, of) for system, of in probabilities.items()}
        return Simulated(
            Hits.of_rows(cluster, names, sums, range(draws), n), 100 * mean, 100 * (mean / 2 - 0.1)
        )
    gained = AMOUNTS[shape](rng, (draws, clusters))[:, cluster]
    if groups > 1:
        gained = gained + AMOUNTS[shape](rng, size)
    base = rng.normal(size=(draws, clusters))[:, cluster]
    sums = {"first": gained, "second": base, "same": base + gained}
    return Simulated(Hits.of_rows(cluster, names, sums, range(draws), unit=unit), 0, 0)


def covered(
    unit: str, shape: str, clusters: int, groups: int, draws: int, seed: int
) -> tuple[float, float, float]:
    """Percent of draws whose interval holds the true score, and the true difference; and in which the test finds a
    difference where there is none. Of the mean over `groups`, or of a group alone."""
    hits, score, difference = simulated(unit, shape, clusters, groups, draws, seed)

    def estimate(system: str, against: str | None = None) -> Estimate:
        return (
            hits.mean(system, against)
            if groups > 1
            else hits.by_group(system, against).at(slice(None), 0)
        )

    pair = ("first", "second") if unit == PERCENT_UNIT else ("same", "second")
    same = estimate("same", "first") if unit == PERCENT_UNIT else estimate(*pair)
    held = [_holds(estimate("first"), score), _holds(estimate(*pair), difference), same.p <= 0.05]
    scores, differences, falsely = (100 * float(np.mean(of)) for of in held)
    return scores, differences, falsely


def _holds(estimate: Estimate, truth: float) -> np.ndarray:
    return (estimate.low <= truth + 1e-9) & (truth - 1e-9 <= estimate.high)
