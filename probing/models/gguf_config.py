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

ROTARY_FACTORS = "rope_freqs.weight"
"""The tensor that is no weight of the model: by what rotary frequencies are divided, one number for
each, as of Llama 3."""

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
    fields that are true if the file has a tensor; `always`: what llama.cpp does, and no key says.
    """

    model_type: str
    required: Mapping[str, str]
    optional: Mapping[str, str] = {}
    by_tensor: Mapping[str, str] = {}
    always: Mapping[str, Any] = {}


_BIAS = {"attention_bias": "blk.0.attn_q.bias"}

_ARCHITECTURES = {
    "gemma2": _Architecture("gemma2", _RMS | _WINDOW, _CAP | {"attn_logit_softcapping": "attn_logit_softcapping"}),
    "gemma3": _Architecture("gemma3_text", _RMS | _WINDOW, _CAP),
    "llama": _Architecture("llama", _RMS, by_tensor=_BIAS | {"mlp_bias": "blk.0.ffn_up.bias"}),
    "phi3": _Architecture("phi3", _RMS, _WINDOW),
    "qwen2": _Architecture("qwen2", _RMS),
    "qwen3": _Architecture("qwen3", _RMS, by_tensor=_BIAS),
    "qwen3moe": _Architecture("qwen3_moe", _RMS | _EXPERTS, by_tensor=_BIAS, always={"norm_topk_prob": True}),
    "starcoder2": _Architecture("starcoder2", _GROUPED | {"attention.layer_norm_epsilon": "norm_epsilon"}),
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
    factors: Sequence[float] = (),
) -> PreTrainedConfig:
    """The configuration of the model with these metadata.

    `shapes`: those of its tensors, in the order of ggml; `factors`: the values of ROTARY_FACTORS,
    none without it.
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
    if not values.get("sliding_window", True):
        values["sliding_window"] = None  # llama.cpp writes 0 for Phi-4, which has no window
    values |= {field: tensor in shapes for field, tensor in architecture.by_tensor.items()}
    values |= architecture.always
    head_dim = values["head_dim"] = keys.number("attention.key_length", width // heads)
    values["rope_parameters"] = _rotary(keys, factors, head_dim, values["max_position_embeddings"])
    if name in _LAYERS_OF_27B:
        values["query_pre_attn_scalar"] = (
            width // heads if layers == _LAYERS_OF_27B[name] else head_dim
        )
    vocabulary = shapes["token_embd.weight"][-1]
    expected = {
        "attention.causal": True,
        "attention.value_length": head_dim,
        "expert_count": 0,
        "expert_used_count": 0,
        "rope.dimension_count": head_dim,
        # of all Phi-3 files, and without a meaning where positions are not scaled
        "rope.scaling.original_context_length": values["max_position_embeddings"],
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
    return AutoConfig.for_model(
        architecture.model_type,
        vocab_size=vocabulary,
        tie_word_embeddings="output.weight" not in shapes,
        bos_token_id=fields.get("tokenizer.ggml.bos_token_id"),
        eos_token_id=fields.get("tokenizer.ggml.eos_token_id"),
        pad_token_id=fields.get("tokenizer.ggml.padding_token_id"),
        **values,
    )


def _rotary(keys: _Keys, factors: Sequence[float], head_dim: int, context: int) -> dict[str, Any]:
    """The field of rotary positions; those of factors are transformers' longrope, with the same
    factors for long and short texts."""
    rope = {"rope_type": "default", "rope_theta": keys.number("rope.freq_base", 1e4)}
    # as llama.cpp reads them: linear where no key says how, and 0 for positions as they are
    kind = keys.pop("rope.scaling.type", "linear")
    scale = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 0))
    if kind not in ("linear", "none") or (factors and scale):
        raise keys.refused(
            "rope.scaling.type", kind, "whose positions are not those of transformers"
        )
    far = rope | (
        {"rope_type": "linear", "factor": scale} if kind == "linear" and scale > 1 else {}
    )
    if len(factors) not in (0, frequencies := head_dim // 2 * (keys.architecture == "llama")):
        raise ModelError(
            f"its rotary positions have factors for {len(factors)} frequencies, expected {frequencies} as of Llama 3"
        )
    if factors:
        both = {"long_factor": factors, "short_factor": factors, "attention_factor": 1.0}
        return rope | both | {"rope_type": "longrope", "original_max_position_embeddings": context}
    if keys.architecture != "gemma3":
        return far
    # its layers with a window have positions of their own
    near = rope | {"rope_theta": keys.number("rope.freq_base_swa", 1e4)}
    return {"full_attention": far, "sliding_attention": near}
