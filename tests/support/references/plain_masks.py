"""What is masked and restored in a single text, by the model's own code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from probing.instruments.masking.masking import CURRENT, Masker


def mask_positions(
    code: str,
    tokenizer: Any,
    node_type: str,
    language: str = "python",
    protocol: str = CURRENT,
    **chosen: Any,
) -> np.ndarray:
    """The positions of the sub-tokens in the nodes of a type: all, or some of the nodes."""
    (function,) = Masker(tokenizer, language, [node_type], protocol=protocol).read([code])
    return function.mask(node_type, **chosen).positions


def fill_masks(model: Any, tokenizer: Any, ids: Sequence[int], positions: Sequence[int]) -> list:
    """The likeliest sub-tokens at these positions, all masked together."""
    text, places = torch.tensor(ids)[None].long(), torch.as_tensor(positions)
    text[0, places] = tokenizer.mask_token_id
    with torch.no_grad():
        logits = model(input_ids=text, attention_mask=torch.ones_like(text)).logits
    return logits[0, places].argmax(dim=-1).tolist()
