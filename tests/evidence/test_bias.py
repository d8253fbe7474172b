"""What differences between two runs may be: the size and the power of the test that rounding takes no side, and bounds."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from probing.evidence.verify import (
    BIAS,
    ROUNDING,
    Influence,
    RowComparison,
    Verifier,
    biased,
    draw,
    gained_by_rounding,
)

NUMBERS = 40  # that are tested together


def drawn(rng: np.random.Generator, kind: str, functions: int) -> np.ndarray:
    """Honest differences (functions,): as likely for the claim as against it."""
    size = {
        "normal": np.abs(rng.normal(size=functions)),
        "equal": np.ones(functions),
        "few": rng.random(functions) < 0.1,
        "heavy": rng.pareto(1.5, functions),
    }[kind]
    return size * rng.choice([-1, 1], functions)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["normal", "equal", "few", "heavy"])
@pytest.mark.parametrize("functions", [6, 30, 200])
def test_honest_differences_are_refused_as_seldom_as_stated(kind, functions):
    """Of 2,000 verifications of 40 numbers each, at most as many as BIAS says, by three standard deviations."""
    rng = np.random.default_rng(functions)
    refused = 0
    for _ in range(2000):
        signed = {str(number): drawn(rng, kind, functions) for number in range(NUMBERS)}
        refused += biased(signed) is not None
    assert refused <= 2000 * BIAS + 3 * np.sqrt(2000 * BIAS)


@pytest.mark.parametrize(("functions", "found"), [(12, 0.0), (20, 0.0), (30, 1.0), (200, 1.0)])
def test_differences_on_one_side_are_found_from_some_functions_on(functions, found):
    """The limit is 4.6 standard deviations of 40 numbers, that is 22 functions of equal differences on one side."""
    rng = np.random.default_rng(0)
    honest = {str(number): drawn(rng, "normal", functions) for number in range(NUMBERS - 1)}
    assert float(biased({**honest, "forged": np.full(functions, 0.01)}) is not None) == found


def test_one_side_among_honest_differences_is_found_half_the_time_where_it_is_as_large():
    """Of 200 functions with normal differences: a shift by a third of a standard deviation, whose sum is 4.7 of them."""
    rng = np.random.default_rng(0)
    found = [
        biased({"forged": rng.normal(1 / 3, 1, 200), **dict.fromkeys("abc", np.ones(1))})
        for _ in range(200)
    ]
    assert 0.4 < np.mean([bias is not None for bias in found]) < 0.95


def test_what_differences_gain_is_bounded_by_those_against():
    """Nobody loses anything: no more than ROUNDING. As much for as against: three deviations more."""
    once, none = np.ones(3), np.zeros(1)
    assert gained_by_rounding(np.array([0.2, *none, *none]), once) == pytest.approx((0.2, ROUNDING))
    both = np.array([0.2, -0.2, 0.0])
    accepted = ROUNDING + 3 * np.sqrt(2) * 0.2
    assert gained_by_rounding(both, once) == pytest.approx((0.0, accepted))
    twice = np.array([0.5, 1, 1])  # a function that stands for two
    assert gained_by_rounding(both, twice)[0] == pytest.approx(0.2)


class Compared(Verifier):
    """Ten functions, each of which may have raised a mean by a tenth of a point, and what is found of them again."""

    def __init__(self, gained: float):
        self.experiment = SimpleNamespace(
            functions=[SimpleNamespace(index=number) for number in range(10)]
        )
        self.points = np.full(10, gained)

    def influence(self) -> Influence:
        points = np.full(10, 0.1)
        return Influence(np.arange(10), {"mean": points}, {"any relation": [points]}, points)

    def compare(self, functions) -> RowComparison:
        return RowComparison("", True, {}, {"mean": self.points, "another mean": self.points})


def test_what_rounding_may_gain_is_added_to_the_bound_of_its_mean():
    check, drawn = Compared(0.0).again(None, True, np.random.default_rng(0))
    assert check.passed and drawn.bounds == {"mean": pytest.approx(ROUNDING), "any relation": 0.0}


@pytest.mark.parametrize(("gained", "passed"), [(0.0099, True), (0.0101, False)])
def test_a_number_gains_no_more_than_rounding_explains(gained, passed):
    """Ten functions together: 0.1 points."""
    check, _ = Compared(gained).again(None, True, np.random.default_rng(0))
    assert (check.passed, "differences favour mean by" in check.finding) == (passed, not passed)


def test_somebody_looks_at_the_function_that_weighs_most():
    """However little it weighs."""
    points = np.array([1e-6, 3e-6, 2e-6])
    influence = Influence(np.array([4, 5, 6]), {"mean": points}, {}, points)
    assert all(5 in draw(influence, None, np.random.default_rng(seed)).places for seed in range(20))
