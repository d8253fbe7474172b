"""Ranks dependents of many functions, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from tqdm import tqdm

from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ranking import BatchListener, BatchRanker
from probing.runs.batches import Batches

if TYPE_CHECKING:
    from probing.models.encoder import Encoder


class Runner(Batches):
    """Batches of functions whose edges are ranked in one direction."""

    def __init__(self, encoder: Encoder, direction: str, batch_tokens: int | None):
        super().__init__(encoder, batch_tokens)
        self.encoder, self.direction = encoder, direction

    def run(
        self,
        functions: Sequence[EncodedFunction],
        bar: tqdm,
        listener: Callable[..., BatchListener] = BatchRanker,
    ) -> np.ndarray:
        """The output of `listener` for the functions' edges: by default ranks (rules, edges,
        layers, heads)."""
        encoder = self.encoder

        def listen(
            batch: Sequence[EncodedFunction], inputs: Mapping[str, torch.Tensor]
        ) -> torch.Tensor:
            length = inputs["input_ids"].shape[1]
            listening = listener(
                *(batch, encoder.layers, encoder.heads, length, encoder.device),
                *(self.elements, self.direction, encoder.causal),
            )
            encoder.forward(inputs, listening)
            return listening.found

        return torch.cat(self.each(functions, bar, listen), dim=1).numpy()
