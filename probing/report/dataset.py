"""The labels of a dataset: their statistics, as tables, files and the paper's Figure 3; and those
of one config, or of two of one language side by side, as a page on one function or a table of
differences."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from codesyntax_dataset import annotate, compare, corpus, paper
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import write
from codesyntax_dataset.card import left_out
from codesyntax_dataset.compare import CHANGES, Comparison
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import LANGUAGES, language_of, variant_of
from codesyntax_dataset.languages.tables.constructs import CHILDREN
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.schema import Annotation, Edge, Skips, Token
from codesyntax_dataset.sources import SAMPLE
from codesyntax_dataset.statistics import Distribution, RelationStatistics, Statistics, statistics
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.report import figures, specs
from probing.report.document import Table
from probing.report.pages import Page, Shown, lines_of, page, relations_of, shown
from probing.runs.data import load_functions
from probing.runs.progress import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """A page with the edges of a function, drawn from head to dependent: its labels in one config,
    or in two.

    With two configs of a language, their edges stand side by side; each is marked as kept, moved,
    new or gone (`codesyntax_dataset.compare`). The function is either `code` (text or the path of a
    file), or the one with this `id` in a split of `data`, with its labels there in the first
    config. `relation`: the one to open with, by default the first in alphabetical order of those
    that differ, or of all.

    Raises what `show` raises for functions, configs and relations; and ArgumentError for two
    configs of which one is of another language, of a treebank, or of edited functions.
    """
    if not 1 <= len(names := list(dict.fromkeys(configs))) <= 2:
        raise ArgumentError(
            f"configs are {', '.join(names) or 'none'}, expected one, or two of one language"
        )
    if len(names) == 2:
        compare.two_of_one_language(names)
    return page("Labels", [labels_case(shown(code, id, data, names[0], split), names, relation)])


def labels_case(
    function: Shown, configs: Sequence[str], relation: str | None = None
) -> dict[str, Any]:
    """The labels of a function in one config, or in two, as a case of a page; `relation`: the one
    to open with."""
    spans = zip(function.start.tolist(), function.end.tolist())
    tokens = [Token(function.code[start:end], start, end) for start, end in spans]
    labels = [Annotation(tokens, function.edges)]
    others = [(language_of(name).name, variant_of(name).name) for name in configs[1:]]
    labels += [annotate(function.code, *language_and_variant) for language_and_variant in others]
    every = [edge for labelled in labels for edge in labelled.edges]
    relations, edges = relations_of(function.name, every, relation), _edges_of_configs(labels)
    differs = {edge["relation"] for edge in edges if edge["kind"] != CHANGES[0]}
    by_interest = sorted(relations, key=lambda name: (name not in differs, name == CHILDREN))
    title = f"Labels of {function.name}"
    return {
        "kind": "labels",
        "title": title,
        "heading": title,
        "about": f"({' and '.join(configs)})",
        "signs": list(_KINDS.items()),
        "configs": [
            _config_labels(function, name, labelled) for name, labelled in zip(configs, labels)
        ],
        "relations": relations,
        "edges": edges,
        "opened": relation or by_interest[0],
    }


_KINDS = dict(zip(CHANGES, "=~+−"))
"""The sign of each change, which can be told without colours."""


def _config_labels(function: Shown, name: str, labels: Annotation) -> dict[str, object]:
    """The code and the edges of a config, each edge as its head and the first and the last token of
    its dependent."""
    _, start, end = zip(*labels.tokens)
    lines = lines_of(function.code, start, end)
    return {"name": name, "lines": lines, "edges": [edge[1:] for edge in labels.edges]}


def _edges_of_configs(labels: Sequence[Annotation]) -> list[dict[str, object]]:
    """The edges of all configs: their relation, what became of them, and their index in each
    config."""
    if len(labels) == 1:
        return [
            {"relation": edge.relation, "kind": CHANGES[0], "at": [index]}
            for index, edge in enumerate(labels[0].edges)
        ]
    first, second = labels
    return [
        {"relation": change.place.relation, "kind": change.kind, "at": change.edges}
        for change in sorted(compare.changes(first, second), key=lambda change: change.place[1:])
    ]


# ----------------------------------------------------------------------------------------------------------- a table

T = TypeVar("T")

_LONGEST = 60
"""The most characters of a part of an example."""


@checked
def compare_labels(
    configs: Sequence[str], *, source: str | None = None, data: Any = None
) -> Comparison:
    """Compare two configs of a language on all functions of a source, or on those of a dataset's
    test split.

    `source` is as in `codesyntax_dataset.build.build`, by default the embedded sample; `data`, as
    in `probe`, must have the first config. From there comes the code alone: both configs label it
    again. With one config, the labels that `data` has, perhaps of an earlier version of the rules,
    are compared with those of now.

    Raises UnknownName for an unknown config; ArgumentError unless there are two of one language,
    labelled by rules, or for both a source and a dataset; SourceError and DatasetError if these
    cannot be read.
    """
    if source is not None and data is not None:
        raise ArgumentError(
            "expected functions of a source or of a dataset, got both: leave one of the two out"
        )
    if data is not None and len(configs) == 1:
        rows, name = load_functions(data, configs[0], "test")
        version = name.rpartition("@")[2].rpartition(".")[0]
        return compare.compare_versions(
            map(_labelled_row, _with_progress(rows, configs)), configs[0], version
        )
    return compare.compare(_with_progress(_codes(configs, source, data), configs), configs)


def _codes(configs: Sequence[str], source: str | None, data: Any) -> Iterable[str]:
    if data is None:
        functions = corpus.read(source or SAMPLE, configs[0], Skips())
        return [
            function.code
            for function in sorted(functions, key=attrgetter("partition"), reverse=True)
        ]
    codes: list[str] = load_functions(data, configs[0], "test")[0]["code"][:]
    return codes


def _labelled_row(row: Mapping[str, Any]) -> tuple[str, Annotation]:
    code, places = row["code"], zip(row["token_start"], row["token_end"])
    return code, Annotation(
        [Token(code[start:end], start, end) for start, end in places],
        [Edge(**edge) for edge in row["relations"]],
    )


def _with_progress(functions: Iterable[T], configs: Sequence[str]) -> Iterator[T]:
    """The same, with a bar that says how many are done."""
    return iter(
        progress(
            functions, desc=" and ".join(configs), unit=language_of(configs[0]).unit, leave=False
        )
    )


def parts(comparison: Comparison) -> list[str | Table]:
    """What becomes of the edges of each relation, with examples of those that differ."""
    first, second = comparison.configs
    units, functions = LANGUAGES[comparison.language].units, comparison.functions
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
    text, half = " ".join(text.split()), _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"


# ----------------------------------------------------------------------------------------------------------- statistics

FAR_TOKENS = 10
"""Tokens from which on a mean offset is far (Shen et al. 2022, Figure 3); a bin of the figure
begins there."""

BINS = (-99, -49, -19, -9, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, FAR_TOKENS, 20, 50, 100)
"""Lower bounds of all bins of offsets in figures but the first; in code, edges do not point
backwards."""

MADE_BY = "codesyntax stats"
"""A value in `statistics.json` that marks the files beside it as replaceable."""

FILES = ("statistics.json", "offsets.svg")
"""The files that `save` writes, in this order."""

BINS_NAMED = (
    *("< −99", "−99…−50", "−49…−20", "−19…−10", "−9…−5", "−4", "−3", "−2", "−1", "0"),
    *("1", "2", "3", "4", "5-9", "10-19", "20-49", "50-99", "> 99"),
)


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
        content = {"made_by": MADE_BY, "splits": self.splits, "configs": configs}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


@checked
def collect(
    data: Any, configs: Sequence[str], splits: Sequence[str] = ("test",)
) -> DatasetStatistics:
    """Count some configs of a dataset, the splits of each together; `data` and errors are as in
    `load_functions`."""
    card = Path(data, "README.md") if isinstance(data, (str, os.PathLike)) else None
    text = card.read_text(encoding="utf-8", errors="replace") if card and card.is_file() else ""
    names, counted, omissions = {}, {}, {}
    for config in configs:
        loaded = [load_functions(data, config, split) for split in splits]
        names[config] = loaded[0][1]
        counted[config] = statistics([dataset for dataset, _ in loaded])
        omissions[config] = left_out(text, config)
    return DatasetStatistics(names, list(splits), counted, omissions)


def statistics_parts(collected: DatasetStatistics) -> list[str | Table]:
    """For each config its relations, the paper's counts beside them, and the lengths of its
    functions."""
    parts: list[str | Table] = []
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
        _relations_counted(config, counted),
        "relations",
        totals=[{"relation": "all relations", "known": total, "paper": edges}],
        name=name,
        counted=counted,
        units=language_of(config).units,
        origin=origin,
    )


def _relations_counted(config: str, counted: Statistics) -> list[dict[str, Any]]:
    """The relations that occur or were published, sorted by name."""
    published = paper.edges(config)
    return [
        {"relation": name, "known": counted.relations.get(name), "paper": published.get(name)}
        for name in sorted({*counted.relations, *published})
    ]


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
    paper), with those in the mean distinguished, one column per config. A line marks the offset
    `FAR_TOKENS`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(configs), 3.2), layout="constrained", dpi=150)
    axes = figure.subplots(1, len(configs), squeeze=False)
    for axis, (config, counted) in zip(axes[0], configs.items()):
        _draw_mean_offsets(axis, counted.relations)
        axis.set_title(f"{config}: relations by their mean offset", fontsize=9, loc="left", pad=28)
    return figure


def _draw_mean_offsets(axis: Any, relations: Mapping[str, RelationStatistics]) -> None:
    """How many relations have a mean offset in each bin, from the first that any needs."""
    bins, labels = [], []
    for words, inside in (("in the mean", True), ("not in the mean", False)):
        means = [
            known.offset.mean
            for name, known in relations.items()
            if (name not in NOT_IN_MEAN) == inside
        ]
        far = sum(mean >= FAR_TOKENS for mean in means)
        bins.append(np.digitize(means, BINS))
        labels.append(f"{words}: {far} of {len(means)} at {FAR_TOKENS} or more")
    first = min([BINS_NAMED.index("1"), *np.concatenate(bins)])
    shown = range(first, len(BINS_NAMED))
    edges, colours = np.append(shown, len(BINS_NAMED)) - 0.5, ["#4477aa", "#aabbcc"]
    axis.hist(bins, edges, stacked=True, rwidth=0.9, color=colours, label=labels)
    axis.axvline(BINS_NAMED.index("10-19") - 0.5, color=figures.INK, linestyle="--", linewidth=0.8)
    axis.set_xticks(shown, BINS_NAMED[first:], fontsize=7)
    axis.set_xlabel("offset: tokens from the head to the dependent", fontsize=8)
    axis.set_ylabel("relations", fontsize=8)
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize=7, loc="lower left", bbox_to_anchor=(-0.02, 0.97), labelspacing=0.2)


def save(collected: DatasetStatistics, folder: str | os.PathLike) -> list[Path]:
    """Write `statistics.json` and the figure as SVG into `folder`; return their paths.

    Files of an earlier call are replaced. Raises LedgerError if one of these files exists but was
    not made by `save`.
    """
    folder = Path(folder)
    check_owned(folder, "stats", (FILES[0], f'"made_by": "{MADE_BY}"'), only=FILES)
    with figures.style():
        svg = figures.to_svg(offsets_figure(collected.configs))
    contents = [collected.to_json(), svg]
    return [write(folder / file, content) for file, content in zip(FILES, contents, strict=True)]
