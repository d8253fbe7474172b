"""What is measured in bits or by likelihood, as tables: gains of attention over words and
positions, the likelier texts of minimal pairs, and the surprisal of the tokens of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from codesyntax_dataset.languages import language_of
from probing.instruments.information.hits import FINDERS
from probing.instruments.information.hits import hits as information_hits
from probing.instruments.information.result import (
    BOTH,
    WORDS,
    InformationResult,
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
from probing.report.document import Part, RowRecord
from probing.report.words import skipped, starred
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate


def bits_added(bits: Hits) -> dict[str, Estimate]:
    """Relation -> the bits that attention adds to words and positions."""
    return bits.each(bits.by_group(WORDS, BOTH))


def parts_of(result: InformationResult) -> list[Part]:
    """The relations, those to which attention adds most first, their mean, and what is said
    below."""
    hits = information_hits(result)
    adds = bits_added(hits["bits"])
    rows = []
    totals = []
    means = []
    for name, scores in sorted(result.relations.items(), key=lambda item: (-item[1].adds, item[0])):
        rows.append(
            {
                "relation": starred(name, scores.in_mean),
                "adds": adds[name],
                "edges": scores.edges,
                "scores": scores,
            }
        )
    if mean := result.mean:
        row = {"adds": hits["bits"].mean(WORDS, BOTH).at(0), "scores": mean}
        totals.append({"relation": f"mean of {mean.relations} relations", "edges": "", **row})
        by_finder = {finder: hits["uas"].mean(finder).at(0) for finder in FINDERS}
        means.append(
            specs.table("information-models", [{"model": result.title, **row, **by_finder}])
        )
    units = language_of(result.settings.config).units
    return [
        specs.table("information", rows, totals=totals, result=result, units=units),
        *means,
        result.signature,
        *skipped(edges=result.left_out, functions=result.skips),
    ]


def _keyed_by_group(
    hits: Hits, system: str, against: str | None, keys: Sequence[str]
) -> dict[str, RowRecord]:
    """Group -> the score or difference by each measure, under its key."""
    estimate = hits.by_group(system, against)
    by_key = {key: hits.each(estimate, measure) for key, measure in zip(keys, hits.measures)}
    return {name: {key: by_key[key][name] for key in by_key} for name in hits.groups}


def _means_by_key(hits: Hits, system: str, against: str | None, keys: Sequence[str]) -> RowRecord:
    """The means over groups by each measure, under its key."""
    mean = hits.mean(system, against)
    return {key: mean.at(number) for number, key in enumerate(keys)}


# ------------------------------------------------------------------------------------ minimal pairs

_WAYS = MODEL, None, ("whole", "place")
"""Who is right about pairs, and the keys of its scores."""


def preference_parts(result: PreferenceResult) -> list[Part]:
    """The accuracy on minimal pairs, and what is said below."""
    hits = of_pairs(result)
    scores = _keyed_by_group(hits, *_WAYS)
    rows = []
    for phenomenon, accuracy in result.phenomena.items():
        shown = f"{phenomenon} (surface)" if accuracy.needs_no_syntax else phenomenon
        shown = starred(shown, accuracy.pairs >= LEAST_PAIRS)
        rows.append({"name": shown, "accuracy": accuracy, **scores[phenomenon]})
    means = []
    said = []
    if mean := result.mean:
        row = {
            "name": f"mean of {mean.phenomena} phenomena",
            "accuracy": {"surface": mean.surface},
        }
        ways = _means_by_key(hits, *_WAYS)
        means.append({**row, **ways})
        whole = ways["whole"].value
        rival = ""
        if mean.surface is not None:
            rival = f" The surface regression, without a model, is right in {mean.surface:.1f} %."
        said = [specs.text("preferred", name=result.model, whole=whole, rival=rival)]
    means.append({"name": "all pairs", "accuracy": result.accuracy})
    table = specs.table("preference", rows, totals=means, result=result)
    return [*said, table, result.signature, *skipped(pairs=result.skips)]


# ---------------------------------------------------------------------------------------- surprisal

_GAINS = CONTROL, NODE, ("bits", "grams", "over")
"""By what controls surprise more than nodes, and the keys of these gains."""

_ROLE_TITLES = (
    "the token with which a node begins",
    "the token with which a node ends",
    "all its tokens",
)


def surprisal_parts(result: SurprisalResult) -> list[Part]:
    """The tables, each with what it shows in words, and what is said below them."""
    parts = []
    measured = of_surprisal(result)
    for role, title in zip(ROLES, _ROLE_TITLES):
        hits = measured[role]
        unmatched = result.unmatched.get(role, {})
        rows = _surprisals(hits, result.node_types[role], unmatched)
        totals = []
        if types := len(hits.counted):
            totals = [{"name": f"mean of {types} types", **_means_by_key(hits, *_GAINS)}]
        parts.append(
            specs.table(
                "surprisal", rows, f"surprisal-{role}", totals=totals, result=result, role=title
            )
        )
    return [*parts, result.signature, *skipped(functions=result.skips)]


def _surprisals(
    hits: Hits, groups: Mapping[str, Surprisal], unmatched: Mapping[str, int]
) -> list[RowRecord]:
    """A row for each node type, with intervals over functions; those of fewer than LEAST_NODES
    nodes have a star."""
    rows = []
    gains = _keyed_by_group(hits, *_GAINS)
    for name, values in groups.items():
        rows.append(
            {
                "name": starred(name, values.nodes >= LEAST_NODES),
                "nodes": values.nodes,
                "tokens": _token_means(values.tokens),
                "controls": _token_means(values.controls),
                "without": unmatched.get(name, 0),
                **gains[name],
            }
        )
    return rows


def _token_means(measured: Mapping[str, float]) -> dict[str, float]:
    """The means of some tokens: how often their text stands in the functions, and their place in
    percent."""
    return {
        "bits": measured["bits"],
        "frequency": np.exp2(measured["frequency"]),
        "place": 100 * measured["place"],
    }
