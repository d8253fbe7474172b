"""What is learned of planted attention: what it adds is known."""

from __future__ import annotations

import numpy as np
import pytest
from support.simulations.planted_attention import RELATION, informing, noise

from probing.instruments.information import learn
from probing.instruments.information.hits import hits
from probing.instruments.information.learn import drawn, folds, gains_enough
from probing.report.information import bits_added
from probing.runs.experiment import run

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_self_check(monkeypatch):
    monkeypatch.setattr("probing.models.selfcheck.examine_lengths", lambda *_: None)
    monkeypatch.setattr("probing.runs.experiment._slot", lambda _: None)


def knowing(layers, heads, among):
    """Noise, but one head looks at `among` tokens alike, of which the dependent is one."""

    def attend(tokens, edges, rng):
        maps = noise(layers, heads)(tokens, edges, rng)
        for head, first in edges:
            others = np.setdiff1d(np.arange(tokens), [head, first])
            maps[1, 2, head] = 0
            maps[1, 2, head, [first, *rng.choice(others, among - 1, replace=False)]] = 1 / among
        return maps

    return attend


def copying(tokens, edges, rng):
    """Twelve heads, each of which looks a fixed distance back or ahead."""
    places = np.arange(tokens)
    maps = np.zeros((3, 4, tokens, tokens))
    for number in range(12):
        distance = number - 6 + (number >= 6)
        maps[number // 4, number % 4, places, (places + distance) % tokens] = 1
    return maps


def found(experiment):
    result = run(experiment)
    return result, result.relations[RELATION], bits_added(hits(result)["bits"])[RELATION]


def test_a_head_that_knows_adds_its_entropy(monkeypatch):
    """Of 16 candidates, which words leave open (4 bits), 4 are left: 2 bits are added."""
    monkeypatch.setattr(learn, "LEAST_MISSED", 400)  # of 480 edges, words find one of 16
    result, relation, adds = found(
        informing(knowing(3, 4, among=4), functions=40, tokens=17, edges=12)
    )
    assert relation.words.bits == pytest.approx(4, abs=0.1)
    assert adds.value == pytest.approx(2, abs=0.1)
    assert adds.high - adds.low < 0.2
    assert relation.both.bits == pytest.approx(2, abs=0.1)
    learned = result.learned[RELATION]
    assert learned.best == (1, 0, 2)
    assert relation.best == pytest.approx(25, abs=5)


@pytest.mark.long
def test_a_head_that_knows_all_adds_all_that_is_open():
    _, relation, adds = found(informing(knowing(2, 3, among=1), functions=40, tokens=17, edges=12))
    assert adds.value == pytest.approx(relation.words.bits, abs=0.1)
    assert relation.both.uas == relation.best == 100


@pytest.mark.long
@pytest.mark.parametrize("distance", [None, 3])
def test_heads_that_copy_offsets_add_nothing(distance):
    """Neither where dependents are anywhere, nor where an offset finds them all, which the heads then find, too."""
    _, relation, adds = found(
        informing(copying, functions=40, tokens=17, edges=12, distance=distance)
    )
    assert adds.low <= 0.005
    assert adds.high >= -0.005
    assert abs(adds.value) < 0.01
    assert distance is None or relation.best == relation.words.uas == relation.both.uas == 100


def test_where_words_miss_too_little_attention_is_not_learned_beside_them(monkeypatch):
    """Another repository may break the rule: dependents are 3 tokens after their heads in validation, and 4 in test."""
    experiment = informing(copying, functions=20, tokens=17, edges=12, distance=3, later=1)
    assert found(experiment)[2][:3] == (0, 0, 0)
    monkeypatch.setattr("probing.instruments.information.learn.LEAST_MISSED", 0)
    experiment = informing(copying, functions=20, tokens=17, edges=12, distance=3, later=1)
    assert found(experiment)[2].high < 0


@pytest.mark.long
def test_many_heads_of_noise_add_nothing():
    _, relation, adds = found(informing(noise(30, 9), functions=40, tokens=17, edges=12))
    assert adds.low <= 0 <= adds.high
    assert abs(adds.value) < 0.02
    assert relation.words.bits == pytest.approx(4, abs=0.1)


def test_the_rival_is_the_same_for_models_of_all_sizes():
    """Of 2 attention weights a pair and of 180: the same ranks and bits of words and positions, to the last digit."""

    def result(layers, heads):
        attend = noise(layers, heads)
        return run(
            informing(
                lambda tokens, edges, _: attend(tokens, edges, np.random.default_rng(tokens)),
                functions=20,
                tokens=17,
                edges=6,
            )
        )

    small, large = result(1, 1), result(10, 9)
    for name in ("function", "edge", "first", "dependents", "words_rank", "words_bits"):
        assert (small.ledger.rows[name] == large.ledger.rows[name]).all()
    assert len(small.ledger) == 120
    assert small.run.heads != large.run.heads


def test_a_gain_is_larger_than_a_standard_error_over_functions():
    """Of four functions that gain 1, 2, 3 and x: the sum and, by hand, the root of the sum of squared deviations."""
    function = np.array([5, 5, 9, 9, 2, 2, 4, 4])

    def gained(*sums):
        return gains_enough(np.repeat(sums, 2) / 2, function)

    assert gained(1, 2, 3, 4)
    assert gained(1, 2, 3, -2) == (4 > np.sqrt(0 + 1 + 4 + 9))
    assert not gained(1, 2, 3, -3)
    assert not gained(0, 0, 0, 0)
    assert not gained(-1, -1, -1, -1)


def test_whole_groups_are_in_one_fold():
    fold = folds(np.array(["a"] * 5 + ["b"] * 3 + ["c"] * 3 + ["d"] * 2))
    assert [
        len({*fold[part]}) for part in (slice(5), slice(5, 8), slice(8, 11), slice(11, 13))
    ] == [1] * 4
    assert sorted(np.bincount(fold).tolist()) == [3, 5, 5]
    assert folds(np.array(["a", "a"])) is None


@pytest.mark.parametrize("repositories, groups", [(5, 5), (2, 2), (1, 12)])
def test_folds_share_no_repository(repositories, groups, monkeypatch):
    """Only the functions of one repository are taken apart."""
    functions = informing(noise(1, 1), functions=12, tokens=17, edges=4).probing.encoded.functions
    read, *_ = drawn(functions, 10**6)
    folds_of = []
    monkeypatch.setattr(learn, "sample_relation", lambda *given: folds_of.append(given[2]))
    names = [f"repository {number % repositories}" for number in range(12)]
    assert learn.learn(None, read, {}, names, None) == {}
    (fold,) = folds_of
    numbers = np.repeat([function.index for function in read], [len(one.edges) for one in read])
    group = numbers % repositories if repositories > 1 else numbers
    assert len(fold) == len(numbers)
    assert {*fold.tolist()} == {*range(min(groups, learn.FOLDS))}
    assert len({*zip(group.tolist(), fold.tolist())}) == groups


def test_of_one_function_nothing_is_learned(monkeypatch):
    monkeypatch.setattr(learn, "sample_relation", lambda *_: pytest.fail("sampled"))
    functions = informing(noise(1, 1), functions=1, tokens=17, edges=4).probing.encoded.functions
    read, *_ = drawn(functions, 10**6)
    assert learn.learn(None, read, {}, ["repository"], None) == {}


def test_edges_are_drawn_by_function_and_the_same_for_all_models():
    functions = informing(noise(1, 1), functions=30, tokens=17, edges=12).probing.encoded.functions
    few, same, left_out = drawn(functions, 100)
    assert sum(len(function.edges) for function in few) == 100
    assert (same, left_out) == (0, 260)
    assert sorted(len(function.edges) for function in few)[1:] == [12] * 8
    without = [function for function in functions if function.index != few[0].index]
    again = {function.index for function in drawn(without, 80)[0]}
    assert again <= {function.index for function in few}
    everything, _, none = drawn(functions, 10**6)
    assert none == 0
    assert [function.index for function in everything] == list(range(30))
