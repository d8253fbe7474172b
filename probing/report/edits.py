"""The section of a report on edits: what heads and baselines find before and after, on the same functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.languages import variant_of
from codesyntax_dataset.protocol import BEST_BASELINE, EDITS
from probing.evidence.compared import HEADS, OFFSET, WHO, Changes, changes
from probing.evidence.gather import Probed, find
from probing.evidence.statistics import holm
from probing.evidence.uncertainty import bounded
from probing.report import figures
from probing.report.document import (
    COLOURED,
    COUNT,
    DIFFERENCE,
    MARKED,
    NAME,
    PERCENT,
    Column,
    Figure,
    P,
    Section,
    Table,
    separated,
)
from probing.report.figures import COLOURS, FAINT, INK, Dots
from probing.report.findings import Findings, Subject
from probing.report.scored import mean_difference, with_marks
from probing.report.words import file_names, interval, method

TITLE = "Edited functions"

BASELINES = {OFFSET: "best offset", BEST_BASELINE: "best baseline"}


class EditedModel(NamedTuple):
    """A model on a config and on the same functions after `edit`; `p`: of the change of its heads, corrected."""

    edit: str
    model: str
    changes: Changes
    p: float


def read_edited(all_findings: Sequence[Findings], data: Any = None) -> dict[str, list[EditedModel]]:
    """Name of findings -> their models after edits, in the order of EDITS; p is corrected (Holm) for all of these.

    Raises LedgerError for two configs with other edges, and DataNotFound if the data are not found.
    """
    unedited = [findings for findings in all_findings if variant_of(findings.config).edit is None]
    return {plain.name: edited for plain in unedited if (edited := _edited(plain, all_findings, data))}


def _edited(plain: Findings, all_findings: Sequence[Findings], data: Any) -> list[EditedModel]:
    labels = variant_of(plain.config)
    found = [
        (edit, one.name, changed)
        for edit in EDITS
        for findings in all_findings
        if findings.language == plain.language and variant_of(findings.config) == replace(labels, edit=edit)
        for one, other in _same_models(plain, findings)
        if (changed := changes(_probed(one), _probed(other), data))
    ]
    corrected = holm(np.array([float(changed.by[HEADS].difference.p_mean[0, 0]) for _, _, changed in found]))
    return [EditedModel(*one, p) for one, p in zip(found, corrected.tolist())]


def _probed(subject: Subject) -> Probed:
    (probed,) = find([subject.file, subject.chosen_on])
    return probed


def _same_models(plain: Findings, findings: Findings) -> list[tuple[Subject, Subject]]:
    """The models that were probed in the same way on both."""

    def alike(subject: Subject) -> Any:
        settings = subject.settings
        return settings.model_copy(update={"config": "", "labels": "", "data": settings.data.partition("@")[0]})

    return [(one, other) for one in plain.models for other in findings.models if alike(one) == alike(other)]


def section(all_findings: Sequence[Findings], edited: Mapping[str, Sequence[EditedModel]]) -> Section:
    """The effects of the edits of `edited`, by name of findings."""
    parts = [_config(findings, edited[findings.name]) for findings in all_findings if findings.name in edited]
    return Section("edits", TITLE, method("edits"), parts)


def _config(findings: Findings, edited: Sequence[EditedModel]) -> Section:
    key = f"{findings.name}-edits"
    models = list(dict.fromkeys(one.model for one in edited))
    parts: list[str | Table | Figure] = [
        _told(model, [one for one in edited if one.model == model]) for model in models
    ]
    parts += [_figure(key, findings, edited, models), _means(key, findings, edited)]
    parts += [
        _relations(f"{key}-{file}", model, [one for one in edited if one.model == model])
        for file, model in zip(file_names(models), models)
    ]
    return Section(key, findings.title, parts)


def _told(model: str, edited: Sequence[EditedModel]) -> str:
    """The effect of each edit on a model and on the best offset."""
    sentences = []
    for one in edited:
        (heads, heads_before), (offset, offset_before) = (one.changes.by[who].means for who in (HEADS, OFFSET))
        difference, low, high, p = _cell(one, HEADS)
        if not separated(p):
            told = f"the heads change by {DIFFERENCE.show(difference)} points, which the test does not separate from 0"
        else:
            told = f"the heads {('lose' if difference < 0 else 'gain')} {abs(difference):.1f} points"
        if offset_before == offset:
            of_offset = f"stays at {offset:.1f} %"
        else:
            of_offset = f"goes from {offset_before:.1f} to {offset:.1f} %"
        sentences.append(
            f"After {one.edit}, {told} (from {heads_before:.1f} to {heads:.1f} %; "
            f"{interval(low, high, DIFFERENCE)}, p = {P.show(p)}); the best offset {of_offset}."
        )
    return f"{model}: {' '.join(sentences)}"


def _cell(one: EditedModel, who: str) -> list[float]:
    """The change of a mean: [difference, low, high, p]."""
    *difference, p = mean_difference(one.changes.by[who].difference, 0)
    return [*difference, one.p if who == HEADS else p]


def _figure(key: str, findings: Findings, edited: Sequence[EditedModel], models: Sequence[str]) -> Figure:
    edits = list(dict.fromkeys(one.edit for one in edited))

    def dots(label: str, who: str, model: str, colour: str) -> Dots:
        by_edit = {one.edit: _cell(one, who) for one in edited if one.model == model}
        cells = [by_edit.get(edit, [np.nan] * 4) for edit in edits]
        return Dots(label, np.array([cell[:3] for cell in cells]).T, colour, [separated(cell[3]) for cell in cells])

    series = [dots(model, HEADS, model, colour) for model, colour in zip(models, cycle(COLOURS))]
    series += [dots(name, who, models[0], colour) for (who, name), colour in zip(BASELINES.items(), (INK, FAINT))]
    return Figure(
        key,
        f"{findings.title}: the change of the mean top-1 UAS after each edit, with 95 % intervals. Filled points: p "
        "< 0.05.",
        f"Dots for the change after {', '.join(edits)}. The table has the numbers.",
        key,
        lambda: figures.effects(edits, series, "change of top-1 UAS, points"),
    )


def _means(key: str, findings: Findings, edited: Sequence[EditedModel]) -> Table:
    rows = []
    for one in edited:
        sizes = [one.changes.functions, one.changes.lost, one.changes.edges]
        for who in WHO:
            after, before = one.changes.by[who].means
            name = BASELINES.get(who, one.model)
            rows.append([one.edit, name, *sizes, before, after, _cell(one, who)])
    columns = [Column("edit", NAME), Column("name", NAME), Column("functions", COUNT), Column("lost", COUNT)]
    columns += [
        Column("edges", COUNT),
        *Column.each(PERCENT, "before", "after"),
        Column("change", DIFFERENCE),
    ]
    meanings = "; ".join(f"{edit}: {EDITS[edit]}" for edit in dict.fromkeys(one.edit for one in edited))
    return Table(
        key,
        f"Mean top-1 UAS before and after edits, {findings.title}",
        columns,
        rows,
        "Percent with 95 % intervals over functions, on the functions that both configs have. Lost: functions that "
        "the edited config lacks, because the edit would change their labels or make them too long for the model. "
        f"Baselines are on the functions of the model. p: corrected (Holm) over {len(edited)} changes of models, and "
        f"uncorrected for baselines. {COLOURED} {meanings}.",
    )


def _relations(key: str, model: str, edited: Sequence[EditedModel]) -> Table:
    rows = []
    for one in edited:
        by = one.changes.by
        compared = by[HEADS].difference
        order = np.argsort(compared.difference.relations[0, 0, 0], kind="stable")
        for column in order.tolist():
            name = compared.relations[column]
            cell = [*bounded(compared.difference.relations[:, 0, 0, column]), float(compared.p_holm[0, 0, column])]
            numbers = [by[who].relations[side, column].item() for who in WHO for side in (1, 0)]
            rows.append([one.edit, with_marks(name), cell, *numbers])
    columns = [Column("edit"), Column("relation", MARKED), Column("change", DIFFERENCE, "best heads")]
    for group in ("best heads", *BASELINES.values()):
        columns += [Column("before", PERCENT, group), Column("after", PERCENT, group)]
    return Table(
        key,
        f"Top-1 UAS of relations before and after edits, {model}",
        columns,
        rows,
        "Percent, largest loss first, with 95 % intervals. p: corrected (Holm) over the relations of an edit. "
        f"{COLOURED}",
        filters=1,
    )
