"""What entries are made of, until they are hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from codesyntax_dataset.errors import ArgumentError
from probing.instruments.information.result import InformationLedger
from probing.runs.ledger_file import RowLedger
from probing.stats import statistics
from probing.stats.statistics import FEW_FUNCTIONS, PERMUTATIONS, RESAMPLES, Found, bootstrapped, degrees_of, scored


class Effect(NamedTuple):
    """An estimate with its 95 % interval; the bounds are NaN for fewer than FEW_FUNCTIONS functions."""

    estimate: float
    low: float
    high: float


class PairedEffect(NamedTuple):
    """The mean difference of one node type over `functions`.

    `p`: two-sided p-value of the test; `p_holm`: the same, corrected over the node types (Holm 1979) and outcomes.
    """

    functions: int
    effect: Effect
    p: float
    p_holm: float


def paired(
    treated: Mapping[str, ArrayLike], control: Mapping[str, ArrayLike], *, seed: int = 0, outcomes: int = 1
) -> dict[str, PairedEffect]:
    """The effect of each node type from the scores (F,) of the same functions in both arms, in the same order.

    Types may be of different functions; the same seed gives the same intervals and p-values. `outcomes`: as many scores
    are tested of each type, which p-values are corrected for, too (Bonferroni). Raises ArgumentError for arms of
    different types or sizes, and for scores that are missing or not finite.
    """
    if set(treated) != set(control):
        one_sided = ", ".join(sorted(set(treated) ^ set(control)))
        raise ArgumentError(f"only one arm has {one_sided}: pass the scores of every node type in both")
    differences = {name: _differences(treated[name], control[name], name) for name in treated}
    found = [_paired(of_type, seed) for of_type in differences.values()]
    corrected = np.minimum(1, outcomes * statistics.holm(np.array([p for *_, p in found])))
    return {
        name: PairedEffect(*result, float(p))
        for (name, of_type), result, p in zip(differences.items(), found, corrected)
    }


def _paired(differences: np.ndarray, seed: int) -> tuple[int, Effect, float]:
    functions = len(differences)
    tables, draws = (np.ones(functions), differences), statistics.drawn_functions(functions, RESAMPLES, seed)
    bounds = statistics.bootstrapped(lambda number, total: (total / number)[..., None], tables, draws)
    return functions, Effect(*bounds[:, 0].tolist()), float(statistics.paired_test(differences, PERMUTATIONS, seed))


def _differences(treated: ArrayLike, control: ArrayLike, of: str) -> np.ndarray:
    one, other = (_numbers(scores, of) for scores in (treated, control))
    if len(one) != len(other):
        raise ArgumentError(f"{of} has {len(one)} treated and {len(other)} control scores: expected those of the same")
    if not len(one):
        raise ArgumentError(f"{of} has no scores")
    return one - other


def _numbers(values: ArrayLike, of: str) -> np.ndarray:
    try:
        numbers = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{of}: expected numbers, got {values!r:.80}") from None
    if numbers.ndim != 1:
        raise ArgumentError(f"{of} has the shape {numbers.shape}, expected one dimension")
    if not np.isfinite(numbers).all():
        missing = int((~np.isfinite(numbers)).sum())
        raise ArgumentError(
            f"{of} has {missing} of {len(numbers)} values that are missing or not finite: leave them out"
        )
    return numbers


MEASURED = ("best", "attention", "words", "both", "adds", "open")
"""Top-1 UAS in percent of one head and of the three choices; bits that attention adds; bits that words leave open."""


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


def effects(
    edges: np.ndarray, sums: np.ndarray, estimate: Callable[[np.ndarray, np.ndarray], np.ndarray] = means
) -> list[Effect]:
    """Each mean of `estimate`, over the edges (F, R) of F functions and sums over them (F, R, n), with its interval."""
    functions = len(edges)
    draws = np.random.default_rng(0).multinomial(functions, np.full(functions, 1 / functions), RESAMPLES)
    found, low, high = bootstrapped(estimate, (edges, sums), [draws.astype(float)], degrees_of(edges))
    return [Effect(*map(float, bounds)) for bounds in zip(found, np.minimum(low, found), np.maximum(high, found))]


def accuracies(pairs: np.ndarray, sums: np.ndarray) -> list[Effect]:
    """Percent with intervals, from the `pairs` (F,) of F repositories and sums of percent over them (F, n)."""
    found = Found(np.arange(len(pairs)), pairs, sums.T / 100, np.arange(sums.shape[1]))
    bounds, _ = scored(found, pairs[:, None])
    if len(pairs) < FEW_FUNCTIONS:
        bounds[1:] = np.nan
    return [Effect(*map(float, 100 * of)) for of in bounds.T]
