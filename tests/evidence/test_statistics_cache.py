"""Statistics in the cache: found again for the same numbers only, never where they are damaged, and by reports alone."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from support.evidence.hits import from_hits

from probing.evidence import uncertainty
from probing.evidence.uncertainty import compare, compare_means, estimate
from probing.stats.statistics import cached, caching


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def outcomes_of(hits):
    edges = np.full((8, 2), 3, np.int32)
    return from_hits(["r0", "r1"], edges, np.broadcast_to(np.array(hits)[:, None] * [1, 2], (3, 20, 8, 2)))


def counted(monkeypatch):
    """How often means are computed."""
    made = []
    plain = uncertainty._with_bounds
    monkeypatch.setattr(uncertainty, "_with_bounds", lambda *args: made.append(1) or plain(*args))
    return made


def test_the_same_numbers_are_found_again_and_others_computed(cache, monkeypatch):
    one, other = outcomes_of([1, 0, 0, 1, 1, 0, 1, 0]), outcomes_of([1, 0, 0, 1, 1, 0, 0, 1])
    plain = estimate(one), compare(one, other), compare_means([one, other], [(0, 1)])
    made = counted(monkeypatch)
    for times in (2, 0):  # computed once, the mean of `compare` as that of `compare_means`
        made.clear()
        with caching():
            found = estimate(one), compare(one, other), compare_means([one, other], [(0, 1)])
        assert len(made) == times
        for mine, theirs in zip(found[0].__dict__.values(), plain[0].__dict__.values()):
            np.testing.assert_array_equal(mine, theirs)
        assert np.array_equal(found[1].p_holm, plain[1].p_holm) and np.array_equal(found[1].p_mean, plain[1].p_mean)
        np.testing.assert_array_equal(found[1].difference.relations, plain[1].difference.relations)
        assert np.array_equal(found[2][0].mean, plain[2][0].mean) and np.array_equal(found[2][0].p, plain[2][0].p)
    with caching():
        estimate(outcomes_of([1, 0, 0, 1, 1, 0, 1, 1]))  # one hit more
        with patch.multiple(uncertainty, RESAMPLES=999):
            estimate(one)
        estimate(one.only(["r0"]))
        compare(other, one)
    assert len(made) == 4
    made.clear()
    estimate(one)  # as `verify` and `submit` do
    assert len(made) == 1


@pytest.mark.parametrize("edit", ["one digit", "renamed to fit nothing", "empty", "a list", "not UTF-8"])
def test_a_file_that_was_altered_is_not_believed(cache, edit, caplog):
    def found():
        with caching():
            return cached("score", [b"edges"], lambda: {"mean": np.array([1.5, np.nan])})["mean"]

    found()
    (file,) = cache.iterdir()
    data = file.read_bytes()
    altered = {
        "one digit": data[:-8] + bytes([data[-8] ^ 1]) + data[-7:],
        "renamed to fit nothing": data,
        "empty": b"",
        "a list": b"[]",
        "not UTF-8": b"\xff" + data,
    }[edit]
    file.write_bytes(altered)
    if edit.startswith("renamed"):
        file.rename(file.with_name(file.name.replace("-", "-0")))
    np.testing.assert_array_equal(found(), [1.5, np.nan])
    assert "damaged: computing its statistics again" in caplog.text


def test_nothing_is_kept_where_nothing_can_be_or_shall_be(cache, monkeypatch, caplog):
    cache.write_text("a file, not a folder")
    with caching():
        assert cached("score", [b""], lambda: {"mean": np.ones(1)})["mean"] == 1
    assert "cannot cache statistics" in caplog.text
    monkeypatch.setenv("CODESYNTAX_CACHE", "")
    with caching():
        assert cached("score", [b""], lambda: {"mean": np.ones(1)})["mean"] == 1
    cached("score", [b""], lambda: {"mean": np.ones(1)})
    assert cache.read_text() == "a file, not a folder"
