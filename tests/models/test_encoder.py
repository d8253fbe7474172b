"""Loading models: what is refused and why, what the self-check finds, and that a caller's model is left as it came."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support.commands import run
from support.models.random_models import sizes
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2Model,
    MistralConfig,
    MixtralConfig,
    PreTrainedTokenizerFast,
)

from codesyntax_dataset.errors import ModelError
from probing.models import capture, subtokens, untrusted
from probing.models.load import described_model, doctor, load
from probing.models.loaded import TEXTS, Check, FailedCheck

SIZES = sizes(heads=3, hidden=48, inner=96)


@pytest.fixture
def folder(tiny_model, tmp_path):
    """A copy of the tiny model, to be spoiled."""
    return shutil.copytree(tiny_model, tmp_path / "model")


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    return AutoTokenizer.from_pretrained(tiny_model)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return BertModel(BertConfig(**SIZES, initializer_range=0.3))


def change_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def change_weights(folder, change):
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})


def told(caplog):
    """What the project told; what libraries tell beside depends on where they run."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("probing.")]


def spoil(folder, how):
    weights = folder / "model.safetensors"
    if how == "no weights":
        weights.unlink()
    elif how == "weights missing":
        change_weights(
            folder,
            lambda parts: {
                name: part for name, part in parts.items() if "layer.1.attention" not in name
            },
        )
    elif how == "other shape":
        change_config(folder, vocab_size=1000)
    elif how == "pointer":
        weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n")
    elif how == "pointer of a tokenizer":
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n"
        (folder / "tokenizer.json").write_text(pointer)
    elif how == "empty":
        weights.write_bytes(b"")
    elif how == "cut":
        weights.write_bytes(weights.read_bytes()[:5000])
    elif how in ("GGUF in parts", "GGUF in an empty file"):
        (folder / "config.json").unlink()
        for part in (1, 2)[: 2 if "parts" in how else 1]:
            (folder / f"model-{part:05}-of-00002.gguf").touch()
    elif how == "no tokenizer":
        for file in folder.glob("*token*"):
            file.unlink()
    elif how == "other tokenizer":
        change_config(folder, vocab_size=1000)
        change_weights(
            folder,
            lambda parts: {
                name: part[:1000] if "word_embeddings" in name else part
                for name, part in parts.items()
            },
        )


@pytest.mark.parametrize(
    "how, said",
    [
        ("no weights", "safetensors.*SFconvertbot.*save_pretrained"),
        ("weights missing", r"its weights lack encoder\.layer\.1\.attention.* and others"),
        ("other shape", r"word_embeddings.weight have the shape \(\d+, 48\).*\(1000, 48\)"),
        ("no tokenizer", "tokenizer"),
        ("pointer", "model.safetensors is a pointer of Git LFS, not the file: run `git lfs pull`"),
        ("pointer of a tokenizer", "its tokenizer.json is a pointer of Git LFS"),
        ("empty", "its model.safetensors is empty: download it again"),
        ("cut", "its model.safetensors is no whole file of weights .*: download it again"),
        ("GGUF in parts", "it has a GGUF file in 2 parts: join its parts with llama.cpp"),
        ("GGUF in an empty file", "its model-00001-of-00002.gguf is empty"),
        ("other tokenizer", "embeddings for 1000 only"),
    ],
)
@pytest.mark.slow
def test_unusable_folder(folder, how, said):
    spoil(folder, how)
    with pytest.raises(ModelError, match=said) as error:
        load(str(folder))
    assert "\n" not in str(error.value)


def test_a_pooler_may_be_missing(folder):
    change_weights(
        folder, lambda parts: {name: part for name, part in parts.items() if "pooler" not in name}
    )
    assert load(str(folder)).path == "captured"


@pytest.mark.parametrize(
    "layers, experts, refused", [(2000, 500, False), (2001, 1, True), (2000, 501, True)]
)
def test_more_parts_than_any_model_has_are_refused(layers, experts, refused):
    config = MixtralConfig(num_hidden_layers=layers, num_local_experts=experts)
    refusal = pytest.raises(ModelError, match=f"{layers} layers and {experts} experts")
    with refusal if refused else nullcontext():
        untrusted.check_parts(config)


@pytest.mark.parametrize("limit, of", [("_SURPLUS", "parameters"), ("_BUFFERS", "buffers")])
def test_twice_the_weights_and_some_more_may_be_asked_for(limit, of, model, monkeypatch):
    numbers = sum(part.numel() for part in getattr(model, of)())
    monkeypatch.setattr(untrusted, limit, numbers - 20)
    untrusted.check_asked(model.config, 10)
    with pytest.raises(ModelError, match="its files have 9: do"):
        untrusted.check_asked(model.config, 9)


def test_a_tokenizer_of_one_language_reads_no_other():
    for reads in (None, "python"):
        subtokens.check_language(SimpleNamespace(language=reads), "it", "python")
    with pytest.raises(ModelError, match="it reads java only, but the functions are in python"):
        subtokens.check_language(SimpleNamespace(language="java"), "it", "python")


@pytest.mark.slow
def test_slow_tokenizer(model):
    with pytest.raises(FailedCheck, match="only fast tokenizers"):
        load((model, transformers.CanineTokenizer()))


@pytest.mark.slow
def test_longest(tiny_model, model, tokenizer):
    # fewer than 512, as published, though the model has 512 positions
    assert load(str(tiny_model)).longest == 511
    assert load(str(tiny_model), max_length=5000).longest == 512
    assert load(str(tiny_model), max_length=100).longest == 100
    assert subtokens.positions(transformers.MptConfig(max_seq_len=300)) == 300


def state(model):
    """What a run could change of a model: its weights, its attention, and the mode of each part."""
    return {
        "modes": {name: part.training for name, part in model.named_modules()},
        "attention": model.config._attn_implementation,
        "weights": {name: part.clone() for name, part in model.named_parameters()},
    }


def assert_same(model, before):
    after = state(model)
    assert after["modes"] == before["modes"]
    assert after["attention"] == before["attention"]
    for name, weight in after["weights"].items():
        assert torch.equal(weight, before["weights"][name])


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_pair_is_left_as_it_came(model, tokenizer, error, monkeypatch):
    """In the mode that each part had, with its own attention, whatever ends the run."""
    model.set_attn_implementation("sdpa")
    model.train()
    model.encoder.layer[0].eval()
    before, verbosity = state(model), transformers.logging.get_verbosity()
    encoder = load((model, tokenizer))
    assert encoder.path == "captured"
    assert_same(model, before)
    inputs = encoder.inputs([next(encoder.encode(TEXTS))[0]])
    if error is not None:
        monkeypatch.setattr(BertModel, "forward", lambda *_, **__: (_ for _ in ()).throw(error))
        with pytest.raises(error):
            encoder.run(inputs, "eager", output_attentions=True)
    else:
        assert encoder.run(inputs, "eager", output_attentions=True).attentions
    assert_same(model, before)
    assert transformers.logging.get_verbosity() == verbosity


def test_pair_without_numbers(tokenizer):
    with torch.device("meta"):
        empty = BertModel(BertConfig(**SIZES))
    with pytest.raises(ModelError, match="BertModel has weights on the meta device"):
        load((empty, tokenizer))


@pytest.mark.slow
def test_pair_of_another_precision(model, tokenizer):
    with pytest.raises(ModelError, match="weights are float32, but dtype is bfloat16"):
        load((model, tokenizer), dtype="bfloat16")
    assert model.dtype == torch.float32
    for dtype in ("bfloat16", "float16"):
        encoder = load((model.to(getattr(torch, dtype)), tokenizer), dtype=dtype)
        assert (encoder.path, encoder.dtype) == ("captured", dtype)


@pytest.mark.slow
def test_head_is_not_run(model, tokenizer):
    with_head = BertForMaskedLM(model.config)
    assert load((with_head, tokenizer)).model is with_head.base_model


def test_attention_chosen_for_good(tokenizer):
    """Falcon's code with fused attention reports maps that ignore padding, and cannot be switched to its eager code."""
    sizes = {
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "hidden_size": 48,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    config = transformers.FalconConfig(vocab_size=30522, **sizes)
    with pytest.raises(ModelError, match="build it with attn_implementation='eager'"):
        load((transformers.AutoModel.from_config(config, attn_implementation="sdpa"), tokenizer))
    assert (
        load(
            (transformers.AutoModel.from_config(config, attn_implementation="eager"), tokenizer)
        ).path
        == "eager"
    )


@pytest.mark.slow
def test_padding_token_without_embedding(tokenizer):
    """Decoders often got a padding token that their embeddings have no row for."""
    sizes = {"n_layer": 2, "n_head": 3, "n_embd": 48, "bos_token_id": 0, "eos_token_id": 0}
    decoder = GPT2Model(GPT2Config(vocab_size=len(tokenizer), **sizes, initializer_range=0.3))
    tokenizer = AutoTokenizer.from_pretrained(tokenizer.name_or_path)
    tokenizer.add_special_tokens({"pad_token": "<nothing>"})
    assert tokenizer.pad_token_id == len(tokenizer) - 1 == decoder.config.vocab_size
    encoder = load((decoder, tokenizer))
    assert encoder.causal
    assert encoder.path == "captured"
    tokenizer.pad_token = None
    assert load((decoder, tokenizer)).causal


def test_unusable_device(tiny_model):
    with pytest.raises(ModelError, match="device 'cuda:99' cannot be used here"):
        load(str(tiny_model), device="cuda:99")


# the self-check: right tokenizers pass


def train(pipeline, trainer, texts=TEXTS):
    pipeline.train_from_iterator(texts * 2, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=pipeline, unk_token="<unk>", pad_token="<pad>")


SPECIAL = ["<pad>", "<unk>"]


def byte_level(add_prefix_space=False):
    pipeline = Tokenizer(models.BPE())
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    pipeline.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return train(
        pipeline,
        trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet),
    )


def word_piece(*texts):
    pipeline = Tokenizer(models.WordPiece(unk_token="<unk>"))
    pipeline.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.decoder = decoders.WordPiece()
    return train(
        pipeline, trainers.WordPieceTrainer(vocab_size=150, special_tokens=SPECIAL), texts or TEXTS
    )


def unigram():
    """Like T5's: offsets of ▁ include the space before a word, unknown characters are one token."""
    pipeline = Tokenizer(models.Unigram())
    pipeline.normalizer = normalizers.NFKC()
    pipeline.pre_tokenizer = pre_tokenizers.Metaspace()
    pipeline.decoder = decoders.Metaspace()
    return train(
        pipeline, trainers.UnigramTrainer(vocab_size=120, special_tokens=SPECIAL, unk_token="<unk>")
    )


def byte_fallback():
    """Like Llama's: a space is put in front, unknown characters become several bytes."""
    pipeline = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    pipeline.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    pipeline.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    ascii_only = [text.encode("ascii", "ignore").decode() for text in TEXTS]
    special = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    pipeline.train_from_iterator(
        ascii_only, trainers.BpeTrainer(vocab_size=400, special_tokens=special)
    )
    return PreTrainedTokenizerFast(tokenizer_object=pipeline, unk_token="<unk>", pad_token="<pad>")


@pytest.mark.parametrize(
    "make", [byte_level, lambda: byte_level(True), word_piece, unigram, byte_fallback]
)
def test_tokenizer_that_can_be_trusted(model, make):
    encoder = load((model, make()))
    assert encoder.path == "captured"
    assert all(check.passed for check in encoder.checks)


# and wrong ones, and wrong models, do not


def dropping():
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("(", "")
    return tokenizer


def without_files():
    """As transformers makes one for a folder of GPT-2 without any: its special tokens are all that it knows."""
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), pad_token="<pad>")


def without_vocabulary():
    return word_piece("数量 größer")


class Shifted(PreTrainedTokenizerFast):
    """Offsets of bytes instead of characters, say, or of a text that was changed before."""

    def __call__(self, *arguments, **options):
        encoding = super().__call__(*arguments, **options)
        encoding["offset_mapping"] = [self.shift(offsets) for offsets in encoding["offset_mapping"]]
        return encoding

    @staticmethod
    def shift(offsets):
        return [(start + 1, end + 1) for start, end in offsets]


class Overlapping(Shifted):
    @staticmethod
    def shift(offsets):
        return [(max(0, start - 1), end) for start, end in offsets]


class Misspelling(PreTrainedTokenizerFast):
    """Ids of other sub-tokens than the offsets are of."""

    def __call__(self, *arguments, **options):
        encoding = super().__call__(*arguments, **options)
        old, new = self.convert_tokens_to_ids(["e", "o"])
        encoding["input_ids"] = [
            [new if index == old else index for index in ids] for ids in encoding["input_ids"]
        ]
        return encoding


def retyped(kind):
    return kind(
        tokenizer_object=byte_level().backend_tokenizer, unk_token="<unk>", pad_token="<pad>"
    )


@pytest.mark.parametrize(
    "make, failed",
    [
        (dropping, "characters belong to one sub-token"),
        (lambda: retyped(Misspelling), "characters belong to one sub-token"),
        (without_vocabulary, "sub-tokens are known"),
        (
            without_files,
            "its tokenizer has no vocabulary for code, perhaps because files of it are",
        ),
        (lambda: retyped(Shifted), "characters belong to one sub-token"),
        (lambda: retyped(Overlapping), "characters belong to one sub-token"),
    ],
)
def test_tokenizer_that_cannot_be_trusted(model, make, failed):
    with pytest.raises(FailedCheck, match=failed) as refusal:
        load((model, make()))
    assert [check.passed for check in refusal.value.checks].index(False) == len(
        refusal.value.checks
    ) - 1


class Changed(BertModel):
    """A BERT whose code has a fault: `fault` changes its inputs, its maps (B, H, S, S) or its output."""

    maps = staticmethod(lambda maps: maps)
    seen = staticmethod(lambda inputs: inputs)
    output = staticmethod(lambda output: output)

    def forward(self, input_ids, attention_mask, **options):
        output = super().forward(
            **self.seen({"input_ids": input_ids, "attention_mask": attention_mask}), **options
        )
        if output.get("attentions"):
            output["attentions"] = tuple(self.maps(maps) for maps in output["attentions"])
        return self.output(output)


def no_mask(inputs):
    return {**inputs, "attention_mask": torch.ones_like(inputs["attention_mask"])}


@pytest.mark.slow
@pytest.mark.parametrize(
    "part, fault, failed",
    [
        ("maps", lambda maps: maps[..., :-1], "maps between all sub-tokens"),
        ("maps", lambda maps: maps.mean(dim=1), "maps between all sub-tokens"),
        ("maps", lambda maps: maps.log(), "rows sum to 1"),
        ("maps", lambda maps: 0.9 * maps, "rows sum to 1"),
        ("maps", lambda maps: 1.1 * maps, "rows sum to 1"),
        ("maps", lambda maps: maps * float("nan"), "rows sum to 1"),
        ("maps", lambda maps: torch.ones_like(maps) / maps.shape[-1], "nothing on padding"),
        (
            "maps",
            lambda maps: torch.eye(maps.shape[-1]).expand_as(maps),
            "maps show what sub-tokens see",
        ),
        ("seen", no_mask, "nothing on padding"),
        ("output", lambda output: 1 / 0, "runs on text"),
    ],
)
def test_model_that_cannot_be_trusted(tokenizer, model, part, fault, failed, monkeypatch):
    monkeypatch.setattr(Changed, part, staticmethod(fault))
    changed = Changed(model.config)
    changed.load_state_dict(model.state_dict())
    with pytest.raises(FailedCheck, match=failed):
        load((changed, tokenizer))


def test_a_decoder_that_sees_a_little_of_what_is_behind(tokenizer, model, monkeypatch):
    def leak(output):
        hidden = output["last_hidden_state"]
        return {**output, "last_hidden_state": hidden + 5e-4 * hidden[:, -1:]}

    monkeypatch.setattr(Changed, "output", staticmethod(leak))
    model.config.is_decoder = True
    with pytest.raises(FailedCheck, match="maps show what sub-tokens see: 0 on later"):
        load((Changed(model.config), tokenizer))


def test_a_difference_is_at_most_its_bound():
    found = [Check.within("it", apart, 1e-3, "", "").passed for apart in (1e-3, 1.1e-3, np.nan)]
    assert found == [True, False, False]


def test_batch_that_leaks(tokenizer, model, monkeypatch):
    """Attention that depends on what else is in the batch, here on its length."""

    def forward(self, **inputs):
        return before(
            self,
            **{**inputs, "position_ids": torch.arange(inputs["input_ids"].shape[1])[None].flip(1)},
        )

    before = BertModel.forward
    monkeypatch.setattr(BertModel, "forward", forward)
    with pytest.raises(FailedCheck, match="padding changes nothing"):
        load((model, tokenizer))


def test_other_output(tokenizer, model, monkeypatch):
    """Fused attention that computes something else than the eager one: the eager maps are taken."""
    fused = capture.sdpa_attention_forward
    monkeypatch.setattr(
        capture, "sdpa_attention_forward", lambda *a, **k: (1.5 * fused(*a, **k)[0], None)
    )
    encoder = load((model, tokenizer))
    assert encoder.path == "eager"
    assert "output stays the same" in encoder.why


def test_more_layers_than_have_maps(tokenizer, model, monkeypatch):
    def fewer(output):
        return {**output, "attentions": (output.get("attentions") or ())[:1]}

    monkeypatch.setattr(Changed, "output", staticmethod(fewer))
    encoder = load((Changed(model.config), tokenizer))
    assert encoder.path == "eager"
    assert "called 2 times, expected once for each of 1" in encoder.why


def test_unknown_argument(tokenizer, model, monkeypatch):
    """What a model passes to its attention that we do not know may change it."""
    known = capture.attention

    def more(*arguments, **options):
        return known(*arguments, **options, block_indices=torch.zeros(1))

    monkeypatch.setitem(
        transformers.AttentionInterface._global_mapping, capture.ATTENTION_NAME, more
    )
    encoder = load((model, tokenizer))
    assert encoder.path == "eager"
    assert "block_indices" in encoder.why


@pytest.mark.parametrize("layers", [1, 3])
def test_attention_called_too_often_or_too_seldom(tokenizer, model, layers):
    """Of a model of 2 layers that the self-check took for one of another number, no layer is heard twice."""
    encoder, heard = load((model, tokenizer)), []
    assert encoder.layers == 2
    encoder.layers = layers
    with pytest.raises(ModelError, match=f"attention 2 times, expected once for each of {layers}"):
        encoder.forward(encoder.inputs([np.array([1, 2, 3])]), heard.append)
    assert len(heard) == min(2, layers)


@pytest.mark.slow
def test_doctor(tiny_model, model):
    diagnosis = doctor(tiny_model)
    assert diagnosis.path == "captured"
    assert len(diagnosis.checks) == 12
    assert "2 layers of 3 attention heads" in diagnosis.summary
    assert "511 sub-tokens" in diagnosis.summary

    printed = run("doctor", tiny_model)
    for check in diagnosis.checks:
        assert check.name in printed.stdout
    assert "FAILED" not in printed.stdout
    assert "sinks" not in printed.stdout

    diagnosis = doctor((model, dropping()))
    assert diagnosis.path == "refused"
    assert "FAILED characters belong to one sub-token" in diagnosis.text()


# ------------------------------------------------------------------------------ what libraries warn


@pytest.mark.slow
def test_a_tokenizer_with_the_wrong_split_of_mistral_is_read_with_the_right_one(tmp_path, caplog):
    """As saved before transformers 5: right sub-tokens are those of transformers with its own option."""
    tokenizer = byte_level().backend_tokenizer
    split = pre_tokenizers.Split(Regex(r"\p{N}{1,3}|\p{L}+|\s+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    trained = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["rowCount = 1234"] * 9, trained)
    parts = json.loads(tokenizer.to_str())
    vocabulary = parts["model"]["vocab"]
    vocabulary |= {f"\0{number}": len(vocabulary) + number for number in range(100_100)}
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="!").save_pretrained(tmp_path)
    MistralConfig(**sizes()).save_pretrained(tmp_path)
    change_config(tmp_path, transformers_version="4.50.0")
    expected = AutoTokenizer.from_pretrained(tmp_path, fix_mistral_regex=True)
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # as commands do
    try:
        first, second = (described_model(str(tmp_path), None).tokenizer for _ in range(2))
    finally:
        transformers.logging.set_verbosity(verbosity)
    for text in ("rowCount = 1234", *TEXTS):
        assert first(text).input_ids == second(text).input_ids == expected(text).input_ids
    assert expected.tokenize("12") == ["1", "2"]
    (message,) = told(caplog)
    assert re.search("known to be wrong for Mistral's models, and is read with theirs", message)


@pytest.mark.slow
def test_a_warning_about_a_model_is_told_once_and_those_about_missing_weights_are_not(
    folder, caplog, capfd
):
    change_config(folder, bos_token_id=200_000)
    change_weights(
        folder, lambda parts: {name: part for name, part in parts.items() if "pooler" not in name}
    )
    for _ in range(2):
        load(str(folder))
    (message,) = told(caplog)
    assert message.startswith(f"{folder}: transformers warns: Model config: bos_token_id must be")
    assert capfd.readouterr().err == ""
