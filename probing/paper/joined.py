"""Our numbers joined with those that a paper prints, and any table of them.

The columns of the frame are named as those of `probing.scores`; `paper` is the printed number,
`comparable` says whether the two compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import pandas

from probing.report.document import Column, Table
from probing.report.kinds import (
    CHOSEN,
    COUNT,
    COUNT_DIFFERENCE,
    EFFECT,
    NAME,
    PERCENT,
    POINTS,
    ROUNDED,
    SIGNED,
    Kind,
)

Frame = Any
"""A pandas.DataFrame, whose stubs do not know the types of its columns."""

COMPARABLE = "yes"

KEY = ["config", "measure", "rule", "k", "group", "system", "against"]
"""The columns by which our numbers are joined with the paper's."""

KINDS_OF = {
    "edges": (COUNT, COUNT_DIFFERENCE),
    "errors": (COUNT, COUNT_DIFFERENCE),
    "functions": (COUNT, COUNT_DIFFERENCE),
    "T1 mean": (ROUNDED, SIGNED),
    "T1 deviation": (ROUNDED, SIGNED),
    "T0 mean": (ROUNDED, SIGNED),
    "T0 deviation": (ROUNDED, SIGNED),
    "T1 − T0, paired": (EFFECT, SIGNED),
    **dict.fromkeys(("uas", "offset", "percent", "attended"), (PERCENT, POINTS)),
}
"""Measure -> the kinds of its numbers and of their differences; (SIGNED, SIGNED) for others."""


class ScoreRow(NamedTuple):
    """A number of ours, or of a paper. `digits`: those behind the point that the paper prints;
    `chosen`: the head or the offset; `items`: how many things are scored."""

    config: str
    group: str
    system: str
    value: Any
    measure: str = "uas"
    rule: str = "first"
    k: int = 1
    against: str = ""
    chosen: str = ""
    items: int | None = None
    digits: int = 1


def join(
    ours: Iterable[ScoreRow],
    papers: Iterable[ScoreRow],
    standing: Callable[[str, str], str],
) -> Frame:
    """A row for each number of ours, of the paper, or of both: the paper's first, in its order.

    Its columns are those of ScoreRow; `paper`, `difference`, `comparable`; and `shown`, the system
    or a difference. `standing`: config and system -> COMPARABLE, or why their numbers do not
    compare. Unknown cells are None.
    """
    frames = (
        pandas.DataFrame(list(rows), columns=ScoreRow._fields, dtype=object)
        for rows in (ours, papers)
    )
    here, there = (frame.set_index(KEY) for frame in frames)
    there = there.rename(columns={"value": "paper", "chosen": "chosen_paper"})
    index = there.index.append(here.index.difference(there.index, sort=False))
    frame = (
        there.drop(columns="items")
        .reindex(index)
        .join(here.drop(columns="digits").reindex(index))
        .reset_index()
    )
    frame = frame.where(frame.notna(), None)
    differences = list(map(difference, frame["value"], frame["paper"], frame["digits"]))
    frame["difference"] = pandas.Series(differences, dtype=object)
    against = frame["against"]
    difference_to = frame["system"] + " − " + against
    frame["shown"] = frame["system"].where(against == "", difference_to)
    frame["comparable"] = [*map(standing, frame["config"], frame["system"])]
    return frame


def difference(here: float | None, paper: float | None, digits: int = 1) -> float | None:
    """Of the numbers rounded as in the paper, so that equal ones differ by 0.

    >>> difference(39.249, 39.2), difference(39.26, 39.2)
    (0.0, 0.1)
    """
    if here is None or paper is None:
        return None
    return round(round(here, digits) - paper, digits)


PARTS = ("here", "paper", "difference")


def pivot(
    name: str,
    title: str,
    rows: Frame,
    keys: Sequence[str],
    across: str,
    notes: str = "",
    filters: int = 0,
) -> Table:
    """A row for each value of `keys`, and for each value of `across` our number, the paper's and
    their difference."""
    kinds: dict[tuple[str, str], Kind] = {}
    cells: dict[tuple[Any, ...], dict[tuple[str, str], Any]] = {}
    for row in rows.itertuples():
        of_row = cells.setdefault(tuple(getattr(row, key) for key in keys), {})
        heading = _column_heading(across, getattr(row, across))
        number, of_difference = KINDS_OF.get(row.measure, (SIGNED, SIGNED))
        number = of_difference if row.against else number
        for part, value, chosen, kind in (
            ("here", row.value, row.chosen, number),
            ("paper", row.paper, row.chosen_paper, number),
            ("difference", row.difference, None, of_difference),
        ):
            if value is not None:
                of_row[heading, part] = [value, chosen] if chosen else value
                kinds[heading, part] = CHOSEN if chosen else kinds.get((heading, part), kind)
    headings = [_column_heading(across, value) for value in rows[across].unique()]
    shown = [column for column in product(headings, PARTS) if column in kinds]
    columns = [Column(key, NAME) for key in keys]
    columns += [Column(part, kinds[heading, part], heading) for heading, part in shown]
    lines = []
    for key, of_row in cells.items():
        lines.append([*key, *map(of_row.get, shown)])
    return Table(name, title, columns, lines, notes, filters=filters)


def _column_heading(across: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{across} = {value}"
