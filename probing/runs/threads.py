"""The number of threads that a run computes with."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def useful_threads() -> Iterator[None]:
    """Compute with the number of threads that is fastest now: torch's default, or a half, a
    quarter, ... of it.

    Threads wait for the slowest of them, many times per layer. If other programs keep the cores
    busy, or a container may use fewer cores than it sees, many threads take several times as long
    as one. OMP_NUM_THREADS, if set, is respected.
    """
    before = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        fastest = _seconds_of_layers(before)
        while (threads := torch.get_num_threads()) > 1:
            seconds = _seconds_of_layers(threads // 2)
            if seconds >= fastest:
                torch.set_num_threads(threads)
                break
            fastest = seconds
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _seconds_of_layers(threads: int) -> float:
    """The time for some layers of a small model with this many threads, after a first one that
    starts them."""
    torch.set_num_threads(threads)
    states = torch.ones(256, 384)
    weights = torch.full((384, 384), 1 / 384)
    with torch.inference_mode():
        states = torch.nn.functional.gelu(states @ weights)
        start = time.perf_counter()
        for _ in range(20):
            states = torch.nn.functional.gelu(states @ weights)
    return time.perf_counter() - start
