"""Gains of attention over words and positions: the tables of results, and the section of a report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import CONTROL_TASK
from probing.evidence.effect import Effect, Usable, usable
from probing.information.result import InformationResult, InformationSettings
from probing.report.document import (
    COST,
    COUNT,
    NAME,
    PERCENT,
    SCORE,
    SIGNED,
    SIMILARITY,
    Column,
    Section,
    Table,
)
from probing.report.words import file_names, interval, left_out, method
from probing.runs.settings import Settings

TITLE = "What attention adds to words and positions"

CHOICES = ("best", "attention", "words", "both")
"""The choices of a dependent in tables, from one head to all that is known."""


_READ = {
    False: ("all heads", "attention adds", "the attention of all heads"),
    True: ("states", "states add", "a bilinear form of hidden states"),
}
"""What is read of a model, of heads and of states: the name of its choice, what it does, and what it is."""


class InformedModel(NamedTuple):
    """A result with its intervals. `name`: of files."""

    name: str
    result: InformationResult
    found: Usable


def read_informed(files: Sequence[Path]) -> list[InformedModel]:
    """The information results in files, by config and what attention adds; of one run given twice, one.

    Raises LedgerError for files that are not such results, or do not follow from their ledgers.
    """
    results = {result.signature: result for result in map(InformationResult.load, files)}

    def order(result: InformationResult) -> tuple[str, str, float]:
        return result.settings.config, result.settings.data, -(result.mean.adds if result.mean else 0)

    in_order = sorted(results.values(), key=order)
    names = file_names([f"information-{result.settings.config}-{result.settings.model}" for result in in_order])
    return [InformedModel(name, result, usable(result)) for name, result in zip(names, in_order)]


def same_run(settings: Settings | InformationSettings) -> tuple[object, ...]:
    """The settings that a probe and an information probe of one model on the same functions share."""
    of_model = settings.model, settings.revision, settings.weights, settings.pool
    return *of_model, settings.data, settings.config, settings.split, str(settings.limit)


def bits(informed: Sequence[InformedModel]) -> dict[tuple[object, ...], Effect]:
    """The run of each model, without controls -> what its attention adds, with the interval."""
    return {
        same_run(one.result.settings): one.found.mean["adds"]
        for one in informed
        if not (one.result.settings.control or one.result.settings.states) and one.found.mean is not None
    }


def findings(informed: Sequence[InformedModel]) -> list[Section]:
    """The finding on each model, without controls, in a sentence."""
    return [
        Section(f"{one.name}-finding", f"{one.result.title}: usable information", [sentence(one.result, one.found)])
        for one in informed
        if one.result.settings.control is None
    ]


def sections(informed: Sequence[InformedModel]) -> list[Section]:
    """One section, with the models and controls side by side, then each relation by relation; none without models."""
    each = [Section(one.name, one.result.title, [table(one.result, one.found, one.name)]) for one in informed]
    return [Section("information", TITLE, [*method("information"), _together(informed)], each)] if informed else []


def _together(informed: Sequence[InformedModel]) -> Table:
    choices = zip(CHOICES, ("best head", "all heads", "words and positions", "both"))
    return Table(
        "information-models",
        "Means over relations, with 95 % intervals over functions",
        [
            Column("model", NAME, of=lambda one: one.result.title),
            Column("relations", COUNT, of=lambda one: one.result.mean.relations),
            *(Column(title, SCORE, "top-1 UAS", of=partial(_mean, choice)) for choice, title in choices),
            Column("attention adds", COST, "bits", of=partial(_mean, "adds")),
            Column("% of open", SCORE, "bits", of=lambda one: one.found.share),
            Column("% of states", PERCENT, "bits", spare=(0,), of=lambda one: _of_states(one, informed)),
            Column("beyond rules", PERCENT, of=lambda one: one.result.mean.attention_beyond),
            Column("selectivity", SIGNED, spare=(0,), of=lambda one: _selectivity(one, informed)),
        ],
        [one for one in informed if one.found.mean is not None and one.found.share is not None],
        "States: hidden states of a layer, in a bilinear form, instead of all heads. % of states: how many of the bits "
        "that they add attention adds. Beyond rules: the percentage of the edges missed by words and positions that "
        "the attention of all heads finds. Selectivity: how many points more all heads find than of the control task "
        "(Hewitt and Liang 2019), a mean over the relations of both.",
    )


def _mean(name: str, one: InformedModel) -> Effect | None:
    return one.found.mean[name] if one.found.mean else None


def _of_states(one: InformedModel, informed: Sequence[InformedModel]) -> float | None:
    """Percent of the bits that states add which attention adds; None without a run on them, or where they add none."""
    with_states = one.result.settings.model_copy(update={"states": True})
    for other in informed:
        if other is not one and other.result.settings == with_states and one.found.mean and other.found.mean:
            add = other.found.mean["adds"]
            return 100 * one.found.mean["adds"].estimate / add.estimate if add.low > 0 else None
    return None


def _selectivity(one: InformedModel, informed: Sequence[InformedModel]) -> float | None:
    """By how many points all heads find more of the real edges than of the control task; None without a run on that."""
    settings = one.result.settings
    same = {"control": CONTROL_TASK, "learned_on": "", "labels": "", "seed": None}
    for other in informed:
        made = other.result.settings.model_copy(update={**same, "control": other.result.settings.control})
        if settings.control is None and made == settings.model_copy(update=same):
            pairs = [(of, other.result.relations.get(name)) for name, of in one.result.relations.items() if of.in_mean]
            found = [of.attention.uas - task.attention.uas for of, task in pairs if task is not None]
            return sum(found) / len(found) if found else None
    return None


def table(result: InformationResult, found: Usable, name: str = "information") -> Table:
    """The relations, those to which attention adds most first, and their mean."""
    source, adding, means = _READ[result.settings.states]
    order = sorted(result.relations.items(), key=lambda item: (-item[1].adds, item[0]))
    totals = []
    if result.mean is not None and found.mean is not None:
        totals = [(f"mean of {result.mean.relations} relations", result.mean, found.mean["adds"])]
    return Table(
        name,
        f"{result.title}: what {means} adds to words and positions, {result.functions} "
        f"{language_of(result.settings.config).units}",
        [
            Column("relation", NAME, of=lambda relation, one, adds: relation),
            Column("edges", COUNT, spare=(4,), of=lambda relation, one, adds: getattr(one, "edges", "")),
            Column("best head", PERCENT, "top-1 UAS", of=lambda relation, one, adds: one.best),
            Column(source, PERCENT, "top-1 UAS", of=lambda relation, one, adds: one.attention.uas),
            Column("words", PERCENT, "top-1 UAS", of=lambda relation, one, adds: one.words.uas),
            Column("both", PERCENT, "top-1 UAS", of=lambda relation, one, adds: one.both.uas),
            Column("open", SIMILARITY, "bits", spare=(3,), of=lambda relation, one, adds: one.words.bits),
            Column(adding, COST, "bits", spare=(0, 5), of=lambda relation, one, adds: adds),
            Column("missed", COUNT, "beyond rules", (2,), of=lambda relation, one, adds: getattr(one, "missed", "")),
            Column("best head", PERCENT, "beyond rules", (1,), of=lambda relation, one, adds: one.beyond),
            Column(source, PERCENT, "beyond rules", (1,), of=lambda relation, one, adds: one.attention_beyond),
        ],
        [(relation + ("" if one.in_mean else " *"), one, found.relations[relation]["adds"]) for relation, one in order],
        "All choices are fitted on validation. Words: words and positions, without a model. "
        f"{source.capitalize()}: {means}, in a log-linear choice. Both: these and words and positions together. "
        f"Open: the mean log-loss of words and positions; {adding} this many bits, with 95 % intervals over functions. "
        "Beyond rules: percent of the edges that words and positions miss. *: not in the mean, because the relation "
        "has too few edges or the paper excludes it.",
        totals=totals,
    )


def sentence(result: InformationResult, found: Usable) -> str:
    """The gain of attention in words."""
    mean = result.mean
    if mean is None or found.mean is None or found.share is None:
        return "Too few edges for a mean."
    adds, share = found.mean["adds"], found.share
    _, adding, means = _READ[result.settings.states]
    return (
        f"Over {mean.relations} relations, the best head finds {mean.best:.1f} % of the dependents, and "
        f"{means} {mean.attention.uas:.1f} %. Words and positions find {mean.words.uas:.1f} % without "
        f"a model, and both together {mean.both.uas:.1f} %. Words and positions leave {mean.words.bits:.3f} bits "
        f"open; {adding} {SIGNED.show(adds.estimate)} ({interval(adds.low, adds.high, SIGNED)}), "
        f"{share.estimate:.1f} % of them."
    )


def parts_of(result: InformationResult) -> list[str | Table]:
    """The table, and what is said below it."""
    found, without = usable(result), left_out(result.left_out, result.skips)
    below = [f"left out: {without}"] if without else []
    return [table(result, found), sentence(result, found), result.signature, *below]
