"""The attention function: plain attention out, the rows of head tokens ranked on the way.

transformers lets us register an attention function by name. Ours computes what the model needs with torch's fused
attention, and hands the queries and keys to whoever listens, who can ask for the attention probabilities of the few rows
that head an edge. No attention map of the model is ever stored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

NAME = "codesyntax"

Rows = Callable[[slice, "torch.Tensor | None"], torch.Tensor]
"""Some inputs of the batch and positions (B, R) -> attention probabilities of these rows of theirs, float32 (B, H, R, S);
None asks for all rows."""

_listener: ContextVar[Callable[[Rows], None] | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def listen(listener: Callable[[Rows], None]) -> Iterator[None]:
    """Have `listener` called once per layer, in the order of the layers, while the model runs."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **kwargs):
    """The attention function that transformers calls: query (B, H, S, D), key and value (B, H or fewer, S, D)."""

    def rows(inputs: slice, positions: torch.Tensor | None) -> torch.Tensor:
        def pick(x: torch.Tensor | None) -> torch.Tensor | None:
            return x[inputs] if x is not None and len(x) == len(query) else x

        extra = {**kwargs, "position_bias": pick(kwargs.get("position_bias"))}
        return probabilities(module, query[inputs], key[inputs], pick(attention_mask), positions, scaling, **extra)

    if kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None:  # what the fused attention cannot do
        values = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
        output = (rows(slice(None), None).to(value.dtype) @ values).transpose(1, 2).contiguous()
    else:
        output = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )[0]
    listener = _listener.get()
    if listener is not None:
        listener(rows)
    return output, None


def probabilities(
    module,
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    positions: torch.Tensor | None,
    scaling: float | None,
    *,
    is_causal: bool | None = None,
    position_bias: torch.Tensor | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **_,
) -> torch.Tensor:
    """Attention probabilities of the rows at `positions` (B, R), or of all: float32 (B, H, R, S).

    What a model adds to scaled dot products is kept: masks (bool: attend, float: added), causality, position biases (T5),
    soft caps (Gemma 2) and attention sinks (gpt-oss), which take a share that no token gets.
    """
    batch, heads, length, width = query.shape
    groups = key.shape[1]

    def at_rows(x: torch.Tensor | None) -> torch.Tensor | None:  # (B or 1, H or 1, S or 1, X) -> (B, H or 1, R or 1, X)
        if x is None or positions is None or x.shape[2] == 1:
            return x
        x = x.expand(batch, -1, -1, -1)
        return x.gather(2, positions[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))

    q = at_rows(query).float()  # (B, H, R, D)
    rows = q.shape[2]
    # heads that share a key are put side by side, so that keys need no copies (grouped-query attention)
    q = q.reshape(batch, groups, heads // groups * rows, width)
    scores = (q @ key.float().transpose(2, 3)).view(batch, heads, rows, key.shape[2])
    scores *= width**-0.5 if scaling is None else scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if position_bias is not None:
        scores += at_rows(position_bias)
    if mask is not None:
        allowed = at_rows(mask)
        if allowed.dtype == torch.bool:
            scores.masked_fill_(~allowed, torch.finfo(scores.dtype).min)
        else:
            scores += allowed
    elif is_causal if is_causal is not None else getattr(module, "is_causal", False):
        columns = torch.arange(key.shape[2], device=key.device)
        row = columns[None, :length] if positions is None else positions  # (B or 1, R)
        scores.masked_fill_((columns > row[..., None])[:, None], torch.finfo(scores.dtype).min)
    if s_aux is None:
        return scores.softmax(dim=-1)
    sink = s_aux.float().reshape(1, heads, 1, 1).expand(batch, -1, rows, -1)
    return torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :-1]


# Without a mask function of the same name a model gets no mask at all: padding and sliding windows would be ignored.
AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
