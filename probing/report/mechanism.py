"""Attention beside what models predict: the sections of a report on models of which several instruments measured the
same syntax."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.languages import language_of, variant_of
from probing.evidence.mechanism import (
    BASELINE,
    LEAST,
    Correlation,
    Mechanism,
    Order,
    PredictedModel,
    beside,
    orders,
    unlike,
)
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.models.location import HEAD
from probing.prediction.likelihood_results import CHANGED, WHOLE, PreferenceResult
from probing.prediction.result import MaskSettings
from probing.report import figures
from probing.report.document import (
    CORRELATION,
    COUNT,
    MARKED,
    NAME,
    PERCENT,
    SIGNED,
    Column,
    Figure,
    P,
    Part,
    Section,
    Table,
    separated,
)
from probing.report.figures import COLOURS, FAINT, TICK, Points
from probing.report.findings import Findings
from probing.report.information import InformedModel
from probing.report.silencing import SilencedModel
from probing.report.syntaxeval import Group
from probing.report.words import counted, file_names, interval, listed, method
from probing.runs.settings import RunSettings

# ------------------------------------------------------------------------------------------------------- masked syntax

OUTCOMES = {"effect": "the effect T1 − T0", "restored": "what is restored in T1"}
"""Outcomes of masking a node type, in words."""


class ProbedAndMasked(NamedTuple):
    """A model that was probed and masked on one config and split. `name`: of files; `settings`: of the masking run;
    `mechanism`: None if the two did not read the same functions, which `refused` then says."""

    title: str
    name: str
    settings: MaskSettings
    mechanism: Mechanism | None
    refused: str


def read_both(all_findings: Sequence[Findings], masked: Sequence[Group], data: Any = None) -> list[ProbedAndMasked]:
    """The models with the same name and revision in results of both instruments, on the same config and split.

    Raises DataNotFound if one of the two is of the first functions only, and the data are not found.
    """
    result: list[ProbedAndMasked] = []
    for findings, group in product(all_findings, masked):
        if (findings.config, findings.settings.split) != (group.settings.config, group.settings.split):
            continue
        for subject, (name, model) in product(findings.models, group.models.items()):
            probed, made = subject.settings, model.settings
            revision = made.revision.partition(HEAD)[0]
            if probed.instead or made.random_weights or (probed.model, probed.revision) != (made.model, revision):
                continue
            refused, syntax = unlike(probed, subject.file, made, data), language_of(findings.config).syntax
            compared = None if refused else beside(findings.guessed[probed], model.node_types, syntax)
            names, titles = dict.fromkeys([subject.name, name]), dict.fromkeys([findings.title, group.title])
            title = f"{' and '.join(names)}: {'; '.join(titles)}"
            key = f"mechanism-{group.name.removeprefix('masking-')}-{subject.name}"
            result.append(ProbedAndMasked(title, key, made, compared, refused))
    return [one._replace(name=name) for one, name in zip(result, file_names([one.name for one in result]))]


def sections(models: Sequence[ProbedAndMasked]) -> list[Section]:
    """One section on attention beside masked syntax; none without models of both."""
    parts = [Section(model.name, model.title, _parts(model)) for model in models]
    return [Section("mechanism", "Mechanism beside outcome", method("mechanism"), parts)] if parts else []


def _parts(model: ProbedAndMasked) -> list[Part]:
    if model.mechanism is None:
        return [f"Not compared: {model.refused}."]
    mechanism, made = model.mechanism, model.settings
    counts = (
        f"{mechanism.functions:,} functions of {made.data}, config {made.config}, split {made.split}, have both "
        f"probed edges and masked nodes. {mechanism.only_probed:,} more have only edges, and "
        f"{mechanism.only_masked:,} only nodes; they are left out."
    )
    if not mechanism.pairs:
        return [counts, "The relations of the masked node types have no held-out scores."]
    parts: list[Part] = [counts, *_told(mechanism)]
    if mechanism.correlations:
        parts += [_figure(model.name, model.title, mechanism), _correlations(model.name, mechanism)]
    return [*parts, _pairs(model.name, mechanism)]


def _told(mechanism: Mechanism) -> list[str]:
    """True if heads and losses go together, and more than baselines and losses do."""
    pairs = len(mechanism.counted)
    if not mechanism.correlations:
        return [
            f"Only {pairs} pairs are in at least {FEW_FUNCTIONS} functions on both sides, too few for a rank "
            "correlation."
        ]
    texts = []
    for outcome, words in OUTCOMES.items():
        heads, baseline, difference = mechanism.correlations[outcome]
        text = (
            f"Over {pairs} pairs, the rank correlation of {words} is {_in_words(heads)} with the scores of the best "
            f"heads, and {_in_words(baseline)} with the scores of the best baseline. "
        )
        if not separated(heads.p):
            text += "The test does not separate the correlation of the heads from 0."
        elif not separated(difference.p):
            text += "The test does not separate the two, so the heads explain nothing here that the baseline does not."
        else:
            more, by = "higher" if difference.estimate > 0 else "lower", CORRELATION.show(difference.estimate)
            text += (
                f"The correlation of the heads is {more}, by {by} (p {P.show(difference.p)}). This shows an order, "
                "not a cause."
            )
        texts.append(text)
    return texts


def _in_words(value: Correlation) -> str:
    if np.isnan(value.estimate):
        return "not defined"
    return f"{CORRELATION.show(value.estimate)} ({interval(value.low, value.high, CORRELATION)}, p {P.show(value.p)})"


def _pairs(name: str, mechanism: Mechanism) -> Table:
    return Table(
        name,
        "Held-out scores of relations, and the loss when the same syntax is masked",
        [
            Column(
                "node type", MARKED, of=lambda pair: [pair.node_type, "few functions" if pair.few_functions else ""]
            ),
            Column("relations", of=lambda pair: ", ".join(pair.relations)),
            Column("functions", COUNT, "attention", of=lambda pair: pair.probed),
            Column("best heads", PERCENT, "attention", of=lambda pair: pair.heads),
            Column("best baseline", PERCENT, "attention", of=lambda pair: pair.baseline),
            Column("functions", COUNT, "masking", of=lambda pair: pair.masked),
            Column("effect", SIGNED, "masking"),
            Column("restored T1", PERCENT, "masking", of=lambda pair: pair.restored),
        ],
        mechanism.pairs,
        "Largest loss first. Functions: how many have an edge of the relations and a node of the type. Best heads, "
        "best baseline: percent, the mean over the relations that have edges here and on validation. Effect: T1 − "
        "T0, Jaccard. Restored: percent of the masked sub-tokens.",
    )


def _correlations(name: str, mechanism: Mechanism) -> Table:
    return Table(
        f"{name}-correlation",
        "Rank correlation of losses with held-out scores",
        [
            Column("rank correlation of", of=lambda outcome, of: OUTCOMES[outcome]),
            Column("pairs", COUNT, of=lambda outcome, of: len(mechanism.counted)),
            Column("with best heads", CORRELATION, of=lambda outcome, of: list(of.heads)),
            Column("with best baseline", CORRELATION, of=lambda outcome, of: list(of.baseline)),
            Column("difference", CORRELATION, of=lambda outcome, of: list(of.difference)),
        ],
        list(mechanism.correlations.items()),
        "Spearman's rank correlation, from −1 to 1, with 95 % intervals and p over pairs. p of the best heads: "
        "corrected (Holm) for two outcomes. p of the difference: the two are exchanged within pairs.",
    )


def _figure(name: str, title: str, mechanism: Mechanism) -> Figure:
    pairs = mechanism.counted
    node_types = [pair.node_type for pair in pairs]
    panels = {
        "held-out top-1 UAS, %": [
            Points("best heads", [pair.heads for pair in pairs], COLOURS[0]),
            Points("best baseline", [pair.baseline for pair in pairs], FAINT, TICK),
        ],
        "T1 − T0, Jaccard similarity": [Points("masking", [pair.effect for pair in pairs], COLOURS[1])],
        "restored in T1, %": [Points("masking", [pair.restored for pair in pairs], COLOURS[1])],
    }
    return Figure(
        name,
        f"{title}: the held-out scores of the relations of a node type, and the loss when it is masked, largest loss "
        "first.",
        f"Points for {', '.join(node_types)}. The table has the numbers.",
        name,
        lambda: figures.rows(node_types, panels),
    )


# ------------------------------------------------------------------------------------------------------- minimal pairs

_PREDICTORS = {
    "heads": "best heads",
    BASELINE: "best baseline, without a model",
    "bits": "bits that attention adds",
    "cost": "cost of silencing",
}
_SCORES = {WHOLE: "whole texts", CHANGED: "where they differ"}


def predictors(
    all_findings: Sequence[Findings],
    informed: Sequence[InformedModel],
    silenced: Sequence[SilencedModel],
    preferred: Sequence[PreferenceResult],
) -> list[Section]:
    """One section on what predicts the accuracies on minimal pairs; none without models of which both were measured."""
    parts = [
        _predicted(findings, models)
        for findings in all_findings
        if (models := _read_predicted(findings, informed, silenced, preferred))
    ]
    title = "What predicts which text a model prefers"
    return [Section("predictors", title, method("predictors"), parts)] if parts else []


def _read_predicted(
    findings: Findings,
    informed: Sequence[InformedModel],
    silenced: Sequence[SilencedModel],
    preferred: Sequence[PreferenceResult],
) -> list[PredictedModel]:
    """The models that were probed on a config, checkpoints included, and that have results on minimal pairs of its
    language and split. What else was measured of them in this language and split is beside it."""
    if variant_of(findings.config).edit is not None:
        return []

    def key(settings: RunSettings) -> tuple[str, str, str]:
        return settings.revision.partition(HEAD)[0], language_of(settings.config).name, settings.split

    bits = {
        key(one.result.settings): {name: of.adds for name, of in one.result.relations.items()}
        for one in informed
        if not one.result.settings.instead
    }
    costs = {
        key(one.result.settings): {name: effect.cost.estimate for name, effect in one.relations.items()}
        for one in silenced
        if not one.result.settings.instead
    }
    results = {key(one.settings): one for one in preferred if one.settings.control is None}
    models = []
    for settings, guess in findings.guessed.items():
        if settings.instead or (result := results.get(key(settings))) is None:
            continue
        edges = guess.edges.sum(axis=0)
        found = {
            name: {
                relation: float(100 * hits / of)
                for relation, hits, of in zip(guess.relations, side.sum(axis=0), edges)
                if of
            }
            for name, side in (("heads", guess.heads), (BASELINE, guess.baseline))
        }
        found |= {name: of[key(settings)] for name, of in (("bits", bits), ("cost", costs)) if key(settings) in of}
        models.append(PredictedModel(result.settings.model, found, result.relations))
    return models


def _predicted(findings: Findings, models: Sequence[PredictedModel]) -> Section:
    name, found = f"predictors-{findings.name}", orders(models)
    of_orders = [_orders(name, found)] if found else []
    return Section(name, findings.title, [told_of_orders(found), *of_orders, _values(name, models)])


def told_of_orders(found: Sequence[Order]) -> str:
    """Which predictors order relations and models as their accuracies on minimal pairs do."""
    if not found:
        return f"Fewer than {LEAST} relations have enough minimal pairs, which is too few for a rank correlation."

    def rises(estimate: float, p: float) -> bool:
        return estimate > 0 and separated(p)

    def words(one: Order) -> str:
        return f"{_PREDICTORS[one.predictor]} ({_SCORES[one.score]})"

    within = [
        words(one)
        for one in found
        if one.predictor != BASELINE and rises(*one.over_relations) and rises(*one.beyond_baseline)
    ]
    across = [words(one) for one in found if rises(*one.over_models)]
    models = max(one.models for one in found)
    said = f"{listed(within)} order" if within else "nothing orders"
    said = f"Of {counted(models, 'model')}, {said} relations as the accuracies on minimal pairs do, more than the best "
    said += "baseline does."
    if models >= LEAST:
        said += f" {listed(across)} order models so." if across else " Nothing orders models so."
    return said.replace(" best heads", " scores of the best heads")


def _orders(name: str, found: Sequence[Order]) -> Table:
    def cell(estimate: float, p: float) -> list[float | None] | None:
        return None if np.isnan(estimate) else [estimate, None, None, p]

    return Table(
        f"{name}-orders",
        "Rank correlation with the accuracy on minimal pairs",
        [
            Column("predictor", NAME, of=lambda one: _PREDICTORS[one.predictor]),
            Column("accuracy", NAME, of=lambda one: _SCORES[one.score]),
            *Column.each(COUNT, "models", "relations"),
            Column("over relations", CORRELATION, of=lambda one: cell(*one.over_relations)),
            Column("beyond baseline", CORRELATION, of=lambda one: cell(*one.beyond_baseline)),
            Column("over models", CORRELATION, of=lambda one: cell(*one.over_models)),
        ],
        list(found),
        "Spearman's rank correlation, from −1 to 1: over relations, the mean over models; over models, the mean over "
        "relations. p: corrected (Holm) over predictors and accuracies.",
    )


def _values(name: str, models: Sequence[PredictedModel]) -> Table:
    rows = [
        [one.title, relation, *(one.predictors.get(by, {}).get(relation) for by in _PREDICTORS), of.pairs]
        + [of.whole, of.place]
        for one in models
        for relation, of in one.accuracies.items()
    ]
    columns = [
        *Column.each(NAME, "model", "relation"),
        *Column.each(PERCENT, "best heads", "best baseline"),
        *Column.each(SIGNED, "bits", "cost"),
        Column("pairs", COUNT),
        *Column.each(PERCENT, *_SCORES.values(), group="accuracy"),
    ]
    return Table(name, "What was measured of the relations that minimal pairs are about", columns, rows)
