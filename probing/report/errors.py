"""The error analysis of a result as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from probing.attention.error_classes import CLASSES, PLACES
from probing.attention.errors import ErrorAnalysis, ErrorExample
from probing.report.document import CODE, COUNT, NAME, PERCENT, SHORT, Column, Table

_MARKS = {"head": ("«", "»"), "dependent": ("⟦", "⟧"), "chosen": ("✗", "✗")}


def parts(analysis: ErrorAnalysis, rule: str) -> list[str | Table]:
    """The share of each class and place in the wrong first choices of each relation, and an example per class."""
    counts = {name: errors for name, errors in analysis.classes(rule).items() if errors}
    by_class = {
        name: {kind: errors["errors"] for kind, errors in entry["classes"].items()}
        for name, entry in analysis.rules[rule].items()
    }
    by_place = {name: analysis.places(rule, name) for name in analysis.rules[rule]}
    rarest_first = {name: rank for rank, name in enumerate(sorted(counts, key=lambda name: counts[name]), 1)}
    classes = [Column(name, PERCENT, spare=(rarest_first[name],)) for name in counts]
    places = [Column("\n".join(name.split(" the ")), PERCENT) for name in PLACES]
    differing = analysis.differing[rule]
    text = f"rounding changed {differing} edges: this run hits them and the ledger does not, or the reverse"
    return [
        _shares(analysis, rule, counts, classes, by_class, "what"),
        _shares(analysis, rule, PLACES, places, by_place, "where, relative to the edge, is what", (1, 2)),
        _examples(analysis, rule),
        analysis.signature,
        *([text] if differing else []),
    ]


def _shares(
    analysis: ErrorAnalysis,
    rule: str,
    kinds: Iterable[str],
    columns: Sequence[Column],
    counts: Mapping[str, Mapping[str, int]],
    question: str,
    spare: tuple[int, int] = (0, 0),
) -> Table:
    """The share of each kind among the errors of each relation, from `counts`: relation -> kind -> errors.

    `spare`: of the columns edges and best head.
    """
    settings, relations, kinds = analysis.settings, analysis.rules[rule], list(kinds)
    rows = []
    for name, entry in sorted(relations.items(), key=lambda item: (-item[1]["errors"], item[0])):
        shares = [_percent(counts[name].get(kind, 0), entry["errors"]) for kind in kinds]
        rows.append([name, entry["edges"], entry["errors"], f"{entry['layer']}-{entry['head']}", *shares])
    edges, errors = (sum(entry[name] for entry in relations.values()) for name in ("edges", "errors"))
    pooled = [_percent(sum(errors_of.get(kind, 0) for errors_of in counts.values()), errors) for kind in kinds]
    totals: list[list[Any]] = [["all relations", edges, errors, "", *pooled]]
    wrong = {name: entry["errors"] for name, entry in relations.items() if entry["errors"]}
    if wrong:
        means = [mean(100 * counts[name].get(kind, 0) / wrong[name] for name in wrong) for kind in kinds]
        totals.append(["mean of relations", "", "", "", *means])
    return Table(
        "errors",
        f"{settings.model} on {settings.data}, {settings.config}/{settings.split}: {question} the best head "
        f"ranks first where it is wrong, in percent of its errors, {rule} token of the dependent",
        [
            Column("relation", NAME),
            Column("edges", COUNT, spare=spare[:1]),
            Column("errors", COUNT),
            Column("best head", SHORT, spare=spare[1:]),
            *columns,
        ],
        rows,
        "best head: layer-head at k = 1, counted from 0. All relations with errors weigh the same in the mean.",
        totals=totals,
    )


def _percent(count: int, total: int) -> float | None:
    return 100 * count / total if count else None


def _examples(analysis: ErrorAnalysis, rule: str) -> Table:
    """For each class, the first example from the relation with the most errors of that class."""
    rows = []
    for kind in CLASSES:
        having = [
            (-entry["classes"][kind]["errors"], name)
            for name, entry in analysis.rules[rule].items()
            if kind in entry["classes"]
        ]
        if having:
            _, relation = min(having)
            example = analysis.rules[rule][relation]["classes"][kind]["examples"][0]
            rows.append([kind, relation, str(example["function"]), marked(example)])
    return Table(
        "error-examples",
        "an example of each class: «head» token, ⟦token⟧ of the dependent that counts by the rule, ✗wrong choice✗",
        [
            Column("class", NAME),
            Column("relation", NAME, spare=(2,)),
            Column("function", NAME, spare=(1,)),
            Column("code", CODE),
        ],
        rows,
    )


def marked(example: ErrorExample) -> str:
    """The lines of an example with their numbers, and its tokens between marks."""
    lines = dict(example["lines"])
    places = [(example[name], marks) for name, marks in _MARKS.items() if example[name]]
    for (line, start, end), (before, behind) in sorted(places, reverse=True):  # from the right, so that columns stay
        code = lines[str(line)]
        lines[str(line)] = code[:start] + before + code[start:end] + behind + code[end:]
    return "\n".join(f"{line}: {code.strip()}" for line, code in lines.items())
