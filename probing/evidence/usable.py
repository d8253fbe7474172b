"""Intervals for what attention adds to words and positions, and for accuracies on minimal pairs.

*Information.* The probe is fitted once, on validation: an interval belongs to the fitted probe. Relations and means get
a BCa bootstrap over functions, with the levels of `probing.evidence.uncertainty`; a relation in fewer than
FEW_FUNCTIONS functions has no interval.

*Minimal pairs.* What is drawn are repositories. As for heads (`probing.evidence.uncertainty`), intervals of a mean over
phenomena come from a BCa bootstrap, and those of one phenomenon, distance or depth are Wilson's, with the number of
independent pairs that the repositories are worth: a bootstrap has no width where all pairs are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from probing.evidence.effect import Effect
from probing.evidence.outcomes import Found
from probing.evidence.statistics import FEW_FUNCTIONS, RESAMPLES, bootstrapped
from probing.evidence.uncertainty import degrees_of, scored
from probing.information.result import InformationLedger, InformationResult
from probing.prediction.likelihood_results import LEAST_PAIRS, PreferenceResult
from probing.runs.ledger_file import RowLedger

MEASURED = ("best", "attention", "words", "both", "adds", "open")
"""Top-1 UAS in percent of one head and of the three choices; bits that attention adds; bits that words leave open."""


@dataclass(frozen=True)
class Usable:
    """Each of MEASURED with an interval: `relations`, name -> effects, and `mean` over those that count, None without
    any; `share`: percent of the open bits that attention adds, of the mean."""

    relations: dict[str, dict[str, Effect]]
    mean: dict[str, Effect] | None
    share: Effect | None


def usable(result: InformationResult) -> Usable:
    """The measurements of a result, with intervals."""
    names, edges, sums = by_function(result.ledger)
    counted = np.array([result.relations[name].in_mean for name in names], bool)
    relations = {}
    for column, name in enumerate(names):
        there = edges[:, column] > 0
        found = effects(edges[there, column, None], sums[there, column, None])
        relations[name] = dict(zip(MEASURED, found))
    if not counted.any():
        return Usable(relations, None, None)
    found = effects(edges[:, counted], sums[:, counted], _with_share)
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
    edges: np.ndarray, sums: np.ndarray, estimate: Callable[[np.ndarray, np.ndarray], np.ndarray] = means
) -> list[Effect]:
    """Each mean of `estimate`, over the edges (F, R) of F functions and sums over them (F, R, n), with its interval."""
    functions = len(edges)
    draws = np.random.default_rng(0).multinomial(functions, np.full(functions, 1 / functions), RESAMPLES)
    found, low, high = bootstrapped(estimate, (edges, sums), [draws.astype(float)], degrees_of(edges))
    return [Effect(*map(float, bounds)) for bounds in zip(found, np.minimum(low, found), np.maximum(high, found))]


class Preferred(NamedTuple):
    """Percent of pairs by each of SCORES, with intervals. `groups`: by what pairs are grouped -> group -> accuracies;
    `mean`: over the phenomena that count, None without any."""

    groups: dict[str, dict[str, list[Effect]]]
    mean: list[Effect] | None


def preferred(result: PreferenceResult) -> Preferred:
    """The accuracies of a result, with intervals; none for fewer than FEW_FUNCTIONS repositories."""
    ledger = result.ledger
    columns = [np.ones(len(ledger)), *100 * ledger.preferred().T]

    def of(chosen: np.ndarray) -> list[Effect]:
        repositories, at = np.unique(ledger.rows["repository"][chosen], return_inverse=True)
        pairs, *sums = (np.bincount(at, column[chosen], len(repositories)) for column in columns)
        return accuracies(pairs, np.stack(sums, axis=1))

    groups = {by: {name: of(chosen) for name, chosen in each} for by, each in ledger.groups().items()}
    _, sums = summed(ledger, columns)
    counted = sums[..., 0].sum(axis=0) >= LEAST_PAIRS
    pairs, preferences = sums[:, counted, 0], sums[:, counted, 1:]
    return Preferred(groups, effects(pairs, preferences) if counted.any() else None)


def accuracies(pairs: np.ndarray, sums: np.ndarray) -> list[Effect]:
    """Percent with intervals, from the `pairs` (F,) of F repositories and sums of percent over them (F, n)."""
    found = Found(np.arange(len(pairs)), pairs, sums.T / 100, np.arange(sums.shape[1]))
    bounds, _ = scored(found, pairs[:, None])
    if len(pairs) < FEW_FUNCTIONS:
        bounds[1:] = np.nan
    return [Effect(*map(float, 100 * of)) for of in bounds.T]
