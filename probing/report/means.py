"""Means over relations as tables and curves, and over the steps of a training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    BEYOND_OFFSET,
    HELD_OUT,
    PUBLISHED,
    TABLE_KS,
)
from probing.evidence.gather import PUBLISHED_FIRST
from probing.report import figures, specs
from probing.report.document import Figure, Section, Table
from probing.report.figures import COLOURS, Line
from probing.report.findings import Findings, Training
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


# ---------------------------------------------------------------------------------------- emergence


def emergence(all_findings: Sequence[Findings]) -> list[Section]:
    """One section on the models of which several checkpoints were probed; none if there is no such
    model."""
    sections = []
    for findings in all_findings:
        for number, training in enumerate(findings.trainings, 1):
            key = numbered(f"{findings.name}-emergence", number)
            title = f"{findings.title}, {training.model}"
            sections.append(Section(key, title, course(key, findings, training)))
    return [Section("emergence", "Emergence", method("emergence"), sections)] if sections else []


def course(key: str, findings: Findings, training: Training) -> list[Table | Figure]:
    """The mean at each step of a training, as a curve and as a table."""
    return [_over_steps(key, findings, training), _steps(key, findings, training)]


MOST_STEPS = 8
"""The most steps whose scores a sentence names."""


def course_sentence(all_findings: Sequence[Findings]) -> str:
    """The scores over the steps of one training, and from which step on it passes the best
    baseline."""
    clauses = [f"syntax {_clause(findings, findings.trainings[0])}." for findings in all_findings]
    if len(clauses) > 1:
        clauses = [f"In {findings.place}, {text}" for findings, text in zip(all_findings, clauses)]
    text = " ".join(clauses)
    return text[0].upper() + text[1:]


def _clause(findings: Findings, training: Training) -> str:
    means, differences = zip(*training.means[HELD_OUT])
    first = means[0]
    last = means[-1]
    change = "does not change significantly"
    if last.low > first.high:
        change = "rises"
    elif last.high < first.low:
        change = "falls"
    places = np.unique(np.linspace(0, len(means) - 1, MOST_STEPS).round().astype(int))
    passed = first_to_pass([difference.low for difference in differences])
    passing = "None passes"
    if passed is not None:
        passing = f"From step {training.steps[passed]:,} on, they pass"
    return specs.text(
        "course",
        change=change,
        scores=", ".join(PERCENT.show(means[number].value) for number in places),
        steps=", ".join(f"{training.steps[number]:,}" for number in places),
        passing=passing,
        baseline=PERCENT.show(_to_pass(findings, HELD_OUT)),
    )


def first_to_pass(lows: Sequence[float]) -> int | None:
    """The first checkpoint from which on all intervals of the difference to the best baseline lie
    above 0; None if the last one does not."""
    below = [number for number, low in enumerate(lows) if not low > 0]
    first = below[-1] + 1 if below else 0
    return first if first < len(lows) else None


_EDGES_OF = {HELD_OUT: "all", BEYOND_OFFSET: "hard"}


def _to_pass(findings: Findings, protocol: str) -> float:
    """The score of the best baseline, which is the same at all steps."""
    score = findings.score(BEST_BASELINE, protocol)
    return score.value if score else float("nan")


def _steps(key: str, findings: Findings, training: Training) -> Table:
    cells: list[Sequence[Any]] = [training.steps]
    for means in training.means.values():
        cells += zip(*means)
    rows = map(list, zip(*cells))
    edges = [_EDGES_OF[protocol] for protocol in training.means]
    return specs.table("steps", rows, key, courses=edges, tests=tests_in_words([findings]))


def _over_steps(key: str, findings: Findings, training: Training) -> Figure:
    panel = []
    for (protocol, means), colour in zip(training.means.items(), COLOURS):
        scores = np.array([mean[:3] for mean, _ in means]).T
        level = np.full((1, len(means)), _to_pass(findings, protocol))
        edges = _EDGES_OF[protocol]
        panel.append(Line(f"heads, {edges} edges", scores, colour))
        panel.append(Line(f"best baseline, {edges} edges", level, colour, "--"))
    heading = f"mean top-{K} UAS over relations"  # the caption has the config
    return specs.figure(
        "steps",
        key,
        lambda: figures.over_steps(training.steps, heading, panel),
        title=findings.title,
        model=training.model,
    )
