"""On a GPU the host waits once for all batches, and for no layer or head: on one that is pretended, with equal numbers."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from support.models import device_jobs
from support.models.pretended_gpu import GPU, PretendedGpu

from probing.instruments.attention.ranking import Plan
from probing.models.masked import _compared_logits

pytestmark = pytest.mark.usefixtures("one_thread")

BATCHES = 3  # of the functions of device_jobs; to silence heads, each function has its own
MASKS = {  # that transformers makes for a batch; for most it asks whether there is padding, as in a plain forward pass
    "bert": 1,
    "deberta-v2": 0,
    "t5": 1,
    "gpt2": 1,
    "gpt_oss": 1,
}


def plain(numbers):
    return [
        one.as_subclass(torch.Tensor).numpy() if isinstance(one, torch.Tensor) else one
        for one in numbers
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [pytest.param(one, marks=pytest.mark.long if one in ("t5", "gpt2") else []) for one in MASKS],
)
def test_nothing_waits_for_a_layer_or_a_head(family):
    prepared = device_jobs.prepare(family)
    expected = {name: job() for name, job in device_jobs.jobs(prepared)}
    found, waits = {}, {}
    with PretendedGpu() as gpu:
        prepared.put(gpu.take, GPU)
        for name, job in device_jobs.jobs(prepared):
            gpu.waits.clear()
            found[name] = job()
            waits[name] = Counter((wait.module, wait.operation) for wait in gpu.waits)
    assert len(found) > 2
    for name in found:
        batches = len(device_jobs.CODES) if name in ("means of heads", "silencing") else BATCHES
        asked = {("transformers.masking_utils", "_local_scalar_dense"): MASKS[family] * batches}
        ends = {("probing.runs.batches", "synchronize"): 1} if name != "means of heads" else {}
        assert waits[name] == Counter(asked) + Counter(ends), name
        np.testing.assert_equal(plain(found[name]), plain(expected[name]), name)


@pytest.mark.slow
def test_one_wait_in_each_layer_is_noticed(monkeypatch):
    prepared, pooled = device_jobs.prepare("gpt2"), Plan.pooled

    def watched(self, rows, layer):
        def waiting(*asked):
            assert rows(*asked).max().item() <= 1
            return rows(*asked)

        return pooled(self, waiting, layer)

    monkeypatch.setattr(Plan, "pooled", watched)
    with PretendedGpu() as gpu:
        prepared.put(gpu.take, GPU)
        next(job for _, job in device_jobs.jobs(prepared))()
    assert (
        Counter(wait.function for wait in gpu.waits)["waiting"] == BATCHES * prepared.encoder.layers
    )


GOES_ON = {
    "a product": lambda x: x @ x.T,
    "a sum by index": lambda x: x.scatter_add(
        0, torch.zeros(2, 2, dtype=torch.long, device=GPU), x
    ),
    "the shape": lambda x: x.expand_as(torch.empty(3, 2, 2)).shape[0] * 2.0,
    "rows by an index on the GPU": lambda x: x[torch.arange(1, device=GPU)],
    "one value where a mask is": lambda x: x.clone().masked_fill_(x > 1, 0),
    "a choice": lambda x: torch.where(x > 1, x, 0.0),
    "a copy to the GPU from pinned memory": lambda x: (
        torch.ones(2).pin_memory().to(GPU, non_blocking=True) + x
    ),
    "a copy to pinned memory": lambda x: torch.empty(2, 2, pin_memory=True).copy_(
        x, non_blocking=True
    ),
    "repetition, so many times": lambda x: x.repeat_interleave(2, dim=0),
}
WAITS = {
    "a value": lambda x: x.sum().item(),
    "a condition": lambda x: bool((x > 1).any()),
    "a number": lambda x: float(x.max()),
    "a list": lambda x: x.tolist(),
    "a copy to the CPU": lambda x: x.cpu(),
    "another copy to the CPU": lambda x: x.to("cpu"),
    "where a mask is": lambda x: x[x > 1],
    "values where a mask is": lambda x: x.clone().__setitem__(x > 1, x[0, 0].repeat(2)),
    "places": lambda x: x.nonzero(),
    "unique values": lambda x: x.unique(),
    "repetition, as values say": lambda x: x.repeat_interleave(
        torch.ones(2, dtype=torch.long, device=GPU), dim=0
    ),
    "counts": lambda x: x.flatten().long().bincount(),
    "equality": lambda x: torch.equal(x, x),
    "numbers of the host": lambda x: torch.tensor([1.0, 2.0], device=GPU) + x,
    "a copy to the GPU": lambda x: torch.ones(2).to(GPU) + x,
    "a copy to the GPU from memory that is not pinned": lambda x: (
        torch.ones(2).to(GPU, non_blocking=True) + x
    ),
    "a copy to memory that is not pinned": lambda x: torch.empty(2, 2).copy_(x, non_blocking=True),
    "rows by an index of the host": lambda x: x[torch.arange(1)],
    "rows by a list": lambda x: x[[0, 1]],
}


@pytest.mark.parametrize(("work", "waits"), [(work, 0) for work in GOES_ON.values()] + [(w, 1) for w in WAITS.values()],
                         ids=[*GOES_ON, *WAITS])  # fmt: skip
def test_what_is_a_wait(work, waits):
    with PretendedGpu() as gpu:
        x = torch.arange(4.0, device=GPU).view(2, 2)
        assert x.device == GPU
        work(x)
    assert bool(gpu.waits) == bool(waits)


@pytest.mark.parametrize("work", [lambda x: x + torch.ones(2), lambda x: torch.cat([x, torch.ones(2, 2)]),
                                  lambda x: x.numpy()])  # fmt: skip
def test_what_cannot_be_mixed(work):
    with PretendedGpu(), pytest.raises((RuntimeError, TypeError), match="same device|cuda:0"):
        work(torch.arange(4.0, device=GPU).view(2, 2))


def test_logits_are_compared_on_a_gpu_as_on_the_cpu():
    """Also where many are equal."""
    logits = torch.arange(120.0).remainder(7).view(3, 40)
    logits[1] = 5.0
    truth = torch.tensor([39, 38, 3])
    expected = _compared_logits(logits, truth, 1e-4)
    with PretendedGpu() as gpu:
        on_gpu = [one.to(GPU) for one in (logits, truth)]
        gpu.waits.clear()
        found = _compared_logits(*on_gpu, 1e-4)
    assert gpu.waits == []
    assert plain([found])[0].tolist() == expected.tolist()
    assert expected[:, :2].tolist() == [[6, 0], [0, 0], [3, 1]]


def benchmark(name, *arguments, monkeypatch) -> int:
    path = Path(__file__).resolve().parents[1] / "benchmarks" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [path.name, *arguments])
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main()


@pytest.mark.slow
def test_all_that_runs_on_a_gpu_in_one_call_runs_in_miniature(capsys, monkeypatch):
    assert benchmark("gpu", "--device", "cpu", "--small", monkeypatch=monkeypatch) == 0
    said = {
        step["step"]: step for step in map(json.loads, capsys.readouterr().out.splitlines()[1:-1])
    }
    assert len(said) == 7 and said["memory"]["shrunk"]
    assert said["equality"]["outside"] == said["memory"]["outside"] == 0 < said["equality"]["cells"]
