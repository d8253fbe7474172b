"""What labelling a function costs, beside parsing and tokenizing it: milliseconds of CPU time a function.

    python tests/benchmarks/labels.py            # all languages of code
    python tests/benchmarks/labels.py java

Over the functions in ../shared (or the folder named by CODESYNTAX_SHARED) of languages that are there, else over the
embedded sample; those that a variant refuses are left out of it, and counted. The median of five rounds, in which the
steps take turns.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.grammar import parse_framed
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

ROUNDS = 5
SHARED = (
    Path(os.environ.get("CODESYNTAX_SHARED", Path(__file__).resolve().parents[3] / "shared"))
    / "data/codesearchnet"
)
OF_CODE = [name for name, language in LANGUAGES.items() if not language.of_treebanks]


def milliseconds(work: Callable[[str], object], codes: Sequence[str]) -> float:
    start = time.process_time()
    for code in codes:
        work(code)
    return 1000 * (time.process_time() - start) / len(codes)


def tokens(code: str, language: str, variant: str) -> int:
    """The number of tokens of a function; 0 if it is refused."""
    try:
        return len(annotate(code, language, variant).tokens)
    except ParseError:
        return 0


def main() -> None:
    for language in sys.argv[1:] or OF_CODE:
        source = str(SHARED) if (SHARED / language).is_dir() else "sample"
        codes = [function.code for function in read(source, language, Skips())]
        print(f"{language}, {len(codes)} functions of {Path(source).name}, ms of CPU a function:")
        for variant in LANGUAGES[language].variant_names:
            sizes = {code: tokens(code, language, variant) for code in codes}
            good = [code for code in codes if sizes[code]]
            steps = {
                "parse": partial(parse_framed, language=language),
                "tokenize": partial(tokenize, language=language, variant=variant),
                "annotate": partial(annotate, language=language, variant=variant),
            }
            rounds = [[milliseconds(work, good) for work in steps.values()] for _ in range(ROUNDS)]
            times = dict(zip(steps, map(statistics.median, zip(*rounds))))
            size = sum(map(sizes.__getitem__, good)) / len(good)
            print(
                f"  {variant}: "
                + ", ".join(f"{name} {value:.3f}" for name, value in times.items())
                + f" ({100 * times['annotate'] / size:.3f} for 100 tokens; {size:.0f} tokens a function, "
                f"{len(codes) - len(good)} refused)"
            )


if __name__ == "__main__":
    main()
