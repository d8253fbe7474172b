"""What is measured in bits or by likelihood, as tables and as sections of a report: gains of
attention over words and positions, the likelier texts of minimal pairs, and the surprisal of the
tokens of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import CONTROL_TASK
from probing.instruments.information.hits import FINDERS
from probing.instruments.information.hits import hits as information_hits
from probing.instruments.information.result import (
    BOTH,
    WORDS,
    InformationResult,
    InformationSettings,
)
from probing.instruments.likelihood import result as likelihood_results
from probing.instruments.likelihood.hits import CONTROL, MODEL, NODE, of_pairs, of_surprisal
from probing.instruments.likelihood.result import (
    LEAST_NODES,
    LEAST_PAIRS,
    ROLES,
    SURFACE,
    Accuracy,
    PreferenceResult,
    Surprisal,
    SurprisalResult,
)
from probing.report.document import Column, Section, Table, bounded
from probing.report.kinds import COST, COUNT, NAME, PERCENT, ROUNDED, SCORE, SIGNED, SIMILARITY
from probing.report.words import file_names, left_out, method, starred
from probing.runs.clusters import clusters_in_words
from probing.runs.settings import Settings
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate

INFORMATION_TITLE = "What attention adds to words and positions"

_READ = {
    False: ("all heads", "attention adds", "the attention of all heads"),
    True: ("states", "states add", "a bilinear form of hidden states"),
}
"""What is read of a model, of heads and of states: the name of its choice, what it does, and what
it is."""


@dataclass(frozen=True)
class InformedModel:
    """A result with its intervals. `name`: of files."""

    name: str
    result: InformationResult

    @cached_property
    def hits(self) -> dict[str, Hits]:
        return information_hits(self.result)

    @cached_property
    def adds(self) -> dict[str, Estimate]:
        """Relation -> the bits that attention adds to words and positions."""
        bits = self.hits["bits"]
        return bits.each(bits.by_group(WORDS, BOTH))

    @cached_property
    def adds_mean(self) -> Estimate:
        """The same, the mean over relations."""
        return self.hits["bits"].mean(WORDS, BOTH).at(0)

    @cached_property
    def closed(self) -> Estimate:
        """The closed share of the means over relations: how many percent of the bits that words and
        positions leave open above the floor attention adds."""
        return self.hits["bits"].portion(WORDS, BOTH, WORDS).at(0)

    @cached_property
    def closed_by_construct(self) -> Estimate:
        """The same of the means over constructs, whose relations ask about the same head tokens."""
        return self.hits["constructs"].portion(WORDS, BOTH, WORDS).at(0)

    def finds(self, finder: str) -> Estimate:
        """The mean top-1 UAS of one of FINDERS."""
        return self.hits["uas"].mean(finder).at(0)


def read_informed(files: Sequence[Path]) -> list[InformedModel]:
    """The information results in files, by config and what attention adds; of one run given twice,
    one.

    Raises LedgerError for files that are not such results, or do not follow from their ledgers.
    """
    results = {result.signature: result for result in map(InformationResult.load, files)}

    def order(result: InformationResult) -> tuple[str, str, float]:
        return (
            result.settings.config,
            result.settings.data,
            -(result.mean.adds if result.mean else 0),
        )

    in_order = sorted(results.values(), key=order)
    names = file_names(
        [f"information-{result.settings.config}-{result.settings.model}" for result in in_order]
    )
    return [InformedModel(name, result) for name, result in zip(names, in_order)]


def same_run(settings: Settings | InformationSettings) -> tuple[object, ...]:
    """The settings that a probe and an information probe of one model on the same functions
    share."""
    of_model = settings.model, settings.revision, settings.weights, settings.begin, settings.pool
    return *of_model, settings.data, settings.config, settings.split, str(settings.limit)


def bits(informed: Sequence[InformedModel]) -> dict[tuple[object, ...], list[float]]:
    """The run of each model, without controls -> the cell of what its attention adds, with the
    interval."""
    return {
        same_run(model.result.settings): bounded(model.adds_mean)
        for model in informed
        if not (model.result.settings.control or model.result.settings.states)
        and model.result.mean is not None
    }


def sections(informed: Sequence[InformedModel]) -> list[Section]:
    """One section, with the models and controls side by side, then each relation by relation; none
    without models."""
    each = [Section(model.name, model.result.title, [table(model)]) for model in informed]
    return (
        [
            Section(
                "information",
                INFORMATION_TITLE,
                [*method("information"), _together(informed)],
                each,
            )
        ]
        if informed
        else []
    )


def _together(informed: Sequence[InformedModel]) -> Table:
    finders = zip(FINDERS, ("best head", "all heads", "words and positions", "both"))
    return Table(
        "information-models",
        f"Means over relations, with 95 % intervals over {clusters_in_words()}",
        [
            Column("model", NAME, of=lambda model: model.result.title),
            Column("relations", COUNT, of=lambda model: model.result.mean.relations),
            *(
                Column(title, SCORE, "top-1 UAS", of=partial(_found, finder))
                for finder, title in finders
            ),
            Column("attention adds", COST, "bits", of=lambda model: bounded(model.adds_mean)),
            Column("closed, %", SCORE, "bits", of=lambda model: bounded(model.closed)),
            Column(
                "closed, % by construct",
                SCORE,
                "bits",
                (1,),
                of=lambda model: bounded(model.closed_by_construct),
            ),
            Column(
                "% of states",
                PERCENT,
                "bits",
                spare=(0,),
                of=lambda model: _of_states(model, informed),
            ),
            Column("beyond rules", PERCENT, of=lambda model: model.result.mean.attention_beyond),
            Column(
                "selectivity", SIGNED, spare=(0,), of=lambda model: _selectivity(model, informed)
            ),
        ],
        [model for model in informed if model.result.mean is not None],
        "Closed: the percentage of the bits that words and positions leave open above the floor which attention adds; "
        "the floor is what even a parser leaves open of a head token with several dependents. By construct: `For` "
        "counts once, not once for each of its relations. Compare with --control random-weights. "
        "States: hidden states of a layer, in a bilinear form, instead of all heads. % of states: how many of the bits "
        "that they add attention adds. Beyond rules: the percentage of the edges missed by words and positions that "
        "the attention of all heads finds. Selectivity: how many points more all heads find than of the control task "
        "(Hewitt and Liang 2019), a mean over the relations of both.",
    )


def _found(finder: str, model: InformedModel) -> list[float]:
    return bounded(model.finds(finder))


def _of_states(model: InformedModel, informed: Sequence[InformedModel]) -> float | None:
    """Percent of the bits that states add which attention adds; None without a run on them, or
    where they add none."""
    with_states = model.result.settings.model_copy(update={"states": True})
    for other in informed:
        if (
            other is not model
            and other.result.settings == with_states
            and model.result.mean
            and other.result.mean
        ):
            return (
                100 * model.adds_mean.value / other.adds_mean.value
                if other.adds_mean.low > 0
                else None
            )
    return None


def _selectivity(model: InformedModel, informed: Sequence[InformedModel]) -> float | None:
    """By how many points all heads find more of the real edges than of the control task; None
    without a run on that."""
    settings = model.result.settings
    same = {"control": CONTROL_TASK, "learned_on": "", "labels": "", "seed": None}
    for other in informed:
        made = other.result.settings.model_copy(
            update={**same, "control": other.result.settings.control}
        )
        if settings.control is None and made == settings.model_copy(update=same):
            pairs = [
                (relation, other.result.relations.get(name))
                for name, relation in model.result.relations.items()
                if relation.in_mean
            ]
            differences = [
                relation.attention.uas - task.attention.uas
                for relation, task in pairs
                if task is not None
            ]
            return sum(differences) / len(differences) if differences else None
    return None


def table(model: InformedModel) -> Table:
    """The relations, those to which attention adds most first, and their mean."""
    result = model.result
    source, adding, means = _READ[result.settings.states]
    order = sorted(result.relations.items(), key=lambda item: (-item[1].adds, item[0]))
    totals = []
    if result.mean is not None:
        totals = [(f"mean of {result.mean.relations} relations", result.mean, model.adds_mean)]
    return Table(
        model.name,
        f"{result.title}: what {means} adds to words and positions, {result.functions} "
        f"{language_of(result.settings.config).units}",
        [
            Column("relation", NAME, of=lambda relation, scores, adds: relation),
            Column(
                "edges",
                COUNT,
                spare=(4,),
                of=lambda relation, scores, adds: getattr(scores, "edges", ""),
            ),
            Column(
                "best head", PERCENT, "top-1 UAS", of=lambda relation, scores, adds: scores.best
            ),
            Column(
                source, PERCENT, "top-1 UAS", of=lambda relation, scores, adds: scores.attention.uas
            ),
            Column(
                "words", PERCENT, "top-1 UAS", of=lambda relation, scores, adds: scores.words.uas
            ),
            Column("both", PERCENT, "top-1 UAS", of=lambda relation, scores, adds: scores.both.uas),
            Column(
                "open",
                SIMILARITY,
                "bits",
                spare=(3,),
                of=lambda relation, scores, adds: scores.words.bits,
            ),
            Column(
                "floor",
                SIMILARITY,
                "bits",
                spare=(3,),
                of=lambda relation, scores, adds: scores.floor,
            ),
            Column(
                adding, COST, "bits", spare=(0, 5), of=lambda relation, scores, adds: bounded(adds)
            ),
            Column(
                "missed",
                COUNT,
                "beyond rules",
                (2,),
                of=lambda relation, scores, adds: getattr(scores, "missed", ""),
            ),
            Column(
                "best head",
                PERCENT,
                "beyond rules",
                (1,),
                of=lambda relation, scores, adds: scores.beyond,
            ),
            Column(
                source,
                PERCENT,
                "beyond rules",
                (1,),
                of=lambda relation, scores, adds: scores.attention_beyond,
            ),
        ],
        [
            (starred(relation, scores.in_mean), scores, model.adds[relation])
            for relation, scores in order
        ],
        "All choices are fitted on validation. Words: words and positions, without a model. "
        f"{source.capitalize()}: {means}, in a log-linear choice. Both: these and words and positions together. "
        f"Open: the mean log-loss of words and positions, of which nobody can close the floor; {adding} this many "
        "bits, with 95 % intervals over functions. "
        "Beyond rules: percent of the edges that words and positions miss. *: not in the mean, because the relation "
        "has too few edges or the paper excludes it.",
        totals=totals,
    )


def parts_of(result: InformationResult) -> list[str | Table]:
    """The table, and what is said below it."""
    model, without = InformedModel("information", result), left_out(result.left_out, result.skips)
    below = [f"left out: {without}"] if without else []
    return [table(model), result.signature, *result.run.layers_note, *below]


# ------------------------------------------------------------------------------------------------------- minimal pairs

PREFERENCE_TITLE = "Which text of a minimal pair a model finds likelier"

_ACCURACY = [
    Column("pairs", COUNT),
    Column("repositories", COUNT, spare=(1,)),
    Column("missed", COUNT, spare=(2,)),
    Column("ties", COUNT, spare=(2,)),
    Column("brackets", PERCENT, "accuracy", spare=(3,)),
    Column("surface", PERCENT, "accuracy", spare=(3,)),
    Column("whole texts", SCORE, "accuracy"),
    Column("where they differ", SCORE, "accuracy", spare=(0,)),
]


def read_preferred(files: Sequence[Path]) -> list[PreferenceResult]:
    """The results on minimal pairs in files, by config and accuracy; of one run given twice, one.

    Raises LedgerError for files that are not such results, or do not follow from their ledgers.
    """
    results = {result.signature: result for result in map(PreferenceResult.load, files)}

    def order(result: PreferenceResult) -> tuple[str, str, float]:
        return result.settings.config, result.settings.data, -result.accuracy.whole

    return sorted(results.values(), key=order)


def preference_sections(results: Sequence[PreferenceResult]) -> list[Section]:
    """One section, with the models and controls side by side, then each by phenomenon, distance and
    depth; none without results."""
    hits = [of_pairs(result) for result in results]
    rows: list[list[object]] = []
    for result, measured in zip(results, hits):
        if result.mean is not None:
            names = [result.title, result.run.scores, result.mean.phenomena, result.accuracy.pairs]
            rivals = [result.mean.brackets, result.mean.surface]
            rows.append([*names, *rivals, *map(bounded, _means(measured["phenomena"], MODEL))])
    together = Table(
        "preference-models",
        "Means over phenomena, with 95 % intervals over repositories",
        [
            Column("model", NAME),
            Column("score"),
            Column("phenomena", COUNT),
            _ACCURACY[0],
            *_ACCURACY[4:],
        ],
        rows,
    )
    each = [
        Section(
            result.settings.name,
            result.title,
            _preference_tables(result, measured, result.settings.name),
        )
        for result, measured in zip(results, hits)
    ]
    return (
        [Section("preference", PREFERENCE_TITLE, [*method("preference"), together], each)]
        if results
        else []
    )


def preference_parts(result: PreferenceResult) -> list[str | Table]:
    """The accuracy on minimal pairs, and what is said below."""
    skipped = [f"skipped: {count:,} pairs ({reason})" for reason, count in result.skips.items()]
    return [*_preference_tables(result, of_pairs(result), "preference"), result.signature, *skipped]


def _preference_tables(
    result: PreferenceResult, measured: Mapping[str, Hits], name: str
) -> list[Table]:
    totals: list[list[object]] = []
    if result.mean is not None:
        title, means = (
            f"mean of {result.mean.phenomena} phenomena",
            _means(measured["phenomena"], MODEL),
        )
        rivals = [result.mean.brackets, result.mean.surface]
        totals = [[title, result.accuracy.pairs, None, None, None, *rivals, *map(bounded, means)]]
    phenomena = Table(
        name,
        f"{result.title}: the grammatical text is likelier, percent of pairs",
        [Column("phenomenon", NAME), *_ACCURACY],
        _accuracies(result.phenomena, measured["phenomena"], LEAST_PAIRS),
        f"By {result.run.scores}; pairs whose good text has more, as many and fewer sub-tokens count alike, so that 50 "
        "is chance. Ties count half, pairs too long to be read are missed. 95 % intervals over repositories. *: fewer "
        f"than {LEAST_PAIRS} pairs, not in the mean. Without a model: brackets, the text with fewer unmatched ones; "
        "surface, a logistic regression on n-grams and neighbouring lines, fitted on validation pairs. (surface): it "
        f"is right in more than {SURFACE} %, so that the phenomenon needs no syntax.",
        totals=totals,
    )
    rows = _accuracies(result.relations, measured["relations"])
    rows += _accuracies(result.distances, measured["distances"], by="distance ")
    rows += _accuracies(result.depths, measured["depths"], by="depth ")
    title = f"{result.title}: the same by relation, by distance, in tokens, and by depth, in levels of the tree"
    return [phenomena, Table(f"{name}-bins", title, [Column("pairs with", NAME), *_ACCURACY], rows)]


def _accuracies(
    accuracies: Mapping[str, Accuracy], hits: Hits, least: int = 0, by: str = ""
) -> list[list[object]]:
    rows: list[list[object]] = []
    scores = _cells(hits, MODEL)
    for name, accuracy in accuracies.items():
        marked = f"{name} (surface)" if accuracy.needs_no_syntax else name
        shown = by + starred(marked, accuracy.pairs >= least)
        rivals = [accuracy.brackets, accuracy.surface]
        rows.append(
            [
                shown,
                accuracy.pairs,
                accuracy.repositories,
                accuracy.missed,
                accuracy.ties,
                *rivals,
                *scores[name],
            ]
        )
    return rows


def _cells(hits: Hits, system: str, against: str | None = None) -> dict[str, list[list[float]]]:
    """Group -> the cells of a score or difference, by each measure."""
    estimate = hits.by_group(system, against)
    by_measure = [hits.each(estimate, measure) for measure in hits.measures]
    return {name: [bounded(of_groups[name]) for of_groups in by_measure] for name in hits.groups}


def _means(hits: Hits, system: str, against: str | None = None) -> list[Estimate]:
    """The means over groups, by each measure."""
    mean = hits.mean(system, against)
    return [mean.at(row) for row in range(len(hits.measures))]


# ----------------------------------------------------------------------------------------------------------- surprisal

_SURPRISAL = [
    Column("nodes", COUNT),
    Column("surprisal", ROUNDED, "model", spare=(3,)),
    Column("control", ROUNDED, "model", spare=(3,)),
    Column("gain", COST, "model", spare=(0, 8)),
    Column("gain", COST, "5-grams", spare=(0, 5)),
    Column("gain", COST, "model over 5-grams", spare=(7, 6)),
    Column("tokens", PERCENT, "frequency", spare=(1,)),
    Column("controls", PERCENT, "frequency", spare=(1,)),
    Column("tokens", PERCENT, "place, %", spare=(2,)),
    Column("controls", PERCENT, "place, %", spare=(2,)),
    Column("without", COUNT, "controls", spare=(4,)),
]

_TITLES = dict(
    zip(
        ROLES,
        (
            "the token with which a node begins",
            "the token with which a node ends",
            "all its tokens",
        ),
    )
)


def surprisal_parts(result: SurprisalResult) -> list[str | Table]:
    """The tables, each with what it shows in words, and what is said below them."""
    tables: list[str | Table] = []
    name, measured = result.settings.name, of_surprisal(result)
    for role in ROLES:
        hits = measured[role]
        rows = _surprisals(
            hits, result.node_types[role], LEAST_NODES, result.unmatched.get(role, {})
        )
        title = f"{result.title}: surprisal in bits, {_TITLES[role]}"
        notes = (
            "Gain: by how many bits tokens surprise less than their controls, which are tokens of the same function as "
            "frequent, at a similar place and of as many sub-tokens, with this role in no node of the type; with 95 % "
            "intervals over functions. It proves no syntax where 5-grams, trained on the other half of the functions, "
            "or an untrained twin (--control random-weights) have it, too. Frequency: how often the text of a token "
            f"stands in the functions (geometric mean). *: fewer than {LEAST_NODES} nodes, not in the mean."
        )
        columns, totals = [Column("node type", NAME), *_SURPRISAL], []
        if types := len(hits.counted):
            gains = _means(hits, CONTROL, NODE)
            totals = [[f"mean of {types} types", *[None] * 3, *map(bounded, gains), *[None] * 5]]
        tables.append(Table(f"{name}-{role}", title, columns, rows, notes, totals=totals))
    bins = [
        [f"{by.removesuffix('s')} {row[0]}", *row[1:-1]]
        for by in ("distances", "depths")
        for row in _surprisals(measured[by], getattr(result, by)[likelihood_results.CLOSING], 0, {})
    ]
    title = f"{result.title}: the token with which a node ends, by distance to the first, in tokens, and by depth"
    columns = [Column("nodes at", NAME), *_SURPRISAL[:-1]]
    tables.append(Table(f"{name}-bins", title, columns, bins))
    skipped = [f"skipped: {count:,} functions ({reason})" for reason, count in result.skips.items()]
    return [*tables, result.signature, *skipped]


def _surprisals(
    hits: Hits, groups: Mapping[str, Surprisal], least: int, unmatched: Mapping[str, int]
) -> list[list[object]]:
    """A row for each group, with intervals over functions; those of fewer than so many nodes have a
    star."""
    rows: list[list[object]] = []
    gains = _cells(hits, CONTROL, NODE)
    for name, values in groups.items():
        frequencies = [
            np.exp2(each[likelihood_results.FREQUENCY]) for each in (values.tokens, values.controls)
        ]
        places = [100 * each[likelihood_results.PLACE] for each in (values.tokens, values.controls)]
        surprisal = values.tokens[likelihood_results.BITS], values.controls[likelihood_results.BITS]
        without = unmatched.get(name, 0)
        shown = starred(name, values.nodes >= least)
        rows.append([shown, values.nodes, *surprisal, *gains[name], *frequencies, *places, without])
    return rows
