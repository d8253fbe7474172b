"""Intervals and tests over functions, whatever the functions are scored for.

The paired test. If neither of two is better, they are exchangeable in each function: the test counts how often random
exchanges (sign changes of the differences) give a sum as far from 0 (Noreen 1989), equal sums half (mid-p: Lancaster
1961). That tests symmetry, and of few skewed differences it rejects too many. Student's t after Hall's transformation,
which removes the skewness (1992, Journal of the Royal Statistical Society B 54), does not; it is over the differences
that are not 0, whose mean is 0 if that of all is. The p-value is the larger of the two. tests/benchmarks/sizes.py
simulates its size: at most 6 % where 5 % are said. But where a mean is 0 by one rare large difference, few functions
may lack it: of such, it rejects up to 18 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

FEW_FUNCTIONS = 6
"""Relations and node types in fewer functions are marked: their scores are unreliable and have no interval."""

SEPARATED = 0.05
"""A difference with a p-value below this is separated from 0."""

LEAST_EDGES = 30
"""Hard edges of `test` from which a relation is in a mean beyond offsets."""

RESAMPLES = 1000
"""Bootstrap resamples of the interval of a mean."""

PERMUTATIONS = 9999
"""Random permutations of a test: the smallest p-value is 1 / 10000."""

_AT_ONCE = 100
"""Resamples in memory at once."""


def holm(p: np.ndarray) -> np.ndarray:
    """p-values of several tests, corrected to keep the family-wise error rate (Holm 1979)."""
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(corrected, 1)
    return result


def bca(score: np.ndarray, resampled: np.ndarray, left_out: np.ndarray, degrees: float = float("inf")) -> np.ndarray:
    """Lower and upper bounds (2, n) from `score` (n,), `resampled` (B, n) and the jackknife `left_out` (F, n).

    `degrees`: of freedom of the spread. A bootstrap takes it for known and is too narrow where it rests on few
    functions; its levels are then those of Student's t (the expanded percentiles of Hesterberg 2015, The American
    Statistician 69).
    """
    drawn = np.isfinite(resampled).sum(axis=0)  # (n,)
    drawn_or_one = np.maximum(drawn, 1)
    close = 1e-9 * np.maximum(np.abs(score), 1)  # equal means may differ in their last digits
    below = (resampled < score - close).sum(axis=0) + (np.abs(resampled - score) <= close).sum(axis=0) / 2
    bias = ndtri(np.clip(below / drawn_or_one, 0.5 / drawn_or_one, 1 - 0.5 / drawn_or_one))
    kept = np.isfinite(left_out)
    centre = np.where(kept, left_out, 0).sum(axis=0) / np.maximum(kept.sum(axis=0), 1)
    influence = np.where(kept, centre - left_out, 0)
    spread = 6 * (influence**2).sum(axis=0) ** 1.5
    skew = np.divide((influence**3).sum(axis=0), spread, out=np.zeros(len(score)), where=spread > 1e-12)
    ordered = np.sort(resampled, axis=0)  # NaN come last
    bounds = []
    for tail in stdtrit(degrees, (0.025, 0.975)):
        away = bias + tail
        # beyond its pole the formula would reverse
        level = ndtr(bias + away / np.maximum(1 - skew * away, 1e-9))
        place = level * (drawn_or_one - 1)
        low = np.floor(place).astype(int)
        values = np.take_along_axis(ordered, np.stack([low, np.minimum(low + 1, drawn_or_one - 1)]), axis=0)
        bounds.append(values[0] + (place - low) * (values[1] - values[0]))
    return np.stack(bounds)


def bootstrapped(
    estimate: Callable[..., np.ndarray],
    tables: Sequence[np.ndarray],
    draws: Iterable[np.ndarray],
    degrees: float = float("inf"),
) -> np.ndarray:
    """The estimate of sums of `tables` (F, ...) over functions, with lower and upper bounds by `bca`: (3, n).

    `estimate`: gives (..., n) from the sums of each table, (..., as of the table); `draws`: how often each function is
    drawn, some resamples at a time: (B, F). Fewer than FEW_FUNCTIONS functions have no bounds, which are then NaN.
    """
    totals = [table.sum(axis=0) for table in tables]
    found = estimate(*totals)
    if len(tables[0]) < FEW_FUNCTIONS:
        return np.stack([found, *np.full((2, len(found)), np.nan)])
    resampled = np.concatenate([estimate(*(np.tensordot(drawn, table, 1) for table in tables)) for drawn in draws])
    left_out = estimate(*(total - table for total, table in zip(totals, tables)))
    return np.stack([found, *bca(found, resampled, left_out, degrees)])


def drawn_functions(functions: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each function is drawn, for `bootstrapped`."""
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, _AT_ONCE):
        rows = rng.integers(functions, size=(min(_AT_ONCE, resamples - start), functions))
        yield np.array([np.bincount(row, minlength=functions) for row in rows], float)


def as_far(sums: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """The number of `sums` (..., B) farther from 0 than `observed` (...); sums equally far count half."""
    sums, observed = np.abs(sums), np.abs(observed)[..., None]
    least, most = ((observed + close).astype(sums.dtype) for close in (-1e-9, 1e-9))  # rounding makes no difference
    return ((sums >= least).sum(axis=-1) + (sums > most).sum(axis=-1)) / 2


def paired_test(differences: np.ndarray, permutations: int, seed: int) -> np.ndarray:
    """p-values (...) that the mean of `differences` (..., F) over functions is 0."""
    observed = differences.sum(axis=-1)
    exchanges = signs(differences.shape[-1], permutations, seed)
    farther = sum(as_far(differences @ sign.T, observed) for sign in exchanges)
    return paired_p(np.asarray(farther), permutations, differences)


def paired_p(farther: np.ndarray, permutations: int, differences: np.ndarray) -> np.ndarray:
    """p-values (...) of the paired test on `differences` (..., F), of whose exchanged sums `farther` (...) were
    counted by `as_far`."""
    return np.maximum((1 + farther) / (1 + permutations), skew_corrected(differences))


def skew_corrected(values: np.ndarray) -> np.ndarray:
    """Two-sided p-values (...) of Hall's transformed t, that the mean of `values` (..., F) is 0, over those that are
    not 0; 1 for less than 3 of them."""
    rounding = 1e-9 * np.abs(values).max(axis=-1)
    counted = np.abs(values) > rounding[..., None]
    known = counted.sum(axis=-1)
    size = np.maximum(known, 3)
    degrees = size - 1
    mean = np.where(counted, values, 0).sum(axis=-1) / size
    residuals = np.where(counted, values - mean[..., None], 0)
    spread = np.sqrt((residuals**2).sum(axis=-1) / degrees)
    varies = spread > rounding
    scale = np.where(varies, spread, 1)
    skew = np.where(varies, (residuals**3).sum(axis=-1) / scale**3, 0) * size / (degrees * (size - 2))
    shift = np.where(varies, mean / scale, np.sign(mean) * 1e9)
    t = np.sqrt(size) * (shift + skew * shift**2 / 3 + skew**2 * shift**3 / 27 + skew / (6 * size))
    return np.where((np.abs(mean) > 1e-12) & (known > 2), 2 * stdtr(degrees, -np.abs(t)), 1)


def signs(functions: int, permutations: int, seed: int, at_once: int = 500) -> Iterator[np.ndarray]:
    """Yield random exchanges, some at a time: -1 where the two are exchanged, float64 (permutations, functions)."""
    return (kept * 2.0 - 1 for kept in unexchanged(functions, permutations, seed, at_once))


def unexchanged(functions: int, permutations: int, seed: int, at_once: int) -> Iterator[np.ndarray]:
    """The same as whole numbers, 0 where the two are exchanged and 1 where not: int64 (permutations, functions)."""
    rng = np.random.default_rng(seed)
    for start in range(0, permutations, at_once):
        yield rng.integers(0, 2, (min(at_once, permutations - start), functions))


class Found(NamedTuple):
    """Counts of one relation in the f functions that have it."""

    places: np.ndarray
    edges: np.ndarray
    columns: np.ndarray
    which: np.ndarray


def scored(found: Found, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares (3, columns) of the edges of a relation that its columns hit, with lower and upper bounds; and the
    residuals (columns, f), hits minus expected hits. `table` (F, R): the edges of all relations.

    The bounds are Wilson's for the effective sample size: the number of independent edges whose share would vary as
    much (Franco et al. 2019, Journal of Survey Statistics and Methodology 7). It is at most the number of edges and, if
    the functions with the relation do not differ, the number of these.
    """
    total, functions = found.edges.sum(), len(found.edges)
    share = found.columns.sum(axis=1) / total
    residuals = found.columns - share[:, None] * found.edges
    variance = _sum(residuals**2, found, table) / total**2 * functions / max(functions - 1, 1)
    varies = variance > 1e-15  # smaller values are rounding errors
    effective = np.divide(share * (1 - share), variance, out=np.full(len(share), float(functions)), where=varies)
    size, z = np.minimum(effective, total), ndtri(0.975)
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    away = z * np.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z**2 / size)
    # at 0 and 1 rounding must not push a bound past the share, or off the scale
    low, high = np.clip(middle - away, 0, share), np.clip(middle + away, share, 1)
    return np.stack([share, low, high]), residuals


def _sum(values: np.ndarray, found: Found, table: np.ndarray) -> np.ndarray:
    """The sums (columns,) of `values` (columns, f) over functions, rounded like those of the columns of `table` (F, R).

    numpy adds a column of a table in C order from top to bottom, and one in Fortran order pairwise.
    """
    if not table.flags.f_contiguous:
        return np.add.accumulate(values, axis=1)[:, -1]
    of_all = np.zeros((len(values), len(table)))
    of_all[:, found.places] = values
    return of_all.sum(axis=1)


def degrees_of(edges: np.ndarray) -> float:
    """The degrees of freedom of the spread of a mean over relations, for `edges` (F, R): the functions it rests on.

    Each relation has the same weight, so a function that is one of few with a relation has a large share of the mean,
    and the spread over functions is mostly that of a few of them. Its degrees of freedom are Satterthwaite's (1946,
    Biometrics Bulletin 2; for clusters: Bell and McCaffrey 2002, Survey Methodology 28), if what a function adds to the
    mean varies as its share in it: as many as there are functions if all have the same share, and at least 1.
    """
    share = (edges / edges.sum(axis=0)).sum(axis=1)
    return float((share**2).sum() ** 2 / (share**4).sum())
