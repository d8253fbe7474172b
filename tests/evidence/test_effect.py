"""Effects: by hand, against the study's and other estimators' figures on the reference data, and by simulation."""

from __future__ import annotations

import itertools
import json
from statistics import NormalDist

import numpy as np
import pytest
from support.simulations.effect_coverage import coverage, draw_unpaired
from support.simulations.sizes import (
    DIFFERENCES,
    candidates_chosen,
    fillers_beaten,
    heads_differ,
    heads_serve,
    paired_rejects,
)

from codesyntax_dataset.errors import ArgumentError
from probing.evidence.effect import paired, published, unpaired
from probing.paper.masking_study import COMMON_CAUSES
from probing.stats.statistics import holm, skew_corrected

SIX = [f"z_{'n_whitespaces' if name == 'words' else name}" for name in COMMON_CAUSES]
MODELS = {"six_confounders": SIX, "seven_confounders": ["z_n_ast_errors", *SIX]}


@pytest.fixture(scope="module")
def causal(shared):
    return json.loads((shared / "data/syntaxeval/causal.json").read_bytes())


@pytest.fixture(scope="module")
def twins(causal):
    """T1 and T0 of the 200 functions of the paired data."""
    data = causal["datasets"]["twins"]
    arms = [{unit: y for unit, t, y in zip(data["unit"], data["t"], data["y"]) if t == arm} for arm in (1, 0)]
    assert list(arms[0]) == list(arms[1]) == sorted(arms[0])
    return [np.array(list(arm.values())) for arm in arms]


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


def test_paired_is_the_mean_difference_of_the_reference(causal, twins):
    (found,) = paired({"one": twins[0]}, {"one": twins[1]}).values()
    expected = causal["plain"]["twins"]["paired"]
    assert found.functions == 200
    assert found.effect.estimate == pytest.approx(expected["mean"], abs=1e-9)
    assert found.effect[1:] == pytest.approx(expected["bootstrap500_95"], abs=0.002)  # of other random numbers
    assert found.effect.high - found.effect.low == pytest.approx(2 * 1.96 * expected["se"], rel=0.05)
    assert found.p == 1 / 10_000


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


# As published


def test_published_is_half_the_mean_and_half_the_second():
    assert published([1.0, 0.5, 0.0], [1.0, 0.0, 0.25]) == pytest.approx((0.25 / 3 + 0.5) / 2)


def test_published_is_what_dowhy_computes(causal, twins):
    """Both versions, with six and with seven confounders: with twins the confounders change nothing."""
    assert published(*twins) == pytest.approx(-0.0856465700, abs=1e-9)
    for version, model in itertools.product(("dowhy_0_10", "dowhy_0_14"), MODELS):
        expected = causal[version]["results"]["twins"][model]["propensity_score_matching/ate"]
        assert published(*twins) == pytest.approx(expected, abs=1e-6)


def test_published_depends_on_the_order_and_the_default_does_not(causal, twins):
    """DoWhy's effects after reordering, from +0.01 to -0.28, are those with another function second."""
    possible = []
    for second in range(200):
        order = [*np.delete(np.arange(200), second)[:1], second, *np.delete(np.arange(200), second)[1:]]
        possible.append(published(*(arm[order] for arm in twins)))
    for version in ("dowhy_0_10", "dowhy_0_14"):
        reordered = causal[version]["results"]["twins"]["reordered_six"]
        assert (round(max(reordered), 2), round(min(reordered), 2), len(reordered)) == (0.01, -0.28, 10)
        for value in reordered:
            assert np.abs(np.array(possible) - value).min() < 1e-6
    assert max(possible) - min(possible) > 0.3  # of a true difference of -0.13
    turned = [arm[::-1] for arm in twins]
    estimates = [paired({"a": one}, {"a": other})["a"].effect.estimate for one, other in (twins, turned)]
    assert estimates[0] == pytest.approx(estimates[1], abs=1e-12)


def test_published_table_follows_from_its_means_and_second_functions(causal):
    """All 33 effects of the paper, from arms with the printed means and the implied difference of the second function.

    Of one of them the second function was printed: its T1, with the T0 that the three effects imply alike.
    """
    checked = causal["published_table_check"]
    compared = 0
    for node_type, of_type in checked["by_type"].items():
        for similarity in ("jaccard", "levenshtein", "sorensen_dice"):
            cell, functions = of_type[similarity], of_type["functions"]
            second = cell["implied_difference_of_second_function"]
            if node_type == checked["direct_evidence"]["node_type"]:
                printed, implied = (
                    checked["direct_evidence"][k][similarity] for k in ("second_function_T1", "implied_T0")
                )
                assert printed - implied == pytest.approx(second, abs=1e-9)
            differences = np.full(functions, (functions * cell["difference"] - second) / (functions - 1))
            differences[1] = second
            assert published(differences, np.zeros(functions)) == pytest.approx(cell["published_effect"], abs=1e-9)
            compared += 1
    assert compared == 33
    jaccard = checked["direct_evidence"]["implied_T0"]["jaccard"]
    assert 2 * jaccard / (1 + jaccard) == pytest.approx(
        checked["direct_evidence"]["implied_T0"]["sorensen_dice"], abs=0.001
    )


# Unpaired


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["twins", "confounded"])
def test_unpaired_equals_the_reference(causal, name, model):
    data, expected = causal["datasets"][name], causal["plain"][name][model]
    found = unpaired(data["y"], data["t"], {column: data[column] for column in MODELS[model]})
    assert found.weighted.estimate == pytest.approx(expected["weighting"]["ate"], abs=1e-6)
    assert found.doubly_robust.estimate == pytest.approx(expected["doubly_robust_ate"], abs=1e-6)
    width = found.doubly_robust.high - found.doubly_robust.low
    assert width == pytest.approx(2 * 1.959963985 * expected["doubly_robust_se"], abs=1e-6)
    lowest, highest = zip(found.overlap.treated, found.overlap.control)
    assert [min(lowest), max(highest)] == pytest.approx(expected["propensity_min_max"], abs=1e-6)
    dowhy = causal["dowhy_0_14"]["results"][name][model]["propensity_score_weighting/ate"]
    assert found.weighted.estimate == pytest.approx(dowhy, abs=2e-4)  # its solver stops early
    # the placebo is random: as wide as the error, and around 0
    assert found.placebo.sd == pytest.approx(expected["placebo_refit_weighting"]["sd"], rel=0.25)
    assert abs(found.placebo.mean) < 3 * found.placebo.sd / 10
    assert found.placebo.covered > 0.88
    if name == "confounded":
        assert found.naive.estimate == pytest.approx(causal["plain"][name]["naive_difference"], abs=1e-9)
        assert found.doubly_robust.low < causal["plain"][name]["true_effect"] < found.doubly_robust.high


def binary(cells):
    """Scores, arms and a confounder of 0 and 1, from (confounder, treated) -> scores."""
    rows = [(score, t, z) for (z, t), scores in cells.items() for score in scores]
    scores, treated, confounder = (np.array(column, float) for column in zip(*rows))
    return scores, treated, {"z": confounder}


def test_unpaired_by_hand():
    """Of a confounder with two values linear models hold everything: the doubly robust effect is the mean over its
    values, 6 and 8 rows, of the difference in each: 0.5 - 0.4 and 0.9 - 0.6. The naive difference is 0.74 - 0.45.
    """
    cells = {
        (0, 1): [0.4, 0.6],
        (0, 0): [0.3, 0.4, 0.4, 0.5],
        (1, 1): [0.8, 0.9, 1.0, 0.9, 0.9, 0.9],
        (1, 0): [0.5, 0.7],
    }
    found = unpaired(*binary(cells))
    assert found.naive.estimate == pytest.approx((2 * 0.5 + 6 * 0.9) / 8 - (4 * 0.4 + 2 * 0.6) / 6)
    assert found.doubly_robust.estimate == pytest.approx(6 / 14 * 0.1 + 8 / 14 * 0.3)
    # the penalty pulls the propensities, 2 of 6 and 6 of 8 without it, together; their mean is that of the arms
    low, high = found.overlap.treated
    assert (low, high) == found.overlap.control and 2 / 6 < low < high < 6 / 8
    assert 6 * low + 8 * high == pytest.approx(8)
    assert found.overlap.clipped == 0
    before, after = found.overlap.balance["z"]
    assert before == pytest.approx((6 / 8 - 2 / 6) / np.sqrt((6 / 8 * 2 / 8 + 2 / 6 * 4 / 6) / 2))
    weights = [(2, 1 / low), (6, 1 / high)]
    assert found.overlap.effective[0] == pytest.approx(
        sum(n * weight for n, weight in weights) ** 2 / sum(n * weight**2 for n, weight in weights)
    )
    of_one = (2 * 0.5 / low + 6 * 0.9 / high) / (2 / low + 6 / high)
    of_other = (4 * 0.4 / (1 - low) + 2 * 0.6 / (1 - high)) / (4 / (1 - low) + 2 / (1 - high))
    assert found.weighted.estimate == pytest.approx(of_one - of_other)
    shares = (6 / high) / (2 / low + 6 / high), (2 / (1 - high)) / (4 / (1 - low) + 2 / (1 - high))
    assert after / before == pytest.approx((shares[0] - shares[1]) / (6 / 8 - 2 / 6))


@pytest.mark.parametrize("wrong", ["propensity", "scores"])
def test_doubly_robust_needs_only_one_right_model(wrong):
    """A score, or the odds, that depend on the square of the confounder, which is no part of the linear models."""
    rng = np.random.default_rng(4)
    z = rng.normal(0, 1, 20_000)
    square = z**2 - 1 + z
    treated = rng.random(len(z)) < 1 / (1 + np.exp(-0.8 * (np.clip(square, -2, 2) if wrong == "propensity" else z)))
    scores = 0.3 * treated + 0.4 * (square if wrong == "scores" else z) + rng.normal(0, 0.1, len(z))
    found = unpaired(scores, treated, {"z": z}, placebos=2)
    assert abs(found.naive.estimate - 0.3) > 0.1
    assert found.doubly_robust.estimate == pytest.approx(0.3, abs=0.02)
    assert (abs(found.weighted.estimate - 0.3) > 0.02) == (wrong == "propensity")


def test_unpaired_does_not_depend_on_order_or_names():
    rng = np.random.default_rng(5)
    z = {name: rng.normal(0, 1, 80) for name in ("one", "other")}
    treated = rng.random(80) < 1 / (1 + np.exp(-z["one"]))
    scores = rng.random(80)
    found = unpaired(scores, treated, z)
    assert found == unpaired(scores.tolist(), treated.astype(int).tolist(), z)
    order = rng.permutation(80)
    turned = unpaired(scores[order], treated[order], {name: z[name][order] for name in ("other", "one")})
    for one, other in zip(found[:3], turned[:3]):
        assert other == pytest.approx(one, abs=1e-9)
    assert turned.overlap.balance["one"] == pytest.approx(found.overlap.balance["one"], abs=1e-9)
    swapped = unpaired(scores, ~treated, z)
    assert swapped.doubly_robust.estimate == pytest.approx(-found.doubly_robust.estimate, abs=1e-9)


@pytest.mark.slow
def test_intervals_are_as_wide_as_estimates_vary():
    """Over 150 draws of 2,000 functions; with a few hundred, the weighted one is too narrow by a sixth."""
    rng = np.random.default_rng(7)
    found = [unpaired(*draw_unpaired(rng, 2000, 0.2), placebos=2)[:3] for _ in range(150)]
    estimate, low, high = np.moveaxis(np.array(found), -1, 0)  # (draws, estimates) each
    assert (high - low).mean(axis=0) / 2 / 1.96 == pytest.approx(estimate.std(axis=0), rel=0.15)


def test_poor_overlap_shows():
    """Odds that grow twentyfold with each standard deviation: rows are clipped, and worth less."""
    rng = np.random.default_rng(6)
    z = rng.normal(0, 1, 300)
    treated = rng.random(300) < 1 / (1 + np.exp(-3 * z))
    found = unpaired(rng.random(300), treated, {"z": z}, placebos=2)
    assert found.overlap.clipped > 60
    assert sum(found.overlap.effective) < 200
    assert found.overlap.control[0] < 0.05 and found.overlap.treated[1] > 0.95


# What cannot be estimated

ARMS = [1, 0] * 10
VARIES = {"z": [0, 0, 1, 1] * 5}


@pytest.mark.parametrize(
    "scores, treated, confounders, message",
    [
        ([0.5] * 19 + [None], ARMS, VARIES, "scores has 1 of 20 values that are missing or not finite: leave them out"),
        ([0.5] * 20, ARMS, {"z": [np.inf, *[1] * 19]}, "z has 1 of 20 values that are missing"),
        ([0.5] * 20, [1] * 20, VARIES, "all 20 rows are in one arm"),
        ([0.5] * 20, [2, *ARMS[1:]], VARIES, "treated has other values than 0 and 1"),
        ([0.5] * 20, ARMS[1:], VARIES, "treated has 19 values for 20 scores"),
        ([0.5] * 20, ARMS, {"z": [1, 2]}, "z has 2 values for 20 scores"),
        ([0.5] * 20, ARMS, {}, "there are no confounders to adjust for"),
        ([0.5] * 20, ARMS, {"z": ["long", *[1] * 19]}, r"z: expected numbers, got \['long', 1"),
        ([[0.5] * 20], ARMS, VARIES, r"scores has the shape \(1, 20\), expected one dimension"),
        ([0.5] * 20, ARMS, {"z": [5 + t for t in ARMS]}, "10 treated rows cannot hold .* do not vary"),
        ([0.5] * 20, ARMS, {"z": [10 * t + n % 3 for n, t in enumerate(ARMS)]}, "the confounders separate the arms"),
        (
            [0.5] * 20,
            [1, 1, *[0] * 18],
            {"z": range(20), "y": [0, 1] * 10},
            "the 2 treated rows cannot .* too few for 2",
        ),
    ],
)
def test_rows_that_cannot_be_compared_are_refused(scores, treated, confounders, message):
    with pytest.raises(ArgumentError, match=message):
        unpaired(scores, treated, confounders)


def test_pairs_that_cannot_be_compared_are_refused():
    with pytest.raises(ArgumentError, match="only one arm has b: pass the scores of every node type in both"):
        paired({"a": [1], "b": [1]}, {"a": [1]})
    with pytest.raises(ArgumentError, match="a has 2 treated and 1 control scores"):
        paired({"a": [1, 2]}, {"a": [1]})
    with pytest.raises(ArgumentError, match="a has no scores"):
        paired({"a": []}, {"a": []})
    with pytest.raises(ArgumentError, match="a has 1 of 2 values that are missing"):
        paired({"a": [1, np.nan]}, {"a": [1, 2]})
    with pytest.raises(ArgumentError, match="needs at least two functions: it depends on the second"):
        published([1], [0])
    with pytest.raises(ArgumentError, match="placebos is 1, expected at least 2"):
        unpaired([0.5] * 20, ARMS, VARIES, placebos=1)
    assert paired({}, {}) == {}


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    """tests/benchmarks/effects.py with fewer of everything: about 95 %, within what so few simulations vary by."""
    found = coverage(simulations=60, functions=200, strength=0.5, seed=1)
    assert found.naive_bias < -0.1 and found.naive < 20
    assert abs(found.doubly_robust_bias) < 0.01
    shares = (found.doubly_robust, found.placebo, found.paired)
    assert min(shares) >= 88 and np.mean(shares) <= 98.5
    assert found.falsely_found <= 12


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
