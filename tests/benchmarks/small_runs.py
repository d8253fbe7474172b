"""What a whole probe of few functions costs over the best plain forward pass of the same functions.

    python tests/benchmarks/small_runs.py --shape base --functions 40
    python tests/benchmarks/small_runs.py --shape embedded --functions 150

A whole probe: self-check, tokenizing, aligning, ranking and scoring; loading the model is in neither. The plain forward:
sdpa, functions sorted by length, in the batches that are fastest for it (one, or as many as fit 1,024 or 4,096 sub-tokens
with at most a tenth of padding; found out first, by two passes of each over at most 40 of the functions). CPU time of one thread, median of the ratios of
five rounds in which both take turns.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import tempfile
import time

import torch
from engine import ROUNDS, task_of

from codesyntax_dataset.build import build
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.runner import Runner
from probing.models.encoder import Encoder
from probing.models.loaded import Loaded
from probing.models.selfcheck import self_check
from probing.runs.data import load_functions, read_functions
from probing.runs.experiment import run
from probing.runs.session import Session

BUDGETS = (1, 1024, 4096)


def forward(task: Probing, budget: int) -> float:
    """Seconds of a plain forward pass over all functions."""
    model, runner, start = (
        task.encoder.model.eval(),
        Runner(task.encoder, task.settings.direction, budget),
        0,
    )
    model.set_attn_implementation("sdpa")
    before = time.process_time()
    with torch.inference_mode():
        while start < len(task.functions):
            batch = runner.batch(task.functions, start)
            model(**task.encoder.inputs([function.ids for function in batch]))
            start += len(batch)
    return time.process_time() - before


def probe(task: Probing, dataset) -> tuple[float, float]:
    """Seconds of the whole probe, and those of the self-check in it."""
    encoder = task.encoder
    before = time.process_time()
    loaded = Loaded(encoder.model, encoder.tokenizer, encoder.name, encoder.revision, encoder.dtype)
    self_check(Encoder(loaded))
    check = time.process_time() - before
    session = Session((encoder.model, encoder.tokenizer), device="cpu")
    run(Probing(session, read_functions(dataset, "python", "test")))
    return time.process_time() - before - check, check


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a dataset folder; by default the embedded sample is built")
    parser.add_argument("--shape", choices=("embedded", "base"), default="base")
    parser.add_argument("--functions", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            args.data = f"{folder}/codesyntax"
            build("sample", ["python"], args.data)
        task = task_of(args.shape, args.data, args.functions, "cpu")
        dataset = load_functions(args.data, "python", "test")[0].select(
            sorted(function.index for function in task.functions)
        )
        real = sum(len(function.ids) for function in task.functions)
        runner, start, padded = Runner(task.encoder, task.settings.direction, None), 0, 0
        while start < len(task.functions):
            batch = runner.batch(task.functions, start)
            padded, start = padded + len(batch) * len(batch[0].ids), start + len(batch)
        few = copy.copy(task)
        few.functions = task.functions[:: max(1, len(task.functions) // 40)]
        budget = min(BUDGETS, key=lambda budget: min(forward(few, budget) for _ in range(2)))
        ratios, checks = [], []
        for _ in range(ROUNDS):
            best = forward(task, budget)
            seconds, check = probe(task, dataset)
            ratios.append(seconds / best)
            checks.append(check)
            print(f"{seconds:.2f} s, forward {best:.2f} s, self-check {check:.2f} s", flush=True)
        print(json.dumps({"shape": args.shape, "functions": len(task.functions), "sub-tokens": real, "padding": round(padded / real - 1, 3),
                          "probe / best forward": round(statistics.median(ratios), 3), "self-check s": round(statistics.median(checks), 2)}))  # fmt: skip


if __name__ == "__main__":
    main()
