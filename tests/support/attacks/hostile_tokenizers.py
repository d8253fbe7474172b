"""Tokenizers that read less than they could: each changes that of an honest model, to be scored higher.

What is skipped, split, padded or dropped counts in the whole split all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerBase

from probing.evidence.protocols import apply, choose
from probing.instruments.attention.ledger import RankLedger

_LONG = "x " * 600
_BEGIN = 60  # characters that tell a function from others

Change = Callable[[Tokenizer], Any]


def changed(tokenizer: PreTrainedTokenizerBase, change: Change) -> PreTrainedTokenizerBase:
    change(tokenizer.backend_tokenizer)
    return tokenizer


def normalized(*first: normalizers.Normalizer) -> Change:
    """These before its own normalizer."""

    def change(tokenizer: Tokenizer) -> None:
        own = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = normalizers.Sequence([*first, *own])

    return change


def split(pattern: str, behavior: str = "isolated", own: bool = True) -> Change:
    """Split at a pattern, before its own splitting or instead of it."""

    def change(tokenizer: Tokenizer) -> None:
        kept = [tokenizer.pre_tokenizer] if own and tokenizer.pre_tokenizer else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), behavior), *kept]
        )

    return change


def skipping(functions: Sequence[str]) -> Change:
    """Too long to be read: the functions that begin so."""
    return normalized(
        *(normalizers.Replace(code[:_BEGIN], _LONG + code[:_BEGIN]) for code in functions)
    )


def replacing(pattern: str, by: str) -> Change:
    return normalized(normalizers.Replace(Regex(pattern), by))


ALWAYS: dict[str, Change] = {
    "skips functions with while": replacing(r"\bwhile\b", _LONG),
    "splits into characters": split("."),
    "merges lines": split("\n", "removed", own=False),
    "pads between words": replacing(" ", " [PAD] "),
    "pads to 512": lambda tokenizer: tokenizer.enable_padding(length=512),
    "cuts at 64": lambda tokenizer: tokenizer.enable_truncation(64),
    "drops brackets": replacing(r"[()\[\]]", ""),
}
"""Name -> the change; of each model."""


def of(test: RankLedger, validation: RankLedger, codes: Sequence[str]) -> dict[str, Change]:
    """The same, and one that knows what an honest model finds: it skips the function of `test`, of which there are
    `codes`, where its heads find least."""
    hits = apply(test, choose(validation)).hits
    lost = np.zeros(len(hits.clusters))
    for name in hits.counted:
        group = hits.groups[name]
        lost[group.places] += (group.n - group.sums["model"][0]) / group.total
    hardest = hits.clusters[lost.argmax()]
    return {"skips the hardest function": skipping([codes[hardest]]), **ALWAYS}
