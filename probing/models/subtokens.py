"""The sub-tokens of texts, and the characters that they cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def encode(tokenizer: Any, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sub-tokens of each text by a fast tokenizer: ids (S,), character offsets (S, 2), and which are special (S,)."""
    encoding = tokenizer(
        list(texts), return_offsets_mapping=True, return_special_tokens_mask=True, truncation=False, verbose=False
    )
    for ids, offsets, special in zip(
        encoding["input_ids"], encoding["offset_mapping"], encoding["special_tokens_mask"]
    ):
        yield np.asarray(ids, np.int32), np.asarray(offsets, np.int32).reshape(-1, 2), np.asarray(special, bool)
