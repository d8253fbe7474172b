"""Size and power of the tests that sentences rest on: tests/support/simulations/sizes.py, 2,000 times each.

python tests/benchmarks/sizes.py
python tests/benchmarks/sizes.py --simulations 10000
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from support.simulations.sizes import (
    DIFFERENCES,
    candidates_chosen,
    fillers_beaten,
    heads_differ,
    heads_serve,
    orders_claimed,
    paired_rejects,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        f"paired test, {args.simulations} simulations: % rejected at 5 % without a difference, and with 0.5 deviations"
    )
    for name, draw in DIFFERENCES.items():
        for functions in (8, 10, 15, 20, 50, 200):
            size, power = (
                paired_rejects(draw, functions, args.simulations, args.seed, shift) for shift in (0, 0.5)
            )  # fmt: skip
            print(f"  {name}, {functions} functions: {size:.1f}, {power:.1f}", flush=True)
    print("mechanism: % of sets of pairs of which an order is claimed, independent ones and planted ones (noise 0.3)")
    for pairs in (5, 6, 8, 11):
        size, power = (orders_claimed(pairs, args.simulations // 2, args.seed, noise) for noise in (np.inf, 0.3))
        print(f"  {pairs} pairs: {size:.1f}, {power:.1f}", flush=True)
    fewer = args.simulations // 2
    print(f"% of {fewer} simulations that claim something without a difference, and of {fewer // 5} with the one said")
    for functions in (20, 60):
        for what, more, rejects in SENTENCES:
            size, power = rejects(functions, fewer, args.seed), rejects(functions, fewer // 5, args.seed, more)
            print(f"  {what}, {functions} functions: {size}, {power}", flush=True)


SENTENCES = (
    ("ten relations and their mean, beyond offsets or not; 0.2 of the edges more (mean, relation)", 0.2, heads_differ),
    ("ten heads that serve most; 0.5 deviations more of a head (one head, three)", 0.5, heads_serve),
    ("gain over fillers in four node types; 0.5 deviations more", 0.5, fillers_beaten),
    ("candidates among 16 heads for ten relations; one finds 0.2 of the edges more", 0.2, candidates_chosen),
)
"""What a sentence rests on, what is planted, and how often it is claimed."""


if __name__ == "__main__":
    main()
