"""Nulls, coverage and cost of usable information.

usage: python tests/benchmarks/information.py nulls [NUMBER]     untrained twins and heads of noise must add nothing
       python tests/benchmarks/information.py coverage RESULT    of the intervals, for samples of a result's functions
       python tests/benchmarks/information.py cost MODEL DATA    CPU time and peak memory, beside those of plain probes
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["CODESYNTAX_CACHE"] = ""
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np


def covers(effect) -> bool:
    return effect.low <= 1e-9 and effect.high >= -1e-9


def nulls(number: int = 40) -> None:
    """How many intervals cover 0: of relations that have one, and of means."""
    from support.simulations.planted_attention import RELATION, informing, noise

    import probing
    from codesyntax_dataset.build import build
    from probing.evidence.effect import usable
    from probing.models import selfcheck
    from probing.runs import experiment

    with tempfile.TemporaryDirectory() as folder:
        build("sample", ["python"], Path(folder) / "sample")
        found, means = [], []
        for seed in range(number):
            given = {"control": "random-weights", "seed": seed, "edges": 100}
            effects = usable(probing.inform("tiny-code-mlm", Path(folder) / "sample", "python", **given))
            relations = [one["adds"] for one in effects.relations.values() if one["adds"].low == one["adds"].low]
            found += [covers(one) for one in relations]
            means.append(effects.mean["adds"])
            told = f"{np.mean([one.estimate for one in means]):+.4f} bits, largest {max(one.estimate for one in means):+.4f}"
            print(
                f"{seed + 1} twins: 0 in {np.mean(found):.1%} of {len(found)} relations, in "
                f"{np.mean([covers(one) for one in means]):.1%} of means; mean {told}",
                flush=True,
            )
    selfcheck.examine_lengths = lambda *_: None
    experiment._slot = lambda _: None
    found = []
    for seed in range(number):
        result = experiment.run(informing(noise(30, 9), functions=40, tokens=17, edges=12, seed=seed))
        found.append(usable(result).relations[RELATION]["adds"])
        told = f"mean {np.mean([one.estimate for one in found]):+.4f} bits"
        print(
            f"{seed + 1} times 270 noise heads: 0 in {np.mean([covers(one) for one in found]):.1%}, {told}", flush=True
        )


def coverage(file: str, samples: int = 400) -> None:
    """How often intervals of samples hold the value of all functions: 95 % is right."""
    from probing.evidence.effect import MEASURED, by_function, effects, means
    from probing.instruments.information.result import InformationResult

    result, rng = InformationResult.load(file), np.random.default_rng(0)
    names, edges, sums = by_function(result.ledger)
    counted = [place for place, name in enumerate(names) if result.relations[name].in_mean]
    edges, sums = edges[:, counted], sums[:, counted]
    truth = means(edges.sum(axis=0), sums.sum(axis=0))
    held = np.zeros((samples, len(truth)), bool)
    for number in range(samples):
        drawn = rng.integers(len(edges), size=len(edges))
        each = effects(edges[drawn], sums[drawn])
        held[number] = [one.low <= true <= one.high for one, true in zip(each, truth)]
    for name, share in zip((*MEASURED, "share"), held.mean(axis=0)):
        print(f"{name}: {share:.1%} of {samples} intervals of means hold the value of all {len(edges)} functions")


def cost(model: str, data: str) -> None:
    """In processes of their own, for both splits of the config python."""
    jobs = {
        "probe": "for split in ('validation', 'test'): probing.probe(model, data, split=split)",
        "inform": "probing.inform(model, data)",
    }
    spent = {}
    for name, job in jobs.items():
        code = (
            "import json, resource, sys, time, probing, torch, transformers\n"
            "from probing.runs.session import Session\nmodel, data = sys.argv[1:]\n"
            "Session(model).encoder()\nbegun = time.process_time()\n"  # a GGUF file is converted once, before
            f"{job}\n"
            "print(json.dumps([time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))"
        )
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "CODESYNTAX_CACHE": folder}
            command = [sys.executable, "-c", code, model, data]
            ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        spent[name] = json.loads(ran.stdout.splitlines()[-1])
        print(f"{name}: {spent[name][0]:.1f} s of CPU time, {spent[name][1] / 2**20:.2f} GiB at most", flush=True)
    print(f"inform takes {spent['inform'][0] / spent['probe'][0]:.2f} times the CPU time of both probes")


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    {"nulls": lambda number="40": nulls(int(number)), "coverage": coverage, "cost": cost}[what](*arguments)
