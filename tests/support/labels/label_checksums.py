"""Checksums of our Python labels, as JSON; needs nothing but the standard library, so that any interpreter can run it.

python tests/support/labels/label_checksums.py ../shared      # the folder of reference material, if it is there
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.labels.python_snippets import ALWAYS, BOUNDS, LATER, NEVER

from codesyntax_dataset import ParseError, annotate, tokenize


def checksum(codes: Iterable[str]) -> str:
    """SHA-256 over all tokens and edges of `codes` in both variants, or that there are none."""
    digest = hashlib.sha256()
    for code in codes:
        for variant in ("paper", "with_new_lines"):
            for labels in (annotate, tokenize):
                try:
                    found = labels(code, "python", variant)
                except ParseError:
                    found = None
                digest.update(json.dumps(found).encode())
    return digest.hexdigest()


def sources(shared: Path | None) -> dict[str, list[str]]:
    """Name -> code: the snippets, the golden functions, the files of the sample, the functions of the shared data."""
    bounds = [nested(n + more) for nested, n, _ in BOUNDS.values() for more in (0, 1)]
    found = {
        "snippets": [*LATER.values(), *NEVER.values(), *ALWAYS.values(), *bounds],
        "golden": [
            path.read_text(encoding="utf-8").split("=== code\n")[1].split("\n\n===")[0]
            for path in sorted((ROOT / "tests/golden/python").glob("*.txt"))
        ],
        "sample": [
            path.read_text(encoding="utf-8")
            for path in sorted((ROOT / "codesyntax_dataset/sample").glob("**/*.py"))
        ],
    }
    if shared and (shared / "data").is_dir():
        found["reference"] = []
        for path in sorted((shared / "data/codesearchnet/python/final/jsonl").glob("*/*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                found["reference"] += [json.loads(line)["code"] for line in lines]
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    found = sources(folder)
    checksums = {name: checksum(codes) for name, codes in found.items()}
    print(json.dumps({"version": ".".join(map(str, sys.version_info[:3])), "checksums": checksums}))
