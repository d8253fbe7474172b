"""Two label variants of a language beside each other, as a table in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from rich.markup import escape
from rich.table import Table

from codesyntax_dataset import corpus
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.compare import CHANGES, Comparison, Counted, Example, compare
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import SAMPLE
from probing.report.terminal import console, print_table, table
from probing.runs.data import load_functions
from probing.runs.progress import progress

_NUMBERS, _LONGEST = 38, 100
"""Characters that the columns of numbers take, and the most that an example takes."""


@checked
def compare_labels(configs: Sequence[str], *, source: str | None = None, data: Any = None) -> Comparison:
    """Compare two configs of a language on all functions of a source, or on those of a dataset's test split.

    `source` is as in `codesyntax_dataset.build.build`, by default the embedded sample; `data`, as in `probe`, must have
    the first config. From there comes the code alone: both configs label it again.

    Raises UnknownName for an unknown config; ArgumentError unless there are two of one language, labelled by rules, or
    for both a source and a dataset; SourceError and DatasetError if these cannot be read.
    """
    if source is not None and data is not None:
        raise ArgumentError("expected functions of a source or of a dataset, got both: leave one of the two out")
    return compare(_codes(configs, source, data), configs)


def _codes(configs: Sequence[str], source: str | None, data: Any) -> Iterator[str]:
    if data is None:
        functions = corpus.read(source or SAMPLE, configs[0], Skips())
        codes = [function.code for function in sorted(functions, key=attrgetter("partition"), reverse=True)]
    else:
        codes = load_functions(data, configs[0], "test")[0]["code"][:]
    yield from progress(codes, desc=" and ".join(configs), unit=language_of(configs[0]).unit, leave=False)


def print_comparison(comparison: Comparison, wide: bool = False) -> None:
    """Print what becomes of the edges of each relation, and the rules that explain it, with an example of each."""
    out, (first, second) = console(wide), comparison.configs
    units, functions = language_of(first).units, comparison.functions
    shown = table(
        f"From {first} to {second}: the edges of {functions['both']:,} {units}",
        caption=f"moved: both have the edge, with another head or span; new: only {second}; gone: only {first}. Below "
        "each rule an example, head => dependent. At the ends of a dependent, blank tokens and those that the other "
        "config does not have do not count.",
    )
    shown.add_column("relation, rule, example", no_wrap=True)
    for kind in CHANGES:
        shown.add_column(kind, justify="right")
    longest = min(out.width - _NUMBERS, _LONGEST)
    for relation, kinds in comparison.relations.items():
        shown.add_row(relation, *_numbers({kind: comparison.edges(kind, relation) for kind in CHANGES}), style="bold")
        _add_rules(shown, kinds, longest)
    shown.add_section()
    shown.add_row("all relations", *_numbers({kind: comparison.edges(kind) for kind in CHANGES}), style="bold")
    _add_rules(shown, comparison.total, 0)
    print_table(out, shown)
    out.print(
        f"{units} with labels in {first} alone: {functions['first']:,}, in {second} alone: {functions['second']:,}, in "
        f"neither: {functions['neither']:,}",
        markup=False,
    )


def _add_rules(shown: Table, kinds: Mapping[str, Mapping[str, Counted]], longest: int) -> None:
    """A row for each rule, the most frequent first, and its example, if it may have any characters."""
    counts: dict[str, Counter[str]] = {}
    for kind, rules in kinds.items():
        for rule, counted in rules.items():
            if rule:
                counts.setdefault(rule, Counter())[kind] = counted.edges
    for rule in sorted(counts, key=lambda rule: -counts[rule].total()):
        shown.add_row("  " + rule.replace(", ", ",\n  "), *_numbers(counts[rule]))
        example = next(kinds[kind][rule].example for kind in kinds if rule in kinds[kind])
        if example and longest:
            shown.add_row(escape("    " + _spelt(example, longest - 4)), style="dim")


def _numbers(counts: Mapping[str, int]) -> list[str]:
    return [f"{counts[kind]:,}" if counts.get(kind) else "" for kind in CHANGES]


def _spelt(example: Example, longest: int) -> str:
    """An example in one line: before, an arrow, and after, in equal parts of the characters."""
    edges = [edge for edge in (example.before, example.after) if edge]
    room = (longest - 3 * (len(edges) - 1)) // len(edges)
    return " → ".join(_shortened(" => ".join(" ".join(text.split()) for text in edge), room) for edge in edges)


def _shortened(text: str, longest: int) -> str:
    """A text without its middle if it is too long, because edges differ where they begin and end."""
    half = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"
