"""The answer, which a report opens with: one sentence, one table of models and one figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import BEYOND_OFFSET, HELD_OUT, PUBLISHED
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN
from probing.report import figures, means, specs
from probing.report.document import Figure, Part, RowRecord, Section, Table, verdict
from probing.report.figures import COLOURS, INK, Dots
from probing.report.findings import Findings, Subject, read_findings
from probing.report.kinds import PERCENT
from probing.report.scored import ScoredRow, chosen_on_in_words, too_narrow_in_words
from probing.report.words import TWO_DIRECTIONS, number_of, starred

NAMED = 3
"""The most configs or relations that a sentence names."""

LABEL_WIDTH = 26
"""Characters of a line beside the figure: longer names would leave no room for it on a phone."""

MOST_ROWS = 12
"""With more models and configs than this, the table shows one config at a time."""


def answer_section(all_findings: Sequence[Findings]) -> Section:
    """The answer."""
    known = [findings for findings in all_findings if findings.models]
    parts: list[Part] = []
    if one_training(known):
        parts = [means.course_sentence(known)]
        for findings in known:
            parts += means.course(f"{findings.name}-emergence", findings, findings.trainings[0])
        parts.append(models_table(known))
    elif known:
        parts = [sentence(known), *_rivalries(known), models_table(known), _table_figure(known)]
    elif all_findings:
        parts = ["The results contain controls only, and no model."]
    return Section("finding", "What was found", parts)


def one_training(all_findings: Sequence[Findings]) -> bool:
    """True if all models are steps of one training."""
    names = set()
    for findings in all_findings:
        if not len(findings.models) == len(findings.trainings) == 1:
            return False
        names.add(findings.trainings[0].model)
    return len(names) == 1


def answer_parts(files: Sequence[Path], data: Any) -> list[Part]:
    """The answer to results in files, as text and tables: of one model, with its relations."""
    all_findings = read_findings(files, data)
    parts: list[Part] = [
        part for part in answer_section(all_findings).parts if not isinstance(part, Figure)
    ]
    models = [(findings, model) for findings in all_findings for model in findings.models]
    if len(models) == 1 and not one_training(all_findings):
        sentences = [part for part in parts if isinstance(part, str)]
        return [*sentences, *_of_one_model(*models[0])]
    return parts


def _of_one_model(findings: Findings, model: Subject) -> list[Part]:
    """The relations of a model, those in which it gains most first, and why its published score is
    another."""
    names = findings.relations(model.name, HELD_OUT)
    rows = [ScoredRow(findings, model.name, group=name) for name in names]
    rows.sort(key=lambda row: (-row.difference.value if row.difference else np.inf, row.group))
    mean = ScoredRow(findings, model.name)
    published = mean.get(PUBLISHED).score
    table = specs.table(
        "first",
        [_line(row, starred(row.group, row.group not in NOT_IN_MEAN)) for row in rows],
        totals=[_line(mean, f"mean of {mean.relations} relations")],
        model=model,
        findings=findings,
    )
    why = [specs.text("published-too", score=published)] if published and mean.score else []
    return [table, *why, model.signature]


def _line(row: ScoredRow, name: str) -> RowRecord:
    return {"relation": name, "row": row}


def sentence(all_findings: Sequence[Findings]) -> str:
    """The best model of each config beside the best baseline, on unseen data, in one direction."""
    direction = all_findings[0].settings.direction
    alike = [findings for findings in all_findings if findings.settings.direction == direction]
    if len(alike) <= NAMED:
        rows = [row for row in map(_best_in_words, alike) if row.score is not None]
        return _sentences(rows) if rows else specs.text("no-score", findings=alike[0])
    verdicts = [verdict(_best_in_words(findings).difference) for findings in alike]
    more, less, configs = verdicts.count("higher"), verdicts.count("lower"), len(alike)
    same = configs - more - less
    return specs.text("sentence-of-many", more=more, less=less, same=same, configs=configs)


def _best_in_words(findings: Findings) -> ScoredRow:
    return ScoredRow(findings, findings.ranked[0].name)


def models_table(all_findings: Sequence[Findings]) -> Table:
    """The models of each config, best first, on all edges and beyond offsets."""
    rows = [{"model": row, "hard": row.get(BEYOND_OFFSET)} for row in _models_shown(all_findings)]
    several = len({findings.settings.direction for findings in all_findings}) > 1
    return specs.table(
        "models",
        rows,
        several=several,
        directions=TWO_DIRECTIONS * several,
        filters=int(len(rows) > MOST_ROWS or len(all_findings) == 1),
        chosen_on=chosen_on_in_words(all_findings),
        too_narrow=too_narrow_in_words(all_findings),
    )


def _models_shown(all_findings: Sequence[Findings], most: int | None = None) -> list[ScoredRow]:
    """The models of each config, best first, at most so many."""
    return [
        ScoredRow(findings, model.name)
        for findings in all_findings
        for model in findings.ranked[:most]
    ]


def _sentences(rows: Sequence[ScoredRow]) -> str:
    """What the best model of each config finds, and the best baseline, in two sentences."""
    names = list(dict.fromkeys(row.name for row in rows))
    dependents = rows[0].findings.settings.direction == HEAD_TO_DEPENDENT
    sought = f" of the {'dependents' if dependents else 'head tokens'}"
    clauses = []
    for number, row in enumerate(rows):
        who = "" if number and len(names) == 1 else f"those of {row.name} "
        whose = who if number else f"the attention heads of {row.name} find "
        score = PERCENT.show(row.score.value if row.score else np.nan)
        clauses.append(f"{whose}{score} %{'' if number else sought} in {row.findings.place}")
    verdicts = [_VERDICTS[verdict(row.difference)] for row in rows]
    baselines = [row.best_baseline.value if row.best_baseline else np.nan for row in rows]
    shown = [f"{PERCENT.show(value)} %" for value in baselines]
    if len(set(verdicts)) == 1:
        than = f"{_listed(shown)}, {verdicts[0]}"
    else:
        than = _listed([f"{text} ({than})" for text, than in zip(shown, verdicts)])
    return specs.text(
        "sentence",
        where=rows[0].findings.part,
        found=_listed(clauses),
        baseline="The best baseline, which needs no model, finds"
        if len(rows) == 1
        else "The best baselines, which need no model, find",
        than=than,
    )


_VERDICTS = {
    "higher": "significantly less",
    "lower": "significantly more",
    "not significant": "which does not differ significantly",
    "": "which was not tested",
}


def _listed(texts: Sequence[str]) -> str:
    """Texts with commas and a last `and`."""
    *before, last = texts
    return f"{', '.join(before)} and {last}" if before else last


def _rivalries(all_findings: Sequence[Findings]) -> list[str]:
    """Whether the best of several models is significantly better than the next, in a sentence."""
    said = []
    for findings in all_findings:
        settings = [model.settings for model in findings.models]
        number = len({(model.model, model.revision) for model in settings})
        if number < 2 or _best_in_words(findings).score is None:
            continue
        first, second, *_ = findings.ranked
        pair = sorted(map(findings.subjects.index, (first, second)))
        better = findings.pairs[pair[0], pair[1]].significant
        how = "significantly better" if better else "not significantly better"
        said.append(
            f"Of {number} models in {findings.place}, {first.name} is {how} than {second.name}, the next."
        )
    return [" ".join(said)] * bool(said)


def _table_figure(all_findings: Sequence[Findings]) -> Figure:
    """The table as a picture, of as many rows as fit on a screen."""
    most = max(1, MOST_ROWS // len(all_findings))
    all_edges = _models_shown(all_findings, most)

    def series(rows: Sequence[ScoredRow]) -> list[Dots]:
        baselines = [row.best_baseline and row.best_baseline.value for row in rows]
        heads = Dots("heads of the model", [row.score for row in rows], COLOURS[0])
        return [heads, Dots("best baseline", baselines, INK, needs_no_model=True)]

    panels = {
        "of all edges, %": series(all_edges),
        "beyond the best offset, %": series([row.get(BEYOND_OFFSET) for row in all_edges]),
    }
    several_models = any(len(findings.models) > 1 for findings in all_findings)
    names = [_label(row, len(all_findings) > 1, several_models) for row in all_edges]
    some = any(len(findings.models) > most for findings in all_findings)
    figure = specs.figure(
        "models",
        "models",
        lambda: figures.dots(names, panels),
        left_out=f" Each config shows its best {number_of(most, 'model')}." * some,
    )
    return replace(figure, on_page=False)


def _label(row: ScoredRow, several_configs: bool, several_models: bool) -> str:
    shown = [row.name] if several_models or not several_configs else []
    shown += [row.findings.title] if several_configs else []
    return "\n".join(fill(text, LABEL_WIDTH) for text in shown)
