"""Surprisal by node type: the tables of a result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from probing.evidence.effect import Effect
from probing.evidence.usable import effects
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
from probing.report.document import COST, COUNT, NAME, PERCENT, ROUNDED, Column, Table

_COLUMNS = [
    Column("nodes", COUNT),
    Column("surprisal", ROUNDED, "model", spare=(3,)),
    Column("control", ROUNDED, "model", spare=(3,)),
    Column("gain", COST, "model", spare=(0, 6)),
    Column("gain", COST, "5-grams", spare=(0, 7)),
    Column("tokens", PERCENT, "frequency", spare=(1,)),
    Column("controls", PERCENT, "frequency", spare=(1,)),
    Column("tokens", PERCENT, "place, %", spare=(2,)),
    Column("controls", PERCENT, "place, %", spare=(2,)),
    Column("without", COUNT, "controls", spare=(4,)),
]

_TITLES = dict(zip(ROLES, ("the token with which a node begins", "the token with which a node ends", "all its tokens")))


def parts_of(result: SurprisalResult) -> list[str | Table]:
    """The tables, and what is said below them."""
    tables: list[str | Table] = []
    name = result.settings.name
    for role in ROLES:
        ledger, unmatched = result.ledger.of(role), result.unmatched.get(role, {})
        rows = _rows(ledger, "node_types", result.node_types[role], unmatched)
        title = f"{result.title}: surprisal in bits, {_TITLES[role]}"
        notes = (
            "Gain: by how many bits tokens surprise less than their controls, which are tokens of the same function as "
            "frequent, at a similar place and of as many sub-tokens, with this role in no node of the type; with 95 % "
            "intervals over functions. It proves no syntax where 5-grams, trained on the other half of the functions, "
            "or an untrained twin (--control random-weights) have it, too. Frequency: how often the text of a token "
            f"stands in the functions (geometric mean). *: fewer than {LEAST_NODES} nodes, not in the mean."
        )
        kinds = ledger.rows["node_type"]
        counted = np.bincount(kinds, minlength=1) >= LEAST_NODES
        totals = [[f"mean of {counted.sum()} types", *[None] * 3, *_gains(ledger, kinds, counted[kinds]), *[None] * 5]]
        columns = [Column("node type", NAME), *_COLUMNS]
        tables.append(Table(f"{name}-{role}", title, columns, rows, notes, totals=totals if counted.any() else []))
    closing = result.ledger.of(CLOSING)
    bins = [
        [f"{by} {row[0]}", *row[1:-1]]
        for by, at in (("distance", "distances"), ("depth", "depths"))
        for row in _rows(closing, at, getattr(result, at)[CLOSING], {})
    ]
    title = f"{result.title}: the token with which a node ends, by distance to the first, in tokens, and by depth"
    columns = [Column("nodes at", NAME), *_COLUMNS[:-1]]
    tables.append(Table(f"{name}-bins", title, columns, bins))
    skipped = [f"skipped: {count:,} functions ({reason})" for reason, count in result.skips.items()]
    return [*tables, result.signature, *skipped]


def _rows(
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
        found = _gains(ledger, np.zeros(len(ledger)), chosen[name])
        rows.append([name + few, of.nodes, *surprisal, *found, *frequencies, *places, unmatched.get(name, 0)])
    return rows


def _gains(ledger: SurprisalLedger, group: np.ndarray, chosen: np.ndarray) -> list[list[float | None]]:
    """The gains of the model and of 5-grams, means over the `chosen` rows of a group (N,) and over groups."""
    _, functions = np.unique(ledger.rows["function"][chosen], return_inverse=True)
    _, groups = np.unique(group[chosen], return_inverse=True)
    cells = np.zeros((functions.max() + 1, groups.max() + 1, 3))
    np.add.at(cells, (functions, groups), np.column_stack([np.ones(len(groups)), ledger.gained()[chosen]]))
    found: list[Effect] = effects(cells[..., 0], cells[..., 1:])
    return [[None if value != value else value for value in effect] for effect in found]
