"""Minimal pairs: the tables of results, and the section of a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probing.evidence.effect import Effect
from probing.evidence.uncertainty import bounded
from probing.evidence.usable import Preferred, preferred
from probing.prediction.preference_result import LEAST_PAIRS, Accuracy, PreferenceResult
from probing.report.document import COUNT, NAME, PERCENT, SCORE, Column, Section, Table
from probing.report.words import method

TITLE = "Which text of a minimal pair a model finds likelier"

_COLUMNS = [
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


def section(results: Sequence[PreferenceResult]) -> Section:
    """The models and controls side by side, then each by phenomenon, distance and depth."""
    found = [preferred(result) for result in results]
    rows = [
        [result.title, result.run.scores, result.mean.phenomena, result.accuracy.pairs, result.mean.brackets]
        + [*map(bounded, of.mean)]
        for result, of in zip(results, found)
        if result.mean is not None and of.mean is not None
    ]
    together = Table(
        "preference-models",
        "Means over phenomena, with 95 % intervals over repositories",
        [Column("model", NAME), Column("score"), Column("phenomena", COUNT), _COLUMNS[0], *_COLUMNS[3:]],
        rows,
    )
    each = [
        Section(result.settings.name, result.title, [*_tables(result, of, result.settings.name)])
        for result, of in zip(results, found)
    ]
    return Section("preference", TITLE, [*method("preference"), together], each)


def parts_of(result: PreferenceResult) -> list[str | Table]:
    """The tables, and what is said below them."""
    skipped = [f"skipped: {count:,} pairs ({reason})" for reason, count in result.skips.items()]
    return [*_tables(result, preferred(result), "preference"), result.signature, *skipped]


def _tables(result: PreferenceResult, found: Preferred, name: str) -> list[Table]:
    totals: list[list[object]] = []
    if result.mean is not None and found.mean is not None:
        numbers = result.accuracy.pairs, None, None, result.mean.brackets
        totals = [[f"mean of {result.mean.phenomena} phenomena", *numbers, *map(bounded, found.mean)]]
    phenomena = Table(
        name,
        f"{result.title}: the grammatical text is likelier, percent of pairs",
        [Column("phenomenon", NAME), *_COLUMNS],
        _rows(result.phenomena, found.groups["phenomena"], LEAST_PAIRS),
        f"By {result.run.scores}. Near 50: by chance; ties count half. 95 % intervals over repositories. *: fewer than "
        f"{LEAST_PAIRS} pairs, not in the mean. Brackets: without a model, the text with fewer unmatched brackets.",
        totals=totals,
    )
    bins = {name: ("relations", name) for name in result.relations}
    bins |= {f"distance {name}": ("distances", name) for name in result.distances}
    bins |= {f"depth {name}": ("depths", name) for name in result.depths}
    by_bin = {title: getattr(result, by)[of] for title, (by, of) in bins.items()}
    rows = _rows(by_bin, {title: found.groups[by][of] for title, (by, of) in bins.items()})
    title = f"{result.title}: the same by relation, by distance, in tokens, and by depth, in levels of the tree"
    return [phenomena, Table(f"{name}-bins", title, [Column("pairs with", NAME), *_COLUMNS], rows)]


def _rows(accuracies: dict[str, Accuracy], found: dict[str, list[Effect]], least: int = 0) -> list[list[object]]:
    return [
        [name + " *" * (one.pairs < least), one.pairs, one.repositories, one.ties, one.brackets]
        + [*map(bounded, found[name])]
        for name, one in accuracies.items()
    ]
