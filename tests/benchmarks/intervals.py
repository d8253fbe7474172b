"""How often the 95 % intervals hold and the tests reject, through `Hits`, as the tables of tests/RELIABILITY.md.

    python tests/benchmarks/intervals.py [--draws 1000]
    python tests/benchmarks/intervals.py --results FOLDER --data FOLDER

Asked: 93 to 97 % of the intervals, of 6 clusters at least 91; at most 6 % of the tests where there is nothing to find.
With results of `codesyntax probe`: how often the test of means rejects if model and rule are exchanged at random, and how
often an interval of one half of the functions holds what heads find on average that are chosen on any such 60 functions.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.simulations.coverage import AMOUNTS, CELLS, covered
from support.simulations.designs import CLUSTERED, PLAIN, chosen_again, exchanged, held

from probing.evidence import gather
from probing.evidence.protocols import ONE_GUESS
from probing.runs.clusters import FUNCTION
from probing.runs.repositories import clustered_by
from probing.stats.hits import PERCENT_UNIT

CLUSTERS = (6, 8, 12, 30, 100)
WHAT = ("score, interval holds", "difference, interval holds", "no difference, test rejects")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    if args.results:
        with clustered_by(FUNCTION, args.data):
            on_results(args.results, args.data, args.draws, args.seed)
            of_choices(args.results, args.data, args.draws // 10, args.seed)
    else:
        of_clusters(args.draws, args.seed)
        of_designs(args.draws, args.seed)


def of_clusters(draws: int, seed: int) -> None:
    """By the number of clusters."""
    print(
        f"| % of {draws:,} draws: {', '.join(AMOUNTS)} | {' | '.join(f'{of} clusters' for of in CLUSTERS)} |"
    )
    print("| --- |" + " --- |" * len(CLUSTERS))
    for unit, groups in CELLS:
        title = "percent" if unit == PERCENT_UNIT else "amounts"
        of = f"the mean of {groups} groups" if groups > 1 else "a group"
        cells = [
            [covered(unit, groups, shape, clusters, draws, seed) for shape in AMOUNTS]
            for clusters in CLUSTERS
        ]
        for row, what in enumerate(WHAT):
            shares = (", ".join(f"{shape[row]:.1f}" for shape in cell) for cell in cells)
            print(f"| {title}, {of}: {what} | {' | '.join(shares)} |", flush=True)


def of_designs(draws: int, seed: int) -> None:
    """As hits occur in code."""
    print(f"\n| % of {draws:,} draws | over | {' | '.join(WHAT)} |\n| --- |" + " --- |" * 4)
    for design in (*PLAIN, *CLUSTERED):
        unions = ["functions"]
        if design in CLUSTERED:
            unions.append("functions, twins as one" if design.twins else "repositories")
        for over in unions:
            shares = held(design, draws, seed, over == "functions")
            cells = " | ".join(f"{share:.1f}" for share in shares)
            print(f"| {design.name} | {over} | {cells} |", flush=True)


def on_results(results: Path, data: Path | None, draws: int, seed: int) -> None:
    """Of real ledgers, with all functions and with 64 of them."""
    print(
        "| % of rejected exchanges | protocol | functions | of all | of 64 |\n| --- |"
        + " --- |" * 4
    )
    for probed in gather.comparable([results]).values():
        for evidence in gather.gather(probed, data):
            settings = evidence.probed.settings
            for protocol, compared in evidence.comparisons.items():
                hits = compared.hits.where(compared.hits.counted, ONE_GUESS)
                shares = [
                    exchanged(hits, ("first", "second"), draws, seed, some) for some in (0, 64)
                ]
                cells = " | ".join(f"{share:.1f}" for share in shares)
                name = f"{settings.config}, {settings.model}"
                print(f"| {name} | {protocol} | {len(hits.clusters)} | {cells} |", flush=True)


def of_choices(results: Path, data: Path | None, draws: int, seed: int) -> None:
    """Heads are chosen on 60 functions and scored on half of the others."""
    print(f"\n| % of {draws} draws | of the chosen heads | with the choice |\n| --- | --- | --- |")
    for probed in gather.comparable([results]).values():
        for evidence in gather.gather(probed, data):
            settings = evidence.probed.settings
            ledger = evidence.probed.test.ledger
            ledger = replace(ledger, ranks=np.asarray(ledger.ranks))
            shares = chosen_again(ledger, draws, seed)
            cells = " | ".join(f"{share:.1f}" for share in shares)
            print(f"| {settings.config}, {settings.model} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
