"""What is measured in bits or by likelihood, as tables and as sections of a report: gains of
attention over words and positions, the likelier texts of minimal pairs, and the surprisal of the
tokens of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.languages import language_of
from probing.instruments.information.hits import FINDERS
from probing.instruments.information.hits import hits as information_hits
from probing.instruments.information.result import (
    BOTH,
    WORDS,
    InformationResult,
    InformationSettings,
)
from probing.instruments.likelihood.hits import CONTROL, MODEL, NODE, of_pairs, of_surprisal
from probing.instruments.likelihood.result import (
    LEAST_NODES,
    LEAST_PAIRS,
    ROLES,
    PreferenceResult,
    Surprisal,
    SurprisalResult,
)
from probing.report import specs
from probing.report.document import Part, Section, Table
from probing.report.words import file_names, method, skipped, starred
from probing.runs.settings import Settings
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate

INFORMATION_TITLE = "What attention adds to words and positions"


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

    @property
    def found(self) -> dict[str, Estimate]:
        """The mean top-1 UAS of each of FINDERS."""
        return {finder: self.finds(finder) for finder in FINDERS}

    def finds(self, finder: str) -> Estimate:
        """The mean top-1 UAS of one of FINDERS."""
        return self.hits["uas"].mean(finder).at(0)


def _read_results(kind: Any, files: Sequence[Path], headline: Callable[[Any], float]) -> list[Any]:
    """The results in files, by config and headline number, highest first; of one run given twice,
    one."""
    results = {result.signature: result for result in map(kind.load, files)}

    def order(result: Any) -> tuple[str, str, float]:
        return result.settings.config, result.settings.data, -headline(result)

    return sorted(results.values(), key=order)


def read_informed(files: Sequence[Path]) -> list[InformedModel]:
    """The information results in files, by config and what attention adds; of one run given twice,
    one.

    Raises LedgerError for files that are not such results, or do not follow from their ledgers.
    """
    results = _read_results(
        InformationResult, files, lambda result: result.mean.adds if result.mean else 0
    )
    settings = [result.settings for result in results]
    names = file_names([f"information-{run.config}-{run.model}" for run in settings])
    return [InformedModel(name, result) for name, result in zip(names, results)]


def same_run(settings: Settings | InformationSettings) -> tuple[object, ...]:
    """The settings that a probe and an information probe of one model on the same functions
    share."""
    of_model = settings.model, settings.revision, settings.weights, settings.begin, settings.pool
    return *of_model, settings.data, settings.config, settings.split, str(settings.limit)


def bits(informed: Sequence[InformedModel]) -> dict[tuple[object, ...], Estimate]:
    """The run of each model, without controls -> what its attention adds."""
    adds = {}
    for model in informed:
        settings = model.result.settings
        if not (settings.control or model.result.mean is None):
            adds[same_run(settings)] = model.adds_mean
    return adds


def sections(informed: Sequence[InformedModel]) -> list[Section]:
    """One section, with the models and controls side by side, then each relation by relation; none
    without models."""
    if not informed:
        return []
    each = [Section(model.name, model.result.title, [table(model)]) for model in informed]
    parts: list[Part] = [*method("information"), together(informed)]
    return [Section("information", INFORMATION_TITLE, parts, each)]


def together(informed: Sequence[InformedModel]) -> Table:
    """The models and controls side by side."""
    rows = [
        {
            "model": model.result.title,
            "mean": model.result.mean,
            "informed": model,
            **model.found,
        }
        for model in informed
        if model.result.mean is not None
    ]
    return specs.table("information-models", rows)


def table(model: InformedModel) -> Table:
    """The relations, those to which attention adds most first, and their mean."""
    result, mean = model.result, model.result.mean
    rows = []
    for name, scores in sorted(result.relations.items(), key=lambda item: (-item[1].adds, item[0])):
        rows.append(
            {
                "relation": starred(name, scores.in_mean),
                "adds": model.adds[name],
                "edges": scores.edges,
                "scores": scores,
            }
        )
    totals = []
    if mean is not None:
        totals = [
            {
                "relation": f"mean of {mean.relations} relations",
                "adds": model.adds_mean,
                "edges": "",
                "scores": mean,
            }
        ]
    return specs.table(
        "information",
        rows,
        model.name,
        totals=totals,
        result=result,
        units=language_of(result.settings.config).units,
    )


def parts_of(result: InformationResult) -> list[str | Table]:
    """The table, and what is said below it."""
    below = skipped(edges=result.left_out, functions=result.skips)
    model = InformedModel("information", result)
    return [table(model), result.signature, *result.run.layers_note, *below]


def _by_group(hits: Hits, system: str, against: str | None, keys: Sequence[str]) -> dict[str, Any]:
    """Group -> the score or difference by each measure, under its key."""
    estimate = hits.by_group(system, against)
    rows: dict[str, dict[str, Estimate]] = {name: {} for name in hits.groups}
    for key, measure in zip(keys, hits.measures):
        for name, of_group in hits.each(estimate, measure).items():
            rows[name][key] = of_group
    return rows


def _means_by_key(
    hits: Hits, system: str, against: str | None, keys: Sequence[str]
) -> dict[str, Any]:
    """The means over groups by each measure, under its key."""
    mean = hits.mean(system, against)
    return {key: mean.at(number) for number, key in enumerate(keys)}


# ------------------------------------------------------------------------------------------------------- minimal pairs

PREFERENCE_TITLE = "Which text of a minimal pair a model finds likelier"

_WAYS = MODEL, None, ("whole", "place")
"""Who is right about pairs, and the keys of its scores."""


def read_preferred(files: Sequence[Path]) -> list[PreferenceResult]:
    """The results on minimal pairs in files, by config and accuracy; of one run given twice, one.

    Raises LedgerError for files that are not such results, or do not follow from their ledgers.
    """
    return _read_results(PreferenceResult, files, lambda result: result.accuracy.whole)


def preference_sections(results: Sequence[PreferenceResult]) -> list[Section]:
    """One section, with the models and controls side by side, then each by phenomenon; none without
    results."""
    if not results:
        return []
    means, each = [], []
    for result in results:
        hits, name = of_pairs(result), result.settings.name
        means += [{"result": result, **row} for row in _mean_of_pairs(result, hits)]
        each.append(Section(name, result.title, [_preference_table(result, hits, name)]))
    parts: list[Part] = [*method("preference"), specs.table("preference-models", means)]
    return [Section("preference", PREFERENCE_TITLE, parts, each)]


def preference_parts(result: PreferenceResult) -> list[str | Table]:
    """The accuracy on minimal pairs, and what is said below."""
    table = _preference_table(result, of_pairs(result), "preference")
    return [table, result.signature, *skipped(pairs=result.skips)]


def _mean_of_pairs(result: PreferenceResult, hits: Hits) -> list[dict[str, Any]]:
    """The row of the mean over phenomena, if there is one."""
    if result.mean is None:
        return []
    rivals = {"brackets": result.mean.brackets, "surface": result.mean.surface}
    return [
        {
            "name": f"mean of {result.mean.phenomena} phenomena",
            "accuracy": {"pairs": result.accuracy.pairs, **rivals},
            **_means_by_key(hits, *_WAYS),
        }
    ]


def _preference_table(result: PreferenceResult, hits: Hits, name: str) -> Table:
    rows, scores = [], _by_group(hits, *_WAYS)
    for phenomenon, accuracy in result.phenomena.items():
        shown = f"{phenomenon} (surface)" if accuracy.needs_no_syntax else phenomenon
        shown = starred(shown, accuracy.pairs >= LEAST_PAIRS)
        rows.append({"name": shown, "accuracy": accuracy, **scores[phenomenon]})
    mean = _mean_of_pairs(result, hits)
    return specs.table("preference", rows, name, totals=mean, result=result)


# ----------------------------------------------------------------------------------------------------------- surprisal

_GAINS = CONTROL, NODE, ("bits", "grams", "over")
"""By what controls surprise more than nodes, and the keys of these gains."""

_ROLE_TITLES = (
    "the token with which a node begins",
    "the token with which a node ends",
    "all its tokens",
)


def surprisal_parts(result: SurprisalResult) -> list[str | Table]:
    """The tables, each with what it shows in words, and what is said below them."""
    parts: list[str | Table] = []
    name, measured = result.settings.name, of_surprisal(result)
    for role, title in zip(ROLES, _ROLE_TITLES):
        hits, unmatched = measured[role], result.unmatched.get(role, {})
        rows = _surprisals(hits, result.node_types[role])
        for row, group in zip(rows, result.node_types[role]):
            row["without"] = unmatched.get(group, 0)
        totals = []
        if types := len(hits.counted):
            totals = [{"name": f"mean of {types} types", **_means_by_key(hits, *_GAINS)}]
        parts.append(
            specs.table(
                "surprisal", rows, f"{name}-{role}", totals=totals, result=result, role=title
            )
        )
    return [*parts, result.signature, *skipped(functions=result.skips)]


def _surprisals(hits: Hits, groups: Mapping[str, Surprisal]) -> list[dict[str, Any]]:
    """A row for each node type, with intervals over functions; those of fewer than LEAST_NODES
    nodes have a star."""
    rows, gains = [], _by_group(hits, *_GAINS)
    for name, values in groups.items():
        rows.append(
            {
                "name": starred(name, values.nodes >= LEAST_NODES),
                "nodes": values.nodes,
                "tokens": _token_means(values.tokens),
                "controls": _token_means(values.controls),
                **gains[name],
            }
        )
    return rows


def _token_means(measured: Mapping[str, float]) -> dict[str, float]:
    """The means of some tokens: how often their text stands in the functions, and their place in
    percent."""
    frequency, place = np.exp2(measured["frequency"]), 100 * measured["place"]
    return {"bits": measured["bits"], "frequency": frequency, "place": place}
