"""Intervals and tests over clusters: every number with an interval or a p-value has it from here.

What a system gets right within one function is not independent, so the unit of all statistics is
the *cluster*: a function or, where asked, a repository. What is chosen on other data, such as
attention heads, would be chosen otherwise on yet others: how much a mean varies by that is part of
its error where enough is known (`with_variance`). Intervals of single groups are of what was chosen.

*One procedure for interval and p.* A score is a sum of what each cluster adds to it, and the
*influence* of a cluster is what it adds more than the other clusters foretell, group by group: the
jackknife (`influence_of`). The 95 % interval is that of Student's t of the influences after Hall's
transformation, which removes their skewness (1992, Journal of the Royal Statistical Society B 54),
with Satterthwaite's degrees of freedom (`degrees_of`) of what each cluster has a share in or, of a
difference, of the part of it in which the systems differ: a few functions with many of the
relations that one finds and the other does not have most of a score, and are few. The p of a
difference is the larger of those of t before and after that transformation: where few clusters have
most of a score, either rejects too often alone. Where p and interval disagree, the interval gives
way (`agreeing`). Nothing is drawn; how often intervals hold and tests reject is measured by
tests/benchmarks/intervals.py.

*The smallest p.* If neither of two systems is better, all those d clusters that differ favour the
same one with the probability 2^(1 - d), and p is never below that. Without this bound, of
differences of 1 or -1 the test rejects 25 % of 3 clusters, 12 % of 4 and 6.3 % of 5; with it, none.
From 6 clusters on it changes no decision at 5 %.

*Hits of a single group.* All clusters may score 0 or 100 % there, and then nothing shows how much
they vary. So shares of things that are hit or not have Wilson's interval (1927) with the clusters'
worth and Student's quantile (`wilson`), and differences of two such shares the interval that
follows from both (`wilson_difference`). Their p is that of any other difference (`paired_p`).
Amounts, such as bits, have no such bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose `special` takes long to import, and is imported when it is used

FEW_CLUSTERS = 6
"""A group in fewer clusters is marked: its scores are unreliable, and have no interval."""

ALPHA = 0.05
"""A difference with a p-value up to this is significant; it is also the family-wise error rate of a
board's ranks."""

_ROUNDING = 1e-9
"""Sums that differ by less are equal."""

_NOTHING = 1e-12
"""Means up to this are 0, but for rounding."""

_DIFFERENCES_AT_ONCE = 1 << 17
"""Numbers of differences that are in memory at a time."""

_DECIMALS = 8
"""Of differences in percent: what is less is rounding."""


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
        parts = []
        for part in self:
            alike = np.broadcast_to(part, shape)
            chosen = alike[index]
            parts.append(chosen.item() if np.ndim(chosen) == 0 else chosen)
        return Estimate(*parts)

    @property
    def significant(self) -> Any:
        """True where p is at most ALPHA."""
        known = np.nan_to_num(self.p, nan=1.0)
        return known <= ALPHA


# -------------------------------------------------------------------------------- means and amounts


def degrees_of(share: np.ndarray) -> np.ndarray:
    """The degrees of freedom (...) of the spread of a mean, of which each cluster has a `share`
    (..., F).

    Satterthwaite's (1946, Biometrics Bulletin 2; for clusters: Bell and McCaffrey 2002, Survey
    Methodology 28), if what a cluster adds to the mean varies as its share in it: F - 1 if all
    shares are equal, and at least 1. A function that is one of few with a relation has a large
    share of the mean over relations, so the spread rests mostly on these.
    """
    squares = _square_sum(share)
    fourth = _square_sum(share**2)
    effective = _quotient(squares**2, fourth, fourth > 0)
    return np.maximum(1.0, effective - 1)


def influence_of(sums: np.ndarray, part: np.ndarray, clusters: int) -> np.ndarray:
    """What clusters add more than the others foretell for their `part` (f,) of a total, from what
    they add, `sums` (..., f): (..., f); `clusters`: the number of those of the whole mean.

    The jackknife, CV3 of MacKinnon, Nielsen and Webb (2023, Journal of Econometrics 232): right
    also if a few clusters have most of a total, which they draw towards themselves. Of equal parts
    it is the plain residual of Student's t. A cluster that has all is foretold by no other: 0, see
    `lone_influence`.
    """
    total = sums.sum(axis=-1, keepdims=True)
    residuals = sums - total * part
    others = np.where(part < 1, 1 - part, 1)
    return residuals / others * _unbiased(clusters)


def lone_influence(total: Any, mean: Any, groups: int, clusters: int) -> np.ndarray:
    """The influence (...) on the `mean` (...) over `groups` of the cluster that alone has one of
    them, of which the score is `total` (...): without it, the mean is over the others."""
    return np.asarray((total - mean) / max(groups - 1, 1) * _unbiased(clusters))


def with_variance(influence: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Influences (..., F) that vary by so much more (...), such as by the choice of what is scored;
    as skewed as before."""
    squares = _square_sum(influence)
    factor = np.sqrt(1 + _quotient(variance, squares, squares > 1e-24))
    return influence * factor[..., None]


def _unbiased(clusters: int) -> float:
    return float(np.sqrt((clusters - 1) / clusters))


def differing(differences: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The `part` (f,) of each cluster in which two systems differ by more than rounding, else 0,
    from `differences` (..., f): (..., f)."""
    distance = np.abs(differences)
    most = distance.max(axis=-1, keepdims=True, initial=0)
    return np.where(distance > _ROUNDING * most, part, 0)


def interval(
    value: np.ndarray, influence: np.ndarray, degrees: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (...) of `value` (...), from the `influence` (..., F) of F
    clusters."""
    error, skewness = _spread(influence)
    quantile = scipy.special.stdtrit(degrees, 0.975)
    below = error * _inverted(quantile, skewness)
    above = error * _inverted(-quantile, skewness)
    low = np.minimum(value - below, value)
    high = np.maximum(value - above, value)
    return low, high


def influence_p(value: np.ndarray, influence: np.ndarray, degrees: Any) -> np.ndarray:
    """Two-sided p (...) that `value` (...) is 0: the larger of that of t and of t after Hall's
    transformation."""
    error, skewness = _spread(influence)
    certain = np.sign(value) * 1e9  # t where nothing varies
    t = _quotient(value, error, error > 0, certain)
    smaller = np.minimum(np.abs(t), np.abs(_transformed(t, skewness)))
    p = 2 * scipy.special.stdtr(degrees, -smaller)
    return np.where(np.abs(value) > _NOTHING, p, 1)


def _spread(influence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The standard error (...) of a mean, and the skewness (...) of its sampling distribution."""
    clusters = influence.shape[-1]
    squares = _square_sum(influence)
    third = (influence**2 * influence).sum(axis=-1)  # a power of 3 takes five times as long
    varies = squares > 1e-24
    error = np.where(varies, np.sqrt(squares), 0.0)
    cubes = _quotient(third, squares**1.5, varies)
    unbiased = np.sqrt(clusters * (clusters - 1))
    unbiased /= max(clusters - 2, 1)
    return error, cubes * unbiased


def _quotient(
    value: np.ndarray, divisor: np.ndarray, known: np.ndarray, otherwise: Any = 0.0
) -> np.ndarray:
    """`value` over `divisor` (...) where this is `known`, and elsewhere `otherwise`."""
    quotient = np.empty(np.shape(value))
    quotient[...] = otherwise
    return np.divide(value, divisor, out=quotient, where=known)


def _square_sum(values: np.ndarray) -> np.ndarray:
    """The sum of the squares of values (..., F): (...)."""
    return (values**2).sum(axis=-1)


def _transformed(t: np.ndarray, skewness: np.ndarray) -> np.ndarray:
    """Hall's transformation (...) of Student's t."""
    squared = skewness * t**2 / 3
    cubed = skewness**2 * t**3 / 27
    return t + squared + cubed + skewness / 6


def _inverted(t: float, skewness: np.ndarray) -> np.ndarray:
    """The Student's t (...) that Hall's transformation takes to `t`."""
    skewed = np.abs(skewness) > 1e-9
    of_skewed = np.where(skewed, skewness, 1.0)
    cube = 1 + of_skewed * (t - of_skewed / 6)
    inverted = (np.cbrt(cube) - 1) * 3 / of_skewed
    return np.where(skewed, inverted, t)


def mean_estimate(
    value: np.ndarray,
    influence: np.ndarray,
    share: np.ndarray,
    differs: np.ndarray | None = None,
) -> Estimate:
    """The estimate (...) of a mean over clusters, whose `value` (...) is known. The one rule for
    means and amounts.

    `influence` (..., F): what each cluster adds to it more than foretold. `share` (F,): of each in
    it, 0 where it has no part. `differs` (..., F): of that, what two systems differ in, if the mean
    is a difference, which is then tested; the rest tells nothing of how much it varies. Fewer than
    three clusters have no interval.
    """
    there = share > 0
    clusters = int(there.sum())
    low = high = p = np.full(value.shape, np.nan)
    varying = influence[..., there]
    varies = share[there] if differs is None else differs[..., there]
    degrees = degrees_of(varies)
    if clusters > 2:
        low, high = interval(value, varying, degrees)
    if differs is not None:
        p = _tested(value, varying, varies, degrees)
        low, high = agreeing(value, low, high, p)
    return Estimate(value, low, high, p, clusters)


def _tested(
    value: np.ndarray, influence: np.ndarray, differs: np.ndarray, degrees: np.ndarray
) -> np.ndarray:
    """p (...) as of `influence_p`, at least that if all clusters that differ favour one of the two."""
    number = np.count_nonzero(differs, axis=-1)
    return np.maximum(influence_p(value, influence, degrees), np.minimum(2.0 ** (1 - number), 1))


def agreeing(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of a difference, extended to 0 where a test does not separate it from 0, else
    short of 0."""
    equal = p > ALPHA
    low = np.where(equal, np.minimum(low, 0), low)
    high = np.where(equal, np.maximum(high, 0), high)
    separated = p <= ALPHA
    short = np.abs(value) * _ROUNDING
    above = separated & (value > 0)
    below = separated & (value < 0)
    low = np.where(above, np.maximum(low, short), low)
    high = np.where(below, np.minimum(high, -short), high)
    return low, high


def paired_p(differences: np.ndarray) -> np.ndarray:
    """Two-sided p (...) that `differences` (..., f) over f clusters sum to 0, as of `mean_estimate`
    with as much of each cluster, since where the sum is 0 no cluster is expected to add to it."""
    clusters = differences.shape[-1]
    share = np.full(clusters, 1 / clusters)
    differs = differing(differences, share)
    influence = influence_of(differences, share, clusters)
    return _tested(differences.sum(axis=-1), influence, differs, degrees_of(differs))


# ---------------------------------------------------------------------------- hits of single groups


def wilson(
    hits: np.ndarray, n: np.ndarray, worth: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Shares with bounds (3, columns) of the things that are hit, from `hits` (columns, f) of `n`
    (f,) in f clusters; and the residuals (columns, f), hits minus expected hits.

    `worth`: of things that are weighted, the number of things of equal weight that tell as much; by
    default they are not, and it is their number.

    The bounds are Wilson's for the effective sample size: the number of independent things whose
    share would vary as much (Franco et al. 2019, Journal of Survey Statistics and Methodology 7).
    It is at most what the things are worth and, if the clusters do not differ, the clusters'
    number. Where it rests on how much the f clusters vary, the quantile is Student's with f - 1
    degrees of freedom (Korn and Graubard 1998, Survey Methodology 24), else the normal's.
    """
    total = float(n.sum())  # whose square may not fit an integer
    most = total if worth is None else worth
    clusters = len(n)
    others = max(clusters - 1, 1)
    share = hits.sum(axis=1) / total
    spread = share * (1 - share)
    residuals = hits - share[:, None] * n
    squares = _square_sum(residuals)
    variance = squares / total**2
    variance = variance * clusters / others
    varies = variance > 1e-15  # smaller values are rounding errors
    effective = _quotient(spread, variance, varies, clusters)
    size = np.minimum(effective, most)
    z = np.where(effective < most, scipy.special.stdtrit(others, 0.975), scipy.special.ndtri(0.975))
    scale = 1 + z**2 / size
    shift = z**2 / (2 * size)
    middle = (share + shift) / scale
    half = z / (2 * size)
    error = np.sqrt(spread / size + half**2)
    away = z * error / scale
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
    squares = _square_sum(residuals)
    other_squares = _square_sum(other_residuals)
    spread = np.sqrt(squares * other_squares)
    product = (residuals * other_residuals).sum(axis=1)
    correlation = _quotient(product, spread, spread > 1e-12)

    def away(own: np.ndarray, other: np.ndarray) -> np.ndarray:
        common = 2 * correlation * own * other
        squared = own**2 - common + other**2
        return np.sqrt(np.maximum(squared, 0))

    below = away(share - low, other_high - other_share)
    above = away(high - share, other_share - other_low)
    difference = share - other_share
    lowest = np.maximum(difference - below, -1)
    highest = np.minimum(difference + above, 1)
    return np.stack([difference, lowest, highest])


# ------------------------------------------------------------------------------------ several tests


def corrected(estimates: Sequence[Estimate], times: int = 1) -> list[Estimate]:
    """The same with p corrected (`holm`): all tests along the last axis of all `estimates` are one
    family, of which there are `times` (Bonferroni)."""
    every = np.concatenate([estimate.p for estimate in estimates], axis=-1)
    p = np.minimum(1, times * holm(every))
    sizes = [np.shape(estimate.p)[-1] for estimate in estimates]
    parts = np.split(p, np.cumsum(sizes)[:-1], axis=-1)
    return [estimate._replace(p=part) for estimate, part in zip(estimates, parts)]


def family(estimates: Sequence[Estimate]) -> list[Estimate]:
    """The same with p corrected (`holm`): at each measure, the tests of all `estimates` are one
    family."""
    if not estimates:
        return []
    every = np.stack([estimate.p for estimate in estimates], axis=-1)
    corrected_p = np.moveaxis(holm(every), -1, 0)
    return [estimate._replace(p=p) for estimate, p in zip(estimates, corrected_p)]


def rejected(p: np.ndarray) -> np.ndarray:
    """Which of several tests, one family, are significant: bool (tests,)."""
    return np.asarray(holm(p) <= ALPHA)


def holm(p: np.ndarray) -> np.ndarray:
    """p-values of several tests, corrected over the last axis to keep the family-wise error rate
    (Holm 1979).

    NaN are no tests, and stay.
    """
    if p.ndim > 1:
        return np.apply_along_axis(holm, -1, p)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    times = np.arange(len(order), 0, -1)
    rising = np.maximum.accumulate(p[order] * times)
    corrected = p.astype(float)
    corrected[order] = np.minimum(rising, 1)
    return corrected


def ranks_of(shares: np.ndarray) -> list[tuple[int, int]]:
    """The first and the last possible rank of each of n models, from each cluster's contribution to
    its score (n, F): two models differ if `paired_p`, corrected for the number of pairs (Holm), is
    at most ALPHA.

    >>> ranks_of(np.array([[3.0] * 20, [5.0] * 20, [3.0] * 19 + [4.0]]))
    [(2, 3), (1, 1), (2, 3)]
    """
    number, clusters = shares.shape
    order = np.argsort(-shares.sum(axis=1), kind="stable")
    ahead, behind = order[np.array(np.triu_indices(number, 1))]
    p = [
        paired_p(np.round(shares[ahead[some]] - shares[behind[some]], _DECIMALS))
        for some in np.array_split(
            np.arange(len(ahead)), 1 + len(ahead) * clusters // _DIFFERENCES_AT_ONCE
        )
    ]
    separate = rejected(np.concatenate(p))
    best = 1 + np.bincount(behind[separate], minlength=number)
    worst = number - np.bincount(ahead[separate], minlength=number)
    return list(zip(best.tolist(), worst.tolist()))
