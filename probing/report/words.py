"""Phrases that sentences and titles of reports share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from codesyntax_dataset import paper, syntaxeval
from probing.evidence.beyond import LEAST_HARD_EDGES
from probing.instruments.likelihood.result import LEAST_PAIRS, SURFACE
from probing.report.kinds import Kind
from probing.runs.clusters import cluster_unit, clusters_in_words
from probing.stats.intervals import FEW_CLUSTERS, PERMUTATIONS

_VALUES = {
    "FEW_CLUSTERS": FEW_CLUSTERS,
    "PERMUTATIONS": PERMUTATIONS,
    "LEAST_EDGES": LEAST_HARD_EDGES,
    "LEAST_PAIRS": LEAST_PAIRS,
    "SURFACE": SURFACE,
    "PAPER": paper.source(),
    "SYNTAXEVAL": syntaxeval.SOURCE,
}


def method(part: str) -> list[str]:
    """The paragraphs on how to read a part of a report, from `method.md`."""
    values = {**_VALUES, "CLUSTER": cluster_unit(), "CLUSTERS": clusters_in_words()}
    text = Path(__file__).with_name("method.md").read_text(encoding="utf-8").format_map(values)
    (paragraphs,) = (
        rest
        for title, _, rest in (each.partition("\n") for each in text.split("# "))
        if title == part
    )
    return paragraphs.strip().split("\n\n")


DIRECTIONS = (
    " Scores of two directions do not compare: probe all models with the same --direction, dependent-to-head if some "
    "are decoders."
)
"""Below a table with scores of both directions."""


def listed(items: Sequence[str]) -> str:
    """Items as a list in a sentence."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def number_of(number: int, noun: str) -> str:
    """A number of things, in the singular or plural."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def starred(name: str, in_mean: bool) -> str:
    """The name of a relation, with a star if it is not in the mean."""
    return name if in_mean else f"{name} *"


def left_out(edges: Mapping[str, int], functions: Mapping[str, int]) -> str:
    """The edges and the functions that were left out, with the reasons."""
    texts = [f"{count:,} edges ({reason})" for reason, count in edges.items() if count]
    return ", ".join(
        texts + [f"{count:,} functions ({reason})" for reason, count in functions.items()]
    )


def interval(low: float, high: float, kind: Kind) -> str:
    """A 95 % interval in words."""
    return f"95 % interval {kind.show(low)} to {kind.show(high)}"


def numbered(name: str, number: int) -> str:
    """The name of a file or section; the second of one name gets a number."""
    return f"{name}-{number}" if number > 1 else name


def file_names(names: Sequence[str]) -> list[str]:
    """A plain file name for each of some names, all different."""
    taken: dict[str, None] = {}
    for name in names:
        plain, number = re.sub(r"[^a-z0-9._-]+", "-", name.lower())[:80].strip("-.") or "model", 1
        while numbered(plain, number) in taken:
            number += 1
        taken[numbered(plain, number)] = None
    return list(taken)


def distinct(
    names: Sequence[str], all_settings: Sequence[object], among: Sequence[str]
) -> list[str]:
    """The names; equal ones are extended by those settings of `among` in which they differ."""
    titles = []
    for name, settings in zip(names, all_settings):
        same_name = [other for other, other_name in zip(all_settings, names) if other_name == name]
        differing = [
            field for field in among if len({str(getattr(other, field)) for other in same_name}) > 1
        ]
        suffixes = [
            f"{field.replace('_', '-')} {_in_words(getattr(settings, field))}"
            for field in differing
        ]
        titles.append(", ".join([name, *suffixes]))
    return titles


def _in_words(value: object) -> str:
    return " ".join(value) if isinstance(value, (list, tuple)) else str(value)[:40]
