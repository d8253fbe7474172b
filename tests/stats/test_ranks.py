"""Ranks of a board: equal models are not told apart, different ones are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probing.stats.intervals import ranks_of

BOARDS, MODELS, FUNCTIONS = 100, 20, 40


def test_equal_models_share_all_ranks():
    """Of 190 pairs a board, without a correction, most boards would tell one apart; 5 % of them are allowed to."""
    rng = np.random.default_rng(0)
    apart = 0
    for _ in range(BOARDS):
        found = ranks_of(rng.binomial(1, 0.5, (MODELS, FUNCTIONS)).astype(float))
        apart += any(of_model != (1, MODELS) for of_model in found)
    assert apart <= 5


def of_sets(*sizes):
    """Models each of which finds what no other does, so many functions."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return (owner == np.arange(len(sizes))[:, None]).astype(float)


def test_pairs_are_corrected_by_holm():
    p = stats.ttest_1samp([1] * 36 + [-1] * 20, 0).pvalue
    assert 0.05 / 3 < p < 0.05
    assert ranks_of(of_sets(36, 20)) == [(1, 1), (2, 2)]  # one test
    assert ranks_of(of_sets(36, 20, 20)) == [(1, 3)] * 3  # the least p of three
    assert ranks_of(of_sets(400, 36, 20)) == [(1, 1), (2, 2), (3, 3)]  # the largest p of three


@pytest.mark.parametrize("better, separate", [(5, False), (6, True)])
def test_a_difference_needs_enough_functions(better, separate):
    assert (ranks_of(of_sets(better, 0)) == [(1, 1), (2, 2)]) is separate
