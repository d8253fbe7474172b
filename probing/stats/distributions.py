"""The normal distribution and Student's t, for intervals and tests: of numbers, or of arrays of
them.

`scipy.special` has them, too, but takes longer to import than most tables take to compute.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from statistics import NormalDist

import numpy as np

_elementwise = partial(np.vectorize, otypes=[float])

_MOST_STEPS = 1000
"""Of an iteration: ten times what a hundred thousand degrees of freedom take."""


def normal_quantile(share: float) -> float:
    """What a standard normal is below with this probability."""
    return NormalDist().inv_cdf(share)


@_elementwise
def normal_tail(z: float) -> float:
    """The probability of a standard normal above `z`."""
    return math.erfc(z / math.sqrt(2)) / 2


@_elementwise
def student_tail(t: float, degrees: float) -> float:
    """The probability of Student's t, with so many `degrees` of freedom, above `t`, which is at
    least 0."""
    return _tail(t, degrees)


@_elementwise
@lru_cache(maxsize=1024)  # of few numbers of functions
def student_quantile(share: float, degrees: float) -> float:
    """What Student's t, with so many `degrees` of freedom, is below with a probability `share`,
    which is at least 1 / 2.

    Newton's method: above 0 the distribution is concave, so that from the quantile of the normal,
    which is smaller, no step leads past the one that is sought.
    """
    quantile = normal_quantile(share)
    log_height = -math.log(degrees) / 2 - _log_beta(degrees / 2)
    for _ in range(_MOST_STEPS):
        log_density = log_height - (degrees + 1) / 2 * math.log1p(quantile**2 / degrees)
        step = (_tail(quantile, degrees) - (1 - share)) / math.exp(log_density)
        quantile += step
        if step <= 1e-8 * quantile:  # the next one is about the square of that
            break
    return quantile


def _tail(t: float, degrees: float) -> float:
    """Half of the regularized incomplete beta function of d / 2 and 1 / 2 at d / (d + t²)
    (Abramowitz and Stegun 1964, 26.7.1)."""
    if t == 0:
        return 0.5
    half = degrees / 2
    inside = degrees / (degrees + t**2)
    outside = t**2 / (degrees + t**2)
    log_front = half * math.log(inside) + math.log(outside) / 2 - _log_beta(half)
    # each of the two fractions converges fast on its own side only
    if inside > (half + 1) / (half + 2.5):
        return 0.5 - math.exp(log_front) * _fraction(0.5, half, outside)
    return math.exp(log_front) / degrees * _fraction(half, 0.5, inside)


def _log_beta(half: float) -> float:
    """The logarithm of the beta function of `half` and 1 / 2."""
    return math.lgamma(half) + math.lgamma(0.5) - math.lgamma(half + 0.5)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method (Press et al. 2007,
    Numerical Recipes, section 6.4)."""
    upper = 1.0
    lower = value = 1 / (1 - (a + b) * x / (a + 1))
    for step in range(1, _MOST_STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            lower = 1 / (1 + term * lower)
            upper = 1 + term / upper
            value *= lower * upper
        if abs(lower * upper - 1) < 1e-15:
            break
    return value
