"""Any Hugging Face encoder, encoder half or decoder, whose attention is read batch by batch; and a
language model with some attention heads of its body silenced.

A silenced head puts out, at every position, the mean of its outputs over all sub-tokens of some
reference functions (mean ablation: its weights and the other heads stay as they are), or another of
STAND_INS. The reference
is the same for all functions, so that the mean tells nothing about the function that is read, and
no result depends on which functions share a batch; its functions run one by one, in order, so that
padding is not in the mean.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Self

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
from probing.models.masked import ScoringModel
from probing.models.transfer import send

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


AttentionHead = tuple[int, int]
"""Layer and query head, both from 0."""

STAND_INS = MEAN, ZERO, RESAMPLED = "mean", "zero", "resampled"
"""What silenced heads put out: the mean of their outputs over some functions, nothing, or their
outputs at other places of these functions."""

_RESAMPLED = 4096
"""The most sub-tokens whose outputs stand in for those of silenced heads."""


class LanguageModel(Encoder):
    """A language model that predicts single sub-tokens while some of its attention heads are
    silenced.

    `scoring`: the same model with its head; `with_head`: its revision with this head, where
    `revision` is that of an encoder; `mask`: the id of its mask token, None for a decoder.
    """

    def __init__(self, loaded: Loaded, masked: bool):
        super().__init__(loaded)
        self.scoring = ScoringModel(loaded, masked)
        self.with_head, self.mask = self.scoring.revision, self.scoring.mask

    def stand_ins(self, functions: Sequence[np.ndarray], kind: str = MEAN) -> list[Tensor]:
        """What silenced heads put out, from these functions, ids (S,) each, at least one: of each
        layer (N, H, D), one after the other.

        `kind`: MEAN, of their outputs over all sub-tokens; ZERO; or RESAMPLED, their outputs at up
        to _RESAMPLED sub-tokens, which are spread evenly over the functions.
        """
        heard: list[Tensor] = []
        sums: list[Tensor] = []
        drawn: list[list[Tensor]] = []
        total = sum(map(len, functions))
        every = max(1, total // _RESAMPLED)
        for ids in functions:
            heard.clear()
            with capture.edit(lambda outputs: heard.append(outputs[0].clone())):  # (S, H, D)
                self.run(self.inputs([ids]), capture.ATTENTION_NAME)
            if [outputs.shape[1] for outputs in heard] != [self.heads] * self.layers:
                raise ModelError(
                    f"the heads of {self.name} cannot be silenced: its layers have outputs of other forms"
                )
            added = [outputs.double().sum(dim=0) for outputs in heard]
            sums = [before + outputs for before, outputs in zip(sums, added)] if sums else added
            drawn.append([outputs[::every] for outputs in heard])
        if kind == RESAMPLED:
            return [torch.cat(of_layer) for of_layer in zip(*drawn)]
        scale = 0.0 if kind == ZERO else 1 / total
        return [(outputs * scale).float()[None] for outputs in sums]

    def log_probabilities(
        self,
        inputs: Batch,
        rows: Tensor,
        columns: Tensor,
        silenced: Sequence[Sequence[AttentionHead]],
        stand_ins: Sequence[Tensor],
    ) -> Tensor:
        """`ScoringModel.log_probabilities` with some heads silenced.

        `silenced`: those of each row of the batch, none for the whole model; `stand_ins`: what they
        put out, as of the method of this name.
        """
        with (
            attention_of(self.model, capture.ATTENTION_NAME),
            capture.edit(self._silencer(silenced, stand_ins)),
        ):
            return self.scoring.log_probabilities(inputs, rows, columns)

    def _silencer(
        self, silenced: Sequence[Sequence[AttentionHead]], stand_ins: Sequence[Tensor]
    ) -> capture.Editor:
        """Puts stand-ins in place of the outputs of the heads that are silenced in each row of a
        batch."""
        of_layers: list[list[tuple[int, int]]] = [[] for _ in stand_ins]
        for row, heads in enumerate(silenced):
            for number, head in heads:
                of_layers[number].append((row, head))
        cells = [np.array(of_layer, np.int64).reshape(-1, 2).T for of_layer in of_layers]
        layers = zip(stand_ins, [send(of_layer, self.device) for of_layer in cells])

        def silence(outputs: Tensor) -> None:
            stand_in, (rows, heads) = next(layers)
            places = torch.arange(outputs.shape[1], device=outputs.device) % len(stand_in)
            put = stand_in[places][:, heads].transpose(0, 1)  # (silenced, S, D)
            outputs[rows, :, heads] = put.to(outputs.dtype)

        return silence

    def examine(self) -> Self:
        """Check what silencing needs, beside the self-check of attention: the head, with our
        attention function.

        Raises ModelError if the heads cannot be silenced, or there is nothing to compare them with.
        """
        if self.why:
            raise ModelError(
                f"the heads of {self.name} cannot be silenced: silencing needs our attention function, and {self.why}"
            )
        if self.prompt is not None:
            raise ModelError(f"the heads of {self.name} cannot be silenced: it has virtual tokens")
        if self.heads < 2:
            raise ModelError(
                f"{self.name} has one attention head in each layer, and no other to compare it with"
            )
        with attention_of(self.model, capture.ATTENTION_NAME):
            self.scoring.examine()
        return self
