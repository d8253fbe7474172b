"""No layer or head makes the host wait for a GPU, counted on the CPU; and the benchmark on a GPU runs in miniature."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch
from support.models import device_jobs
from support.models.waits import counted_waits

from probing.instruments.attention.ranking import Plan
from probing.models import capture
from probing.models.masked import _compared_logits


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(capture, "_seen_by_all", lambda rows: 0)


def waits_of(family, layers):
    """Job -> what the host waits for in it, by operation."""
    counted = {}
    for name, job in device_jobs.jobs(device_jobs.prepare(family, layers)):
        with counted_waits() as waits:
            job()
        counted[name] = waits
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("family", device_jobs.FAMILIES)
def test_nothing_waits_for_a_layer_or_a_head(family):
    """At most three times for a batch: transformers asks whether there is padding, and numbers are fetched."""
    few = waits_of(family, 2)
    assert len(few) > 3
    assert few == waits_of(family, 4)
    assert max(waits.total() for waits in few.values()) <= 3 * len(device_jobs.CODES)


@pytest.mark.slow
def test_one_wait_in_each_layer_is_noticed(monkeypatch):
    pooled = Plan.pooled

    def watched(self, rows):
        def waiting(*asked):
            assert rows(*asked).max().item() <= 1
            return rows(*asked)

        return pooled(self, waiting)

    before = waits_of("gpt2", 2)
    monkeypatch.setattr(Plan, "pooled", watched)
    name = next(iter(before))
    more = waits_of("gpt2", 2)[name] - before[name]
    assert more["_local_scalar_dense"] == 3 * 2  # batches, layers


GOES_ON = {
    "a product": lambda x: x @ x.T,
    "rows by an index": lambda x: x[torch.arange(1)],
    "one value where a mask is": lambda x: x.clone().masked_fill_(x > 1, 0),
    "a choice": lambda x: torch.where(x > 1, x, 0.0),
    "repetition, so many times": lambda x: x.repeat_interleave(2, dim=0),
}
WAITS = {
    "a value": lambda x: x.sum().item(),
    "a condition": lambda x: bool((x > 1).any()),
    "a list": lambda x: x.tolist(),
    "a copy to the CPU": lambda x: x.cpu(),
    "where a mask is": lambda x: x[x > 1],
    "values where a mask is": lambda x: x.clone().__setitem__(x > 1, x[0, 0].repeat(2)),
    "places": lambda x: x.nonzero(),
    "unique values": lambda x: x.unique(),
    "repetition, as values say": lambda x: x.repeat_interleave(torch.ones(2).long(), dim=0),
    "counts": lambda x: x.flatten().long().bincount(),
    "equality": lambda x: torch.equal(x, x),
}


@pytest.mark.parametrize("name", [*GOES_ON, *WAITS])
def test_what_is_a_wait(name):
    with counted_waits() as waits:
        (GOES_ON | WAITS)[name](torch.arange(4.0).view(2, 2))
    assert bool(waits) == (name in WAITS)


def test_comparing_logits_waits_for_nothing():
    """Also where many are equal: these count against the model."""
    logits = torch.arange(120.0).remainder(7).view(3, 40)
    logits[1] = 5.0
    with counted_waits() as waits:
        compared = _compared_logits(logits, torch.tensor([39, 38, 3]))
    assert not waits
    assert compared[:, :2].tolist() == [[6, 0], [0, 0], [3, 1]]


def benchmark(name, *arguments, monkeypatch):
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
    assert len(said) == 7
    assert said["memory"]["shrunk"]
    assert min(said[step]["cells"] for step in ("equality", "memory")) > 0
