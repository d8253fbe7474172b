"""What a host would wait for if tensors were on a GPU, counted on the CPU.

It waits where it reads a value, and where the size of a result depends on values. Whether a copy is from memory that is not
pinned, and whether devices are mixed, only a GPU shows: `tests/benchmarks/gpu.py`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_VALUES = {
    *"_local_scalar_dense _unique2 bincount equal masked_select nonzero unique_consecutive unique_dim".split()
}
"""Operations that give values of the host, or results whose size depends on values."""


class _Operations(TorchDispatchMode):
    def __init__(self, counts: Counter[str]):
        super().__init__()
        self.counts = counts

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.overloadpacket.__name__, kwargs or {}
        by_values = func is torch.ops.aten.repeat_interleave.Tensor and "output_size" not in kwargs
        if name in _VALUES or by_values or (name.startswith("index") and _by_mask(args)):
            self.counts[name] += 1
        else:  # in inference, operations come here before those that they consist of
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        return func(*args, **kwargs)


@contextlib.contextmanager
def counted_waits() -> Iterator[Counter[str]]:
    """What the host would wait for in this context so far, by operation."""
    counts: Counter[str] = Counter()

    def counted(name: str) -> Any:
        real = getattr(torch.Tensor, name)

        def call(*arguments: Any, **named: Any) -> Any:
            counts[name] += 1
            return real(*arguments, **named)

        return mock.patch.object(torch.Tensor, name, call)

    with counted("cpu"), counted("tolist"), _Operations(counts):
        yield counts


def _by_mask(args: Any) -> bool:
    """Whether rows are chosen by a mask; to put one value where it is, is no wait."""
    indices = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else []
    masks = [index for index in indices if index is not None and index.dtype == torch.bool]
    return bool(masks) and not (len(args) > 2 and args[2].numel() == 1)
