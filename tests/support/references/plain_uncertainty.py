"""Bootstrap and permutation tests over dense tables of hits, with every draw and every column: slow, and easy to read."""

from __future__ import annotations

import numpy as np

from probing.stats.statistics import bca, signs, skew_corrected


def plain_mean(hits: np.ndarray, edges: np.ndarray, resamples: int, seed: int, degrees: float) -> np.ndarray:
    """The mean over relations of `hits` (rules, k, F, R) on `edges` (F, R), with bounds: (3, rules, k)."""
    functions = len(edges)
    weight = np.random.default_rng(seed).multinomial(functions, np.full(functions, 1 / functions), resamples)

    def mean(found: np.ndarray, of: np.ndarray) -> np.ndarray:
        return np.array(
            [np.mean([100 * h / e for h, e in zip(row, edges_of) if e]) for row, edges_of in zip(found, of)]
        )

    result = np.empty((3, *hits.shape[:2]))
    for rule, k in np.ndindex(hits.shape[:2]):
        table = hits[rule, k].astype(np.int64)
        score = mean(table.sum(axis=0)[None], edges.sum(axis=0)[None])
        drawn = mean(weight @ table, weight @ edges)
        left_out = mean(table.sum(axis=0) - table, edges.sum(axis=0) - edges)
        low, high = bca(score, drawn[:, None], left_out[:, None], degrees)
        result[:, rule, k] = score[0], min(low[0], score[0]), max(high[0], score[0])
    return result


def plain_p(gained: np.ndarray, present: np.ndarray, permutations: int, seed: int) -> np.ndarray:
    """p-values (columns,) of the paired test of `gained` (F, columns), in the functions `present` (F, columns)."""
    farther, observed = np.ones(gained.shape[1]), np.abs(gained.sum(axis=0))
    for sign in signs(len(gained), permutations, seed):
        sums = np.abs(sign @ gained)
        equal = np.abs(sums - observed) <= 1e-9
        farther += (~equal & (sums > observed)).sum(axis=0) + equal.sum(axis=0) / 2
    corrected = [skew_corrected(column[kept]) for column, kept in zip(gained.T, present.T)]
    return np.maximum(farther / (permutations + 1), corrected)
