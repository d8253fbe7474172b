"""The paper's figures, drawn again with the paper's numbers where its tables have them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.attention.ledger import RankLedger
from probing.models.load import load
from probing.paper.cells import HeadExample, Made, Measured
from probing.paper.inputs import CODE, CONFIGS, NATURAL, Model
from probing.report import figures
from probing.report.dataset import FAR, offsets_figure
from probing.report.document import Column, Figure, Section, Table
from probing.report.figures import COLOURS, FAINT, INK, Bars, Line, Predicted
from probing.report.kinds import COUNT, PERCENT
from probing.report.pages import shown
from probing.report.scored import line
from probing.report.show import attention_over
from probing.runs.data import load_functions

TOKENS = (10, 60)
"""The least and the most tokens of a function that is drawn."""


class Curves(NamedTuple):
    """The panels of a figure of curves: a row for each rule, a column for each config."""

    title: str
    rules: tuple[str, ...]
    configs: tuple[str, ...]


_NEW_LINES = ("python_with_new_lines", "java_with_new_lines")

CURVES = {
    4: Curves("Code, first token of the dependent", ("first",), CODE),
    6: Curves("Code, any token of the dependent", ("any",), CODE),
    7: Curves("English", ("first",), ("english",)),
    8: Curves("German", ("first",), ("german",)),
    16: Curves("Code, last token of the dependent", ("last",), CODE),
    17: Curves("Line breaks as tokens, last token of the dependent", ("last",), _NEW_LINES),
    18: Curves("Line breaks as tokens, any token of the dependent", ("any",), _NEW_LINES),
    19: Curves("Java without semicolons", ("last", "any"), ("java_skip_semicolon",)),
}
"""Number of a figure in the paper -> what it shows. The order among 16 to 19 is ours."""

_STYLES = {"Offset": "--", "Keyword": ":", "Combined": "-"}


def sections(made: Made) -> list[Section]:
    """Figures 2 to 8 and 16 to 19 of the paper, each in a section, with the reason for what is empty."""
    curves = {number: _curves(made, number) for number in CURVES}
    first = curves.pop(min(curves))
    return [_preview(made), _offsets(made), first, _attention(made), *curves.values()]


def _preview(made: Made) -> Section:
    """Figure 2: the best model and the best baseline of each language, k = 1."""
    configs = list(CONFIGS)
    panels: dict[str, list[Bars]] = {"here": [], "paper": []}
    rows = []
    for where, bars in panels.items():
        for kind, colour in (("best model", COLOURS[0]), ("best baseline", FAINT)):
            best = [_best(made, config, where == "here", kind == "best baseline") for config in configs]
            scores = np.array([[score, np.nan, np.nan] for _, score in best], float).T
            bars.append(Bars(kind, scores, colour, [name for name, _ in best]))
            rows += [[config, where, kind, name, score] for config, (name, score) in zip(configs, best)]
    titles = [LANGUAGES[config].title for config in configs]
    columns = [Column("language"), Column("where"), Column("kind"), Column("name"), Column("score", PERCENT)]
    drawn = Figure(
        "figure-2",
        "The best model and the best baseline, by the names at the bars: top-1 UAS, first token, mean over relations.",
        "Bars of the scores; the numbers are in the CSV file of the same name.",
        "figure-2",
        lambda: figures.bars(titles, panels),
    )
    return _section(2, "Code and natural language", [drawn, *_reasons(made, configs)], columns, rows)


def _section(
    number: int, title: str, parts: Sequence[str | Figure], columns: Sequence[Column], rows: list[list[Any]]
) -> Section:
    """A figure of the paper, and the table of its numbers if that has columns."""
    name = f"figure-{number}"
    drawn = [Table(name, "", columns, rows)] if columns else []
    return Section(name, f"Figure {number}. {title}", parts, drawn=drawn)


def _best(made: Made, config: str, here: bool, baselines: bool) -> tuple[str, float]:
    """The name and the score of the best model or baseline; NaN if there is none."""
    scores: list[tuple[str, float]] = []
    for name in made.names(config):
        if (name in _STYLES) == baselines:
            theirs = paper.scores(config, "first").get(name, {})
            score = (made.scores(config, name, "first")["scores"] if here else theirs).get("1")
            scores += [] if score is None else [(name, score)]
    return max(scores, key=lambda one: one[1], default=("", np.nan))


def _offsets(made: Made) -> Section:
    """Figure 3: the mean offset of each relation, and the offsets of its edges."""
    parts: list[str | Figure] = []
    rows = []
    for kind, configs in (("code", CODE), ("natural language", NATURAL)):
        counted = {config: made.counted[config] for config in configs if config in made.counted}
        for config, statistics in counted.items():
            rows += [[config, name, one.edges, one.offset.mean] for name, one in statistics.relations.items()]
        if counted:
            name = f"figure-3-{kind.replace(' ', '-')}"
            parts.append(
                Figure(
                    name,
                    f"Relations of {kind} by their mean offset, from the head to the dependent, and the offsets of the "
                    f"edges of each, in all splits; the line is at {FAR} tokens.",
                    "Histograms of relations and of edges by offset; the mean offsets are in the CSV file.",
                    "figure-3",
                    partial(offsets_figure, counted),
                )
            )
    columns = [Column("config"), Column("relation"), Column("edges", COUNT), Column("mean offset", PERCENT)]
    parts += _reasons(made, list(CONFIGS))
    return _section(3, "Offsets", parts, columns, rows)


def _attention(made: Made) -> Section:
    """Figure 5: the predictions of a head in one function of each language of code."""
    parts: list[str | Figure] = []
    rows: list[list[Any]] = []
    for config in CODE:
        if config in made.examples:
            figure, edges = made.examples[config]
            parts.append(figure)
            rows += edges
        else:
            reason = made.inputs.missing.get(config) or "no model, or no function that is short enough"
            parts.append(f"Empty: {config} ({reason}).")
    columns = [Column("config"), Column("relation")]
    for name in ("read", "sought", "predicted"):
        columns += [Column(f"token {name}", COUNT), Column(name)]
    return _section(5, "Attention in single functions", parts, columns, rows)


def _curves(made: Made, number: int) -> Section:
    title, rules, configs = CURVES[number]
    name = f"figure-{number}"
    known = [config for config in configs if config in made.measured]
    reasons = _reasons(made, configs)
    if not known:
        return _section(number, title, reasons, [], [])
    panels = {rule: {config: _lines(made, config, rule) for config in known} for rule in rules}
    rows = []
    for rule in rules:
        for config in known:
            for one in made.names(config):
                ours, theirs = made.scores(config, one, rule), paper.scores(config, rule).get(one, {})
                rows += [[rule, config, one, k, ours["scores"].get(str(k)), theirs.get(str(k))] for k in KS]
    columns = [Column("rule"), Column("config"), Column("name"), Column("k", COUNT)]
    columns += [Column("here", PERCENT), Column("paper", PERCENT)]
    published = any(paper.scores(config, rule) for config in known for rule in rules)
    drawn = Figure(
        name,
        "Mean top-k UAS over k." + " Circles are the paper's numbers." * published,
        "Curves of the mean score over k from 1 to 20; the numbers are in the CSV file of the same name.",
        name,
        lambda: figures.curves(panels),
    )
    return _section(number, title, [drawn, *reasons], columns, rows)


def _lines(made: Made, config: str, rule: str) -> list[Line]:
    """Our curves, and as circles the paper's numbers of the same, and of the first model in its table."""
    curves, circles = [], []
    published = paper.scores(config, rule)
    models = [name for name in made.names(config) if name not in _STYLES]
    colours = dict(zip([name for name in models if made.scores(config, name, rule)["scores"]], cycle(COLOURS)))
    for name in made.names(config):
        colour = INK if name in _STYLES else colours.get(name, FAINT)
        if ours := made.scores(config, name, rule)["scores"]:
            curves.append(Line(name, line({rule: ours}, rule), colour, _STYLES.get(name, "-")))
        if name in published and (ours or name == models[0]):
            circles.append(Line(f"{name} (paper)", line({rule: published[name]}, rule), colour, points=True))
    return curves + circles


def _reasons(made: Made, configs: Sequence[str]) -> list[str]:
    """Why some of the configs are not in a figure, in words."""
    missing = made.inputs.missing
    empty = [f"{config} ({missing[config]})" for config in configs if config in missing]
    return [f"Empty: {', '.join(empty)}."] if empty else []


def example(model: Model, data: Path, measured: Measured, ledger: Path, device: str | None) -> HeadExample | None:
    """What the best head of a relation predicts in one function: for the relation in which a model gains most on the
    best offset, in the function with most of its edges, of equals the first; None if no function has any and as many
    tokens as TOKENS says.

    `data`: the dataset; `ledger`: the file with the model's ranks. The model runs on this function.
    """
    ranks, config = RankLedger.open(ledger), measured.config
    ours, offset = (
        scores["first"]["relations"] for scores in (measured.models[model.name], measured.baselines["offset"])
    )
    gains = {name: one["1"]["score"] - offset[name]["1"]["score"] for name, one in ours.items() if one["in_mean"]}
    fitting = (ranks.tokens >= TOKENS[0]) & (ranks.tokens <= TOKENS[1])
    for relation in sorted(gains, key=lambda name: (-gains[name], name)):
        places = ranks.function[fitting & (ranks.relation == ranks.relations.index(relation))]
        if len(places):
            break
    else:
        return None
    best, (dataset, _) = ours[relation]["1"], load_functions(data, config, "test")
    one = shown(None, dataset[int(np.bincount(places).argmax())]["id"], data, config, "test")
    attention = attention_over(load(model.given, device=device), one, config)
    read = {token: row for row, token in enumerate(attention.readers.tolist())}
    layer, head = best["layer"], best["head"]
    first = attention.tokens[layer, head, :, 0]
    texts = [one.code[start:end] for start, end in zip(one.start.tolist(), one.end.tolist())]
    edges, rows = [], []
    for edge in one.edges:
        if edge.relation == relation:
            ends = edge.head, edge.first
            reader, sought = ends if attention.direction == HEAD_TO_DEPENDENT else ends[::-1]
            edges.append(Predicted(reader, sought, int(first[read[reader]]) if reader in read else None))
            cells = [(place, None if place is None else texts[place]) for place in edges[-1]]
            rows.append([config, relation, *chain(*cells)])
    drawn = Figure(
        f"figure-5-{config}",
        f"{relation} in {one.name}: what head {layer}-{head} of {model.name} attends to most. It is the best of this "
        f"relation, and finds {best['score']:.1f} % over all functions. Of the relations in functions "
        "that are short enough, it is the one in which the model gains most on the best offset.",
        "Lines between two copies of a function's tokens; the edges are in the CSV file.",
        "figure-5",
        partial(figures.predictions, texts, edges),
    )
    return HeadExample(drawn, rows)
