"""Intervals and tests in plain loops, from the papers: slow, and without a line of `probing.stats`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from scipy.stats import norm, t


def degrees(shares: Sequence[float]) -> float:
    """Satterthwaite's degrees of freedom, if what a cluster adds varies as its share."""
    return max(1.0, sum(share**2 for share in shares) ** 2 / sum(share**4 for share in shares) - 1)


def moments(influence: Sequence[float]) -> tuple[float, float]:
    """The standard error and the skewness of a sum of independent terms, from their residuals."""
    size = len(influence)
    second = sum(of**2 for of in influence)
    if second == 0 or size < 3:
        return math.sqrt(second), 0.0
    skewness = (
        sum(of**3 for of in influence) / second**1.5 * math.sqrt(size * (size - 1)) / (size - 2)
    )
    return math.sqrt(second), skewness


def hall_transformed(value: float, skewness: float) -> float:
    """Hall's (1992) transformation of Student's t."""
    return value + skewness * value**2 / 3 + skewness**2 * value**3 / 27 + skewness / 6


def influence_p(value: float, influence: Sequence[float], freedom: float) -> float:
    """Two-sided p that a mean is 0: the larger of those by t and by the transformed t of its interval."""
    error, skewness = moments(influence)
    both = value / error, hall_transformed(value / error, skewness)
    return max(float(2 * t.sf(abs(distance), freedom)) for distance in both)


def jackknifed(added: Sequence[float], parts: Sequence[float], clusters: int) -> list[float]:
    """By how much a total changes without each cluster that adds to it, if the others then stand for its part."""
    influence = []
    for number, (one, part) in enumerate(zip(added, parts)):
        others = sum(added[:number]) + sum(added[number + 1 :])
        foretold = others / (1 - part) * part if part < 1 else one
        influence.append((one - foretold) * math.sqrt((clusters - 1) / clusters))
    return influence


def contributions_p(gained: Sequence[float], parts: Sequence[float]) -> float:
    """Two-sided p that what the clusters add to a mean, each for its part, is 0 in all; clusters that add nothing
    tell nothing."""
    influence = jackknifed(gained, parts, len(gained))
    differing = [part for one, part in zip(gained, parts) if one]
    if not differing:
        return 1.0
    p = influence_p(sum(gained), influence, degrees(differing))
    return max(p, 2.0 ** (1 - len(differing)))


def mean_p(differences: Sequence[float]) -> float:
    """Two-sided p that the mean of differences is 0; one alone tells nothing."""
    size = len(differences)
    if size == 1:
        return 1.0
    return contributions_p([of / size for of in differences], [1 / size] * size)


def hall_interval(value: float, influence: Sequence[float], freedom: float) -> tuple[float, float]:
    """The bounds that the test at 5 % does not reject, found by halving steps."""
    error, skewness = moments(influence)
    bounds = []
    for level in (0.975, 0.025):
        sought = float(t.ppf(level, freedom))
        low, high = -1e3, 1e3
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if hall_transformed(middle, skewness) < sought else (low, middle)
            )
        bounds.append(value - error * low)
    return min(bounds[0], value), max(bounds[1], value)


def wilson(
    hits: Sequence[float], n: Sequence[int], worth: float | None = None
) -> tuple[float, float, float]:
    """A share with Wilson's interval for the number of independent things that the clusters are worth; with Student's
    quantile where these are fewer than the things."""
    total, clusters = sum(n), len(n)
    share = sum(hits) / total
    variance = (
        sum((hit - share * of) ** 2 for hit, of in zip(hits, n))
        / total**2
        * clusters
        / (clusters - 1)
    )
    most = total if worth is None else worth
    size = min(share * (1 - share) / variance if variance > 1e-15 else clusters, most)
    z = float(t.ppf(0.975, clusters - 1)) if size < most else float(norm.ppf(0.975))
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    away = z / (1 + z**2 / size) * math.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    return share, max(0.0, min(middle - away, share)), min(1.0, max(middle + away, share))


def holm(p: Sequence[float]) -> list[float]:
    """Each p times the number of tests that are not smaller, not below those of smaller ones."""
    corrected = [0.0] * len(p)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda place: p[place])):
        least = corrected[place] = min(1.0, max(least, p[place] * (len(p) - rank)))
    return corrected


def groups_p(hits: Any, system: str, against: str) -> list[float]:
    """Of each group of `Hits`, by the first measure, the p that two systems have as much: not corrected."""
    every = []
    for group in hits.groups.values():
        total = int(group.n.sum())
        first, second = (group.sums[name][0] for name in (system, against))
        gained = [(one - other) / total for one, other in zip(first, second)]
        things = [total / len(gained)] * len(gained) if hits.unit == "percent" else group.n
        every.append(contributions_p(gained, [n / total for n in things]))
    return every
