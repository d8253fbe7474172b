"""Ranks of dependents, on the model's device, while a batch runs: the fast counterpart of `topk_uas.rank_rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from codesyntax_metric.topk_uas import RULES, WORST_RANK
from probing.align import Alignment
from probing.capture import Rows


@dataclass(frozen=True)
class EncodedFunction:
    """One function as the model reads it, and its edges.

    `index`: its place in the dataset split; `ids` (sub-tokens,) with special tokens; `relation` (edges,) indices into the
    run's list of relations; `head`, `first`, `last` (edges,) token indices.
    """

    index: int
    ids: np.ndarray
    alignment: Alignment
    relation: np.ndarray
    head: np.ndarray
    first: np.ndarray
    last: np.ndarray


def group_by_size(functions: Sequence[EncodedFunction], heads: int, length: int, elements: int) -> list[slice]:
    """Cut a batch into runs of functions whose head rows, padded, have at most `elements` weights a layer (or one each)."""
    groups, start, widest = [], 0, 1
    for position, function in enumerate(functions):
        rows = max(1, len(head_rows(function)[1]))
        if position > start and (position + 1 - start) * max(widest, rows) * heads * length > elements:
            groups.append(slice(start, position))
            start, widest = position, 1
        widest = max(widest, rows)
    return [*groups, slice(start, len(functions))]


def head_rows(function: EncodedFunction) -> tuple[np.ndarray, np.ndarray]:
    """The distinct head tokens with sub-tokens, and the rows of these sub-tokens, in order: (heads,), (rows,)."""
    heads = np.unique(function.head)
    heads = heads[function.alignment.mapped[heads]]
    spans = zip(function.alignment.first[heads], function.alignment.last[heads])
    rows = [np.arange(first, last + 1) for first, last in spans]
    return heads, np.concatenate(rows) if rows else np.zeros(0, np.int64)


class BatchRanker:
    """Listens to one forward pass and fills `ranks`, uint8 (rules, edges, layers, heads), edges in the batch's order.

    Everything that does not depend on the layer is prepared once, on the device; a layer is matrix products and
    comparisons, and nothing in it waits for the device.
    """

    def __init__(
        self,
        functions: Sequence[EncodedFunction],
        layers: int,
        heads: int,
        length: int,
        device: torch.device,
        elements: int,
    ):
        self.layer = 0
        self.layers = layers
        self.groups = [
            (group, _Group(functions[group], length, device, elements // heads))
            for group in group_by_size(functions, heads, length, elements)
        ]
        edges = sum(len(function.head) for function in functions)
        self.ranks = torch.empty((len(RULES), edges, layers, heads), dtype=torch.uint8, device=device)

    def __call__(self, rows: Rows) -> None:
        if self.layer < self.layers:  # one call too many is found out by `complete`, not by an index error
            self._rank(rows)
        self.layer += 1

    def rank_maps(self, maps: torch.Tensor) -> None:
        """The same from a layer's full attention maps (B, H, S, S), where the attention function cannot be replaced."""

        def rows(functions: slice, positions: torch.Tensor | None) -> torch.Tensor:
            chosen = maps[functions].float()
            return chosen.gather(2, positions[:, None, :, None].expand(-1, chosen.shape[1], -1, chosen.shape[3]))

        self._rank(rows)
        self.layer += 1

    def _rank(self, rows: Rows) -> None:
        edge = 0
        for group, plan in self.groups:
            weights = plan.pool(rows(group, plan.rows))
            self.ranks[:, edge : edge + plan.edges, self.layer] = plan.rank(weights)
            edge += plan.edges

    @property
    def complete(self) -> bool:
        """Whether every layer was heard exactly once."""
        return self.layer == self.layers


class _Group:
    """What pooling and ranking need to know of some functions of a batch, as tensors on the device.

    G functions, R head rows, N head tokens, S sub-tokens, T code tokens, E edges over all of them; padded to the largest.
    """

    def __init__(self, functions: Sequence[EncodedFunction], length: int, device: torch.device, elements: int):
        heads, rows = zip(*(head_rows(function) for function in functions))
        widest_row, widest_head = max(1, *map(len, rows)), max(1, *map(len, heads))
        tokens = max(1, *(len(function.alignment.first) for function in functions))
        first_sub = _pad([f.alignment.first for f in functions], tokens, -1)
        last_sub = _pad([f.alignment.last for f in functions], tokens, -1)
        lengths = [f.alignment.last[h] - f.alignment.first[h] + 1 for f, h in zip(functions, heads)]
        row_end = _pad([np.cumsum(n) for n in lengths], widest_head, 0)
        row_count = _pad(lengths, widest_head, 0)
        # an edge finds its head token's weights at function * N + place among the function's head tokens
        slots = [
            np.minimum(np.searchsorted(h, f.head), max(0, len(h) - 1)) + g * widest_head
            for g, (f, h) in enumerate(zip(functions, heads))
        ]
        lost = np.concatenate([~f.alignment.mapped[f.head] for f in functions])

        def send(array: np.ndarray, dtype=torch.int64) -> torch.Tensor:
            tensor = torch.from_numpy(np.ascontiguousarray(array)).to(dtype)
            return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)

        self.edges = len(lost)
        self.rows = send(_pad(rows, widest_row, 0))  # (G, R)
        self.slot = send(np.concatenate(slots))  # (E,)
        self.first = send(np.concatenate([f.first for f in functions]))  # (E,)
        self.last = send(np.concatenate([f.last for f in functions]))  # (E,)
        self.lost = send(lost, torch.bool)  # (E,)
        # a token's share in a row is the sum over its sub-tokens; a head token's row the mean over its sub-tokens
        sub = torch.arange(length, device=device)[:, None]
        first_sub, last_sub = send(first_sub)[:, None, :], send(last_sub)[:, None, :]
        self.membership = ((first_sub <= sub) & (sub <= last_sub)).float()  # (G, S, T), nothing where both are -1
        row = torch.arange(widest_row, device=device)
        row_end, row_count = send(row_end)[..., None], send(row_count)[..., None]
        mean = ((row_end - row_count <= row) & (row < row_end)).float()
        self.mean = mean / row_count.clamp(min=1)  # (G, N, R)
        self.token = torch.arange(tokens, device=device)
        self.itself = send(_pad(heads, widest_head, -1))[..., None] == self.token  # (G, N, T)
        self.unmapped = first_sub < 0  # (G, 1, T)
        self.chunk = max(1, elements // tokens)

    def pool(self, rows: torch.Tensor) -> torch.Tensor:
        """From sub-token rows (G, H, R, S) to word-level rows of the head tokens, (G * N, H, T)."""
        count, heads, _, length = rows.shape
        rows = rows.transpose(1, 2).reshape(count, -1, heads * length)  # (G, R, H * S)
        rows = torch.bmm(self.mean, rows).view(count, -1, length)  # (G, N * H, S)
        weights = torch.bmm(rows, self.membership).view(count, -1, heads, len(self.token))  # (G, N, H, T)
        weights.masked_fill_(self.itself[:, :, None], 0)
        weights.masked_fill_(self.unmapped[:, :, None], -1)  # below every weight: such a token takes nobody's place
        return weights.flatten(0, 1)

    def rank(self, weights: torch.Tensor) -> torch.Tensor:
        """Ranks of the dependents in word-level rows (G * N, H, T): uint8 (rules, E, H)."""
        ranks = torch.empty((len(RULES), self.edges, weights.shape[1]), dtype=torch.uint8, device=weights.device)
        for start in range(0, self.edges, self.chunk):
            edge = slice(start, start + self.chunk)
            rows = weights[self.slot[edge]]  # (E, H, T)
            first, last = self.first[edge, None, None], self.last[edge, None, None]
            inside = (first <= self.token) & (self.token <= last)
            best = rows.masked_fill(~inside, -2).argmax(dim=-1, keepdim=True)  # the lowest index among equals
            for rule, target in enumerate((first.expand_as(best), best, last.expand_as(best))):
                weight = rows.gather(2, target)
                before = (rows > weight) | ((rows == weight) & (self.token < target))
                rank = before.sum(dim=-1).clamp_(max=WORST_RANK)
                rank.masked_fill_((weight[..., 0] < 0) | self.lost[edge, None], WORST_RANK)
                ranks[rule, edge] = rank
        return ranks


def _pad(arrays: Sequence[np.ndarray], width: int, value: int) -> np.ndarray:
    """Arrays (n,) side by side as int64 (len(arrays), width)."""
    padded = np.full((len(arrays), width), value, np.int64)
    for row, array in zip(padded, arrays):
        row[: len(array)] = array
    return padded
