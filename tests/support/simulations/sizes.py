"""How often tests reject at 5 % where there is nothing to find (their size), and where there is (their power)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probing.evidence.mechanism import MatchedPair, correlations_of
from probing.evidence.statistics import paired_test

Draw = Callable[[np.random.Generator, int], np.ndarray]

DIFFERENCES: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
    "discrete": lambda rng, size: rng.integers(-2, 3, size) / 2,
    "half zero": lambda rng, size: rng.normal(size=size) * (rng.random(size) < 0.5),
}
"""Differences of functions, with the mean 0."""


def paired_rejects(draw: Draw, functions: int, simulations: int, seed: int, shift: float = 0) -> float:
    """How often the paired test rejects, in percent, if `shift` standard deviations are added to the differences."""
    rng = np.random.default_rng(seed)
    shift *= float(draw(rng, 100_000).std())
    drawn = np.array([draw(rng, functions) for _ in range(simulations)]) + shift
    return float(100 * (paired_test(drawn, 999, seed) <= 0.05).mean())


def orders_claimed(pairs: int, simulations: int, seed: int, noise: float = np.inf) -> float:
    """How often the order of some pairs by heads is claimed to be that of an outcome of masking, in percent.

    All are independent; or, with `noise`, heads are the effect with so many standard deviations added.
    """
    rng = np.random.default_rng(seed)
    claimed = 0
    for _ in range(simulations):
        heads, baseline, effect, restored = rng.normal(size=(4, pairs))
        heads = effect + noise * heads if np.isfinite(noise) else heads
        numbers = np.stack([heads, baseline, effect, restored], axis=1).tolist()
        found = correlations_of([MatchedPair("", [], 9, 9, *one) for one in numbers])
        claimed += any(of.heads.p < 0.05 for of in found.values())
    return 100 * claimed / simulations
