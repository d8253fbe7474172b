"""Attention beside what models predict: the sections of a report on silenced heads, and on models of which several
instruments measured the same syntax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import language_of, variant_of
from probing.evidence.effect import SilencingEffect, by_chance, silencing_effects
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
from probing.prediction.silencing_result import DEPENDENTS, READING_END, SilencingResult
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Part, Section, Table, separated, tested
from probing.report.figures import CIRCLE, COLOURS, FAINT, TICK, Points
from probing.report.findings import Findings
from probing.report.information import InformedModel
from probing.report.kinds import CORRELATION, COST, COUNT, EFFECT, MARKED, NAME, PERCENT, SIGNED, P
from probing.report.syntaxeval import Group
from probing.report.words import counted, file_names, interval, left_out, listed, method
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
    """Whether heads and losses go together, and more than baselines and losses do: a text for each outcome."""
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


# ------------------------------------------------------------------------------------------------------- silenced heads

SILENCING_TITLE = "Heads that look and heads that serve"

PREDICTED = {
    ("masked", READING_END): "all its head tokens in a function are masked together",
    ("masked", DEPENDENTS): "all its dependents in a function are masked together",
    ("next", DEPENDENTS): "the first token of each dependent is predicted",
}
"""The prediction task of a relation, by the field `predicts` of a run and its setting `restored`."""

VERDICTS = FEW, ALIKE, LESS, NOTHING, ANOTHER, MOST = (
    "few functions",
    "not told apart",
    "serves less",
    "serves nothing",
    "serves, but another more",
    "serves most",
)
"""The verdicts on a relation, see `verdict`."""


class SilencedModel(NamedTuple):
    """A silencing result with what its heads serve. `name`: of files."""

    name: str
    title: str
    result: SilencingResult
    relations: dict[str, SilencingEffect]


def verdict(one: SilencingEffect) -> str:
    """Whether the best head of a relation serves: MOST if silencing it costs something, more than silencing the matched
    heads on average, as far as the test separates the two, and more than silencing any of them."""
    if one.few_functions:
        return FEW
    if not separated(one.difference.p_holm):
        return ALIKE
    if one.difference.effect.estimate < 0:
        return LESS
    if one.cost.low <= 0:
        return NOTHING
    return ANOTHER if one.costlier else MOST


def read_silenced(files: Sequence[Path]) -> list[SilencedModel]:
    """The silencing results in files, each once, by config and model.

    Raises LedgerError for files that are not silencing results, or do not follow from their ledgers.
    """
    results: dict[Any, tuple[Path, SilencingResult]] = {}
    for file in files:
        result = SilencingResult.load(file)
        known, other = results.setdefault(result.settings, (file, result))
        if other.ledger.rows.tobytes() != result.ledger.rows.tobytes():
            raise LedgerError(f"{file} and {known} are two runs of the same job, but their costs differ: give only one")
    in_order = sorted(results.values(), key=lambda one: (one[1].settings.config, one[1].title, one[0].name))
    made = [result.settings for _, result in in_order]
    names = file_names(["-".join(["heads", one.config, one.model, *one.instead]) for one in made])
    return [
        SilencedModel(name, result.title, result, silencing_effects(result))
        for name, (_, result) in zip(names, in_order)
    ]


def silencing_findings(silenced: Sequence[SilencedModel]) -> list[Section]:
    """The finding on each result in sentences."""
    return [
        Section(f"{one.name}-finding", f"{one.title}: silenced heads", [silencing_sentence(one.relations)])
        for one in silenced
    ]


def silencing_sentence(relations: dict[str, SilencingEffect]) -> str:
    """The number of heads that look best and also serve, and how many would by chance."""
    counted = {name: one for name, one in relations.items() if not one.few_functions}
    if not counted:
        return (
            f"Every relation is in fewer than {FEW_FUNCTIONS} functions, which is too few to draw a conclusion "
            "about its head."
        )
    said = Counter(verdict(one) for one in counted.values())
    others = "; ".join(f"{name} in {said[name]}" for name in VERDICTS[::-1] if name != MOST and said[name])
    heads, most, chance = by_chance(counted)
    serving = len({one.head for one in counted.values() if verdict(one) == MOST})
    together = ""
    for number in sorted({number for one in counted.values() for number in one.together}):
        found = [one.together[number] for one in counted.values() if number in one.together]
        more, less = (sum(separated(of.p_holm) and sign * of.effect.estimate > 0 for of in found) for sign in (1, -1))
        together += (
            f" Silenced together, the best {number} cost more than as many others in {more} of {len(found)} "
            f"relations, and less in {less}."
        )
    return (
        f"In {said[MOST]} of {len(counted)} relations in at least {FEW_FUNCTIONS} functions, the head that looks "
        "best matters most in its layer: silencing it costs something, and more than silencing any other head. "
        f"These relations have {serving} of {heads} different "
        f"heads.{(f' Verdicts on the rest: {others}.' if others else '')} Counting each head once, as the mean over "
        f"its relations and without a test, {most:.1f} are the costliest of their layer; of random heads, "
        f"{chance:.1f} would be.{together}"
    )


def silencing_sections(silenced: Sequence[SilencedModel]) -> list[Section]:
    """One section, with a part for each result; none without results."""
    return [Section("heads", SILENCING_TITLE, method("silencing"), [*map(_silenced, silenced)])] if silenced else []


def _silenced(one: SilencedModel) -> Section:
    result = one.result
    units, predicts = language_of(result.settings.config).units, result.run.predicts
    ends = "head tokens" if result.settings.restored == READING_END else "dependents"
    asked = f"all {ends} of a relation masked" if predicts == "masked" else "the first tokens of dependents predicted"
    notes = [
        f"{result.functions:,} {units} of {result.settings.data}, config {result.settings.config}, {asked}; matched "
        f"heads: {matched_heads(result)}; {result.passes:,} forward passes.",
        silencing_sentence(one.relations),
        *_left_out(result),
    ]
    drawn = [_silencing_figure(one)] if any(not found.few_functions for found in one.relations.values()) else []
    return Section(one.name, one.title, [*notes, *drawn, silencing_table(one.name, result, one.relations)])


def silencing_parts(result: SilencingResult) -> list[str | Table]:
    """The relations, those that heads find best first, with the cost of silencing the best head of each."""
    relations = silencing_effects(result)
    return [
        silencing_table("silencing", result, relations),
        silencing_sentence(relations),
        result.signature,
        *result.run.layers_note,
        *_left_out(result),
    ]


def matched_heads(result: SilencingResult) -> str:
    """Which heads the best one is compared with, in words."""
    rivals = max(len(head.groups[0].matched) for head in result.heads.values())
    every = rivals == result.run.heads - 1
    return f"{'all' if every else 'drawn'} {rivals} other heads of its layer"


def _left_out(result: SilencingResult) -> list[str]:
    """The edges and functions of which nothing is asked, in a sentence; none if there are none."""
    without = left_out(result.left_out, result.skips)
    return [f"Left out: {without}."] if without else []


def silencing_table(name: str, result: SilencingResult, relations: dict[str, SilencingEffect]) -> Table:
    """The relations, highest score first."""
    asked = PREDICTED[result.run.predicts, result.settings.restored]
    numbers = sorted({number for one in relations.values() for number in one.together})

    def together(number: int, name: str, head: Any, costs: Any, one: SilencingEffect) -> list[Any] | None:
        return tested(one.together[number]) if number in one.together else None

    return Table(
        name,
        f"{result.title}: the score of the best head of each relation, and the cost of silencing it, "
        f"{result.functions} functions",
        [
            Column("relation", NAME, of=lambda name, head, costs, one: name),
            Column("functions", COUNT, spare=(5,), of=lambda name, head, costs, one: costs.functions),
            Column("edges", COUNT, spare=(1,), of=lambda name, head, costs, one: costs.edges),
            Column("% asked", PERCENT, spare=(2,), of=lambda name, head, costs, one: costs.share),
            Column("head", NAME, of=lambda name, head, costs, one: "-".join(map(str, head.best))),
            Column("score", PERCENT, "looks", of=lambda name, head, costs, one: head.score),
            Column("beyond", PERCENT, "looks", (10,), of=lambda name, head, costs, one: head.beyond),
            Column("cost", COST, "serves", (0, 3), of=lambda name, head, costs, one: one.cost),
            Column("matched", SIGNED, "serves", (9,), of=lambda name, head, costs, one: one.matched),
            Column("difference", EFFECT, "serves", (8, 4, 6), of=lambda name, head, costs, one: tested(one.difference)),
            Column(
                "costlier", NAME, "serves", (7,), of=lambda name, head, costs, one: f"{one.costlier} of {one.rivals}"
            ),
            Column("verdict", NAME, of=lambda name, head, costs, one: verdict(one)),
            *(Column(f"best {of}", EFFECT, "together", (11, 6, 11), partial(together, of)) for of in numbers),
        ],
        [(name, result.heads[name], result.relations[name], one) for name, one in relations.items()],
        f"Highest score first. Of each relation {asked}. % asked: sub-tokens of a function "
        "that are predicted. Score, beyond: percent of the edges, and of those beyond the best offset, that the head "
        "finds with one guess. Cost: log-probability that is lost, nats per sub-token, mean over functions; matched: "
        f"the same for {matched_heads(result)}, mean; difference: of the two; all with 95 % intervals. p: by the "
        f"paired test over functions, corrected (Holm) for {len(relations)} relations. Costlier: how many of the "
        f"matched heads cost more. Best {listed([*map(str, numbers)]) if numbers else 'n'}: so many of the best heads "
        f"silenced together, against sets of as many others. {COLOURED}",
    )


def _silencing_figure(one: SilencedModel) -> Figure:
    shown = {name: found for name, found in one.relations.items() if not found.few_functions}
    names, found = list(shown), list(shown.values())
    heads = [one.result.heads[name] for name in names]

    panels = {
        "top-1 UAS, %": [
            Points("best head", [head.score for head in heads], COLOURS[0]),
            Points("best head, beyond the best offset", [head.beyond for head in heads], COLOURS[0], CIRCLE),
        ],
        "cost, nats per sub-token": [
            Points("best head", [one.cost.estimate for one in found], COLOURS[0]),
            Points("matched heads", [one.matched for one in found], FAINT, TICK),
        ],
    }
    return Figure(
        one.name,
        f"{one.title}: how often the best head of a relation finds the dependent, and the cost of silencing it, "
        "beside other heads of its layer.",
        f"Points for {', '.join(names)}. The table has the numbers.",
        one.name,
        lambda: figures.rows(names, panels),
    )
