"""All long runs, one after the other; prints the rows of the table in tests/RELIABILITY.md.

python tests/faults [--only kills,corruptions] [--seed 0] [--times 50]
"""

from __future__ import annotations

import argparse
import importlib

RUNS = ("kills", "corruptions", "reproducibility", "fuzz", "mutants")
"""Modules beside this one, each with `run(seed, times)`, which makes a row, and TIMES, how many times are usual."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python tests/faults", description="Run all long runs of tests/faults."
    )
    parser.add_argument("--only", default=",".join(RUNS), help=f"some of {','.join(RUNS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", type=int, help="instead of what is usual for each")
    given = parser.parse_args()
    if unknown := set(given.only.split(",")) - {*RUNS}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(RUNS)}")
    rows = []
    for name in given.only.split(","):
        module = importlib.import_module(name)
        row = module.run(given.seed, given.times or module.TIMES)
        rows.append(row.in_markdown(f"python tests/faults --only {name}"))
        print(rows[-1], flush=True)
    print("\n| what | tried | outcome | command |\n| --- | ---: | --- | --- |", *rows, sep="\n")


if __name__ == "__main__":
    main()
