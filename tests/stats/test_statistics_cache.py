"""Statistics in the cache: found again for the same numbers only, never where they are damaged, and by reports alone."""

from __future__ import annotations

import numpy as np
import pytest

from probing.stats.cache import cached, caching


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_same_numbers_are_found_again_and_others_computed(cache):
    computed = []

    def found(what, made_of):
        return cached(
            what, made_of, lambda: computed.append(what) or {"mean": np.array([1.5, np.nan])}
        )["mean"]

    with caching():
        for _ in range(2):
            np.testing.assert_array_equal(found("score", [b"edges", b"hits"]), [1.5, np.nan])
        assert computed == ["score"]
        for what, made_of in (
            ("other", [b"edges", b"hits"]),
            ("score", [b"edges"]),
            ("score", [b"edgesh", b"its"]),
        ):
            found(what, made_of)
    assert len(computed) == 4
    found("score", [b"edges", b"hits"])  # as `verify` and `submit` do
    assert len(computed) == 5


@pytest.mark.parametrize(
    "edit", ["one digit", "renamed to fit nothing", "empty", "a list", "not UTF-8"]
)
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
