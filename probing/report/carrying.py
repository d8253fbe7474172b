"""What silenced heads carry, as tables: how much of the preference for valid code is lost with the
heads of a relation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from probing.instruments.likelihood.result import LEAST_PAIRS
from probing.instruments.silencing.carried import CarryingResult
from probing.instruments.silencing.losses import Losses, losses_by_share
from probing.report import figures, specs
from probing.report.document import Figure, Part, RowRecord
from probing.report.kinds import P
from probing.report.words import skipped


def carrying_parts(result: CarryingResult) -> list[Part]:
    """The carried shares, the losses of each seeker by the pairs that they are of, and the margins
    of the whole model."""
    losses = list(losses_by_share(result))
    columns = [name for name, margins in result.phenomena.items() if margins.pairs >= LEAST_PAIRS]
    margins = [{"name": name, "margins": of_kind} for name, of_kind in result.phenomena.items()]
    carried = [row for of_share in losses for row in of_share.carried]
    too_few = []
    if not columns:
        too_few.append(
            f"No kind of pairs has {LEAST_PAIRS} of them, so nothing is said of what heads carry: read more pairs."
        )
    return [
        specs.table(
            "carried",
            sorted(carried, key=lambda row: (row.share, -row.carried.value)),
            result=result,
            draws=result.settings.draws,
            permuted=_permuted(losses),
        ),
        *([_heat(losses[0], columns, result)] if columns else []),
        specs.table(
            "carrying", _matrix(losses), result=result, columns=columns, LEAST_PAIRS=LEAST_PAIRS
        ),
        specs.table("margins", margins, result=result),
        *too_few,
        result.signature,
        *skipped(pairs=result.skips),
    ]


def _heat(losses: Losses, columns: Sequence[str], result: CarryingResult) -> Figure:
    """What is lost beyond matched heads, at the first share."""
    seekers = list(dict.fromkeys(lost.seeker for lost in losses.matrix))
    values = np.full((len(seekers), len(columns)), np.nan)
    marked = np.zeros(values.shape, bool)
    for lost in losses.matrix:
        cell = seekers.index(lost.seeker), columns.index(lost.column)
        values[cell] = lost.difference.value
        marked[cell] = lost.stands_out
    return specs.figure(
        "carrying",
        "carrying",
        lambda: figures.heat(seekers, columns, values, marked, "nats beyond matched heads"),
        result=result,
        share=losses.share,
    )


def _permuted(losses: Sequence[Losses]) -> str:
    """The p of exchanged relations, in words."""
    known = [of_share for of_share in losses if not math.isnan(of_share.permutation_p)]
    if not known:
        return ""
    each = ", ".join(
        f"{P.show(of_share.permutation_p)} of {of_share.share} % of heads" for of_share in known
    )
    return f"If relations exchange what rests on them, shares are as high with p {each}. "


def _matrix(losses: Sequence[Losses]) -> list[RowRecord]:
    """A row for each seeker and share, with the cells of columns by name."""
    rows: dict[tuple[int, str], RowRecord] = {}
    for of_share in losses:
        for lost in of_share.matrix:
            key = lost.share, lost.seeker
            row = rows.setdefault(key, {"seeker": lost.seeker, "share": lost.share, "columns": {}})
            cells = lost._asdict() | {"rests_in_words": "rests on it" if lost.rests else ""}
            row["columns"][lost.column] = cells
    return list(rows.values())
