"""CuBERT's checkpoints: read as TensorFlow wrote them, converted to a BERT, or refused with what is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from support.commands import run
from support.files import contents
from support.hub.loopback_hub import LoopbackHub
from support.models.cubert_release import (
    ENTRIES,
    variables,
    with_optimizer,
    write_release,
    write_vocabulary,
)
from support.models.tensor_bundle import table, write_bundle
from transformers import BertConfig, BertForPreTraining, BertModel

from codesyntax_dataset.errors import CodeSyntaxError, ModelError
from probing.models.cubert.convert import _config, _converted, convert, variables_of
from probing.models.cubert.tokenizer import CubertTokenizer
from probing.models.load import described_model, load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return write_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def model(release, tmp_path_factory):
    """The small release, converted."""
    folder = tmp_path_factory.mktemp("models") / "cubert"
    return convert(
        release, folder, vocabulary=release.with_name("vocabulary.txt"), language="python"
    )


def filled_by_hand(values, positions):
    """A BERT of two layers, module by module: TensorFlow's kernels are (in, out), those of torch (out, in)."""
    config = BertConfig(
        vocab_size=len(ENTRIES),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
        max_position_embeddings=positions,
    )
    model = BertForPreTraining(config).eval()
    heads, left = model.cls, dict(values)

    def put(parameter, value):
        assert parameter.shape == value.shape
        parameter.data.copy_(torch.from_numpy(value.copy()))

    put(heads.predictions.bias, left.pop("cls/predictions/output_bias"))
    put(heads.seq_relationship.weight, left.pop("cls/seq_relationship/output_weights"))
    put(heads.seq_relationship.bias, left.pop("cls/seq_relationship/output_bias"))
    for name, module in model.named_modules():
        place = name.replace(".", "/").replace("layer/", "layer_")
        if isinstance(module, torch.nn.Embedding):
            put(module.weight, left.pop(place))
        elif isinstance(module, torch.nn.LayerNorm):
            put(module.weight, left.pop(f"{place}/gamma"))
            put(module.bias, left.pop(f"{place}/beta"))
        elif f"{place}/kernel" in left:
            put(module.weight, left.pop(f"{place}/kernel").T)
            put(module.bias, left.pop(f"{place}/bias"))
    assert not left
    return model


def test_same_attention(tmp_path):
    """The converted model has the attention, and the outputs of both heads, of one that was filled by hand."""
    positions = 1024
    values = variables(positions)
    write_bundle(tmp_path / "model.ckpt", values)
    folder = tmp_path / "cubert"
    vocabulary = write_vocabulary(tmp_path)
    convert(tmp_path / "model.ckpt", folder, vocabulary=vocabulary, language="java")
    again, info = BertForPreTraining.from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    reference = filled_by_hand(values, positions)
    reference.set_attn_implementation("eager")
    ids = torch.from_numpy(np.random.default_rng(1).integers(0, len(ENTRIES), (1, positions)))
    with torch.inference_mode():
        ours, theirs = (one(ids, output_attentions=True) for one in (again, reference))
    for name in ("attentions", "prediction_logits", "seq_relationship_logits"):
        for one, other in zip(ours[name], theirs[name]):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
    assert load(folder, max_length=4096).longest == positions


def test_size_of_the_releases():
    """The parameters of the releases with 512 positions, as others counted them, with the tied weights once."""
    for vocabulary, parameters in ((49988, 356_178_758), (50032, 356_223_858)):
        names = [f"bert/encoder/layer_{layer}/intermediate/dense/kernel" for layer in range(24)]
        given = {name: np.zeros(0, np.float32) for name in names}
        for name, rows in (("word", vocabulary), ("position", 512)):
            given[f"bert/embeddings/{name}_embeddings"] = np.broadcast_to(
                np.float32(0), (rows, 1024)
            )
        with torch.device("meta"):
            model = BertForPreTraining(_config(given, Path("it")))
        assert sum(weight.numel() for weight in model.parameters()) == parameters


def test_every_variable_counts():
    """Each that is missing, surplus, or of another shape is refused."""
    values, it = with_optimizer(variables()), Path("it")
    del values["global_step"]  # no float32
    _converted(_config(values, it), values, it)
    for name in variables():
        left = {other: value for other, value in values.items() if other != name}
        surplus, misshapen = {f"{name}_2": values[name]}, {name: values[name][..., None]}
        for changed in (left, left | misshapen, values | surplus):
            said = "Missing key|size mismatch|Unexpected key|layers and a hidden size of"
            with pytest.raises(ModelError, match=said):
                _converted(_config(changed, it), changed, it)
    with pytest.raises(ModelError, match="multiple of 64"):
        _config(variables(hidden=96), it)
    many = {f"{layer}/intermediate/dense/kernel": np.zeros(0) for layer in range(3000)}
    with pytest.raises(ModelError, match="3002 layers"):
        _config(values | many, it)


@pytest.mark.parametrize("other", ["float64", "slices"])
def test_a_variable_of_another_form_is_missing(other, tmp_path):
    values, name = variables(), "bert/pooler/dense/bias"
    values[name] = values[name].astype("float64" if other == "float64" else "float32")
    write_bundle(tmp_path / "a", values, sliced=name if other == "slices" else "")
    assert set(variables()) - set(variables_of(tmp_path / "a")) == {name}
    with pytest.raises(ModelError, match=r'Missing key.*"bert\.pooler\.dense\.bias"'):
        vocabulary = write_vocabulary(tmp_path)
        convert(tmp_path / "a", tmp_path / "out", vocabulary=vocabulary, language="python")
    assert not (tmp_path / "out").exists()


def test_other_vocabulary(release, tmp_path):
    with pytest.raises(ModelError, match=f"{len(ENTRIES) + 1} entries, but .* for {len(ENTRIES)}"):
        vocabulary = write_vocabulary(tmp_path, [*ENTRIES, "more_"])
        convert(release, tmp_path / "out", vocabulary=vocabulary, language="python")


def test_full_disk(release, tmp_path, monkeypatch):
    def save(*_arguments, **_options):
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr(BertForPreTraining, "save_pretrained", save)
    with pytest.raises(
        CodeSyntaxError,
        match="No space left on device; nothing there was changed",
    ):
        convert(
            release,
            tmp_path / "out",
            vocabulary=release.with_name("vocabulary.txt"),
            language="python",
        )
    assert not any(tmp_path.iterdir())


def test_a_file_that_is_gone_or_cut_off(release, tmp_path):
    copy = Path(shutil.copytree(release.parent, tmp_path / "copy"), release.name)
    data = copy.with_name(f"{copy.name}.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-1000])
    with pytest.raises(ModelError, match=r"is damaged \(.*: download it again"):
        variables_of(copy)
    data.unlink()
    with pytest.raises(ModelError, match=r"data-00000-of-00001 cannot be read \(No such file"):
        variables_of(copy)
    with pytest.raises(ModelError, match=r"none\.index cannot be read .*given by the prefix"):
        variables_of(tmp_path / "none")


@pytest.mark.parametrize(
    "entries, times, said",
    [
        ([(b"name", b"\x1b")], 1, "unknown type"),
        ([(b"name", b"\x08\x01\x10\x05")], 1, "len"),
        ([(b"name", b"\x08\x01\x12\x04\x12\x02\x08\x05")], 1, "reshape"),
        # out of a small file any number of entries, or of bytes, could come
        ([(b"a" * 5000, b"")], 1, "longer than any name"),
        ([(b"name", b"")], 2, "overlap"),
    ],
)
def test_wrong_index(entries, times, said, tmp_path):
    (tmp_path / "model.index").write_bytes(table(entries, times=times))
    (tmp_path / "model.data-00000-of-00001").write_bytes(b"0123")
    with pytest.raises(ModelError, match=f"is damaged .*{said}.*: download it again"):
        variables_of(tmp_path / "model")


def test_by_command(release, dataset_folder, tmp_path):
    """Convert, look and probe; a second conversion changes nothing."""
    folder = tmp_path / "cubert"

    vocabulary = release.with_name("vocabulary.txt")
    options = ("--vocabulary", vocabulary, "--language python")
    convert = ("convert-cubert", release, "--output", folder, *options)
    assert run(*convert, "--quiet").output == f"{folder}\n"
    before = contents(folder)
    assert set(before) == {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}
    assert "exists already" in run(*convert, status=1).output
    assert contents(folder) == before
    assert "can be probed, from our attention function" in run("doctor", folder).output
    settings = ("--data", dataset_folder, "--limit 8 --quiet")
    assert "functions:" in run("probe", folder, *settings).output
    said = run("probe", folder, *settings, "--config java", status=1).output
    assert "reads python only, but the functions are in java" in said


def test_from_the_hub(model, tmp_path, monkeypatch):
    """The folder, pushed as it is, loads by its name."""
    with LoopbackHub() as hub:
        hub.add("user/cubert", contents(model), type="model")
        hub.connect(monkeypatch, tmp_path / "cache")
        loaded = load("user/cubert")
        assert isinstance(loaded.tokenizer, CubertTokenizer)
        assert loaded.tokenizer.language == "python"
        assert loaded.revision == hub.repositories["model", "user/cubert"].heads["main"]


def test_as_any_model(model, tmp_path):
    """Its folder gives what `probe` asks of any: a tokenizer without weights, a name for a pair in memory."""
    tokenizer = described_model(str(model), None).tokenizer
    assert isinstance(tokenizer, CubertTokenizer)
    assert load(model).longest == 511
    weights = BertModel.from_pretrained(model)
    java = CubertTokenizer(model / "vocab.txt", "java")
    assert load((weights, tokenizer)).revision != load((weights, java)).revision
    model = shutil.copytree(model, tmp_path / "spoiled")
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(config | {"language": "perl"}))
    with pytest.raises(ModelError, match="cannot load the model"):
        load(model)
    # as of before
    (model / "tokenizer_config.json").write_text(json.dumps(config | {"drop": []}))
    assert load(model).revision == load((weights, tokenizer)).revision
