"""Minimal pairs beside attention: the section of a report on models of which both were measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codesyntax_dataset.languages import language_of, variant_of
from probing.evidence.mechanism import BASELINE, LEAST, Order, PredictedModel, orders
from probing.models.location import HEAD
from probing.prediction.preference_result import PLACE, WHOLE, PreferenceResult
from probing.report.document import CORRELATION, COUNT, NAME, PERCENT, SIGNED, Column, Section, Table, separated
from probing.report.findings import Findings
from probing.report.information import InformedModel
from probing.report.silencing import SilencedModel
from probing.report.words import counted, listed, method
from probing.runs.settings import RunSettings

_PREDICTORS = {
    "heads": "best heads",
    BASELINE: "best baseline, without a model",
    "bits": "bits that attention adds",
    "cost": "cost of silencing",
}
_SCORES = {WHOLE: "whole texts", PLACE: "where they differ"}


def read_predicted(
    findings: Findings,
    informed: Sequence[InformedModel],
    silenced: Sequence[SilencedModel],
    preferred: Sequence[PreferenceResult],
) -> list[PredictedModel]:
    """The models that were probed on a config, checkpoints included, and that have results on minimal pairs of its
    language and split. What else was measured of them in this language and split is beside it."""

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
        if (
            settings.instead
            or (result := results.get(key(settings))) is None
            or variant_of(settings.config).edit is not None
        ):
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


def section(all_findings: Sequence[tuple[Findings, list[PredictedModel]]]) -> Section:
    parts = [_one(findings, models) for findings, models in all_findings]
    return Section("predictors", "What predicts which text a model prefers", method("predictors"), parts)


def _one(findings: Findings, models: Sequence[PredictedModel]) -> Section:
    name, found = f"predictors-{findings.name}", orders(models)
    return Section(name, findings.title, [_told(found), *_orders(name, found), _values(name, models)])


def _told(found: Sequence[Order]) -> str:
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


def _orders(name: str, found: Sequence[Order]) -> list[Table]:
    def cell(estimate: float, p: float) -> list[float | None] | None:
        return None if np.isnan(estimate) else [estimate, None, None, None if np.isnan(p) else p]

    rows = [
        [_PREDICTORS[one.predictor], _SCORES[one.score], one.models, one.relations, cell(*one.over_relations)]
        + [cell(*one.beyond_baseline), cell(*one.over_models)]
        for one in found
    ]
    columns = [
        *(Column(of, NAME) for of in ("predictor", "accuracy")),
        *(Column(of, COUNT) for of in ("models", "relations")),
        *(Column(of, CORRELATION) for of in ("over relations", "beyond baseline", "over models")),
    ]
    notes = (
        "Spearman's rank correlation, from −1 to 1: over relations, the mean over models; over models, the mean over "
        "relations. p: corrected (Holm) over predictors and accuracies."
    )
    return [
        Table(f"{name}-orders", "Rank correlation with the accuracy on minimal pairs", columns, rows, notes)
    ] * bool(rows)


def _values(name: str, models: Sequence[PredictedModel]) -> Table:
    rows = [
        [one.title, relation, *(one.predictors.get(by, {}).get(relation) for by in _PREDICTORS), of.pairs]
        + [of.whole, of.place]
        for one in models
        for relation, of in one.accuracies.items()
    ]
    columns = [
        *(Column(of, NAME) for of in ("model", "relation")),
        *(Column(of, PERCENT) for of in ("best heads", "best baseline")),
        *(Column(of, SIGNED) for of in ("bits", "cost")),
        Column("pairs", COUNT),
        *(Column(of, PERCENT, "accuracy") for of in _SCORES.values()),
    ]
    return Table(name, "What was measured of the relations that minimal pairs are about", columns, rows)
