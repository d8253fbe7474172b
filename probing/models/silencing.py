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
from probing.models.loaded import Loaded
from probing.models.masked import ScoringModel
from probing.models.transfer import send

AttentionHead = tuple[int, int]
"""Layer and query head, both from 0."""


class LanguageModel(Encoder):
    """A language model that predicts single sub-tokens while some of its attention heads are silenced.

    `scoring`: the same model with its head; `with_head`: its revision with this head, where `revision` is that of an
    encoder; `mask`: the id of its mask token, None for a decoder; `means`: of each layer the mean output of its heads
    (H, D), empty until `learn_means`.
    """

    def __init__(self, loaded: Loaded, masked: bool):
        super().__init__(loaded)
        self.scoring = ScoringModel(loaded, masked)
        self.with_head, self.mask = self.scoring.revision, self.scoring.mask
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
        """`ScoringModel.log_probabilities` with some heads silenced.

        `silenced`: those of each row of the batch, none for the whole model.
        """
        with attention_of(self.model, capture.NAME), capture.edit(self._silencer(silenced)):
            return self.scoring.log_probabilities(inputs, rows, columns)

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
        """Check what silencing needs, beside the self-check of attention: the head, with our attention function.

        Raises ModelError if the heads cannot be silenced, or there is nothing to compare them with.
        """
        if self.why:
            raise ModelError(
                f"the heads of {self.name} cannot be silenced: silencing needs our attention function, and {self.why}"
            )
        if self.heads < 2:
            raise ModelError(f"{self.name} has one attention head in each layer, and no other to compare it with")
        with attention_of(self.model, capture.NAME):
            self.scoring.examine()
        return self
