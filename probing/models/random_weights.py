"""The control `random-weights`: a model's architecture with untrained weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import AutoModel, PreTrainedModel

from codesyntax_dataset.errors import ModelError


def with_random_weights(model: PreTrainedModel, seed: int = 0, auto: Any = AutoModel) -> PreTrainedModel:
    """A new model with the same configuration, precision and device, and initial weights: with the head of `auto`, by
    default without any.

    Raises ModelError if the model cannot be built from its configuration.
    """
    config = copy.deepcopy(model.config)
    with torch.random.fork_rng(), torch.device("cpu"):  # weights do not depend on the device
        torch.manual_seed(seed)
        try:
            fresh = auto.from_config(config, dtype=model.dtype, attn_implementation="eager")
        except ValueError as error:
            raise ModelError(f"{type(model).__name__} cannot be built from its configuration: {error}") from error
    return fresh.to(model.device).eval()
