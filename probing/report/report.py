"""The report: a self-contained page, and its tables, figures and numbers as files."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.languages import variant_of
from codesyntax_dataset.protocol import HELD_OUT, PUBLISHED
from probing.evidence.gather import PUBLISHED_FIRST, by_instrument, of_file
from probing.evidence.submission import for_boards
from probing.instruments.likelihood.result import PreferenceResult
from probing.instruments.registry import INSTRUMENTS
from probing.report import (
    beyond,
    configs,
    headline,
    information,
    means,
    relations,
    silencing,
    syntaxeval,
)
from probing.report.document import OVER_REPOSITORIES, Column, Section, Table
from probing.report.findings import Findings, Subject, read_findings
from probing.report.folder import FIGURE_FORMATS, Report, check_ours, model_pages, save
from probing.report.information import InformedModel, read_informed, read_preferred
from probing.report.kinds import CODE, COUNT, NAME
from probing.report.results import parts
from probing.report.silencing import SilencedModel, read_silenced
from probing.report.syntaxeval import MaskedModels, read_groups
from probing.report.words import method
from probing.runs.clusters import FUNCTION, over_repositories
from probing.runs.ledger_file import ATTENTION, INFORMATION, MASKING, PREFERENCE, SILENCING
from probing.runs.repositories import clustered_by
from probing.stats.cache import caching
from probing.stats.intervals import FEW_CLUSTERS

logger = logging.getLogger(__name__)

COMMAND = "report"

FORMATS = ("html", *FIGURE_FORMATS)

_WITH_SECTIONS = {MASKING, SILENCING, INFORMATION, PREFERENCE}
"""Of other instruments than attention, a section of a report has the tables that commands print."""

REPORT_TITLE = "What attention heads know about the syntax of code"
MASKING_TITLE = "What masked language models restore of the syntax of code"
BOTH_TITLE = "What language models know about the syntax of code"


@checked
def report(
    results: Sequence[str | os.PathLike],
    output: str | os.PathLike,
    data: Any = None,
    format: str = FORMATS[0],
    tell: Any = logger.info,
    cluster: str = FUNCTION,
) -> Path:
    """Write a report on `results`, files or folders that `probe`, `mask`, `ablate`, `inform`,
    `prefer` or `surprise` wrote, into `output`.

    Returns the path of its page.

    `data`: the location of the dataset, if not the one in the results. `cluster`: what intervals
    and tests are over, function or repository. `format`: "latex" adds `report.tex`, `tables/*.tex`
    (booktabs) and `figures/*.pdf`, "png" adds `figures/*.png`. `tell` is called with each step. The
    folder has `index.html`, `report.md`, `tables/*.csv`, `figures/*.svg`, and
    `entries/*.hits.parquet`; with many models also `models/*.html`, a page with the details of
    each. It is written as a whole or not at all; an existing report is replaced. The same results
    give the same bytes.

    Raises LedgerError if `results` are not results, or if `output` exists and is not a report;
    UnknownName for another format.
    """
    output = Path(output).resolve()
    check_ours(output, COMMAND)
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    with clustered_by(cluster, data):
        document = replace(make(results, data, tell), format=format)
        tell(f"drawing and writing {output}")
        return save(document, output)


def make(results: Sequence[str | os.PathLike], data: Any = None, tell: Any = logger.info) -> Report:
    """The report that `report` writes."""
    files = by_instrument(results)
    probed = files.pop(ATTENTION)
    tell("reading results, computing intervals and tests")
    masked, silenced = read_groups(files[MASKING]), read_silenced(files[SILENCING])
    informed, preferred = read_informed(files[INFORMATION]), read_preferred(files[PREFERENCE])
    others = [
        INSTRUMENTS[name].result.load(file)
        for name in files.keys() - _WITH_SECTIONS
        for file in files[name]
    ]
    with caching():
        all_findings = read_findings(probed, data) if probed or not any(files.values()) else []
    sources = {
        "rank": all_findings,
        "masking": masked,
        "silencing": silenced,
        "information": informed,
        "preference": preferred,
    }
    pages = model_pages_of(all_findings)
    models = of_models(all_findings, pages)
    return Report(
        command=COMMAND,
        source=" and ".join(name for name, entry in sources.items() if entry) + " ledgers",
        title=(BOTH_TITLE if all_findings and masked else MASKING_TITLE if masked else REPORT_TITLE)
        + OVER_REPOSITORIES * over_repositories(),
        sections=sections(all_findings, masked, silenced, informed, preferred, others, pages, data),
        about=_about(bool(all_findings), bool(masked), bool(pages)),
        files=_entries(all_findings, files[MASKING], data),
        models={page: (name, models[name]) for name, page in pages.items()},
    )


def _about(attention: bool, masked: bool, pages: bool) -> str:
    """The contents of the folder, in words."""
    files = [
        "every table as CSV",
        "every figure as SVG",
        *(["a page for each model"] if pages else []),
    ]
    files.append(f"{'this page' if pages else 'the whole report'} as report.md")
    files += (
        [f"each {'attention ' if masked else ''}result as an entry for boards"] if attention else []
    )
    return f"The folder of this page has {', '.join(files[:-1])} and {files[-1]}."


def _entries(
    all_findings: Sequence[Findings], masked: Sequence[Path], data: Any
) -> dict[str, bytes]:
    """Path in the folder -> the entry of each result that a board takes."""
    entries = [subject.entry for findings in all_findings for subject in findings.subjects]
    entries += [for_boards(partial(of_file, file, data)) for file in masked]
    return {
        f"entries/{entry.file_name}": entry.to_bytes() for entry in entries if entry is not None
    }


# ---------------------------------------------------------------------------------------------------------- sections

MODELS_ON_A_PAGE = 5
"""The most models whose details are on the page itself: with more, each has a page of its own."""


def model_pages_of(all_findings: Sequence[Findings]) -> dict[str, str]:
    """Name of a model -> the path of its page; empty if the details of all models are on one
    page."""
    if all(len(findings.models) <= MODELS_ON_A_PAGE for findings in all_findings):
        return {}
    return model_pages({model.name for findings in all_findings for model in findings.models})


def of_models(
    all_findings: Sequence[Findings], names: Mapping[str, str]
) -> dict[str, list[Section]]:
    """Name of a model -> the sections of its page: its results on each config, and by language.
    `names`: as of `pages`."""
    pairs = {findings.name: means.pairs(findings) for findings in all_findings if findings.pairs}
    unedited = _unedited(all_findings)
    return {
        name: [
            Section(
                "finding",
                headline.HEADLINE_TITLE,
                [headline.of_model(all_findings, name, f"models-{Path(page).stem}")],
            ),
            *(
                _model(findings, subject, pairs.get(findings.name))
                for findings in all_findings
                for subject in findings.models
                if subject.name == name
            ),
            *configs.languages(unedited, only=name),
        ]
        for name, page in names.items()
    }


def _model(findings: Findings, subject: Subject, pairs: Table | None) -> Section:
    key = findings.name
    sections = [
        Section(f"{key}-relations", "Relation by relation", [relations.table(findings, subject)]),
        relations.layers(findings, subject),
    ]
    if hard := beyond.relations(findings, subject):
        sections.insert(0, Section(f"{key}-beyond", beyond.BEYOND_TITLE, hard))
    if pairs is not None:
        others = means.against(findings, subject, pairs)
        sections.append(Section(f"{key}-pairs", "Model against model", [others]))
    sections.append(
        Section(
            f"{key}-errors",
            "What heads find where they are wrong",
            relations.error_tables(findings, subject),
        )
    )
    return Section(key, findings.title, [], fold(sections))


def sections(
    all_findings: Sequence[Findings],
    masked: Sequence[MaskedModels] = (),
    silenced: Sequence[SilencedModel] = (),
    informed: Sequence[InformedModel] = (),
    preferred: Sequence[PreferenceResult] = (),
    others: Sequence[Any] = (),
    links: Mapping[str, str] = MappingProxyType({}),
    data: Any = None,
) -> list[Section]:
    """The whole report: on the attention probe, on masked syntax, on silenced heads, on usable
    information, on minimal pairs, or on several of these. It opens with what was found. `others`:
    results of other instruments. `links`: name of a model -> the link to its page, which has its
    details. `data`: as of `report`."""
    first = headline.section(all_findings, links, information.bits(informed))
    first.sections += [
        *syntaxeval.findings(masked),
        *silencing.findings(silenced),
    ]
    rest = [
        *(_attention(all_findings, links, data) if all_findings else []),
        *syntaxeval.sections(masked),
        *silencing.sections(silenced),
        *information.sections(informed),
        *information.preference_sections(preferred),
        *(Section(result.settings.name, result.title, parts(result)) for result in others),
    ]
    fold(rest)
    if not all_findings:  # the first of the others is the answer, in full
        next(
            section for section in rest if section.all_parts(drawn=False) and section.inside
        ).folded = False
    return [first, *rest]


def fold(sections: list[Section]) -> list[Section]:
    """The same sections, each folded, and those in them if there are several."""
    for section in sections:
        section.folded = True
        if len(section.sections) > 1:
            fold(section.sections)
    return sections


def _unedited(all_findings: Sequence[Findings]) -> list[Findings]:
    return [findings for findings in all_findings if variant_of(findings.config).edit is None]


def _attention(
    all_findings: Sequence[Findings], links: Mapping[str, str], data: Any
) -> list[Section]:
    unedited, of_models = _unedited(all_findings), not links
    return [
        Section(
            "curves",
            "Curves over k",
            [means.curves(findings) for findings in all_findings],
            drawn=[means.curve_points(findings) for findings in all_findings],
        ),
        beyond.section(all_findings, of_models=of_models),
        *configs.edits(all_findings, configs.read_edited(all_findings, data)),
        *means.emergence(all_findings, headline.one_training(all_findings)),
        Section("overview", "Models, controls and baselines", [means.overview(all_findings)]),
        *configs.code_and_language(unedited),
        *(configs.languages(unedited) if of_models else []),
        Section("method", "How to read this", method("attention")),
        *(_config(findings, of_models) for findings in all_findings),
        *configs.ablations(unedited),
        _provenance(all_findings),
    ]


def _config(findings: Findings, of_models: bool) -> Section:
    functions, edges, units = (
        findings.functions,
        findings.subjects[0].result.edges,
        findings.language.units,
    )
    settings = findings.settings
    intro = (
        f"{functions:,} {units} and {edges:,} edges of {settings.data}, config {settings.config}, split "
        f"{settings.split}, direction {settings.direction}: all that every model below can read. Of the relations, "
        f"{_in_mean(findings)}."
    )
    held_out, published = (
        findings.relations(findings.subjects[0].name, name) for name in (HELD_OUT, PUBLISHED)
    )
    notes = [intro]
    if unchosen := sorted(published.keys() - held_out.keys()):
        excluded = ", ".join(f"{name} ({published[name].items:,} edges)" for name in unchosen)
        notes.append(
            f"These relations have no edges on validation, and therefore no held-out score: {excluded}."
        )
    if few := [
        f"{name} ({entry.functions})" for name, entry in published.items() if entry.few_functions
    ]:
        notes.append(f"In fewer than {FEW_CLUSTERS} {units}: {', '.join(few)}.")
    key = findings.name
    sections: list[Section] = []
    detailed = findings.models if of_models else []
    if findings.models:
        preview = relations.preview(findings)
        parts = [
            *([preview] if preview else ()),
            *(relations.table(findings, subject) for subject in detailed),
        ]
        sections.append(Section(f"{key}-relations", "Relation by relation", parts))
    sections += [relations.layers(findings, subject) for subject in detailed]
    if findings.pairs:
        every = means.pairs(findings)
        title, shown = (
            "Model against model",
            [every] if of_models else ["The page of each model has this table."],
        )
        sections.append(Section(f"{key}-pairs", title, shown, drawn=[] if of_models else [every]))
    if detailed:
        of_errors = [
            part for subject in detailed for part in relations.error_tables(findings, subject)
        ]
        sections.append(Section(f"{key}-errors", "What heads find where they are wrong", of_errors))
    return Section(key, findings.title, notes, sections)


def _in_mean(findings: Findings) -> str:
    """The numbers of relations and edges in the mean of each protocol, in words."""
    counts = {protocol: findings.size(protocol) for protocol in PUBLISHED_FIRST}
    return " and ".join(
        f"{number} are in the {protocol} mean, with {edges:,} edges"
        for protocol, (number, edges) in counts.items()
    )


def _provenance(all_findings: Sequence[Findings]) -> Section:
    subjects = [(findings, subject) for findings in all_findings for subject in findings.subjects]
    results = Table(
        "results",
        "The results in this report",
        [
            Column("config", NAME, of=lambda findings, subject: findings.title),
            Column("name", of=lambda findings, subject: subject.name),
            Column("probed", COUNT, "functions", of=lambda findings, subject: subject.functions),
            Column(
                "common", COUNT, "functions", of=lambda findings, subject: subject.result.functions
            ),
            Column(
                "to choose on",
                COUNT,
                "functions",
                of=lambda findings, subject: subject.result.to_choose_on,
            ),
            Column("edges", COUNT, of=lambda findings, subject: subject.result.edges),
            Column(
                "layers × heads",
                NAME,
                of=lambda _, subject: f"{subject.result.layers} × {subject.result.heads}",
            ),
            Column("precision", of=lambda findings, subject: subject.settings.dtype),
            Column("signature", CODE, of=lambda findings, subject: subject.result.signature),
        ],
        subjects,
        "Compare only numbers whose signatures agree. The folder entries has an entry for boards for each model.",
    )
    skips = [
        [findings.title, subject.name, reason, count]
        for findings, subject in subjects
        for reason, count in subject.result.skips.items()
    ]
    columns = [Column("config", NAME), Column("name"), Column("reason"), Column("functions", COUNT)]
    skipped = Table("skips", "Functions that were skipped, and why", columns, skips)
    notes = [
        f"{subject.name}: {note}." for _, subject in subjects for note in subject.result.layers_note
    ]
    rest: list[str | Table] = [
        skipped if skips else "All functions were scored.",
        *dict.fromkeys(notes),
    ]
    return Section("provenance", "Results and signatures", [results, *rest])
