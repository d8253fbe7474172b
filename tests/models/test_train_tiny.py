"""The training of the embedded masked model: its corpus, its bytes, and what it counts as restored."""

from __future__ import annotations

import hashlib
import json
import sysconfig
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors import safe_open
from support.models import train_tiny
from support.models.train_tiny import Sizes, batches, chosen, restored, schedule, train, with_hole

from codesyntax_dataset.errors import ModelError, SourceError
from probing.models.load import load, load_restoring
from probing.models.masked import MaskedModel

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


def test_the_library_is_read_without_tests_and_installed_packages(tmp_path, monkeypatch):
    monkeypatch.undo()
    for name in (
        "b.py",
        "a/b.py",
        "a/test/c.py",
        "test/d.py",
        "idlelib/idle_test/e.py",
        "site-packages/f.py",
        "a/g.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "old.py").write_bytes(b"# coding: latin-1\n# \xe4\n")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: {"stdlib": str(tmp_path)}[name])
    assert train_tiny.library() == {
        "a/b.py": "x = 1\n",
        "b.py": "x = 1\n",
        "old.py": "# coding: latin-1\n# ä\n",
    }


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


def test_holes_are_moved_behind_prefix_and_suffix():
    """Four of five inputs have one, of any place; without its three tokens, it is the input again."""
    ids, marks = np.arange(10, 32), (1, 2, 3)
    made = [with_hole(ids, marks, np.random.default_rng(seed)) for seed in range(400)]
    lengths = Counter()
    for one in made:
        if len(one) == len(ids):
            assert (one == ids).all()
            continue
        (first,), (second,), (third,) = (np.flatnonzero(one == mark) for mark in marks)
        prefix, suffix, middle = (
            one[first + 1 : second],
            one[second + 1 : third],
            one[third + 1 : -1],
        )
        assert first == 0 and one[-1] == ids[-1]
        assert [*prefix, *middle, *suffix] == [*ids[1:-1]]
        lengths[len(middle)] += 1
    assert 0.75 < sum(lengths.values()) / 400 < 0.85
    assert min(lengths) == 1 and max(lengths) == 20 and lengths[1] > lengths[2] > lengths[20]
    assert (with_hole(ids[:2], marks, np.random.default_rng(0)) == ids[:2]).all()


# --- steps ---


def test_batches_hold_every_input_once_and_no_more_than_their_size():
    lengths = np.random.default_rng(0).integers(3, 200, 100)
    found = batches(lengths, 0, 0)
    assert sorted(np.concatenate(found)) == list(range(100))
    assert max(len(rows) * lengths[rows].max() for rows in found) <= 512
    assert all(np.ptp(lengths[rows]) <= 60 for rows in found)
    assert len(batches(lengths, 0, 1)) == len(found)
    assert [list(rows) for rows in batches(lengths, 0, 1)] != [list(rows) for rows in found]


def test_masked_are_fifteen_percent_of_what_is_not_special():
    special = np.ones((3, 102), bool)
    special[0, 1:101] = special[1, 1:21] = special[2, 1] = False
    mask = chosen(special, np.random.default_rng(0))
    assert mask.sum(axis=1).tolist() == [15, 3, 1]
    assert not (mask & special).any()


def test_the_learning_rate_rises_and_falls():
    assert [schedule(step, 100) for step in (0, 1, 4, 5)] == pytest.approx([0.2, 0.4, 1, 1])
    assert [schedule(step, 100) for step in (52, 99)] == pytest.approx([48 / 95, 1 / 95])
    assert schedule(0, 1) == 1


# --- what is restored ---


class AlwaysFirst:
    """A model that predicts the sub-token 7 everywhere, for inputs of at most 12 sub-tokens."""

    longest, texts = 12, MaskedModel.texts

    def encode(self, texts):
        for text in texts:
            ids = np.array([0, *map(int, text.split()), 1], np.int32)
            yield ids, np.zeros((len(ids), 2), np.int32), np.isin(ids, (0, 1))

    def inputs(self, ids):
        return {"input_ids": torch.from_numpy(np.stack(ids))}

    def scores(self, inputs, rows, columns):
        assert set(inputs["input_ids"][rows, columns].tolist()) <= {5, 7}  # none is special
        return torch.tensor([[7.0, 0, 0, 0]] * len(rows), dtype=torch.float64)


def test_restored_are_counted_by_hand():
    # 15 % of 10 are 2 (1.5 to the even number), of 3 one; the last text has 13 sub-tokens with its special ones
    texts = ["7 7 7 7 7 7 7 7 7 7", "5 5 5", "7 7 7", "7 7 7 7 7 7 7 7 7 7 7"]
    assert restored(AlwaysFirst(), texts) == (3, 1, 12, 4, 3)
