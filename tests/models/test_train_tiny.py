"""The training of the embedded models: that they learn."""

from __future__ import annotations

import pytest
from support.models import train_tiny
from support.models.train_tiny import Sizes, restored, train

from probing.models.load import load_restoring

SMALL = Sizes(vocabulary=300, width=16, layers=2, heads=2, inner=16)
FILES = {
    f"module{i}.py": f"def add{i}(a, b):\n    return a + b + {i}\n\ndef first{i}(values):\n    for value in values:\n"
    f"        if value > {i}:\n            return value\n    return None\n"
    for i in range(20)
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A corpus of 40 functions, in several batches."""
    monkeypatch.setattr(train_tiny, "library", lambda: FILES)
    monkeypatch.setattr(train_tiny, "_BATCH", 8)


@pytest.mark.long
def test_it_learns(tmp_path):
    """The 40 functions are nearly the same: a model that learns restores far more of them than an untrained one."""
    texts = train_tiny.functions(FILES)
    trained = train(
        tmp_path / "model",
        steps=150,
        sizes=SMALL._replace(width=32, rate=0.02),
        checkpoints=tmp_path / "checkpoints",
    )
    before, after = (
        restored(load_restoring(folder), texts)
        for folder in (tmp_path / "checkpoints/step-000000", trained)
    )
    assert before.masked == after.masked > 100
    assert before.restored < 0.05 * before.masked
    assert after.restored > 0.25 * after.masked


@pytest.mark.long
def test_the_decoder_learns(tmp_path):
    sizes = SMALL._replace(width=32, inner=48, rate=0.01)
    for steps, least, most in ((1, 0, 0.05), (300, 0.25, 1)):
        folder = train(tmp_path / f"{steps}", decoder=True, steps=steps, sizes=sizes)
        found = restored(load_restoring(folder), train_tiny.functions(FILES))
        assert least * found.masked <= found.restored <= most * found.masked
