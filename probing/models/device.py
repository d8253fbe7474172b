"""The device on which models run where none is named."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_NVIDIA_DRIVERS = "libcuda.so.1", "nvcuda.dll"  # on Linux and on Windows
_AMD_DRIVER = Path("/dev/kfd")


def default_device() -> str:
    """`cuda` if torch can use a GPU, or `cpu`.

    Where no driver of a GPU is installed, torch, which takes seconds to import, is not asked.
    """
    if not (
        "torch" in sys.modules or _AMD_DRIVER.exists() or any(map(_can_be_loaded, _NVIDIA_DRIVERS))
    ):
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _can_be_loaded(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
