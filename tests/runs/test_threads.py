"""How many threads a probe computes with."""

from __future__ import annotations

import pytest
import torch

from probing import probe
from probing.instruments.attention.runner import Runner
from probing.runs import threads


@pytest.mark.parametrize(
    "seconds, expected",
    [
        ({8: 1.0, 4: 1.9}, 8),
        # a container that may use four cores, or others who use the rest
        (
            {8: 4.0, 4: 2.5, 2: 2.6},
            4,
        ),
        ({8: 9.0, 4: 7.0, 2: 5.0, 1: 1.0}, 1),
    ],
)
def test_the_fastest_number_of_threads(seconds, expected, monkeypatch):
    """As timed, and given back afterwards, also by an error; a number that the user named stays."""

    def timed(number):
        torch.set_num_threads(number)
        return seconds[number]

    monkeypatch.setattr(threads, "_seconds_of_layers", timed)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    try:
        with pytest.raises(KeyboardInterrupt), threads.useful_threads():
            assert torch.get_num_threads() == expected
            raise KeyboardInterrupt
        assert torch.get_num_threads() == 8
        monkeypatch.setenv("OMP_NUM_THREADS", "8")
        with threads.useful_threads():
            assert torch.get_num_threads() == 8
    finally:
        torch.set_num_threads(before)


def test_a_probe_computes_with_them(tiny_model, dataset_folder, monkeypatch):
    monkeypatch.setattr(
        threads, "_seconds_of_layers", lambda number: torch.set_num_threads(number) or number
    )
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    real, used = Runner.run, []
    monkeypatch.setattr(Runner, "run", lambda *a: used.append(torch.get_num_threads()) or real(*a))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        probe(tiny_model, dataset_folder, limit=3)
        assert (used, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_timing_takes_little():
    assert 0 < threads._seconds_of_layers(torch.get_num_threads()) < 5
