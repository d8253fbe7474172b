"""Our numbers joined with those that a paper prints, and any table of them.

The columns of the frame are named as those of `probing.scores`; `paper` is the printed number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas

from probing.report.document import Column, Part, Table
from probing.report.kinds import (
    COUNT,
    COUNT_DIFFERENCE,
    EFFECT,
    NAME,
    PERCENT,
    POINTS,
    ROUNDED,
    SHORT,
    SIGNED,
)

Frame = Any
"""A pandas.DataFrame, whose stubs do not know the types of its columns."""

KEY = ["config", "measure", "rule", "k", "group", "system"]
"""The columns by which our numbers are joined with the paper's."""

KINDS_OF = {
    **dict.fromkeys(("edges", "errors", "functions"), (COUNT, COUNT_DIFFERENCE)),
    **dict.fromkeys(
        ("T1 mean", "T1 deviation", "T0 mean", "T0 deviation"),
        (ROUNDED, SIGNED),
    ),
    "T1 − T0, paired": (EFFECT, SIGNED),
    **dict.fromkeys(("uas", "offset", "attended"), (PERCENT, POINTS)),
}
"""Measure -> the kinds of its numbers and of their differences; (SIGNED, SIGNED) for others."""


class ScoreRow(NamedTuple):
    """A number of ours, or of a paper. `digits`: those behind the point that the paper prints;
    `chosen`: the head or the offset."""

    config: str
    group: str
    system: str
    value: Any
    measure: str = "uas"
    rule: str = "first"
    k: int = 1
    chosen: str | None = None
    digits: int = 1


def beside_paper(ours: Iterable[ScoreRow], papers: Iterable[ScoreRow]) -> Frame:
    """A row for each number of ours, of the paper, or of both: config by config, the
    paper's first, in its order.

    Its columns are those of ScoreRow, `paper`, `chosen_paper` and `difference`.
    """
    here, there = (
        pandas.DataFrame(list(rows), columns=ScoreRow._fields, dtype=object).reset_index()
        for rows in (ours, papers)
    )
    there = there.rename(columns={"value": "paper"})
    here = here.drop(columns="digits")
    frame = there.merge(here, on=KEY, how="outer", suffixes=("_paper", ""))
    frame = frame.sort_values(["config", "index_paper", "index"], ignore_index=True)
    frame = frame.drop(columns=["index_paper", "index"]).astype(object)
    frame = frame.where(frame.notna(), None)
    differences = map(difference, frame["value"], frame["paper"], frame["digits"])
    frame["difference"] = pandas.Series(list(differences), dtype=object)
    return frame


def difference(here: float | None, paper: float | None, digits: int = 1) -> float | None:
    """Of the numbers rounded as in the paper, so that equal ones differ by 0.

    >>> difference(39.249, 39.2), difference(39.26, 39.2)
    (0.0, 0.1)
    """
    if here is None or paper is None:
        return None
    return round(round(here, digits) - paper, digits)


PARTS = {
    "here": "value",
    "chosen": "chosen",
    "paper": "paper",
    "chosen in the paper": "chosen_paper",
    "difference": "difference",
}
"""The columns of a table below a heading, and those of the frame."""


def pivot(
    name: str,
    title: str,
    rows: Frame,
    keys: Sequence[str],
    across: str,
    notes: str = "",
    filters: int = 0,
) -> Part:
    """A row for each value of `keys`, and for each value of `across` our number, the paper's and
    their difference. Systems of the paper that were not run have no rows: the file of all numbers
    has them."""
    if "system" in keys:
        rows = rows[rows["value"].notna().groupby(rows["system"]).transform("any")]
    if rows.empty:
        return NOTHING_RUN
    rows = rows.set_index([*keys])
    columns, cells = [Column(key, NAME) for key in keys], rows.index.unique().to_frame()
    compared = ""
    for heading, of_heading in rows.groupby(across, sort=False):
        group = heading if isinstance(heading, str) else f"{across} = {heading}"
        number, of_difference = KINDS_OF.get(of_heading["measure"].iloc[0], (SIGNED, SIGNED))
        kinds = number, SHORT, number, SHORT, of_difference
        for (part, column), kind in zip(PARTS.items(), kinds):
            if of_heading[column].notna().any():
                columns.append(Column(part, kind, group))
                cells[group, part] = of_heading[column]
            if column == "difference" and (group, part) in cells:
                compared = _COMPARED
    lines = cells.where(cells.notna(), None).to_numpy().tolist()
    return Table(name, title, columns, lines, f"{notes} {compared}".strip(), filters=filters)


_COMPARED = "Difference: here less the paper's, both rounded as in print."

NOTHING_RUN = "Empty: the table of inputs says why."

NUMBERS = "numbers"


def every_number(frame: Frame) -> Table:
    """All numbers of a study beside ours: a file."""
    return Table(NUMBERS, "", [*map(Column, frame.columns)], frame.to_numpy().tolist())
