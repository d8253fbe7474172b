"""Functions with their labels, worked out by hand: `tests/golden/<language>/<construct>.txt`.

A file says what it shows, then has the sections `=== code` and `=== <variant>`. A variant has one line of tokens, each
with its index, and after an empty line one line per edge: relation, head, `=>`, first and last token of the dependent.
In tokens ⏎ is a line break, ␣ a blank and ∅ no character at all. The code ends without a line break.

    python tests/support/labels/golden_pairs.py rust FILE

prints these sections of the function in a file, with all its exact labels as they are now, to be read by eye.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from codesyntax_dataset import annotate
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Annotation, Token

GOLDEN = Path(__file__).parents[2] / "golden"


def cases(language: str, golden: Path = GOLDEN, *, of: Collection[str]) -> list:
    """For pytest.mark.parametrize: (code, variant, tokens, edges) in the variants `of`, as the file spells them."""
    found = []
    for path in sorted((golden / language).glob("*.txt")):
        _, *sections = re.split(
            r"^=== (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        (_, code), *variants = zip(sections[::2], sections[1::2])
        for variant, labels in [(name, text) for name, text in variants if name in of]:
            tokens, _, edges = labels.strip("\n").partition("\n\n")
            case = (code.strip("\n"), variant, tokens.split(" "), edges.split("\n"))
            found.append(pytest.param(*case, id=f"{path.stem}-{variant}"))
    return found


def spell_tokens(tokens: list[Token]) -> list[str]:
    """The tokens as a file spells them."""
    spelt = [text.replace("\n", "⏎").replace(" ", "␣") or "∅" for text, _, _ in tokens]
    return [f"{index}:{text}" for index, text in enumerate(spelt)]


def spell_edges(annotation: Annotation) -> list[str]:
    """The edges as a file spells them."""
    spelt = spell_tokens(annotation.tokens)
    return [
        f"{relation} {spelt[head]} => {spelt[first]}"
        + (f" .. {spelt[last]}" if last > first else "")
        for relation, head, first, last in annotation.edges
    ]


if __name__ == "__main__":
    function = Path(sys.argv[2]).read_text("utf-8").strip("\n")
    print(f"\n=== code\n{function}")
    for name in (variant.name for variant in LANGUAGES[sys.argv[1]].variants if variant.exact):
        labels = annotate(function, sys.argv[1], name)
        tokens, edges = " ".join(spell_tokens(labels.tokens)), "\n".join(spell_edges(labels))
        print(f"\n=== {name}\n{tokens}\n\n{edges}")
