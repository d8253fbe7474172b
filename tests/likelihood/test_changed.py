"""In which sub-tokens the two texts of a minimal pair differ."""

from __future__ import annotations

import numpy as np
import pytest

from probing.instruments.likelihood.likelihood import changed
from probing.instruments.masking.fill import Copy


def text(*ids):
    """A text of which every sub-token but the first is scored, as a decoder does."""
    return Copy(np.array(ids), np.arange(1, len(ids)))


@pytest.mark.parametrize(
    "good, bad, of_good, of_bad",
    [
        ((9, 1, 2, 3), (9, 1, 5, 3), {2}, {2}),  # one is another
        # one is deleted: the next one tells that it is not there
        (
            (9, 1, 2, 3, 4),
            (9, 1, 3, 4),
            {2, 3},
            {2},
        ),
        ((9, 1, 2, 3), (9, 1, 3), {2, 3}, {2}),  # before the last one
        ((9, 1, 2), (9, 1), {2}, set()),  # the last one itself
        ((9, 1, 3), (9, 1, 2, 3), {2}, {2, 3}),  # one is inserted
        ((5, 9, 1, 3), (9, 1, 3), {1}, set()),  # the first one is deleted: it is not scored
        ((9, 1, 1, 3), (9, 1, 3), {2, 3}, {2}),  # of two that are alike
        ((9, 1, 2, 3, 4), (9, 1, 5, 6, 4), {2, 3}, {2, 3}),
    ],
)
def test_the_place_in_which_two_texts_differ(good, bad, of_good, of_bad):
    good, bad = text(*good), text(*bad)
    here, there = changed(good, bad)
    assert set(good.positions[here].tolist()) == of_good
    assert set(bad.positions[there].tolist()) == of_bad
