"""Intervals for accuracies on minimal pairs: BCa bootstraps over repositories, whose pairs are not independent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probing.evidence.effect import Effect
from probing.evidence.statistics import RESAMPLES
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
        return effects(pairs[:, None], np.stack(sums, axis=1)[:, None], resamples, seed)

    groups = {by: {name: of(chosen) for name, chosen in each} for by, each in groups_of(ledger).items()}
    _, sums = summed(ledger, columns)
    counted = sums[..., 0].sum(axis=0) >= LEAST_PAIRS
    pairs, preferences = sums[:, counted, 0], sums[:, counted, 1:]
    return Preferred(groups, effects(pairs, preferences, resamples, seed) if counted.any() else None)
