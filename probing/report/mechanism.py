"""Attention beside masked syntax: the sections of a report on models that both instruments measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.languages import language_of
from probing.evidence.mechanism import Correlation, Mechanism, beside, unlike
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.models.location import HEAD
from probing.prediction.result import MaskSettings
from probing.report import figures
from probing.report.document import (
    CORRELATION,
    COUNT,
    MARKED,
    PERCENT,
    SIGNED,
    Column,
    Figure,
    P,
    Section,
    Table,
    separated,
)
from probing.report.figures import COLOURS, FAINT
from probing.report.findings import Findings
from probing.report.syntaxeval import Group
from probing.report.words import file_names, interval, method

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
        config = findings.config
        if (config, findings.settings.split) != (group.settings.config, group.settings.split):
            continue
        for subject, (name, model) in product(findings.models, group.models.items()):
            probed, made = subject.settings, model.settings
            same = not probed.instead and (probed.model, probed.revision) == (
                made.model,
                made.revision.partition(HEAD)[0],
            )
            if not same or made.random_weights:
                continue
            refused = unlike(probed, subject.file, made, data)
            syntax = language_of(config).syntax
            compared = None if refused else beside(findings.guessed[probed], model.node_types, syntax)
            names, titles = dict.fromkeys([subject.name, name]), dict.fromkeys([findings.title, group.title])
            title = f"{' and '.join(names)}: {'; '.join(titles)}"
            key = f"mechanism-{group.name.removeprefix('masking-')}-{subject.name}"
            result.append(ProbedAndMasked(title, key, made, compared, refused))
    return [one._replace(name=name) for one, name in zip(result, file_names([one.name for one in result]))]


def section(models: Sequence[ProbedAndMasked]) -> Section:
    return Section("mechanism", "Mechanism beside outcome", method("mechanism"), [_model(model) for model in models])


def _model(model: ProbedAndMasked) -> Section:
    if model.mechanism is None:
        return Section(model.name, model.title, [f"Not compared: {model.refused}."])
    mechanism, made = model.mechanism, model.settings
    counts = (
        f"{mechanism.functions:,} functions of {made.data}, config {made.config}, split {made.split}, have both "
        f"probed edges and masked nodes. {mechanism.only_probed:,} more have only edges, and "
        f"{mechanism.only_masked:,} only nodes; they are left out."
    )
    if not mechanism.pairs:
        return Section(
            model.name, model.title, [counts, ("The relations of the masked node types have no held-out scores.")]
        )
    parts: list[str | Table | Figure] = [counts, *_told(mechanism)]
    if mechanism.correlations:
        parts += [_figure(model.name, model.title, mechanism), _correlations(model.name, mechanism)]
    return Section(model.name, model.title, [*parts, _pairs(model.name, mechanism)])


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
    rows = [
        [
            [pair.node_type, "few functions" if pair.few_functions else ""],
            ", ".join(pair.relations),
            pair.probed,
            pair.heads,
            pair.baseline,
            pair.masked,
            pair.effect,
            pair.restored,
        ]
        for pair in mechanism.pairs
    ]
    return Table(
        name,
        "Held-out scores of relations, and the loss when the same syntax is masked",
        [
            Column("node type", MARKED),
            Column("relations"),
            Column("functions", COUNT, "attention"),
            *Column.each(PERCENT, "best heads", "best baseline", group="attention"),
            Column("functions", COUNT, "masking"),
            Column("effect", SIGNED, "masking"),
            Column("restored T1", PERCENT, "masking"),
        ],
        rows,
        "Largest loss first. Functions: how many have an edge of the relations and a node of the type. Best heads, "
        "best baseline: percent, the mean over the relations that have edges here and on validation. Effect: T1 − "
        "T0, Jaccard. Restored: percent of the masked sub-tokens.",
    )


def _correlations(name: str, mechanism: Mechanism) -> Table:
    rows = [
        [OUTCOMES[outcome], len(mechanism.counted), *(list(value) for value in of)]
        for outcome, of in mechanism.correlations.items()
    ]
    columns = [Column("rank correlation of"), Column("pairs", COUNT), Column("with best heads", CORRELATION)]
    columns += [Column("with best baseline", CORRELATION), Column("difference", CORRELATION)]
    return Table(
        f"{name}-correlation",
        "Rank correlation of losses with held-out scores",
        columns,
        rows,
        "Spearman's rank correlation, from −1 to 1, with 95 % intervals and p over pairs. p of the best heads: "
        "corrected (Holm) for two outcomes. p of the difference: the two are exchanged within pairs.",
    )


def _figure(name: str, title: str, mechanism: Mechanism) -> Figure:
    pairs = mechanism.counted
    node_types = [pair.node_type for pair in pairs]

    def points(
        label: str, values: Sequence[float], colour: str = COLOURS[0], mark: str = figures.DOT
    ) -> figures.Points:
        return figures.Points(label, np.array(values), colour, mark)

    panels = {
        "held-out top-1 UAS, %": [
            points("best heads", [pair.heads for pair in pairs]),
            points("best baseline", [pair.baseline for pair in pairs], FAINT, figures.TICK),
        ],
        "T1 − T0, Jaccard similarity": [points("masking", [pair.effect for pair in pairs], COLOURS[1])],
        "restored in T1, %": [points("masking", [pair.restored for pair in pairs], COLOURS[1])],
    }
    return Figure(
        name,
        f"{title}: the held-out scores of the relations of a node type, and the loss when it is masked, largest loss "
        "first.",
        f"Points for {', '.join(node_types)}. The table has the numbers.",
        name,
        lambda: figures.rows(node_types, panels),
    )
