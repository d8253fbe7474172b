"""Progress where there is no terminal: lines on standard error."""

from __future__ import annotations

import re

import pytest

from probing.runs.progress import EVERY, progress


def lines(capsys):
    out, err = capsys.readouterr()
    assert out == "" and "\r" not in err
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
