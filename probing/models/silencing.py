"""Any Hugging Face language model, masked or decoder, with some attention heads of its body silenced.

A silenced head puts out, at every position, the mean of its outputs over all sub-tokens of some reference functions
(mean ablation: its weights and the other heads stay as they are). The reference is the same for all functions, so that
the mean tells nothing about the function that is read, and no result depends on which functions share a batch; its
functions run one by one, in order, so that padding is not in the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import torch

from codesyntax_dataset.errors import ModelError
from probing.models import capture
from probing.models.encoder import Encoder, attention_of
from probing.models.loaded import TEXTS, Loaded
from probing.models.masked import OutputLayer
from probing.models.transfer import send

_LENGTH = 48  # the sub-tokens of the text for the self-check

AttentionHead = tuple[int, int]
"""Layer and query head, both from 0."""


class LanguageModel(Encoder):
    """A language model that predicts single sub-tokens while some of its attention heads are silenced.

    `with_head`: the revision of the model with its head, where `revision` is that of an encoder;
    `mask`: the id of the mask token of a masked language model, None for a decoder; `output`: its output layer;
    `means`: of each layer the mean output of its heads (H, D), empty until `learn_means`.
    """

    def __init__(self, loaded: Loaded, masked: bool):
        super().__init__(loaded)
        self.with_head = loaded.with_head
        self.output = OutputLayer(loaded, masked, self.vocabulary)
        self.mask = self.output.mask
        self.means: list[torch.Tensor] = []

    def learn_means(self, functions: Sequence[np.ndarray]) -> None:
        """Set the mean outputs of all heads, over all sub-tokens of these functions: ids (S,) each, at least one."""
        heard: list[torch.Tensor] = []
        sums: list[torch.Tensor] = []

        def hear(outputs: torch.Tensor) -> None:
            heard.append(outputs.double().sum(dim=1)[0])  # (H, D)

        for ids in functions:
            heard.clear()
            with capture.edit(hear):
                self.run(self.inputs([ids]), capture.NAME)
            if [len(outputs) for outputs in heard] != [self.heads] * self.layers:
                raise ModelError(f"the heads of {self.name} cannot be silenced: its layers have outputs of other forms")
            sums = [before + outputs for before, outputs in zip(sums, heard)] if sums else [*heard]
        total = sum(map(len, functions))
        self.means = [(outputs / total).float() for outputs in sums]

    def log_probabilities(
        self,
        inputs: Mapping[str, torch.Tensor],
        rows: torch.Tensor,
        columns: torch.Tensor,
        silenced: Sequence[Sequence[AttentionHead]],
    ) -> torch.Tensor:
        """`OutputLayer.log_probabilities` with some heads silenced.

        `silenced`: those of each row of the batch, none for the whole model.
        """
        with attention_of(self.model, capture.NAME), capture.edit(self._silencer(silenced)):
            return self.output.log_probabilities(inputs, rows, columns)

    def _silencer(self, silenced: Sequence[Sequence[AttentionHead]]) -> capture.Editor:
        """Puts the mean in place of the outputs of the heads that are silenced in each row of a batch."""
        layers = [
            [(row, head) for row, heads in enumerate(silenced) for of, head in heads if of == layer]
            for layer in range(len(self.means))
        ]
        cells = [send(np.array(of_layer, np.int64).reshape(-1, 2).T, self.device) for of_layer in layers]
        layer = -1

        def silence(outputs: torch.Tensor) -> None:
            nonlocal layer
            layer += 1
            rows, heads = cells[layer]
            outputs[rows, :, heads] = self.means[layer][heads][:, None].to(outputs.dtype)

        return silence

    def examine(self) -> Self:
        """Check what silencing needs, beside the self-check of attention.

        Raises ModelError if the heads cannot be silenced, or there is nothing to compare them with.
        """
        if self.why:
            raise ModelError(
                f"the heads of {self.name} cannot be silenced: silencing needs our attention function, and {self.why}"
            )
        if self.heads < 2:
            raise ModelError(f"{self.name} has one attention head in each layer, and no other to compare it with")
        if (self.mask is not None) == self.causal:
            sees = "cannot see later sub-tokens, but has" if self.causal else "sees later sub-tokens, but has not"
            raise ModelError(f"{self.name} {sees} a head that restores masks: use a masked language model or a decoder")
        ids, _, _ = next(self.encode(TEXTS[1:]))
        inputs = self.inputs([ids[: min(self.longest, _LENGTH)]])
        columns = torch.arange(1, inputs["input_ids"].shape[1], device=self.device)
        rows = torch.zeros_like(columns)
        with attention_of(self.model, capture.NAME):
            expected = self.output.everywhere(inputs)[rows, columns]
            if expected.shape[-1] < len(self.tokenizer):
                raise ModelError(
                    f"{self.name} has {expected.shape[-1]} logits for {len(self.tokenizer)} sub-tokens: its "
                    "output layer does not know all sub-tokens of its tokenizer"
                )
            self.output.examine(inputs, rows, columns, expected, self.dtype)
        return self
