"""Effects: by hand, and by simulation."""

from __future__ import annotations

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from support.simulations.effect_coverage import coverage
from support.simulations.sizes import (
    DIFFERENCES,
    candidates_chosen,
    fillers_beaten,
    heads_differ,
    heads_serve,
    paired_rejects,
)

from codesyntax_dataset.errors import ArgumentError
from probing.evidence.effect import paired
from probing.stats.statistics import holm, skew_corrected

# Paired


def test_paired_by_hand():
    found = paired({"a": [0.5, 1.0, 0.0], "b": [0.2]}, {"a": [1.0, 0.5, 0.6], "b": [0.1]})
    assert (found["a"].functions, found["b"].functions) == (3, 1)
    assert found["a"].effect.estimate == pytest.approx(-0.2)
    assert found["b"].effect.estimate == pytest.approx(0.1)
    # of the 8 exchanges of -0.5, 0.5 and -0.6, 2 are farther from 0 and 4 as far: 0.5; Hall's t is larger
    skew, shift = 3 / 2 * sum((one + 0.2) ** 3 for one in (-0.5, 0.5, -0.6)) / 0.37**1.5, -0.2 / 0.37**0.5
    t = 3**0.5 * (shift + skew * shift**2 / 3 + skew**2 * shift**3 / 27 + skew / 18)
    assert found["a"].p == pytest.approx(1 - abs(t) / (2 + t**2) ** 0.5, abs=0.01)  # Student's t of 2 degrees
    assert found["b"].p == 1
    assert np.isnan([*found["a"].effect[1:], *found["b"].effect[1:]]).all()  # fewer than 6 functions


def test_paired_p_values_are_those_of_all_exchanges_and_corrected():
    rng = np.random.default_rng(0)
    treated = {name: rng.normal(shift, 1, 9) for name, shift in (("none", 0), ("small", 0.5), ("large", 2))}
    control = {name: np.zeros(9) for name in treated}
    found = paired(treated, control)
    for name, differences in treated.items():
        sums = [np.dot(sign, differences) for sign in itertools.product((1, -1), repeat=9)]
        exact = np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9)
        assert found[name].p == pytest.approx(exact, abs=0.015)
    assert [one.p_holm for one in found.values()] == holm(np.array([one.p for one in found.values()])).tolist()
    assert found["large"].p < found["large"].p_holm == pytest.approx(3 * found["large"].p)


def test_paired_interval_is_the_same_each_time_and_moves_with_the_scores():
    rng = np.random.default_rng(1)
    treated, control = rng.random((2, 50))
    (one,), (again,), (moved,) = (
        paired({"a": treated + more}, {"a": control}, seed=3).values() for more in (0, 0, 0.25)
    )  # fmt: skip
    assert one == again
    assert np.array(moved.effect) == pytest.approx(np.array(one.effect) + 0.25)
    (other,) = paired({"a": control}, {"a": treated}, seed=3).values()
    assert other.p == one.p and other.effect.estimate == -one.effect.estimate


def test_pairs_that_cannot_be_compared_are_refused():
    with pytest.raises(ArgumentError, match="only one arm has b: pass the scores of every node type in both"):
        paired({"a": [1], "b": [1]}, {"a": [1]})
    with pytest.raises(ArgumentError, match="a has 2 treated and 1 control scores"):
        paired({"a": [1, 2]}, {"a": [1]})
    with pytest.raises(ArgumentError, match="a has no scores"):
        paired({"a": []}, {"a": []})
    with pytest.raises(ArgumentError, match="a has 1 of 2 values that are missing"):
        paired({"a": [1, np.nan]}, {"a": [1, 2]})
    assert paired({}, {}) == {}


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    """tests/benchmarks/effects.py with fewer of everything: about 95 %, within what so few simulations vary by."""
    holds, falsely_found = coverage(simulations=60, functions=200, seed=1)
    assert 88 <= holds <= 99
    assert falsely_found <= 12


@pytest.mark.parametrize("differences", DIFFERENCES)
def test_the_paired_test_rejects_as_often_as_it_says(differences):
    """tests/benchmarks/sizes.py with fewer of everything. Of 8 functions, few values allow few p-values."""
    for functions in (8, 10, 20):
        assert paired_rejects(DIFFERENCES[differences], functions, 1000, functions) <= 7.2  # 3 standard errors
    assert paired_rejects(DIFFERENCES[differences], 50, 200, 1, shift=0.7) > 90


def test_functions_without_a_difference_say_nothing_of_the_mean_of_others():
    """Student's t of symmetric differences needs no correction; zeros beside them change nothing, and two are too few."""
    away = np.array([0.3, 0.8, 1.1, 1.7, 2.0, 2.6])
    symmetric = np.concatenate([0.4 + away, 0.4 - away])
    t = symmetric.mean() / (symmetric.std(ddof=1) / np.sqrt(12))
    p = float(skew_corrected(symmetric))
    assert p == pytest.approx(2 * (1 - NormalDist().cdf(t * (1 - 1 / 44) / np.sqrt(1 + t**2 / 22))), abs=0.003)
    assert skew_corrected(np.append(symmetric, np.zeros(9))) == pytest.approx(p)
    assert skew_corrected(np.array([1.0, 2, 0, 0, 0, 0])) == 1


@pytest.mark.slow
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
    """The same of what other sentences rest on, in 60 functions: relations, silenced heads, fillers, candidates."""
    assert np.max(rejects(60, simulations, 1)) <= 5 + 3 * np.sqrt(5 * 95 / simulations)
    assert np.max(rejects(60, 20, 2, more)) >= least
