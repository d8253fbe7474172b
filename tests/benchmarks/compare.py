"""Exact labels against the language's own parser: of real functions, or of operators beside each other.

    python tests/benchmarks/compare.py go /usr/share/go/src/strings
    python tests/benchmarks/compare.py php
    python tests/benchmarks/compare.py php --pairs-in-frames

SOURCE is anything that `codesyntax build --source` reads. Without it, every operator stands beside every other and in
every place. Code that the language does not have by its parser, or by a second one where there is one for operators,
is not compared. Prints edges by relation, the shares of code that is labelled and of edges that are equal, examples of
every kind of difference, and CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.labels.operators import alone, pairs, syntax_of
from support.references.reference_parsers import compared, places

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

EXAMPLES = 3
"""Of each kind of difference."""


def code_of(asked: argparse.Namespace, variant: str) -> Iterator[tuple[str, str]]:
    """Code, and where it is from."""
    if asked.source is None:
        syntax = syntax_of(asked.language)
        cases = chain(pairs(syntax), alone(syntax))
        for case in pairs(syntax, syntax.frames) if asked.pairs_in_frames else cases:
            yield case.code, f"{case.inner} in {case.outer}"
    else:
        config = next(name for name, pair in CONFIGS.items() if pair == (asked.language, variant))
        for function in islice(read(asked.source, config, Skips()), asked.most):
            yield function.code, function.url


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("language")
    parser.add_argument("source", nargs="?")
    parser.add_argument("--most", type=int, default=2000, help="functions to read")
    parser.add_argument("--pairs-in-frames", action="store_true", help="takes long")
    asked = parser.parse_args()
    language, variant = asked.language, compared(asked.language)
    reference = importlib.import_module(f"reference.{language}")
    edges, differences, counts, times, equal = Counter(), Counter(), Counter(), [], 0
    for code, place in code_of(asked, variant):
        begin = time.process_time()
        try:
            ours = annotate(code, language, variant)
        except ParseError:
            ours = None
        times.append(time.process_time() - begin)
        try:
            theirs = reference.edges(
                code, ours.tokens if ours else tokenize(code, language, variant)
            )
            if asked.source is None and hasattr(reference, "OTHER"):
                reference.OTHER.edges(code)
        except SyntaxError:  # by a reference that is stricter, or of another version
            counts["not compared"] += 1
            continue
        counts["labelled" if ours else "refused"] += 1
        if ours is None:
            if counts["refused"] <= EXAMPLES:
                print(f"refused: {code[:200]!r}   in {place}")
            continue
        found = places(ours)
        edges.update(relation for relation, *_ in found.elements())
        equal += (found & theirs).total()
        for whose, only in (("only ours", found - theirs), ("only theirs", theirs - found)):
            for relation, head, start, end in only:
                differences[whose, relation] += 1
                if differences[whose, relation] <= EXAMPLES:
                    spelt = f"{code[head : head + 20]!r} => {code[start:end][:80]!r}"
                    print(f"{whose}: {relation} {spelt}   in {place}")
    for relation, count in sorted(edges.items()):
        print(f"{count:8,} {relation}")
    print(dict(counts))
    print(f"{edges.total():,} edges, {equal / max(1, equal + differences.total()):.4%} equal")
    print(f"differences: {dict(differences) or 'none'}")
    milliseconds = [1e3 * statistic(times) for statistic in (statistics.median, statistics.mean)]
    print("CPU time: median {:.2f} ms, mean {:.2f}".format(*milliseconds))


if __name__ == "__main__":
    main()
