"""The text that a filler leaves in place of masked sub-tokens."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from probing.instruments.masking.restore import filled_with

CODE = "ab 🙂 c"
PLACES = np.array([[0, 2], [3, 4], [3, 4], [4, 4], [5, 6]])
"""Of sub-tokens: `ab`, both halves of one character, one without a character, and `c`."""


@pytest.mark.parametrize(
    "positions, expected",
    [
        ([0], "x 🙂 c"),
        ([1, 2], "ab x c"),
        ([1], "ab x c"),
        ([3], "ab 🙂 c"),
        ([0, 1, 2, 3, 4], "x x x"),
        ([], "ab 🙂 c"),
    ],
)
def test_a_character_of_several_sub_tokens_is_filled_once(positions, expected):
    function = SimpleNamespace(code=CODE, place=PLACES)
    assert filled_with("x", function, np.array(positions, int)) == expected
