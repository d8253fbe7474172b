"""Intervals over functions for what attention adds to words and positions.

The probe is fitted once, on validation: an interval belongs to the fitted probe. Relations and means get a BCa
bootstrap over functions, with the levels of `probing.evidence.uncertainty`; a relation in fewer than FEW_FUNCTIONS
functions has no interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probing.evidence.effect import Effect
from probing.evidence.statistics import FEW_FUNCTIONS, RESAMPLES, bca
from probing.evidence.uncertainty import degrees_of
from probing.information.result import InformationLedger, InformationResult

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
        effects = _effects(edges[there, column, None], sums[there, column, None], resamples, seed)
        relations[name] = dict(zip(MEASURED, effects))
    if not counted.any():
        return Usable(relations, None, None)
    effects = _effects(edges[:, counted], sums[:, counted], resamples, seed)
    return Usable(relations, dict(zip(MEASURED, effects)), effects[-1])


def by_function(ledger: InformationLedger) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The R relations that have edges, their edges in each function (F, R), and the sums of MEASURED (F, R, 6)."""
    rows = ledger.rows
    _, function = np.unique(rows["function"], return_inverse=True)
    there, relation = np.unique(rows["relation"], return_inverse=True)
    adds = rows["words_bits"] - rows["both_bits"]
    hits = [100.0 * (rows[f"{name}_rank"] == 0) for name in MEASURED[:4]]
    edges = np.zeros((function.max() + 1, len(there)), np.int64)
    sums = np.zeros((*edges.shape, len(MEASURED)))
    np.add.at(edges, (function, relation), 1)
    np.add.at(sums, (function, relation), np.stack([*hits, adds, rows["words_bits"]], axis=1))
    return [ledger.relations[number] for number in there], edges, sums


def _means(edges: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Of edges (..., R) and sums (..., R, n), the means over edges, of these over relations, and at last the share of
    the open bits: (..., n + 1); relations without edges are left out."""
    there = edges > 0
    of_relations = np.where(there[..., None], sums / np.maximum(edges, 1)[..., None], 0).sum(axis=-2)
    means = of_relations / np.maximum(there.sum(axis=-1), 1)[..., None]
    adds, left = means[..., -2], means[..., -1]
    share = np.divide(100 * adds, left, out=np.zeros_like(left), where=left > 0)
    return np.concatenate([means, share[..., None]], axis=-1)


def _effects(edges: np.ndarray, sums: np.ndarray, resamples: int, seed: int) -> list[Effect]:
    """Each mean of `_means` over F functions with its interval."""
    functions = len(edges)
    means = _means(edges.sum(axis=0), sums.sum(axis=0))
    low = high = np.full(len(means), np.nan)
    if functions >= FEW_FUNCTIONS:
        rng = np.random.default_rng(seed)
        drawn = rng.multinomial(functions, np.full(functions, 1 / functions), size=resamples).astype(float)
        resampled = _means(drawn @ edges, np.tensordot(drawn, sums, 1))
        left_out = _means(edges.sum(axis=0) - edges, sums.sum(axis=0) - sums)
        low, high = bca(means, resampled, left_out, degrees_of(edges))
    return [Effect(*map(float, bounds)) for bounds in zip(means, np.minimum(low, means), np.maximum(high, means))]
