"""What reports claim: nothing of models that know nothing, and what was planted."""

from __future__ import annotations

import pytest
from support.simulations import planted_heads
from support.simulations.claims import FIRST_SCREEN, claims
from support.simulations.untrained import measured, untrained

pytestmark = pytest.mark.long


def test_nothing_is_claimed_of_an_untrained_model(few_functions, tmp_path):
    twin = measured(untrained(1), few_functions, tmp_path / "twin", 20)
    assert len(list(twin.glob("*.ledger.parquet"))) == 4
    assert not claims(twin, few_functions)


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_planted_is_found_and_said(seed, tmp_path):
    """In a masked model and in a decoder."""
    data = planted_heads.splits(seed)
    assert all(planted_heads.found(seed, data, tmp_path / "planted").values())
    assert claims(tmp_path / "planted", data).keys() >= {FIRST_SCREEN, "heads serve"}
