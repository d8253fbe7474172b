"""Edits that keep the meaning of code keep its labels: renamed identifiers, other layout and comments, redundant brackets.

    python tests/benchmarks/kept_labels.py python_exact /path/to/codesearchnet

SOURCE is anything that `codesyntax build --source` reads. Makes 3,000 edits, and counts those after which the labels,
made anew, are the image of those before. An edit that leaves the code as it was (no brackets may be added) is none.
"""

from __future__ import annotations

import argparse
from collections import Counter

from codesyntax_dataset.edits import edit
from codesyntax_dataset.errors import EditError, ParseError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

KEEPING = ("rename-words", "rename-nonsense", "rename-letters", "layout", "brackets")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("config", choices=CONFIGS)
    parser.add_argument("source")
    parser.add_argument("--edits", type=int, default=3000)
    asked = parser.parse_args()
    language, variant = CONFIGS[asked.config]
    counts: Counter[str] = Counter()
    for function in read(asked.source, asked.config, Skips()):
        for name in KEEPING:
            if counts.total() == asked.edits:
                break
            try:
                edited, _ = edit(function.code, language, name, variant)
                if edited != function.code:
                    counts["kept"] += 1
            except EditError as error:
                counts["not kept"] += 1
                print(f"{name}: {error}: {function.url}")
            except ParseError:
                continue
    print(f"{asked.config}: {counts.total():,} edits, labels kept by {counts['kept']:,}")


if __name__ == "__main__":
    main()
