"""Ranks dependents of many functions, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ranking import BatchListener, BatchRanker
from probing.runs.batches import Batches

if TYPE_CHECKING:
    from probing.models.encoder import Encoder
    from probing.models.loaded import Batch


class Runner(Batches):
    """Batches of functions whose attention is heard in one direction; `averages`: as of
    `BatchListener`."""

    model: Encoder

    def __init__(
        self,
        encoder: Encoder,
        direction: str,
        batch_tokens: int | None = None,
        averages: bool = False,
    ):
        super().__init__(encoder, batch_tokens)
        self.direction, self.averages = direction, averages

    def run(
        self,
        functions: Sequence[EncodedFunction],
        bar: tqdm,
        listener: Callable[..., BatchListener] = BatchRanker,
    ) -> np.ndarray:
        """The output of `listener` for the functions' edges: by default ranks (rules, edges,
        layers, heads)."""
        return torch.cat(self.heard(functions, bar, listener), dim=1).numpy()

    def heard(
        self,
        functions: Sequence[EncodedFunction],
        bar: tqdm,
        listener: Callable[..., BatchListener],
    ) -> list[Tensor]:
        """What a new `listener` hears of each batch, in order."""
        encoder = self.model

        def listen(batch: Sequence[EncodedFunction], inputs: Batch) -> Tensor:
            length = inputs["input_ids"].shape[1]
            listening = listener(
                batch,
                encoder.layers,
                encoder.heads,
                length,
                encoder.device,
                self.elements,
                self.direction,
                encoder.causal,
                self.averages,
            )
            encoder.forward(inputs, listening)
            return listening.heard

        return self.each(functions, bar, listen)
