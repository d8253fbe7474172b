"""What heads find beside what masking costs: planted cases worked out by hand, and who is compared."""

from __future__ import annotations

import numpy as np
import pytest
from support.simulations.sizes import orders_claimed

from codesyntax_dataset.languages import LANGUAGES
from probing.evidence.masked import MaskedType
from probing.evidence.mechanism import LEAST, OneGuess, beside, correlate, unlike
from probing.instruments.masking.result import MaskSettings
from probing.runs.data import read_functions
from probing.runs.settings import Settings

SYNTAX = {"a": ["A:x->y", "A:y->z"], "b": ["B:x->y"], "c": ["C:x->y"], "d": ["D:x->y"], "e": ["E:x->y"]}
RELATIONS = [name for names in SYNTAX.values() for name in names]


def masked_type(places, effects, restored):
    """A node type in functions at these places, with these T1 - T0 and shares restored in T1."""
    t0 = np.full(len(places), 0.9)
    arms = {"jaccard": np.stack([t0 + effects, t0]), "restored": np.stack([restored, np.ones(len(places))])}
    return MaskedType(np.array(places), np.ones(len(places), int), arms, {}, {})


def of_ten(*hits):
    """The hits (10, R) in ten functions with one edge of each of R relations: so many in the first functions."""
    return (np.arange(10)[:, None] < hits).astype(int)


@pytest.fixture
def planted():
    """Functions 0 to 9 are on both sides. One more was probed, where heads find all, and one more was masked, where all
    is lost."""
    heads, baseline = of_ten(5, 7, 4, 8, 2, 10), of_ten(1, 3, 3, 1, 5, 4)
    more = np.ones((1, 6), int)
    guessed = OneGuess(
        RELATIONS,
        np.array([*range(10), 12]),
        np.concatenate([np.ones((10, 6), int), more]),
        np.concatenate([heads, more]),
        np.concatenate([baseline, more]),
    )
    effects = {"a": -0.3, "b": -0.2, "c": -0.1, "d": -0.4, "e": -0.25}
    restored = {"a": 0.5, "b": 0.5, "c": 0.9, "d": 0.1, "e": 0.7}
    places = [*range(10), 20]
    node_types = {
        name: masked_type(places, np.array([effects[name]] * 10 + [-0.9]), np.array([restored[name]] * 10 + [0]))
        for name in SYNTAX
    }
    return guessed, node_types


def test_a_planted_case_comes_back(planted):
    """Ranks of the pairs a to e by heads 3 2 4 1 5, by baseline 2 3 1 5 4, by effect 2 4 5 1 3: squared differences of
    10 and 34, so 1 - 6 * 10 / 120 and 1 - 6 * 34 / 120. What is restored ties a and b, ranks 2.5 2.5 5 1 4: Pearson's
    correlation of the ranks is 8.5 / sqrt(10 * 9.5) with heads, and -6.5 / sqrt(10 * 9.5) with the baseline."""
    mechanism = beside(*planted, SYNTAX)
    assert (mechanism.functions, mechanism.only_probed, mechanism.only_masked) == (10, 1, 1)
    assert [pair.node_type for pair in mechanism.pairs] == ["d", "a", "e", "b", "c"]
    by_name = {pair.node_type: pair for pair in mechanism.pairs}
    assert by_name["a"].relations == SYNTAX["a"]
    assert {(pair.probed, pair.masked) for pair in mechanism.pairs} == {(10, 10)}
    assert {name: pair.heads for name, pair in by_name.items()} == {"a": 60, "b": 40, "c": 80, "d": 20, "e": 100}
    assert {name: pair.baseline for name, pair in by_name.items()} == {"a": 20, "b": 30, "c": 10, "d": 50, "e": 40}
    assert by_name["a"].effect == pytest.approx(-0.3)
    assert by_name["d"].restored == pytest.approx(10)
    effect, restored = mechanism.correlations["effect"], mechanism.correlations["restored"]
    assert [one.estimate for one in effect] == pytest.approx([0.5, -0.7, 1.2])
    assert [one.estimate for one in restored] == pytest.approx([8.5 / 95**0.5, -6.5 / 95**0.5, 15 / 95**0.5])
    for one in (*effect[:2], *restored[:2]):
        assert one.low < one.estimate < one.high
    # a table of Spearman's coefficient: of the 120 orders of five, 54 correlate by 0.5 or more, and 28 by 0.7
    assert effect.heads.p == pytest.approx(max(54 / 120, restored.heads.p))
    assert effect.baseline.p == pytest.approx(28 / 120)


def test_pairs_in_few_functions_and_few_pairs_say_nothing(planted):
    guessed, node_types = planted
    few = masked_type(range(5), np.full(5, -0.5), np.zeros(5))
    mechanism = beside(guessed, {**node_types, "c": few}, SYNTAX)
    assert mechanism.correlations == {}
    assert {pair.node_type: pair.few_functions for pair in mechanism.pairs} == {
        name: name == "c" for name in ("c", "d", "a", "e", "b")
    }
    six = beside(guessed, {**node_types, "f": few}, {**SYNTAX, "f": ["A:x->y"]})
    assert len(six.pairs) == 6
    assert six.correlations == beside(guessed, node_types, SYNTAX).correlations


def test_what_one_side_lacks_is_no_pair(planted):
    """No nodes of the type, no such relation, or none of either in the functions that both have."""
    guessed, node_types = planted
    del node_types["a"]
    node_types["b"] = masked_type([20], np.zeros(1), np.ones(1))
    guessed.edges[:10, RELATIONS.index("D:x->y")] = 0
    mechanism = beside(guessed, node_types, {**SYNTAX, "c": ["Z:x->y"]})
    assert [pair.node_type for pair in mechanism.pairs] == ["e"]
    apart = beside(guessed, {"e": masked_type([30], np.zeros(1), np.ones(1))}, SYNTAX)
    assert (apart.functions, apart.only_probed, apart.only_masked, apart.pairs) == (0, 11, 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 6, 8, 11])
def test_a_correlation_has_the_p_and_interval_of_scipy_and_r(size):
    """p: scipy.stats.permutation_test over all orders; the interval: spearmanCI of R, method Bonett-Wright."""
    stats = pytest.importorskip("scipy.stats")
    one, other = np.random.default_rng(size).integers(0, 9, (2, size)).astype(float)
    one += other / 2
    found = correlate(one, other)

    def statistic(values, axis=-1):
        return np.apply_along_axis(lambda column: abs(stats.spearmanr(column, other).statistic), axis, values)

    assert found.estimate == pytest.approx(stats.spearmanr(one, other).statistic)
    resamples = np.inf if size < 7 else 2000
    expected = stats.permutation_test(
        (one,), statistic, permutation_type="pairings", n_resamples=resamples, alternative="greater", rng=1
    )
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9 if size < 7 else 0.04)
    r = found.estimate
    away = 1.959964 * np.sqrt((1 + r**2 / 2) / (size - 3))
    assert found[1:3] == pytest.approx(np.tanh(np.arctanh(r) + np.array([-away, away])), abs=1e-6)


def test_equal_numbers_have_no_correlation_and_equal_orders_an_interval():
    assert np.isnan(correlate(np.arange(5.0), np.ones(5))).all()
    same = correlate(np.arange(5.0), np.arange(5.0) ** 2)
    assert same[::3] == pytest.approx((1, 2 / 120)) and -0.2 < same.low < 0 and same.high == 1


@pytest.mark.slow
def test_independent_pairs_correlate_in_5_of_100_cases_and_planted_ones_are_found():
    """tests/benchmarks/sizes.py with fewer of everything."""
    assert all(orders_claimed(pairs, 300, seed=1) <= 7.5 for pairs in (6, 8))
    assert orders_claimed(8, 60, seed=1, noise=0.1) > 90


# Who is compared


def probe_settings(**changes):
    return Settings(
        **{
            "model": "m", "revision": "r", "data": "d@1", "labels": "abc", "config": "python", "split": "test",
            "direction": "head-to-dependent", "dtype": "float32", "max_length": 511, "also_fits": (), "limit": None,
        }
        | changes
    )  # fmt: skip


def mask_settings(**changes):
    return MaskSettings(
        **{
            "model": "m", "revision": "r", "data": "d@1", "labels": "abc", "config": "python", "split": "test",
            "protocol": "current", "node_types": ("if_statement",), "rate": 1.0, "control": "sub-tokens", "draws": 1, "seed": 0,
            "max_length": 511, "limit": None, "random_weights": False,
        }
        | changes
    )  # fmt: skip


def test_other_functions_are_refused():
    assert unlike(probe_settings(), "", mask_settings()) == ""
    assert "d@1" in unlike(probe_settings(), "", mask_settings(data="other@1"))
    assert "abc, and those that were masked xyz" in unlike(probe_settings(), "", mask_settings(labels="xyz"))


def test_a_part_of_the_same_functions_is_compared(dataset_folder):
    """The labels of the first functions follow from the data."""
    whole, part = (read_functions(str(dataset_folder), "python", "test", limit=limit).labels for limit in (None, 20))
    other = read_functions(str(dataset_folder), "python", "validation", limit=20).labels
    for probed, masked in (((whole, None), (part, 20)), ((part, 20), (whole, None))):
        settings = [{"labels": labels, "limit": limit} for labels, limit in (probed, masked)]
        assert unlike(probe_settings(**settings[0]), "", mask_settings(**settings[1]), dataset_folder) == ""
    assert "labels" in unlike(probe_settings(labels=whole), "", mask_settings(labels=other, limit=20), dataset_folder)


def test_default_node_types_make_enough_pairs():
    for name in ("python", "java"):
        assert len(set(LANGUAGES[name].node_types) & set(LANGUAGES[name].syntax)) >= LEAST
