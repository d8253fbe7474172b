"""The training of the embedded masked model: its corpus, and its bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors import safe_open
from support.models import train_tiny
from support.models.train_tiny import Sizes, restored, train

from codesyntax_dataset.errors import ModelError, SourceError
from probing.models.load import load, load_restoring

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = Sizes(vocabulary=300, width=16, layers=2, heads=2, inner=16)
STEPS = 6
FILES = {
    f"module{i}.py": f"def add{i}(a, b):\n    return a + b + {i}\n\ndef first{i}(values):\n    for value in values:\n"
    f"        if value > {i}:\n            return value\n    return None\n"
    for i in range(20)
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A corpus of 40 functions, in several batches."""
    monkeypatch.setattr(train_tiny, "library", lambda: FILES)
    monkeypatch.setattr(train_tiny, "_BATCH", 512)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A model trained without an interruption, and its checkpoints beside it."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_tiny, "library", lambda: FILES)
        patch.setattr(train_tiny, "_BATCH", 512)
        return train(folder / "model", steps=STEPS, sizes=SMALL, checkpoints=folder / "checkpoints")


def bytes_of(folder: Path) -> dict[str, bytes]:
    """All files but the card, which says how many minutes it took."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "README.md"}


# --- the corpus ---


def test_functions_are_those_of_modules_and_classes_each_once():
    files = {
        "a.py": "@cache\ndef f():\n    def inner(): ...\n\nclass C:\n    def g(self):\n        return 1\n",
        "b.py": "def f():\n    def inner(): ...\n",
    }
    assert train_tiny.functions(files) == [
        "def f():\n    def inner(): ...",
        "def g(self):\n        return 1",
    ]


def test_a_library_without_source_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(train_tiny, "library", dict)
    with pytest.raises(SourceError, match="no functions in source form"):
        train(tmp_path / "model")


# --- the model ---


@pytest.mark.slow
def test_checkpoints_are_after_the_first_steps_and_those_of_powers_of_two(whole):
    found = {path.name: bytes_of(path) for path in (whole.parent / "checkpoints").iterdir()}
    assert {*found} == {"step-000000", "step-000001", "step-000002", "step-000004"}
    assert len({files["model.safetensors"] for files in (*found.values(), bytes_of(whole))}) == 5


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_other_weights(whole, tmp_path):
    again = train(tmp_path / "again", steps=STEPS, sizes=SMALL)
    other = train(tmp_path / "other", steps=STEPS, sizes=SMALL, seed=1)
    assert bytes_of(again) == bytes_of(whole)
    assert {name for name, data in bytes_of(other).items() if data != bytes_of(whole)[name]} == {
        "model.safetensors"
    }


def test_nothing_is_replaced(whole, tmp_path):
    before = bytes_of(whole)
    with pytest.raises(ModelError, match="exists already"):
        train(whole, steps=STEPS, sizes=SMALL)
    with pytest.raises(ModelError, match="step-000000 exists already"):
        train(tmp_path / "new", steps=STEPS, sizes=SMALL, checkpoints=whole.parent / "checkpoints")
    assert bytes_of(whole) == before


def test_the_command_says_what_is_wrong_on_one_line(whole):
    result = CliRunner().invoke(train_tiny.main, [str(whole)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ") and result.output.count("\n") == 1


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


@pytest.mark.slow
def test_both_probes_can_load_it(whole):
    masked, encoder = load_restoring(whole), load(whole)
    assert masked.why == "" and encoder.path == "captured" and not encoder.causal
    assert masked.longest == encoder.longest == 511
    ids = next(masked.encode(["def f(x):\n    return x\n" * 5]))[0]
    assert masked.tokenizer.decode(ids, skip_special_tokens=True) == "def f(x):\n    return x\n" * 5


def test_the_card_says_from_what(whole):
    card = (whole / "README.md").read_text()
    code = [piece for text in FILES.values() for piece in text.rstrip("\n").split("\n\n")]
    assert hashlib.sha256(json.dumps(code).encode()).hexdigest() in card
    assert "40 distinct functions" in card.replace("\n", " ")
    assert f"{STEPS} of {STEPS} steps" in card and "it was not evaluated" in card


@pytest.mark.slow
def test_the_card_says_what_it_restores(dataset_folder, tmp_path):
    card = (
        train(tmp_path / "model", steps=1, sizes=SMALL, data=dataset_folder) / "README.md"
    ).read_text()
    assert "functions from elsewhere" in card and "not evaluated" not in card


# --- the decoder ---


@pytest.mark.slow
def test_a_decoder_fills_holes(tmp_path):
    """Its weights are of half precision, and its card says how it was trained."""
    whole = train(tmp_path / "whole", decoder=True, steps=3, sizes=SMALL)
    with safe_open(whole / "model.safetensors", "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float16}  # noqa: SIM118
    loaded = load_restoring(whole)
    assert loaded.mask is None and loaded.longest == 511
    assert restored(loaded, train_tiny.functions(FILES)).masked > 100
    card = (whole / "README.md").read_text()
    assert (
        "A Llama with" in card
        and "weights in float16" in card
        and "in 80 % of the inputs a middle behind" in card
    )


@pytest.mark.long
def test_the_decoder_learns(tmp_path):
    sizes = SMALL._replace(width=32, inner=48, rate=0.01)
    for steps, least, most in ((1, 0, 0.05), (300, 0.25, 1)):
        folder = train(tmp_path / f"{steps}", decoder=True, steps=steps, sizes=sizes)
        found = restored(load_restoring(folder), train_tiny.functions(FILES))
        assert least * found.masked <= found.restored <= most * found.masked
