"""Means over relations as tables and curves, and over the steps of a training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import KS, PUBLISHED, TABLE_KS
from probing.evidence.baselines import kinds_of
from probing.evidence.compared import Course, Emergence
from probing.evidence.protocols import TABLE_MEASURES
from probing.evidence.scores import RANDOM_BEST
from probing.report import figures, specs
from probing.report.document import Figure, Section, Table
from probing.report.figures import COLOURS, FAINT, INK, Line
from probing.report.findings import PAPER, Findings
from probing.report.kinds import PERCENT
from probing.report.scored import ScoredRow, curve, means_in_words, shown_means, tests_in_words
from probing.report.words import K, method, number_of, numbered
from probing.stats.intervals import Estimate, family

_BASELINE_STYLES = {"offset": "--", "keyword": ":", "combined": "-"}
_IN_PAPER = {f"Combined{PAPER}": INK, f"CuBERT{PAPER}": FAINT, f"BERT-large{PAPER}": FAINT}
"""The rows of the paper that figures draw, and their colours."""


def overview(all_findings: Sequence[Findings]) -> Table:
    """Every mean of models, controls, baselines and the paper."""
    means, rows = shown_means(all_findings), []
    for findings in all_findings:
        names = [*findings.kinds, *findings.paper]
        for rule, k, name in product(findings.rules, TABLE_KS, names):
            row = ScoredRow(findings, name, rule, k, protocol=PUBLISHED)
            if row.kind != "paper" or row.score:
                rows.append(row)
    return specs.table(
        "overview",
        rows,
        means=means,
        compares=means_in_words(means),
        tests=tests_in_words(all_findings),
    )


def curves(findings: Findings) -> Figure:
    """The means over k."""
    means = shown_means([findings])
    panels = {
        rule: {mean: _curve_lines(findings, rule, mean) for mean in means}
        for rule in findings.rules
    }
    return specs.figure(
        "curves",
        f"{findings.name}-curves",
        lambda: figures.curves(panels),
        findings=findings,
        compares=means_in_words(means),
    )


def _curve_lines(findings: Findings, rule: str, mean: str) -> list[Line]:
    def line(name: str, *look: Any) -> Line:
        return Line(name, curve(findings, name, mean, rule), *look)

    lines = [line(subject.name, *look) for subject, *look in findings.styled]
    lines += [line(kind, INK, _BASELINE_STYLES[kind]) for kind in kinds_of(findings.config)]
    random = line(RANDOM_BEST, FAINT, ":")
    lines.append(random._replace(label="random attention"))
    for name, colour in _IN_PAPER.items():
        if findings.score(name, mean, rule):
            lines.append(line(name, colour)._replace(points=True))
    return lines


def curve_points(findings: Findings) -> Table:
    """The numbers of the curves, of all rows and k."""
    means, rows = shown_means([findings]), []
    for rule, mean, (name, kind), k in product(findings.rules, means, findings.kinds.items(), KS):
        score = findings.score(name, mean, rule, str(k))
        rows.append([rule, mean, findings.title_of(name), kind, k, score])
    return specs.table("curves", rows, f"{findings.name}-curves")


def pairs(findings: Findings) -> Table:
    """The differences between each two models."""
    means, rows = shown_means([findings]), []
    for rule, k in product(findings.rules, TABLE_KS):
        cell = TABLE_MEASURES.index((rule, int(k)))
        compared = [_corrected(findings, mean, cell) for mean in means]
        for pair, *differences in zip(findings.pairs, *compared):
            names = [findings.subjects[number].name for number in pair]
            rows.append([rule, k, *names, *differences])
    return specs.table(
        "pairs",
        rows,
        f"{findings.name}-pairs",
        means=means,
        compares=means_in_words(means),
        pairs=number_of(len(findings.pairs), "pair"),
    )


def _corrected(findings: Findings, mean: str, cell: int) -> list[Estimate]:
    """Of each pair, the difference of a mean at one of TABLE_MEASURES."""
    return family([pair[mean].at(cell) for pair in findings.pairs.values()])


# ---------------------------------------------------------------------------------------------------------- emergence


def emergence(all_findings: Sequence[Findings], without_course: bool = False) -> list[Section]:
    """One section on the models of which several checkpoints were probed; none if there is no such
    model. `without_course`: the report begins with the course."""
    sections = []
    for findings in all_findings:
        for number, training in enumerate(findings.trainings, 1):
            key = numbered(f"{findings.name}-emergence", number)
            parts = [] if without_course else course(findings, number, training)
            parts.append(_course_relations(key, training))
            sections.append(Section(key, f"{findings.title}, {training.model}", parts))
    return [Section("emergence", "Emergence", method("emergence"), sections)] if sections else []


def course(findings: Findings, number: int, training: Emergence) -> list[Table | Figure]:
    """The mean at each step of a training, as a curve and as a table."""
    key = numbered(f"{findings.name}-emergence", number)
    return [_over_steps(key, findings.title, training), _steps(key, training)]


MOST_STEPS = 8
"""The most steps whose scores a sentence names."""


def course_sentence(all_findings: Sequence[Findings]) -> str:
    """The scores over the steps of one training, and from which step on it passes the best
    offset."""
    clauses = [f"syntax {_clause(findings.trainings[0])}." for findings in all_findings]
    if len(clauses) > 1:
        clauses = [f"in {findings.title}, {text}" for findings, text in zip(all_findings, clauses)]
    text = " ".join(clauses)
    return text[0].upper() + text[1:]


def _clause(training: Emergence) -> str:
    scores, lows, highs = training.edges.scores
    change = "does not change significantly"
    if lows[-1] > highs[0]:
        change = "rises"
    elif highs[-1] < lows[0]:
        change = "falls"
    places = np.unique(np.linspace(0, len(training.steps) - 1, MOST_STEPS).round().astype(int))
    passed, passing = training.edges.passes(), "none passes"
    if passed is not None:
        passing = f"from step {training.steps[passed]:,} on, they pass"
    return specs.text(
        "course",
        change=change,
        scores=", ".join(PERCENT.show(scores[number]) for number in places),
        steps=", ".join(f"{training.steps[number]:,}" for number in places),
        passing=passing,
        offset=PERCENT.show(training.edges.offset),
    )


def _courses(training: Emergence) -> dict[str, Course]:
    courses = {"all": training.edges, "hard": training.hard}
    return {edges: course for edges, course in courses.items() if course}


def _steps(key: str, training: Emergence) -> Table:
    courses, cells = _courses(training), [training.steps]
    for course in courses.values():
        cells += [course.scores.T.tolist(), course.differences.T.tolist()]
    rows = map(list, zip(*cells))
    return specs.table("steps", rows, key, courses=courses, number=len(training.steps))


def _course_relations(key: str, training: Emergence) -> Table:
    rows = []
    for edges, course in _courses(training).items():
        for name in _by_last_score(course):
            scores = course.relations[name].tolist()
            rows.append([edges, name, course.offsets[name], *scores])
    return specs.table("relations-by-step", rows, f"{key}-relations", steps=training.steps)


def _over_steps(key: str, title: str, training: Emergence) -> Figure:
    panel = []
    for (edges, course), colour in zip(_courses(training).items(), COLOURS):
        panel += _passing(edges, course.scores, course.offset, colour)
    if training.hard is not None:
        panel.append(Line("chance, hard edges", _level(training.chance, panel), FAINT, ":"))
    panels = {f"mean top-{K} UAS over relations": panel}  # the caption has the config
    return specs.figure(
        "steps",
        key,
        lambda: figures.over_steps(training.steps, panels),
        title=title,
        model=training.model,
    )


def _passing(edges: str, scores: np.ndarray, offset: float, colour: str) -> list[Line]:
    """The scores of heads, and the line of the offset to pass."""
    heads = Line(f"heads, {edges} edges", scores, colour)
    return [heads, Line(f"offset, {edges} edges", _level(offset, [heads]), colour, "--")]


def _level(score: float, beside: Sequence[Line]) -> np.ndarray:
    """A score that is the same at all steps of a line."""
    return np.full_like(beside[0].scores[:1], score)


def _by_last_score(course: Course) -> list[str]:
    return sorted(course.relations, key=lambda name: (-course.relations[name][-1], name))
