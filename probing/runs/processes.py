"""The processes of one run under `accelerate launch` or `torchrun`, and the threads of each."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import torch


class Processes:
    """The processes that share a run, or a single one, which is `alone` even if others run beside
    it."""

    def __init__(self, alone: bool = False) -> None:
        self.count, self.rank = 1, 0
        self.device: str | None = None
        if not alone and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            cuda = torch.cuda.is_available()
            self.device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if cuda else "cpu"
            if cuda:
                torch.cuda.set_device(self.device)  # that of collectives
            if not torch.distributed.is_initialized():
                torch.distributed.init_process_group("nccl" if cuda else "gloo")
            self.count, self.rank = torch.distributed.get_world_size(), torch.distributed.get_rank()

    @property
    def main(self) -> bool:
        return self.rank == 0

    def wait(self) -> None:
        if self.count > 1:
            torch.distributed.barrier()

    def share(self, value: Any) -> Any:
        """The value of the main process, on all processes."""
        if self.count == 1:
            return value
        shared = [value]
        torch.distributed.broadcast_object_list(shared, src=0, device=self._place)
        return shared[0]

    def send(self, value: Any) -> None:
        """Send a value to the main process, which must `receive` it."""
        torch.distributed.send_object_list([value], dst=0, device=self._place)

    def receive(self, source: int) -> Any:
        """The next value that the process of this rank sends."""
        received: list[Any] = [None]
        torch.distributed.recv_object_list(received, src=source, device=self._place)
        return received[0]

    @property
    def _place(self) -> torch.device:
        return torch.device(self.device or "cpu")


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
    states, weights = torch.ones(256, 384), torch.full((384, 384), 1 / 384)
    with torch.inference_mode():
        states = torch.nn.functional.gelu(states @ weights)
        start = time.perf_counter()
        for _ in range(20):
            states = torch.nn.functional.gelu(states @ weights)
    return time.perf_counter() - start
