"""The answer, which a report opens with: one sentence, one table of models and one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.evidence.beyond import LEAST_EDGES
from probing.evidence.protocols import TABLE_MEASURES
from probing.report import beyond, figures, means
from probing.report.document import SIGNIFICANT, Column, Figure, Section, Table, separated
from probing.report.figures import COLOURS, FAINT, INK, TICK, Points
from probing.report.findings import Findings, Subject, read_findings
from probing.report.information import same_run
from probing.report.kinds import COST, DIFFERENCE, LINK, NAME, PERCENT, SCORE
from probing.report.scored import RULE, K
from probing.report.words import DIRECTIONS, counted
from probing.stats.intervals import family

TITLE = "What was found"

NAMED = 3
"""The most configs or relations that a sentence names."""

MOST_ROWS = 12
"""With more models and configs than this, the table shows one config at a time."""


def section(
    all_findings: Sequence[Findings], links: Mapping[str, str], bits: Mapping[Any, Any] = MappingProxyType({})
) -> Section:
    """The answer. `links`: name of a model -> the link to its page; `bits`: as of `models`."""
    known = [findings for findings in all_findings if findings.models]
    if not known:
        return Section("finding", TITLE, ["The results contain controls only, and no model."] if all_findings else [])
    if one_training(known):
        courses = [part for findings in known for part in means.course(findings, 1, findings.trainings[0])]
        return Section("finding", TITLE, [means.course_sentence(known), *courses, models(known, links, bits)])
    return Section("finding", TITLE, [sentence(known), models(known, links, bits), _figure(known)])


def one_training(all_findings: Sequence[Findings]) -> bool:
    """True if all models are steps of one training."""
    models = {findings.trainings[0].model for findings in all_findings if len(findings.trainings) == 1}
    return len(models) == 1 and all(len(findings.models) == len(findings.trainings) == 1 for findings in all_findings)


def answer(files: Sequence[Path], data: Any = None) -> list[str | Table]:
    """The answer to results in files, as text and tables."""
    return [part for part in section(read_findings(files, data), {}).parts if not isinstance(part, Figure)]


def of_model(all_findings: Sequence[Findings], name: str, file: str) -> Table:
    """The rows of one model. `file`: the name of its table."""
    table = models(all_findings, {})
    place = [column.name for column in table.columns].index("model")
    rows = [row for row in table.rows if row[place] == name]
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
    all_findings: Sequence[Findings], links: Mapping[str, str], bits: Mapping[Any, Any] = MappingProxyType({})
) -> Table:
    """The models of each config, best first, on all edges and beyond offsets.

    `bits`: a run (`probing.report.information.same_run`) -> what its attention adds to words and positions.
    """
    shown = [(findings, model) for findings in all_findings for model in _best_first(findings)]
    rows = [(findings, model, *beyond.scores(findings, model)) for findings, model in shown]
    several = len({findings.settings.direction for findings in all_findings}) > 1
    edges, hard = "all edges, held-out", "beyond the best offset, held-out"
    columns = [
        Column("config", NAME, of=lambda findings, *_: findings.title),
        *([Column("direction", of=lambda findings, *_: findings.settings.direction)] if several else []),
        Column("model", LINK, of=lambda _, model, *hard: [model.name, links[model.name]] if links else model.name),
        Column("score", SCORE, edges, of=lambda findings, model, *_: _score(findings, model)),
        Column("best baseline", PERCENT, edges, of=lambda findings, *_: _of_baseline(findings)[0]),
        Column("difference", DIFFERENCE, edges, of=lambda findings, model, *_: _difference(findings, model)),
        Column("score", SCORE, hard, of=lambda findings, model, score, best, chance: score),
        Column("next best baseline", PERCENT, hard, of=lambda findings, model, score, best, chance: best),
        Column("chance", PERCENT, hard, of=lambda findings, model, score, best, chance: chance),
    ]
    adds = ""
    if bits:
        columns.append(
            Column("all heads add, bits", COST, of=lambda _, model, *hard: bits.get(same_run(model.settings)))
        )
        adds = " All heads add: bits beside words and positions."
    return Table(
        "models",
        f"What the best head of each relation finds with one guess (k = {K}, rule {RULE})",
        columns,
        rows,
        "Percent with 95 % intervals, mean over relations. Held-out: chosen on validation, scored on unseen functions. "
        "Best baseline: the better of a fixed offset and a keyword. Beyond the best offset: the edges that it misses, "
        f"in relations with at least {LEAST_EDGES}. Chance: a guess by their distances. p: corrected (Holm) for the "
        f"models of a config. {SIGNIFICANT}{adds}{DIRECTIONS * several}",
        filters=int(len(rows) > MOST_ROWS or len(all_findings) == 1),
    )


def _first(findings: Findings) -> str:
    """The whole clause on a config."""
    best = findings.best_model
    number = len({(model.settings.model, model.settings.revision) for model in findings.models})
    score = _score(findings, best)
    if score is None:
        return f"In {findings.title}, no held-out score exists: the relations of the mean have no edges on validation"
    sought = "dependents" if findings.settings.direction == HEAD_TO_DEPENDENT else "head tokens"
    name = best.name if number == 1 else f"{best.name}, {_standing(findings, best)} of {number} models,"
    rules = "fixed offsets and keywords" if findings.language.keywords else "fixed offsets"
    return (
        f"In {findings.title}, the attention heads of {name} find {score[0]:.1f} % of the {sought} with one guess, "
        f"{_than(findings, best)} that {rules} find without a model"
    )


def _standing(findings: Findings, best: Subject) -> str:
    """Whether the model with the highest score is significantly better than the next."""
    ranked = _best_first(findings)
    places = sorted(findings.subjects.index(model) for model in ranked[:2])
    cell = TABLE_MEASURES.index((RULE, int(K)))
    differences = family([comparison[HELD_OUT].at(cell) for comparison in findings.pairs.values()])
    if dict(zip(findings.pairs, differences))[places[0], places[1]].significant:
        return "the best"
    return f"not significantly better than {ranked[1].name}, the next"


def _further(findings: Findings) -> str:
    """The same in short."""
    best = findings.best_model
    score = _score(findings, best)
    found = f"{best.name} finds {score[0]:.1f} %, {_than(findings, best, 'their')}" if score else "no score exists"
    return f"in {findings.title}, {found}"


def _than(findings: Findings, model: Subject, whose: str = "the") -> str:
    than = {1: "more than", -1: "less than", 0: "not significantly different from"}[_sign(findings, model)]
    return f"{than} {whose} {_of_baseline(findings)[0]:.1f} %"


def _best_first(findings: Findings) -> list[Subject]:
    return sorted(findings.models, key=lambda model: -(_score(findings, model) or [-1])[0])


def _score(findings: Findings, model: Subject) -> list[Any] | None:
    return model.means[HELD_OUT][RULE][K]


def _of_baseline(findings: Findings) -> list[Any]:
    """The same of the best baseline; NaN without a held-out score."""
    return findings.baseline(HELD_OUT, BEST_BASELINE)[RULE][K] or [np.nan]


def _difference(findings: Findings, model: Subject) -> list[float] | None:
    """The difference of a model to the best baseline."""
    return findings.row[model.name].difference(HELD_OUT, RULE, K)


def _sign(findings: Findings, model: Subject) -> int:
    """1 or -1 if the test separates the model from the best baseline, otherwise 0."""
    cell = _difference(findings, model)
    return int(np.sign(cell[0])) if cell and separated(cell[-1]) else 0


def _figure(all_findings: Sequence[Findings]) -> Figure:
    """The table as a picture, of as many rows as fit on a screen."""
    most = max(1, MOST_ROWS // len(all_findings))
    shown = [(findings, model) for findings in all_findings for model in _best_first(findings)[:most]]
    hard, next_best, chance = zip(*(beyond.scores(findings, model) for findings, model in shown))
    several_configs = len(all_findings) > 1
    several_models = any(len(findings.models) > 1 for findings in all_findings)
    names = [_label(findings, model, several_configs, several_models) for findings, model in shown]

    panels = {
        "of all edges, %": [
            Points("heads of the model", [_score(findings, model) for findings, model in shown], COLOURS[0]),
            Points("best baseline", [_of_baseline(findings)[0] for findings, _ in shown], INK, TICK),
        ],
        "beyond the best offset, %": [
            Points("heads of the model", hard, COLOURS[0]),
            Points("best baseline", next_best, INK, TICK),
            Points("chance", chance, FAINT, TICK),
        ],
    }
    left_out = any(len(findings.models) > most for findings in all_findings)
    return Figure(
        "models",
        "Held-out scores of the table, with 95 % intervals."
        + f" Each config shows its best {counted(most, 'model')}." * left_out,
        "A dot for the heads of each model and a line for the best baseline. The table has the numbers.",
        "models",
        lambda: figures.rows(names, panels),
    )


def _label(findings: Findings, model: Subject, several_configs: bool, several_models: bool) -> str:
    texts = [model.name] if several_models or not several_configs else []
    return "\n".join([*texts, findings.title] if several_configs else texts)
