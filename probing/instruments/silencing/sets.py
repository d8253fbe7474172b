"""Sets of attention heads that are silenced together: those that are best for a relation or a rule,
and sets to compare them with.

A *seeker* is what heads are best for: a relation, on its edges that are not at its best offset; the
same relation at its best offset; or one of RULES, which find a token without any syntax:

- *previous token*: the one before;
- *duplicate token*: the last one before that has the same text;
- *induction*: the one behind that (Olsson et al. 2022, Transformer Circuits);
- *delimiter*: the last bracket, separator or line end before.

Heads are chosen on the split validation, and never on what they are silenced for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import numpy as np

from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.schema import EdgeCell
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.silencing.choose import heads_that_find
from probing.instruments.silencing.result import HeadPlace
from probing.runs.data import Functions, label_digest, relabelled
from probing.runs.records import Number, Record, listed
from probing.stats.intervals import FEW_CLUSTERS

RULES = PREVIOUS, DUPLICATE, INDUCTION, DELIMITER = (
    "previous token",
    "duplicate token",
    "induction",
    "delimiter",
)
"""What heads find without any syntax."""

OWN = "own heads"
"""The seeker of heads that the caller names."""

AT_OFFSET = " at its best offset"
"""Follows the name of a relation whose heads are best on the edges that the best offset finds."""

FAMILIES = {
    # a statement after a header is indented, or in brackets, as the body of that header
    "blocks": "For:for->body While:while->body If:if->body With:item->body Do:do->body Switch:switch->statement",
    # a branch or a handler belongs to the header or the body before it
    "branches": "If:if->else If:body->orelse If:test->orelse Try:* Do:body->test",
    # what stands in brackets depends on what opens them
    "brackets": "Call:func->args Subscript:value->slice children:parent->child",
    # arguments with and without names stand in an order
    "arguments": "Call:args->keywords Call:func->keywords Default:name->value",
    "alternatives": "IfExp:*",
}
"""Relations, as patterns, that say the same of what is valid: a pair that breaks one of them rests
on all of its family. Written down before anything was measured."""

_WITHOUT_RELATION = {
    "indentation": "blocks",
    "closer": "brackets",
    "closer-order": "brackets",
    "type-bracket": "brackets",
    "separator": "brackets",
}
"""Phenomenon -> the family of what its pairs break where they name no relation, since they change
no single edge. Other phenomena, such as two parameters of one name, rest on none: no relation leads
from one of the names to the other."""


def family_of(relation: str) -> str:
    """The family of a relation; empty without any."""
    for name, patterns in FAMILIES.items():
        if any(fnmatchcase(relation, pattern) for pattern in patterns.split()):
            return name
    return ""


def column_of(phenomenon: str, broken: str) -> str:
    """Pairs of a phenomenon that break the relation `broken`, or name none, by what they rest on:
    `indentation: blocks`."""
    family = family_of(broken) if broken else _WITHOUT_RELATION.get(phenomenon, "")
    return f"{phenomenon}: {family}" if family else phenomenon


def rests_on(column: str, relation: str) -> bool:
    """Whether the pairs of a column rest on a relation."""
    family = family_of(relation)
    return bool(family) and column.endswith(f": {family}")


Kind = Literal["best", "matched"]


class HeadSet(Record):
    """Heads that are silenced together: those `best` for a seeker, `share` percent of all, or
    `matched` with these, as many others of the same layers; of OWN, share is 0."""

    seeker: str
    kind: Kind
    share: Number
    heads: Annotated[tuple[HeadPlace, ...], listed]


def head_sets(
    ranked: Mapping[str, np.ndarray],
    shape: tuple[int, int],
    shares: Sequence[int],
    draws: int,
    seed: int,
    own: Sequence[HeadPlace] = (),
) -> list[HeadSet]:
    """The sets of each seeker and share, the best heads first and then the drawn ones.

    `ranked`: seeker -> numbers of heads over all layers, the best first; `shape`: layers, and heads
    in each. Where a layer has fewer other heads than are best, all of these are drawn.
    """
    layers, heads = shape
    chosen = {
        (seeker, share): [
            divmod(int(number), heads)
            for number in order[: max(1, round(layers * heads * share / 100))]
        ]
        for seeker, order in ranked.items()
        for share in shares
    }
    if own:
        chosen[OWN, 0] = list(own)
    sets = []
    for (seeker, share), best in chosen.items():
        rng = np.random.default_rng([seed, *sorted(layer * heads + head for layer, head in best)])
        drawn = [_matched(best, heads, rng) for _ in range(draws)]
        for number, some in enumerate([best, *drawn]):
            kind: Kind = "matched" if number else "best"
            sets.append(HeadSet(seeker=seeker, kind=kind, share=share, heads=tuple(sorted(some))))
    return sets


def _matched(best: Sequence[HeadPlace], heads: int, rng: np.random.Generator) -> list[HeadPlace]:
    """As many other heads of each layer, drawn, or all others."""
    matched = []
    for layer in sorted({layer for layer, _ in best}):
        taken = [head for number, head in best if number == layer]
        others = np.setdiff1d(np.arange(heads), taken)
        drawn = rng.choice(others, min(len(taken), len(others)), replace=False)
        matched += [(layer, int(head)) for head in drawn]
    return matched


def relation_seekers(validation: RankLedger, relations: Sequence[str]) -> dict[str, np.ndarray]:
    """Each of `relations` -> heads, those that find most of its hard edges first; and at its best
    offset, those that find most of the others. Relations in few functions have none."""
    hard = is_hard(validation, best_offsets(validation))
    seekers = {}
    for suffix, edges in (("", hard), (AT_OFFSET, ~hard)):
        ledger = validation.take(edges)
        for name, order in heads_that_find(ledger).items():
            functions = np.unique(ledger.function[ledger.relation == ledger.relations.index(name)])
            if name in relations and len(functions) >= FEW_CLUSTERS:
                seekers[name + suffix] = order
    return dict(sorted(seekers.items()))


def with_rules(functions: Functions, direction: str) -> Functions:
    """The functions with an edge for each token and each of RULES that finds one before it, in
    place of their relations; that token is read from in either direction."""

    def edges(
        _: list[EdgeCell], code: str, starts: list[int], ends: list[int], __: int
    ) -> list[EdgeCell]:
        words = [code[start:end] for start, end in zip(starts, ends)]
        cells = []
        for rule, reader, sought in found_by_rules(words):
            head, dependent = (
                (reader, sought) if direction == HEAD_TO_DEPENDENT else (sought, reader)
            )
            cells.append(EdgeCell(relation=rule, head=head, first=dependent, last=dependent))
        return cells

    table = relabelled(functions.table, edges)
    return functions._replace(table=table, labels=label_digest(table, functions.limit))


def found_by_rules(words: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Each token that a rule finds: the rule, the token that is read from, the one that is
    sought."""
    seen: dict[str, int] = {}
    delimiter = -1
    for token, word in enumerate(words):
        if token:
            yield PREVIOUS, token, token - 1
        before = seen.get(word, -1)
        if before >= 0:
            yield DUPLICATE, token, before
            if before + 1 < token:
                yield INDUCTION, token, before + 1
        if delimiter >= 0:
            yield DELIMITER, token, delimiter
        if word.strip(" \t") in _DELIMITERS:
            delimiter = token
        seen[word] = token


_DELIMITERS = frozenset("( ) [ ] { } , ; : \n".split(" "))


def parsed(heads: Sequence[Any]) -> tuple[HeadPlace, ...]:
    """Heads such as (3, 9) or `3-9`: layer and head; raises ArgumentError for anything else."""
    places = set()
    for head in heads:
        parts = head.split("-") if isinstance(head, str) else head
        try:
            layer, number = map(int, parts)
        except (TypeError, ValueError):
            layer = number = -1
        if min(layer, number) < 0:
            raise ArgumentError(
                f"a head is {head!r}, expected a layer and a head in it, both from 0: '3-9' or (3, 9)"
            )
        places.add((layer, number))
    return tuple(sorted(places))
