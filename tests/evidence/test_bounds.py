"""What differences between two runs may gain a number, and what is added to its bound."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from probing.evidence.reruns import PreferenceVerifier
from probing.evidence.verify import (
    ROUNDING,
    Influence,
    RowComparison,
    Verifier,
    draw,
    gained_by_rounding,
)
from probing.instruments.likelihood.result import SCORES, PreferenceLedger


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

    def __init__(self, gained):
        self.experiment = SimpleNamespace(
            functions=[SimpleNamespace(index=number) for number in range(10)]
        )
        self.points = np.full(10, gained)

    def influence(self):
        points = np.full(10, 0.1)
        return Influence(np.arange(10), {"mean": points}, points)

    def compare(self, functions):
        return RowComparison("", True, {"mean": self.points, "another mean": self.points})


def test_what_rounding_may_gain_is_added_to_the_bound_of_its_mean():
    check, drawn = Compared(0.0).again(None, True, np.random.default_rng(0))
    assert check.passed and drawn.bounds == {"mean": pytest.approx(ROUNDING)}


@pytest.mark.parametrize("gained, passed", [(0.0099, True), (0.0101, False)])
def test_a_number_gains_no_more_than_rounding_explains(gained, passed):
    """Ten functions together: 0.1 points."""
    check, _ = Compared(gained).again(None, True, np.random.default_rng(0))
    assert (check.passed, "differences favour mean by" in check.finding) == (passed, not passed)


def test_what_pairs_add_is_the_mean_over_phenomena_with_25_pairs():
    """By hand: of 25 pairs of one all are right, of 24 of another none."""
    rows = np.zeros(49, PreferenceLedger.ROW)
    rows["function"], rows["read"] = np.arange(49), 1
    rows["phenomenon"] = [0] * 25 + [1] * 24
    for score in SCORES:
        rows[f"good_{score}"], rows[f"bad_{score}"] = -rows["phenomenon"], rows["phenomenon"] - 1
    added = PreferenceVerifier.published(None, PreferenceLedger(["a", "b"], rows, {}))
    assert [points.sum() for points in added.values()] == pytest.approx([100, 100])


def test_somebody_looks_at_the_function_that_weighs_most():
    """However little it weighs."""
    points = np.array([1e-6, 3e-6, 2e-6])
    influence = Influence(np.array([4, 5, 6]), {"mean": points}, points)
    assert all(5 in draw(influence, None, np.random.default_rng(seed)).places for seed in range(20))
