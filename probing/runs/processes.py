"""The processes of one run under `accelerate launch` or `torchrun`."""

from __future__ import annotations

import os
from typing import Any

import torch


class Processes:
    """The processes that share a run, or a single one."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0
        self.device: str | None = None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
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
