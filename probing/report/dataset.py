"""The labels of a dataset: their statistics, as tables, files and the paper's Figure 3; and those
of one config, or of two of one language side by side, as a page on one function or a table of
differences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datasets

from codesyntax_dataset import annotate, compare, corpus, paper
from codesyntax_dataset.arguments import StrPath, checked
from codesyntax_dataset.card import left_out
from codesyntax_dataset.compare import CHANGES, Comparison
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import LANGUAGES, language_of, variant_of
from codesyntax_dataset.languages.tables.constructs import CHILDREN
from codesyntax_dataset.schema import Annotation, Skips, Token
from codesyntax_dataset.sources import SAMPLE
from codesyntax_dataset.statistics import Distribution, Statistics, statistics
from probing.report import figures, specs
from probing.report.document import Part, Table
from probing.report.pages import Page, config_for, lines_of, page, relations_of, shown
from probing.runs.data import load_functions
from probing.runs.progress import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ------------------------------------------------------------------------------------------- a page


@checked
def show_labels(
    code: StrPath | None = None,
    *,
    id: int | None = None,
    data: Any = "codesyntax",
    configs: Sequence[str] = (),
    split: str = "test",
    relation: str | None = None,
) -> Page:
    """Draw the edges of a function from head to dependent: its labels in one config, or in two.

    With two configs of a language, their edges stand side by side; each is marked as kept, moved,
    new or gone (`codesyntax_dataset.compare`).

    Args:
        code: the function: text, or the path of a file.
        id: instead of `code`, the id of a function in a split of `data`, with its labels there in
            the first config.
        data: where `id` is looked up: a folder that `codesyntax build` wrote, a dataset id on the
            Hub, or a loaded `DatasetDict`.
        configs: one, or two of a language; by default that of the file's name, else Python's.
        split: of `data`, `test` or `validation`.
        relation: the one to open with; by default the first in alphabetical order of those that
            differ, or of all.

    Returns:
        A self-contained page, which notebooks display; `save` writes it.

    Raises:
        ParseError: code that does not parse; it has line and column.
        SourceError: a file that cannot be read.
        DatasetError: an unknown id, or data that cannot be read.
        UnknownName: an unknown config, split or relation.
        ArgumentError: two configs of which one is of another language, of a treebank, or of edited
            functions.

    Examples:
        >>> import probing
        >>> page = probing.show_labels("def f(x):\\n    return len(x)\\n")
        >>> page.title
        'Labels of the given code'
    """
    if len(names := list(dict.fromkeys(configs)) or [config_for(code, None)]) > 2:
        raise ArgumentError(f"configs are {', '.join(names)}, expected one, or two of one language")
    if len(names) == 2:
        compare.two_of_one_language(names)
    function = shown(code, id, data, names[0], split)
    spans = zip(function.start.tolist(), function.end.tolist())
    tokens = [Token(function.code[start:end], start, end) for start, end in spans]
    labels = [Annotation(tokens, function.edges)]
    labels += [
        annotate(function.code, language_of(name).name, variant_of(name).name) for name in names[1:]
    ]
    every = [edge for labelled in labels for edge in labelled.edges]
    relations = relations_of(function.name, every, relation)
    edges = _edges_of_configs(labels)
    differs = {edge["relation"] for edge in edges if edge["kind"] != CHANGES[0]}
    by_interest = sorted(relations, key=lambda name: (name not in differs, name == CHILDREN))
    title = f"Labels of {function.name}"
    return page(
        "labels",
        title,
        title,
        f"({' and '.join(names)})",
        signs=list(zip(CHANGES, "=~+−")),  # which can be told without colours
        configs=[
            {
                "name": name,
                "lines": lines_of(function.code, *tuple(zip(*labelled.tokens))[1:]),
                "edges": [edge[1:] for edge in labelled.edges],
            }
            for name, labelled in zip(names, labels)
        ],
        relations=relations,
        edges=edges,
        opened=relation or by_interest[0],
    )


def _edges_of_configs(labels: Sequence[Annotation]) -> list[dict[str, object]]:
    """The edges of all configs: their relation, what became of them, and their index in each
    config."""
    if len(labels) == 1:
        return [
            {"relation": edge.relation, "kind": CHANGES[0], "at": [index]}
            for index, edge in enumerate(labels[0].edges)
        ]
    return [
        {"relation": change.place.relation, "kind": change.kind, "at": change.edges}
        for change in sorted(compare.changes(*labels), key=lambda change: change.place[1:])
    ]


# ------------------------------------------------------------------------------------------ a table

_LONGEST = 60
"""The most characters of a part of an example."""


@checked
def compare_labels(
    configs: Sequence[str], *, source: str | None = None, data: Any = None
) -> Comparison:
    """Compare two configs of a language on all functions of a source, or on those of a dataset's
    test split; both label the code again.

    Args:
        configs: two of one language, labelled by rules, such as `python` and `python_exact`.
        source: where the code comes from, as `codesyntax build --source` takes it: by default the
            embedded sample.
        data: instead of a source, a dataset with the first config: a folder, a dataset id, or a
            loaded `DatasetDict`.

    Returns:
        How many `functions` have labels in both or one of the configs, and of each relation how
        many edges are kept, moved, new or gone.

    Raises:
        UnknownName: an unknown config.
        ArgumentError: not two configs of one language, or both a source and a dataset.
        SourceError: a source that cannot be read.
        DatasetError: a dataset that cannot be read.

    Examples:
        >>> import probing
        >>> comparison = probing.compare_labels(["python", "python_exact"])
        >>> sorted(comparison.total)
        ['gone', 'kept', 'moved', 'new']
    """
    if source is not None and data is not None:
        raise ArgumentError(
            "expected functions of a source or of a dataset, got both: leave one of the two out"
        )
    if data is None:
        functions = list(corpus.read(source or SAMPLE, configs[0], Skips()))
        functions.sort(key=attrgetter("partition"), reverse=True)
        codes = [function.code for function in functions]
    else:
        codes = load_functions(data, configs[0], "test")[0]["code"].to_pylist()
    unit = language_of(configs[0]).unit
    bar = progress(codes, desc=" and ".join(configs), unit=unit, leave=False)
    return compare.compare(bar, configs)


def comparison_parts(comparison: Comparison) -> list[Part]:
    """What becomes of the edges of each relation, with examples of those that differ."""
    first, second = comparison.configs
    units = LANGUAGES[comparison.language].units
    functions = comparison.functions
    rows = []
    for relation, kinds in comparison.relations.items():
        examples = [_spelt(kind, kinds[kind].example) for kind in CHANGES[1:]]
        lines = "\n  ".join([relation, *filter(None, examples)])
        rows.append([lines, *(kinds[kind].edges or "" for kind in CHANGES)])
    table = specs.table(
        "comparison",
        rows,
        totals=[["all relations", *(edges or "" for edges in comparison.total.values())]],
        first=first,
        second=second,
        functions=functions["both"],
        units=units,
        changes=CHANGES,
    )
    return [
        table,
        f"{units} with labels in {first} alone: {functions['first']:,}, in {second} alone: {functions['second']:,}, in "
        f"neither: {functions['neither']:,}",
    ]


def _spelt(kind: str, example: compare.Example | None) -> str:
    """An example: before, an arrow, and after; empty if there is none."""
    if example is None:
        return ""
    edges = filter(None, (example.before, example.after))
    return f"{kind}: {' → '.join(' => '.join(map(_shortened, edge)) for edge in edges)}"


def _shortened(text: str) -> str:
    """A text on one line, without its middle if it is long, because edges differ where they begin
    and end."""
    text = " ".join(text.split())
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"


# --------------------------------------------------------------------------------------- statistics


@dataclass(frozen=True)
class DatasetStatistics:
    """Statistics of some configs of a dataset, with the counted splits and the name of each
    config's dataset.

    `left_out`: what the dataset's card says about functions left out of a config, in any split;
    None if nothing.
    """

    names: dict[str, str]
    splits: list[str]
    configs: dict[str, Statistics]
    left_out: dict[str, str | None]

    def to_json(self) -> str:
        """Everything, with the paper's counts beside ours."""
        configs = {
            config: {
                "data": self.names[config],
                **counted.to_dict(),
                "left_out": self.left_out[config],
                "paper": {"functions": paper.functions(config), "edges": paper.edges(config)},
            }
            for config, counted in self.configs.items()
        }
        content = {"splits": self.splits, "configs": configs}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


@checked
def collect(data: Any, configs: Sequence[str], splits: Sequence[str]) -> DatasetStatistics:
    """Count some configs of a dataset, the splits of each together; `data` and errors are as in
    `load_functions`."""
    card = Path(data, "README.md") if isinstance(data, StrPath) else None
    text = card.read_text(encoding="utf-8", errors="replace") if card and card.is_file() else ""
    names, counted, omissions = {}, {}, {}
    for config in configs:
        loaded = [load_functions(data, config, split) for split in splits]
        names[config] = loaded[0][1]
        counted[config] = statistics([datasets.Dataset(table) for table, _ in loaded])
        omissions[config] = left_out(text, config)
    return DatasetStatistics(names, list(splits), counted, omissions)


def statistics_parts(collected: DatasetStatistics) -> list[Part]:
    """For each config its relations, the paper's counts beside them, and the lengths of its
    functions."""
    parts: list[Part] = []
    for config, counted in collected.configs.items():
        name = f"{collected.names[config]}, {config}/{'+'.join(collected.splits)}"
        parts += [
            _statistics_of_relations(name, config, counted),
            _functions_counted(counted),
            f"functions without relations: {counted.without_relations:,}, of these without tokens: "
            f"{counted.without_tokens:,}",
        ]
        if omissions := collected.left_out[config]:
            parts.append(
                f"left out of all splits by `codesyntax build`, or kept without labels: {omissions}"
            )
        parts.append("")
    return parts


def _statistics_of_relations(name: str, config: str, counted: Statistics) -> Table:
    published = paper.edges(config)
    origin = "no counts for this config"
    if published:
        origin = f"Table 8, {paper.functions(config):,} functions"
    total = {
        "edges": sum(known.edges for known in counted.relations.values()),
        "functions": counted.functions - counted.without_relations,
        **dict.fromkeys(("offset", "dependent"), dict.fromkeys(Distribution._fields, "")),
        **dict.fromkeys(("mode", "mode_share"), ""),
    }
    edges = sum(published.values()) or None
    return specs.table(
        "statistics",
        [
            {"relation": name, "known": counted.relations.get(name), "paper": published.get(name)}
            for name in sorted({*counted.relations, *published})
        ],
        "relations",
        totals=[{"relation": "all relations", "known": total, "paper": edges}],
        name=name,
        counted=counted,
        units=language_of(config).units,
        origin=origin,
    )


def _functions_counted(counted: Statistics) -> Table:
    lengths = {
        "tokens of a function": counted.tokens,
        "characters of a function": counted.characters,
        "edges of a function": counted.edges,
        "tokens of a dependent": counted.dependent,
    }
    return specs.table(
        "lengths", [{"of": what, "lengths": numbers} for what, numbers in lengths.items()]
    )


def offsets_figure(configs: Mapping[str, Statistics]) -> Figure:
    """The number of relations by their mean offset from heads to dependents (Figure 3 of the
    paper), a panel for each config."""
    panels = {
        config: [relation.offset.mean for relation in counted.relations.values()]
        for config, counted in configs.items()
    }
    return figures.histograms(panels)
