"""How often sentences of reports claim where there is nothing to find, and where there is."""

from __future__ import annotations

import numpy as np
import pytest
from support.simulations.sizes import candidates_chosen, fillers_beaten, heads_differ, heads_serve

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("rejects", "simulations", "more", "least"),
    [
        (heads_differ, 200, 0.25, 40),
        (heads_serve, 60, 0.7, 80),
        (fillers_beaten, 200, 0.8, 60),
        (candidates_chosen, 200, 0.3, 90),
    ],
)
def test_sentences_claim_as_seldom_as_they_say(rejects, simulations, more, least):
    """tests/benchmarks/sizes.py with fewer of everything, in 60 functions."""
    assert np.max(rejects(60, simulations, 1)) <= 5 + 3 * np.sqrt(5 * 95 / simulations)
    assert np.max(rejects(60, 20, 2, more)) >= least
