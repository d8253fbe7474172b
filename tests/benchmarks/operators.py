"""Exact labels of every operator beside every other and in every place, against the language's own parser.

    python tests/benchmarks/operators.py php
    python tests/benchmarks/operators.py php --pairs-in-frames

Prints a row for pairs and one for frames: cases, those that the language has by its parser, and by a second one where
there is one, those that are labelled otherwise than by its parser, and those that are refused. Below, these are grouped
by the operator that most of them have in common, with two examples of each group.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.labels.operators import Case, alone, pairs, syntax_of
from support.references.reference_parsers import Place, compared, places

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.errors import ParseError


class Difference(NamedTuple):
    case: Case
    reason: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("language")
    parser.add_argument(
        "--pairs-in-frames", action="store_true", help="all pairs in all frames; takes long"
    )
    asked = parser.parse_args()
    syntax = syntax_of(asked.language)
    if asked.pairs_in_frames:
        sweep("pairs in frames", pairs(syntax, syntax.frames), asked.language)
    else:
        sweep("pairs", pairs(syntax), asked.language)
        sweep("frames", alone(syntax), asked.language)


def sweep(name: str, cases: Iterable[Case], language: str) -> None:
    """Compares the labels of cases, and prints what differs."""
    reference, variant = importlib.import_module(f"reference.{language}"), compared(language)
    counts, wrong, refused = Counter(), [], []
    for case in cases:
        counts["cases"] += 1
        try:
            theirs = reference.edges(case.code, tokenize(case.code, language, variant))
            if hasattr(reference, "OTHER"):
                reference.OTHER.edges(case.code)
        except SyntaxError:
            continue
        counts["valid"] += 1
        try:
            ours = places(annotate(case.code, language, variant))
        except ParseError as error:
            refused.append(Difference(case, str(error)))
            continue
        if ours != theirs:
            edges = [f"only ours {_spelt(place, case.code)}" for place in ours - theirs]
            edges += [f"only theirs {_spelt(place, case.code)}" for place in theirs - ours]
            wrong.append(Difference(case, "; ".join(edges)))
    number, valid = counts["cases"], counts["valid"]
    print(
        f"{language} {name}: {number:,} cases, {valid:,} valid, {len(wrong)} wrong, {len(refused)} refused"
    )
    _print("wrong", wrong)
    _print("refused", refused)


def _print(kind: str, differences: list[Difference]) -> None:
    """Prints differences by the operator that most of the remaining ones have in common."""
    while differences:
        common = Counter(text for case, _ in differences for text in {case.inner, case.outer})
        [(operator, number)] = common.most_common(1)
        group = [
            difference
            for difference in differences
            if operator in (difference.case.inner, difference.case.outer)
        ]
        differences = [difference for difference in differences if difference not in group]
        others = dict.fromkeys(
            case.outer if case.inner == operator else case.inner for case, _ in group
        )
        print(f"  {number} {kind}: {operator!r} with {', '.join(map(repr, others))}")
        for case, reason in (group[0], group[-1]) if number > 1 else group:
            print(f"    {case.code!r}: {reason}")


def _spelt(place: Place, code: str) -> str:
    relation, head, start, end = place
    return f"{relation} {code[head : head + 8]!r} => {code[start:end]!r}"


if __name__ == "__main__":
    main()
