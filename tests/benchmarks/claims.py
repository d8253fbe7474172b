"""What reports claim of models that know nothing, and whether they find what is planted.

    python tests/benchmarks/claims.py [--models 40]

As many untrained twins of eight families go through all instruments (the sample, masked syntax in 60 functions) to the
report, then as many sets of results with random numbers: for each kind of claim, the share of the reports with one. Then
as many models with a head that solves a relation beyond offsets and carries what the model needs: the share in which
each instrument finds it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import datasets
from support.simulations import planted_heads
from support.simulations.claims import FIRST_SCREEN, claims
from support.simulations.untrained import FAMILIES, at_random, measured, untrained

from codesyntax_dataset.build import build

FUNCTIONS = 60
"""Functions whose syntax is masked."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=40)
    asked = parser.parse_args()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        data, twins, ledgers, planted = (
            Path(folder, "data"),
            Counter[str](),
            Counter[str](),
            Counter[str](),
        )
        build("sample", ["python"], data)
        for number in range(asked.models):
            family, place = [*FAMILIES][number % len(FAMILIES)], Path(folder, f"twin {number}")
            results = measured(untrained(family, number), data, place, FUNCTIONS)
            letters, solved = planted_heads.splits(number), Path(folder, f"planted {number}")
            instruments = planted_heads.found(number, letters, solved)
            drawn = [at_random(one, number, Path(f"{one} at random")) for one in (results, solved)]
            said = claims(drawn[0], data) + claims(drawn[1], letters)
            for of, made in (
                (twins, claims(results, data)),
                (ledgers, said),
                (planted, instruments),
            ):
                of.update(kind for kind, count in made.items() if count)
                print(
                    number,
                    family,
                    {kind: count for kind, count in made.items() if count},
                    flush=True,
                )
        for name, of in (
            ("untrained twins", twins),
            ("random ledgers", ledgers),
            ("planted models", planted),
        ):
            print(f"\n{asked.models} {name}")
            for kind in sorted({FIRST_SCREEN, *of} if of is not planted else of):
                print(f"{of[kind]:4} {kind}")


if __name__ == "__main__":
    main()
