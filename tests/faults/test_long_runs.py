"""The long runs of `python tests/faults`, in short."""

from __future__ import annotations

import random

import corruptions
import kills
import pytest
from world import world

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def of():
    with world() as of:
        yield of


def test_kills_are_survived(of):
    assert kills.trials(of, random.Random(1), 6, ("build", "mask", "board")).total() == 6


def test_corruptions_change_no_number(of):
    of.again()
    quick = ("datasets", "datasets to be pushed", "error analyses", "gz", "zip", "caches")
    assert corruptions.trials(of, random.Random(1), 100, quick)["refused"] > 50
