"""Sets of intervals: merging them, their gaps, what they cover."""

import bisect
import heapq

from spans.interval import Interval


def merge(intervals, slack=0):
    """Join intervals that overlap or lie close to each other.

    Parameters
    ----------
    intervals : iterable of Interval
        In any order.
    slack : float
        Gaps up to this width are closed, too.

    Returns
    -------
    list of Interval
        In rising order, none touching the next.
    """
    merged = []
    for interval in sorted(intervals):
        if merged and interval.low <= merged[-1].high + slack:
            last = merged.pop()
            interval = Interval(last.low, max(last.high, interval.high))
        merged.append(interval)
    return merged


def gaps(intervals, within):
    """List the parts of an interval that no other interval covers."""
    free = []
    position = within.low
    for interval in merge(intervals):
        if interval.low >= within.high:
            break
        if interval.low > position:
            free.append(Interval(position, interval.low))
        position = max(position, interval.high)
    if position < within.high:
        free.append(Interval(position, within.high))
    return free


def coverage(intervals, within):
    """Return the share of an interval that the others cover, from 0 to 1."""
    width = within.high - within.low
    if width == 0:
        raise ValueError("cannot tell the coverage of a single point")
    uncovered = sum(gap.high - gap.low for gap in gaps(intervals, within))
    return 1 - uncovered / float(width)


def depth(intervals):
    """Return the greatest number of intervals that share a point.

    This is the number of rooms that meetings at these times need.
    """
    busy = []
    deepest = 0
    for low, high in sorted(intervals):
        while busy and busy[0] < low:
            heapq.heappop(busy)
        heapq.heappush(busy, high)
        deepest = max(deepest, len(busy))
    return deepest


class IntervalIndex(object):
    """Looks up which of many disjoint intervals a point is in."""

    def __init__(self, intervals):
        """Sort the intervals once; they must not overlap."""
        self._intervals = sorted(intervals)
        for left, right in zip(self._intervals, self._intervals[1:]):
            if right.low <= left.high:
                raise ValueError("%r and %r overlap" % (left, right))
        self._lows = [interval.low for interval in self._intervals]

    def find(self, point):
        """Return the interval around a point, or None."""
        index = bisect.bisect_right(self._lows, point) - 1
        if index < 0:
            return None
        candidate = self._intervals[index]
        return candidate if point <= candidate.high else None

    def between(self, low, high):
        """Return the intervals that start at `low` or later and end by `high`."""
        first = bisect.bisect_left(self._lows, low)
        last = bisect.bisect_right(self._lows, high)
        return [interval for interval in self._intervals[first:last] if interval.high <= high]
