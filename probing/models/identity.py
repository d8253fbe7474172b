"""The identity of a model in memory: one digest for each checkpoint, however it was loaded.

`digest_of` covers what attention depends on: the weights of the body (of an encoder-decoder, its
encoder) by their names in it, the configuration, and the tokenizer. A folder, a snapshot of the
Hub, shards, a pair and a model under any head give the same digest. Poolers and the body's own
heads are left out: `from_pretrained` draws them at random where a checkpoint lacks them.
`digest_of_head` covers the rest of a language model, and the mask token.

Digests are of weights as loaded: another precision gives another digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch
import transformers
from torch import Tensor

from probing.models.cubert.tokenizer import CubertTokenizer
from probing.models.files import HEAD_MARK
from probing.models.loaded import LoadedModel, body_of, is_read

_NOT_ATTENTION = {*transformers.PreTrainedConfig().to_dict(), "use_cache"} - {"model_type"}
"""Fields that every configuration has, on labels, outputs and files, and one on memory."""


def digest_of(
    model: transformers.PreTrainedModel,
    tokenizer: transformers.PreTrainedTokenizerBase,
    prompt: Any = None,
) -> str:
    """SHA-256 over the body of a model, its configuration and its tokenizer, and the virtual tokens
    of a PEFT model, if there are any."""
    if prompt is not None:
        return _digest(digest_of(model, tokenizer), prompt.prompt_encoder.state_dict())
    body = body_of(model)
    config: Any = getattr(body, "config", model.config)  # the encoder of fsmt has none of its own
    return _digest(
        f"[{_json(_configuration(config.to_diff_dict()))}, {_pipeline(tokenizer)}]",
        {name: weight for name, weight in body.state_dict().items() if is_read(name)},
    )


def digest_of_head(
    model: transformers.PreTrainedModel, tokenizer: transformers.PreTrainedTokenizerBase
) -> str:
    """SHA-256 over the weights of a language model outside of its body, and its mask token."""
    body = {id(weight) for weight in body_of(model).state_dict(keep_vars=True).values()}
    whole = model.state_dict(keep_vars=True)
    return _digest(
        _json([getattr(tokenizer, "mask_token_id", None)]),
        {name: weight for name, weight in whole.items() if id(weight) not in body},
    )


def is_revision(model: LoadedModel, revision: str) -> bool:
    """True for the model's revision, and for the digest that a copy of it in memory or a folder
    has."""
    if revision == model.revision:
        return True
    digest = digest_of(model.model, model.tokenizer, model.prompt)
    if HEAD_MARK in revision:
        digest += HEAD_MARK + digest_of_head(model.model, model.tokenizer)
    return revision == digest


def _configuration(fields: Any) -> Any:
    if not isinstance(fields, dict):
        return fields
    return {
        name: _configuration(value) for name, value in fields.items() if name not in _NOT_ATTENTION
    }


def _pipeline(tokenizer: Any) -> str:
    """The tokenizer's rules as JSON; `null` for a tokenizer in Python that is not ours."""
    if getattr(tokenizer, "is_fast", False):
        return _without_calls(tokenizer.backend_tokenizer.to_str())
    if isinstance(tokenizer, CubertTokenizer):
        return _json([tokenizer.language, [], tokenizer.get_vocab()])
    return _json(None)


@lru_cache(maxsize=2)  # sorting a vocabulary takes longer than loading a small model
def _without_calls(rules: str) -> str:
    """The rules of a tokenizer without padding and truncation, which each call sets anew."""
    return _json(json.loads(rules) | {"padding": None, "truncation": None})


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(described: str, weights: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(described.encode())
    ordered = dict(sorted(weights.items()))
    with ThreadPoolExecutor() as pool:  # on one core SHA-256 takes as long as the self-check
        for (name, weight), content in zip(
            ordered.items(), pool.map(_weight_digest, ordered.values())
        ):
            digest.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode() + content)
    return digest.hexdigest()


def _weight_digest(weight: Tensor) -> bytes:
    return hashlib.sha256(
        weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    ).digest()
