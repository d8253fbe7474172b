"""Any Hugging Face encoder, encoder half or decoder, ready to be probed: loaded, checked, and run batch by batch."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoModel

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.protocol import PAPER_LENGTH
from probing.models import cache_dir, capture, subtokens
from probing.models.common import (
    DTYPES,
    body_of,
    borrowed,
    both_of_pair,
    check_weights,
    checked_dtype,
    checked_pair,
    config_and_tokenizer,
    device_named,
    digest_of_pair,
    full_precision,
    name_of_pair,
    padded,
    positions_of,
    quiet,
    vocabulary_of,
    without_cache,
)
from probing.models.location import loading, locate
from probing.models.random_weights import with_random_weights
from probing.models.selfcheck import examine, recall, remember
from probing.models.untrusted import check_size

logger = logging.getLogger(__name__)


class Encoder:
    """A model and its tokenizer, on a device, with the attention path that the self-check found correct for it.

    `layers`, `heads`: the number of its attention layers, and of heads in each; `causal`: whether no sub-token attends
    to a later one; `longest`: the most sub-tokens, special tokens included, of a function; `checks`: the self-check;
    `path`: `captured` if attention is read in our attention function, `eager` if that differs from what the model
    computes, for the reason in `why`; `exact_offsets`: as in `probing.models.subtokens`.

    Of an encoder-decoder, the encoder is probed; of a model with a head, the body. The model is left unchanged:
    whatever a run changes, such as evaluation mode, is restored when the run ends or fails.

    `findings`: the file in which the self-check of the same model files is kept, if any.

    Raises ModelError if the model or its tokenizer cannot be probed.
    """

    def __init__(
        self,
        model: transformers.PreTrainedModel,
        tokenizer: transformers.PreTrainedTokenizerBase,
        name: str,
        revision: str,
        dtype: str,
        max_length: int = PAPER_LENGTH,
        findings: Path | None = None,
    ):
        self.model, self.tokenizer = body_of(model), tokenizer
        config = getattr(self.model, "config", model.config)  # the encoder of fsmt has none of its own
        assert isinstance(config, transformers.PreTrainedConfig)
        self.family = config.model_type
        self.name, self.revision, self.dtype = name, revision, dtype
        self.device = next(self.model.parameters()).device
        self.longest = min(max_length, positions_of(model) or max_length)
        self.exact_offsets = subtokens.exact_offsets(tokenizer)
        self._vocabulary = vocabulary_of(model)
        padding = tokenizer.pad_token_id
        # decoders often have no padding token, or one without a row in the embeddings; padding is masked anyway
        self._padding = padding if padding is not None and padding < self._vocabulary else 0
        self._options = without_cache(self.model)
        self_check = recall(findings) if findings else None
        if self_check is None:
            self_check = examine(self)
            if findings:
                remember(self_check, findings)
        self.layers, self.heads, self.causal, self.checks, self.why = self_check
        self.path = "eager" if self.why else "captured"
        if self.why:
            logger.warning("%s is probed with eager attention maps: %s", name, self.why)

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Sub-tokens of each text: ids (S,), character offsets (S, 2), and which are special (S,)."""
        return subtokens.encode(self.tokenizer, texts)

    def inputs(self, ids: Sequence[np.ndarray]) -> dict[str, torch.Tensor]:
        """A padded batch: input_ids and attention_mask (B, S), padding on the right."""
        return padded(ids, self._padding, self._vocabulary, self.name, self.device)

    def forward(self, inputs: Mapping[str, torch.Tensor], listener: capture.Listener) -> None:
        """Run the model over a padded batch, calling `listener` once per layer.

        Raises ModelError if the model does not call its attention exactly once per layer.
        """
        heard = 0

        def listen(rows: capture.Rows) -> torch.Tensor | None:
            nonlocal heard
            heard += 1
            return listener(rows) if heard <= self.layers else None

        if self.path == "captured":
            with capture.listen(listen):
                self.run(inputs, capture.NAME)
        else:
            for maps in self.maps(inputs):
                listen(capture.rows_of(maps))
        if heard != self.layers:
            raise ModelError(
                f"{self.name} called its attention {heard} times, expected once for each of {self.layers} layers"
            )

    def maps(self, inputs: Mapping[str, torch.Tensor]) -> Sequence[torch.Tensor]:
        """The attention maps (B, H, S, S) of each layer, as the model reports them in eager mode."""
        length = inputs["input_ids"].shape[1]
        layers = self.run(inputs, "eager", output_attentions=True)["attentions"]
        for maps in layers:
            if maps.shape[2:] != (length, length):  # some families use another kind of attention for long inputs
                raise ModelError(
                    f"{self.name} reports attention maps of the shape {tuple(maps.shape)} for {length} sub-tokens: "
                    "lower --max-length to where its attention changes"
                )
        return layers

    def run(self, inputs: Mapping[str, torch.Tensor], attention: str, **options: Any) -> transformers.utils.ModelOutput:
        """The model's output for a padded batch, computed with the attention function registered as `attention`."""
        with borrowed(self.model), attention_of(self.model, attention), full_precision(), torch.inference_mode():
            return self.model(**inputs, **self._options, **options, return_dict=True)


@checked
def load(
    model: str | os.PathLike | tuple,
    *,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    max_length: Positive = PAPER_LENGTH,
    random_weights: Natural | None = None,
) -> Encoder:
    """Load an encoder from a Hub id, a local folder, the name of the embedded one, or a (model, tokenizer) pair.

    Weights are read from safetensors only, and no code from the model's repository is run. `device`: by default a CUDA
    GPU if there is one; a pair stays on its device by default, and must already have the precision `dtype`.
    `max_length`: the most sub-tokens, special tokens included, of a function, if the model can read so many.
    `random_weights`: a seed, to use the model's architecture with initial weights instead of its own.

    Raises ModelError if the model does not exist, cannot be loaded, or cannot be probed.
    """
    dtype = checked_dtype(dtype)
    if isinstance(model, tuple):
        return _of_pair(*both_of_pair(model), dtype, device, max_length, random_weights)
    model = os.fspath(model)
    target = device_named(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    with loading(model), quiet():
        source = locate(model, revision)
        config, tokenizer = config_and_tokenizer(source)
        check_size(source, config)
        loaded, info = AutoModel.from_pretrained(
            source.place,
            config=config,
            revision=source.commit,
            dtype=DTYPES[dtype],
            use_safetensors=True,
            trust_remote_code=False,
            attn_implementation="eager",  # some families fix it when they are built
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by check_weights, which says which
        )
        check_weights(loaded, info)
        if random_weights is not None:
            loaded = with_random_weights(loaded, random_weights)
        loaded = loaded.to(target)
    revision = source.revision()
    # kept for weights read from files; a control and a model in memory are checked each time
    findings = cache_dir.self_check(revision, dtype, target.type, max_length) if random_weights is None else None
    return Encoder(loaded, tokenizer, source.name, revision, dtype, max_length, findings)


def load_tokenizer(model: str, *, max_length: int = PAPER_LENGTH) -> tuple[Any, int]:
    """A model's tokenizer, and the most sub-tokens of a function for it, without loading its weights."""
    with loading(model), quiet():
        config, tokenizer = config_and_tokenizer(locate(model))
        with torch.device("meta"):
            empty = AutoModel.from_config(config)
    return tokenizer, min(max_length, positions_of(empty) or max_length)


def _of_pair(
    model: transformers.PreTrainedModel,
    tokenizer: transformers.PreTrainedTokenizerBase,
    dtype: str,
    device: str | torch.device | None,
    max_length: int,
    random_weights: int | None,
) -> Encoder:
    checked_pair(model, tokenizer, dtype)
    with attention_of(model, "eager"):
        if model.config._attn_implementation != "eager":
            raise ModelError(
                f"{type(model).__name__} fixes its attention when it is built, and this one has "
                f"{model.config._attn_implementation}: build it with attn_implementation='eager'"
            )
    if device is not None:
        torch.nn.Module.to(model, device_named(device))
    name, identity = name_of_pair(model), digest_of_pair(model, tokenizer)
    if random_weights is not None:
        model = with_random_weights(model, random_weights)
    return Encoder(model, tokenizer, name, identity, dtype, max_length)


@contextlib.contextmanager
def attention_of(model: torch.nn.Module, name: str) -> Iterator[None]:
    """Let the model compute with the attention function registered as `name`, if its code supports this."""
    if not isinstance(model, transformers.PreTrainedModel):
        yield
        return
    before = model.config._attn_implementation
    with quiet():
        model.set_attn_implementation(name)
    try:
        yield
    finally:
        with quiet():
            model.set_attn_implementation(before)
