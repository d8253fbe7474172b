"""The distributions against scipy's, and against values from tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probing.stats.distributions import (
    normal_quantile,
    normal_tail,
    student_quantile,
    student_tail,
)

DEGREES = np.array([1, 1.37, 2, 4.5, 5, 11, 29.3, 59, 140, 1000.5, 18_700])


@pytest.mark.parametrize("t", [0, 0.01, 0.7, 1, 1.9, 2.5, 6, 40, 1e4, 1e9])
def test_tails_of_student(t):
    assert student_tail(t, DEGREES) == pytest.approx(stats.t.sf(t, DEGREES), rel=1e-10)


@pytest.mark.parametrize("share", [0.5, 0.6, 0.8, 0.975, 0.9999, 1 - 0.05 / 2 / 300])
def test_quantiles_of_student(share):
    expected = stats.t.ppf(share, DEGREES)
    assert student_quantile(share, DEGREES) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_normal():
    z = np.linspace(-3, 9, 50)
    assert normal_tail(z) == pytest.approx(stats.norm.sf(z), rel=1e-13)
    assert normal_quantile(0.975) == pytest.approx(1.959964, abs=5e-7)


def test_values_of_the_usual_table():
    """Two-sided 95 %, as textbooks print them."""
    printed = {1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}
    quantiles = student_quantile(0.975, list(printed))
    assert quantiles.round(3).tolist() == list(printed.values())


def test_nothing_of_nothing():
    assert student_tail(np.array([]), np.array([])).shape == (0,)
