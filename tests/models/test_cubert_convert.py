"""CuBERT's checkpoints: read as TensorFlow wrote them, converted to a BERT, or refused by the name of what is wrong."""

from __future__ import annotations

import json
import random
import shutil
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from support.commands import run
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
from probing.instruments.attention.probe import Probing
from probing.models.cubert.convert import BertSizes, TensorBundle, convert, shapes_of, sizes_of
from probing.models.cubert.tokenizer import CubertTokenizer
from probing.models.load import doctor, load, load_tokenizer
from probing.runs.data import read_functions
from probing.runs.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    return write_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def model(release, tmp_path_factory) -> Path:
    """The small release, converted."""
    folder = tmp_path_factory.mktemp("models") / "cubert"
    return convert(
        release, folder, vocabulary=release.with_name("vocabulary.txt"), language="python"
    )


def filled_by_hand(values: dict[str, np.ndarray], positions: int) -> BertForPreTraining:
    """A BERT of two layers, part by part: TensorFlow's kernels are (in, out), those of torch (out, in)."""
    config = BertConfig(
        vocab_size=len(ENTRIES),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
        max_position_embeddings=positions,
    )
    model = BertForPreTraining(config).eval()

    def put(parameter: torch.Tensor, name: str, turn: bool = False) -> None:
        value = torch.from_numpy(values[name])
        assert parameter.shape == (value.T if turn else value).shape
        parameter.data.copy_(value.T if turn else value)

    def dense(module: torch.nn.Linear, name: str) -> None:
        put(module.weight, f"{name}/kernel", turn=True)
        put(module.bias, f"{name}/bias")

    def norm(module: torch.nn.LayerNorm, name: str) -> None:
        put(module.weight, f"{name}/LayerNorm/gamma")
        put(module.bias, f"{name}/LayerNorm/beta")

    embeddings = model.bert.embeddings
    put(embeddings.word_embeddings.weight, "bert/embeddings/word_embeddings")
    put(embeddings.position_embeddings.weight, "bert/embeddings/position_embeddings")
    put(embeddings.token_type_embeddings.weight, "bert/embeddings/token_type_embeddings")
    norm(embeddings.LayerNorm, "bert/embeddings")
    for number, layer in enumerate(model.bert.encoder.layer):
        name = f"bert/encoder/layer_{number}"
        dense(layer.attention.self.query, f"{name}/attention/self/query")
        dense(layer.attention.self.key, f"{name}/attention/self/key")
        dense(layer.attention.self.value, f"{name}/attention/self/value")
        dense(layer.attention.output.dense, f"{name}/attention/output/dense")
        norm(layer.attention.output.LayerNorm, f"{name}/attention/output")
        dense(layer.intermediate.dense, f"{name}/intermediate/dense")
        dense(layer.output.dense, f"{name}/output/dense")
        norm(layer.output.LayerNorm, f"{name}/output")
    dense(model.bert.pooler.dense, "bert/pooler/dense")
    heads = model.cls
    dense(heads.predictions.transform.dense, "cls/predictions/transform/dense")
    norm(heads.predictions.transform.LayerNorm, "cls/predictions/transform")
    put(heads.predictions.bias, "cls/predictions/output_bias")
    put(heads.seq_relationship.weight, "cls/seq_relationship/output_weights")
    put(heads.seq_relationship.bias, "cls/seq_relationship/output_bias")
    return model


def test_same_attention(tmp_path):
    """The converted model has the attention, and the outputs of both heads, of one that was filled by hand."""
    positions = 1024
    values = variables(positions)
    write_bundle(tmp_path / "model.ckpt", values, shards=2)
    folder = tmp_path / "cubert"
    convert(tmp_path, folder, vocabulary=write_vocabulary(tmp_path), language="java")
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
        shapes = shapes_of(BertSizes(vocabulary, 512, 1024, 24))
        assert sum(map(prod, shapes.values())) == parameters


def test_every_variable_by_name():
    """Each that is missing, surplus, or of another shape is named."""
    values = with_optimizer(variables())
    shapes = {name: value.shape for name, value in values.items()}
    assert sizes_of(shapes, "it") == BertSizes(len(ENTRIES), 512, 128, 2)
    for name in variables():
        with pytest.raises(
            ModelError, match=f"lacks the variable '{name}'|has the shape .* hidden size"
        ):
            sizes_of({other: shape for other, shape in shapes.items() if other != name}, "it")
        with pytest.raises(
            ModelError, match=f"variable '{name}' has the shape|the variable 'bert/embeddings/"
        ):
            sizes_of({**shapes, name: (*shapes[name], 1)}, "it")
        with pytest.raises(ModelError, match=f"has the variable '{name}_2'"):
            sizes_of({**shapes, f"{name}_2": shapes[name]}, "it")
    with pytest.raises(ModelError, match="'bert/encoder/layer_7/output/dense/bias'"):
        sizes_of({**shapes, "bert/encoder/layer_7/output/dense/bias": (128,)}, "it")
    with pytest.raises(ModelError, match="multiple of 64"):
        sizes_of({name: value.shape for name, value in variables(hidden=96).items()}, "it")


def test_refused(tmp_path):
    values = with_optimizer(variables())
    values["bert/pooler/dense/bias"] = np.zeros(128)
    write_bundle(tmp_path / "model.ckpt", values)
    with pytest.raises(ModelError, match="'bert/pooler/dense/bias' is not float32 in one piece"):
        convert(
            tmp_path, tmp_path / "out", vocabulary=write_vocabulary(tmp_path), language="python"
        )
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [
        ".data-00000-of-00001",
        ".index",
        ".txt",
    ]


def test_other_vocabulary(release, tmp_path):
    with pytest.raises(ModelError, match=f"{len(ENTRIES) + 1} entries, but .* for {len(ENTRIES)}"):
        vocabulary = write_vocabulary(tmp_path, [*ENTRIES, "more_"])
        convert(release, tmp_path / "out", vocabulary=vocabulary, language="python")


def test_full_disk(release, tmp_path, monkeypatch):
    def save(*_arguments, **_options):
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("probing.models.cubert.convert.save_file", save)
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


def test_where_a_checkpoint_is(release, tmp_path):
    """The prefix, the index, or the folder; not a folder with several, none, or what is something else."""
    index = release.with_name(f"{release.name}.index")
    assert (
        TensorBundle(release).variables
        == TensorBundle(index).variables
        == TensorBundle(release.parent).variables
    )
    with pytest.raises(ModelError, match="0 checkpoints"):
        TensorBundle(tmp_path)
    for name in ("a.index", "b.index"):
        shutil.copy(index, tmp_path / name)
    with pytest.raises(ModelError, match=r"2 checkpoints \(a, b\)"):
        TensorBundle(tmp_path)
    with pytest.raises(ModelError, match=r"a\.data-00000-of-00001 cannot be read"):
        TensorBundle(tmp_path / "a").read("bert/pooler/dense/bias")
    with pytest.raises(ModelError, match="none.index cannot be read"):
        TensorBundle(tmp_path / "none")


def test_damaged_values(release, tmp_path):
    """A changed byte is found by its checksum, a lost end by the size of the file; slices are not read."""
    copy = Path(shutil.copytree(release.parent, tmp_path / "copy"), release.name)
    name = "bert/pooler/dense/bias"
    variable = TensorBundle(copy).variables[name]
    data = bytearray(variable.file.read_bytes())
    data[variable.offset + 5] ^= 1
    variable.file.write_bytes(data)
    with pytest.raises(ModelError, match=f"'{name}' is damaged"):
        TensorBundle(copy).read(name)
    variable.file.write_bytes(data[: variable.offset + 5])
    with pytest.raises(ModelError, match=f"ends at byte {variable.offset + 5}, expected at least"):
        TensorBundle(copy).read(name)
    write_bundle(copy, {name: np.zeros(3, np.float32)}, sliced=name)
    with pytest.raises(ModelError, match="in one piece"):
        TensorBundle(copy).read(name)


def test_malformed_index(tmp_path):
    """However an index is changed, it is refused, or says what it did; its checksums are made right half of the time."""
    random.seed(0)
    small = {f"layer_{number}/bias": np.zeros(3, np.float32) for number in range(8)}
    index = write_bundle(tmp_path / "model", small).with_name("model.index")
    whole, expected = index.read_bytes(), set(small)
    refused = 0
    for number in range(400):
        content = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            content[random.randrange(len(content))] = random.randrange(256)
        if number % 3 == 1:
            content = content[: random.randrange(len(content))]
        elif number % 3 == 2:  # a table that is right, of messages that are not
            entries = [
                (b"", b"\x08\x01"),
                *((name.encode(), random.randbytes(random.randint(1, 12))) for name in small),
            ]
            content = table(sorted(entries), random.choice((40, 4000)))
        index.write_bytes(content)
        try:
            found = TensorBundle(index)
        except ModelError:
            refused += 1
            continue
        assert set(found.variables) == expected
        for name in small:
            try:
                found.read(name)
            except ModelError:
                refused += 1
    assert refused > 350


@pytest.mark.parametrize(
    ("entries", "times", "said"),
    [
        ([], 1, "header"),
        ([(b"name", b"\x08\x01")], 1, "header"),
        ([(b"", b"\x08\x01\x10\x01")], 1, "big-endian"),
        ([(b"", b"\x08\x01"), (b"name", b"\x18\x01")], 1, "file 1 of 1"),
        ([(b"", b"\x08\x01"), (b"name", b"\x1b")], 1, "unknown type"),
        ([(b"", b"\x08\x01"), (b"name", b"\x12\x05")], 1, "beyond the end of its message"),
        ([(b"", b"\x08\x01"), (b"name", b"\x10\x05")], 1, "field 2 is not a message"),
        ([(b"", b"\x08\x01"), (b"name", b"\x1a\x00")], 1, "field 3 is not a number"),
        ([(b"", b"\x08\x01"), (b"name", b"\x18" + b"\xff" * 11)], 1, "has no end"),
        # out of a small file any number of entries, or of bytes, could come
        ([(b"", b"\x08\x01"), (b"a" * 5000, b"")], 1, "any name"),
        ([(b"", b"\x08\x01"), (b"name", b"")], 2, "overlap"),
    ],
)
def test_wrong_index(entries, times, said, tmp_path):
    (tmp_path / "model.index").write_bytes(table(entries, times=times))
    with pytest.raises(
        ModelError, match=f"is not the index of a TensorFlow checkpoint, or is damaged: .*{said}"
    ):
        TensorBundle(tmp_path / "model")


def test_by_command(release, dataset_folder, tmp_path, tiny_model):
    """Convert, look, probe, and hold another model to what fits; a second conversion changes nothing."""
    folder = tmp_path / "cubert"

    vocabulary = release.with_name("vocabulary.txt")
    options = ("--vocabulary", vocabulary, "--language python --drop comments")
    convert = ("convert-cubert", release, "--output", folder, *options)
    assert run(*convert, "--quiet").output == f"{folder}\n"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert set(before) == {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}
    assert "exists already" in run(*convert, status=1).output
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert "can be probed, from our attention function" in run("doctor", folder).output
    settings = ("--data", dataset_folder, "--limit 8 --quiet")
    assert "functions:" in run("probe", folder, *settings).output
    assert "too long for" in run("probe", tiny_model, *settings, "--also-fits", folder).output
    for asked in ((folder,), (tiny_model, "--also-fits", folder)):
        said = run("probe", *asked, *settings, "--config java", status=1).output
        assert "reads python only, but the functions are in java" in said


def test_indentations_are_aligned(model, dataset_folder):
    """They are tokens that the model sees, and the probe ranks."""
    functions = read_functions(str(dataset_folder), "python", "test", limit=12)
    encoded = Probing(Session(model), functions).functions[0]
    row = functions.dataset[encoded.index]
    texts = [row["code"][start:end] for start, end in zip(row["token_start"], row["token_end"])]
    mapped = [
        encoded.alignment.mapped[place]
        for place, text in enumerate(texts)
        if text and not text.strip(" ")
    ]
    assert mapped and all(mapped)


def test_from_the_hub(model, tmp_path, monkeypatch):
    """The folder, pushed as it is, loads by its name, and again without a network."""
    with LoopbackHub() as hub:
        hub.add(
            "user/cubert", {file.name: file.read_bytes() for file in model.iterdir()}, type="model"
        )
        hub.connect(monkeypatch, tmp_path / "cache")
        loaded = load("user/cubert")
        assert (
            isinstance(loaded.tokenizer, CubertTokenizer) and loaded.tokenizer.language == "python"
        )
        assert loaded.revision == hub.repositories["model", "user/cubert"].heads["main"]
    assert load("user/cubert").revision == loaded.revision


def test_as_any_model(model, tmp_path):
    """Its folder gives what `probe` asks of any: a tokenizer without weights, a name for a pair in memory, a self-check."""
    tokenizer, longest = load_tokenizer(str(model))
    assert isinstance(tokenizer, CubertTokenizer) and longest == 511
    assert doctor(model).path == "captured"
    weights = BertModel.from_pretrained(model)
    dropped = CubertTokenizer(model / "vocab.txt", "python", ["comments"])
    assert load((weights, tokenizer)).revision != load((weights, dropped)).revision
    model = shutil.copytree(model, tmp_path / "spoiled")
    config = json.loads((model / "tokenizer_config.json").read_text())
    for change in ({"language": "perl"}, {"drop": ["names"]}, {"drop": 3}, {"language": None}):
        (model / "tokenizer_config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(ModelError, match="cannot load the model"):
            load(model)
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    (model / "vocab.txt").unlink()
    with pytest.raises(ModelError, match="cannot load the model"):
        load(model)
