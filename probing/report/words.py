"""Phrases that sentences and titles of reports share."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codesyntax_dataset import syntaxeval
from probing.evidence import redrawn
from probing.evidence.beyond import LEAST_HARD_EDGES
from probing.evidence.protocols import LEAST_FUNCTIONS
from probing.evidence.redrawn import REDRAWS
from probing.instruments.likelihood.result import LEAST_NODES, LEAST_PAIRS, MOST_BY_SURFACE
from probing.runs.clusters import LEAST_REPOSITORIES, cluster_in_words, clusters_in_words
from probing.stats.intervals import ALPHA, FEW_CLUSTERS

RULE, K = "first", "1"  # where only one rule and k are shown, as in the paper

COLOURED = (
    f"Green or orange: p up to {ALPHA}. Intervals are not corrected for several tests, so one may "
    "exclude 0 although the corrected p does not separate the difference from 0."
)
"""The meaning of the colours of a table."""

AS_FILLED = "as filled"
"""The mark of an effect that a filler without any model has, too: it has no colour."""

_HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # cannot be shown
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # change the order of what is read
)

TWO_DIRECTIONS = (
    " Scores of two directions do not compare: probe all models with the same --direction, dependent-to-head if some "
    "are decoders."
)
"""Below a table with scores of both directions."""


def shared_words() -> dict[str, Any]:
    """The words that any text of a report may name in braces."""
    return {
        "ALPHA": ALPHA,
        "CLUSTER": cluster_in_words(),
        "CLUSTERS": clusters_in_words(),
        "COLOURED": COLOURED,
        "FEW_CLUSTERS": FEW_CLUSTERS,
        "K": K,
        "LEAST_EDGES": LEAST_HARD_EDGES,
        "DRAWS": REDRAWS,
        "LEAST_FUNCTIONS": LEAST_FUNCTIONS,
        "LEAST_REPOSITORIES": LEAST_REPOSITORIES,
        "LEAST_TO_DRAW": redrawn.LEAST_FUNCTIONS,
        "LEAST_NODES": LEAST_NODES,
        "LEAST_PAIRS": LEAST_PAIRS,
        "RULE": RULE,
        "SURFACE": MOST_BY_SURFACE,
        "SYNTAXEVAL": syntaxeval.SOURCE,
    }


def method(part: str) -> list[str]:
    """The paragraphs on how to read a part of a report, from `method.md`."""
    text = Path(__file__).with_name("method.md").read_text(encoding="utf-8")
    sections = re.split(r"^# (.+)\n", text.format_map(shared_words()), flags=re.MULTILINE)
    return sections[sections.index(part) + 1].strip().split("\n\n")


def readable(text: str) -> str:
    """A text with signs in place of characters that cannot be shown, or that change the order in
    which a reader sees others."""
    return _HIDDEN.sub("\ufffd", text)


def number_of(number: int, noun: str) -> str:
    """A number of things, in the singular or plural."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def starred(name: str, in_mean: bool) -> str:
    """The name of a relation, with a star if it is not in the mean."""
    return name if in_mean else f"{name} *"


def skipped(**reasons: Mapping[str, int]) -> list[str]:
    """What was skipped, such as `functions`, reason -> how many, in a line; none if nothing was."""
    texts = [
        f"{count:,} {things} ({reason})"
        for things, counts in reasons.items()
        for reason, count in counts.items()
        if count
    ]
    return [f"skipped: {', '.join(texts)}"] if texts else []


def numbered(name: str, number: int) -> str:
    """The name of a file or section; the second of one name gets a number."""
    return f"{name}-{number}" if number > 1 else name


def file_names(names: Sequence[str]) -> list[str]:
    """A plain file name for each of some names, all different."""
    taken: list[str] = []
    for name in names:
        plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower())[:80].strip("-.") or "model"
        each = (numbered(plain, number) for number in itertools.count(1))
        taken.append(next(file for file in each if file not in taken))
    return taken


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
