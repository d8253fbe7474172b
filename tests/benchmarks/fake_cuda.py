"""Whether all that runs on a GPU would run on one, without a GPU: on fake tensors of the device `cuda:0`.

    python tests/benchmarks/fake_cuda.py              # all families
    python tests/benchmarks/fake_cuda.py bert gpt2

Fake tensors have shapes, types and devices, but no values: an operation that mixes devices raises, and so does one that
waits for a value. They need a CUDA build of torch, such as PyPI has for Linux (6 GB), but no driver. What copies to and
from pinned memory is replaced: that takes a driver.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.models import device_jobs

from probing.runs import batches

GPU = torch.device("cuda", 0)


@contextmanager
def without_values() -> Iterator[FakeTensorMode]:
    """Tensors are fake, and copies from the GPU are complete; arrays made of them are 0."""

    def array(tensor: FakeTensor) -> np.ndarray:
        if tensor.device.type != "cpu":
            raise TypeError(f"can't convert {tensor.device} device type tensor to numpy")
        return np.zeros(tensor.shape, str(tensor.dtype).removeprefix("torch."))

    with (
        FakeTensorMode(allow_non_fake_inputs=True) as mode,
        mock.patch.object(torch.Tensor, "pin_memory", lambda tensor: tensor),
        mock.patch.object(torch.cuda, "synchronize", lambda device: None),
        mock.patch.object(batches, "fetch", lambda tensor: tensor.to("cpu")),
        mock.patch.object(FakeTensor, "numpy", array, create=True),
    ):
        yield mode


def failures(family: str) -> Iterator[tuple[str, str]]:
    """What runs on the device with a model of a family, each with why it failed, or nothing."""
    prepared = device_jobs.prepare(family)
    with without_values() as mode:
        moved: dict[int, torch.Tensor] = {}

        def move(model: torch.nn.Module) -> None:
            for part in model.modules():
                for tensors in (part._parameters, part._buffers):
                    for name, tensor in tensors.items():
                        if tensor is not None and id(tensor) not in moved:
                            fake = mode.from_tensor(tensor.detach()).to(GPU)
                            is_weight = isinstance(tensor, torch.nn.Parameter)
                            moved[id(tensor)] = (
                                torch.nn.Parameter(fake, requires_grad=False) if is_weight else fake
                            )
                        tensors[name] = None if tensor is None else moved[id(tensor)]

        prepared.put(move, GPU)
        for name, job in device_jobs.jobs(prepared):
            try:
                job()
            except Exception as error:  # of any kind: it is what we look for
                yield name, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            else:
                yield name, ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "families",
        nargs="*",
        default=device_jobs.FAMILIES,
        help="of tests/support/models/device_jobs.py",
    )
    options = parser.parse_args()
    if not torch.backends.cuda.is_built():
        print(
            f"torch {torch.__version__} is not built with CUDA: install a build that is, as from PyPI on Linux"
        )
        return 2
    failed = jobs = 0
    for family in options.families:
        for name, why in failures(family):
            jobs, failed = jobs + 1, failed + bool(why)
            print(f"{family:12} {name:40} {why or 'ok'}", flush=True)
    print(
        f"torch {torch.__version__}: {len(options.families)} families, {jobs} jobs on fake {GPU}, {failed} failed"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
