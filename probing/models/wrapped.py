"""The transformers model in what a training wraps around it: `torch.compile`, data parallelism,
adapters of PEFT; and the adapters of a folder on their base model.

Weights of low rank (LoRA and its kin) are in the layers of the model, and are read with it. Virtual
tokens (prompt and prefix tuning) stand before each text: they are in no row or column of attention
that is ranked, like the token in front of a decoder.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from codesyntax_dataset.errors import ModelError
from probing.models import capture

_INNER = {
    "OptimizedModule": "_orig_mod",
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "DeepSpeedEngine": "module",
}
"""Classes of torch and DeepSpeed -> where they have the model."""

_ZERO_3 = "ds_tensor"
"""What weights have of which DeepSpeed left a part to each process."""


class Unwrapped(NamedTuple):
    """A transformers model, and the PEFT model whose virtual tokens stand before its texts, None
    without."""

    model: Any
    prompt: Any = None


def unwrapped(model: Any) -> Unwrapped:
    """What is in a model; one that is not wrapped is itself.

    Raises ModelError for weights that are spread over processes in a form that cannot be run.
    """
    _check_weights_here(model)
    prompt = None
    while True:
        kinds = {kind.__name__ for kind in type(model).__mro__}
        peft = sys.modules.get("peft")
        if peft is not None and isinstance(model, peft.PeftModel):
            prompt = model if model.active_peft_config.is_prompt_learning else prompt
            model = model.get_base_model()
        elif peft is not None and isinstance(model, peft.PeftMixedModel):
            model = model.base_model.model
        elif inner := next((name for kind, name in _INNER.items() if kind in kinds), None):
            model = getattr(model, inner)
        else:
            return Unwrapped(model, prompt)


def _check_weights_here(model: Any) -> None:
    """Raise ModelError for weights that are in other processes, too, in a form that cannot be run:
    also where the model that is in a wrapper is given."""
    if not isinstance(model, torch.nn.Module):
        return
    if "FullyShardedDataParallel" in {type(part).__name__ for part in model.modules()}:
        raise ModelError(
            "its weights are spread over processes by FSDP 1: shard it with fully_shard (FSDP 2), or read what it saves"
        )
    if any(hasattr(weight, _ZERO_3) for weight in model.parameters()):
        raise ModelError(
            "its weights are spread over processes by ZeRO, stage 3: use stage 2, or read what it saves"
        )


def is_spread(model: Any) -> bool:
    """Whether the weights of a model are those of several processes, which all run it (FSDP 2)."""
    parts = model.modules() if isinstance(model, torch.nn.Module) else ()
    return any(kind.__name__ == "FSDPModule" for part in parts for kind in type(part).__mro__)


def virtual_tokens(prompt: Any) -> int:
    """How many stand before each text."""
    return 0 if prompt is None else prompt.active_peft_config.num_virtual_tokens


def prompted(body: Any, prompt: Any) -> Callable[..., Any]:
    """The forward of a body with the virtual tokens of a PEFT model before each text, and without
    them in what it returns."""
    count, own = virtual_tokens(prompt), body.forward

    @functools.wraps(own)
    def forward(
        input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **options: Any
    ) -> Any:
        assert input_ids is not None and attention_mask is not None
        batch = len(input_ids)
        ahead = attention_mask.new_ones(batch, count)
        virtual = prompt.get_prompt(batch)
        if isinstance(virtual, Tensor):  # their embeddings
            embedded = body.get_input_embeddings()(input_ids)
            inputs: Any = {
                "inputs_embeds": torch.cat([virtual.to(embedded), embedded], 1),
                "input_ids": None,
            }
        else:  # their keys and values in each layer
            inputs = {"input_ids": input_ids, "past_key_values": virtual}
        options.pop("inputs_embeds", None)
        options.pop("past_key_values", None)
        options.pop("position_ids", None)
        mask = torch.cat([ahead, attention_mask], 1)
        with capture.behind(count):
            output = own(attention_mask=mask, **inputs, **options)
        length = input_ids.shape[1]
        for name, value in output.items():
            if name == "attentions" and value is not None:
                output[name] = tuple(maps[..., -length:, -length:] for maps in value)
            elif name == "hidden_states" and value is not None:
                output[name] = tuple(hidden[:, -length:] for hidden in value)
        output["last_hidden_state"] = output["last_hidden_state"][:, -length:]
        return output

    return forward


def adapted(model: Any, folder: str) -> Unwrapped:
    """A model with the adapter in a folder: merged into its weights, or its virtual tokens beside
    it.

    Raises ModelError without PEFT, or safetensors, and for weights that belong to another model.
    """
    try:
        import peft
    except ImportError:
        raise ModelError(
            "it is an adapter, which PEFT reads: pip install 'codesyntax[peft]'"
        ) from None
    file = Path(folder, "adapter_model.safetensors")
    if not file.exists():
        raise ModelError(f"it has no {file.name}, and reading other formats can run code")
    with warnings.catch_warnings(category=FutureWarning):  # of PEFT's own calls
        warnings.simplefilter("ignore")
        wrapped = peft.PeftModel.from_pretrained(model, folder)
    with safe_open(file, "pt") as weights:
        expected = set(peft.get_peft_model_state_dict(wrapped))
        if lost := sorted(expected.symmetric_difference(weights.keys())):
            raise ModelError(f"its adapter and its base model differ in {', '.join(lost[:3])}")
    if wrapped.active_peft_config.is_prompt_learning:
        return unwrapped(wrapped)
    return Unwrapped(wrapped.merge_and_unload())
