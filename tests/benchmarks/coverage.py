"""How often the 95 % intervals of single relations hold: the simulation of tests/support/simulations/interval_coverage.py.

    python tests/benchmarks/coverage.py                        # on the embedded sample
    python tests/benchmarks/coverage.py --data codesyntax      # on the test splits of a dataset

Printed by the number of functions that hold the relation: the share of draws whose interval holds the true value, on
average and for the 5 % of predictors where it holds least often, and the mean width in points.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.simulations.interval_coverage import coverage, predictors

SIZES = {"6-10": (6, 8, 10), "11-30": (11, 20, 30), "31-100": (31, 60, 100), "over 100": (101, 200, 400)}
"""Functions that hold the relation: how they are grouped, and the numbers that are drawn."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a dataset folder; by default the embedded sample is built")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--most", type=int, default=400, help="predictors and pairs, of all that there are")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            from codesyntax_dataset.build import build

            args.data = f"{folder}/codesyntax"
            build("sample", ["python", "java"], args.data)
        of_relations = [of for config in ("python", "java") for of in predictors(args.data, config)]
    print(
        f"{sum(map(len, of_relations))} predictors of {sum(map(bool, of_relations))} relations, {args.draws} draws each"
    )
    print("functions   of          coverage  lowest 5 %  width")
    for differences in (False, True):
        for name, sizes in SIZES.items():
            share, width = coverage(of_relations, sizes, differences, args.draws, args.most, seed=0)
            what = "differences" if differences else "scores"
            print(f"{name:11} {what:11} {share.mean():7.1f} %  {np.percentile(share, 5):8.1f} %  {width.mean():5.1f}")


if __name__ == "__main__":
    main()
