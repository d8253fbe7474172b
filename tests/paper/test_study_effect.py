"""The effect as the study computed it: by hand, and against its figures and DoWhy's on the reference data."""

from __future__ import annotations

import itertools
import json
from functools import partial

import numpy as np
import pytest

from codesyntax_dataset.errors import ArgumentError
from probing.paper.joined import ScoreRow
from probing.paper.masking_study import ESTIMATOR, _by_study, published_effect
from probing.stats.hits import Hits


@pytest.fixture(scope="module")
def causal(shared):
    return json.loads((shared / "data/syntaxeval/causal.json").read_bytes())


@pytest.fixture(scope="module")
def twins(causal):
    """T1 and T0 of the 200 functions of the paired data."""
    data = causal["datasets"]["twins"]
    arms = [
        {unit: y for unit, t, y in zip(data["unit"], data["t"], data["y"]) if t == arm}
        for arm in (1, 0)
    ]
    assert list(arms[0]) == list(arms[1]) == sorted(arms[0])
    return [np.array(list(arm.values())) for arm in arms]


def paired(t1, t0):
    """The effect that reports have beside the study's."""
    hits = Hits.of_rows(
        np.arange(len(t1)), ["type"] * len(t1), {"T1": t1[None], "T0": t0[None]}, [0], unit="share"
    )
    return hits.by_group("T1", "T0").at(0, 0)


def test_paired_is_the_mean_difference_of_the_reference(causal, twins):
    found = paired(*twins)
    expected = causal["plain"]["twins"]["paired"]
    assert found.n == 200
    assert found.value == pytest.approx(expected["mean"], abs=1e-9)
    # by another procedure
    assert found[1:3] == pytest.approx(expected["bootstrap500_95"], abs=0.003)
    assert found.high - found.low == pytest.approx(2 * 1.96 * expected["se"], rel=0.05)
    assert found.p < 1e-6


def test_published_is_half_the_mean_and_half_the_second():
    assert published_effect([1.0, 0.5, 0.0], [1.0, 0.0, 0.25]) == pytest.approx(
        (0.25 / 3 + 0.5) / 2
    )


def test_the_studys_effect_is_there_from_two_functions_on():
    row = partial(ScoreRow, "python", system="mine")
    assert [*_by_study(row, "string", np.array([1.0]), np.array([0.5]))] == []
    rows = {
        of.measure: of.value
        for of in _by_study(row, "string", np.array([1.0, 0.5]), np.array([0.5, 0.25]))
    }
    assert len(rows) == 6
    assert rows[ESTIMATOR] == pytest.approx((0.375 + 0.25) / 2)
    assert rows["of the second function"] == 0.25


def test_published_is_what_dowhy_computes(causal, twins):
    """Both versions, with six and with seven confounders: with twins the confounders change nothing."""
    assert published_effect(*twins) == pytest.approx(-0.0856465700, abs=1e-9)
    for version, model in itertools.product(
        ("dowhy_0_10", "dowhy_0_14"), ("six_confounders", "seven_confounders")
    ):
        expected = causal[version]["results"]["twins"][model]["propensity_score_matching/ate"]
        assert published_effect(*twins) == pytest.approx(expected, abs=1e-6)


def test_one_function_has_no_published_effect():
    with pytest.raises(
        ArgumentError, match="needs at least two functions: it depends on the second"
    ):
        published_effect([1], [0])
