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
from support.simulations.sizes import DIFFERENCES, orders_claimed, paired_rejects


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


if __name__ == "__main__":
    main()
