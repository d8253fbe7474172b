"""Hits of a masking run: what each function scores with the nodes of a type masked, with a control,
and by fillers."""

from __future__ import annotations

import numpy as np

from probing.instruments.masking.result import FLOORS, HITS, OUTCOMES, MaskResult
from probing.stats.hits import SHARE_UNIT, Hits

ARMS = T1, T0 = "T1", "T0"
"""The nodes of the type are masked; its controls are, of which a function has the mean."""

BOTH_ARMS = ARMS
"""The effect of masking a node type: T1 less T0."""

TESTED = 3
"""The outcomes that a finding takes up, a family of tests: similarity of trees, restored sub-tokens
and log-probability. The similarities count as one, being of the same trees."""

UNITS = dict.fromkeys(OUTCOMES, SHARE_UNIT) | {"log_probability": "nats"}

_COUNTED = {"restored": HITS, "commonest": "commonest"}
"""Outcome -> the column that counts the masked sub-tokens."""


def hits(result: MaskResult) -> dict[str, Hits]:
    """Each of OUTCOMES -> its hits by function and node type, of which a function has one.

    The systems are the model in both ARMS and the fillers of the outcome in both, such as `letter
    T1`. A function of which a copy has no number is left out.
    """
    rows = result.ledger.rows
    is_first = rows["copy"] == 0
    first = rows[is_first]
    names = result.ledger.group_names[is_first]
    measured = {}
    for outcome in OUTCOMES:
        columns = {"": outcome} | {
            f"{column.partition('_')[0]} ": column for column in FLOORS.get(outcome, ())
        }
        sums: dict[str, np.ndarray] = {}
        for filler, column in columns.items():
            counted = column in _COUNTED
            values = rows[_COUNTED[column]] / rows["masked"] if counted else rows[column]
            values = values.reshape(len(first), -1)
            sums |= {f"{filler}{T1}": values[:, 0], f"{filler}{T0}": values[:, 1:].mean(axis=1)}
        known = ~np.isnan(list(sums.values())).any(axis=0)
        measured[outcome] = Hits.of_rows(
            first["function"][known],
            names[known],
            {system: values[None, known] for system, values in sums.items()},
            (outcome,),
            unit=UNITS[outcome],
            families={BOTH_ARMS: TESTED},
            over=result.ledger.over,
        )
    return measured


def fillers(hits: Hits, arm: str) -> list[str]:
    """The systems that fill an arm without a model."""
    return [system for system in hits.systems if system.endswith(f" {arm}")]
