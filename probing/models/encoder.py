"""Any Hugging Face encoder, encoder half or decoder, whose attention is read batch by batch."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor

from codesyntax_dataset.errors import ModelError
from probing.models import capture, subtokens
from probing.models.loaded import (
    Batch,
    Loaded,
    LoadedModel,
    body_of,
    borrowed,
    quiet,
    without_cache,
)

logger = logging.getLogger(__name__)


class Encoder(LoadedModel):
    """A model whose attention is read, on the path that the self-check found correct for it.

    `layers`, `heads`: the number of its attention layers, and of heads in each; `causal`: whether
    no sub-token attends to a later one; `path`: `captured` if attention is read in our attention
    function, `eager` if that differs from what the model computes, for the reason in `why`;
    `begin`: the id of the token that is put before the text of a decoder, None if none is;
    `exact_offsets`: as in `probing.models.subtokens`; `examined`: the longest and the shortest text of
    `selfcheck.examine_lengths`. All but the last two are set by the self-check.
    Of an encoder-decoder, `model` is the encoder; of a model with a head, the body.

    Decoders give most attention to the first token, whatever it is (Xiao et al. 2024, ICLR, section
    3.1). Where the tokenizer puts none in front, that token would be code, and what heads know of
    it, and of all tokens that it hides, would not show. So the model reads after a token that is
    never counted, as it does with other tokenizers.
    """

    layers: int
    heads: int
    causal: bool
    why: str

    def __init__(self, loaded: Loaded):
        super().__init__(loaded)
        self.model = body_of(loaded.model)
        # FSDP gathers weights where the whole model is run
        self._run = loaded.model if self.spread else self.model
        # the encoder of fsmt has none of its own
        config: Any = getattr(self.model, "config", loaded.model.config)
        self.family = config.model_type
        self.exact_offsets = subtokens.exact_offsets(self.tokenizer)
        self._options = without_cache(self._run)
        self.begin: int | None = None
        self.examined: tuple[np.ndarray, ...] = ()

    @property
    def path(self) -> str:
        return "eager" if self.why else "captured"

    def accept(self) -> None:
        """Read attention as the self-check says."""
        if self.why:
            logger.warning("%s is probed with eager attention maps: %s", self.name, self.why)
        token = subtokens.begin_token(self.tokenizer) if self.causal else None
        if token is not None and token < self.vocabulary:
            self.begin = token

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """As of `LoadedModel`, with `begin` in front, a special token."""
        for ids, offsets, special in super().encode(texts):
            if self.begin is not None:
                ids, special = np.append(np.int32(self.begin), ids), np.append(True, special)
                offsets = np.concatenate([np.zeros((1, 2), np.int32), offsets])
            yield ids, offsets, special

    def forward(self, inputs: Batch, listener: capture.Listener) -> None:
        """Run the model over a padded batch, calling `listener` once per layer.

        Raises ModelError if the model does not call its attention exactly once per layer.
        """
        heard = 0

        def listen(rows: capture.Rows) -> Tensor | None:
            nonlocal heard
            heard += 1
            return listener(rows) if heard <= self.layers else None

        if self.path == "captured":
            with capture.listen(listen):
                self.run(inputs, capture.ATTENTION_NAME)
        else:
            for maps in self.maps(inputs):
                listen(capture.rows_of(maps))
        if heard != self.layers:
            raise ModelError(
                f"{self.name} called its attention {heard} times, expected once for each of {self.layers} layers"
            )

    def maps(self, inputs: Batch) -> Sequence[Tensor]:
        """The attention maps (B, H, S, S) of each layer, as the model reports them in eager
        mode."""
        length = inputs["input_ids"].shape[1]
        layers = self.run(inputs, "eager", output_attentions=True)["attentions"]
        for maps in layers:
            # some families use another kind of attention for long inputs
            if maps.shape[2:] != (length, length):
                raise ModelError(
                    f"{self.name} reports attention maps of the shape {tuple(maps.shape)} for {length} sub-tokens: "
                    "lower --max-length to where its attention changes"
                )
        return layers

    def run(self, inputs: Batch, attention: str, **options: Any) -> transformers.utils.ModelOutput:
        """The model's output for a padded batch, computed with the attention function registered as
        `attention`."""
        with borrowed(self._run, self.prompt), attention_of(self.model, attention):
            return self._run(**inputs, **self._options, **options, return_dict=True)


@contextlib.contextmanager
def attention_of(model: torch.nn.Module, name: str) -> Iterator[None]:
    """Let the model compute with the attention function registered as `name`, if its code supports
    this."""
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
