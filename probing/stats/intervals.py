"""Intervals and tests over clusters: every number with an interval or a p-value has it from here.

What a system gets right within one function is not independent, so the unit of all statistics is
the *cluster*: a function or, where asked, a repository. Attention heads are not chosen again: an
interval belongs to the chosen ones.

*Means: one procedure for interval and p.* A mean over groups is a sum of what each cluster adds to
it, and the *influence* of a cluster is what it adds more than its share, enlarged by the leverage
that it has in each group (`influence_of`). The 95 % interval is that of Student's t of the
influences after Hall's transformation, which removes their skewness (1992, Journal of the Royal
Statistical Society B 54), with Satterthwaite's degrees of freedom (`degrees_of`) of the clusters in
which two systems differ. The p of a difference is that of the same t, so the two agree. It is never
below SMALLEST_P, or the smallest that exchanging two systems where they differ can give. Nothing is
drawn; how often intervals hold and tests reject is measured by tests/benchmarks/intervals.py. A BCa
bootstrap with Student's levels, which this replaced, held less often in few clusters: 91.8 % for
normal and 91.6 % for exponential scores of 8. Random exchanges of whole means took what differs
between groups for noise: they hardly ever told a model apart that is better in some relations and
worse in others.

*Tests of a single group.* If neither of two systems is better, they are exchangeable in each
cluster: the share of random exchanges (sign changes of differences) that give a sum as far from 0
(Noreen 1989), equal sums counted half (mid-p: Lancaster 1961), tests symmetry, and of few skewed
differences it rejects too many. Hall's t of the differences that are not 0 does not; p is the
larger of the two. Where the interval of such a difference says otherwise, it gives way: where p is
above ALPHA it is extended to 0, and elsewhere it ends before 0. Where a mean is 0 by one rare large
difference, few clusters may lack it: of such, all tests reject up to 18 %.

*Hits of a single group.* All clusters may score 0 or 100 % there, and then nothing shows how much
they vary. So shares of things that are hit or not have Wilson's interval (1927) with the clusters'
worth and Student's quantile (`wilson`), and differences of two such shares the interval that
follows from both (`wilson_difference`). Amounts, such as bits, have no such bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

FEW_CLUSTERS = 6
"""A group in fewer clusters is marked: its scores are unreliable, and have no interval."""

ALPHA = 0.05
"""A difference with a p-value up to this is significant; it is also the family-wise error rate of a
board's ranks."""

POWER = 0.8
"""With which a difference is found that is called detectable."""

PERMUTATIONS = 9999
"""Random exchanges of a test."""

SMALLEST_P = 1 / (1 + PERMUTATIONS)
"""The smallest p-value of all tests."""

_SEED = 0
"""Of the exchanges: the same numbers come out each time."""

_AT_ONCE = 128
"""Exchanges that are drawn at once: a multiple of 8, as they are kept as bits."""

_SIGNS_AT_ONCE = 1 << 17
"""Signs of clusters in memory at once, which fit a processor's cache, or those of _AT_ONCE
exchanges."""

_ROUNDING = 1e-9
"""Sums that differ by less are equal."""

_NOTHING = 1e-12
"""Means up to this are 0, but for rounding."""

_BENTKUS = 1 / (4 * ndtr(-(2**0.5)))


class Estimate(NamedTuple):
    """A value with its 95 % interval, two-sided p-value and number of clusters; or arrays of these,
    of one shape.

    `low` and `high` are NaN where there is no interval, `p` where nothing is tested, and all three
    where there is no value.
    """

    value: Any
    low: Any
    high: Any
    p: Any
    n: Any

    def at(self, *index: Any) -> Estimate:
        """One of several, as plain numbers, or some of them."""
        shape = np.shape(self.value)
        alike = (part if np.shape(part) == shape else np.broadcast_to(part, shape) for part in self)
        parts = [np.asarray(part)[index] for part in alike]
        return Estimate(*(part.item() if np.ndim(part) == 0 else part for part in parts))

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        return self._replace(
            value=factor * self.value, low=factor * self.low, high=factor * self.high
        )

    @property
    def significant(self) -> Any:
        """True where p is at most ALPHA."""
        return np.nan_to_num(self.p, nan=1.0) <= ALPHA


# --------------------------------------------------------------------------------------------------- means and amounts


def degrees_of(share: np.ndarray) -> np.ndarray:
    """The degrees of freedom (...) of the spread of a mean, of which each cluster has a `share`
    (..., F).

    Satterthwaite's (1946, Biometrics Bulletin 2; for clusters: Bell and McCaffrey 2002, Survey
    Methodology 28), if what a cluster adds to the mean varies as its share in it: F - 1 if all
    shares are equal, and at least 1. A function that is one of few with a relation has a large
    share of the mean over relations, so the spread rests mostly on these.
    """
    fourth = (share**4).sum(axis=-1)
    effective = (share**2).sum(axis=-1) ** 2 / np.where(fourth > 0, fourth, 1)
    return np.maximum(1.0, effective - 1)


def influence_of(sums: np.ndarray, part: np.ndarray) -> np.ndarray:
    """What clusters add more than their `part` (f,) of a total, from what they add, `sums` (...,
    f): (..., f).

    A cluster draws the total towards itself, so that its residual is too small by its leverage,
    which is its part; divided by the root of 1 - part, residuals have the right variance (Bell and
    McCaffrey 2002).
    """
    residuals = sums - sums.sum(axis=-1, keepdims=True) * part
    return residuals / np.sqrt(np.where(part < 1, 1 - part, 1))


def interval(
    value: np.ndarray, influence: np.ndarray, degrees: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (...) of `value` (...), from the `influence` (..., F) of F
    clusters."""
    error, skewness = _spread(influence)
    quantile = stdtrit(degrees, 0.975)
    below, above = (error * _inverted(t, skewness) for t in (quantile, -quantile))
    return np.minimum(value - below, value), np.maximum(value - above, value)


def influence_p(value: np.ndarray, influence: np.ndarray, degrees: Any) -> np.ndarray:
    """Two-sided p (...) that `value` (...) is 0, at most ALPHA where its `interval` is on one side
    of 0."""
    error, skewness = _spread(influence)
    t = _over(value, error)
    return np.where(
        np.abs(value) > _NOTHING, 2 * stdtr(degrees, -np.abs(_transformed(t, skewness))), 1
    )


def hall_p(differences: np.ndarray) -> np.ndarray:
    """Two-sided p (...) that the mean of `differences` (..., F) over clusters is 0, from those that
    are not 0; 1 for fewer than three of them."""
    rounding = _ROUNDING * np.abs(differences).max(axis=-1, initial=0)
    counted = np.abs(differences) > rounding[..., None]
    known = counted.sum(axis=-1)
    size = np.maximum(known, 3)
    mean = np.where(counted, differences, 0).sum(axis=-1) / size
    residuals = np.where(counted, differences - mean[..., None], 0)
    error = np.sqrt((residuals**2).sum(axis=-1) / (size - 1) / size)
    error = np.where(error > rounding, error, 0)
    cubes = _over((residuals**3).sum(axis=-1), error**3) * (error > 0)
    t = _transformed(_over(mean, error), cubes / (size * (size - 1) * (size - 2)))
    return np.where((np.abs(mean) > _NOTHING) & (known > 2), 2 * stdtr(size - 1, -np.abs(t)), 1)


def _spread(influence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The standard error (...) of a mean, and the skewness (...) of its sampling distribution."""
    clusters = influence.shape[-1]
    squares = (influence**2).sum(axis=-1)
    error = np.sqrt(squares)
    varies = squares > 1e-24
    cubes = (influence**3).sum(axis=-1) / np.where(varies, squares, 1) ** 1.5
    unbiased = np.sqrt(clusters * (clusters - 1)) / max(clusters - 2, 1)
    return np.where(varies, error, 0.0), np.where(varies, cubes * unbiased, 0.0)


def _over(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Student's t (...), very large where nothing varies."""
    varies = error > 0
    return np.where(varies, value / np.where(varies, error, 1), np.sign(value) * 1e9)


def _transformed(t: np.ndarray, skewness: np.ndarray) -> np.ndarray:
    """Hall's transformation (...) of Student's t."""
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


def _inverted(t: float, skewness: np.ndarray) -> np.ndarray:
    """The Student's t (...) that Hall's transformation takes to `t`."""
    skewed = np.abs(skewness) > 1e-9
    of_skewed = np.where(skewed, skewness, 1.0)
    return np.where(skewed, (np.cbrt(1 + of_skewed * (t - of_skewed / 6)) - 1) * 3 / of_skewed, t)


def mean_estimate(
    value: np.ndarray,
    influence: np.ndarray,
    share: np.ndarray,
    differences: np.ndarray | None = None,
) -> Estimate:
    """The estimate (...) of a mean over clusters, whose `value` (...) is known. The one rule for
    means and amounts.

    `influence` (..., F): what each cluster adds to it more than its `share` (F,), which is 0 where
    it has no part in the mean. `differences` (..., F): what each cluster adds, if the mean is a
    difference, which is then tested; clusters where it is 0 tell nothing of how much it varies.
    Fewer than three clusters have no interval.
    """
    there = share > 0
    clusters = int(there.sum())
    low = high = p = np.full(value.shape, np.nan)
    varying = influence[..., there]
    varies = share[there]
    if differences is not None:
        most = np.abs(differences).max(axis=-1, keepdims=True, initial=0)
        varies = np.where(np.abs(differences[..., there]) > _ROUNDING * most, varies, 0)
    degrees = degrees_of(varies)
    if clusters > 2:
        low, high = interval(value, varying, degrees)
    if differences is not None:
        least = 2.0 ** (1 - np.count_nonzero(varies, axis=-1))
        p = np.maximum(influence_p(value, varying, degrees), np.clip(least, SMALLEST_P, 1))
        low, high = agreeing(value, low, high, p)
    return Estimate(value, low, high, p, clusters)


def agreeing(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of a difference, extended to 0 where a test does not separate it from 0, else
    short of 0."""
    equal = p > ALPHA
    separated = p <= ALPHA
    short = np.abs(value) * _ROUNDING
    low = np.where(
        equal, np.minimum(low, 0), np.where(separated & (value > 0), np.maximum(low, short), low)
    )
    high = np.where(
        equal,
        np.maximum(high, 0),
        np.where(separated & (value < 0), np.minimum(high, -short), high),
    )
    return low, high


def paired_p(differences: np.ndarray) -> np.ndarray:
    """Two-sided p (...) that the mean of `differences` (..., F) over clusters is 0."""
    share = np.full(differences.shape[-1], 1 / differences.shape[-1])
    added = differences * share
    return mean_estimate(added.sum(axis=-1), influence_of(added, share), share, added).p


# ------------------------------------------------------------------------------------------------ hits of single groups


def wilson(
    hits: np.ndarray, n: np.ndarray, worth: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Shares with bounds (3, columns) of the things that are hit, from `hits` (columns, f) of `n`
    (f,) in f clusters; and the residuals (columns, f), hits minus expected hits.

    `worth`: of things that are weighted, the number of things of equal weight that tell as much; by
    default they are not, and it is their number.

    The bounds are Wilson's for the effective sample size: the number of independent things whose
    share would vary as much (Franco et al. 2019, Journal of Survey Statistics and Methodology 7).
    It is at most what the things are worth and, if the clusters do not differ, the clusters' number.
    Where it rests on how much the f clusters vary, the quantile is Student's with f - 1 degrees of
    freedom (Korn and Graubard 1998, Survey Methodology 24), else the normal's.
    """
    total = float(n.sum())  # whose square may not fit an integer
    clusters = len(n)
    share = hits.sum(axis=1) / total
    residuals = hits - share[:, None] * n
    variance = (residuals**2).sum(axis=1) / total**2 * clusters / max(clusters - 1, 1)
    varies = variance > 1e-15  # smaller values are rounding errors
    effective = np.divide(
        share * (1 - share), variance, out=np.full(len(share), float(clusters)), where=varies
    )
    most = total if worth is None else worth
    size = np.minimum(effective, most)
    z = np.where(effective < most, stdtrit(max(clusters - 1, 1), 0.975), ndtri(0.975))
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    away = z * np.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z**2 / size)
    # at 0 and 1 rounding must not push a bound past the share, or off the scale
    low = np.clip(middle - away, 0, share)
    high = np.clip(middle + away, share, 1)
    return np.stack([share, low, high]), residuals


def wilson_difference(
    first: np.ndarray, second: np.ndarray, n: np.ndarray, worth: float | None = None
) -> np.ndarray:
    """Differences with bounds (3, columns) of the shares that two hit, (columns, f) each, of the
    same things, as of `wilson`.

    Computed from the bounds of both and their correlation over clusters (Newcombe 1998, Statistics
    in Medicine 17, method 10; for clusters: Zou and Donner 2008, Statistics in Medicine 27).
    """
    (share, low, high), residuals = wilson(first, n, worth)
    (other_share, other_low, other_high), other_residuals = wilson(second, n, worth)
    spread = np.sqrt((residuals**2).sum(axis=1) * (other_residuals**2).sum(axis=1))
    product = (residuals * other_residuals).sum(axis=1)
    correlation = np.divide(product, spread, out=np.zeros(len(spread)), where=spread > 1e-12)

    def away(own: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(own**2 - 2 * correlation * own * other + other**2, 0))

    below = away(share - low, other_high - other_share)
    above = away(high - share, other_share - other_low)
    difference = share - other_share
    return np.stack(
        [difference, np.maximum(difference - below, -1), np.minimum(difference + above, 1)]
    )


# -------------------------------------------------------------------------------------------------------- random signs


def sign_p(parts: Sequence[tuple[np.ndarray, np.ndarray]], clusters: int) -> list[np.ndarray]:
    """Two-sided mid-p (columns,) of each part by random exchanges, the same for all parts.

    Each part: which of so many clusters it is of, (f,), and differences (columns, f). Sums of whole
    numbers in float32 are exact below 2**24.
    """
    placed = []
    for places, columns in parts:
        used = columns.any(axis=0)  # what is 0 has no sign
        kind = np.float32 if np.issubdtype(columns.dtype, np.integer) else np.float64
        placed.append((places[used], np.ascontiguousarray(columns[:, used], kind)))
    farther = [np.zeros(len(columns)) for _, columns in placed]
    for bits, number in _exchanges_in_parts(clusters):
        for count, (places, columns) in zip(farther, placed):
            keeps = np.unpackbits(bits[places], axis=1, count=number).astype(columns.dtype)
            total = columns.sum(axis=1, keepdims=True)
            count += _as_extreme(2 * (columns @ keeps) - total, total[:, 0])
    return [(1 + count) / (1 + PERMUTATIONS) for count in farther]


def _as_extreme(sums: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """The number of `sums` (columns, B) farther from 0 than `observed` (columns,); sums equally far
    count half."""
    sums = np.abs(sums)
    observed = np.abs(observed)[:, None]
    least, most = ((observed + close).astype(sums.dtype) for close in (-_ROUNDING, _ROUNDING))
    return ((sums >= least).sum(axis=-1) + (sums > most).sum(axis=-1)) / 2


def _exchanges_in_parts(clusters: int) -> Iterator[tuple[np.ndarray, int]]:
    """The exchanges, some at a time, as bits (F, exchanges / 8), and how many they are."""
    exchanges = _exchanges(clusters, PERMUTATIONS)
    at_once = max(_AT_ONCE, _SIGNS_AT_ONCE // max(clusters, 1) // 8 * 8)
    for start in range(0, PERMUTATIONS, at_once):
        bits = np.ascontiguousarray(exchanges[:, start // 8 : (start + at_once) // 8])
        yield bits, min(at_once, PERMUTATIONS - start)


@lru_cache(maxsize=4)
def _exchanges(clusters: int, permutations: int) -> np.ndarray:
    """Which clusters keep their sign in each exchange, as bits: uint8 (F, exchanges / 8)."""
    rng = np.random.default_rng(_SEED)
    parts = []
    for start in range(0, permutations, _AT_ONCE):
        keeps = rng.integers(0, 2, (min(_AT_ONCE, permutations - start), clusters))
        parts.append(np.packbits(keeps.T.astype(bool), axis=1))
    return np.hstack(parts)


# ------------------------------------------------------------------------------------------------------- several tests


def corrected(estimates: Sequence[Estimate], times: int = 1) -> list[Estimate]:
    """The same with p corrected (`holm`): all tests along the last axis of all `estimates` are one
    family, of which there are `times` (Bonferroni)."""
    p = np.minimum(1, times * holm(np.concatenate([estimate.p for estimate in estimates], axis=-1)))
    ends = np.cumsum([np.shape(estimate.p)[-1] for estimate in estimates])[:-1]
    return [
        estimate._replace(p=part) for estimate, part in zip(estimates, np.split(p, ends, axis=-1))
    ]


def family(estimates: Sequence[Estimate]) -> list[Estimate]:
    """The same with p corrected (`holm`): at each measure, the tests of all `estimates` are one
    family."""
    if not estimates:
        return []
    p = holm(np.stack([estimate.p for estimate in estimates], axis=-1))
    return [estimate._replace(p=p[..., number]) for number, estimate in enumerate(estimates)]


def rejected(p: np.ndarray) -> np.ndarray:
    """Which of several tests, one family, are significant: bool (tests,)."""
    return np.asarray(holm(p) <= ALPHA)


def detectable(differences: np.ndarray, tests: int) -> float:
    """The mean of `differences` (F,) that one of so many tests at ALPHA finds with the probability
    POWER; NaN for fewer than FEW_CLUSTERS clusters."""
    clusters = len(differences)
    if clusters < FEW_CLUSTERS:
        return np.nan
    away = stdtrit(clusters - 1, (1 - ALPHA / 2 / tests, POWER)).sum()
    return float(away * differences.std(ddof=1) / np.sqrt(clusters))


def holm(p: np.ndarray) -> np.ndarray:
    """p-values of several tests, corrected over the last axis to keep the family-wise error rate
    (Holm 1979).

    NaN are no tests, and stay.
    """
    if p.ndim > 1:
        return np.apply_along_axis(holm, -1, p)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    corrected = p.astype(float)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return corrected


def ranks(shares: np.ndarray) -> list[tuple[int, int]]:
    """The first and the last possible rank of each of n models, from each cluster's contribution to
    its score (n, F).

    Two models differ if p is at most ALPHA in a test that exchanges them at random in each cluster,
    corrected for the number of pairs (Holm 1979). Here p is not counted but bounded from above, for
    any number of clusters: a sum of terms with random signs exceeds z standard deviations at most 1
    / (4 P(N > sqrt 2)) = 3.178 times as often as the normal N (Bentkus and Dzindzalieta 2015,
    Bernoulli 21, theorem 1.1).

    >>> ranks(np.array([[3.0] * 20, [5.0] * 20, [3.0] * 19 + [4.0]]))
    [(2, 3), (1, 1), (2, 3)]
    """
    shares = shares.astype(np.float64)
    number, clusters = shares.shape
    score = shares.sum(axis=1)
    first, second = np.triu_indices(number, 1)
    gained = score[first] - score[second]
    products = shares @ shares.T
    squares = products.diagonal()[first] + products.diagonal()[second] - 2 * products[first, second]
    # the lower bound, which rounding may violate
    squares = np.maximum(squares, gained**2 / clusters)
    differs = np.abs(gained) > 1e-4
    z = np.divide(np.abs(gained), np.sqrt(squares), out=np.zeros(len(gained)), where=differs)
    separate = rejected(np.minimum(1, 2 * _BENTKUS * ndtr(-z)))
    ahead = np.where(gained > 0, first, second)[separate]
    behind = np.where(gained > 0, second, first)[separate]
    best = 1 + np.bincount(behind, minlength=number)
    worst = number - np.bincount(ahead, minlength=number)
    return list(zip(best.tolist(), worst.tolist()))
