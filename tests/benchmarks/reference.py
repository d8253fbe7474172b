"""Exact labels of real functions against the language's own parser, and what they cost.

    python tests/benchmarks/reference.py go /usr/share/go/src/strings

SOURCE is anything that `codesyntax build --source` reads. Prints functions, edges by relation, the share of functions
that are labelled and of edges that are equal, every kind of difference with an example, and CPU time per function.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.references.reference_parsers import Place, compared, places

from codesyntax_dataset import annotate
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("language")
    parser.add_argument("source")
    parser.add_argument("--most", type=int, default=2000, help="functions to read")
    asked = parser.parse_args()
    reference = importlib.import_module(f"reference.{asked.language}")
    variant = compared(asked.language)
    config = next(name for name, pair in CONFIGS.items() if pair == (asked.language, variant))
    functions = [
        function for function, _ in zip(read(asked.source, config, Skips()), range(asked.most))
    ]
    edges, equal, refused, unread, times, shown = Counter(), 0, 0, 0, [], Counter()
    for function in functions:
        begin = time.process_time()
        try:
            ours = annotate(function.code, asked.language, variant)
        except ParseError:
            refused += 1
            continue
        finally:
            times.append(time.process_time() - begin)
        try:
            theirs = reference.edges(function.code, ours.tokens)
        except SyntaxError:  # by a reference that is stricter, or of another version
            unread += 1
            continue
        found = places(ours)
        edges.update(relation for relation, *_ in found.elements())
        equal += (found & theirs).total()
        for whose, places_of in (("only ours", found - theirs), ("only theirs", theirs - found)):
            for place in places_of:
                shown[whose, place[0]] += 1
                if shown[whose, place[0]] <= 3:
                    print(f"{whose}: {_spelt(place, function.code)}   in {function.url}")
    differing = sum(shown.values())
    for relation, count in sorted(edges.items()):
        print(f"{count:8,} {relation}")
    labelled = len(functions) - refused
    print(
        f"{len(functions):,} functions, {labelled:,} ({labelled / len(functions):.2%}) labelled, {unread:,} not compared"
    )
    print(
        f"{edges.total():,} edges, {equal / max(1, equal + differing):.4%} equal, differences: {dict(shown) or 'none'}"
    )
    print(
        f"CPU time per function: median {1e3 * statistics.median(times):.2f} ms, mean {1e3 * statistics.mean(times):.2f}"
    )


def _spelt(place: Place, code: str) -> str:
    relation, head, start, end = place
    return f"{relation} {code[head : head + 20]!r} => {code[start:end][:80]!r}"


if __name__ == "__main__":
    main()
