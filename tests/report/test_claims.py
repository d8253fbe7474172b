"""What reports claim: nothing of models that know nothing, and what was planted; tests/benchmarks/claims.py has 40 each."""

from __future__ import annotations

import pytest
from support.simulations import planted_heads
from support.simulations.claims import FIRST_SCREEN, claims
from support.simulations.untrained import at_random, measured, untrained

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]


def test_nothing_is_claimed_of_an_untrained_model(few_functions, tmp_path):
    """Random numbers have more than fillers by design; else no finding is claimed, though a cell of a table may be."""
    twin = measured(untrained("roberta", 1), few_functions, tmp_path / "twin", 20)
    assert len(list(twin.glob("*.ledger.parquet"))) == 4
    assert not claims(twin, few_functions)
    drawn = claims(at_random(twin, 1, tmp_path / "drawn"), few_functions)
    assert "table: Fillers without a model" in drawn
    assert {kind for kind in drawn if not kind.startswith("table:")} == set()


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_planted_is_found_and_said(seed, tmp_path):
    """In a masked model and in a decoder; of the same results with random numbers nothing is said."""
    data = planted_heads.splits(seed)
    assert all(planted_heads.found(seed, data, tmp_path / "planted").values())
    assert claims(tmp_path / "planted", data).keys() >= {FIRST_SCREEN, "heads serve"}
    assert not claims(at_random(tmp_path / "planted", seed, tmp_path / "drawn"), data)
