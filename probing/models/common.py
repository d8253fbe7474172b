"""What every loaded model needs: its files and parts, padded batches of its sub-tokens, and leaving it as it was."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoTokenizer
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from codesyntax_dataset.errors import ModelError
from probing.models.catalogue import positions
from probing.models.cubert.tokenizer import CubertTokenizer
from probing.models.location import Location
from probing.models.transfer import send
from probing.models.untrusted import check_growth, check_parts

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def checked_dtype(dtype: str | torch.dtype) -> str:
    """The name of a precision; raises ModelError for one that is not in DTYPES."""
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ModelError(f"dtype is {name!r}, expected one of {', '.join(DTYPES)}")
    return name


def config_and_tokenizer(source: Location) -> tuple[transformers.PreTrainedConfig, Any]:
    options: dict[str, Any] = {"revision": source.commit, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(source.place, **options)
    check_parts(config)
    if get_tokenizer_config(source.place, revision=source.commit).get("tokenizer_class") == CubertTokenizer.__name__:
        return config, CubertTokenizer.from_pretrained(source.place, revision=source.commit or "main")
    tokenizer = AutoTokenizer.from_pretrained(source.place, config=config, **options)
    if not isinstance(tokenizer.model_max_length, (int, float)):
        raise ModelError(
            f"its tokenizer's model_max_length is a {type(tokenizer.model_max_length).__name__}, no number"
        )
    check_growth(tokenizer)
    return config, tokenizer


def check_weights(model: transformers.PreTrainedModel, info: Mapping[str, Any]) -> list[str]:
    """The names of missing weights outside of the model's body; `info` is that of `from_pretrained`.

    Raises ModelError for weights of the body that are missing, and would be random, except those of poolers and heads,
    or of another shape.
    """
    if info["mismatched_keys"]:
        name, got, expected = min(info["mismatched_keys"])
        raise ModelError(f"its weights {name} have the shape {tuple(got)}, its configuration says {tuple(expected)}")
    parts = dict(model.named_parameters(remove_duplicate=False))
    body = {id(parameter) for parameter in body_of(model).parameters()}
    lost = sorted(
        name
        for name in info["missing_keys"]
        if id(parts.get(name)) in body and not any(part in name for part in ("pooler", "_head"))
    )
    if lost:
        raise ModelError(f"its weights lack {', '.join(lost[:3])}{' and others' if len(lost) > 3 else ''}")
    return sorted(name for name in info["missing_keys"] if id(parts.get(name)) not in body)


def both_of_pair(pair: tuple) -> tuple[Any, Any]:
    """A model and a tokenizer; raises ModelError if these are not two."""
    if len(pair) != 2:
        raise ModelError(f"the model is a tuple of {len(pair)}, expected two: a transformers model and its tokenizer")
    model, tokenizer = pair
    return model, tokenizer


def checked_pair(model: object, tokenizer: object, dtype: str) -> None:
    """Raise ModelError for a pair in memory that is not a whole model of this precision and a tokenizer."""
    if not isinstance(model, transformers.PreTrainedModel):
        raise ModelError(f"the model is a {type(model).__name__}, expected a transformers model, or the name of one")
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise ModelError(
            f"the tokenizer is a {type(tokenizer).__name__}, expected a transformers tokenizer: the model's own"
        )
    if any(part.device.type == "meta" for part in (*model.parameters(), *model.buffers())):
        raise ModelError(
            f"{type(model).__name__} has weights on the meta device, which have no values: load it completely, with "
            "from_pretrained and without device_map"
        )
    if model.dtype != DTYPES[dtype]:
        raise ModelError(
            f"the model's weights are {str(model.dtype).removeprefix('torch.')}, but dtype is {dtype}: use the same "
            f"precision for both; model.to(torch.{dtype}) converts the model"
        )


def name_of_pair(model: transformers.PreTrainedModel) -> str:
    """The name of a model in memory: that of its folder, its Hub id, or its class."""
    name = model.config.name_or_path or type(model).__name__
    return Path(name).resolve().name if Path(name).is_dir() else name


def digest_of_pair(model: transformers.PreTrainedModel, tokenizer: transformers.PreTrainedTokenizerBase) -> str:
    """A digest of a model and a tokenizer in memory."""
    config = {
        name: value
        for name, value in model.config.to_diff_dict().items()
        if name not in ("transformers_version", "dtype")
    }
    text = json.dumps(config, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode())
    if getattr(tokenizer, "is_fast", False):
        pipeline = json.loads(tokenizer.backend_tokenizer.to_str())
        pipeline.update(padding=None, truncation=None)  # left over from the last call, and set by each of our calls
        digest.update(json.dumps(pipeline, sort_keys=True).encode())
    elif isinstance(tokenizer, CubertTokenizer):
        digest.update(json.dumps([tokenizer.language, tokenizer.drop, tokenizer.get_vocab()]).encode())
    weights = model.state_dict()
    with ThreadPoolExecutor() as pool:  # on one core SHA-256 takes as long as the self-check
        for name, of_tensor in zip(weights, pool.map(_digest_of_tensor, weights.values())):
            digest.update(name.encode() + of_tensor)
    return digest.hexdigest()


def _digest_of_tensor(tensor: torch.Tensor) -> bytes:
    return hashlib.sha256(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data).digest()


def body_of(model: transformers.PreTrainedModel) -> torch.nn.Module:
    """The model without its head; of an encoder-decoder, the encoder."""
    body = model.base_model
    assert isinstance(body, transformers.PreTrainedModel)
    return body.get_encoder() if body.config.is_encoder_decoder and hasattr(body, "get_encoder") else body


def positions_of(model: transformers.PreTrainedModel) -> int | None:
    """The number of positions of the model, or that its configuration gives if positions are relative; None: any."""
    for name, module in body_of(model).named_modules():
        table = getattr(module, "weight", None)
        if name.rpartition(".")[2] == "position_embeddings" and table is not None:
            # RoBERTa and its descendants count positions from after the padding index
            padding = getattr(module, "padding_idx", None)
            return len(table) - (0 if padding is None else padding + 1)
    return positions(model.config)


def without_cache(model: torch.nn.Module) -> dict[str, bool]:
    """The options with which a model, such as a decoder, does not keep the keys and values of all layers."""
    return {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}


def vocabulary_of(model: transformers.PreTrainedModel) -> float:
    """The number of ids with an embedding; infinite for models that hash their ids instead."""
    try:
        embedding = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        return float("inf")
    weight = getattr(embedding, "weight", None)
    return len(weight) if isinstance(weight, torch.Tensor) else float("inf")


def padded(
    ids: Sequence[np.ndarray], padding: int, vocabulary: float, name: str, device: torch.device
) -> dict[str, torch.Tensor]:
    """A padded batch: input_ids and attention_mask (B, S), padding on the right, on a device.

    Raises ModelError for an id beyond the `vocabulary` of the model `name`.
    """
    length = max(map(len, ids))
    input_ids = np.full((len(ids), length), padding, np.int64)
    mask = np.zeros((len(ids), length), np.int64)
    for row, one in enumerate(ids):
        input_ids[row, : len(one)] = one
        mask[row, : len(one)] = 1
    if input_ids.max() >= vocabulary:
        raise ModelError(
            f"the tokenizer of {name} gives the id {input_ids.max()}, but the model has embeddings for "
            f"{vocabulary} only: do the two belong together?"
        )
    return {"input_ids": send(input_ids, device), "attention_mask": send(mask, device)}


@contextlib.contextmanager
def borrowed(model: torch.nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode; afterwards restore the mode of each part, and undo what its own code leaves.

    That is: hooks of transformers that collect requested outputs, and BigBird's switch to full attention on a short
    text, which would otherwise persist for long ones.
    """
    parts = list(model.modules())
    training = [part.training for part in parts]
    hooks = [set(part._forward_hooks) for part in parts]
    listening = ["_output_capturing_hooks_installed" in part.__dict__ for part in parts]
    kind, set_kind = getattr(model, "attention_type", None), getattr(model, "set_attention_type", None)
    model.eval()
    try:
        yield
    finally:
        if kind is not None and set_kind is not None and model.attention_type != kind:
            set_kind(kind)
        for part, was_training, before, listened in zip(parts, training, hooks, listening):
            part.training = was_training
            for hook in set(part._forward_hooks) - before:
                del part._forward_hooks[hook]
            if not listened:
                part.__dict__.pop("_output_capturing_hooks_installed", None)


def device_named(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {str(name)!r} cannot be used: {str(error).splitlines()[0]}") from None
    return device


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Compute float32 products in float32, without TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' long warnings about missing weights and attention, which our messages cover."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)
