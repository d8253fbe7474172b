"""Does a run take more memory for more functions? Peak resident set of one, and of one over ten times as many.

    python tests/benchmarks/memory.py            # probe the sample's Python functions, and ten times them, with the embedded encoder
    python tests/benchmarks/memory.py FOLDER     # mask them, with two controls each, for a masked language model

What a run must hold for every edge or copy is its ledger; its bytes in memory are printed and taken off.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile

TIMES = (1, 10)


def run(times: int, model: str | None = None) -> None:
    import datasets
    import torch

    from codesyntax_dataset.build import build
    from probing import mask, probe
    from probing.models.location import EMBEDDED

    torch.set_num_threads(1)
    os.environ["CODESYNTAX_CACHE"] = ""
    with tempfile.TemporaryDirectory() as folder:
        build("sample", ["python"], f"{folder}/codesyntax")
        functions = datasets.load_dataset(
            f"{folder}/codesyntax", "python", split="test", cache_dir=f"{folder}/cache"
        )
        # its own, not the split
        repeated = datasets.concatenate_datasets([functions] * times, info=datasets.DatasetInfo())
        result = probe(EMBEDDED, repeated) if model is None else mask(model, repeated, draws=2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        result.functions,
        peak,
        (result.ledger.ranks if model is None else result.ledger.rows).nbytes,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "model", nargs="?", help="a masked language model to mask for, instead of a probe"
    )
    parser.add_argument(
        "--times", type=int, help="one run in this process, over so many times the functions"
    )
    args = parser.parse_args()
    if args.times:
        run(args.times, args.model)
        return
    aside = []
    for times in TIMES:
        command = [sys.executable, __file__, *sys.argv[1:], "--times", str(times)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        functions, peak, ledger = map(int, done.stdout.split()[-3:])
        aside.append(peak - ledger)
        print(
            f"{functions} functions: peak {peak / 2**20:.0f} MB, of that the ledger {ledger / 2**20:.0f} MB"
        )
    print(f"the ledger aside: {aside[1] / aside[0]:.3f} times")


if __name__ == "__main__":
    main()
