"""The numbers that results publish, by which they are verified: means over groups, and differences
of means, of the hits that reports are made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.protocol import BEYOND_OFFSET, PUBLISHED
from probing.evidence.beyond import hits_by_protocol
from probing.evidence.protocols import ChosenHits, apply, published
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.information import hits as information
from probing.instruments.information.result import BOTH, WORDS
from probing.instruments.likelihood import hits as likelihood
from probing.instruments.masking import hits as masking
from probing.instruments.registry import INSTRUMENTS
from probing.instruments.silencing import hits as silencing
from probing.stats.hits import PERCENT_UNIT, Hits

SCORED, CHOSEN_ON = "test", "validation"
"""Of the results of a run: that on the split that is scored, whatever its name, and that of the
split on which heads are chosen."""


class Numbers(NamedTuple):
    """Means of a system by the measures of `hits`, or what they are more than those of another
    system, `against`."""

    name: str
    hits: Hits
    system: str
    against: str | None = None

    @property
    def points(self) -> dict[Any, float]:
        """Measure -> the mean in percent, or in hundredths of a share, nat or bit. If no group is in
        the mean, all are."""
        hits = self.hits
        if not hits.counted:
            hits = replace(hits, left_out=frozenset())
        values = hits.mean(self.system, self.against).value
        scale = 1 if hits.unit == PERCENT_UNIT else 100
        return dict(zip(hits.measures, (scale * values).tolist()))


def numbers_of(
    results: Mapping[str, Any], claimed: Mapping[str, Any] | None = None
) -> dict[tuple[str, Any], float]:
    """Name and measure -> points, the more the better, of the results SCORED and, if there is one,
    CHOSEN_ON. With the results that are `claimed`, of two the lower: by the heads that are chosen
    in `results`, and by those that are chosen in `claimed`."""
    instrument = INSTRUMENTS[results[SCORED].instrument]
    points: dict[tuple[str, Any], float] = {}
    for numbers in instrument.numbers(results, claimed):
        for measure, value in numbers.points.items():
            if not np.isnan(value):
                name = numbers.name, measure
                points[name] = min(value, points.get(name, value))
    return points


def of_attention(
    results: Mapping[str, Any], claimed: Mapping[str, Any] | None
) -> Iterator[Numbers]:
    """By each protocol; without a split to choose heads on, by *published* alone."""
    test = results[SCORED].ledger
    for protocol, chosen in _by_protocol(results).items():
        yield Numbers(protocol, chosen.hits, chosen.system)
    for protocol, chosen in _by_protocol(claimed or {}).items():
        edges = test
        if protocol == BEYOND_OFFSET:
            edges = test.take(is_hard(test, best_offsets(results[CHOSEN_ON].ledger)))
        again = apply(edges, chosen.choice, protocol=protocol).only(chosen.relations)
        yield Numbers(protocol, again.hits, again.system)


def _by_protocol(results: Mapping[str, Any]) -> Mapping[str, ChosenHits]:
    if not results:
        return {}
    test = results[SCORED].ledger
    if CHOSEN_ON not in results:
        return {PUBLISHED: published(test)}
    return hits_by_protocol(results[CHOSEN_ON].ledger, test)


def of_masking(results: Mapping[str, Any], _claimed: object) -> Iterator[Numbers]:
    for hits in masking.hits(results[SCORED]).values():
        yield Numbers("T1", hits, masking.T1)
        yield Numbers("T1 - T0", hits, masking.T1, masking.T0)


def of_silencing(results: Mapping[str, Any], _claimed: object) -> Iterator[Numbers]:
    hits = silencing.hits(results[SCORED])
    yield Numbers("cost", hits, silencing.WHOLE, silencing.BEST)
    yield Numbers("cost beyond matched heads", hits, silencing.MATCHED, silencing.BEST)


def of_information(results: Mapping[str, Any], _claimed: object) -> Iterator[Numbers]:
    hits = information.hits(results[SCORED])
    for finder in information.FINDERS:
        yield Numbers(finder, hits["uas"], finder)
    yield Numbers("left open by words and positions", hits["bits"], WORDS)
    yield Numbers("added by attention", hits["bits"], WORDS, BOTH)


def of_preference(results: Mapping[str, Any], _claimed: object) -> Iterator[Numbers]:
    yield Numbers("preferred", likelihood.of_pairs(results[SCORED]), likelihood.MODEL)


def of_surprisal(results: Mapping[str, Any], _claimed: object) -> Iterator[Numbers]:
    for role, hits in likelihood.of_surprisal(results[SCORED]).items():
        if hits.names:
            yield Numbers(f"foreseen, {role}", hits, likelihood.CONTROL, likelihood.NODE)
