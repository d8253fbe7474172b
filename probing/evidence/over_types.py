"""The mean over node types of what a model restores, with intervals and a test over functions.

Each node type has the same weight, whatever the number of its functions. A function has several node types, so it is
drawn, and its arms are exchanged in the paired test, with all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probing.evidence.statistics import FEW_FUNCTIONS, PERMUTATIONS, RESAMPLES, bca, paired_test

_AT_ONCE = 100  # resamples


class OverTypes(NamedTuple):
    """Means of O outcomes over node types. `mean`: (3, 3, O): T1, T0 and effect T1 - T0, each with the lower and upper
    bound of its 95 % interval; the bounds are NaN for fewer than FEW_FUNCTIONS functions. `p`: (O,), two-sided p-value
    of the effect."""

    mean: np.ndarray
    p: np.ndarray


def over_types(node_type: np.ndarray, places: np.ndarray, arms: np.ndarray, seed: int = 0) -> OverTypes:
    """From N pairs of a node type, (N,) from 0, and a function, by its place (N,), with O outcomes: (N, 2, O), T1, T0.

    The interval is a BCa bootstrap over functions; a resample without a node type has the mean of the others.
    """
    functions, row = np.unique(places, return_inverse=True)
    size, types = len(functions), int(node_type.max()) + 1
    present = np.zeros((size, types))
    present[row, node_type] = 1
    values = np.zeros((size, types, *arms.shape[1:]))
    values[row, node_type] = arms
    total, count = values.sum(axis=0), present.sum(axis=0)
    mean = np.full((3, 3, arms.shape[2]), np.nan)
    mean[:, 0] = _means(total[None], count[None])[0]
    if size >= FEW_FUNCTIONS:
        rng = np.random.default_rng(seed)
        resampled = []
        for _ in range(0, RESAMPLES, _AT_ONCE):
            drawn = [np.bincount(rng.integers(size, size=size), minlength=size) for _ in range(_AT_ONCE)]
            weight = np.array(drawn, float)
            sums = (weight @ values.reshape(size, -1)).reshape(_AT_ONCE, *total.shape)
            resampled.append(_means(sums, weight @ present))
        left_out = _means(total - values, count - present)
        flat = mean[:, 0].reshape(-1)
        bounds = bca(flat, np.concatenate(resampled).reshape(-1, flat.size), left_out.reshape(size, -1))
        mean[:, 1:] = bounds.reshape(2, *mean[:, 0].shape).swapaxes(0, 1)
    gained = ((values[:, :, 0] - values[:, :, 1]) / count[:, None]).sum(axis=1) / types  # (functions, O)
    return OverTypes(mean, paired_test(np.ascontiguousarray(gained.T), PERMUTATIONS, seed))


def _means(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """T1, T0 and effect (B, 3, O) from sums (B, types, 2, O) and the numbers of functions (B, types)."""
    of_type = sums / np.where(counts > 0, counts, np.nan)[..., None, None]
    mean = np.nanmean(of_type, axis=1)
    return np.concatenate([mean, mean[:, :1] - mean[:, 1:]], axis=1)
