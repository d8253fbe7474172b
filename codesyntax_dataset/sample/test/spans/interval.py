"""Closed intervals of numbers, and arithmetic on them.

Results of arithmetic enclose every result that is possible for numbers taken from the
operands.
"""

import math
from collections import namedtuple

Interval = namedtuple("Interval", "low high")


def make(low, high=None):
    """Create an interval, a single point if only one bound is given.

    Parameters
    ----------
    low, high : float
        Bounds, both included.

    Raises
    ------
    ValueError
        If the bounds are in the wrong order or not numbers.
    """
    if high is None:
        high = low
    if math.isnan(low) or math.isnan(high):
        raise ValueError("bounds of an interval must be numbers, got %r and %r" % (low, high))
    if low > high:
        raise ValueError("lower bound {} is above upper bound {}".format(low, high))
    return Interval(low, high)


def overlaps(a, b):
    """Return True if two intervals share at least a point."""
    return a.low <= b.high and b.low <= a.high


def contains(outer, inner):
    """Return True if every point of `inner` lies in `outer`."""
    return outer.low <= inner.low <= inner.high <= outer.high


def intersect(a, b):
    """Return the common part of two intervals, or None if there is none."""
    low = max(a.low, b.low)
    high = min(a.high, b.high)
    return Interval(low, high) if low <= high else None


def multiply(a, b):
    """Return the interval of all products x * y with x from `a`, y from `b`."""
    products = [x * y for x in a for y in b]
    return Interval(min(products), max(products))


def divide(a, b):
    """Return the interval of all quotients.

    Parameters
    ----------
    a, b : Interval
        Numerator and denominator.

    Raises
    ------
    ZeroDivisionError
        If the denominator contains zero, even at its border.
    """
    if b.low <= 0 <= b.high:
        raise ZeroDivisionError("denominator [%g, %g] contains zero" % b)
    return multiply(a, Interval(1.0 / b.high, 1.0 / b.low))


def power(base, exponent):
    """Raise an interval to a whole power of zero or more.

    An even power of an interval around zero starts at zero, which repeated
    multiplication would miss.
    """
    if exponent < 0 or exponent != int(exponent):
        raise ValueError("exponent must be a whole number >= 0, got %r" % exponent)
    low, high = base.low ** exponent, base.high ** exponent
    if exponent % 2 == 1 or base.low >= 0:
        return Interval(low, high)
    if base.high <= 0:
        return Interval(high, low)
    return Interval(0 if exponent else 1, max(low, high))


def bisect_root(function, bracket, tolerance=1e-9, max_steps=200):
    """Find a zero of a continuous function by halving an interval.

    Parameters
    ----------
    function : callable
        Takes and returns a number.
    bracket : Interval
        The function must have different signs at its two ends.
    tolerance : float
        Width of the interval at which to stop.

    Returns
    -------
    float
        The middle of the last interval.
    """
    low, high = bracket
    at_low, at_high = function(low), function(high)
    if at_low == 0:
        return low
    if at_high == 0:
        return high
    if (at_low > 0) == (at_high > 0):
        raise ValueError("no change of sign between %g and %g" % (low, high))
    steps = 0
    while high - low > tolerance and steps < max_steps:
        middle = low + (high - low) / 2.0
        value = function(middle)
        if value == 0:
            return middle
        if (value > 0) == (at_low > 0):
            low = middle
        else:
            high = middle
        steps += 1
    return (low + high) / 2.0
