"""Every production of a language in every place that takes one of its kind, two deep.

A table beside this module has, for each kind (`expression`, `pattern`, `type`, ...), slots, statements with `□` where one
stands, and fillers, its productions. New syntax is a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

HOLE = "□"


class Pair(NamedTuple):
    """A function with a filler in a slot."""

    kind: str
    slot: str
    filler: str
    code: str


@dataclass(frozen=True)
class Kind:
    """What can stand in the same places. `frame`: the function around a slot."""

    name: str
    slots: tuple[str, ...]
    fillers: tuple[str, ...]
    frame: str

    def pairs(self) -> Iterator[Pair]:
        for slot, filler in product(self.slots, self.fillers):
            yield self._pair(slot, filler)

    def short(self) -> Iterator[Pair]:
        """Each slot and each filler at least once."""
        for number in range(max(len(self.slots), len(self.fillers))):
            slot = self.slots[number % len(self.slots)]
            yield self._pair(slot, self.fillers[number % len(self.fillers)])

    def _pair(self, slot: str, filler: str) -> Pair:
        return Pair(self.name, slot, filler, put(put(self.frame, slot), filler))


def put(text: str, inner: str) -> str:
    """The text with another in its hole, whose further lines are indented alike."""
    before, after = text.split(HOLE)
    line = before.rpartition("\n")[2]
    margin = line[: len(line) - len(line.lstrip())]
    return before + inner.replace("\n", f"\n{margin}") + after


def kinds(language: str) -> list[Kind]:
    """The kinds of a language by its table here; `\\n` is a line break, `\\t` a tab.

    `with` names a language whose slots and fillers are this one's, too.
    """
    table = Path(__file__).with_name(f"{language}.txt").read_text("utf-8")
    rows: dict[str, dict[str, list[str]]] = {}
    frame = ""
    for other in re.findall(r"^with (\w+)$", table, re.MULTILINE):
        for kind in kinds(other):
            rows[kind.name] = {"slots": [*kind.slots], "fillers": [*kind.fillers]}
            frame = kind.frame
    for name, which, lines in re.findall(
        r"^(\w+) (slots|fillers)\n((?: +.*\n)+)", table, re.MULTILINE
    ):
        texts = [
            line.strip().replace("\\n", "\n").replace("\\t", "\t") for line in lines.splitlines()
        ]
        rows.setdefault(name, {}).setdefault(which, []).extend(texts)
    if own := re.search(r"^frame (.*)$", table, re.MULTILINE):
        frame = own[1].replace("\\n", "\n").replace("\\t", "\t")
    return [
        Kind(name, tuple(both["slots"]), tuple(both["fillers"]), frame)
        for name, both in rows.items()
    ]
