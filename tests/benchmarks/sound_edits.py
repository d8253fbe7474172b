"""Edited code is code: every edit of real functions, in every label variant, read by the language's own parser.

    python tests/benchmarks/sound_edits.py java /path/to/sources --most 10000

Python is compiled by this interpreter. SOURCE is anything that `codesyntax build --source` reads. Functions that the parser
does not read before an edit are left aside. Prints each failure, and counts by edit.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import warnings
from collections import Counter
from itertools import islice, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from codesyntax_dataset.edits import edit
from codesyntax_dataset.errors import EditError, ParseError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import EDITS
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read


def reads(code: str, language: str) -> bool:
    """Whether the language's own parser reads a function."""
    try:
        if language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(code, "f", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        else:
            importlib.import_module(f"reference.{language}").edges(code, [])
    except (SyntaxError, ValueError):
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "language", choices=[name for name, record in LANGUAGES.items() if record.editing]
    )
    parser.add_argument("source")
    parser.add_argument("--most", type=int, default=10_000, help="functions to edit")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    variants = [
        name for name in LANGUAGES[asked.language].variant_names if name in ("paper", "exact")
    ]
    functions = (function for function in read(asked.source, asked.language, Skips()))
    for function in islice(
        (one for one in functions if reads(one.code, asked.language)), asked.most
    ):
        counts["functions"] += 1
        for name, variant in product(EDITS, variants):
            try:
                code, _ = edit(function.code, asked.language, name, variant)
            except (EditError, ParseError) as error:
                counts[f"{name}: refused ({type(error).__name__})"] += 1
                continue
            counts[f"{name}: edited"] += 1
            if not reads(code, asked.language):
                counts[f"{name}: does not parse"] += 1
                print(f"{name}, {variant}: {function.url}")
    print("\n".join(f"{count:8,} {what}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
