"""Copies between the host and the device of a model, for which the host does not wait if that is a
GPU."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def send(array: np.ndarray, device: torch.device) -> Tensor:
    """A copy of an array on a device."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return (
        tensor.pin_memory().to(device, non_blocking=True)
        if device.type == "cuda"
        else tensor.to(device)
    )


def fetch(tensor: Tensor) -> Tensor:
    """A copy on the CPU, which is complete once the device was waited for
    (`torch.cuda.synchronize`)."""
    if tensor.device.type != "cuda":
        return tensor.cpu()
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(
        tensor, non_blocking=True
    )
