"""Every production of a language in every slot, two deep, against the language's own parser.

    python tests/benchmarks/sweep.py ruby
    python tests/benchmarks/sweep.py python --kind pattern

The tables are in `tests/support/labels/sweep`. Code that the language does not have, by its parser or by a second one
where there is one, is not compared. Prints what is wrong or refused, by filler and by slot, with an example of each.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.labels.sweep import Pair, kinds
from support.references.reference_parsers import verdict


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("language")
    parser.add_argument("--kind", help="only this one")
    asked = parser.parse_args()
    reference = importlib.import_module(f"reference.{asked.language}")
    total: Counter[str] = Counter()
    failed: list[tuple[str, Pair]] = []
    for kind in kinds(asked.language):
        if asked.kind not in (None, kind.name):
            continue
        counts = Counter({"slots": len(kind.slots), "fillers": len(kind.fillers)})
        for pair in kind.pairs():
            said = verdict(pair.code, asked.language, reference)
            counts["pairs"] += 1
            counts[said] += 1
            if said in ("wrong", "refused"):
                failed.append((said, pair))
        print(kind.name, dict(counts), flush=True)
        total += counts
    print("all", dict(total))
    while failed:  # the slot or filler that most have, and what is left
        parts = Counter((said, part) for said, pair in failed for part in (pair.slot, pair.filler))
        (said, part), count = parts.most_common(1)[0]
        explained = [each for each in failed if each[0] == said and part in each[1][1:3]]
        print(f"{said} {count}: {part!r}, such as {explained[0][1].code!r}")
        failed = [each for each in failed if each not in explained]


if __name__ == "__main__":
    main()
