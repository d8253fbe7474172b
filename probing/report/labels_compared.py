"""Two label variants of a language side by side, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from codesyntax_dataset import corpus
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.compare import CHANGES, Comparison, Counted, Example, compare, compare_versions
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import LANGUAGES, language_of
from codesyntax_dataset.schema import Annotation, Edge, Skips, Token
from codesyntax_dataset.sources import SAMPLE
from probing.report.document import CODE, COUNT, Column, Table
from probing.runs.data import load_functions
from probing.runs.progress import progress

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
        return compare_versions(map(_labelled, _shown(rows, configs)), configs[0], version)
    return compare(_shown(_codes(configs, source, data), configs), configs)


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


def _shown(functions: Iterable[T], configs: Sequence[str]) -> Iterator[T]:
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
