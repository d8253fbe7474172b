"""How long to wait before trying again."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime
from typing import Callable, Iterator


def exponential(base: float = 0.5, factor: float = 2.0, ceiling: float = 30.0) -> Iterator[float]:
    """Yield waiting times in seconds that grow by a factor up to a ceiling."""
    delay = base
    while True:
        yield min(delay, ceiling)
        delay *= factor


def full_jitter(delays: Iterator[float], rng: random.Random | None = None) -> Iterator[float]:
    """Spread waiting times evenly between zero and their nominal value.

    Clients that failed together would otherwise all come back together.
    """
    rng = rng or random.Random()
    for delay in delays:
        yield rng.uniform(0, delay)


def retry_after(value: str | None, now: float | None = None) -> float | None:
    """Interpret a Retry-After header.

    :param value: the header's value: a number of seconds or an HTTP date
    :param now: seconds since the epoch, for tests
    :return: seconds to wait, never negative; None if there is no usable value
    """
    if not value:
        return None
    value = value.strip()
    if value.isdigit():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    current = time.time() if now is None else now
    return max(0.0, when.timestamp() - current)


def call_with_retries(function: Callable, *args, attempts: int = 4, retry_on=(OSError,), sleep=time.sleep, **kwargs):
    """Call a function again while it raises one of the given exceptions.

    :param function: what to call, with the remaining arguments
    :param attempts: number of calls in all, at least one
    :param retry_on: exception classes worth another attempt
    :param sleep: takes a number of seconds; replaced in tests
    :raises Exception: what the last attempt raised
    """
    delays = full_jitter(exponential())
    for attempt in range(1, attempts + 1):
        try:
            result = function(*args, **kwargs)
        except retry_on:
            if attempt == attempts:
                raise
            sleep(next(delays))
        else:
            return result
    raise ValueError(f"attempts is {attempts}, expected at least 1")


class CircuitBreaker:
    """Stops calling a service that keeps failing."""

    def __init__(self, threshold: int = 5, cooldown: float = 60.0, clock=time.monotonic):
        """Open the circuit after `threshold` failures in a row, for `cooldown` seconds."""
        self.threshold = threshold
        self.cooldown = cooldown
        self.clock = clock
        self.failures = 0
        self.opened_at: float | None = None

    def allows(self) -> bool:
        """Tell whether a call may be made now; lets a trial call through after the cooldown."""
        if self.opened_at is None:
            return True
        return self.clock() - self.opened_at >= self.cooldown

    def record(self, succeeded: bool) -> None:
        """Take note of how a call went."""
        if succeeded:
            self.failures = 0
            self.opened_at = None
            return
        self.failures += 1
        if self.failures >= self.threshold:
            self.opened_at = self.clock()
