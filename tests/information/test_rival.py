"""What words and positions tell is learned once of the same choices, and again where anything of them differs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from probing.instruments.information import learn, rival
from probing.instruments.information.choice import Choices
from probing.instruments.information.learn import SurfaceFit, SurfaceSample


def sample_of():
    choices = Choices(
        np.array([0, 2]),
        np.array([1, 3]),
        np.arange(8).reshape(2, 4),
        9,
        np.ones((4, 3)),
        np.zeros(4),
    )
    return SurfaceSample(np.arange(2), np.arange(2), np.array([0, 1]), choices, np.arange(4))


def learned(samples):
    return {
        relation: SurfaceFit(
            sample, "grams", 0.4, [np.full(5, relation), np.ones(5)], np.arange(5) / 3, np.ones(2)
        )
        for relation, sample in samples.items()
    }


@pytest.fixture
def times(monkeypatch, tmp_path):
    """How often it was learned."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    rival._last.clear()
    calls = []
    monkeypatch.setattr(
        learn, "learn_surface", lambda samples: calls.append(samples) or learned(samples)
    )
    yield calls
    rival._last.clear()


def test_the_same_choices_are_learned_once_in_a_process_and_once_with_a_cache(times):
    samples = {3: sample_of(), 5: sample_of()}
    first = rival.rival(samples)
    assert rival.rival(samples) is first
    rival._last.clear()  # another process
    again = rival.rival(samples)
    assert len(times) == 1
    for relation, fitted in first.items():
        assert again[relation].features == fitted.features == "grams"
        assert again[relation].penalty == 0.4
        assert again[relation].weights.tobytes() == fitted.weights.tobytes()
        assert np.array_equal(again[relation].of_folds, fitted.of_folds)
        assert again[relation].unseen.tobytes() == fitted.unseen.tobytes()


def test_a_damaged_file_is_learned_again(times, tmp_path):
    rival.rival({3: sample_of()})
    rival._last.clear()
    (file,) = (tmp_path / "cache").glob("*.npz")
    file.write_bytes(file.read_bytes()[:-1])
    rival.rival({3: sample_of()})
    assert len(times) == 2


def test_nothing_is_kept_without_a_cache(times, monkeypatch, tmp_path):
    monkeypatch.setenv("CODESYNTAX_CACHE", "")
    rival.rival({3: sample_of()})
    rival._last.clear()
    rival.rival({3: sample_of()})
    assert len(times) == 2
    assert not (tmp_path / "cache").exists()


def changed(value):
    """The value, otherwise: each number of an array by one, in turn."""
    if isinstance(value, np.ndarray):
        for place in np.ndindex(value.shape):
            other = value.copy()
            other[place] += 1
            yield other
        yield value.astype(np.float32)
        yield value[..., None]
    else:
        yield value + 1


def test_every_number_of_the_choices_is_in_the_digest():
    sample = sample_of()
    others = [
        sample._replace(choices=dataclasses.replace(sample.choices, **{each.name: other}))
        for each in dataclasses.fields(Choices)
        for other in changed(getattr(sample.choices, each.name))
    ]
    others += [
        sample._replace(**{name: other})
        for name in sample._fields
        if name != "choices"
        for other in changed(getattr(sample, name))
    ]
    digests = {rival.digest({3: each}) for each in [sample, *others]}
    assert len(digests) == 1 + len(others)
    assert rival.digest({3: sample}) == rival.digest({3: sample_of()})
    assert rival.digest({3: sample}) != rival.digest({4: sample})


@pytest.mark.parametrize("value", [object(), np.array([object()]), {1}, b"bytes"])
def test_what_a_digest_could_leave_out_is_refused(value):
    with pytest.raises(TypeError):
        rival.digest([value])
