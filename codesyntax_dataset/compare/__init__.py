"""Differences between two label variants of a language on the same functions.

`places` finds the edges that are the same in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from codesyntax_dataset.compare.places import Place, Side, pairs
from codesyntax_dataset.errors import ArgumentError, ParseError
from codesyntax_dataset.languages import annotate, language_of, unedited, variant_of
from codesyntax_dataset.schema import Annotation

CHANGES = ("kept", "moved", "new", "gone")
"""What becomes of edges: both variants have it in the same place; both have it, with another head
or span; only the second has it; only the first has it."""


class Change(NamedTuple):
    """The fate of an edge, one of CHANGES.

    `before` and `after`, `edges`: its place and its index in the first and in the second
    annotation; None where that does not have it.
    """

    kind: str
    before: Place | None
    after: Place | None
    edges: tuple[int | None, int | None]

    @property
    def place(self) -> Place:
        """Where it is in the second, or else in the first."""
        span = self.after or self.before
        assert span is not None
        return span


def changes(first: Annotation, second: Annotation) -> list[Change]:
    """The fate of every edge of two annotations of the same code: first what both have, then what
    one has."""
    left, right = Side(first, second), Side(second, first)
    fates = []
    for edges in pairs(left, right):
        before = None if edges[0] is None else left.places[edges[0]]
        after = None if edges[1] is None else right.places[edges[1]]
        kind = (
            "new"
            if before is None
            else "gone"
            if after is None
            else "kept"
            if before == after
            else "moved"
        )
        fates.append(Change(kind, before, after, edges))
    return fates


@dataclass(frozen=True)
class Example:
    """A change in some `code`: head and dependent in the first config, `before`, and the second,
    `after`, if any."""

    code: str
    before: tuple[str, str] | None
    after: tuple[str, str] | None


@dataclass
class Counted:
    """How many edges, and an example, the shortest."""

    edges: int = 0
    example: Example | None = None


@dataclass
class Comparison:
    """Two configs of a language, compared on the same functions.

    `functions`: how many have labels in `both` configs, in the `first` alone, in the `second`
    alone, and in `neither`; only those in both are compared. `relations`: relation -> what becomes
    of its edges, each of `CHANGES` -> how many, relations sorted by name.
    """

    language: str
    configs: tuple[str, str]
    functions: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("both", "first", "second", "neither"), 0)
    )
    relations: dict[str, dict[str, Counted]] = field(default_factory=dict)

    @property
    def total(self) -> dict[str, int]:
        """What becomes of the edges of all relations -> how many."""
        total = dict.fromkeys(CHANGES, 0)
        for kinds in self.relations.values():
            for kind, counted in kinds.items():
                total[kind] += counted.edges
        return total

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def compare(codes: Iterable[str], configs: Sequence[str]) -> Comparison:
    """Label each of these functions in both configs, and count what becomes of their edges.

    Raises UnknownName for an unknown config, and ArgumentError unless there are two of one language
    whose labels follow from the code.
    """
    first, second = two_of_one_language(configs)
    language, variants = language_of(first).name, (variant_of(first).name, variant_of(second).name)
    comparison = Comparison(language, (first, second))
    for code in codes:
        before, after = labels = [_labels(code, language, variant) for variant in variants]
        comparison.functions[_HAVE[before is not None, after is not None]] += 1
        if before is not None and after is not None:
            for change in changes(before, after):
                _count(comparison, code, labels, change)
    comparison.relations = dict(sorted(comparison.relations.items()))
    return comparison


_HAVE = {
    (True, True): "both",
    (True, False): "first",
    (False, True): "second",
    (False, False): "neither",
}


def two_of_one_language(configs: Sequence[str]) -> tuple[str, str]:
    """The configs, if they are two ways to label the functions of one language; raises
    ArgumentError if not."""
    chosen = list(dict.fromkeys(configs))
    languages = {language_of(config).name for config in chosen}
    if len(chosen) != 2 or len(languages) != 1:
        raise ArgumentError(
            f"configs are {', '.join(configs) or 'none'}, expected two different ones of one language"
        )
    for config in chosen:
        if (language := language_of(config)).of_treebanks:
            raise ArgumentError(
                f"people label {language.title} in treebanks, so it has no rules to compare"
            )
        if config not in unedited():
            raise ArgumentError(
                f"{config} is made of changed functions: compare configs with those of the source"
            )
    return chosen[0], chosen[1]


def _labels(code: str, language: str, variant: str) -> Annotation | None:
    try:
        return annotate(code, language, variant)
    except ParseError:
        return None


def _count(
    comparison: Comparison, code: str, labels: Sequence[Annotation | None], change: Change
) -> None:
    spans = [span for span in (change.before, change.after) if span]
    kinds = comparison.relations.setdefault(
        spans[0].relation, {kind: Counted() for kind in CHANGES}
    )
    counted = kinds[change.kind]
    counted.edges += 1
    begin, end = min(min(span.head, span.start) for span in spans), max(span.end for span in spans)
    if counted.example is None or end - begin < len(counted.example.code):
        before, after = (
            None if span is None or annotation is None else _texts(code, span, annotation, index)
            for span, annotation, index in zip((change.before, change.after), labels, change.edges)
        )
        counted.example = Example(code[begin:end], before, after)


def _texts(code: str, span: Place, labels: Annotation, edge: int | None) -> tuple[str, str]:
    """Head and dependent."""
    assert edge is not None
    return labels.tokens[labels.edges[edge].head].text, code[span.start : span.end]
