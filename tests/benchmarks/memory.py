"""Does probing take more memory for more functions? Peak resident set of one run, and of one over ten times as many.

    python tests/benchmarks/memory.py            # the embedded encoder over the sample's Python functions, and ten times them

What a run must hold for every edge is its ledger; its bytes in memory are printed and taken off.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

TIMES = (1, 10)


def run(times: int) -> None:
    import datasets
    import torch

    from codesyntax_dataset.build import build
    from probing import probe
    from probing.models.location import EMBEDDED

    torch.set_num_threads(1)
    os.environ["CODESYNTAX_CACHE"] = ""
    with tempfile.TemporaryDirectory() as folder:
        build("sample", ["python"], f"{folder}/codesyntax")
        functions = datasets.load_dataset(f"{folder}/codesyntax", "python", split="test", cache_dir=f"{folder}/cache")
        repeated = datasets.concatenate_datasets(
            [functions] * times, info=datasets.DatasetInfo()
        )  # its own, not the split
        result = probe(EMBEDDED, repeated)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(result.functions, peak, result.ledger.ranks.nbytes)


def main() -> None:
    if len(sys.argv) > 1:
        run(int(sys.argv[1]))
        return
    aside = []
    for times in TIMES:
        done = subprocess.run([sys.executable, __file__, str(times)], check=True, capture_output=True, text=True)
        functions, peak, ledger = map(int, done.stdout.split()[-3:])
        aside.append(peak - ledger)
        print(f"{functions} functions: peak {peak / 2**20:.0f} MB, of that the ledger {ledger / 2**20:.0f} MB")
    print(f"the ledger aside: {aside[1] / aside[0]:.3f} times")


if __name__ == "__main__":
    main()
