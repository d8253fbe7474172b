"""Masked models whose predictions are ties."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer


def twins(model: str | Path, folder: Path, every: int) -> str:
    """A folder with a masked model, every so manyth of its embeddings and output biases twice: predictions of these are
    ties."""
    masked = AutoModelForMaskedLM.from_pretrained(model)
    weights, number = masked.state_dict(), masked.config.vocab_size
    for name, values in weights.items():
        if values.shape[:1] == (number,):
            weights[name] = torch.cat([values, values[::every]])
    masked.config.vocab_size += len(range(0, number, every))
    doubled = type(masked)(masked.config)
    doubled.load_state_dict(weights)
    doubled.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model).save_pretrained(folder)
    return str(folder)
