"""Intervals over functions for what attention adds to words and positions.

The probe is fitted once, on validation: an interval belongs to the fitted probe. Relations and means get a BCa
bootstrap over functions, with the levels of `probing.evidence.uncertainty`; a relation in fewer than FEW_FUNCTIONS
functions has no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from probing.evidence.effect import Effect
from probing.evidence.statistics import RESAMPLES, bootstrapped
from probing.evidence.uncertainty import degrees_of
from probing.information.result import InformationLedger, InformationResult
from probing.runs.row_ledger import RowLedger

MEASURED = ("best", "attention", "words", "both", "adds", "open")
"""Top-1 UAS in percent of one head and of the three choices; bits that attention adds; bits that words leave open."""


@dataclass(frozen=True)
class Usable:
    """Each of MEASURED with an interval: `relations`, name -> effects, and `mean` over those that count, None without
    any; `share`: percent of the open bits that attention adds, of the mean."""

    relations: dict[str, dict[str, Effect]]
    mean: dict[str, Effect] | None
    share: Effect | None


def usable(result: InformationResult, *, resamples: int = RESAMPLES, seed: int = 0) -> Usable:
    """The measurements of a result, with intervals."""
    names, edges, sums = by_function(result.ledger)
    counted = np.array([result.relations[name].in_mean for name in names], bool)
    relations = {}
    for column, name in enumerate(names):
        there = edges[:, column] > 0
        found = effects(edges[there, column, None], sums[there, column, None], resamples, seed)
        relations[name] = dict(zip(MEASURED, found))
    if not counted.any():
        return Usable(relations, None, None)
    found = effects(edges[:, counted], sums[:, counted], resamples, seed, _with_share)
    return Usable(relations, dict(zip(MEASURED, found)), found[-1])


def by_function(ledger: InformationLedger) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The R relations that have edges, their edges in each function (F, R), and the sums of MEASURED (F, R, 6)."""
    rows = ledger.rows
    adds = rows["words_bits"] - rows["both_bits"]
    hits = [100.0 * (rows[f"{name}_rank"] == 0) for name in MEASURED[:4]]
    names, sums = summed(ledger, [np.ones(len(rows)), *hits, adds, rows["words_bits"]])
    return names, sums[..., 0].astype(np.int64), sums[..., 1:]


def summed(ledger: RowLedger, columns: Sequence[np.ndarray]) -> tuple[list[str], np.ndarray]:
    """The R names of a ledger that its rows have, and the sums of n columns (N,) over the rows of each function, or
    other CLUSTER, and name: (F, R, n)."""
    _, function = np.unique(ledger.rows[ledger.CLUSTER], return_inverse=True)
    there, named = np.unique(ledger.rows[ledger.NAMED], return_inverse=True)
    sums = np.zeros((function.max() + 1, len(there), len(columns)))
    np.add.at(sums, (function, named), np.stack(columns, axis=1))
    return [ledger.names[number] for number in there], sums


def means(edges: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Of edges (..., R) and sums (..., R, n), the means over edges, and of these over relations: (..., n); relations
    without edges are left out."""
    there = edges > 0
    of_relations = np.where(there[..., None], sums / np.maximum(edges, 1)[..., None], 0).sum(axis=-2)
    return of_relations / np.maximum(there.sum(axis=-1), 1)[..., None]


def _with_share(edges: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The means of MEASURED, and at last the share of the open bits that attention adds: (..., 7)."""
    of_all = means(edges, sums)
    adds, left = of_all[..., -2], of_all[..., -1]
    share = np.divide(100 * adds, left, out=np.zeros_like(left), where=left > 0)
    return np.concatenate([of_all, share[..., None]], axis=-1)


def effects(
    edges: np.ndarray,
    sums: np.ndarray,
    resamples: int = RESAMPLES,
    seed: int = 0,
    estimate: Callable[[np.ndarray, np.ndarray], np.ndarray] = means,
) -> list[Effect]:
    """Each mean of `estimate`, over the edges (F, R) of F functions and sums over them (F, R, n), with its interval."""
    functions = len(edges)
    draws = np.random.default_rng(seed).multinomial(functions, np.full(functions, 1 / functions), resamples)
    found, low, high = bootstrapped(estimate, (edges, sums), [draws.astype(float)], degrees_of(edges))
    return [Effect(*map(float, bounds)) for bounds in zip(found, np.minimum(low, found), np.maximum(high, found))]
