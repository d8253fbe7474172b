"""Programming languages beside each other: one model and the best baseline on the relations that languages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.languages import in_order, variant_of
from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.report import figures
from probing.report.document import MARKED, PERCENT, POINTS, SCORE, Column, Figure, Section, Table
from probing.report.findings import Findings
from probing.report.scored import RULE, K, with_marks
from probing.report.words import file_names, method

_ID = "languages"


class _LanguageScores(NamedTuple):
    """A relation in a language, held-out, in percent: [score, low, high] of the model, and the best baseline."""

    model: list[float]
    baseline: float

    @property
    def difference(self) -> float:
        return self.model[0] - self.baseline


_Shared = dict[str, dict[str, dict[str, _LanguageScores]]]
"""k -> relation -> title of a language that has it -> scores."""


def sections(all_findings: Sequence[Findings], only: str | None = None) -> list[Section]:
    """A section on the models that were probed in several programming languages, or on one of them; none if there is no
    such model."""
    parts: list[Table | Figure] = []
    models = list(dict.fromkeys(one.name for findings in all_findings for one in findings.models))
    for file, model in zip(file_names(models), models):
        if only not in (None, model):
            continue
        languages = _languages(all_findings, model)
        shared = {k: _shared(languages, model, k) for k in TABLE_KS}
        if shared[K]:
            parts += [
                _figure(list(languages), model, shared, f"{_ID}-{file}"),
                _table(list(languages), model, shared, f"{_ID}-{file}"),
            ]
    return [Section(_ID, "Languages", [*method("languages"), *parts])] if parts else []


def _languages(all_findings: Sequence[Findings], model: str) -> dict[str, Findings]:
    """Title of a language -> findings on it, with the kind of labels that most of the model's languages have."""
    by_labels: dict[str, dict[str, Findings]] = {}
    for findings in all_findings:
        language = findings.language
        if not language.of_treebanks and any(one.name == model for one in findings.models):
            by_labels.setdefault(variant_of(findings.config).name, {}).setdefault(language.title, findings)
    return max(by_labels.values(), key=len, default={})


def _shared(languages: Mapping[str, Findings], model: str, k: str) -> dict[str, dict[str, _LanguageScores]]:
    """The relations that enough functions of at least two languages have."""
    found: dict[str, dict[str, _LanguageScores]] = {}
    for title, findings in languages.items():
        (subject,) = (one for one in findings.models if one.name == model)
        baselines = findings.baselines[HELD_OUT][BEST_BASELINE]["relations"]
        for name, entry in subject.scores["protocols"][HELD_OUT]["relations"].items():
            if not entry["few_functions"] and name in baselines:
                baseline = baselines[name][RULE][k]["score"][0]
                found.setdefault(name, {})[title] = _LanguageScores(entry[RULE][k]["score"], baseline)
    return {name: found[name] for name in in_order(found) if len(found[name]) > 1}


def _of_all(languages: Sequence[str], shared: Mapping[str, Mapping[str, _LanguageScores]]) -> list[str]:
    """The relations in the mean that all of the languages have."""
    return [name for name, scores in shared.items() if len(scores) == len(languages) and name not in NOT_IN_MEAN]


def _mean(names: Sequence[str], shared: Mapping[str, Mapping[str, _LanguageScores]], language: str) -> _LanguageScores:
    scores = [shared[name][language] for name in names]
    model, baseline = (float(np.mean(of)) for of in zip(*((one.model[0], one.baseline) for one in scores)))
    return _LanguageScores([model], baseline)


def _figure(languages: Sequence[str], model: str, shared: _Shared, name: str) -> Figure:
    rows = dict(shared[K])
    if common := _of_all(languages, rows):
        mean = {language: _mean(common, rows, language) for language in languages}
    ordered = sorted(rows, key=lambda name: -float(np.mean([scores.difference for scores in rows[name].values()])))
    drawn = {**({f"mean of {len(common)}": mean} if common else {}), **{name: rows[name] for name in ordered}}
    scores = np.full((3, len(drawn), len(languages)), np.nan)
    for row, by_language in enumerate(drawn.values()):
        for language, one in by_language.items():
            scores[:, row, languages.index(language)] = one.model[0], one.baseline, one.difference
    return Figure(
        name,
        f"{model} by language, top-1 UAS, first token, held-out. Each cell has the score of the best head and, below "
        f"it, of the best baseline; colour shows the difference. Relations in at least {FEW_FUNCTIONS} functions of "
        "at least two languages, largest mean difference first"
        + (
            f"; above them, the mean of the {len(common)} relations that all languages share and that count in a mean."
            if common
            else "."
        ),
        f"Heat map of relation by language ({', '.join(languages)}). The table repeats the numbers in its cells.",
        name,
        lambda: figures.languages(list(drawn), languages, *scores),
    )


def _table(languages: Sequence[str], model: str, shared: _Shared, name: str) -> Table:
    rows: list[list[Any]] = []
    for k, relations in shared.items():
        for relation, by_language in relations.items():
            row: list[Any] = [k, with_marks(relation)]
            for language in languages:
                scores = by_language.get(language)
                row += [None] * 3 if scores is None else [scores.model, scores.baseline, scores.difference]
            rows.append(row)
    columns = [Column("k"), Column("relation", MARKED)]
    for language in languages:
        columns += [
            Column("score", SCORE, language),
            Column("best baseline", PERCENT, language),
            Column("difference", POINTS, language),
        ]
    return Table(
        name,
        f"{model} and the best baseline by language, held-out",
        columns,
        rows,
        f"Percent with 95 % intervals, rule {RULE}. Empty: the language lacks the relation, or fewer than "
        f"{FEW_FUNCTIONS} of its functions have it. The tables of each language have the p-values of the differences.",
        filters=1,
    )
