"""The attention function: computes a model's attention, and gives a listener access to chosen rows
of probabilities.

transformers can use an attention function that is registered by name. Ours computes what the model
needs with torch's fused attention, and calls a listener that can request the attention
probabilities of the few rows that it reads. No attention map of the model is ever stored. An editor
can read and change what the heads put out.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeVar

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

ATTENTION_NAME = "codesyntax"

T = TypeVar("T")


class Rows(Protocol):
    """Some inputs of the batch and positions (B, R) -> attention probabilities of these rows,
    float32 (B, H, R, S).

    None requests all rows. `columns`: only so many of the S, of rows that attend to none of the
    others.
    """

    def __call__(
        self, inputs: slice, positions: Tensor | None, columns: int | None = None, /
    ) -> Tensor: ...


Listener = Callable[[Rows], "Tensor | None"]
"""Called once per layer, in order. May return attention maps (b, H, S, S) that replace the layer's
own for the first b inputs of the batch, so that the self-check can compare layer by layer without
the rounding of earlier layers."""


def rows_of(maps: Tensor) -> Rows:
    """Rows from whole attention maps (B, H, S, S), for models whose attention function cannot be
    replaced."""

    def rows(inputs: slice, positions: Tensor | None, columns: int | None = None, /) -> Tensor:
        chosen = maps[inputs, ..., :columns].float()
        if positions is None:
            return chosen
        return chosen.gather(
            2, positions[:, None, :, None].expand(-1, chosen.shape[1], -1, chosen.shape[3])
        )

    return rows


# Other arguments of attention functions that do not change the probabilities: sliding windows are
# in the mask, positions in the queries and keys. Any further argument may, so a model that passes
# one is probed by its eager maps.
_HARMLESS = frozenset(
    "cache_position deterministic output_attentions output_hidden_states output_router_logits past_key_values "
    "position_ids return_dict sliding_window use_cache".split()
)

_MOST_WEIGHTS = 1 << 22
"""The most weights in memory at once where they are computed for the model itself, or those of one
row of each head."""

Editor = Callable[[Tensor], None]
"""Called once per layer, in order, with the outputs of its query heads (B, S, H, D), which it may
change in place: the model has not added them up yet, so that a change of one head leaves the others
as they are."""

_listener: ContextVar[tuple[Listener, torch.dtype | None] | None] = ContextVar(
    "listener", default=None
)
_editor: ContextVar[Editor | None] = ContextVar("editor", default=None)


_virtual: ContextVar[int] = ContextVar("virtual", default=0)


@contextlib.contextmanager
def _set(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def edit(editor: Editor) -> contextlib.AbstractContextManager[None]:
    """Let `editor` read and change the outputs of heads while the model runs."""
    return _set(_editor, editor)


def listen(
    listener: Listener, softmax: torch.dtype | None = None
) -> contextlib.AbstractContextManager[None]:
    """Call `listener` for every layer while the model runs.

    `softmax`: rows are not of float32, but as the model computes its own maps, each step in its
    precision and softmax in this one, so that they are the same bits.
    """
    return _set(_listener, (listener, softmax))


def behind(count: int) -> contextlib.AbstractContextManager[None]:
    """Let the texts stand behind so many virtual tokens, which are in no row or column that a
    listener gets: what rows give them goes to no sub-token."""
    return _set(_virtual, count)


def attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **others: object,
) -> tuple[Tensor, None]:
    """The attention function that transformers calls: query (B, H, S, D), key and value (B, H or
    fewer, S, D).

    Raises TypeError for unknown arguments, which may change the attention.
    """
    unknown = sorted(
        name for name, what in others.items() if what is not None and name not in _HARMLESS
    )
    if unknown:
        raise TypeError(
            f"the model passes {', '.join(unknown)} to its attention, which only its own code understands"
        )
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal

    def rows(
        inputs: slice,
        positions: Tensor | None,
        columns: int | None = None,
        /,
        softmax: torch.dtype | None = None,
    ) -> Tensor:
        keys = key[inputs, :, :columns]
        copies = query.shape[1] // key.shape[1]
        if softmax and copies > 1:  # as models do for heads that share keys
            keys = keys.repeat_interleave(copies, dim=1)

        def pick(x: Tensor | None) -> Tensor | None:
            return None if x is None else (x[inputs] if len(x) == len(query) else x)[..., :columns]

        return probabilities(
            query[inputs],
            keys,
            positions,
            mask=pick(attention_mask),
            bias=pick(position_bias),
            scaling=scaling,
            causal=causal,
            softcap=softcap,
            sinks=s_aux,
            dtype=query.dtype if softmax else torch.float32,
            softmax=softmax or torch.float32,
        )

    virtual = _virtual.get()
    first = query.shape[2] - key.shape[2] + virtual  # the query of the first sub-token

    def of_text(
        inputs: slice,
        positions: Tensor | None,
        columns: int | None = None,
        /,
        softmax: torch.dtype | None = None,
    ) -> Tensor:
        """Rows and columns of sub-tokens alone."""
        every = torch.arange(query.shape[2] - first, device=query.device)[None]
        of_rows = (every if positions is None else positions) + first
        most = None if columns is None else columns + virtual
        shape = len(query[inputs]), -1
        return rows(inputs, of_rows.expand(shape), most, softmax=softmax)[..., virtual:]

    def output_of(maps: Tensor) -> Tensor:
        values = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)  # (B, H, S, D)
        return (maps.to(value.dtype) @ values[: len(maps)]).transpose(1, 2)

    listening = _listener.get()
    replacement = None
    if listening is not None:
        listener, softmax = listening
        replacement = listener(partial(of_text if virtual else rows, softmax=softmax))
    if softcap is not None or s_aux is not None:  # which the fused attention does not support
        every = torch.arange(query.shape[2], device=query.device).expand(len(query), -1)
        at_once = max(1, _MOST_WEIGHTS // (len(query) * query.shape[1] * key.shape[2]))
        output = torch.cat(
            [output_of(rows(slice(None), part)) for part in every.split(at_once, dim=1)], dim=1
        )
    else:
        output, _ = sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            scaling=scaling,
            dropout=dropout,
            is_causal=causal,
            position_bias=position_bias,
        )
    if replacement is not None:
        if virtual:
            whole = rows(slice(len(replacement)), None)
            whole[:, :, first:, virtual:] = replacement
            replacement = whole
        output[: len(replacement)] = output_of(replacement)
    editor = _editor.get()
    if editor is not None:
        editor(output)
    return output, None


def probabilities(
    query: Tensor,
    key: Tensor,
    positions: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scaling: float | None = None,
    causal: bool = False,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    softmax: torch.dtype = torch.float32,
) -> Tensor:
    """Attention probabilities of the rows at `positions` (B, R), or of all: `dtype` (B, H, R, S).

    Includes what models add to scaled dot products: masks (bool: attend, float: added), causality
    if there is no mask, position biases (T5), soft caps (Gemma 2) and attention sinks (gpt-oss),
    which take a share that goes to no sub-token. Each step is rounded to `dtype`, and softmax
    is computed in its own, as in the eager code of transformers.
    """
    batch, heads, length, width = query.shape
    groups = key.shape[1]

    def at_rows(x: Tensor) -> Tensor:  # (B or 1, H or 1, S or 1, X) -> (B, H or 1, R or 1, X)
        if positions is None or x.shape[2] == 1:
            return x
        inputs = torch.arange(batch, device=x.device)[:, None]
        return x.expand(batch, -1, -1, -1)[inputs, :, positions].transpose(1, 2)

    q = at_rows(query).to(dtype)  # (B, H, R, D)
    rows = q.shape[2]
    scale = width**-0.5 if scaling is None else scaling
    # a power of two changes exponents alone: products of scaled queries are the same bits
    if folded := math.frexp(scale)[0] == 0.5:
        q = q * scale
    # heads that share a key are concatenated, so that keys need not be copied (grouped-query
    # attention)
    q = q.reshape(batch, groups, heads // groups * rows, width)
    scores = (q @ key.to(dtype).transpose(2, 3)).view(batch, heads, rows, key.shape[2])
    if not folded:
        scores *= scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores += at_rows(bias)
    if mask is not None:
        allowed = at_rows(mask)
        scores += _additive_mask(allowed, dtype) if allowed.dtype == torch.bool else allowed
    elif causal:
        columns = torch.arange(key.shape[2], device=key.device)
        row = columns[None, :length] if positions is None else positions  # (B or 1, R)
        seen = _seen_by_all(row)
        allowed = columns[seen:] <= row[..., None]
        scores[..., seen:] += _additive_mask(allowed, dtype)[:, None]
    if sinks is None:
        if dtype == softmax == torch.float32:
            return torch.softmax(scores, dim=-1, out=scores)
        return scores.softmax(dim=-1, dtype=softmax).to(dtype)
    sink = sinks.to(dtype).reshape(1, heads, 1, 1).expand(batch, -1, rows, -1)
    scores = torch.cat([scores, sink], dim=-1)
    scores -= scores.amax(dim=-1, keepdim=True)
    return scores.softmax(dim=-1, dtype=softmax).to(dtype)[..., :-1]


def _seen_by_all(rows: Tensor) -> int:
    """How many columns all rows see; 0 on a GPU, where the host would wait for this number."""
    return int(rows.min()) + 1 if rows.device.type == "cpu" else 0


def _additive_mask(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to scores: broadcast over heads, that is several times as fast as
    masked_fill."""
    return torch.where(allowed, 0.0, torch.finfo(dtype).min).to(dtype)


# Without a mask function of the same name a model would get no mask, and ignore padding and sliding
# windows.
AttentionInterface.register(ATTENTION_NAME, attention)
AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)
