"""How often intervals hold and tests reject, by simulation: what is true is known, because it was made up.

Each draw is a measure of the same hits, so that all draws of a cell of the table are one call of `Hits`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probing.stats.hits import PERCENT_UNIT, Hits
from probing.stats.intervals import Estimate

GROUPS = 4
CELLS = (("nats", 1), (PERCENT_UNIT, 1), (PERCENT_UNIT, GROUPS))
"""Units and numbers of groups: amounts in a group, and things that are hit in a group or several."""

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

AMOUNTS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
}
"""What clusters differ by, with the mean 0."""

SHARES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, size: np.clip(rng.normal(0.5, 0.15, size), 0, 1), 0.5),
    "skewed": (lambda rng, size: rng.beta(1, 4, size), 0.2),
}
"""With which probability a cluster's things are hit, and the mean of that."""


def covered(
    unit: str, groups: int, shape: str, clusters: int, draws: int, seed: int
) -> tuple[float, float, float]:
    """Percent of draws whose interval holds the true score, and the true difference; and in which the test finds a
    difference where there is none. Of the mean over `groups`, or of a group alone."""
    rng, score, difference = np.random.default_rng(seed), 0.0, 0.0
    if unit == PERCENT_UNIT:
        hits, mean = _of_things(rng, groups, shape, clusters, draws)
        score, difference = 100 * mean, 100 * (mean / 2 - 0.1)
        pairs = [("first",), ("first", "second"), ("same", "first")]
    else:
        gained = AMOUNTS[shape](rng, (draws, clusters))
        base = rng.normal(size=(draws, clusters))
        sums = {"first": gained, "second": base, "same": base + gained}
        hits = Hits.of_rows(np.arange(clusters), ["a"] * clusters, sums, range(draws), unit=unit)
        pairs = [("first",), ("same", "second"), ("same", "second")]
    scores, differences, same = (
        hits.mean(*pair) if groups > 1 else hits.by_group(*pair).at(slice(None), 0)
        for pair in pairs
    )
    return (
        100 * float(np.mean(_holds(scores, score))),
        100 * float(np.mean(_holds(differences, difference))),
        100 * float(np.mean(same.p <= 0.05)),
    )


def _of_things(
    rng: np.random.Generator, groups: int, shape: str, clusters: int, draws: int
) -> tuple[Hits, float]:
    """A cluster is in two thirds of several groups, and its scores there are alike. And the true mean of `first`."""
    present = np.ones((groups, clusters), bool)
    while groups > 1:
        present = rng.random((groups, clusters)) < 2 / 3
        if present.any(axis=0).all() and (present.sum(axis=1) >= 3).all():
            break
    group, cluster = np.nonzero(present)
    size = draws, len(group)
    draw, mean = SHARES[shape]
    n = 1 + rng.poisson(2, len(group))
    alike = rng.random(size) < 0.5
    share, other = (
        np.where(alike, draw(rng, (draws, clusters))[:, cluster], draw(rng, size)) for _ in range(2)
    )
    same = np.where(rng.random(size) < 0.5, share, other)
    shares = {"first": share, "second": share / 2 + 0.1, "same": same}
    sums = {system: rng.binomial(n, of) for system, of in shares.items()}
    return Hits.of_rows(cluster, [f"group {of}" for of in group], sums, range(draws), n), mean


def _holds(estimate: Estimate, truth: float) -> np.ndarray:
    return (estimate.low <= truth + 1e-9) & (truth - 1e-9 <= estimate.high)
