"""The report: a self-contained page, and its tables, figures and numbers as files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codesyntax_dataset.arguments import Paths, StrPath, checked
from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.languages import variant_of
from probing.evidence.gather import by_instrument
from probing.instruments.registry import INSTRUMENTS
from probing.report import (
    beyond,
    edited,
    headline,
    means,
    relations,
    specs,
    syntaxeval,
)
from probing.report.atlas import Atlas
from probing.report.document import Figure, Section, Table
from probing.report.findings import Findings, read_findings
from probing.report.folder import FIGURE_FORMATS, Report, check_ours, save
from probing.report.functions import OpenedFunctions
from probing.report.results import parts
from probing.report.syntaxeval import MaskedModels, read_groups
from probing.report.words import file_names, method
from probing.runs.clusters import over_in_words
from probing.runs.ledger_file import ATTENTION, MASKING
from probing.runs.repositories import clustered_by

logger = logging.getLogger(__name__)

COMMAND = "report"

FORMATS = ("html", *FIGURE_FORMATS)


@checked
def report(
    results: Paths,
    output: StrPath,
    data: Any = None,
    format: str = FORMATS[0],
    tell: Any = logger.info,
    cluster: str | None = None,
) -> Path:
    """Write a report on results: a page, and its tables, figures and numbers as files.

    The folder has `index.html`, `report.md`, `tables/*.csv` and `figures/*.svg`. It is written as a
    whole or not at all; an existing report is replaced. The same results give the same bytes.

    Args:
        results: files or folders that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise`
            wrote.
        output: the folder of the report.
        data: the location of the dataset, if not the one in the results.
        format: `html`; `latex` adds `tables/*.tex` (booktabs) and `figures/*.pdf`, `png` adds
            `figures/*.png`.
        tell: called with each step.
        cluster: what intervals and tests are over, `function` or `repository`; by default the
            latter for results on functions of at least six repositories.

    Returns:
        The path of its page.

    Raises:
        LedgerError: `results` are not results, or `output` exists and is not a report.
        UnknownName: another format.

    Examples:
        >>> import probing
        >>> probing.report(["results"], "report").name
        'index.html'
    """
    output = Path(output).resolve()
    check_ours(output, COMMAND)
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    with clustered_by(cluster, data):
        document = replace(make(results, data, tell), format=format)
        tell(f"drawing and writing {output}")
        return save(document, output)


def make(results: Paths, data: Any = None, tell: Any = logger.info) -> Report:
    """The report that `report` writes."""
    files = by_instrument(results)
    probed = files.pop(ATTENTION)
    tell("reading results, computing intervals and tests")
    masked = read_groups(files.pop(MASKING))
    others = []
    for name, of_instrument in files.items():
        others += INSTRUMENTS[name].result.load_each(of_instrument)
    all_findings = []
    if probed or not (masked or others):
        all_findings = read_findings(probed, data)
    return Report(
        command=COMMAND,
        source="ledgers",
        title="What language models know about the syntax of code" + over_in_words(),
        sections=sections(all_findings, masked, others, data),
    )


# ----------------------------------------------------------------------------------------- sections

MODELS_ON_A_PAGE = 5
"""The most models of a config whose tables are on the page: with more, they are files only."""


def sections(
    all_findings: Sequence[Findings],
    masked: Sequence[MaskedModels] = (),
    others: Sequence[Any] = (),
    data: Any = None,
) -> list[Section]:
    """The whole report: on the attention probe, on masked syntax, on other instruments, or on
    several of these. It opens with what was found. `others`: results of other instruments; `data`:
    the location of the dataset of attention, if not the one in the results."""
    rest = [
        *(_attention_sections(all_findings, data) if all_findings else []),
        *syntaxeval.sections(masked),
        *_on_their_own(others),
    ]
    if all_findings:
        rest.append(Section("method", "How to read this", method("attention")))
        rest.append(_provenance_table(all_findings))
    fold(rest)
    if all_findings:
        for section in rest[: min(len(all_findings), headline.NAMED)]:  # the best models
            section.folded = False
        return [headline.answer_section(all_findings), *rest]
    rest[0].folded = False  # it is the answer, in full
    return rest


def _on_their_own(results: Sequence[Any]) -> list[Section]:
    """Results as commands print them, each with files of its own."""
    results = sorted(results, key=lambda result: (result.title, result.signature))
    sections = []
    for result, name in zip(results, file_names([result.settings.name for result in results])):
        shown = parts(result)
        for part in shown:
            if isinstance(part, Table | Figure):
                part.name = f"{name}-{part.name}"
            if isinstance(part, Figure):
                part.table = f"{name}-{part.table}"
        sections.append(Section(name, result.title, shown))
    return sections


def fold(sections: list[Section]) -> None:
    """Fold each of the sections, and those in them if there are several."""
    for section in sections:
        section.folded = True
        if len(section.sections) > 1:
            fold(section.sections)


def _attention_sections(all_findings: Sequence[Findings], data: Any) -> list[Section]:
    best: list[Section] = []
    others: list[Section] = []
    encoders: dict[Any, Any] = {}
    for findings in all_findings:
        shown = _models_to_look_at(findings, OpenedFunctions(findings, data, encoders))
        best += shown[:1]
        others += shown[1:]
    return [
        *best,
        *others,
        beyond.section(all_findings),
        *edited.edits(all_findings),
        *([] if headline.one_training(all_findings) else means.emergence(all_findings)),
        Section("overview", "Models, controls and baselines", [means.overview(all_findings)]),
        *map(_config_section, all_findings),
    ]


def _models_to_look_at(findings: Findings, functions: OpenedFunctions) -> list[Section]:
    """A section for each model, the best first; of too many, the others' numbers are files."""
    sections: list[Section] = []
    for number, model in enumerate(findings.ranked):
        table = relations.table(findings, model)
        atlas = Atlas(findings, model, functions, table)
        if number < MODELS_ON_A_PAGE:
            sections.append(Section(atlas.name, atlas.title, [atlas], drawn=[table]))
        else:
            sections[-1].drawn.append(table)
    return sections


def _config_section(findings: Findings) -> Section:
    notes = [specs.text("config", findings=findings, first=findings.subjects[0])]
    if token := variant_of(findings.config).never_predicted:
        notes.append(specs.text("never-predicted", config=findings.config, token=token))
    return Section(findings.name, f"Data: {findings.title}", notes)


def _provenance_table(all_findings: Sequence[Findings]) -> Section:
    rows = []
    skips = []
    for findings in all_findings:
        for subject in findings.subjects:
            heads = f"{subject.layers} × {subject.heads}"
            rows.append({"config": findings.title, "subject": subject, "heads": heads})
            for reason, count in subject.skips.items():
                skips.append([findings.title, subject.name, reason, count])
    skipped = specs.table("skips", skips) if skips else "All functions were scored."
    parts = [specs.table("results", rows), skipped]
    return Section("provenance", "Results and signatures", parts)
