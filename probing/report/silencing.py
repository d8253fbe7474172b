"""The section of a report on silenced heads: whether a model uses the heads that find a relation
best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import language_of
from probing.instruments.silencing.hits import (
    SilencingEffect,
    expected_top_heads,
    silencing_effects,
)
from probing.instruments.silencing.result import DEPENDENTS, READING_END, SilencingResult
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Section, Table, bounded, tested
from probing.report.figures import CIRCLE, COLOURS, FAINT, TICK, Points
from probing.report.kinds import COST, COUNT, EFFECT, NAME, PERCENT, SIGNED
from probing.report.words import file_names, left_out, listed, method
from probing.runs.clusters import clusters_in_words
from probing.stats.intervals import FEW_CLUSTERS

SILENCING_TITLE = "Heads that look and heads that serve"

PREDICTED = {
    ("masked", READING_END): "all its head tokens in a function are masked together",
    ("masked", DEPENDENTS): "all its dependents in a function are masked together",
    ("next", DEPENDENTS): "the first token of each dependent is predicted",
}
"""The prediction task of a relation, by the field `predicts` of a run and its setting
`restored`."""

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


def verdict(effect: SilencingEffect) -> str:
    """Whether the best head of a relation serves: MOST if silencing it costs something, more than
    silencing the matched heads on average, as far as the test separates the two, and more than
    silencing any of them."""
    if effect.few_functions:
        return FEW
    if not effect.difference.significant:
        return ALIKE
    if effect.difference.value < 0:
        return LESS
    if effect.cost.low <= 0:
        return NOTHING
    return ANOTHER if effect.costlier else MOST


def read_silenced(files: Sequence[Path]) -> list[SilencedModel]:
    """The silencing results in files, each once, by config and model.

    Raises LedgerError for files that are not silencing results, or do not follow from their
    ledgers.
    """
    results: dict[Any, tuple[Path, SilencingResult]] = {}
    for file in files:
        result = SilencingResult.load(file)
        known, other = results.setdefault(result.settings, (file, result))
        if other.ledger.rows.tobytes() != result.ledger.rows.tobytes():
            raise LedgerError(
                f"{file} and {known} are two runs of the same job, but their costs differ: give only one"
            )
    in_order = sorted(
        results.values(),
        key=lambda model: (model[1].settings.config, model[1].title, model[0].name),
    )
    settings = [result.settings for _, result in in_order]
    names = file_names(
        ["-".join(["heads", model.config, model.model, *model.deviations]) for model in settings]
    )
    return [
        SilencedModel(name, result.title, result, silencing_effects(result))
        for name, (_, result) in zip(names, in_order)
    ]


def findings(silenced: Sequence[SilencedModel]) -> list[Section]:
    """How many of the heads that look best also serve, of each result."""
    return [Section("heads-finding", SILENCING_TITLE, [verdicts(silenced)])] if silenced else []


def verdicts(silenced: Sequence[SilencedModel]) -> Table:
    """The number of relations with each verdict, and how many heads are the costliest of their
    layer."""
    rows: list[list[Any]] = []
    for model in silenced:
        counted = {
            name: effect for name, effect in model.relations.items() if not effect.few_functions
        }
        said = Counter(map(verdict, model.relations.values()))
        heads = expected_top_heads(counted) if counted else (0, None, None)
        rows.append([model.title, *(said[name] for name in VERDICTS[::-1]), *heads])
    return Table(
        "heads-verdicts",
        "Relations by what silencing their best head shows",
        [
            Column("model", NAME),
            *Column.each(COUNT, *VERDICTS[::-1], group="relations"),
            Column("different", COUNT, "best heads"),
            *Column.each(PERCENT, "costliest", "by chance", group="best heads"),
        ],
        rows,
        f"{MOST.capitalize()}: silencing the head costs something, and more than silencing any matched head. Few "
        f"functions: fewer than {FEW_CLUSTERS}; the best heads are those of the other relations. Costliest: how many "
        "of them no matched head outdoes, as the mean over the relations of a head, without a test; by chance: as many "
        "as of random heads.",
    )


def sections(silenced: Sequence[SilencedModel]) -> list[Section]:
    """One section, with a part for each result; none without results."""
    return (
        [Section("heads", SILENCING_TITLE, method("silencing"), [*map(_silenced, silenced)])]
        if silenced
        else []
    )


def _silenced(model: SilencedModel) -> Section:
    result = model.result
    units, predicts = language_of(result.settings.config).units, result.run.predicts
    ends = "head tokens" if result.settings.restored == READING_END else "dependents"
    asked = (
        f"all {ends} of a relation masked"
        if predicts == "masked"
        else "the first tokens of dependents predicted"
    )
    notes = [
        f"{result.functions:,} {units} of {result.settings.data}, config {result.settings.config}, {asked}; matched "
        f"heads: {matched_heads(result)}; {result.passes:,} forward passes.",
        *_left_out(result),
    ]
    drawn = (
        [_figure(model)]
        if any(not effect.few_functions for effect in model.relations.values())
        else []
    )
    return Section(
        model.name, model.title, [*notes, *drawn, table(model.name, result, model.relations)]
    )


def silencing_parts(result: SilencingResult) -> list[str | Table]:
    """The relations, those that heads find best first, with the cost of silencing the best head of
    each."""
    relations = silencing_effects(result)
    return [
        table("silencing", result, relations),
        verdicts([SilencedModel("", result.title, result, relations)]),
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


def table(name: str, result: SilencingResult, relations: dict[str, SilencingEffect]) -> Table:
    """The relations, highest score first."""
    asked = PREDICTED[result.run.predicts, result.settings.restored]
    numbers = sorted({number for effect in relations.values() for number in effect.together})

    def together(
        number: int, name: str, head: Any, costs: Any, effect: SilencingEffect
    ) -> list[Any] | None:
        return tested(effect.together[number]) if number in effect.together else None

    return Table(
        name,
        f"{result.title}: the score of the best head of each relation, and the cost of silencing it, "
        f"{result.functions} functions",
        [
            Column("relation", NAME, of=lambda name, head, costs, effect: name),
            Column(
                "functions", COUNT, spare=(5,), of=lambda name, head, costs, effect: costs.functions
            ),
            Column("edges", COUNT, spare=(1,), of=lambda name, head, costs, effect: costs.edges),
            Column(
                "% asked", PERCENT, spare=(2,), of=lambda name, head, costs, effect: costs.share
            ),
            Column(
                "head", NAME, of=lambda name, head, costs, effect: "-".join(map(str, head.best))
            ),
            Column("score", PERCENT, "looks", of=lambda name, head, costs, effect: head.score),
            Column(
                "beyond", PERCENT, "looks", (10,), of=lambda name, head, costs, effect: head.beyond
            ),
            Column(
                "cost",
                COST,
                "serves",
                (0, 3),
                of=lambda name, head, costs, effect: bounded(effect.cost),
            ),
            Column(
                "matched",
                SIGNED,
                "serves",
                (9,),
                of=lambda name, head, costs, effect: effect.matched,
            ),
            Column(
                "difference",
                EFFECT,
                "serves",
                (8, 4, 6),
                of=lambda name, head, costs, effect: tested(effect.difference),
            ),
            Column(
                "costlier",
                NAME,
                "serves",
                (7,),
                of=lambda name, head, costs, effect: f"{effect.costlier} of {effect.rivals}",
            ),
            Column("verdict", NAME, of=lambda name, head, costs, effect: verdict(effect)),
            *(
                Column(f"best {number}", EFFECT, "together", (11, 6, 11), partial(together, number))
                for number in numbers
            ),
        ],
        [
            (name, result.heads[name], result.relations[name], effect)
            for name, effect in relations.items()
        ],
        f"Highest score first. Of each relation {asked}. % asked: sub-tokens of a function "
        "that are predicted. Score, beyond: percent of the edges, and of those beyond the best offset, that the head "
        "finds with one guess. Cost: log-probability that is lost, nats per sub-token, mean over functions; matched: "
        f"the same for {matched_heads(result)}, mean; difference: of the two; all with 95 % intervals. p: by the "
        f"paired test over {clusters_in_words()}, corrected (Holm) for {len(relations)} relations. Costlier: how many "
        f"of the matched heads cost more. Best {listed([*map(str, numbers)]) if numbers else 'n'}: so many of the best "
        f"heads silenced together, against sets of as many others. {COLOURED}",
    )


def _figure(model: SilencedModel) -> Figure:
    shown = {name: effect for name, effect in model.relations.items() if not effect.few_functions}
    names, effects = list(shown), list(shown.values())
    heads = [model.result.heads[name] for name in names]

    panels = {
        "top-1 UAS, %": [
            Points("best head", [head.score for head in heads], COLOURS[0]),
            Points(
                "best head, beyond the best offset",
                [head.beyond for head in heads],
                COLOURS[0],
                CIRCLE,
            ),
        ],
        "cost, nats per sub-token": [
            Points("best head", [effect.cost.value for effect in effects], COLOURS[0]),
            Points("matched heads", [effect.matched for effect in effects], FAINT, TICK),
        ],
    }
    return Figure(
        model.name,
        f"{model.title}: how often the best head of a relation finds the dependent, and the cost of silencing it, "
        "beside other heads of its layer.",
        f"Points for {', '.join(names)}. The table has the numbers.",
        model.name,
        lambda: figures.rows(names, panels),
    )
