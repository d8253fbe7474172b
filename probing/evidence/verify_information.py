"""Verify an information result: its probe is fitted again, and the rows of some functions compared."""

from __future__ import annotations

import numpy as np

from probing.evidence.checks import Verifier
from probing.evidence.draw import Influence
from probing.evidence.usable import MEASURED, by_function
from probing.information.inform import Informing
from probing.information.result import InformationResult


class InformationVerifier(Verifier[Informing]):
    """Fits an information probe again, and compares the rows of some functions."""

    COUNTED = ("skips", "left_out")

    def influence(self) -> Influence:
        """In percent, and hundredths of a bit: what functions contribute to the means over relations."""
        result = InformationResult.from_ledger(self.ledger)
        names, edges, sums = by_function(self.ledger)
        counted = [place for place, name in enumerate(names) if result.relations[name].in_mean] or [*range(len(names))]
        each = sums[:, counted] / edges[:, counted].sum(axis=0)[:, None] / len(counted)  # (F, R, 6)
        each[..., -2:] *= 100
        points = dict(zip(MEASURED, np.maximum(each.sum(axis=1), 0).T))
        least = (edges[:, counted] / edges[:, counted].sum(axis=0)).sum(axis=1) / len(counted)
        return Influence(self.places(self.ledger), points, {}, least)
