"""What a GGUF file says is what its model is: each key changes it as it changes the model by hand, or is refused."""

from __future__ import annotations

import functools
import math

import pytest
import torch
from support.files import digest
from transformers import AutoConfig, AutoModelForCausalLM

from codesyntax_dataset.errors import ModelError
from probing.models import gguf_file

pytest.importorskip("gguf", reason="the package gguf, of the extra decoder, is not installed")

import gguf
from support.models import gguf_files

HEAD_DIM = 16
SIZES = {
    "context_length": 512,
    "embedding_length": 64,
    "block_count": 2,
    "feed_forward_length": 48,
    "attention.head_count": 4,
}
GROUPED = SIZES | {"attention.head_count_kv": 2}
RMS = GROUPED | {"attention.layer_norm_rms_epsilon": 0.125}
EXPERTS = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 24}

FIELDS = {
    "max_position_embeddings": 512,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": None,
    "tie_word_embeddings": True,
}
ROPE = {"rope_type": "default", "rope_theta": 1e4}
SPARSE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
GEMMA = {
    "head_dim": HEAD_DIM,
    "query_pre_attn_scalar": HEAD_DIM,
    "sliding_window": 8,
    "rms_norm_eps": 0.125,
}

# architecture of llama.cpp -> the keys of a file, and the type and fields of transformers' model
ARCHITECTURES = {
    "gemma2": (RMS | {"attention.sliding_window": 8}, "gemma2", GEMMA),
    "gemma3": (
        RMS | {"attention.sliding_window": 8},
        "gemma3_text",
        GEMMA
        | {"rope_parameters": {"full_attention": ROPE, "sliding_attention": ROPE}}
        | {"layer_types": ["sliding_attention", "sliding_attention"]},
    ),
    "llama": (RMS, "llama", {"rms_norm_eps": 0.125}),
    "phi3": (RMS, "phi3", {"rms_norm_eps": 0.125}),
    "qwen2": (RMS, "qwen2", {"rms_norm_eps": 0.125}),
    "qwen3": (RMS, "qwen3", {"rms_norm_eps": 0.125, "head_dim": HEAD_DIM}),
    "qwen3moe": (
        RMS | EXPERTS,
        "qwen3_moe",
        SPARSE | {"rms_norm_eps": 0.125, "head_dim": HEAD_DIM, "norm_topk_prob": True},
    ),
    "starcoder2": (
        GROUPED | {"attention.layer_norm_epsilon": 0.125},
        "starcoder2",
        {"norm_epsilon": 0.125},
    ),
}


EAGER = {"attn_implementation": "eager"}
"""Before transformers 5.21, other attention leaves out the soft cap of Gemma 2."""


def by_hand(architecture, **fields):
    """The model of an architecture with other fields: weights are the same where shapes are."""
    _, kind, own = ARCHITECTURES[architecture]
    given = FIELDS | {"vocab_size": len(gguf_files.tokens())} | own | fields
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **given), **EAGER).eval()
    generator = torch.Generator().manual_seed(0)
    for _, weight in sorted(model.named_parameters()):
        weight.data.normal_(0, 0.3, generator=generator)
    return model


@functools.cache
def plain(architecture):
    """The model of an architecture with its own fields."""
    return by_hand(architecture)


def header_of(architecture, folder):
    """That of a file of the plain model."""
    keys = ARCHITECTURES[architecture][0]
    file = gguf_files.save(folder / "a.gguf", architecture, keys, plain(architecture))
    return gguf_file.read_header(file)


def logits(model):
    with torch.no_grad():
        return model(torch.arange(5, 69)[None]).logits


def read(file):
    """The model in a GGUF file, as it is probed."""
    folder = gguf_file.converted(file, digest(file))
    return AutoModelForCausalLM.from_pretrained(folder, **EAGER).eval()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture, tied", [*((name, True) for name in ARCHITECTURES), ("llama", False)]
)
def test_a_file_is_its_model(architecture, tied, tmp_path):
    model = by_hand(architecture, tie_word_embeddings=tied)
    file = gguf_files.save(tmp_path / "a.gguf", architecture, ARCHITECTURES[architecture][0], model)
    torch.testing.assert_close(logits(read(file)), logits(model), rtol=0, atol=1e-5)


# Each form of scaled rotary positions ------------------------------------------------------------------------------


def llama3_factors(factor, low, high, context):
    """As llama.cpp's converter writes them for `rope_type` llama3."""
    factors = []
    for pair in range(HEAD_DIM // 2):
        wave = 2 * math.pi * 1e4 ** (2 * pair / HEAD_DIM)
        smooth = (context / wave - low) / (high - low)
        factors.append(
            1.0
            if wave < context / high
            else factor
            if wave > context / low
            else 1 / ((1 - smooth) / factor + smooth)
        )
    return factors


LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}


@pytest.mark.slow
def test_factors_of_llama_3_are_its_rotary_positions(tmp_path):
    base = plain("llama")
    factors = {"rope_freqs.weight": llama3_factors(8.0, 1.0, 4.0, 256)}
    file = gguf_files.save(tmp_path / "a.gguf", "llama", RMS, base, factors)
    model = by_hand("llama", rope_parameters=ROPE | {"rope_type": "llama3"} | LLAMA3)
    difference = (logits(read(file)) - logits(model)).abs().max().item()
    assert difference < 1e-4
    assert (logits(model) - logits(base)).abs().max() > 100 * difference + 0.01


# Each other key ---------------------------------------------------------------------------------------------------


def parts(rope):
    """Gemma 3 of six layers, of which the last has no window."""
    near, far = ROPE | rope.get("near", {}), ROPE | rope.get("far", {})
    kinds = [*["sliding_attention"] * 5, "full_attention"]
    rope = {"full_attention": far, "sliding_attention": near}
    return {"num_hidden_layers": 6, "layer_types": kinds, "rope_parameters": rope}


LINEAR = {"rope_parameters": ROPE | {"rope_type": "linear", "factor": 4.0}}
NEXT = {"block_count": 6}
HEADS = {"attention.key_length": 32, "attention.value_length": 32}
CHANGES = [
    ("llama", {"rope.freq_base": 1e6}, {"rope_parameters": ROPE | {"rope_theta": 1e6}}),
    (
        "llama",
        {"attention.head_count": 2, "attention.key_length": 16},
        {"num_attention_heads": 2, "head_dim": 16},
    ),
    ("llama", {"embedding_length": 32}, {"hidden_size": 32, "head_dim": 8}),
    *((name, HEADS, {"head_dim": 32}) for name in ("llama", "qwen3", "starcoder2", "phi3")),
    ("gemma2", HEADS, {"head_dim": 32, "query_pre_attn_scalar": 32}),
    ("phi3", {"attention.sliding_window": 3}, {"sliding_window": 3}),
    ("llama", {"rope.scale_linear": 4.0}, LINEAR),
    ("llama", {"rope.scaling.factor": 4.0}, LINEAR),
    ("llama", {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, LINEAR),
    ("gemma2", {"attn_logit_softcapping": 0.5}, {"attn_logit_softcapping": 0.5}),
    *(
        (name, {"final_logit_softcapping": 0.5}, {"final_logit_softcapping": 0.5})
        for name in ("gemma2", "gemma3")
    ),
    (
        "gemma2",
        {"block_count": 46, "attention.key_length": 8},
        {"num_hidden_layers": 46, "layer_types": None, "head_dim": 8},
    ),
    ("gemma3", NEXT, parts({})),
    ("gemma3", NEXT | {"rope.freq_base": 1e6}, parts({"far": {"rope_theta": 1e6}})),
    (
        "gemma3",
        NEXT | {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
        parts({"far": {"rope_type": "linear", "factor": 8.0}}),
    ),
    ("gemma3", NEXT | {"rope.freq_base_swa": 1e6}, parts({"near": {"rope_theta": 1e6}})),
]
"""Keys of a file, and the fields of transformers' model that say the same; those that a file must have are in ARCHITECTURES."""


@pytest.mark.parametrize(
    "architecture, keys, fields",
    CHANGES,
    ids=lambda part: part if isinstance(part, str) else "+".join(part),
)
@pytest.mark.slow
def test_a_key_changes_the_model_as_its_field_does(architecture, keys, fields, tmp_path):
    model = by_hand(architecture, **fields)
    file = gguf_files.save(
        tmp_path / "a.gguf", architecture, ARCHITECTURES[architecture][0] | keys, model
    )
    ours = AutoModelForCausalLM.from_config(
        gguf_file.config_of(gguf_file.read_header(file)), **EAGER
    ).eval()
    ours.load_state_dict(model.state_dict())
    assert torch.equal(logits(ours), logits(model))
    if keys != NEXT:
        assert (logits(plain(architecture)) - logits(model)).abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture, keys",
    [
        # what llama.cpp writes for every Phi-3, and for Phi-4, which has no window
        ("phi3", {"rope.scaling.original_context_length": 512, "attention.sliding_window": 0}),
        ("llama", {"rope.scaling.type": "none", "rope.scaling.factor": 4.0}),
        ("llama", {"rope.scaling.factor": 0.0}),
    ],
)
def test_a_key_without_a_meaning_changes_nothing(architecture, keys, tmp_path):
    model = by_hand(architecture, **({"sliding_window": None} if architecture == "phi3" else {}))
    every = ARCHITECTURES[architecture][0] | keys
    file = gguf_files.save(tmp_path / "a.gguf", architecture, every, model)
    torch.testing.assert_close(logits(read(file)), logits(model), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_biases_are_those_that_the_file_has(tmp_path):
    for architecture, fields in (
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("qwen3", {"attention_bias": True}),
    ):
        model = by_hand(architecture, **fields)
        file = gguf_files.save(
            tmp_path / f"{architecture}.gguf", architecture, ARCHITECTURES[architecture][0], model
        )
        torch.testing.assert_close(logits(read(file)), logits(model), rtol=0, atol=1e-5)


FACTORS = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0]
USED = {
    *RMS,
    "attention.layer_norm_epsilon",
    *EXPERTS,
    "vocab_size",
    "attention.key_length",
    "attention.value_length",
    "attention.sliding_window",
    "attention.causal",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "pooling_type",
    "tensor_data_layout",
    *(
        f"rope.{name}"
        for name in (
            "freq_base",
            "freq_base_swa",
            "dimension_count",
            "scale_linear",
            "scaling.factor",
            "scaling.finetuned",
            "scaling.original_context_length",
            "scaling.type",
        )
    ),
}


def all_keys():
    """Each key that the package gguf knows of some architecture."""
    groups = [group for group in vars(gguf.Keys).values() if isinstance(group, type)]
    groups += [
        inner for group in groups for inner in vars(group).values() if isinstance(inner, type)
    ]
    texts = [text for group in groups for text in vars(group).values() if isinstance(text, str)]
    return sorted(
        {
            text.removeprefix("{arch}.")
            for text in texts
            if text.startswith("{arch}.") and text.count("{") == 1
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_other_key_is_refused_by_its_name(architecture, tmp_path):
    header = header_of(architecture, tmp_path)
    others = [key for key in all_keys() if key not in USED]
    assert len(others) > 70
    for key in [*others, "a_key_of_tomorrow"]:
        more = header._replace(fields=header.fields | {f"{architecture}.{key}": 3})
        with pytest.raises(
            ModelError,
            match=rf"its key {architecture}\.{key} is 3, which is not known",
        ):
            gguf_file.config_of(more)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_key_that_is_missing_is_named(architecture, tmp_path):
    header = header_of(architecture, tmp_path)
    for key in ARCHITECTURES[architecture][0]:
        fields = dict(header.fields)
        del fields[f"{architecture}.{key}"]
        with pytest.raises(
            ModelError, match=rf"it does not say {architecture}\.{key}: convert it again"
        ):
            gguf_file.config_of(header._replace(fields=fields))


@pytest.mark.parametrize(
    "architecture, keys, tensors, message",
    [
        (
            "llama",
            {"attention.causal": False},
            {},
            r"llama\.attention\.causal is False, and True is what",
        ),
        (
            "llama",
            {"attention.value_length": 32},
            {},
            r"attention\.value_length is 32, and 16 is what",
        ),
        (
            "phi3",
            {"rope.scaling.original_context_length": 256},
            {},
            r"original_context_length is 256, and 512 is what",
        ),
        (
            "phi3",
            {"rope.dimension_count": 8},
            {},
            r"phi3\.rope\.dimension_count is 8, and 16 is what",
        ),
        ("llama", {"rope.dimension_count": 8}, {}, r"rope\.dimension_count is 8, and 16 is what"),
        ("llama", {"expert_count": 8}, {}, r"llama\.expert_count is 8, and 0 is what"),
        ("llama", {"vocab_size": 264}, {}, r"vocab_size is 264, and 265 is what"),
        (
            "gemma3",
            {"attn_logit_softcapping": 0.5},
            {},
            r"attn_logit_softcapping is 0\.5, which is not known",
        ),
        ("qwen2", {"attention.sliding_window": 8}, {}, r"sliding_window is 8, which is not known"),
        (
            "llama",
            {"attention.head_count_kv": [2, 1]},
            {},
            r"head_count_kv is \[2, 1\], expected a number",
        ),
        ("llama", {"block_count": "two"}, {}, r"block_count is two, expected a number"),
        ("llama", {"attention.head_count": 0}, {}, r"its keys say 2 layers of 0 heads"),
        ("qwen2", {"block_count": 2001}, {}, r"its keys say 2,001 layers of 4 heads"),
        (
            "llama",
            {"rope.scaling.type": "yarn"},
            {},
            r"llama\.rope\.scaling\.type is yarn, whose positions",
        ),
        (
            "llama",
            {},
            {"rope_freqs.weight": FACTORS[:4]},
            r"factors for 4 frequencies, expected 8 as of Llama 3",
        ),
        (
            "qwen2",
            {},
            {"rope_freqs.weight": FACTORS},
            r"factors for 8 frequencies, expected 0 as of Llama 3",
        ),
    ],
)
def test_what_transformers_cannot_say_is_refused(architecture, keys, tensors, message, tmp_path):
    file = gguf_files.save(
        tmp_path / "a.gguf",
        architecture,
        ARCHITECTURES[architecture][0] | keys,
        plain(architecture),
        tensors,
    )
    with pytest.raises(ModelError, match=message):
        gguf_file.config_of(gguf_file.read_header(file))


def test_the_same_number_of_heads_for_each_layer_is_one_number(tmp_path):
    keys = RMS | {
        "attention.head_count_kv": [2, 2],
        "attention.causal": True,
        "rope.scaling.finetuned": True,
    }
    file = gguf_files.save(
        tmp_path / "a.gguf", "llama", keys | {"pooling_type": 1}, by_hand("llama")
    )
    assert gguf_file.config_of(gguf_file.read_header(file)).num_key_value_heads == 2


def test_a_tensor_without_a_place_is_no_model_without_it(tmp_path):
    model, tensors = by_hand("llama"), {"blk.0.attn_q_norm.weight": [1.0] * HEAD_DIM}
    weights = sum(weight.numel() for weight in model.parameters())
    file = gguf_files.save(tmp_path / "a.gguf", "llama", RMS, model, tensors)
    with pytest.raises(
        ModelError,
        match=rf"have {weights + HEAD_DIM:,} weights, .* has {weights:,}",
    ):
        read(file)


def test_another_architecture_is_named(tmp_path):
    file = gguf_files.save(tmp_path / "a.gguf", "llama", RMS, by_hand("llama"))
    file.write_bytes(file.read_bytes().replace(b"llama", b"bloom"))
    with pytest.raises(
        ModelError,
        match="architecture bloom are not read.*expected gemma2",
    ):
        gguf_file.config_of(gguf_file.read_header(file))
