"""Progress where there is no terminal: lines on standard error."""

from __future__ import annotations

import re

import numpy as np
import pytest

from probing.runs.experiment import cost
from probing.runs.progress import EVERY, progress


def lines(capsys):
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err
    return err.splitlines()


def test_a_line_at_the_start_and_at_the_end(capsys):
    with progress(total=500, desc="probing tiny", unit="function") as bar:
        for _ in range(500):
            bar.update()
    first, last = lines(capsys)
    assert first.startswith("probing tiny: 0 of 500 functions, ")
    assert last.startswith("probing tiny: 500 of 500 functions, ")


def test_a_line_every_thirty_seconds(capsys):
    bar = progress(total=100, desc="probing tiny", unit="function")
    now = bar.start_t
    bar._time = lambda: now
    for _ in range(100):
        now += 1
        bar.update()
    bar.close()
    counts = [int(re.search(r": (\d+) of 100", line)[1]) for line in lines(capsys)]
    assert counts == [0, EVERY, 2 * EVERY, 3 * EVERY, 100]


def test_nothing_where_it_is_switched_off(capsys, monkeypatch):
    with progress(total=5, desc="probing", unit="function", main=False) as bar:
        bar.update()
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert [*progress([1, 2], desc="probing", unit="function")] == [1, 2]
    assert lines(capsys) == []


def test_a_run_that_fails_says_how_far_it_came(capsys):
    with pytest.raises(ValueError), progress(total=5, desc="probing", unit="function") as bar:
        bar.update(2)
        raise ValueError
    assert lines(capsys)[-1].startswith("probing: 2 of 5 functions")


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("order", ["longest first", "in parts of 64"])
def test_the_time_left_is_by_costs(order, share):
    """Functions of 20 to 511 sub-tokens, of which most are short, take as long as their costs say."""
    lengths = np.sort(20 + 491 * np.random.default_rng(0).random(2000) ** 3)[::-1]
    if order != "longest first":
        shuffled = np.random.default_rng(1).permutation(lengths)
        lengths = np.concatenate([np.sort(part)[::-1] for part in np.split(shuffled[:1984], 31)])
    taken = lengths * (1 + lengths / 1500)  # a small model
    bar = progress(
        total=len(lengths) + 50, initial=50, costs=cost(lengths), desc="probing", unit="f"
    )
    now = bar.start_t
    bar._time = lambda: now
    done = round(share * len(lengths))
    now += taken[:done].sum()
    bar.update(done)
    known = bar.format_dict
    left = (known["total"] - known["n"]) / known["rate"]
    assert left == pytest.approx(taken[done:].sum(), rel=0.25)
    bar.close()
