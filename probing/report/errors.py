"""The error analysis of a result as tables."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from codesyntax_metric.topk_uas import RULES
from probing.attention.errors import CLASSES, PLACES, ErrorAnalysis, ErrorExample, RelationErrors
from probing.report.document import CODE, COUNT, NAME, PERCENT, SHORT, Column, Table
from probing.report.findings import Findings, Subject
from probing.report.scored import RULE

_MARKS = {"head": ("«", "»"), "dependent": ("⟦", "⟧"), "chosen": ("✗", "✗")}
_MARKED = "«head» token, ⟦token⟧ of the dependent that counts by the rule, ✗wrong choice✗"


def parts(analysis: ErrorAnalysis, rule: str) -> list[str | Table]:
    """The share of each class and place in the wrong first choices of each relation, and an example per class."""
    by_class = {
        name: {kind: errors.errors for kind, errors in entry.classes.items()}
        for name, entry in analysis.rules[rule].items()
    }
    by_place = {name: analysis.places(rule, name) for name in analysis.rules[rule]}
    counts = {name: errors for name, errors in analysis.classes(rule).items() if errors}
    rarest_first = sorted(counts, key=lambda name: counts[name])
    classes = {name: Column(name, PERCENT, spare=(1 + rarest_first.index(name),)) for name in counts}
    places = {name: Column("\n".join(name.split(" the ")), PERCENT) for name in PLACES}
    differing = analysis.differing[rule]
    text = f"rounding changed {differing} edges: this run hits them and the ledger does not, or the reverse"
    return [
        _shares(analysis, rule, classes, by_class, "what"),
        _shares(analysis, rule, places, by_place, "where, relative to the edge, is what", (1, 2)),
        _examples(analysis, rule),
        analysis.signature,
        *([text] if differing else []),
    ]


def _most_errors_first(analysis: ErrorAnalysis, rule: str) -> list[tuple[str, RelationErrors]]:
    return sorted(analysis.rules[rule].items(), key=lambda item: (-item[1].errors, item[0]))


def _shares(
    analysis: ErrorAnalysis,
    rule: str,
    columns: Mapping[str, Column],
    counts: Mapping[str, Mapping[str, int]],
    question: str,
    spare: tuple[int, int] = (0, 0),
) -> Table:
    """The share of each kind among the errors of each relation: `columns` by kind, `counts` relation -> kind -> errors.

    `spare`: of the columns edges and best head.
    """
    settings, relations = analysis.settings, _most_errors_first(analysis, rule)

    def shares(counts: Mapping[str, int], errors: int) -> list[float | None]:
        return [_percent(counts.get(kind, 0), errors) for kind in columns]

    rows: list[list[Any]] = [
        [name, one.edges, one.errors, f"{one.layer}-{one.head}", *shares(counts[name], one.errors)]
        for name, one in relations
    ]
    edges, errors = sum(one.edges for _, one in relations), sum(one.errors for _, one in relations)
    pooled = {kind: sum(of_relation.get(kind, 0) for of_relation in counts.values()) for kind in columns}
    totals: list[list[Any]] = [["all relations", edges, errors, "", *shares(pooled, errors)]]
    if wrong := {name: one.errors for name, one in relations if one.errors}:
        means = [mean(100 * counts[name].get(kind, 0) / wrong[name] for name in wrong) for kind in columns]
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
            *columns.values(),
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
        having = [(name, one.classes[kind]) for name, one in analysis.rules[rule].items() if kind in one.classes]
        if having:
            relation, errors = min(having, key=lambda item: (-item[1].errors, item[0]))
            rows.append([kind, relation, str(errors.examples[0]["function"]), marked(errors.examples[0])])
    return Table(
        "error-examples",
        f"an example of each class: {_MARKED}",
        [
            Column("class", NAME),
            Column("relation", NAME, spare=(2,)),
            Column("function", NAME, spare=(1,)),
            Column("code", CODE),
        ],
        rows,
    )


def tables(findings: Findings, subject: Subject) -> list[str | Table]:
    """The same in a report, by all rules."""
    analysis = subject.errors
    if analysis is None:
        return [
            f"{subject.name}: not analysed. Run `codesyntax errors {subject.file.name}` in the folder of the result. "
            "The command runs the model again and classifies its wrong first choices; the report then shows them."
        ]
    occurring = [name for name in CLASSES if any(analysis.classes(rule)[name] for rule in RULES)]
    shares: list[list[Any]] = []
    for rule in RULES:
        for name, one in _most_errors_first(analysis, rule):
            head = f"{one.layer}-{one.head}" if one.errors < one.edges else None
            classes = [one.classes[kind].share if kind in one.classes else None for kind in occurring]
            places = [_percent(count, one.errors) for count in analysis.places(rule, name).values()]
            shares.append([rule, name, one.edges, one.errors, head, *classes, *places])
    return [
        Table(
            findings.file("errors", subject),
            f"What the best heads of {subject.name} find where they are wrong, in percent of the relation's errors",
            [
                Column("rule"),
                Column("relation", NAME),
                *Column.each(COUNT, "edges", "errors"),
                Column("head"),
                *Column.each(PERCENT, *occurring, group="class"),
                *Column.each(PERCENT, *PLACES, group="place"),
            ],
            shares,
            f"Published protocol, top-1, on all {subject.functions:,} {findings.language.units} of the result. "
            "probing/attention/errors.py defines the classes; each error belongs to the first class that "
            "applies, and to one place relative to the edge.",
            filters=1,
        ),
        Table(
            findings.file("error-examples", subject),
            f"An example of each class of errors, {subject.name}, first token",
            [
                Column("relation", NAME, of=lambda name, kind, errors: name),
                Column("class", of=lambda name, kind, errors: kind),
                Column("errors", COUNT, of=lambda name, kind, errors: errors.errors),
                Column("percent", PERCENT, of=lambda name, kind, errors: errors.share),
                Column("function", of=lambda name, kind, errors: errors.examples[0]["function"]),
                Column("code", CODE, of=lambda name, kind, errors: marked(errors.examples[0])),
            ],
            [
                (name, kind, errors)
                for name, one in _most_errors_first(analysis, RULE)
                for kind, errors in one.classes.items()
            ],
            f"{_MARKED}.",
            filters=1,
        ),
    ]


def marked(example: ErrorExample) -> str:
    """The lines of an example with their numbers, and its tokens between marks."""
    lines = dict(example["lines"])
    places = [(example[name], marks) for name, marks in _MARKS.items() if example[name]]
    for (line, start, end), (before, behind) in sorted(places, reverse=True):  # from the right, so that columns stay
        code = lines[str(line)]
        lines[str(line)] = code[:start] + before + code[start:end] + behind + code[end:]
    return "\n".join(f"{line}: {code.strip()}" for line, code in lines.items())
