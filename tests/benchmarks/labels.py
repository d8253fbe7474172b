"""What labelling a function costs, beside parsing and tokenizing it: milliseconds of CPU time a function.

    python tests/benchmarks/labels.py            # both languages
    python tests/benchmarks/labels.py java

Over the functions in ../shared (or the folder named by CODESYNTAX_SHARED) where they are, else over the embedded sample. The
median of five rounds, in which the steps take turns.
"""

from __future__ import annotations

import ast
import os
import statistics
import sys
import time
from pathlib import Path

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.java import parse
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

ROUNDS = 5
SHARED = (
    Path(os.environ.get("CODESYNTAX_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data/codesearchnet"
)
PARSERS = {"python": ast.parse, "java": lambda code: parse.parse(f"class A {{\n{code}\n}}")}


def milliseconds(work, codes: list[str]) -> float:
    start = time.process_time()
    for code in codes:
        work(code)
    return 1000 * (time.process_time() - start) / len(codes)


def main() -> None:
    source = str(SHARED) if SHARED.is_dir() else "sample"
    for language in sys.argv[1:] or PARSERS:
        codes = [function.code for function in read(source, language, Skips())]
        steps = {"parse alone": PARSERS[language], "tokenize alone": lambda code: tokenize(code, language)}
        for variant in LANGUAGES[language].variant_names:
            steps[f"annotate {variant}"] = lambda code, variant=variant: annotate(code, language, variant)
        times = {name: [] for name in steps}
        for _ in range(ROUNDS):
            for name, work in steps.items():
                times[name].append(milliseconds(work, codes))
        print(
            f"{language}, {len(codes)} functions of {'shared' if SHARED.is_dir() else 'the sample'}, ms of CPU a function:"
        )
        for name, values in times.items():
            print(f"  {name}: {statistics.median(values):.3f}")


if __name__ == "__main__":
    main()
