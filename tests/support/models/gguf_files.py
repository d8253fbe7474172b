"""Tiny models as GGUF files, each weight of which is dequantized by hand, by the formats of ggml's blocks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from support.models.byte_tokenizer import byte_tokenizer
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

WIDTH, HEADS, GROUPS, LAYERS, INNER = 256, 4, 2, 2, 512
MERGES = (("Ġ", "Ġ"), ("d", "e"), ("de", "f"))

KINDS = ("F32", "F16", "Q8_0")

_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def blocks(
    kind: str, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of a random matrix, a row a row, and its values, float32.

    Q8_0: 32 weights of d q, d float16, q int8.
    """
    rows, columns = shape
    weights = rng.normal(0, 0.2, shape).astype(np.float32)
    if kind in ("F32", "F16"):
        weights = weights.astype({"F32": "<f4", "F16": "<f2"}[kind])
        return weights, weights.astype(np.float32)
    d = rng.uniform(0.001, 0.003, (rows, columns // 32, 1)).astype("<f2")
    q = rng.integers(-127, 128, (rows, columns // 32, 32)).astype(np.int8)
    data = np.concatenate([d.view(np.uint8), q.view(np.uint8)], axis=-1)
    return data.reshape(rows, -1), (d.astype(np.float32) * q).reshape(shape)


def interleaved(weights: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a projection of Llama as transformers has them: in GGUF files, the halves of each head alternate."""
    return weights.reshape(heads, -1, 2, weights.shape[1]).swapaxes(1, 2).reshape(weights.shape)


@functools.cache
def tokens() -> list[str]:
    """The texts of the tokens of all these models, by id."""
    vocabulary = byte_tokenizer(MERGES).get_vocab()
    return [*sorted(vocabulary, key=vocabulary.get), "<|endoftext|>"]  # as all such models have


def _writer(
    file: Path, architecture: str, keys: Mapping[str, Any], splitting: str
) -> gguf.GGUFWriter:
    """A file with the tokenizer, and these keys, those without `general.` being the architecture's."""
    writer, texts = gguf.GGUFWriter(file, architecture), tokens()
    kinds = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
    }
    for key, value in keys.items():
        add = kinds.get(type(value), writer.add_array)
        add(key if key.startswith("general.") else f"{architecture}.{key}", value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitting)
    writer.add_token_list(texts)
    writer.add_token_types([3] * 5 + [1] * (len(texts) - 6) + [3])
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    return writer


def _close(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def save(
    file: Path,
    architecture: str,
    keys: Mapping[str, Any],
    model: PreTrainedModel,
    tensors: Mapping[str, list[float]] | None = None,
) -> Path:
    """Write a model in float32 under ggml's names and in its order, as llama.cpp's converter does, with these keys and
    further tensors.
    """
    writer = _writer(file, architecture, keys, "qwen2")
    kind = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, model.config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        ours, values = names.get_name(name, try_suffixes=(".weight", ".bias")), weight.numpy()
        if name.endswith(".experts.down_proj"):
            ours = f"{names.get_name(name)}.weight"
        if name.endswith(".experts.gate_up_proj"):
            layer = name.split(".")[2]
            for part, half in zip(("gate", "up"), np.split(values, 2, axis=1)):
                writer.add_tensor(f"blk.{layer}.ffn_{part}_exps.weight", np.ascontiguousarray(half))
            continue
        if architecture == "llama" and ".attn_q." in ours:
            values = _alternating(values, model.config.num_attention_heads)
        if architecture == "llama" and ".attn_k." in ours:
            values = _alternating(values, model.config.num_key_value_heads)
        if architecture in ("gemma2", "gemma3") and "norm.weight" in ours:
            values = values + 1
        writer.add_tensor(ours, np.ascontiguousarray(values))
    for name, numbers in (tensors or {}).items():
        writer.add_tensor(name, np.array(numbers, "<f4"))
    _close(writer)
    return file


def _alternating(weights: np.ndarray, heads: int) -> np.ndarray:
    """The inverse of `interleaved`, of weights or biases."""
    return weights.reshape(heads, 2, -1, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def write(file: Path, family: str, kind: str, seed: int = 0) -> PreTrainedModel:
    """Write a model of a family, `llama` or `qwen2`; return it as transformers has it."""
    rng = np.random.default_rng(seed)
    texts = tokens()
    config = {"llama": LlamaConfig, "qwen2": Qwen2Config}[family](
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=GROUPS,
        max_position_embeddings=512,
        vocab_size=len(texts),
        rms_norm_eps=1e-5,
        rope_theta=1e4,
        tie_word_embeddings=True,
    )
    model = {"llama": LlamaForCausalLM, "qwen2": Qwen2ForCausalLM}[family](config).eval()
    keys = {
        "general.name": "tiny",
        "block_count": LAYERS,
        "context_length": 512,
        "embedding_length": WIDTH,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.head_count_kv": GROUPS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 1e4,
        "vocab_size": len(texts),
    }
    if family == "llama":
        keys["rope.dimension_count"] = WIDTH // HEADS
    writer = _writer(file, family, keys, "gpt-2" if family == "llama" else "qwen2")
    state = model.state_dict()
    for name in _tensors(family):
        part = name.split(".")[-2]
        own = _NAMES[part]
        theirs = f"model.layers.{name.split('.')[1]}.{own}" if name.startswith("blk.") else own
        weight = state[f"{theirs}.{name.rpartition('.')[2]}"]
        if weight.ndim == 1:
            data = values = rng.uniform(0.5, 1.5, len(weight)).astype("<f4")
            writer.add_tensor(name, data)
        else:
            data, values = blocks(kind, tuple(weight.shape), rng)
            raw = None if kind in ("F32", "F16") else gguf.GGMLQuantizationType[kind]
            writer.add_tensor(name, data, raw_dtype=raw)
        if family == "llama" and part in ("attn_q", "attn_k"):
            values = interleaved(values, HEADS if part == "attn_q" else GROUPS)
        with torch.no_grad():
            weight.copy_(torch.from_numpy(values.copy()))
    _close(writer)
    return model


def _tensors(family: str) -> list[str]:
    parts = [part for part in _NAMES if part not in ("token_embd", "output_norm")]
    inner = [f"blk.{layer}.{part}.weight" for layer in range(LAYERS) for part in parts]
    if family == "qwen2":
        inner += [
            f"blk.{layer}.{part}.bias"
            for layer in range(LAYERS)
            for part in ("attn_q", "attn_k", "attn_v")
        ]
    return ["token_embd.weight", "output_norm.weight", *inner]
