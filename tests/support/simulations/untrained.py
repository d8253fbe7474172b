"""Models that nobody trained, through all instruments: nothing is to be claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, RobertaConfig, RobertaForMaskedLM

from codesyntax_dataset.errors import LedgerError
from probing import ablate, mask, probe
from probing.instruments.masking.masking import SPANS, SUB_TOKENS
from probing.models.location import TINY, embedded_folder

_LONGEST = 511


def untrained(seed: int) -> tuple[Any, Any]:
    """A small RoBERTa as its family initialises it, and a tokenizer that reads code as models do."""
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder(TINY))
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
        for name in ("pad", "bos", "eos", "cls", "sep")
    }
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=2,
        num_attention_heads=4,
        hidden_size=32,
        intermediate_size=48,
        max_position_embeddings=_LONGEST + 3,
        **special,
    )
    torch.manual_seed(seed)
    model = RobertaForMaskedLM._from_config(config, attn_implementation="eager")
    return model.eval(), tokenizer


def measured(model: tuple[Any, Any], data: Any, folder: Path, functions: int) -> Path:
    """The folder, with what every instrument finds of a model: attention, heads that serve, and masked syntax in so many
    functions."""
    for split in ("validation", "test"):
        probe(model, data, split=split, output=folder)
    try:
        ablate(model, data, output=folder)
    except LedgerError as error:
        if "has a dependent to predict" not in str(error):  # no head beats a guess
            raise
    for control in (SUB_TOKENS, SPANS):
        mask(model, data, control=control, draws=1, limit=functions, output=folder)
    return folder
