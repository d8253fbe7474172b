"""Functions before and after edits, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from codesyntax_dataset.languages import variant_of
from codesyntax_dataset.protocol import EDITS
from probing.evidence.compared import ModelsCompared, compared_heads
from probing.evidence.gather import find
from probing.report import specs
from probing.report.document import RowRecord, Section, Table
from probing.report.findings import Findings, Subject
from probing.report.words import RULE, K, method
from probing.stats.intervals import family


def edits(all_findings: Sequence[Findings]) -> list[Section]:
    """What the heads of models find before and after edits, on the same functions; none if there
    are no edits.

    Raises LedgerError for two configs with other edges.
    """
    plain = [findings for findings in all_findings if variant_of(findings.config).edit is None]
    edited = [(findings, edited_models(findings, all_findings)) for findings in plain]
    tables = [_means_table(findings, rows) for findings, rows in edited if rows]
    return [Section("edits", "Edited functions", [*method("edits"), *tables])] if tables else []


def edited_models(plain: Findings, all_findings: Sequence[Findings]) -> list[RowRecord]:
    """Rows of the models of `plain` findings after edits, in the order of EDITS; p is corrected
    (Holm) for all of these."""
    rows: list[RowRecord] = []
    for edit, findings in product(EDITS, all_findings):
        labels = replace(variant_of(plain.config), edit=edit)
        if findings.language != plain.language or variant_of(findings.config) != labels:
            continue
        for before, after in product(plain.models, findings.models):
            if _way(before) == _way(after) and (compared := _compared(before, after)):
                means = dict(zip(("after", "before"), compared.means))
                lost = before.functions - compared.functions
                change = compared.difference.of_mean(RULE, int(K))
                row = {
                    "edit": edit,
                    "name": before.name,
                    "lost": lost,
                    "change": change,
                    **means,
                    "functions": compared.functions,
                    "edges": int(compared.edges.sum()),
                }
                rows.append(row)
    corrected = family([row["change"] for row in rows])
    return [{**row, "change": change} for row, change in zip(rows, corrected)]


def _compared(before: Subject, after: Subject) -> ModelsCompared | None:
    """After the edit against before."""
    (second,), (first,) = (find([side.file, side.chosen_on]) for side in (before, after))
    return compared_heads(first, second)


def _way(subject: Subject) -> Any:
    """How a model was probed, whatever the config."""
    data = subject.settings.data.partition("@")[0]
    return subject.settings.model_copy(update={"config": "", "labels": "", "data": data})


def _means_table(findings: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    meanings = dict.fromkeys(f"{row['edit']}: {EDITS[row['edit']]}" for row in rows)
    return specs.table(
        "edits",
        rows,
        f"{findings.name}-edits",
        findings=findings,
        number=len(rows),
        meanings="; ".join(meanings),
    )
