"""Verify results on minimal pairs and on surprisal: some pairs, or functions, are scored again."""

from __future__ import annotations

import numpy as np

from probing.evidence.checks import E, Verifier
from probing.evidence.draw import Influence
from probing.prediction.prefer import Preferring
from probing.prediction.preference_result import SCORES
from probing.prediction.surprise import Surprising

_ROUNDED = {"float32": 0.02, "bfloat16": 8.0}
"""Nats by which the log-probability of a text may differ in other batches or on another machine."""


class _LogProbabilities(Verifier[E]):
    """Scores some texts again."""

    @property
    def rounded(self) -> float:
        return _ROUNDED[self.experiment.settings.precision]


class SurprisalVerifier(_LogProbabilities[Surprising]):
    """Measures some functions again."""

    COUNTED = ("skips", "unmatched")


class PreferenceVerifier(_LogProbabilities[Preferring]):
    """Scores some pairs again."""

    def influence(self) -> Influence:
        """In percent of the mean over phenomena."""
        _, at, pairs = np.unique(self.ledger.rows["phenomenon"], return_inverse=True, return_counts=True)
        points = 100 / pairs[at] / len(pairs)
        return Influence(self.places(self.ledger), dict.fromkeys(SCORES, points), {}, points)
