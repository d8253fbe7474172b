"""The sections of a report, built from findings. No score is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codesyntax_dataset.languages import variant_of
from codesyntax_metric.topk_uas import RULES
from probing.attention.error_classes import CLASSES, PLACES
from probing.evidence.gather import PUBLISHED_FIRST
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.prediction.preference_result import PreferenceResult
from probing.report import (
    ablations,
    beyond,
    code_and_language,
    edits,
    emergence,
    headline,
    information,
    languages,
    means,
    mechanism,
    predictors,
    preferences,
    relations,
    silencing,
    syntaxeval,
)
from probing.report.document import CODE, COUNT, NAME, PERCENT, Column, Section, Table
from probing.report.edits import EditedModel
from probing.report.errors import marked
from probing.report.findings import Findings, Subject
from probing.report.folder import model_pages
from probing.report.information import InformedModel
from probing.report.mechanism import ProbedAndMasked
from probing.report.results import parts
from probing.report.scored import RULE, best_model
from probing.report.silencing import SilencedModel
from probing.report.syntaxeval import Group
from probing.report.words import method

TOGETHER = 5
"""The most models whose details are on the page itself: with more, each has a page of its own."""


def pages(all_findings: Sequence[Findings]) -> dict[str, str]:
    """Name of a model -> the path of its page; empty if the details of all models are on one page."""
    if all(len(findings.models) <= TOGETHER for findings in all_findings):
        return {}
    return model_pages({model.name for findings in all_findings for model in findings.models})


def of_models(all_findings: Sequence[Findings], names: Mapping[str, str]) -> dict[str, list[Section]]:
    """Name of a model -> the sections of its page: its results on each config, and by language. `names`:
    as of `pages`."""
    pairs = {findings.name: means.pairs(findings) for findings in all_findings if findings.pairs}
    unedited = _unedited(all_findings)
    return {
        name: [
            Section("finding", headline.TITLE, [headline.of_model(all_findings, name, f"models-{Path(page).stem}")]),
            *(
                _model(findings, subject, pairs.get(findings.name))
                for findings in all_findings
                for subject in findings.models
                if subject.name == name
            ),
            *languages.sections(unedited, only=name),
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
        sections.insert(0, Section(f"{key}-beyond", beyond.TITLE, hard))
    if pairs is not None:
        others = means.against(findings, subject, pairs)
        sections.append(Section(f"{key}-pairs", "Model against model", [others]))
    sections.append(Section(f"{key}-errors", "What heads find where they are wrong", _errors(findings, subject)))
    return Section(key, findings.title, [headline.relations(subject, findings.language.units)], fold(sections))


def sections(
    all_findings: Sequence[Findings],
    masked: Sequence[Group],
    both: Sequence[ProbedAndMasked] = (),
    silenced: Sequence[SilencedModel] = (),
    edited: Mapping[str, Sequence[EditedModel]] = MappingProxyType({}),
    links: Mapping[str, str] = MappingProxyType({}),
    informed: Sequence[InformedModel] = (),
    preferred: Sequence[PreferenceResult] = (),
    others: Sequence[Any] = (),
) -> list[Section]:
    """The whole report: on the attention probe, on masked syntax, on silenced heads, on usable information, on minimal
    pairs, or on several of these. It opens with what was found. `links`: name of a model -> the link to its page, which
    has its details. `others`: results of other instruments."""
    predicted = [
        (findings, models)
        for findings in all_findings
        if (models := predictors.read_predicted(findings, informed, silenced, preferred))
    ]
    first = (
        headline.section(all_findings, links, information.bits(informed))
        if all_findings
        else Section("finding", headline.TITLE)
    )
    first.sections += [*syntaxeval.findings(masked), *silencing.findings(silenced), *information.findings(informed)]
    rest = [
        *(_attention(all_findings, edited, links) if all_findings else []),
        *(syntaxeval.sections(masked) if masked else []),
        *([mechanism.section(both)] if both else []),
        *([silencing.section(silenced)] if silenced else []),
        *([information.section(informed)] if informed else []),
        *([preferences.section(preferred)] if preferred else []),
        *([predictors.section(predicted)] if predicted else []),
        *(Section(result.settings.name, result.title, [*parts(result)]) for result in others),
    ]
    fold(rest)
    if not all_findings:  # the first of the others is the answer, in full
        next(section for section in rest if section.all_parts(drawn=False) and section.inside).folded = False
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
    all_findings: Sequence[Findings], edited: Mapping[str, Sequence[EditedModel]], links: Mapping[str, str]
) -> list[Section]:
    unedited, of_models = _unedited(all_findings), not links
    ablation_sections = ablations.sections(unedited)
    return [
        Section(
            "curves",
            "Curves over k",
            [means.curves(findings) for findings in all_findings],
            drawn=[means.curve_points(findings) for findings in all_findings],
        ),
        beyond.section(all_findings, of_models=of_models),
        *([edits.section(all_findings, edited)] if edited else []),
        *emergence.sections(all_findings),
        Section("overview", "Models, controls and baselines", [means.overview(all_findings)]),
        *code_and_language.sections(unedited),
        *(languages.sections(unedited) if of_models else []),
        Section("method", "How to read this", method("attention")),
        *(_config(findings, of_models) for findings in all_findings),
        *([Section("ablations", "Ablations", ablations.notes(), ablation_sections)] if ablation_sections else []),
        _provenance(all_findings),
    ]


def _config(findings: Findings, of_models: bool) -> Section:
    functions, edges, units = findings.functions, findings.edges, findings.language.units
    settings = findings.settings
    intro = (
        f"{functions:,} {units} and {edges:,} edges of {settings.data}, config {settings.config}, split "
        f"{settings.split}, direction {settings.direction}: all that every model below can read. Of the relations, "
        f"{_in_mean(findings)}."
    )
    unchosen = findings.subjects[0].scores["protocols"]["held-out"]["unchosen"]
    notes = [intro]
    if unchosen:
        excluded = ", ".join(f"{name} ({edges:,} edges)" for name, edges in sorted(unchosen.items()))
        notes.append(f"These relations have no edges on validation, and therefore no held-out score: {excluded}.")
    few = [
        f"{name} ({entry['functions']})"
        for name, entry in findings.subjects[0].scores["protocols"]["published"]["relations"].items()
        if entry["few_functions"]
    ]
    if few:
        notes.append(f"In fewer than {FEW_FUNCTIONS} {units}: {', '.join(few)}.")
    key = findings.name
    sections: list[Section] = []
    detailed = findings.models if of_models else []
    if findings.models:
        told, preview = headline.relations(best_model(findings), units), relations.preview(findings)
        parts = [told, *([preview] if preview else ()), *(relations.table(findings, subject) for subject in detailed)]
        sections.append(Section(f"{key}-relations", "Relation by relation", parts))
    sections += [relations.layers(findings, subject) for subject in detailed]
    if findings.pairs:
        every = means.pairs(findings)
        title, shown = "Model against model", [every] if of_models else ["The page of each model has this table."]
        sections.append(Section(f"{key}-pairs", title, shown, drawn=[] if of_models else [every]))
    if detailed:
        errors = [part for subject in detailed for part in _errors(findings, subject)]
        sections.append(Section(f"{key}-errors", "What heads find where they are wrong", errors))
    return Section(key, findings.title, notes, sections)


def _in_mean(findings: Findings) -> str:
    """The numbers of relations and edges in the mean of each protocol, in words."""
    counts = {protocol: findings.size(protocol) for protocol in PUBLISHED_FIRST}
    return " and ".join(
        f"{number} are in the {protocol} mean, with {edges:,} edges" for protocol, (number, edges) in counts.items()
    )


def _errors(findings: Findings, subject: Subject) -> list[str | Table]:
    analysis = subject.errors
    if analysis is None:
        return [
            f"{subject.name}: not analysed. Run `codesyntax errors {subject.file.name}` in the folder of the result. "
            "The command runs the model again and classifies its wrong first choices; the report then shows them."
        ]
    occurring = [name for name in CLASSES if any(analysis.classes(rule)[name] for rule in RULES)]
    shares, examples = [], []
    for rule in RULES:
        most_errors_first = sorted(analysis.rules[rule].items(), key=lambda item: (-item[1]["errors"], item[0]))
        for name, entry in most_errors_first:
            cells = [entry["classes"].get(kind, {"share": None})["share"] for kind in occurring]
            head = f"{entry['layer']}-{entry['head']}" if entry["errors"] < entry["edges"] else None
            places = [
                100 * count / entry["errors"] if count else None for count in analysis.places(rule, name).values()
            ]
            shares.append([rule, name, entry["edges"], entry["errors"], head, *cells, *places])
            if rule == RULE:
                for kind, errors in entry["classes"].items():
                    example = errors["examples"][0]
                    examples.append(
                        [name, kind, errors["errors"], errors["share"], example["function"], marked(example)]
                    )
    counts = [Column("edges", COUNT), Column("errors", COUNT), Column("head")]
    return [
        Table(
            findings.file("errors", subject),
            f"What the best heads of {subject.name} find where they are wrong, in percent of the relation's errors",
            [
                Column("rule"),
                Column("relation", NAME),
                *counts,
                *(Column(name, PERCENT, "class") for name in occurring),
                *(Column(name, PERCENT, "place") for name in PLACES),
            ],
            shares,
            f"Published protocol, top-1, on all {subject.functions:,} {findings.language.units} of the result. "
            "probing/attention/error_classes.py defines the classes; each error belongs to the first class that "
            "applies, and to one place relative to the edge.",
            filters=1,
        ),
        Table(
            findings.file("error-examples", subject),
            f"An example of each class of errors, {subject.name}, first token",
            [
                Column("relation", NAME),
                Column("class"),
                Column("errors", COUNT),
                Column("percent", PERCENT),
                Column("function"),
                Column("code", CODE),
            ],
            examples,
            "«head» token, ⟦token⟧ of the dependent that counts by the rule, ✗wrong choice✗.",
            filters=1,
        ),
    ]


def _provenance(all_findings: Sequence[Findings]) -> Section:
    rows = []
    skips: list[list[Any]] = []
    for findings in all_findings:
        for subject in findings.subjects:
            result = subject.result
            rows.append(
                [
                    findings.title,
                    subject.name,
                    subject.functions,
                    result.functions,
                    result.to_choose_on,
                    result.edges,
                    f"{result.layers} × {result.heads}",
                    result.settings.dtype,
                    result.signature,
                ]
            )
            skips += [[findings.title, subject.name, reason, count] for reason, count in result.skips.items()]
    columns = [
        Column("config", NAME),
        Column("name"),
        *Column.each(COUNT, "probed", "common", "to choose on", group="functions"),
        Column("edges", COUNT),
        Column("layers × heads", NAME),
        Column("precision"),
        Column("signature", CODE),
    ]
    parts: list[str | Table] = [
        Table(
            "results",
            "The results in this report",
            columns,
            rows,
            "Compare only numbers whose signatures agree. The folder entries has an entry for boards for each model.",
        )
    ]
    if skips:
        names = [Column("config", NAME), Column("name"), Column("reason"), Column("functions", COUNT)]
        parts.append(Table("skips", "Functions that were skipped, and why", names, skips))
    else:
        parts.append("All functions were scored.")
    return Section("provenance", "Results and signatures", parts)
