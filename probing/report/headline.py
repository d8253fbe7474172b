"""The answer, which a report opens with: one sentence, one table of models and one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.evidence.beyond import LEAST_HARD_EDGES
from probing.evidence.protocols import TABLE_MEASURES
from probing.evidence.scores import CHANCE
from probing.report import figures, means
from probing.report.document import SIGNIFICANT, Column, Figure, Section, Table, separated
from probing.report.figures import COLOURS, FAINT, INK, TICK, Points
from probing.report.findings import Findings, Subject, read_findings
from probing.report.information import same_run
from probing.report.kinds import COST, LINK
from probing.report.scored import CONFIG, RULE, K, Place, difference, score, value
from probing.report.words import DIRECTIONS, number_of
from probing.stats.intervals import family

HEADLINE_TITLE = "What was found"

NAMED = 3
"""The most configs or relations that a sentence names."""

MOST_ROWS = 12
"""With more models and configs than this, the table shows one config at a time."""


def section(
    all_findings: Sequence[Findings],
    links: Mapping[str, str],
    bits: Mapping[Any, Any] = MappingProxyType({}),
) -> Section:
    """The answer. `links`: name of a model -> the link to its page; `bits`: as of `models`."""
    known = [findings for findings in all_findings if findings.models]
    if not known:
        return Section(
            "finding",
            HEADLINE_TITLE,
            ["The results contain controls only, and no model."] if all_findings else [],
        )
    if one_training(known):
        courses = [
            part for findings in known for part in means.course(findings, 1, findings.trainings[0])
        ]
        return Section(
            "finding",
            HEADLINE_TITLE,
            [means.course_sentence(known), *courses, models(known, links, bits)],
        )
    return Section(
        "finding", HEADLINE_TITLE, [sentence(known), models(known, links, bits), _figure(known)]
    )


def one_training(all_findings: Sequence[Findings]) -> bool:
    """True if all models are steps of one training."""
    models = {
        findings.trainings[0].model for findings in all_findings if len(findings.trainings) == 1
    }
    return len(models) == 1 and all(
        len(findings.models) == len(findings.trainings) == 1 for findings in all_findings
    )


def answer(files: Sequence[Path], data: Any = None) -> list[str | Table]:
    """The answer to results in files, as text and tables."""
    return [
        part
        for part in section(read_findings(files, data), {}).parts
        if not isinstance(part, Figure)
    ]


def of_model(all_findings: Sequence[Findings], name: str, file: str) -> Table:
    """The rows of one model. `file`: the name of its table."""
    table = models(all_findings, {})
    column = [column.name for column in table.columns].index("model")
    rows = [row for row in table.rows if row[column] == name]
    return Table(file, name, table.columns, rows, table.notes, within="tables/models.csv")


def sentence(all_findings: Sequence[Findings]) -> str:
    """The best model of each config beside the best baseline, on unseen data, in one direction."""
    direction = all_findings[0].settings.direction
    alike = [findings for findings in all_findings if findings.settings.direction == direction]
    if len(alike) <= NAMED:
        return "; ".join([_first(alike[0]), *map(_further, alike[1:])]) + "."
    signs = [_sign(findings, findings.best_model) for findings in alike]
    more, less, same = (signs.count(sign) for sign in (1, -1, 0))
    return (
        f"With one guess, the attention heads of the best model find more than fixed offsets and keywords in {more} "
        f"of {len(signs)} configs and less in {less}; in {same}, the difference is not significant."
    )


def models(
    all_findings: Sequence[Findings],
    links: Mapping[str, str],
    bits: Mapping[Any, Any] = MappingProxyType({}),
) -> Table:
    """The models of each config, best first, on all edges and beyond offsets.

    `bits`: a run (`probing.report.information.same_run`) -> what its attention adds to words and
    positions.
    """
    rows = [
        Place(findings, model.name) for findings in all_findings for model in _best_first(findings)
    ]
    several = len({findings.settings.direction for findings in all_findings}) > 1
    edges, hard = "all edges, held-out", "beyond the best offset, held-out"
    columns = [
        CONFIG,
        *([Column("direction", of=lambda row: row.findings.settings.direction)] if several else []),
        Column("model", LINK, of=lambda row: [row.name, links[row.name]] if links else row.name),
        score(HELD_OUT, group=edges),
        value(HELD_OUT, "best baseline", BEST_BASELINE, group=edges),
        difference(HELD_OUT, group=edges),
        score("", group=hard),
        value("", "next best baseline", BEST_BASELINE, group=hard),
        value("", "chance", CHANCE, group=hard),
    ]
    adds = ""
    if bits:
        columns.append(
            Column("all heads add, bits", COST, of=lambda row: bits.get(same_run(row.settings)))
        )
        adds = " All heads add: bits beside words and positions."
    return Table(
        "models",
        f"What the best head of each relation finds with one guess (k = {K}, rule {RULE})",
        columns,
        rows,
        "Percent with 95 % intervals, mean over relations, on unseen functions (held-out). Best baseline: the better "
        f"of a fixed offset and a keyword. Beyond the best offset: the edges that it misses, at least "
        f"{LEAST_HARD_EDGES}. "
        f"Chance: a guess by distance. p: corrected (Holm). {SIGNIFICANT}{adds}{DIRECTIONS * several}",
        filters=int(len(rows) > MOST_ROWS or len(all_findings) == 1),
    )


def _first(findings: Findings) -> str:
    """The whole clause on a config."""
    best = findings.best_model
    number = len({(model.settings.model, model.settings.revision) for model in findings.models})
    entry = findings.score(best.name, HELD_OUT)
    if entry is None:
        return f"In {findings.title}, no held-out score exists: the relations of the mean have no edges on validation"
    sought = "dependents" if findings.settings.direction == HEAD_TO_DEPENDENT else "head tokens"
    name = (
        best.name
        if number == 1
        else f"{best.name}, {_standing(findings, best)} of {number} models,"
    )
    rules = "fixed offsets and keywords" if findings.language.keywords else "fixed offsets"
    return (
        f"In {findings.title}, the attention heads of {name} find {entry.value:.1f} % of the {sought} with one guess, "
        f"{_than(findings, best)} that {rules} find without a model"
    )


def _standing(findings: Findings, best: Subject) -> str:
    """Whether the model with the highest score is significantly better than the next."""
    ranked = _best_first(findings)
    first, second = sorted(findings.subjects.index(model) for model in ranked[:2])
    cell = TABLE_MEASURES.index((RULE, int(K)))
    differences = family([comparison[HELD_OUT].at(cell) for comparison in findings.pairs.values()])
    if differences[list(findings.pairs).index((first, second))].significant:
        return "the best"
    return f"not significantly better than {ranked[1].name}, the next"


def _further(findings: Findings) -> str:
    """The same in short."""
    best = findings.best_model
    score = findings.score(best.name, HELD_OUT)
    clause = (
        f"{best.name} finds {score.value:.1f} %, {_than(findings, best, 'their')}"
        if score
        else "no score exists"
    )
    return f"in {findings.title}, {clause}"


def _than(findings: Findings, model: Subject, whose: str = "the") -> str:
    than = {1: "more than", -1: "less than", 0: "not significantly different from"}[
        _sign(findings, model)
    ]
    baseline = findings.score(BEST_BASELINE, HELD_OUT)
    return f"{than} {whose} {baseline.value if baseline else np.nan:.1f} %"


def _best_first(findings: Findings) -> list[Subject]:
    scores = {model.name: findings.score(model.name, HELD_OUT) for model in findings.models}
    return sorted(
        findings.models, key=lambda model: -(entry.value if (entry := scores[model.name]) else -1)
    )


def _sign(findings: Findings, model: Subject) -> int:
    """1 or -1 if the test separates the model from the best baseline, otherwise 0."""
    entry = findings.difference(model.name, HELD_OUT)
    return int(np.sign(entry.value)) if entry and separated(entry.p) else 0


def _figure(all_findings: Sequence[Findings]) -> Figure:
    """The table as a picture, of as many rows as fit on a screen."""
    most = max(1, MOST_ROWS // len(all_findings))
    shown = [
        Place(findings, model.name)
        for findings in all_findings
        for model in _best_first(findings)[:most]
    ]
    several_models = any(len(findings.models) > 1 for findings in all_findings)
    names = [_label(row, len(all_findings) > 1, several_models) for row in shown]

    def points(label: str, column: Column, *look: str) -> Points:
        return Points(label, [column.cell(row) for row in shown], *look)

    panels = {
        "of all edges, %": [
            points("heads of the model", score(HELD_OUT), COLOURS[0]),
            points("best baseline", value(HELD_OUT, "", BEST_BASELINE), INK, TICK),
        ],
        "beyond the best offset, %": [
            points("heads of the model", score(""), COLOURS[0]),
            points("best baseline", value("", "", BEST_BASELINE), INK, TICK),
            points("chance", value("", "", CHANCE), FAINT, TICK),
        ],
    }
    left_out = any(len(findings.models) > most for findings in all_findings)
    return Figure(
        "models",
        "Scores of the table, with 95 % intervals."
        + f" Each config shows its best {number_of(most, 'model')}." * left_out,
        "A dot for the heads of each model and a line for the best baseline. The table has the numbers.",
        "models",
        lambda: figures.rows(names, panels),
    )


def _label(row: Place, several_configs: bool, several_models: bool) -> str:
    names = [row.name] if several_models or not several_configs else []
    return "\n".join([*names, row.config] if several_configs else names)
