"""The labels of a config, or of two of one language side by side: the edges of one function as a self-contained page,
without a model, and the differences over many functions as a table."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from codesyntax_dataset import annotate, corpus
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.compare import (
    CHANGES,
    Comparison,
    Counted,
    Example,
    changes,
    compare,
    compare_versions,
    two_of_one_language,
)
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import LANGUAGES, language_of, variant_of
from codesyntax_dataset.languages.tables.constructs import CHILDREN
from codesyntax_dataset.schema import Annotation, Edge, Skips, Token
from codesyntax_dataset.sources import SAMPLE
from probing.report.document import Column, Table
from probing.report.kinds import CODE, COUNT
from probing.report.pages import Page, Shown, lines_of, page, relations_of, shown
from probing.runs.data import load_functions
from probing.runs.progress import progress

# ------------------------------------------------------------------------------------------------------------ a page


@checked
def show_labels(
    code: str | os.PathLike | None = None,
    *,
    id: int | None = None,
    data: Any = "codesyntax",
    configs: Sequence[str] = ("python",),
    split: str = "test",
    relation: str | None = None,
) -> Page:
    """A page with the edges of a function, drawn from head to dependent: its labels in one config, or in two.

    With two configs of a language, their edges stand side by side; each is marked as kept, moved, new or gone, with the
    rule that explains it (`codesyntax_dataset.compare`). The function is either `code` (text or the path of a file), or
    the one with this `id` in a split of `data`, with its labels there in the first config. `relation`: the one to open
    with, by default the first in alphabetical order of those that differ, or of all.

    Raises what `show` raises for functions, configs and relations; and ArgumentError for two configs of which one is of
    another language, of a treebank, or of edited functions.
    """
    if not 1 <= len(names := list(dict.fromkeys(configs))) <= 2:
        raise ArgumentError(f"configs are {', '.join(names) or 'none'}, expected one, or two of one language")
    if len(names) == 2:
        two_of_one_language(names)
    function = shown(code, id, data, names[0], split)
    texts = [function.code[start:end] for start, end in zip(function.start.tolist(), function.end.tolist())]
    tokens = [Token(*token) for token in zip(texts, function.start.tolist(), function.end.tolist())]
    labels = [Annotation(tokens, function.edges)]
    labels += [annotate(function.code, language_of(name).name, variant_of(name).name) for name in names[1:]]
    relations = relations_of(function.name, [edge for one in labels for edge in one.edges], relation)
    edges = _edges(function.code, labels, language_of(names[0]).name)
    differs = {edge["relation"] for edge in edges if edge["kind"] != CHANGES[0]}
    by_interest = sorted(relations, key=lambda name: (name not in differs, name == CHILDREN))
    content = {
        "configs": [_config(function, name, one) for name, one in zip(names, labels)],
        "relations": relations,
        "edges": edges,
        "opened": relation or by_interest[0],
    }
    return page("Labels", "labels.html.jinja", function=function.name, configs=names, kinds=_KINDS, page=content)


_KINDS = dict(zip(CHANGES, "=~+−"))
"""The sign of each change, which can be told without colours."""


def _config(function: Shown, name: str, labels: Annotation) -> dict[str, object]:
    """The code and the edges of a config, each edge as its head and the first and the last token of its dependent."""
    lines = lines_of(function.code, [token.start for token in labels.tokens], [token.end for token in labels.tokens])
    return {"name": name, "lines": lines, "edges": [edge[1:] for edge in labels.edges]}


def _edges(code: str, labels: Sequence[Annotation], language: str) -> list[dict[str, object]]:
    """The edges of all configs: their relation, what became of them and why, and their index in each config."""
    if len(labels) == 1:
        return [
            {"relation": edge.relation, "kind": CHANGES[0], "rule": "", "at": [index]}
            for index, edge in enumerate(labels[0].edges)
        ]
    first, second = labels
    return [
        {"relation": change.place.relation, "kind": change.kind, "rule": change.rule, "at": change.edges}
        for change in sorted(changes(code, first, second, language), key=lambda change: change.place[1:])
    ]


# ----------------------------------------------------------------------------------------------------------- a table

T = TypeVar("T")

_NUMBERS, _LONGEST = 38, 100
"""Characters that the columns of numbers take, and the most that an example takes."""


@checked
def compare_labels(configs: Sequence[str], *, source: str | None = None, data: Any = None) -> Comparison:
    """Compare two configs of a language on all functions of a source, or on those of a dataset's test split.

    `source` is as in `codesyntax_dataset.build.build`, by default the embedded sample; `data`, as in `probe`, must have
    the first config. From there comes the code alone: both configs label it again. With one config, the labels that
    `data` has, perhaps of an earlier version of the rules, are compared with those of now.

    Raises UnknownName for an unknown config; ArgumentError unless there are two of one language, labelled by rules, or
    for both a source and a dataset; SourceError and DatasetError if these cannot be read.
    """
    if source is not None and data is not None:
        raise ArgumentError("expected functions of a source or of a dataset, got both: leave one of the two out")
    if data is not None and len(configs) == 1:
        rows, name = load_functions(data, configs[0], "test")
        version = name.rpartition("@")[2].rpartition(".")[0]
        return compare_versions(map(_labelled, _with_progress(rows, configs)), configs[0], version)
    return compare(_with_progress(_codes(configs, source, data), configs), configs)


def _codes(configs: Sequence[str], source: str | None, data: Any) -> Iterable[str]:
    if data is None:
        functions = corpus.read(source or SAMPLE, configs[0], Skips())
        return [function.code for function in sorted(functions, key=attrgetter("partition"), reverse=True)]
    codes: list[str] = load_functions(data, configs[0], "test")[0]["code"][:]
    return codes


def _labelled(row: Mapping[str, Any]) -> tuple[str, Annotation]:
    code, places = row["code"], zip(row["token_start"], row["token_end"])
    return code, Annotation(
        [Token(code[start:end], start, end) for start, end in places], [Edge(**edge) for edge in row["relations"]]
    )


def _with_progress(functions: Iterable[T], configs: Sequence[str]) -> Iterator[T]:
    """The same, with a bar that says how many are done."""
    return iter(progress(functions, desc=" and ".join(configs), unit=language_of(configs[0]).unit, leave=False))


def parts(comparison: Comparison, width: int) -> list[str | Table]:
    """The fate of the edges of each relation, and the rules that explain it, each with an example.

    `width`: characters of a line; the examples are shortened to fit.
    """
    first, second = comparison.configs
    units, functions = LANGUAGES[comparison.language].units, comparison.functions
    longest = min(width - _NUMBERS, _LONGEST)
    rows: list[list[Any]] = []
    for relation, kinds in comparison.relations.items():
        rows += [_row(relation, {kind: comparison.edges(kind, relation) for kind in CHANGES}), *_rules(kinds, longest)]
    total = _row("all relations", {kind: comparison.edges(kind) for kind in CHANGES})
    table = Table(
        "comparison",
        f"From {first} to {second}: the edges of {functions['both']:,} {units}",
        [Column("relation, rule, example", CODE), *(Column(kind, COUNT) for kind in CHANGES)],
        rows,
        f"moved: both configs have the edge, with another head or span; new: only {second} has it; gone: only "
        f"{first} has it. Each rule has an example below it, head => dependent. Differences in blank tokens at the "
        "ends of a dependent, and in tokens that the other config lacks, do not count.",
        totals=[total, *_rules(comparison.total, 0)],
    )
    return [
        table,
        f"{units} with labels in {first} alone: {functions['first']:,}, in {second} alone: {functions['second']:,}, in "
        f"neither: {functions['neither']:,}",
    ]


def _rules(kinds: Mapping[str, Mapping[str, Counted]], longest: int) -> list[list[Any]]:
    """A row for each rule, the most frequent first, with its example below if it may have any characters."""
    counts: dict[str, Counter[str]] = {}
    for kind, rules in kinds.items():
        for rule, counted in rules.items():
            if rule:
                counts.setdefault(rule, Counter())[kind] = counted.edges
    rows = []
    for rule in sorted(counts, key=lambda rule: -counts[rule].total()):
        name = "  " + rule.replace(", ", ",\n  ")
        example = next(kinds[kind][rule].example for kind in kinds if rule in kinds[kind])
        below = f"\n    {_spelt(example, longest - 4)}" if example and longest else ""
        rows.append(_row(name + below, counts[rule]))
    return rows


def _row(name: str, counts: Mapping[str, int]) -> list[Any]:
    return [name, *(counts.get(kind) or "" for kind in CHANGES)]


def _spelt(example: Example, longest: int) -> str:
    """An example in one line: before, an arrow, and after, in equal parts of the characters."""
    edges = [edge for edge in (example.before, example.after) if edge]
    room = (longest - 3 * (len(edges) - 1)) // len(edges)
    return " → ".join(_shortened(" => ".join(" ".join(text.split()) for text in edge), room) for edge in edges)


def _shortened(text: str, longest: int) -> str:
    """A text without its middle if it is too long, because edges differ where they begin and end."""
    half = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"
