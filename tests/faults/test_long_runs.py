"""The long runs of `python tests/faults`, in short."""

from __future__ import annotations

import kills
import pytest

pytestmark = pytest.mark.slow


def test_kills_are_survived():
    cheap = {name: kills.COMMANDS[name] for name in ("build", "mask", "board")}
    assert kills.run(seed=1, times=6, commands=cheap).tried == 6
