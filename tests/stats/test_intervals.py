"""Intervals and tests: against plain loops and other libraries, at the bounds of each rule, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from support.references import plain_intervals
from support.simulations.coverage import AMOUNTS, CELLS, covered

from probing.stats.intervals import (
    ALPHA,
    Estimate,
    agreeing,
    corrected,
    degrees_of,
    differing,
    family,
    holm,
    influence_of,
    influence_p,
    interval,
    lone_influence,
    mean_estimate,
    paired_p,
    wilson,
    wilson_difference,
)


def equal_shares(values):
    """The arguments of `mean_estimate` of a plain mean of values (F,)."""
    values = np.asarray(values, float)
    contribution = values / len(values)
    residuals = (contribution - contribution.mean()) * np.sqrt(len(values) / (len(values) - 1))
    return contribution.sum(), contribution, residuals, np.full(len(values), 1 / len(values))


def of_values(values):
    """The estimate of the mean of differences (F,)."""
    value, contribution, influence, share = equal_shares(values)
    return mean_estimate(value, influence, share, differing(contribution, share))


# One procedure for interval and p


@pytest.mark.parametrize("shares", [[0.1] * 10, [0.7, 0.1, 0.1, 0.1], [1.0]])
def test_degrees_are_satterthwaites(shares):
    assert degrees_of(np.array(shares)) == pytest.approx(plain_intervals.degrees(shares))


def test_equal_shares_have_one_degree_less_than_clusters_and_no_cluster_has_none():
    assert degrees_of(np.full(7, 1 / 7)) == pytest.approx(6)
    assert degrees_of(np.array([1.0])) == 1


@pytest.mark.parametrize("seed", range(5))
def test_interval_and_p_are_those_of_plain_loops(seed):
    values = np.random.default_rng(seed).exponential(size=9) - 0.4
    value, _, influence, share = equal_shares(values)
    freedom = degrees_of(share)
    low, high = interval(value, influence, freedom)
    assert (low, high) == pytest.approx(
        plain_intervals.hall_interval(values.mean(), influence, freedom)
    )
    p = influence_p(value, influence, freedom)
    assert float(p) == pytest.approx(plain_intervals.influence_p(value, influence, freedom))
    assert p > ALPHA or not low <= 0 <= high


def test_without_skewness_they_are_students():
    values = np.array([-3.0, -1, 1, 3]) + 2.5
    value, _, influence, _ = equal_shares(values)
    expected = stats.ttest_1samp(values, 0)
    assert interval(value, influence, 3) == pytest.approx(tuple(expected.confidence_interval()))
    assert influence_p(value, influence, 3) == pytest.approx(expected.pvalue)


def test_a_mean_without_spread_is_certain():
    value, _, influence, _ = equal_shares([2.0] * 6)
    assert interval(value, influence, 5) == pytest.approx((2, 2))
    assert influence_p(value, influence, 5) == pytest.approx(0)
    assert influence_p(np.array([1e-12, 2e-12]), influence, 5) == pytest.approx([1, 0])


def test_fewer_than_three_clusters_have_no_interval():
    for values, known in (([5.0, 6.0], False), ([5.0, 6.0, 7.0], True)):
        estimate = of_values(values)
        assert estimate.value == pytest.approx(np.mean(values))
        assert estimate.n == len(values)
        assert np.isfinite([estimate.low, estimate.high]).all() == known


def test_clusters_without_a_share_change_nothing():
    value, *parts = equal_shares([1.0, 2, 4, 3, 7, 1])
    contribution, influence, share = (np.append(part, [0, 0]) for part in parts)
    more = mean_estimate(value, influence, share, differing(contribution, share))
    fewer = of_values([1.0, 2, 4, 3, 7, 1])
    assert [*map(float, more)] == pytest.approx([*map(float, fewer)])


def test_an_influence_is_the_change_without_the_cluster():
    added, parts = [0.3, 0.0, 0.2, 0.9], [0.1, 0.2, 0.1, 0.6]
    influence = influence_of(np.array(added), np.array(parts), 9)
    assert influence == pytest.approx(plain_intervals.jackknifed(added, parts, 9))
    assert influence_of(np.array([5.0]), np.array([1.0]), 9) == [0]


def test_of_equal_parts_influences_vary_as_what_clusters_add():
    drawn = np.random.default_rng(0).normal(size=(40_000, 3))
    influence = influence_of(drawn, np.full(3, 1 / 3), 3)
    assert influence.var(axis=0) == pytest.approx([1, 1, 1], rel=0.03)


def test_without_a_cluster_that_alone_has_a_group_the_mean_is_over_the_others():
    """Of 90, 30 and 60: over the first two it is 60, too, and over the last two 45."""
    scores = [90.0, 30, 60]
    without = [np.mean(scores[:number] + scores[number + 1 :]) for number in range(3)]
    influence = [float(lone_influence(score, 60.0, 3, 10**9)) for score in scores]
    assert influence == pytest.approx([60 - mean for mean in without]) == [15, -15, 0]
    assert lone_influence(90.0, 90.0, 1, 5) == 0


def test_clusters_that_do_not_differ_give_no_degrees_of_freedom():
    """Of 20 clusters, 7 differ."""
    values = np.array([1.0, 2, -1, 0.5, 1.5, 0.3, 1.2, *[0] * 13])
    value, contribution, influence, share = equal_shares(values)
    estimate = mean_estimate(value, influence, share, differing(contribution, share))
    assert estimate.p == pytest.approx(plain_intervals.influence_p(value, influence, 6))
    assert estimate.p > 1.3 * plain_intervals.influence_p(value, influence, 19)


def test_what_differs_by_rounding_does_not_differ():
    """By a thousand-millionth of the most."""
    none, rounded, more = (of_values([1.0] * 6 + [last]).p for last in (0.0, 0.9e-9, 2e-9))
    assert none == pytest.approx(rounded)
    assert more < 0.95 * none


def test_no_p_is_below_that_of_exchanging_the_clusters_that_differ():
    for equal in (0, 3, 95):  # of which none says that the others are no chance
        assert of_values([1.0] * 6 + [0.0] * equal).p >= 2 * 0.5**6
        assert of_values([1.0] * 5 + [0.0] * equal).p >= 2 * 0.5**5 > ALPHA
    assert of_values([1.0] * 6).p == 2 * 0.5**6


def test_a_mean_that_is_not_tested_has_no_p():
    value, _, influence, share = equal_shares([1.0, 2, 4, 3])
    assert np.isnan(mean_estimate(value, influence, share).p)


def test_bounds_reach_to_zero_where_the_test_does_not_separate_and_end_before_it_where_it_does():
    value, p = np.array([1.5, 1.5, -2, 1]), np.array([0.050001, ALPHA, 0.9, ALPHA])
    low, high = agreeing(value, np.array([1.0, 1, -3, -0.5]), np.array([2.0, 2, -1, 2]), p)
    assert low.tolist() == [0, 1, -3, pytest.approx(0, abs=1e-8)]
    assert low[3] > 0
    assert high.tolist() == [2, 2, 0, 2]


def test_a_mean_that_rests_on_few_clusters_has_the_p_of_its_degrees_of_freedom():
    share = np.array([0.3, 0.3, *[0.04] * 10])
    contribution = np.array([0.1, 0.12, 0.1, 0.06, 0.05, 0.04, 0.05, 0.06, 0.03, 0.07, 0.01, 0.06])
    influence = influence_of(contribution, share, 12)
    expected = plain_intervals.influence_p(contribution.sum(), influence, degrees_of(share))
    estimate = mean_estimate(contribution.sum(), influence, share, share)
    of_equal_shares = plain_intervals.influence_p(contribution.sum(), influence, 11)
    assert estimate.p == pytest.approx(expected)
    assert estimate.p > 2 * of_equal_shares


def test_paired_p_is_that_of_a_mean_and_1_of_equal_systems():
    values = np.random.default_rng(1).exponential(size=12) - 0.3
    assert paired_p(values) == pytest.approx(of_values(values).p)
    assert paired_p(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)  # the larger here
    assert paired_p(np.zeros(8)) == 1
    assert paired_p(np.ones(6)) == 2 * 0.5**6


# Hits of single groups


@pytest.mark.parametrize(
    "hits, n",
    [
        ([3, 0, 2, 5], [4, 4, 2, 6]),
        ([0, 0, 0], [2, 3, 1]),
        ([2, 3, 1], [2, 3, 1]),
        ([1, 0, 1, 0], [1] * 4),
    ],
)
def test_wilson_is_that_of_plain_loops(hits, n):
    bounds, residuals = wilson(np.array([hits, hits]), np.array(n))
    assert bounds[:, 0] == pytest.approx(plain_intervals.wilson(hits, n))
    assert residuals[0].sum() == pytest.approx(0)


def test_things_that_vary_no_more_than_independent_ones_have_wilsons_interval():
    hits, n = np.array([[2, 3, 2, 3, 2, 1]]), np.full(6, 4)
    bounds, _ = wilson(hits, n)
    expected = stats.binomtest(13, 24).proportion_ci(method="wilson")
    assert bounds[1:, 0] == pytest.approx([expected.low, expected.high])


@pytest.mark.parametrize(
    "hits, things", [([1] * 13 + [0] * 7, 1), ([5] * 6, 5), ([5, 5, 0, 5, 0, 5, 5, 5], 5)]
)
def test_bounds_are_the_shares_that_are_students_quantile_away(hits, things):
    clusters = len(hits)
    ((share,), (low,), (high,)), _ = wilson(np.array([hits]), np.full(clusters, things))
    hit = sum(hits) / things / clusters
    # clusters that are all hit or not: less a degree of freedom
    size = clusters if hit == 1 else clusters - 1
    for bound in {low, high} - {1}:
        away = abs(share - bound) / np.sqrt(bound * (1 - bound) / size)
        assert away == pytest.approx(stats.t.ppf(0.975, clusters - 1))
    assert share == pytest.approx(hit)
    assert (high == 1) == (hit == 1)


def test_equal_systems_differ_by_nothing_and_swapped_ones_by_the_opposite():
    rng = np.random.default_rng(2)
    n = rng.integers(1, 5, 9)
    one, other = rng.binomial(n, 0.5, (2, 1, 9))
    value, low, high = wilson_difference(one, one, n)[:, 0]
    # bounds of a share are not symmetric, so a little is left
    assert value == 0
    assert -low == high < 0.05
    there, back = (wilson_difference(*pair, n)[:, 0] for pair in ((one, other), (other, one)))
    assert there == pytest.approx(-back[[0, 2, 1]])
    assert there[1] < there[0] < there[2]


def test_differences_stay_between_minus_one_and_one():
    n = np.full(6, 3)
    bounds = wilson_difference(n[None], np.zeros((1, 6)), n)[:, 0]
    assert bounds[0] == bounds[2] == 1
    assert 0 < bounds[1] < 1


# Several tests


def test_holm_is_that_of_plain_loops_and_leaves_out_what_is_no_test():
    p = np.array([0.01, 0.2, 0.03, 0.03, 0.9, 1e-4])
    assert holm(p) == pytest.approx(plain_intervals.holm(p.tolist()))
    assert holm(np.insert(p, 2, np.nan))[2] != holm(p)[2]
    assert np.delete(holm(np.insert(p, 2, np.nan)), 2) == pytest.approx(holm(p))
    assert holm(np.stack([p, p[::-1]]))[1] == pytest.approx(holm(p)[::-1])


def estimate_of(p):
    p = np.array(p)
    return Estimate(p, p, p, p, np.full(p.shape[-1], 9))


def test_estimates_corrected_together_are_one_family():
    one, other = corrected([estimate_of([[0.01, 0.04]]), estimate_of([[0.02]])])
    assert one.p.tolist() == [[pytest.approx(0.03), pytest.approx(0.04)]]
    assert other.p.tolist() == [[pytest.approx(0.04)]]
    (twice,) = corrected([estimate_of([0.01, 0.3])], times=2)
    assert twice.p.tolist() == [pytest.approx(0.04), pytest.approx(0.6)]
    assert corrected([estimate_of([0.4, 0.9])], times=3)[0].p.tolist() == [1, 1]
    assert twice.value.tolist() == [0.01, 0.3]


def test_at_each_measure_estimates_are_a_family():
    p = np.array([[0.01, 0.2, 0.03], [0.04, 0.02, 0.5]])  # (measures, estimates)
    together = family([estimate_of(of_estimate) for of_estimate in p.T])
    expected = np.array([plain_intervals.holm(of_measure) for of_measure in p.tolist()])
    assert np.stack([estimate.p for estimate in together], axis=1) == pytest.approx(expected)
    assert family([]) == []


def test_estimates_by_place_and_significant():
    several = Estimate(*np.arange(15.0).reshape(5, 3) / 100)
    assert several.at(1) == Estimate(0.01, 0.04, 0.07, 0.10, 0.13)
    assert several._replace(p=np.array([ALPHA, 0.0501, np.nan])).significant.tolist() == [
        True,
        False,
        False,
    ]


# By simulation


@pytest.mark.parametrize("unit, groups", CELLS)
@pytest.mark.parametrize("shape", AMOUNTS)
def test_intervals_hold_and_tests_reject_as_often_as_they_say(unit, groups, shape):
    """tests/benchmarks/intervals.py with fewer draws: within three standard errors."""
    scores, differences, falsely = covered(unit, groups, shape, clusters=30, draws=200, seed=1)
    assert min(scores, differences) >= 89
    assert falsely <= 10
