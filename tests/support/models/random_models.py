"""Small models of random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.models.byte_tokenizer import byte_tokenizer


def sizes(heads: int = 2, hidden: int = 32, inner: int = 48, layers: int = 2) -> dict[str, int]:
    """As the configurations of most families name them."""
    return {
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "hidden_size": hidden,
        "intermediate_size": inner,
    }


def shaken(model: Any, amount: float = 0.3) -> Any:
    """The model with all its weights moved at random: biases and norms, too, which are 0 and 1 at first."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            parameter += amount * torch.randn_like(parameter)
    return model.eval()


def byte_model(folder: Path, longest: int, layers: int = 2) -> Path:
    """The folder, with a masked language model of `longest` positions that reads bytes."""
    return _saved("bert", "MaskedLM", folder, longest, layers)


def byte_decoder(folder: Path, longest: int) -> Path:
    """The folder, with a decoder of `longest` positions that reads bytes."""
    return _saved("llama", "CausalLM", folder, longest, 2)


def _saved(family: str, task: str, folder: Path, longest: int, layers: int) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = byte_tokenizer()
    config = transformers.CONFIG_MAPPING[family](
        vocab_size=len(tokenizer),
        max_position_embeddings=longest,
        initializer_range=0.3,
        **sizes(layers=layers),
    )
    kind = getattr(transformers, f"AutoModelFor{task}")
    kind.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
