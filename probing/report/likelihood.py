"""What language models find likely, as tables and as the section of a report: texts of minimal pairs, and the tokens of
nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from probing.evidence.effect import Effect, Preferred, effects, preferred
from probing.prediction.preference_result import LEAST_PAIRS, Accuracy, PreferenceResult
from probing.prediction.surprisal_result import (
    BITS,
    CLOSING,
    FREQUENCY,
    LEAST_NODES,
    PLACE,
    ROLES,
    Surprisal,
    SurprisalLedger,
    SurprisalResult,
    groups_of,
)
from probing.report.document import COST, COUNT, NAME, PERCENT, ROUNDED, SCORE, Column, Section, Table
from probing.report.words import counted, interval, method

# ------------------------------------------------------------------------------------------------------- minimal pairs

TITLE = "Which text of a minimal pair a model finds likelier"

_ACCURACY = [
    Column("pairs", COUNT),
    Column("repositories", COUNT, spare=(1,)),
    Column("ties", COUNT, spare=(2,)),
    Column("brackets", PERCENT, "accuracy", spare=(3,)),
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
    """One section, with the models and controls side by side, then each by phenomenon, distance and depth; none without
    results."""
    found = [preferred(result) for result in results]
    rows = [
        [result.title, result.run.scores, result.mean.phenomena, result.accuracy.pairs, result.mean.brackets, *of.mean]
        for result, of in zip(results, found)
        if result.mean is not None and of.mean is not None
    ]
    together = Table(
        "preference-models",
        "Means over phenomena, with 95 % intervals over repositories",
        [Column("model", NAME), Column("score"), Column("phenomena", COUNT), _ACCURACY[0], *_ACCURACY[3:]],
        rows,
    )
    each = [
        Section(result.settings.name, result.title, _preference_tables(result, of, result.settings.name))
        for result, of in zip(results, found)
    ]
    return [Section("preference", TITLE, [*method("preference"), together], each)] if results else []


def preference_parts(result: PreferenceResult) -> list[str | Table]:
    """The accuracy on minimal pairs, and what is said below."""
    skipped = [f"skipped: {count:,} pairs ({reason})" for reason, count in result.skips.items()]
    return [*_preference_tables(result, preferred(result), "preference"), result.signature, *skipped]


def _preference_tables(result: PreferenceResult, found: Preferred, name: str) -> list[Table]:
    totals: list[list[object]] = []
    if result.mean is not None and found.mean is not None:
        title = f"mean of {result.mean.phenomena} phenomena"
        totals = [[title, result.accuracy.pairs, None, None, result.mean.brackets, *found.mean]]
    phenomena = Table(
        name,
        f"{result.title}: the grammatical text is likelier, percent of pairs",
        [Column("phenomenon", NAME), *_ACCURACY],
        _accuracies(result.phenomena, found.groups["phenomena"], LEAST_PAIRS),
        f"By {result.run.scores}. Near 50: by chance; ties count half. 95 % intervals over repositories. *: fewer than "
        f"{LEAST_PAIRS} pairs, not in the mean. Brackets: without a model, the text with fewer unmatched brackets.",
        totals=totals,
    )
    rows = _accuracies(result.relations, found.groups["relations"])
    rows += _accuracies(result.distances, found.groups["distances"], by="distance ")
    rows += _accuracies(result.depths, found.groups["depths"], by="depth ")
    title = f"{result.title}: the same by relation, by distance, in tokens, and by depth, in levels of the tree"
    return [phenomena, Table(f"{name}-bins", title, [Column("pairs with", NAME), *_ACCURACY], rows)]


def _accuracies(
    accuracies: Mapping[str, Accuracy], found: Mapping[str, Sequence[Effect]], least: int = 0, by: str = ""
) -> list[list[object]]:
    return [
        [by + name + " *" * (one.pairs < least), one.pairs, one.repositories, one.ties, one.brackets, *found[name]]
        for name, one in accuracies.items()
    ]


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

_TITLES = dict(zip(ROLES, ("the token with which a node begins", "the token with which a node ends", "all its tokens")))
_SUBJECTS = {**_TITLES, ROLES[-1]: "a token of a node"}


def surprisal_parts(result: SurprisalResult) -> list[str | Table]:
    """The tables, each with what it shows in words, and what is said below them."""
    tables: list[str | Table] = []
    name = result.settings.name
    for role in ROLES:
        ledger, unmatched = result.ledger.of(role), result.unmatched.get(role, {})
        rows = _surprisals(ledger, "node_types", result.node_types[role], unmatched)
        title = f"{result.title}: surprisal in bits, {_TITLES[role]}"
        notes = (
            "Gain: by how many bits tokens surprise less than their controls, which are tokens of the same function as "
            "frequent, at a similar place and of as many sub-tokens, with this role in no node of the type; with 95 % "
            "intervals over functions. It proves no syntax where 5-grams, trained on the other half of the functions, "
            "or an untrained twin (--control random-weights) have it, too. Frequency: how often the text of a token "
            f"stands in the functions (geometric mean). *: fewer than {LEAST_NODES} nodes, not in the mean."
        )
        kinds = ledger.rows["node_type"]
        enough = np.bincount(kinds, minlength=1) >= LEAST_NODES
        columns, totals, said = [Column("node type", NAME), *_SURPRISAL], [], []
        if enough.any():
            gains = _gains(ledger, kinds, enough[kinds])
            totals = [[f"mean of {enough.sum()} types", *[None] * 3, *gains, *[None] * 5]]
            said = [surprisal_sentence(result, role, int(enough.sum()), *gains)]
        tables += [Table(f"{name}-{role}", title, columns, rows, notes, totals=totals), *said]
    closing = result.ledger.of(CLOSING)
    bins = [
        [f"{by} {row[0]}", *row[1:-1]]
        for by, at in (("distance", "distances"), ("depth", "depths"))
        for row in _surprisals(closing, at, getattr(result, at)[CLOSING], {})
    ]
    title = f"{result.title}: the token with which a node ends, by distance to the first, in tokens, and by depth"
    columns = [Column("nodes at", NAME), *_SURPRISAL[:-1]]
    tables.append(Table(f"{name}-bins", title, columns, bins))
    skipped = [f"skipped: {count:,} functions ({reason})" for reason, count in result.skips.items()]
    return [*tables, result.signature, *skipped]


def _surprisals(
    ledger: SurprisalLedger, by: str, groups: Mapping[str, Surprisal], unmatched: Mapping[str, int]
) -> list[list[object]]:
    """A row for each group, with intervals over functions."""
    chosen = dict(groups_of(ledger)[by])
    rows: list[list[object]] = []
    for name, of in groups.items():
        frequencies = [np.exp2(each[FREQUENCY]) for each in (of.tokens, of.controls)]
        places = [100 * each[PLACE] for each in (of.tokens, of.controls)]
        surprisal = of.tokens[BITS], of.controls[BITS]
        few = " *" * (by == "node_types" and of.nodes < LEAST_NODES)
        gains = _gains(ledger, np.zeros(len(ledger)), chosen[name])
        rows.append([name + few, of.nodes, *surprisal, *gains, *frequencies, *places, unmatched.get(name, 0)])
    return rows


def _gains(ledger: SurprisalLedger, group: np.ndarray, chosen: np.ndarray) -> list[Effect]:
    """The gains of the model and of 5-grams, and by how much the first is larger: means over the `chosen` rows of a
    group (N,) and over groups."""
    _, functions = np.unique(ledger.rows["function"][chosen], return_inverse=True)
    _, groups = np.unique(group[chosen], return_inverse=True)
    cells = np.zeros((functions.max() + 1, groups.max() + 1, 4))
    gained = ledger.gained()[chosen]
    np.add.at(cells, (functions, groups), np.column_stack([np.ones(len(groups)), gained, -np.diff(gained)]))
    return effects(cells[..., 0], cells[..., 1:])


def surprisal_sentence(
    result: SurprisalResult, role: str, types: int, gain: Effect, of_grams: Effect, over: Effect
) -> str:
    """What a table shows: a gain over controls counts where it is larger than that of 5-grams."""

    def told(effect: Effect) -> str:
        return f"{COST.show(effect.estimate)} bits ({interval(effect.low, effect.high, COST)})"

    subject = f"Over {counted(types, 'node type')}, {_SUBJECTS[role]}"
    if gain.low != gain.low:
        return f"{subject} gains {COST.show(gain.estimate)} bits over its control, in too few functions to say more."
    if not gain.low > 0:
        return f"{subject} is foreseen no better than its control: a gain of {told(gain)}."
    better = f"{subject} is foreseen better than its control, with a gain of {told(gain)}"
    if not over.low > 0:
        return f"{better}, but no more so than by 5-grams, which gain {told(of_grams)}."
    twin = "Compare an untrained twin (--control random-weights) before you call this knowledge of syntax."
    return f"{better}, and more so than by 5-grams, by {told(over)}." + f" {twin}" * (not result.settings.control)
