"""Size and power of the tests that sentences rest on, as the table of tests/RELIABILITY.md.

    python tests/benchmarks/sizes.py [--simulations 2000]

For each number of functions: how often something is claimed where there is nothing to find, and, in a fifth of
the simulations, where the difference said is planted (tests/support/simulations/sizes.py).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from support.simulations import sizes

FUNCTIONS = (20, 60)

ROWS = (
    ("the mean of ten relations, any of them", FUNCTIONS, 0.2, "of the edges", sizes.heads_differ),
    (
        "any of ten heads serves most",
        FUNCTIONS,
        0.5,
        "deviations",
        sizes.heads_serve,
    ),
    (
        "a candidate for any of ten relations",
        FUNCTIONS,
        0.2,
        "of the edges",
        sizes.candidates_chosen,
    ),
    ("gain over fillers in any of four types", FUNCTIONS, 0.5, "deviations", sizes.fillers_beaten),
)
"""What is claimed, of how many functions, how much is planted, in the first, and how often it is claimed."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        "| claim | functions | nothing to find, % | planted | found, % |\n| --- | --- | --- | --- | --- |"
    )
    for claim, numbers, more, unit, rejects in ROWS:
        size, power = (
            " / ".join(
                ", ".join(f"{share:.1f}" for share in np.atleast_1d(rejects(of, *given)))
                for of in numbers
            )
            for given in ((args.simulations, args.seed), (args.simulations // 5, args.seed, more))
        )
        print(
            f"| {claim} | {' / '.join(map(str, numbers))} | {size} | {more} {unit} | {power} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
