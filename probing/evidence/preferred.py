"""Intervals over repositories for accuracies on minimal pairs.

As for heads (`probing.evidence.uncertainty`), those of a mean over phenomena come from a BCa bootstrap, and those of
one phenomenon, distance or depth are Wilson's, with the number of independent pairs that the repositories are worth: a
bootstrap has no width where all pairs are right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probing.evidence.effect import Effect
from probing.evidence.outcomes import Found
from probing.evidence.statistics import FEW_FUNCTIONS, RESAMPLES
from probing.evidence.uncertainty import scored
from probing.evidence.usable import effects, summed
from probing.prediction.preference_result import LEAST_PAIRS, PreferenceResult, groups_of


class Preferred(NamedTuple):
    """Percent of pairs by each of SCORES, with intervals. `groups`: by what pairs are grouped -> group -> accuracies;
    `mean`: over the phenomena that count, None without any."""

    groups: dict[str, dict[str, list[Effect]]]
    mean: list[Effect] | None


def preferred(result: PreferenceResult, *, resamples: int = RESAMPLES, seed: int = 0) -> Preferred:
    """The accuracies of a result, with intervals; none for fewer than FEW_FUNCTIONS repositories."""
    ledger = result.ledger
    columns = [np.ones(len(ledger)), *100 * ledger.preferred().T]

    def of(chosen: np.ndarray) -> list[Effect]:
        repositories, at = np.unique(ledger.rows["repository"][chosen], return_inverse=True)
        pairs, *sums = (np.bincount(at, column[chosen], len(repositories)) for column in columns)
        return accuracies(pairs, np.stack(sums, axis=1))

    groups = {by: {name: of(chosen) for name, chosen in each} for by, each in groups_of(ledger).items()}
    _, sums = summed(ledger, columns)
    counted = sums[..., 0].sum(axis=0) >= LEAST_PAIRS
    pairs, preferences = sums[:, counted, 0], sums[:, counted, 1:]
    return Preferred(groups, effects(pairs, preferences, resamples, seed) if counted.any() else None)


def accuracies(pairs: np.ndarray, sums: np.ndarray) -> list[Effect]:
    """Percent with intervals, from the `pairs` (F,) of F repositories and sums of percent over them (F, n)."""
    found = Found(np.arange(len(pairs)), pairs, sums.T / 100, np.arange(sums.shape[1]))
    bounds, _ = scored(found, pairs[:, None])
    if len(pairs) < FEW_FUNCTIONS:
        bounds[1:] = np.nan
    return [Effect(*map(float, 100 * of)) for of in bounds.T]
