"""All that is to be known of a GPU, in one call of at most eight minutes: is it right, and is it fast?

    python tests/benchmarks/gpu.py                          # on the GPU, functions of the embedded sample, repeated
    python tests/benchmarks/gpu.py --data codesyntax        # with the functions of a dataset folder
    python tests/benchmarks/gpu.py --device cpu --small     # a miniature of it, in seconds

It needs this repository, installed, a CUDA build of torch, and the packages that `probing` imports, but no network, model
or dataset: weights are random or those in the repository. Where a machine has neither a network nor our packages, bring
all of them as wheels, and put them on PYTHONPATH, in a folder named `site-packages`, or dill takes them for scripts:

    pip wheel -w wheels --no-deps .
    pip download -d wheels --no-deps -c constraints.txt annotated-types datasets dill fsspec multiprocess pandas pyarrow pydantic \
        pydantic-core python-dateutil six tree-sitter tree-sitter-go tree-sitter-java tree-sitter-javascript \
        tree-sitter-php tree-sitter-python tree-sitter-ruby tree-sitter-rust tree-sitter-typescript xxhash
    pip install --no-index --no-deps --target site-packages wheels/*.whl && export PYTHONPATH=site-packages

Each step prints its line of JSON at once, has a time of its own, and may fail without the others:

- *equality*: ranks of an encoder on the device and on the CPU; at most one in 10,000 may differ, by rounding.
- *waits*: how often the host waits for the device in a run, and in the plain forward passes of the same batches.
- *price*: time of probing over the plain forward pass, by the device's own clock; at most 1.10 is asked.
- *bfloat16*: the same in bfloat16.
- *whole set*: seconds for as many functions as the paper's 18,701 through a model of base size; under 60 is asked.
- *memory*: batches that do not fit: smaller ones are tried, and as few ranks differ.
- *7 billion*: a decoder of that shape in bfloat16, made on the device: price, and functions per second.

On an H200 (torch 2.11, the embedded sample's 196 functions repeated): no rank of 271,440 differs from the CPU's; 11 waits
beside 12; price 1.20 in float32, 3.2 in bfloat16, where the host is what is waited for; 25.5 s for 18,701 functions; batches
of 681,560 sub-tokens shrunk to 23,450, no rank differs; 7 billion: price 1.58, 115 functions a second, by eager maps, since
random weights in bfloat16 differ by more between two passes than the self-check allows.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import datasets
import engine
import numpy as np
import torch
from tqdm import tqdm
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, LlamaConfig, LlamaModel

from codesyntax_dataset import corpus, languages
from codesyntax_dataset.schema import Skips
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.runner import Runner
from probing.models.loaded import DTYPES, quiet
from probing.models.location import TINY, embedded_model
from probing.runs.data import Functions, read_functions
from probing.runs.session import Session

ROUNDS = 5
MOST_DIFFERING = 1e-4  # of ranks, by rounding in float32
WHOLE = 18_701  # functions in the paper's Python set
SHAPES = {  # layers, heads, hidden size, inner size
    "base": (12, 12, 768, 3072),
    "7 billion": (32, 32, 4096, 11008),
}
SMALL = {"base": (2, 2, 32, 64), "7 billion": (2, 2, 32, 64)}
SECONDS = {
    "equality": 60,
    "waits": 20,
    "price": 60,
    "bfloat16": 60,
    "whole set": 120,
    "memory": 40,
    "7 billion": 110,
}


class Bench:
    """The functions, the device and the sizes of a run."""

    def __init__(self, data: str | None, device: str, small: bool):
        self.device, self.small = torch.device(device), small
        self.shapes = SMALL if small else SHAPES
        self.tokenizer = AutoTokenizer.from_pretrained(embedded_model(TINY))
        self.rows = (
            sample() if data is None else read_functions(data, "python", "test").table.to_pylist()
        )

    def functions(self, count: int) -> Functions:
        """So many functions, spread over those there are, or repeated."""
        places = (
            [place * len(self.rows) // count for place in range(count)]
            if count <= len(self.rows)
            else None
        )
        chosen = [self.rows[place] for place in places or np.arange(count) % len(self.rows)]
        rows = [{**row, "id": number} for number, row in enumerate(chosen)]
        return read_functions(datasets.Dataset.from_list(rows), "python", "test")

    def job(self, shape: str, count: int, dtype: str = "float32") -> Probing:
        """Random weights of a shape, made on the device, and so many functions."""
        layers, heads, hidden, inner = self.shapes[shape]
        sizes: dict[str, Any] = {
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "hidden_size": hidden,
        }
        sizes |= {"intermediate_size": inner, "vocab_size": len(self.tokenizer)}
        torch.manual_seed(0)
        before = torch.get_default_dtype()
        torch.set_default_dtype(DTYPES[dtype])
        try:
            with self.device:
                model = (
                    LlamaModel(LlamaConfig(**sizes))
                    if shape == "7 billion"
                    else BertModel(BertConfig(**sizes))
                )
        finally:
            torch.set_default_dtype(before)
        return Probing(Session((model.eval(), self.tokenizer), dtype=dtype), self.functions(count))

    def ranks(self, job: Probing, budget: int | None = None) -> np.ndarray:
        return Runner(job.encoder, job.settings.direction, budget).run(
            job.functions, tqdm(disable=True)
        )

    def equality(self) -> dict[str, Any]:
        with quiet():
            model = AutoModel.from_pretrained(embedded_model(TINY), attn_implementation="eager")
        functions = self.functions(4 if self.small else 100)
        cpu = Probing(Session((model, self.tokenizer), device="cpu"), functions)
        found = self.ranks(Probing(Session((model, self.tokenizer), device=self.device), functions))
        return {"functions": len(cpu.functions), **compared(found, self.ranks(cpu))}

    def waits(self) -> dict[str, Any]:
        job = self.job("base", 4 if self.small else 200)
        if self.device.type != "cuda":
            return {"not told": "by this device"}
        said = {}
        for name, (implementation, work) in engine.variants(job).items():
            if name == "eager":
                continue
            job.encoder.model.set_attn_implementation(implementation)
            work()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
                try:
                    work()
                finally:
                    torch.cuda.set_sync_debug_mode("default")
            said[name] = sum("synchroniz" in str(warning.message) for warning in caught)
        return {"batches": len(list(batches(job))), "layers": job.encoder.layers, **said}

    def price(
        self, shape: str = "base", count: int = 1000, dtype: str = "float32"
    ) -> dict[str, Any]:
        job = self.job(shape, 4 if self.small else count, dtype)
        work = {name: of for name, of in engine.variants(job).items() if name != "eager"}
        times: dict[str, list[float]] = {name: [] for name in work}
        for number in range(ROUNDS + 1):
            for name, (implementation, function) in work.items():
                seconds = engine.timed(job.encoder, implementation, function)
                if number:  # the first round warms up
                    times[name].append(seconds)
        ratio = statistics.median(p / f for p, f in zip(times["probe"], times["forward"]))
        probe = statistics.median(times["probe"])
        return {
            "functions": len(job.functions),
            "dtype": dtype,
            "probe / forward": round(ratio, 3),
            "functions per second": round(len(job.functions) / probe, 1),
        }

    def bfloat16(self) -> dict[str, Any]:
        count = 4 if self.small else 100
        single, half = (self.job("base", count, dtype) for dtype in ("float32", "bfloat16"))
        half.encoder.model.load_state_dict(single.encoder.model.state_dict())  # rounded
        same = (self.ranks(single) == self.ranks(half)).mean()
        return {**self.price(dtype="bfloat16"), "ranks as in float32": f"{same:.1%}"}

    def whole_set(self) -> dict[str, Any]:
        started = time.perf_counter()
        job = self.job("base", 20 if self.small else WHOLE)
        loaded = time.perf_counter()
        ranks = self.ranks(job)
        ended = time.perf_counter()
        return {
            "functions": len(job.functions),
            "sub-tokens": sum(len(function.ids) for function in job.functions),
            "edges": ranks.shape[1],
            "seconds": round(ended - loaded, 1),
            "seconds before, to load": round(loaded - started, 1),
        }

    def memory(self) -> dict[str, Any]:
        job = self.job("base", 8 if self.small else 400)
        expected = self.ranks(job)
        subtokens = sum(len(function.ids) for function in job.functions)
        # budgets in which nothing is padded away: one batch of all
        runner = Runner(job.encoder, job.settings.direction, subtokens * 10)
        with (
            little_memory(job, self.device),
            mock.patch("probing.runs.batches.MOST_PADDING", 100.0),
        ):
            found = runner.run(job.functions, tqdm(disable=True))
        shrunk = f"{subtokens * 10} to {runner.budget} sub-tokens"
        return {
            "shrunk": runner.budget < subtokens * 10,
            "budget": shrunk,
            **compared(found, expected),
        }

    def seven_billion(self) -> dict[str, Any]:
        return self.price("7 billion", 200, "bfloat16")


def sample() -> list[dict[str, Any]]:
    """The rows of the embedded sample in Python."""
    variant = languages.variant_of("python")
    return [
        corpus.to_row(*corpus.label(one, variant)[:2])
        for one in corpus.read("sample", "python", Skips())
    ]


def batches(job: Probing) -> Iterator[Any]:
    runner, start = Runner(job.encoder, job.settings.direction, None), 0
    while start < len(job.functions):
        batch = runner.batch(job.functions, start)
        start += len(batch)
        yield batch


def compared(found: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """How many ranks differ; raises AssertionError if these are more than rounding explains."""
    differing = int(np.count_nonzero(found != expected))
    assert differing <= MOST_DIFFERING * found.size, f"{differing} of {found.size} ranks differ"
    return {"cells": found.size, "differing": differing}


@contextmanager
def little_memory(job: Probing, device: torch.device) -> Iterator[None]:
    """Room for a few batches of usual size; on a CPU, which has no limit of its own, errors as if there were one."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info(device)
        used = torch.cuda.memory_reserved(device)
        torch.cuda.set_per_process_memory_fraction(
            min(1.0, (used + min(free, 1 << 31)) / total), device
        )
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0, device)
        return
    forward, longest = job.encoder.forward, 2 * len(job.functions[0].ids)

    def limited(inputs: Any, listener: Any) -> None:
        if inputs["input_ids"].numel() > longest:
            raise torch.OutOfMemoryError("out of the memory that this test gives")
        forward(inputs, listener)

    with mock.patch.object(job.encoder, "forward", limited):
        yield


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", help="a dataset folder with the config python; by default the embedded sample"
    )
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--small", action="store_true", help="tiny models and few functions")
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    started = time.perf_counter()
    bench = Bench(options.data, options.device, options.small)
    print(
        json.dumps({"device": name, "torch": torch.__version__, "functions": len(bench.rows)}),
        flush=True,
    )
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "equality": bench.equality,
        "waits": bench.waits,
        "price": bench.price,
        "bfloat16": bench.bfloat16,
        "whole set": bench.whole_set,
        "memory": bench.memory,
        "7 billion": bench.seven_billion,
    }
    failed = 0
    for step, work in steps.items():
        begun = time.perf_counter()
        try:
            with at_most(SECONDS[step]):
                said = work()
        except Exception as error:  # of any kind: the other steps are to be seen, too
            said, failed = (
                {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"},
                failed + 1,
            )
        print(
            json.dumps({"step": step, **said, "took": round(time.perf_counter() - begun, 1)}),
            flush=True,
        )
        if options.device.startswith("cuda"):
            torch.cuda.empty_cache()
    print(f"{len(steps)} steps, {failed} failed, {time.perf_counter() - started:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
