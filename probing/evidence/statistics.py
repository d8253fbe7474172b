"""Intervals and tests over functions, whatever the functions are scored for: BCa, exchanges of signs, Holm."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

FEW_FUNCTIONS = 6
"""What is in fewer functions, a relation or a node type, is marked: its score is unreliable and has no interval."""

RESAMPLES = 1000
"""Bootstrap resamples of the interval of a mean."""

PERMUTATIONS = 9999
"""Random permutations of a test: the smallest p-value is 1 / 10000."""

NORMAL = NormalDist()
_share_below = np.vectorize(NORMAL.cdf, otypes=[float])
_quantile_of = np.vectorize(NORMAL.inv_cdf, otypes=[float])


def holm(p: np.ndarray) -> np.ndarray:
    """p-values of several tests, corrected to keep the family-wise error rate (Holm 1979)."""
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(corrected, 1)
    return result


def bca(score: np.ndarray, resampled: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """Lower and upper bounds (2, n) from `score` (n,), `resampled` (B, n) and the jackknife `left_out` (F, n)."""
    drawn = np.isfinite(resampled).sum(axis=0)  # (n,)
    drawn_or_one = np.maximum(drawn, 1)
    close = 1e-9 * np.maximum(np.abs(score), 1)  # equal means may differ in their last digits
    below = (resampled < score - close).sum(axis=0) + (np.abs(resampled - score) <= close).sum(axis=0) / 2
    bias = _quantile_of(np.clip(below / drawn_or_one, 0.5 / drawn_or_one, 1 - 0.5 / drawn_or_one))
    kept = np.isfinite(left_out)
    centre = np.where(kept, left_out, 0).sum(axis=0) / np.maximum(kept.sum(axis=0), 1)
    influence = np.where(kept, centre - left_out, 0)
    spread = 6 * (influence**2).sum(axis=0) ** 1.5
    skew = np.divide((influence**3).sum(axis=0), spread, out=np.zeros(len(score)), where=spread > 1e-12)
    ordered = np.sort(resampled, axis=0)  # NaN come last
    bounds = []
    for tail in (NORMAL.inv_cdf(0.025), NORMAL.inv_cdf(0.975)):
        away = bias + tail
        # beyond its pole the formula would reverse
        level = _share_below(bias + away / np.maximum(1 - skew * away, 1e-9))
        place = level * (drawn_or_one - 1)
        low = np.floor(place).astype(int)
        values = np.take_along_axis(ordered, np.stack([low, np.minimum(low + 1, drawn_or_one - 1)]), axis=0)
        bounds.append(values[0] + (place - low) * (values[1] - values[0]))
    return np.stack(bounds)


def signs(functions: int, permutations: int, seed: int, at_once: int = 500) -> Iterator[np.ndarray]:
    """Yield random exchanges, some at a time: -1 where the two are exchanged, float64 (permutations, functions)."""
    rng = np.random.default_rng(seed)
    for start in range(0, permutations, at_once):
        yield rng.integers(0, 2, (min(at_once, permutations - start), functions)) * 2.0 - 1
