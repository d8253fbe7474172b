"""What a report claims: sentences and coloured cells that speak for a model, by kind of claim."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from probing.report.document import AS_FILLED, Table, is_separated
from probing.report.kinds import DIFFERENCE, EFFECT
from probing.report.report import make

FIRST_SCREEN = "first screen"

SENTENCES = {
    "more than baselines": r"more than (the|their) [\d.]+ %",
    "emergence": r"from step [\d,]+ on, they pass",
}
"""What sentences say where something was found."""


def claims(results: Path, data: Any) -> Counter[str]:
    """Kind -> how many claims of it the report on a folder makes, as its tables stand open; those of the first screen
    are a kind of their own."""
    first, *rest = make([results], data, tell=lambda _: None).sections
    found = Counter({FIRST_SCREEN: sum(map(_claimed, first.parts))})
    for section in (*first.sections, *rest):
        for part in section.all_parts():
            kind = _kind(part) if isinstance(part, Table) else _said(part)
            found[kind] += _claimed(part)
    return +found


def _kind(table: Table) -> str:
    return (
        "heads serve"
        if table.name.endswith("heads-verdicts")
        else f"table: {table.title.partition(',')[0]}"
    )


def _said(part: object) -> str:
    kinds = [
        kind for kind, text in SENTENCES.items() if isinstance(part, str) and re.search(text, part)
    ]
    return kinds[0] if kinds else ""


def _claimed(part: object) -> int:
    """The number of green cells of a table, and of orange ones among effects of masking; 1 for a sentence that claims."""
    if not isinstance(part, Table):
        return bool(_said(part))
    if part.name.endswith("heads-verdicts"):
        return sum(row[1] for row in part.rows)
    if part.name.endswith("-verdicts"):
        return sum(cell in ("lower", "higher") for row in part.rows for cell in row)
    of_effects = part.name.startswith("masking") and not part.name.endswith("floors")
    return sum(
        is_separated(cell[3]) and AS_FILLED not in cell[4:] and (cell[0] > 0 or of_effects)
        for row in part.initial
        for column, cell in zip(part.shown, row)
        if column.kind in (DIFFERENCE, EFFECT) and isinstance(cell, list) and cell[3] is not None
    )
