"""Configs side by side: label variants, programming languages, code and natural language, and
edited functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, cycle, product
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.languages import CONFIGS, LANGUAGES, in_order, unedited, variant_of
from codesyntax_dataset.protocol import BEST_BASELINE, EDITS, HELD_OUT, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.compared import HEADS, OFFSET, WHO, Changes, changes
from probing.evidence.gather import Probed, find
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Section, Table, verdict
from probing.report.figures import COLOURS, FAINT, INK, Line
from probing.report.findings import Findings, Subject
from probing.report.kinds import COUNT, DIFFERENCE, MARKED, NAME, PERCENT, POINTS, SCORE
from probing.report.scored import (
    CONFIG,
    FILTERS,
    FUNCTIONS,
    RULE,
    SCORED,
    K,
    Place,
    curve,
    difference,
    difference_on,
    dots,
    mean_columns,
    mean_difference,
    score,
    shown_means,
    tests_in_words,
    with_marks,
)
from probing.report.words import file_names, method, numbered
from probing.runs.clusters import clusters_in_words
from probing.stats.intervals import FEW_CLUSTERS, family

# ---------------------------------------------------------------------------------------------------------- ablations

DRAWN = ("last", "any")
"""The rules in the paper's ablation figures (Shen et al. 2022, Figures 4 and 16 to 19): the last
token changes most."""


def ablations(all_findings: Sequence[Findings]) -> list[Section]:
    """One section, with a part per language (and dataset, split, direction and limit) that has
    findings of several configs; none if there is no such language."""
    groups: dict[tuple, list[Findings]] = {}
    for findings in all_findings:
        settings, (language, _) = findings.settings, CONFIGS[findings.config]
        key = (
            language,
            settings.data.partition("@")[0],
            settings.split,
            settings.direction,
            settings.limit,
        )
        groups.setdefault(key, []).append(findings)
    parts, numbers = [], Counter[str]()
    for (language, *_), group in groups.items():
        if len({findings.config for findings in group}) > 1:
            numbers[language] += 1
            parts.append(
                _ablation(numbered(f"{language}-ablations", numbers[language]), language, group)
            )
    return [Section("ablations", "Ablations", ablation_notes(), parts)] if parts else []


def ablation_notes() -> list[str]:
    never_predicted = {
        config: token for config in unedited() if (token := variant_of(config).never_predicted)
    }
    return [
        *method("ablations"),
        *(
            f"The labels of {config} exclude {token!r}, and models must not predict it either; their signatures say "
            "not-predicted."
            for config, token in never_predicted.items()
        ),
    ]


def _ablation(name: str, language: str, all_findings: Sequence[Findings]) -> Section:
    means, title = shown_means(all_findings), LANGUAGES[language].title
    places = [Place(findings, name) for findings in all_findings for name in findings.kinds]
    kinds = ("model", "control", "baseline")
    # rows of the same name next to each other
    places.sort(key=lambda row: (kinds.index(row.kind.partition(";")[0]), row.title))
    table = Table(
        name,
        f"Mean over relations in each config of {title}",
        [*FILTERS, *SCORED, CONFIG, FUNCTIONS, *chain.from_iterable(map(mean_columns, means))],
        [
            row._replace(rule=rule, k=k)
            for rule in (*DRAWN, *(rule for rule in RULES if rule not in DRAWN))
            for k in TABLE_KS
            for row in places
        ],
        f"Percent with 95 % intervals. p: corrected (Holm) within a config for {tests_in_words(all_findings)}. "
        f"{COLOURED}",
        filters=2,
    )
    panels = {rule: {mean: _ablated(all_findings, rule, mean) for mean in means} for rule in DRAWN}
    drawn = Figure(
        name,
        f"{title}: mean top-k UAS over k in each config, for the models and the best baseline. Bands are 95 % "
        "intervals.",
        "Curves of the mean score for k from 1 to 20, with one line style per config. The table has the numbers.",
        name,
        lambda: figures.curves(panels),
    )
    return Section(
        name, title + all_findings[0].title.removeprefix(all_findings[0].config), [drawn, table]
    )


def _ablated(all_findings: Sequence[Findings], rule: str, mean: str) -> list[Line]:
    lines = []
    for findings, style in zip(all_findings, cycle(("-", "--", ":", "-."))):
        models = [
            (subject.name, colour) for subject, colour, _ in findings.styled if subject.is_model
        ]
        for name, colour in [(BEST_BASELINE, INK), *models]:
            label = f"{name}, {findings.title}"
            lines.append(Line(label, curve(findings, name, mean, rule), colour, style))
    return lines


# ---------------------------------------------------------------------------------------------- programming languages


def languages(all_findings: Sequence[Findings], only: str | None = None) -> list[Section]:
    """A section on the models that were probed in several programming languages, or on one of them;
    none if there is no such model."""
    parts: list[Table | Figure] = []
    models = list(
        dict.fromkeys(model.name for findings in all_findings for model in findings.models)
    )
    for file, model in zip(file_names(models), models):
        languages = _languages(all_findings, model) if only in (None, model) else {}
        if shared := _shared(languages, model):
            parts.append(_of_languages(languages, model, shared, f"languages-{file}"))
            parts.append(_by_language(languages, model, shared, f"languages-{file}"))
    return [Section("languages", "Languages", [*method("languages"), *parts])] if parts else []


def _languages(all_findings: Sequence[Findings], model: str) -> dict[str, Findings]:
    """Title of a language -> findings on it, with the kind of labels that most of the model's
    languages have."""
    by_labels: dict[str, dict[str, Findings]] = {}
    for findings in all_findings:
        language = findings.language
        if not language.of_treebanks and any(subject.name == model for subject in findings.models):
            by_labels.setdefault(variant_of(findings.config).name, {}).setdefault(
                language.title, findings
            )
    return max(by_labels.values(), key=len, default={})


def _shared(languages: Mapping[str, Findings], model: str) -> dict[str, list[str]]:
    """The relations that enough functions of at least two languages have -> the titles of these."""
    having: dict[str, list[str]] = {}
    for title, findings in languages.items():
        baseline = findings.relations(BEST_BASELINE, HELD_OUT)
        for name, scored in findings.relations(model, HELD_OUT).items():
            if not scored.few_functions and name in baseline:
                having.setdefault(name, []).append(title)
    return {name: having[name] for name in in_order(having) if len(having[name]) > 1}


def _of_languages(
    languages: Mapping[str, Findings], model: str, shared: Mapping[str, list[str]], name: str
) -> Figure:
    scores = np.full(
        (2, len(shared), len(languages)), np.nan
    )  # of the model, and of the best baseline
    for row, (relation, having) in enumerate(shared.items()):
        for column, (title, findings) in enumerate(languages.items()):
            if title in having:
                pair = (findings.relations(who, HELD_OUT) for who in (model, BEST_BASELINE))
                scores[:, row, column] = [scores_of[relation].value for scores_of in pair]
    order = np.argsort(-np.nanmean(scores[0] - scores[1], axis=1), kind="stable")
    rows, scores = [list(shared)[row] for row in order], scores[:, order]
    common = [row not in NOT_IN_MEAN and len(shared[row]) == len(languages) for row in rows]
    above = ""
    if number := sum(common):
        rows = [f"mean of {number}", *rows]
        scores = np.concatenate([scores[:, common].mean(axis=1, keepdims=True), scores], axis=1)
        above = f"; above them, the mean of the {number} relations that all languages share and that count in a mean"
    return Figure(
        name,
        f"{model} by language, top-1 UAS, first token, held-out. Each cell has the score of the best head and, below "
        f"it, of the best baseline; colour shows the difference. Relations in at least {FEW_CLUSTERS} functions of "
        f"at least two languages, largest mean difference first{above}.",
        f"Heat map of relation by language ({', '.join(languages)}). The table repeats the numbers in its cells.",
        name,
        lambda: figures.languages(
            rows, list(languages), scores[0], scores[1], scores[0] - scores[1]
        ),
    )


def _by_language(
    languages: Mapping[str, Findings], model: str, shared: Mapping[str, list[str]], name: str
) -> Table:
    rows = []
    for k, (relation, having) in product(TABLE_KS, shared.items()):
        row: list[Any] = [k, with_marks(relation)]
        for title, findings in languages.items():
            mine, best = (
                findings.score(who, HELD_OUT, k=k, group=relation) if title in having else None
                for who in (model, BEST_BASELINE)
            )
            row += [mine.cell, best.value, mine.value - best.value] if mine and best else [None] * 3
        rows.append(row)
    columns = [Column("k"), Column("relation", MARKED)]
    for title in languages:
        columns += [Column("score", SCORE, title), Column("best baseline", PERCENT, title)]
        columns.append(Column("difference", POINTS, title))
    return Table(
        name,
        f"{model} and the best baseline by language, held-out",
        columns,
        rows,
        f"Percent with 95 % intervals, rule {RULE}. Empty: the language lacks the relation, or fewer than "
        f"{FEW_CLUSTERS} of its functions have it. The tables of each language have the p-values of the differences.",
        filters=1,
    )


# ----------------------------------------------------------------------------------------------- code against language


def code_and_language(all_findings: Sequence[Findings]) -> list[Section]:
    """One section on the models that were probed on both (Shen et al. 2022, section 4); none if
    there is no such model.

    The paper's second finding: on English and German, attention heads find more than fixed offsets
    do, and on code they do not (its Figures 2, 3, 7 and 8 and Table 4).
    """
    read: dict[str, set[str]] = {"code": set(), "language": set()}
    for findings in all_findings:
        read[_kind(findings)] |= {model.name for model in findings.models}
    both = read["code"] & read["language"]
    chosen = [
        findings
        for findings in all_findings
        if any(model.name in both for model in findings.models)
    ]
    if not both:
        return []
    models = list(
        dict.fromkeys(
            model.name for findings in chosen for model in findings.models if model.name in both
        )
    )
    columns = [Column("k"), Column("kind", of=lambda row: _kind(row.findings)), CONFIG]
    columns += [Column("model", of=lambda row: row.name), FUNCTIONS]
    for mean in shown_means(chosen):
        columns += [score(mean), score(mean, "best baseline", BEST_BASELINE), difference(mean)]
    table = Table(
        "code-and-language",
        "Models and the best baseline on code and on sentences",
        columns,
        [
            Place(findings, model, k=k)
            for k, findings, model in product(TABLE_KS, chosen, models)
            if model in findings.subject
        ],
        f"Percent with 95 % intervals, rule {RULE}, mean over relations. Functions: for languages, sentences. "
        f"p: corrected (Holm) within a config for {tests_in_words(chosen)}. {COLOURED}",
        filters=1,
    )
    return [Section(table.name, "Code against language", [*method(table.name), table])]


def _kind(findings: Findings) -> str:
    return "language" if findings.language.of_treebanks else "code"


# --------------------------------------------------------------------------------------------------- edited functions

BASELINES = {OFFSET: "best offset", BEST_BASELINE: "best baseline"}


class EditedModel(NamedTuple):
    """A model on a config and on the same functions after `edit`; `p`: of the change of its heads,
    corrected."""

    edit: str
    model: str
    changes: Changes
    p: float

    def change(self, who: str) -> list[float]:
        """The change of a mean: [difference, low, high, p]."""
        *difference, p = mean_difference(self.changes.by[who].difference)
        return [*difference, self.p if who == HEADS else p]


def read_edited(all_findings: Sequence[Findings], data: Any = None) -> dict[str, list[EditedModel]]:
    """Name of findings -> their models after edits, in the order of EDITS; p is corrected (Holm)
    for all of these.

    Raises LedgerError for two configs with other edges, and DataNotFound if the data are not found.
    """
    plain = [findings for findings in all_findings if variant_of(findings.config).edit is None]
    return {
        findings.name: edited
        for findings in plain
        if (edited := _edited(findings, all_findings, data))
    }


def _edited(plain: Findings, all_findings: Sequence[Findings], data: Any) -> list[EditedModel]:
    edited_models = []
    for edit in EDITS:
        labels = replace(variant_of(plain.config), edit=edit)
        for findings in all_findings:
            if findings.language == plain.language and variant_of(findings.config) == labels:
                for before, other in _same_models(plain, findings):
                    if changed := changes(_probed(before), _probed(other), data):
                        edited_models.append((edit, before.name, changed))
    tested = family(
        [changed.by[HEADS].difference.of_mean(RULE, int(K)) for _, _, changed in edited_models]
    )
    return [
        EditedModel(*before, float(difference.p))
        for before, difference in zip(edited_models, tested)
    ]


def _probed(subject: Subject) -> Probed:
    (probed,) = find([subject.file, subject.chosen_on])
    return probed


def _same_models(plain: Findings, findings: Findings) -> list[tuple[Subject, Subject]]:
    """The models that were probed in the same way on both."""

    def alike(subject: Subject) -> Any:
        settings = subject.settings
        return settings.model_copy(
            update={"config": "", "labels": "", "data": settings.data.partition("@")[0]}
        )

    return [
        (before, other)
        for before in plain.models
        for other in findings.models
        if alike(before) == alike(other)
    ]


def edits(
    all_findings: Sequence[Findings], edited: Mapping[str, Sequence[EditedModel]]
) -> list[Section]:
    """What heads and baselines find before and after the edits of `edited`, by name of findings, on
    the same functions; none if there are no edits."""
    parts = [
        _edits_of(findings, edited[findings.name])
        for findings in all_findings
        if findings.name in edited
    ]
    return [Section("edits", "Edited functions", method("edits"), parts)] if parts else []


def _edits_of(findings: Findings, edited: Sequence[EditedModel]) -> Section:
    key, models = f"{findings.name}-edits", list(dict.fromkeys(entry.model for entry in edited))
    by_model = {model: [entry for entry in edited if entry.model == model] for model in models}
    drawn, means = _changes(key, findings, edited, by_model), _means(key, findings, edited)
    relations = [
        _relations(f"{key}-{file}", model, by_model[model])
        for file, model in zip(file_names(models), models)
    ]
    return Section(key, findings.title, [drawn, means, *relations])


def _changes(
    key: str,
    findings: Findings,
    edited: Sequence[EditedModel],
    by_model: Mapping[str, Sequence[EditedModel]],
) -> Figure:
    names = list(dict.fromkeys(entry.edit for entry in edited))

    def of(label: str, who: str, model: str, colour: str) -> figures.Dots:
        changed = {entry.edit: entry.change(who) for entry in by_model[model]}
        return dots(label, map(changed.get, names), colour)

    series = [of(model, HEADS, model, colour) for model, colour in zip(by_model, cycle(COLOURS))]
    first = next(iter(by_model))
    series += [
        of(name, who, first, colour) for (who, name), colour in zip(BASELINES.items(), (INK, FAINT))
    ]
    return Figure(
        key,
        f"{findings.title}: the change of the mean top-1 UAS after each edit, with 95 % intervals. Filled points: p "
        "< 0.05.",
        f"Dots for the change after {', '.join(names)}. The table has the numbers.",
        key,
        lambda: figures.effects(names, series, "change of top-1 UAS, points"),
    )


def _means(key: str, findings: Findings, edited: Sequence[EditedModel]) -> Table:
    meanings = "; ".join(
        f"{edit}: {EDITS[edit]}" for edit in dict.fromkeys(entry.edit for entry in edited)
    )
    return Table(
        key,
        f"Mean top-1 UAS before and after edits, {findings.title}",
        [
            Column("edit", NAME, of=lambda entry, who: entry.edit),
            Column("name", NAME, of=lambda entry, who: BASELINES.get(who, entry.model)),
            Column("functions", COUNT, of=lambda entry, who: entry.changes.functions),
            Column("lost", COUNT, of=lambda entry, who: entry.changes.lost),
            Column("edges", COUNT, of=lambda entry, who: entry.changes.edges),
            Column("before", PERCENT, of=lambda entry, who: entry.changes.by[who].means[1]),
            Column("after", PERCENT, of=lambda entry, who: entry.changes.by[who].means[0]),
            Column("change", DIFFERENCE, of=lambda entry, who: entry.change(who)),
            Column("verdict", NAME, of=lambda entry, who: verdict(entry.change(who))),
        ],
        [(entry, who) for entry in edited for who in WHO],
        f"Percent with 95 % intervals over {clusters_in_words()}, on the functions that both configs have. Lost: "
        "functions that the edited config lacks, because the edit would change their labels or make them too long for "
        "the model. "
        f"Baselines are on the functions of the model. p: corrected (Holm) over {len(edited)} changes of models, and "
        f"uncorrected for baselines. {COLOURED} {meanings}.",
    )


def _relations(key: str, model: str, edited: Sequence[EditedModel]) -> Table:
    columns = [
        Column("edit"),
        Column("relation", MARKED),
        Column("change", DIFFERENCE, "best heads"),
    ]
    for group in ("best heads", *BASELINES.values()):
        columns += Column.each(PERCENT, "before", "after", group=group)
    rows = []
    for entry in edited:
        compared = entry.changes.by[HEADS].difference
        for number in np.argsort(compared.by_relation.value[0], kind="stable").tolist():
            name = compared.relations[number]
            numbers = [
                cell
                for who in WHO
                for cell in entry.changes.by[who].relations[::-1, number].tolist()
            ]
            rows.append([entry.edit, with_marks(name), difference_on(compared, name), *numbers])
    return Table(
        key,
        f"Top-1 UAS of relations before and after edits, {model}",
        columns,
        rows,
        "Percent, largest loss first, with 95 % intervals. p: corrected (Holm) over the relations of an edit. "
        f"{COLOURED}",
        filters=1,
    )
