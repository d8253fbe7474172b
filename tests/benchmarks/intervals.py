"""How often the 95 % intervals hold and the tests reject, through `Hits`, as the table of tests/RELIABILITY.md.

    python tests/benchmarks/intervals.py [--draws 1000]

Asked: 93 to 97 % of the intervals, of 6 clusters at least 91; at most 6 % of the tests where there is nothing to find.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.simulations.coverage import AMOUNTS, CELLS, covered

from probing.stats.hits import PERCENT_UNIT

CLUSTERS = (6, 8, 12, 30, 100)
WHAT = ("score, interval holds", "difference, interval holds", "no difference, test rejects")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        f"| % of {args.draws:,} draws: {', '.join(AMOUNTS)} | {' | '.join(f'{of} clusters' for of in CLUSTERS)} |"
    )
    print("| --- |" + " --- |" * len(CLUSTERS))
    for unit, groups in CELLS:
        title = "percent" if unit == PERCENT_UNIT else "amounts"
        of = f"the mean of {groups} groups" if groups > 1 else "a group"
        cells = [
            [covered(unit, groups, shape, clusters, args.draws, args.seed) for shape in AMOUNTS]
            for clusters in CLUSTERS
        ]
        for row, what in enumerate(WHAT):
            shares = (", ".join(f"{shape[row]:.1f}" for shape in cell) for cell in cells)
            print(f"| {title}, {of}: {what} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
