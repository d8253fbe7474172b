"""The effect of an edit (`codesyntax_dataset.edits`): hits found of the same edges in functions before and after it.

Only functions that both sides have, on test and on validation, and relations of both are compared, edge by edge. Heads,
offsets and keywords are chosen on validation, before the edit and anew after it, so whoever loses has no other choice
that makes up for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.protocol import BEST_BASELINE, KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence import baselines
from probing.evidence.gather import Probed
from probing.evidence.outcomes import Outcomes
from probing.evidence.selection import held_out
from probing.evidence.uncertainty import Comparison, compare, mean_of
from probing.runs.data import find_data

HEADS, OFFSET = "heads", baselines.KINDS[0]
WHO = (HEADS, OFFSET, BEST_BASELINE)
"""Who finds edges: the best heads of a model, the best offset, and the better of an offset and a keyword."""


@dataclass(frozen=True)
class Change:
    """Hits with one guess before and after an edit, held-out, rule first.

    `before`, `after`: percent, mean over relations, NaN if none is in the mean; `relations`: before and after, of each
    of the R relations of `compared`, in percent: (2, R); `compared`: after against before, of one rule and k.
    """

    before: float
    after: float
    relations: np.ndarray
    compared: Comparison


@dataclass(frozen=True)
class Changes:
    """The changes by an edit. `functions`, `edges`: of test, that both sides have; `lost`: functions that only the side
    before has, because the edit did not keep their labels, or made them too long; `by`: of each of WHO."""

    functions: int
    edges: int
    lost: int
    by: dict[str, Change]


def changes(before: Probed, after: Probed, data: Any = None) -> Changes | None:
    """Hits of each of WHO before and after; None without common functions or relations.

    `data`: the location of both configs, if not the one in the results. Raises LedgerError if the same functions do not
    have the same edges.
    """
    sides = (before, after)
    test, validation = (
        np.intersect1d(*(getattr(side, part).ledger.function for side in sides)) for part in ("test", "validation")
    )
    if not (len(test) and len(validation)):
        return None
    found = [_found(side.only(test, validation), test, validation, data) for side in sides]
    one, other = (side[HEADS] for side in found)
    if not np.array_equal(one.edges.sum(axis=1), other.edges.sum(axis=1)):
        raise LedgerError(
            f"{before.files['test']} and {after.files['test']} do not have the same edges in the same functions: build "
            "both configs from one source, in one folder, and probe them again"
        )
    names = set(one.relations) & set(other.relations)
    if not names:
        return None
    by = {who: _change(*(side[who].only(names) for side in found)) for who in WHO}
    lost = len(np.setdiff1d(before.test.ledger.function, test))
    return Changes(len(test), int(one.only(names).edges.sum()), lost, by)


def _found(probed: Probed, test: np.ndarray, validation: np.ndarray, data: Any) -> dict[str, Outcomes]:
    """Hits of each of WHO on one side in these functions."""
    settings = probed.test.settings
    place = find_data(probed.files["test"], settings) if data is None else data
    chosen_on, scored = (
        baselines.read_edges(place, settings.config, split, functions)
        for split, functions in (("validation", validation), (settings.split, test))
    )
    picks = baselines.pick(chosen_on, settings.direction).filled(chosen_on)
    rivals = baselines.held_out_outcomes(chosen_on, scored, picks)
    heads = held_out(probed.validation.ledger, probed.test.ledger)
    outcomes = {HEADS: heads, **{kind: rivals[kind] for kind in WHO[1:]}}
    return {who: one.at(RULES[:1], KS[:1]) for who, one in outcomes.items()}


def _change(before: Outcomes, after: Outcomes) -> Change:
    edges = after.edges.sum(axis=0)
    hits = np.array([side.total[0, 0] for side in (before, after)])
    one, other = mean_of(hits[:, after.in_mean], edges[after.in_mean]).tolist()
    return Change(one, other, 100 * hits / edges, compare(after, before))
