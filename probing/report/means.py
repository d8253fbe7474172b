"""Means over relations as tables and curves, and over the steps of a training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product

import numpy as np

from codesyntax_dataset.protocol import KS, PUBLISHED, TABLE_KS
from probing.evidence.baselines import kinds_of
from probing.evidence.compared import Course, Emergence
from probing.evidence.protocols import SAME_RELATIONS, TABLE_MEASURES
from probing.evidence.scores import RANDOM_BEST
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Section, Table, tested
from probing.report.figures import COLOURS, FAINT, INK, Line
from probing.report.findings import PAPER, Findings, Subject
from probing.report.kinds import COUNT, DIFFERENCE, NAME, PERCENT, SCORE
from probing.report.scored import (
    CONFIG,
    FILTERS,
    FUNCTIONS,
    RULE,
    SCORED,
    K,
    Place,
    curve,
    mean_columns,
    shown_means,
    tests_in_words,
)
from probing.report.words import method, number_of, numbered
from probing.stats.intervals import family

_BASELINE_STYLES = {"offset": "--", "keyword": ":", "combined": "-"}
_IN_PAPER = {f"Combined{PAPER}": INK, f"CuBERT{PAPER}": FAINT, f"BERT-large{PAPER}": FAINT}
"""The rows of the paper that figures draw, and their colours."""


def overview(all_findings: Sequence[Findings]) -> Table:
    means = shown_means(all_findings)
    places = [
        Place(findings, name, rule, k)
        for findings in all_findings
        for rule, k, name in product(findings.rules, TABLE_KS, [*findings.kinds, *findings.paper])
    ]
    return Table(
        "overview",
        "Mean top-k UAS over relations: models, controls, baselines and the paper",
        [
            CONFIG,
            *FILTERS,
            *SCORED,
            FUNCTIONS,
            *chain.from_iterable(_sizes(mean) + mean_columns(mean) for mean in means),
        ],
        [row for row in places if row.kind != "paper" or row.score(PUBLISHED)],
        "Percent with 95 % intervals. Relations, edges: their number in the mean. Vs best baseline: the difference "
        f"to the combined baseline, on the functions and relations that both have. {_compares(means)}p: "
        f"corrected (Holm) within a config for {tests_in_words(all_findings)}, and uncorrected for controls. Redrawn "
        f"dependents have other edges, and therefore no difference. {COLOURED}",
        filters=3,
    )


def _sizes(mean: str) -> list[Column]:
    """The number of relations in one of MEANS, and of their edges."""
    return [
        Column("relations", COUNT, mean, of=lambda row: row.findings.size_of(row.name, mean)[0]),
        Column("edges", COUNT, mean, of=lambda row: row.findings.size_of(row.name, mean)[1]),
    ]


def _compares(means: Sequence[str]) -> str:
    """A sentence that says which means compare."""
    if SAME_RELATIONS not in means:
        return ""
    return (
        f"{SAME_RELATIONS.capitalize()}: the mean over the relations that have edges on validation; it compares with "
        "the held-out mean. "
    )


def curves(findings: Findings) -> Figure:
    means = shown_means([findings])
    panels = {
        rule: {mean: _lines(findings, rule, mean) for mean in means} for rule in findings.rules
    }
    return Figure(
        f"{findings.name}-curves",
        f"{findings.title}: mean top-k UAS over k, by rule (rows) and protocol (columns). "
        f"{_compares(means)}{findings.drawn_in_words}Bands are 95 % intervals. Grey lines are "
        "baselines, and broken lines are controls. Circles are the paper's numbers on its own data.",
        f"Curves of the mean score for k from 1 to 20 on {findings.title}. The CSV file of the same name has the "
        "numbers.",
        f"{findings.name}-curves",
        lambda: figures.curves(panels),
    )


def _lines(findings: Findings, rule: str, mean: str) -> list[Line]:
    lines = [
        Line(subject.name, curve(findings, subject.name, mean, rule), *look)
        for subject, *look in findings.styled
    ]
    lines += [
        Line(kind, curve(findings, kind, mean, rule), INK, _BASELINE_STYLES[kind])
        for kind in kinds_of(findings.config)
    ]
    lines.append(Line("random attention", curve(findings, RANDOM_BEST, mean, rule), FAINT, ":"))
    for name, colour in _IN_PAPER.items():
        if findings.score(name, mean, rule):
            lines.append(Line(name, curve(findings, name, mean, rule), colour, points=True))
    return lines


def curve_points(findings: Findings) -> Table:
    """The numbers of the curves, of all rows and k."""
    rows = [
        [rule, mean, findings.title_of(name), kind, k, score and score.cell]
        for rule in findings.rules
        for mean in shown_means([findings])
        for name, kind in findings.kinds.items()
        for k in KS
        for score in [findings.score(name, mean, rule, str(k))]
    ]
    names = [Column(name) for name in ("rule", "protocol", "name", "kind")]
    return Table(
        f"{findings.name}-curves", "", [*names, Column("k", COUNT), Column("score", SCORE)], rows
    )


def against(findings: Findings, subject: Subject, every: Table) -> Table:
    """The rows of `pairs` that are about one model, as the one that is compared with the others."""
    rows = []
    for rule, k, first, other, *cells in every.rows:
        if first == subject.name:
            rows.append([rule, k, other, *cells])
        elif other == subject.name:
            rows.append(
                [rule, k, first, *([-value, -high, -low, p] for value, low, high, p in cells)]
            )
    return Table(
        findings.file("pairs", subject),
        f"{subject.name} against every other model, mean over relations",
        [*FILTERS, *every.columns[len(FILTERS) + 1 :]],
        rows,
        every.notes,
        filters=2,
    )


def pairs(findings: Findings) -> Table:
    means, rows = shown_means([findings]), []
    for rule, k in product(findings.rules, TABLE_KS):
        cell = TABLE_MEASURES.index((rule, int(k)))
        compared = [
            family([pair[mean].at(cell) for pair in findings.pairs.values()]) for mean in means
        ]
        for number, pair in enumerate(findings.pairs):
            names = [findings.subjects[number].name for number in pair]
            rows.append([rule, k, *names, *(tested(of_mean[number]) for of_mean in compared)])
    return Table(
        f"{findings.name}-pairs",
        "Pairs of models, mean over relations",
        [
            *FILTERS,
            Column("model"),
            Column("vs model"),
            *(Column("difference", DIFFERENCE, mean) for mean in means),
        ],
        rows,
        f"Percentage points with 95 % intervals, on the same functions. {_compares(means)}p: corrected (Holm) "
        f"for {number_of(len(findings.pairs), 'pair')}. {COLOURED}",
        filters=2,
    )


# ---------------------------------------------------------------------------------------------------------- emergence


def emergence(all_findings: Sequence[Findings], without_course: bool = False) -> list[Section]:
    """One section on the models of which several checkpoints were probed; none if there is no such
    model. `without_course`: the report begins with the course."""
    parts = []
    for findings in all_findings:
        for number, training in enumerate(findings.trainings, 1):
            key = numbered(f"{findings.name}-emergence", number)
            first = [] if without_course else course(findings, number, training)
            each = [*first, _multiples(key, findings.title, training), _relations(key, training)]
            parts.append(Section(key, f"{findings.title}, {training.model}", each))
    return [Section("emergence", "Emergence", method("emergence"), parts)] if parts else []


def course(findings: Findings, number: int, training: Emergence) -> list[Table | Figure]:
    """The mean at each step of a training, as a curve and as a table."""
    key = numbered(f"{findings.name}-emergence", number)
    return [_over_steps(key, findings.title, training), _steps(key, training)]


MOST_STEPS = 8
"""The most steps whose scores a sentence names."""


def course_sentence(all_findings: Sequence[Findings]) -> str:
    """The scores over the steps of one training, and from which step on it passes the best
    offset."""
    clauses = [_clause(findings.trainings[0]) for findings in all_findings]
    if len(clauses) > 1:
        clauses = [
            f"in {findings.title}, syntax {clause}"
            for findings, clause in zip(all_findings, clauses)
        ]
        text = ". ".join(clauses)
        return text[0].upper() + text[1:] + "."
    return f"Syntax {clauses[0]}."


def _clause(training: Emergence) -> str:
    scores, lows, highs = training.edges.scores
    rises = (
        "rises"
        if lows[-1] > highs[0]
        else "falls"
        if highs[-1] < lows[0]
        else "does not change significantly"
    )
    places = np.unique(np.linspace(0, len(training.steps) - 1, MOST_STEPS).round().astype(int))
    named = ", ".join(PERCENT.show(scores[number]) for number in places)
    steps = ", ".join(f"{training.steps[number]:,}" for number in places)
    passed, offset = training.edges.passes(), PERCENT.show(training.edges.offset)
    passing = (
        "none passes" if passed is None else f"from step {training.steps[passed]:,} on, they pass"
    )
    return f"{rises} through training: {named} % at steps {steps}; {passing} the best offset, {offset} %"


def _courses(training: Emergence) -> dict[str, Course]:
    return {"all": training.edges} | ({} if training.hard is None else {"hard": training.hard})


def _steps(key: str, training: Emergence) -> Table:
    columns, cells = [Column("step", COUNT)], [training.steps]
    for name, course in _courses(training).items():
        columns += [
            Column("score", SCORE, f"{name} edges"),
            Column("vs offset", DIFFERENCE, f"{name} edges"),
        ]
        cells += [course.scores.T.tolist(), course.differences.T.tolist()]
    return Table(
        key,
        f"Mean top-{K} UAS over relations at each step",
        columns,
        [list(row) for row in zip(*cells)],
        f"Percent with 95 % intervals, held-out, rule {RULE}. vs offset: the difference to the best offset of each "
        f"relation; on hard edges, to the next best offset. p: corrected (Holm) for {len(training.steps)} "
        f"checkpoints. {COLOURED}",
    )


def _relations(key: str, training: Emergence) -> Table:
    rows = [
        [edges, name, course.offsets[name], *course.relations[name].tolist()]
        for edges, course in _courses(training).items()
        for name in _by_last_score(course)
    ]
    steps = [Column(str(step), PERCENT, "step") for step in training.steps]
    return Table(
        f"{key}-relations",
        "Each relation over steps",
        [Column("edges"), Column("relation", NAME), Column("offset", PERCENT), *steps],
        rows,
        f"Top-{K} UAS in percent, held-out, rule {RULE}. Offset: the best offset; on hard edges, the next best.",
        filters=1,
    )


def _over_steps(key: str, title: str, training: Emergence) -> Figure:
    panel = [
        line
        for (name, course), colour in zip(_courses(training).items(), COLOURS)
        for line in _passing(name, course.scores, course.offset, training.steps, colour)
    ]
    if training.hard is not None:
        panel.append(
            Line("chance, hard edges", _level(training.chance, training.steps), FAINT, ":")
        )
    return Figure(
        key,
        f"{title}: mean top-{K} UAS of {training.model} over the steps of its training, with 95 % intervals. Broken "
        "lines: the best offset; on hard edges, the next best.",
        "Curves over steps. The table has the numbers.",
        key,
        lambda: figures.over_steps(training.steps, {f"mean over relations, {title}": panel}),
    )


def _multiples(key: str, title: str, training: Emergence) -> Figure:
    panels = {}
    for relation in _by_last_score(training.edges):
        panels[relation] = [
            line
            for (name, course), colour in zip(_courses(training).items(), COLOURS)
            if relation in course.relations
            for line in _passing(
                name,
                course.relations[relation][None],
                course.offsets[relation],
                training.steps,
                colour,
            )
        ]
    return Figure(
        f"{key}-relations",
        f"{title}: top-{K} UAS of {training.model} by relation over the steps of its training, highest at the last "
        "step first.",
        f"Curves over steps for {', '.join(panels)}. The table has the numbers.",
        f"{key}-relations",
        lambda: figures.over_steps(training.steps, panels),
    )


def _passing(
    edges: str, scores: np.ndarray, offset: float, steps: Sequence[int], colour: str
) -> list[Line]:
    """The scores of heads, and the line of the offset to pass."""
    return [
        Line(f"heads, {edges} edges", scores, colour),
        Line(f"offset, {edges} edges", _level(offset, steps), colour, "--"),
    ]


def _level(score: float, steps: Sequence[int]) -> np.ndarray:
    return np.full((1, len(steps)), score)


def _by_last_score(course: Course) -> list[str]:
    return sorted(course.relations, key=lambda name: (-course.relations[name][-1], name))
