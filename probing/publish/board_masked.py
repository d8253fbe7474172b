"""The tables of a board on masked syntax.

Entries share a table if their settings agree in everything but the model, their trees are of the same parser, and every
node type was compared on the same functions. The score is the mean over node types of T1, in which their nodes are
masked; T0 and the effect T1 - T0 stand beside it, because trees are alike before anything is restored. Ranks and
duplicates are those of `probing.publish.board`; of several entries for one model and revision the one with the lowest
T1 by HEADLINE is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.languages import CONFIGS
from probing.evidence.entry_masked import HEADLINE, Pairs, unpack
from probing.evidence.masked import OF_MODEL
from probing.evidence.schema import MaskEntry, MaskEntrySettings
from probing.prediction.result import OUTCOMES, VERSION
from probing.publish.tables import LeftOut, by_table, ranks

PERCENT = 100
"""Shares are shown in percent; log-probabilities are not."""


class MaskedCell(NamedTuple):
    """A mean over node types, or of one: T1, T0 and their difference, each with its 95 % interval, None if unknown.

    In percent, log-probabilities in nats. `p`: of the difference.
    """

    t1: tuple[float | None, ...]
    t0: tuple[float | None, ...]
    effect: tuple[float | None, ...]
    p: float | None


class MaskedTypeRow(NamedTuple):
    """A node type of a model: functions, masked sub-tokens, and outcome -> its means."""

    name: str
    functions: int
    masked: int
    cells: dict[str, MaskedCell]


@dataclass(frozen=True)
class MaskedRow:
    """The part of an entry that a board shows.

    `cells`: outcome -> means over node types; `shares`: float32 (outcomes, F), each function's contribution to the T1
    of OUTCOMES; `functions`: a digest of the functions of each node type.
    """

    file: str
    entry: MaskEntry
    cells: dict[str, MaskedCell]
    node_types: list[MaskedTypeRow]
    functions: str
    shares: np.ndarray = field(compare=False, repr=False)

    @property
    def settings(self) -> MaskEntrySettings:
        return self.entry.settings

    @property
    def signature(self) -> str:
        return self.entry.signature

    @property
    def model(self) -> str:
        return self.settings.model

    @property
    def verified(self) -> tuple[int, int] | None:
        return (self.entry.verified.functions, self.entry.verified.of) if self.entry.verified else None

    @property
    def key(self) -> str:
        """Equal for rows of one table."""
        same = self.settings.model_dump(mode="json", exclude=OF_MODEL), self.entry.run.parser, VERSION, self.functions
        return hashlib.sha256(json.dumps(same).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class MaskedTable:
    """Comparable rows. `ranks`: for each row, outcome -> the first and the last possible rank by T1."""

    name: str
    rows: list[MaskedRow]
    ranks: list[dict[str, tuple[int, int]]]

    @property
    def settings(self) -> MaskEntrySettings:
        """The settings of the first row; all rows agree in those that are not of the model."""
        return self.rows[0].settings

    @property
    def functions(self) -> int:
        return self.rows[0].shares.shape[1]


def row(file: str, entry: MaskEntry) -> MaskedRow:
    """The row of a valid entry."""
    found = unpack(entry)
    node_types = [
        MaskedTypeRow(
            name,
            entry.node_types[name]["functions"],
            entry.node_types[name]["masked"],
            {outcome: _cell(entry.node_types[name][outcome], outcome) for outcome in OUTCOMES},
        )
        for name in found.node_types
    ]
    same = [[name, found.places[found.node_type == place].tolist()] for place, name in enumerate(found.node_types)]
    return MaskedRow(
        file=file,
        entry=entry,
        cells={outcome: _cell(entry.scores[outcome], outcome) for outcome in OUTCOMES},
        node_types=node_types,
        functions=hashlib.sha256(json.dumps(sorted(same)).encode()).hexdigest(),
        shares=_shares(found),
    )


def group(rows: Iterable[MaskedRow]) -> tuple[list[MaskedTable], list[LeftOut]]:
    """The tables of `rows`, and the duplicates."""
    by_key, twice = by_table(rows, lambda row: (row.cells[HEADLINE].t1[0], row.file))
    tables = []
    for key, kept in by_key.items():
        ranked = [ranks(np.stack([row.shares[place] for row in kept])) for place in range(len(OUTCOMES))]
        of_rows = [dict(zip(OUTCOMES, of_row)) for of_row in zip(*ranked)]
        tables.append(MaskedTable(f"{kept[0].settings.config}.masking.{key}", kept, of_rows))
    configs = list(CONFIGS)
    tables.sort(key=lambda table: (configs.index(table.settings.config), -len(table.rows), table.name))
    return tables, twice


def _shares(found: Pairs) -> np.ndarray:
    functions, place = np.unique(found.places, return_inverse=True)
    sizes = np.bincount(found.node_type)
    weight = PERCENT / sizes[found.node_type] / len(sizes)
    of_outcomes = [
        np.bincount(place, weights=weight * found.arms[name][0], minlength=len(functions)) for name in OUTCOMES
    ]
    return np.array(of_outcomes, np.float32)


def _cell(told: dict[str, Any], outcome: str) -> MaskedCell:
    """The means of an entry, with or without intervals."""
    unit = 1 if outcome == "log_probability" else PERCENT

    def part(numbers: Any) -> tuple[float | None, ...]:
        bounded = numbers if isinstance(numbers, list) else [numbers, None, None]
        return tuple(None if number is None else unit * number for number in bounded)

    effect = told["effect"] if "effect" in told else told["t1"] - told["t0"]
    return MaskedCell(part(told["t1"]), part(told["t0"]), part(effect), told.get("p"))
