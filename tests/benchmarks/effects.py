"""How often the interval of a paired effect holds: the simulation of tests/support/simulations/effect_coverage.py, 300 times.

python tests/benchmarks/effects.py
python tests/benchmarks/effects.py --functions 100
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.simulations.effect_coverage import coverage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--functions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    holds, falsely_found = coverage(args.simulations, args.functions, args.seed)
    print(f"{args.simulations} simulations of {args.functions} functions")
    print(f"  the interval of the paired effect holds the truth: {holds:.1f} %")
    print(f"  the paired test finds an effect at 5 % where there is none: {falsely_found:.1f} %")


if __name__ == "__main__":
    main()
