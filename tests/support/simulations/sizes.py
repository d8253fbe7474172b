"""How often tests reject at 5 % where there is nothing to find (their size), and where there is (their power)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
