"""Models that nobody trained and ledgers that nobody measured, through all instruments: nothing is to be claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
)

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import WORST_RANK
from probing import ablate, mask, probe
from probing.evidence.gather import by_instrument, files_of
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.instruments.masking.masking import SPANS, SUB_TOKENS
from probing.instruments.masking.result import FILLED, SIMILARITIES, MaskingLedger, MaskResult
from probing.instruments.silencing.result import SilencingLedger, SilencingResult
from probing.models.location import TINY, embedded_folder
from probing.runs.ledger_file import ATTENTION, MASKING, SILENCING

_LONGEST = 511
_SIZES = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 32,
    "intermediate_size": 48,
}
_DECODER = {"num_key_value_heads": 4, "max_position_embeddings": _LONGEST + 1}

FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "modernbert": (AutoModelForMaskedLM, {"local_attention": 8}),
    "gpt2": (
        AutoModelForCausalLM,
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": _LONGEST + 1},
    ),
    "roberta": (AutoModelForMaskedLM, {}),
    "llama": (AutoModelForCausalLM, _DECODER),
    "t5": (AutoModel, {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}),
    "bert": (AutoModelForMaskedLM, {}),
    "electra": (AutoModelForMaskedLM, {"embedding_size": 16}),
    "distilbert": (
        AutoModelForMaskedLM,
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
}
"""Architectures with the class of their head, and their sizes beside the common ones."""


def untrained(family: str, seed: int) -> tuple[Any, Any]:
    """A model as its family initialises it, and a tokenizer that reads code as models do."""
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder(TINY))
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
        for name in ("pad", "bos", "eos", "cls", "sep")
    }
    auto, sizes = FAMILIES[family]
    config = CONFIG_MAPPING[family](
        vocab_size=len(tokenizer),
        **{
            **_SIZES,
            "max_position_embeddings": _LONGEST + 3,
            "decoder_start_token_id": 0,
            **special,
            **sizes,
        },
    )
    torch.manual_seed(seed)
    return auto.from_config(config, attn_implementation="eager").eval(), tokenizer


def measured(model: tuple[Any, Any], data: Any, folder: Path, functions: int) -> Path:
    """The folder, with what every instrument finds of a model: attention, heads that serve, and masked syntax in so many
    functions."""
    for split in ("validation", "test"):
        probe(model, data, split=split, output=folder)
    name = type(model[0]).__name__
    if "LM" in name:
        try:
            ablate(model, data, output=folder)
        except LedgerError as error:
            if "has a dependent to predict" not in str(error):  # no head beats a guess
                raise
    if "MaskedLM" in name:
        for control in (SUB_TOKENS, SPANS):
            mask(model, data, control=control, draws=1, limit=functions, output=folder)
    return folder


def at_random(results: Path, seed: int, folder: Path) -> Path:
    """A folder with the same results, whose numbers are random, and alike in all that is compared."""
    rng = np.random.default_rng(seed)
    found = by_instrument([results])
    for file in files_of(found[ATTENTION]):
        ledger = ProbeResult.load(file).ledger
        ranks = rng.integers(10**6, size=ledger.ranks.shape) % (ledger.tokens[:, None, None] - 1)
        # as if each dependent were one token
        known = np.minimum(ranks[[0, 0, 0]], WORST_RANK).astype(np.uint8)
        ProbeResult.from_ledger(RankLedger.of(ledger, known, ledger.settings)).save(folder)
    for file in found[MASKING]:
        MaskResult.from_ledger(_masked(MaskResult.load(file).ledger, rng)).save(folder)
    for file in found[SILENCING]:
        loaded = SilencingResult.load(file).ledger
        rows = loaded.rows.copy()
        of_function = rng.exponential(size=rows["function"].max() + 1)[rows["function"]]
        rows["log_probability"] = -3 - of_function - rng.exponential(0.3, size=len(rows))
        SilencingResult.from_ledger(SilencingLedger(loaded.names, rows, loaded.settings)).save(
            folder
        )
    return folder


def _masked(ledger: MaskingLedger, rng: np.random.Generator) -> MaskingLedger:
    """Half of the sub-tokens are restored in any copy, more than fillers have, and trees do not depend on what is."""
    rows = ledger.rows.copy()
    of_function = rng.random(rows["function"].max() + 1)[rows["function"]]
    for column in SIMILARITIES:
        rows[column] = 0.5 + 0.25 * (of_function + rng.random(len(rows)) ** 4)
    for column in FILLED:
        rows[column] = 0.5 * rng.random(len(rows))
    rows["hits_1"] = rng.binomial(rows["masked"], 0.25 + 0.5 * of_function)
    rows["commonest"] = 0
    rows["log_probability"] = np.round(-of_function - rng.exponential(size=len(rows)), 3)
    return MaskingLedger(ledger.names, rows, ledger.settings)
