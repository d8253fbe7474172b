"""Processes that `accelerate launch` or `torchrun` started for one run."""

from __future__ import annotations

import os
from typing import Any

import torch

from codesyntax_dataset.errors import ModelError
from probing.runs.processes import Processes


class TorchProcesses(Processes):
    """All of them, which talk to each other by `torch.distributed`.

    Raises ModelError for a process of a machine with fewer GPUs than processes, unless it has none.
    """

    def __init__(self) -> None:
        number = int(os.environ.get("LOCAL_RANK", "0"))
        # with a driver that torch cannot use, GPUs are counted, and there is none to compute on
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if 0 < gpus <= number:
            raise ModelError(
                f"process {number} of this machine, counted from 0, has no GPU of its own, since there are {gpus}: "
                "start one process for each GPU, or set CUDA_VISIBLE_DEVICES to nothing, to compute on the CPU"
            )
        self.device = f"cuda:{number}" if gpus else "cpu"
        if gpus:
            torch.cuda.set_device(self.device)  # that of collectives
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if gpus else "gloo")
        self._place = torch.device(self.device)
        self.count = torch.distributed.get_world_size()
        self.rank = torch.distributed.get_rank()

    def wait(self) -> None:
        torch.distributed.barrier()

    def share(self, value: Any) -> Any:
        shared = [value]
        torch.distributed.broadcast_object_list(shared, src=0, device=self._place)
        return shared[0]

    def send(self, value: Any) -> None:
        torch.distributed.send_object_list([value], dst=0, device=self._place)

    def receive(self, source: int) -> Any:
        received = [None]
        torch.distributed.recv_object_list(received, src=source, device=self._place)
        return received[0]
