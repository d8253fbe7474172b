"""Functions before and after edits, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from codesyntax_dataset.languages import variant_of
from codesyntax_dataset.protocol import BEST_BASELINE, EDITS
from probing.evidence.compared import HEADS, OFFSET, Changes, changes
from probing.evidence.gather import Probed, find
from probing.report import specs
from probing.report.document import Section, Table
from probing.report.findings import Findings, Subject
from probing.report.words import RULE, K, method
from probing.stats.intervals import Estimate, family

SYSTEM_TITLES = {HEADS: "best heads", OFFSET: "best offset", BEST_BASELINE: "best baseline"}


class EditedModel(NamedTuple):
    """A model on a config and on the same functions after `edit`; `change`: of each of
    SYSTEM_TITLES, that of heads with p corrected."""

    edit: str
    model: str
    changes: Changes
    change: dict[str, Estimate]


def read_edited(all_findings: Sequence[Findings], data: Any = None) -> dict[str, list[EditedModel]]:
    """Name of findings -> their models after edits, in the order of EDITS; p is corrected (Holm)
    for all of these.

    Raises LedgerError for two configs with other edges, and DataNotFound if the data are not found.
    """
    plain = [findings for findings in all_findings if variant_of(findings.config).edit is None]
    edited = {findings.name: _edited(findings, all_findings, data) for findings in plain}
    return {name: models for name, models in edited.items() if models}


def _edited(plain: Findings, all_findings: Sequence[Findings], data: Any) -> list[EditedModel]:
    models: list[EditedModel] = []
    for edit, findings in product(EDITS, all_findings):
        labels = replace(variant_of(plain.config), edit=edit)
        if findings.language != plain.language or variant_of(findings.config) != labels:
            continue
        for before, after in product(plain.models, findings.models):
            if _way(before) != _way(after):
                continue
            if changed := changes(_probed(before), _probed(after), data):
                means = {
                    who: _mean_difference(sides.difference) for who, sides in changed.by.items()
                }
                models.append(EditedModel(edit, before.name, changed, means))
    corrected = family([model.change[HEADS] for model in models])
    return [
        model._replace(change={**model.change, HEADS: change})
        for model, change in zip(models, corrected)
    ]


def _mean_difference(comparison: Any) -> Estimate:
    mean: Estimate = comparison.of_mean(RULE, int(K))
    return mean


def _probed(subject: Subject) -> Probed:
    (probed,) = find([subject.file, subject.chosen_on])
    return probed


def _way(subject: Subject) -> Any:
    """How a model was probed, whatever the config."""
    data = subject.settings.data.partition("@")[0]
    return subject.settings.model_copy(update={"config": "", "labels": "", "data": data})


def edits(
    all_findings: Sequence[Findings], edited: Mapping[str, Sequence[EditedModel]]
) -> list[Section]:
    """What heads and baselines find before and after the edits of `edited`, by name of findings, on
    the same functions; none if there are no edits."""
    tables = [
        _means_table(findings, edited[findings.name])
        for findings in all_findings
        if findings.name in edited
    ]
    return [Section("edits", "Edited functions", [*method("edits"), *tables])] if tables else []


def _means_table(findings: Findings, edited: Sequence[EditedModel]) -> Table:
    rows = []
    for entry, who in product(edited, SYSTEM_TITLES):
        after, before = entry.changes.by[who].means
        rows.append(
            {
                "edit": entry.edit,
                "name": entry.model if who == HEADS else SYSTEM_TITLES[who],
                "changes": entry.changes,
                "before": before,
                "after": after,
                "change": entry.change[who],
            }
        )
    meanings = dict.fromkeys(f"{entry.edit}: {EDITS[entry.edit]}" for entry in edited)
    return specs.table(
        "edits",
        rows,
        f"{findings.name}-edits",
        findings=findings,
        number=len(edited),
        meanings="; ".join(meanings),
    )
