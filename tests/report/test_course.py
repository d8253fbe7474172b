"""The course of a training from its log."""

from __future__ import annotations

import numpy as np
import pytest

import probing
from codesyntax_dataset.errors import ArgumentError
from probing.report.figures import to_svg


def log(*heads: float) -> list[dict]:
    """The history of a training with one evaluation every 100 steps, beside the loss."""
    entries = [
        {"step": 100 * number, "syntax/held_out": score, "syntax/best_rule": 40.0}
        for number, score in enumerate(heads)
    ]
    return [{"step": 50, "loss": 1.0}, *entries, {"step": 200, "loss": 0.5}]


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ((0.0, 41.0, 39.9, 45.55, 50.0), "pass it from step 300 on"),
        ((0.0, 41.0, 40.0), "do not pass it"),
        ((41.0, 42.0), "pass it from step 0 on"),
    ],
)
def test_the_sentence_says_from_which_step_on_heads_are_above_the_rule(heads, said):
    sentence = probing.course(log(*heads)).sentence
    assert sentence.endswith(f"they {said}.")
    assert (
        f"step {100 * (len(heads) - 1):,} the best heads find {heads[-1]:.1f} %" in sentence
        and "40.0 %" in sentence
    )


def test_what_a_loop_logged_in_another_order_and_twice():
    history = [
        {"step": 20, "syntax/held_out": 3.0, "syntax/preference": 70.0},
        *log(1.0),
        {"step": 20, "syntax/held_out": 2.0, "syntax/preference": 71.0},
    ]
    course = probing.course(history)
    assert course.steps == [0, 20]
    assert course.numbers["held_out"].tolist() == [1.0, 2.0]
    assert np.array_equal(course.numbers["preference"], [np.nan, 71.0], equal_nan=True)


@pytest.mark.slow
def test_the_picture_has_scores_and_baselines():
    history = [
        {**entry, "syntax/preference": 70.0} if "loss" not in entry else entry
        for entry in log(1.0, 20.0, 30.0)
    ]
    figure = probing.course(history).plot()
    lines = {
        line.get_label(): list(line.get_ydata()) for axis in figure.axes for line in axis.lines
    }
    assert (
        lines["heads, held-out"] == [1.0, 20.0, 30.0]
        and lines["best offset or keyword"] == [40.0] * 3
    )
    assert lines["minimal pairs"] == [70.0] * 3
    assert "heads, held-out" in to_svg(figure)


def test_a_log_without_numbers():
    with pytest.raises(ArgumentError, match="none of 1 entries has syntax/held_out"):
        probing.course([{"step": 1, "loss": 2.0}])
