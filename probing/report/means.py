"""Means over relations as tables and curves, and over the steps of a training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from codesyntax_dataset.protocol import PUBLISHED, TABLE_KS
from probing.evidence.compared import Course, Emergence
from probing.evidence.gather import PUBLISHED_FIRST
from probing.report import figures, specs
from probing.report.document import Figure, Section, Table
from probing.report.figures import COLOURS, Line
from probing.report.findings import Findings
from probing.report.kinds import PERCENT
from probing.report.scored import ScoredRow, tests_in_words
from probing.report.words import K, method, numbered


def overview(all_findings: Sequence[Findings]) -> Table:
    """Every mean of models, controls and baselines."""
    rows = []
    for findings in all_findings:
        for rule, k, name in product(findings.rules, TABLE_KS, findings.kinds):
            rows.append(ScoredRow(findings, name, rule, k, protocol=PUBLISHED))
    tests = tests_in_words(all_findings)
    return specs.table("overview", rows, means=PUBLISHED_FIRST, tests=tests)


# ---------------------------------------------------------------------------------------------------------- emergence


def emergence(all_findings: Sequence[Findings]) -> list[Section]:
    """One section on the models of which several checkpoints were probed; none if there is no such
    model."""
    sections = []
    for findings in all_findings:
        for number, training in enumerate(findings.trainings, 1):
            key = numbered(f"{findings.name}-emergence", number)
            title = f"{findings.title}, {training.model}"
            sections.append(Section(key, title, course(findings, number, training)))
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


def _over_steps(key: str, title: str, training: Emergence) -> Figure:
    panel = []
    for (edges, course), colour in zip(_courses(training).items(), COLOURS):
        panel += _passing(edges, course.scores, course.offset, colour)
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
