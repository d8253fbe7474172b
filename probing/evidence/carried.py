"""What silenced heads carry, as evidence: rows of the table of all scores, and published
numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probing.evidence.published import SCORED, Numbers
from probing.evidence.scores import REPOSITORY, Row, Slice, rows_by_result, shared_cells
from probing.instruments.silencing import losses
from probing.instruments.silencing.carried import CarryingResult
from probing.instruments.silencing.hits import WHOLE


def _carried_rows(result: CarryingResult) -> Iterator[Row]:
    for share in losses.shares(result):
        hits = losses.hits(result, share)
        about = shared_cells(result, rule=f"{share} %", measure="margin", cluster=REPOSITORY)
        shown = Slice(hits, about)
        yield from shown.scored(*hits.systems)
        counted = shown.only(groups=hits.counted)
        pairs = losses.tested_pairs(result, share)
        for (matched, best), difference in zip(pairs, counted.hits.tested(*pairs)):
            yield from counted.rows(difference, matched, best)
            yield from counted.scored_means(matched, best)


carrying_rows = rows_by_result(CarryingResult, _carried_rows)


def of_carrying(results: Mapping[str, Any], _claimed: object) -> Iterator[Numbers]:
    """The margin, and what best heads lose of it beyond matched ones, of each share and seeker."""
    result = results[SCORED]
    for share in losses.shares(result):
        hits = losses.hits(result, share)
        yield Numbers("margin", hits, WHOLE)
        for matched, best in losses.tested_pairs(result, share):
            yield Numbers(f"lost beyond matched, {share} %, {best}", hits, matched, best)
