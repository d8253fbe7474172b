"""The error analysis of a result as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from rich.table import Table
from rich.text import Text

from probing.attention.error_classes import CLASSES, PLACES
from probing.attention.errors import ErrorAnalysis
from probing.report.terminal import console, print_table, table

_CLASSES_FROM = 4
"""The first column of a class, after relation, edges, errors and best head."""

_MARKS = {"head": ("«", "»"), "dependent": ("⟦", "⟧"), "chosen": ("✗", "✗")}


def print_errors(analysis: ErrorAnalysis, rule: str, wide: bool = False) -> None:
    """Print the share of each class and place in the wrong first choices of each relation, and an example per class."""
    out = console(wide)
    counts = analysis.classes(rule)
    classes = [name for name, errors in counts.items() if errors]
    rarest_first = sorted(range(len(classes)), key=lambda place: counts[classes[place]])
    by_class = {
        name: {kind: errors["errors"] for kind, errors in entry["classes"].items()}
        for name, entry in analysis.rules[rule].items()
    }
    by_place = {name: analysis.places(rule, name) for name in analysis.rules[rule]}
    spare = [_CLASSES_FROM + place for place in rarest_first]
    print_table(out, _shares(analysis, rule, classes, by_class, "what"), spare=spare)
    print_table(out, _shares(analysis, rule, PLACES, by_place, "where, relative to the edge, is what"), spare=[1, 3])
    print_table(out, _examples(analysis, rule), spare=[2, 1])
    out.print(analysis.signature, soft_wrap=True, highlight=False)
    if differing := analysis.differing[rule]:
        out.print(f"{differing} edges are hit in this run but not in the ledger, or the reverse, due to rounding")


def _shares(
    analysis: ErrorAnalysis, rule: str, columns: Sequence[str], counts: Mapping[str, Mapping[str, int]], asked: str
) -> Table:
    """The share of each of `columns` among the errors of each relation, from `counts`: relation -> column -> errors."""
    settings, relations = analysis.settings, analysis.rules[rule]
    shown = table(
        f"{settings.model} on {settings.data}, {settings.config}/{settings.split}: {asked} the best head "
        f"ranks first where it is wrong, in percent of its errors, {rule} token of the dependent",
        caption="best head: layer-head at k = 1, counted from 0. In the mean all relations with errors weigh the same.",
    )
    shown.add_column("relation", no_wrap=True)
    for name in ("edges", "errors", "best head", *columns):
        shown.add_column("\n".join(name.split(" the ")), justify="right")
    for name, entry in sorted(relations.items(), key=lambda item: (-item[1]["errors"], item[0])):
        shares = [_percent(counts[name].get(column, 0), entry["errors"]) for column in columns]
        shown.add_row(name, str(entry["edges"]), str(entry["errors"]), f"{entry['layer']}-{entry['head']}", *shares)
    edges, errors = (sum(entry[name] for entry in relations.values()) for name in ("edges", "errors"))
    pooled = [_percent(sum(errors_of.get(column, 0) for errors_of in counts.values()), errors) for column in columns]
    shown.add_section()
    shown.add_row("all relations", str(edges), str(errors), "", *pooled, style="bold")
    wrong = {name: entry["errors"] for name, entry in relations.items() if entry["errors"]}
    if wrong:
        means = [mean(100 * counts[name].get(column, 0) / wrong[name] for name in wrong) for column in columns]
        shown.add_row("mean of relations", "", "", "", *(f"{share:.1f}" for share in means), style="bold")
    return shown


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f}" if count else "-"


def _examples(analysis: ErrorAnalysis, rule: str) -> Table:
    """For each class, the first example from the relation with the most errors of that class."""
    shown = table(
        "an example of each class: «head» token, ⟦token⟧ of the dependent that counts by the rule, ✗wrong choice✗",
    )
    for name in ("class", "relation", "function"):
        shown.add_column(name, no_wrap=True)
    shown.add_column("code", min_width=40)
    for kind in CLASSES:
        having = [
            (-entry["classes"][kind]["errors"], name)
            for name, entry in analysis.rules[rule].items()
            if kind in entry["classes"]
        ]
        if having:
            _, relation = min(having)
            example = analysis.rules[rule][relation]["classes"][kind]["examples"][0]
            shown.add_row(kind, relation, str(example["function"]), Text(marked(example)))
    return shown


def marked(example: dict[str, Any]) -> str:
    """The lines of an example with their numbers, and its tokens between marks."""
    lines = dict(example["lines"])
    places = [(example[name], marks) for name, marks in _MARKS.items() if example[name]]
    for (line, start, end), (before, behind) in sorted(places, reverse=True):  # from the right, so that columns stay
        code = lines[str(line)]
        lines[str(line)] = code[:start] + before + code[start:end] + behind + code[end:]
    return "\n".join(f"{line}: {code.strip()}" for line, code in lines.items())
