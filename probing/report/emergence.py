"""The section of a report on trainings: what heads find at each checkpoint, and when they pass fixed offsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probing.evidence.compared import Course, Emergence
from probing.report import figures
from probing.report.document import COLOURED, COUNT, DIFFERENCE, NAME, PERCENT, SCORE, Column, Figure, Section, Table
from probing.report.figures import COLOURS, FAINT, Line
from probing.report.findings import Findings
from probing.report.scored import RULE, K
from probing.report.words import interval, method, numbered

TITLE = "Emergence"

_EDGES, _HARD = COLOURS[:2]


def sections(all_findings: Sequence[Findings]) -> list[Section]:
    """One section on the models of which several checkpoints were probed; none if there is no such model."""
    parts = [
        _training(findings, number, training)
        for findings in all_findings
        for number, training in enumerate(findings.trainings, 1)
    ]
    return [Section("emergence", TITLE, method("emergence"), parts)] if parts else []


def sentence(training: Emergence) -> str:
    """From which step on the heads pass the offsets, or that they never do."""
    edges, hard, steps = training.edges, training.hard, training.steps
    last, low, high = edges.differences[:3, -1]
    text = (
        f"From step {steps[0]:,} to {steps[-1]:,}, at {len(steps)} checkpoints, the heads of {training.model} "
        f"{_passed(steps, edges.passes(), 'pass the best offsets')}. With one guess, these offsets find "
        f"{edges.offset:.1f} % of all edges, and the heads {edges.scores[0, -1]:.1f} % at the last step, a difference "
        f"of {DIFFERENCE.show(last)} points ({interval(low, high, DIFFERENCE)})."
    )
    if hard is None:
        return text
    score, low, high = hard.scores[:, -1]
    above, next_best = hard.passes(training.chance), hard.passes()
    return (
        f"{text} Beyond the best offsets, they {_passed(steps, above, 'rise above chance')} "
        f"({PERCENT.show(training.chance)} %) and {_passed(steps, next_best, 'pass the next best offset')} "
        f"({PERCENT.show(hard.offset)} %). At the last step, they find {PERCENT.show(score)} % there "
        f"({interval(low, high, PERCENT)})."
    )


def _passed(steps: Sequence[int], place: int | None, passes: str) -> str:
    return f"never {passes}" if place is None else f"{passes} from step {steps[place]:,} on"


def _training(findings: Findings, number: int, training: Emergence) -> Section:
    key = numbered(f"{findings.name}-emergence", number)
    table, of_relations = _table(key, training), _relations(key, training)
    parts: list[str | Table | Figure] = [
        sentence(training),
        _means(key, findings.title, training),
        table,
        _multiples(key, findings.title, training),
        of_relations,
    ]
    return Section(key, f"{findings.title}, {training.model}", parts)


def _courses(training: Emergence) -> dict[str, Course]:
    return {"all": training.edges} | ({} if training.hard is None else {"hard": training.hard})


def _table(key: str, training: Emergence) -> Table:
    columns, courses = [Column("step", COUNT)], _courses(training)
    for name in courses:
        columns += [Column("score", SCORE, f"{name} edges"), Column("vs offset", DIFFERENCE, f"{name} edges")]
    rows = [
        [step] + [cells[:, place].tolist() for one in courses.values() for cells in (one.scores, one.differences)]
        for place, step in enumerate(training.steps)
    ]
    return Table(
        key,
        f"Mean top-{K} UAS over relations at each step",
        columns,
        rows,
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


def _means(key: str, title: str, training: Emergence) -> Figure:
    panel = [
        line
        for (name, course), colour in zip(_courses(training).items(), (_EDGES, _HARD))
        for line in _lines(name, course.scores, course.offset, training.steps, colour)
    ]
    if training.hard is not None:
        panel.append(Line("chance, hard edges", _level(training.chance, training.steps), FAINT, ":"))
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
            for (name, course), colour in zip(_courses(training).items(), (_EDGES, _HARD))
            if relation in course.relations
            for line in _lines(name, course.relations[relation][None], course.offsets[relation], training.steps, colour)
        ]
    return Figure(
        f"{key}-relations",
        f"{title}: top-{K} UAS of {training.model} by relation over the steps of its training, highest at the last "
        "step first.",
        f"Curves over steps for {', '.join(panels)}. The table has the numbers.",
        f"{key}-relations",
        lambda: figures.over_steps(training.steps, panels),
    )


def _lines(edges: str, scores: np.ndarray, offset: float, steps: Sequence[int], colour: str) -> list[Line]:
    """The scores of heads, and the line of the offset to pass."""
    return [
        Line(f"heads, {edges} edges", scores, colour),
        Line(f"offset, {edges} edges", _level(offset, steps), colour, "--"),
    ]


def _level(score: float, steps: Sequence[int]) -> np.ndarray:
    return np.full((1, len(steps)), score)


def _by_last_score(course: Course) -> list[str]:
    return sorted(course.relations, key=lambda name: (-course.relations[name][-1], name))
