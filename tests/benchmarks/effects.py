"""How often the intervals of effects hold: the simulation of tests/support/simulations/effect_coverage.py, 300 times.

python tests/benchmarks/effects.py
python tests/benchmarks/effects.py --functions 100
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from support.simulations.effect_coverage import coverage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--functions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for strength in (0.5, 1.0):
        found = coverage(args.simulations, args.functions, strength, args.seed)
        print(
            f"{args.simulations} simulations of {args.functions} functions, of which 30 words more are treated "
            f"{np.exp(strength):.1f} times as often; {found.clipped:.1f} % have a propensity that is clipped"
        )
        print(f"  mean bias: naive {found.naive_bias:+.3f}, doubly robust {found.doubly_robust_bias:+.4f}")
        for name in ("naive", "weighted", "doubly_robust", "placebo", "paired"):
            print(f"  the interval holds the truth, {name.replace('_', ' ')}: {getattr(found, name):.1f} %")
        print(f"  the paired test finds an effect at 5 % where there is none: {found.falsely_found:.1f} %")


if __name__ == "__main__":
    main()
