"""The configuration of the model in a GGUF file: every metadata key of its architecture counts, or
the file is refused.

transformers' own loader leaves out the keys that it does not know, such as those of scaled rotary
positions, without a word, and takes what a key would say from the defaults of its configurations:
the model is then another one. What keys mean, and which values they have where a file lacks them,
is that of llama.cpp, which writes and runs such files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transformers import AutoConfig, PreTrainedConfig

from codesyntax_dataset.errors import ModelError
from probing.models.untrusted import MOST_LAYERS

ROTARY_FACTORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Tensors that are no weights of the model: by what rotary frequencies are divided, one number for
each."""

_SIZES = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
}
_GROUPED = _SIZES | {"attention.head_count_kv": "num_key_value_heads"}
_RMS = _GROUPED | {"attention.layer_norm_rms_epsilon": "rms_norm_eps"}
_WINDOW = {"attention.sliding_window": "sliding_window"}
_CAP = {"final_logit_softcapping": "final_logit_softcapping"}
_EXPERTS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}


class _Architecture(NamedTuple):
    """How transformers has an architecture of llama.cpp.

    `required`, `optional`: the keys of a file, and what the configuration calls them; `by_tensor`:
    fields that are true if the file has a tensor; `always`: what llama.cpp does, and no key says;
    `scalings`: the types of scaled rotary positions that transformers has for it; `partial`:
    rotary positions may be on a part of each head.
    """

    model_type: str
    required: Mapping[str, str]
    optional: Mapping[str, str] = {}
    by_tensor: Mapping[str, str] = {}
    always: Mapping[str, Any] = {}
    scalings: Sequence[str] = ("linear", "yarn", "longrope")
    partial: bool = False


_LAYER_NORM = "attention.layer_norm_epsilon"
_BIAS = {"attention_bias": "blk.0.attn_q.bias"}

_ARCHITECTURES = {
    "gemma2": _Architecture("gemma2", _RMS | _WINDOW, _CAP | {"attn_logit_softcapping": "attn_logit_softcapping"}),
    "gemma3": _Architecture("gemma3_text", _RMS | _WINDOW, _CAP),
    "gpt2": _Architecture(
        "gpt2", _SIZES | {"feed_forward_length": "n_inner", _LAYER_NORM: "layer_norm_epsilon"}, scalings=()
    ),
    "llama": _Architecture("llama", _RMS, by_tensor=_BIAS | {"mlp_bias": "blk.0.ffn_up.bias"}),
    "nemotron": _Architecture("nemotron", _GROUPED | {_LAYER_NORM: "norm_eps"}, partial=True),
    "phi3": _Architecture("phi3", _RMS, _WINDOW, scalings=("longrope",), partial=True),
    "qwen2": _Architecture("qwen2", _RMS),
    "qwen2moe": _Architecture(
        "qwen2_moe",
        _RMS | _EXPERTS | {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
    ),
    "qwen3": _Architecture("qwen3", _RMS, by_tensor=_BIAS),
    "qwen3moe": _Architecture("qwen3_moe", _RMS | _EXPERTS, by_tensor=_BIAS, always={"norm_topk_prob": True}),
    "stablelm": _Architecture(
        "stablelm",
        _GROUPED | {_LAYER_NORM: "layer_norm_eps"},
        {"use_parallel_residual": "use_parallel_residual"},
        {"use_qkv_bias": "blk.0.attn_q.bias", "qk_layernorm": "blk.0.attn_q_norm.weight"},
        partial=True,
    ),
    "starcoder2": _Architecture("starcoder2", _GROUPED | {_LAYER_NORM: "norm_epsilon"}),
}  # fmt: skip

_NO_MATTER = frozenset({"pooling_type", "rope.scaling.finetuned", "tensor_data_layout"})
"""Keys that change no hidden state."""

_LAYERS_OF_27B = {"gemma2": 46, "gemma3": 62}
"""Gemma 27B divides its queries by the root of another number, which llama.cpp tells by its
layers."""


class _Keys(dict[str, Any]):
    """The keys of an architecture without its name; those that were read are gone."""

    def __init__(self, architecture: str, fields: Mapping[str, Any]):
        prefix = f"{architecture}."
        super().__init__(
            {
                name.removeprefix(prefix): value
                for name, value in fields.items()
                if name.startswith(prefix)
            }
        )
        self.architecture = architecture

    def number(self, name: str, default: float | None = None) -> Any:
        """A number; raises ModelError for a value that is none, and without `default` for none."""
        value = self.pop(name, default)
        if value is None:
            raise ModelError(
                f"it does not say {self.architecture}.{name}: convert it again with a current llama.cpp"
            )
        if isinstance(value, list) and len(set(value)) == 1:  # the same for each layer
            (value,) = set(value)
        if not isinstance(value, (int, float)) or value < 0:
            raise self.refused(name, value, "expected a number")
        return value

    def refused(self, name: str, value: Any, why: str) -> ModelError:
        return ModelError(
            f"its key {self.architecture}.{name} is {str(value)[:60]}, {why}: load the model that the file was made of"
        )


def configuration(
    fields: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int]],
    factors: Mapping[str, list[float]],
) -> PreTrainedConfig:
    """The configuration of the model with these metadata.

    `shapes`: those of its tensors, in the order of ggml; `factors`: the values of ROTARY_FACTORS.
    Raises ModelError for an architecture, a key or a value whose meaning is not known, or that
    transformers' model does not have.
    """
    name = str(fields.get("general.architecture"))[:40]
    if (architecture := _ARCHITECTURES.get(name)) is None:
        raise ModelError(
            f"GGUF files of the architecture {name} are not read, as what their keys mean was not checked; expected "
            f"{', '.join(_ARCHITECTURES)}: load the model that the file was made of"
        )
    if "token_embd.weight" not in shapes:
        raise ModelError("it has no embeddings of tokens (token_embd.weight), as a model has")
    keys = _Keys(name, fields)
    values = {field: keys.number(key) for key, field in architecture.required.items()}
    layers, heads, width = (
        values[_SIZES[key]] for key in ("block_count", "attention.head_count", "embedding_length")
    )
    if not heads or layers > MOST_LAYERS:  # some configurations have a list of all layers
        raise ModelError(f"its keys say {layers:,} layers of {heads:,} heads, which no model has")
    values |= {
        field: keys.number(key) for key, field in architecture.optional.items() if key in keys
    }
    values |= {field: tensor in shapes for field, tensor in architecture.by_tensor.items()}
    values |= architecture.always
    head_dim = width // heads
    if architecture.scalings:
        head_dim = values["head_dim"] = keys.number("attention.key_length", head_dim)
        values |= _rotary(keys, architecture, factors, head_dim, values["max_position_embeddings"])
    if name in _LAYERS_OF_27B:
        values["query_pre_attn_scalar"] = (
            width // heads if layers == _LAYERS_OF_27B[name] else head_dim
        )
    vocabulary = shapes["token_embd.weight"][-1]
    expected = {
        "attention.causal": True,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "expert_count": 0,
        "expert_used_count": 0,
        "rope.dimension_count": head_dim,
        "rope.scaling.attn_factor": 1,
        "rope.scaling.yarn_ext_factor": 1,
        "vocab_size": vocabulary,
    }
    for key, value in keys.items():
        if key in expected and value != expected[key]:
            raise keys.refused(key, value, f"and {expected[key]} is what transformers' model has")
        if key not in expected and key not in _NO_MATTER:
            raise keys.refused(
                key,
                value,
                "which is not known here, and a model read without it may be another one",
            )
    tokens = {
        f"{token}_token_id": fields.get(f"tokenizer.ggml.{key}_token_id")
        for token, key in {"bos": "bos", "eos": "eos", "pad": "padding"}.items()
    }
    tied = "output.weight" not in shapes
    return AutoConfig.for_model(
        architecture.model_type, vocab_size=vocabulary, tie_word_embeddings=tied, **tokens, **values
    )


def _rotary(
    keys: _Keys,
    architecture: _Architecture,
    factors: Mapping[str, list[float]],
    head_dim: int,
    context: int,
) -> dict[str, Any]:
    """The fields of rotary positions."""
    base = keys.number("rope.freq_base", 10_000.0)
    part = keys.number("rope.dimension_count", head_dim) if architecture.partial else head_dim
    scaling = _scaling(keys, factors, context)
    if (kind := scaling.get("rope_type", "default")) not in ("default", *architecture.scalings):
        raise keys.refused("rope.scaling", kind, "which transformers' model does not have")
    lengths = {len(scaling[name]) for name in ("long_factor", "short_factor") if name in scaling}
    if lengths - {part // 2}:
        raise ModelError(
            f"its rotary positions have factors for {max(lengths)} frequencies, and {part // 2} frequencies"
        )
    rope = {"rope_type": "default", "rope_theta": base, **scaling}
    if part != head_dim or architecture.partial:
        rope["partial_rotary_factor"] = part / head_dim
    # its layers with a window have positions of their own, never scaled
    if architecture.model_type == "gemma3_text":
        near = {"rope_type": "default", "rope_theta": keys.number("rope.freq_base_swa", 10_000.0)}
        return {"rope_parameters": {"full_attention": rope, "sliding_attention": near}}
    fields: dict[str, Any] = {"rope_parameters": rope}
    # it looks there
    if architecture.model_type == "phi3" and "original_max_position_embeddings" in rope:
        fields["original_max_position_embeddings"] = rope["original_max_position_embeddings"]
    return fields


def _scaling(keys: _Keys, factors: Mapping[str, list[float]], context: int) -> dict[str, Any]:
    """How rotary positions are scaled, as transformers says it; empty if they are not.

    Factors of single frequencies are those of longrope, also where they are the same for long and
    short texts.
    """
    kind = keys.pop(
        "rope.scaling.type", "longrope" if "rope_factors_long.weight" in factors else "linear"
    )
    factor = (
        keys.number(
            "rope.scaling.factor" if "rope.scaling.factor" in keys else "rope.scale_linear", 1
        )
        or 1
    )
    original = keys.number("rope.scaling.original_context_length", context)
    if kind == "yarn" and not factors:
        scaling = {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": original,
        }
        named = {
            "rope.scaling.yarn_attn_factor": "attention_factor",
            "rope.scaling.yarn_beta_fast": "beta_fast",
            "rope.scaling.yarn_beta_slow": "beta_slow",
        }
        return scaling | {field: keys.number(key) for key, field in named.items() if key in keys}
    both = [factors.get(name) for name in ROTARY_FACTORS[1:]]
    if kind == "longrope" and factor == 1 and all(both) and len(factors) == 2:
        attention = keys.number("rope.scaling.attn_factor", 1.0)
    elif (
        kind in ("none", "linear")
        and (kind == "none" or factor == 1)
        and set(factors) == {ROTARY_FACTORS[0]}
    ):
        both, attention = [factors[ROTARY_FACTORS[0]]] * 2, 1.0  # as Llama 3 has them
    elif kind in ("none", "linear") and not factors:
        return {"rope_type": "linear", "factor": factor} if kind == "linear" and factor != 1 else {}
    else:
        tensors = ", ".join(factors) or "none"
        raise keys.refused(
            "rope.scaling.type", kind, f"with the factor {factor} and the tensors {tensors}"
        )
    return {
        "rope_type": "longrope",
        "long_factor": both[0],
        "short_factor": both[1],
        "attention_factor": attention,
        "original_max_position_embeddings": original,
    }
