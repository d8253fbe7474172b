"""Limits of CPU time, which other processes do not change."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails if what is done inside takes as much CPU time."""
    before = time.process_time()
    yield
    assert time.process_time() - before < seconds
