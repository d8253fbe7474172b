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
    from probing.models import selfcheck
    from probing.report.information import InformedModel
    from probing.runs import experiment

    with tempfile.TemporaryDirectory() as folder:
        build("sample", ["python"], Path(folder) / "sample")
        found, means = [], []
        for seed in range(number):
            given = {"control": "random-weights", "seed": seed, "edges": 100}
            model = InformedModel(
                "", probing.inform("tiny-code-mlm", Path(folder) / "sample", "python", **given)
            )
            relations = [adds for adds in model.adds.values() if adds.low == adds.low]
            found += [covers(one) for one in relations]
            means.append(model.adds_mean)
            told = f"{np.mean([one.value for one in means]):+.4f} bits, largest {max(one.value for one in means):+.4f}"
            print(
                f"{seed + 1} twins: 0 in {np.mean(found):.1%} of {len(found)} relations, in "
                f"{np.mean([covers(one) for one in means]):.1%} of means; mean {told}",
                flush=True,
            )
    selfcheck.examine_lengths = lambda *_: None
    experiment._slot = lambda _: None
    found = []
    for seed in range(number):
        result = experiment.run(
            informing(noise(30, 9), functions=40, tokens=17, edges=12, seed=seed)
        )
        found.append(InformedModel("", result).adds[RELATION])
        told = f"mean {np.mean([one.value for one in found]):+.4f} bits"
        print(
            f"{seed + 1} times 270 noise heads: 0 in {np.mean([covers(one) for one in found]):.1%}, {told}",
            flush=True,
        )


def coverage(file: str, samples: int = 400) -> None:
    """How often intervals of samples hold the value of all functions: 95 % is right."""
    from probing.instruments.information.hits import FINDERS, hits
    from probing.instruments.information.result import BOTH, WORDS, InformationResult

    measured, rng = hits(InformationResult.load(file)), np.random.default_rng(0)
    asked = [("bits", WORDS, BOTH), *(("uas", finder, None) for finder in FINDERS)]
    for measure, system, against in asked:
        of_all = measured[measure]
        truth, clusters, held = of_all.mean(system, against).at(0).value, len(of_all.clusters), []
        for _ in range(samples):
            drawn = np.bincount(rng.integers(clusters, size=clusters), minlength=clusters)
            mean = _repeated(of_all, drawn).mean(system, against).at(0)
            held.append(mean.low <= truth <= mean.high)
        name = f"{measure}, {system}" + (f" against {against}" if against else "")
        print(
            f"{name}: {np.mean(held):.1%} of {samples} intervals of means hold the value of all {clusters} functions"
        )


def _repeated(hits, drawn):
    """Hits of clusters as often as they were `drawn` (F,), each a cluster of its own."""
    from probing.stats.hits import Hits

    clusters, names, n, sums = [], [], [], {system: [] for system in hits.systems}
    first = np.cumsum(drawn) - drawn
    for name, group in hits.groups.items():
        rows = np.repeat(np.arange(len(group.places)), drawn[group.places])
        copy = np.concatenate([np.arange(drawn[place]) for place in group.places])
        clusters.append(first[group.places][rows] + copy)
        names += [name] * len(rows)
        n.append(group.n[rows])
        for system, parts in sums.items():
            parts.append(group.sums[system].sums[:, rows])
    of_rows = {system: np.concatenate(parts, axis=1) for system, parts in sums.items()}
    fields = {"unit": hits.unit, "left_out": hits.left_out}
    return Hits.of_rows(
        np.concatenate(clusters), names, of_rows, hits.measures, np.concatenate(n), **fields
    )


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
            ran = subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
            )
        spent[name] = json.loads(ran.stdout.splitlines()[-1])
        print(
            f"{name}: {spent[name][0]:.1f} s of CPU time, {spent[name][1] / 2**20:.2f} GiB at most",
            flush=True,
        )
    print(
        f"inform takes {spent['inform'][0] / spent['probe'][0]:.2f} times the CPU time of both probes"
    )


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    {"nulls": lambda number="40": nulls(int(number)), "coverage": coverage, "cost": cost}[what](
        *arguments
    )
