"""Exact labels of every operator beside every other and in every place, against the language's own parser.

    python tests/benchmarks/operators.py php
    python tests/benchmarks/operators.py php --pairs-in-frames

Prints a row for pairs and one for frames: cases, those that the language has, those that are labelled otherwise, and
those that are refused; then each kind of difference with its number and an example.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.labels.operators import Case, alone, pairs, syntax_of
from support.references.reference_parsers import Place, compared, places

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.errors import ParseError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language")
    parser.add_argument("--pairs-in-frames", action="store_true", help="all pairs in all frames; takes long")
    asked = parser.parse_args()
    syntax = syntax_of(asked.language)
    sweeps = {"pairs": pairs(syntax), "frames": alone(syntax)}
    if asked.pairs_in_frames:
        sweeps = {"pairs in frames": pairs(syntax, syntax.frames)}
    for name, cases in sweeps.items():
        sweep(name, cases, asked.language)


def sweep(name: str, cases: Iterable[Case], language: str) -> None:
    """Compares the labels of cases, and prints what differs."""
    reference, variant = importlib.import_module(f"reference.{language}"), compared(language)
    kinds: dict[str, dict[str, list[tuple[Case, str]]]] = {"wrong": defaultdict(list), "refused": defaultdict(list)}
    number = valid = 0
    for case in cases:
        number += 1
        try:
            theirs = reference.edges(case.code, tokenize(case.code, language, variant))
        except SyntaxError:
            continue
        valid += 1
        try:
            ours = places(annotate(case.code, language, variant))
        except ParseError as error:
            kinds["refused"][case.construct].append((case, str(error)))
            continue
        if ours != theirs:
            differing = [f"only ours {_spelt(place, case.code)}" for place in ours - theirs]
            differing += [f"only theirs {_spelt(place, case.code)}" for place in theirs - ours]
            kinds["wrong"][case.construct].append((case, ", ".join(differing)))
    totals = {kind: sum(map(len, constructs.values())) for kind, constructs in kinds.items()}
    print(f"{language} {name}: {number:,} cases, {valid:,} valid, {totals['wrong']} wrong, {totals['refused']} refused")
    for kind, constructs in kinds.items():
        for construct, found in sorted(constructs.items(), key=lambda item: -len(item[1])):
            case, reason = found[0]
            print(f"  {kind} {len(found)}: {construct}\n    {case.code}\n    {reason}")


def _spelt(place: Place, code: str) -> str:
    relation, head, start, end = place
    return f"{relation} {code[head : head + 8]!r} => {code[start:end]!r}"


if __name__ == "__main__":
    main()
