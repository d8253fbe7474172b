"""Rank dependents on the model's device while a batch runs: the fast counterpart of `topk_uas.rank_attention`.

In the direction `head-to-dependent` (as published) the head token reads: the dependent's tokens are ranked in its row
of attention. In `dependent-to-head` the dependent's tokens read: the head token is ranked in each of their rows. Only
the rows of reading tokens are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES, WORST_RANK
from probing.attention.align import Alignment
from probing.attention.edges import EdgeTable
from probing.models import transfer

if TYPE_CHECKING:
    from probing.models.capture import Rows

_UNDERFLOW = 1e-30
"""Smaller weights may be rounded to 0."""


@dataclass(frozen=True)
class EncodedFunction:
    """One function in the model's sub-tokens, and its edges.

    `index`: its position in the split; `ids` (sub-tokens,), special tokens included; `shuffled_by`: the seed of the
    control that shuffles attention over the tokens (see `probing.runs.controls`).
    """

    index: int
    ids: np.ndarray
    alignment: Alignment
    edges: EdgeTable
    shuffled_by: int | None = None

    def readers(self, direction: str) -> np.ndarray:
        """The distinct tokens with sub-tokens whose rows are read, ascending."""
        if direction == HEAD_TO_DEPENDENT:
            readers = np.unique(self.edges.head)
        else:
            opened = np.zeros(
                len(self.alignment.first) + 1, np.int64
            )  # the number of dependents that contain each token, as differences
            np.add.at(opened, self.edges.first, 1)
            np.add.at(opened, self.edges.last + 1, -1)
            readers = np.flatnonzero(opened.cumsum() > 0)
        return readers[self.alignment.mapped[readers]]

    def tied(self, direction: str) -> np.ndarray:
        """The edges decided by a tie of code tokens: bool (rules, edges).

        Tokens with exactly the same sub-tokens, such as those of `()` in most byte-level tokenizers, get the same
        weight in every row, and the lower index goes first. A tie decides an edge if the token to be found has such a
        twin. The reading token does not count, because it gives itself no weight; for rule `any`, nor do other tokens
        of the dependent.
        """
        first, last = self.alignment
        _, kind, count = np.unique(first.astype(np.int64) << 32 | last, return_inverse=True, return_counts=True)
        span = self.edges.last - self.edges.first + 1
        begin = span.cumsum() - span
        edge = np.repeat(np.arange(len(span)), span)  # pairs of an edge and a token of its dependent
        token = np.arange(span.sum()) + (self.edges.first - begin)[edge]
        head = self.edges.head[edge]
        sought, reader = (token, head) if direction == HEAD_TO_DEPENDENT else (head, token)
        twins = count[kind[sought]] - 1 - (kind[sought] == kind[reader])
        twins[(sought == reader) | ~self.alignment.mapped[sought] | ~self.alignment.mapped[reader]] = 0
        rivals = twins
        if direction == HEAD_TO_DEPENDENT:
            others = token != head
            _, place = np.unique(edge * len(first) + kind[token], return_inverse=True)
            rivals = twins - (np.bincount(place, weights=others)[place] - others)
        return np.stack([twins[begin] > 0, np.maximum.reduceat(rivals, begin) > 0, twins[begin + span - 1] > 0])


class BatchListener:
    """Listens to one forward pass over some functions and fills `found`, (rules, edges, ...), edges in batch order.

    Everything that does not depend on the layer is prepared once, on the device; a layer consists of matrix products
    and comparisons, without waiting for the device. At most `elements` weights are in memory at once, or those of one
    function. Subclasses implement `hear`, which processes one layer.
    """

    def __init__(
        self,
        functions: Sequence[EncodedFunction],
        layers: int,
        heads: int,
        length: int,
        device: torch.device,
        elements: int,
        direction: str = HEAD_TO_DEPENDENT,
    ):
        self.layer = 0
        self.layers = layers
        readers = [function.readers(direction) for function in functions]
        self.groups: list[tuple[slice, Plan]] = []
        for group in _group_by_size(functions, readers, elements // (heads * length)):
            plan = Plan(functions[group], readers[group], length, device, elements // heads, direction)
            self.groups.append((group, plan))
        self.found = self.nothing(sum(plan.edges for _, plan in self.groups), heads, device)

    def __call__(self, rows: Rows) -> None:
        """Process one layer; called by the attention function."""
        edge = 0
        for group, plan in self.groups:
            self.hear(plan, slice(edge, edge + plan.edges), partial(rows, group, plan.rows))
            edge += plan.edges
        self.layer += 1

    def nothing(self, edges: int, heads: int, device: torch.device) -> torch.Tensor:
        """The initial value of `found`; empty for a listener that keeps something else."""
        return torch.empty(0, device=device)

    def hear(self, plan: Plan, edges: slice, rows: Callable[[], torch.Tensor]) -> None:
        """Process `self.layer` for `edges`, those of `plan`; `rows()` returns its rows (G, H, R, S)."""
        raise NotImplementedError


class BatchRanker(BatchListener):
    """Ranks all edges by all attention heads: uint8 (rules, edges, layers, heads)."""

    def nothing(self, edges: int, heads: int, device: torch.device) -> torch.Tensor:
        return torch.empty((len(RULES), edges, self.layers, heads), dtype=torch.uint8, device=device)

    def hear(self, plan: Plan, edges: slice, rows: Callable[[], torch.Tensor]) -> None:
        self.found[:, edges, self.layer] = plan.rank(plan.pool(rows(), self.layer))


class RankBounds(BatchListener):
    """Computes ranks and the bounds that rounding allows: uint8 (rules, edges, layers, heads, 3).

    The last axis is the rank, and the best and the worst rank if every weight were off by the fraction `slack`.
    """

    def __init__(self, *arguments: Any, slack: float):
        self.slack = slack
        super().__init__(*arguments)

    def nothing(self, edges: int, heads: int, device: torch.device) -> torch.Tensor:
        return torch.empty((len(RULES), edges, self.layers, heads, 3), dtype=torch.uint8, device=device)

    def hear(self, plan: Plan, edges: slice, rows: Callable[[], torch.Tensor]) -> None:
        weights = plan.pool(rows(), self.layer)
        for place, slack in enumerate((None, self.slack, -self.slack)):
            self.found[:, edges, self.layer, :, place] = plan.rank(weights, slack)


class FirstChoices(BatchListener):
    """Finds the token ranked first by one attention head per relation and rule: int64 (rules, edges).

    `picked`: int (rules, relations, 2), layer and head, with the relations of the edges. The choice is made in the row
    of the token that reads for the edge and the rule, and is -1 if that token has no sub-tokens. In the direction
    `dependent-to-head`, rule `any` reads all tokens of the dependent: of their choices it takes the head token if it is
    among them, otherwise the choice of the first token.
    """

    def __init__(self, functions: Sequence[EncodedFunction], *arguments: Any, picked: np.ndarray):
        super().__init__(functions, *arguments)
        picked = picked[:, np.concatenate([function.edges.relation for function in functions])]  # (rules, edges, 2)
        self.layer_of, self.head_of = picked[..., 0], picked[..., 1]

    def nothing(self, edges: int, heads: int, device: torch.device) -> torch.Tensor:
        return torch.full((len(RULES), edges), -1, dtype=torch.int64, device=device)

    def hear(self, plan: Plan, edges: slice, rows: Callable[[], torch.Tensor]) -> None:
        here = self.layer_of[:, edges] == self.layer  # (rules, E)
        if not here.any():
            return
        heads, column = np.unique(self.head_of[:, edges][here], return_inverse=True)
        columns = np.zeros(here.shape, np.int64)  # also for edges of other layers, whose choices are not kept
        columns[here] = column
        kept, column_of, head_at = (transfer.send(array, self.found.device) for array in (here, columns, heads))
        chosen = plan.first_choices(plan.pool(rows(), self.layer)[:, head_at], column_of)
        self.found[:, edges] = torch.where(kept, chosen, self.found[:, edges])


def _group_by_size(functions: Sequence[EncodedFunction], readers: Sequence[np.ndarray], most_rows: int) -> list[slice]:
    """Split a batch into groups of functions with at most `most_rows` padded rows to read (or of one function)."""
    groups, start, widest = [], 0, 1
    for position, (function, tokens) in enumerate(zip(functions, readers)):
        rows = int((function.alignment.last[tokens] - function.alignment.first[tokens] + 1).sum())
        if position > start and (position + 1 - start) * max(widest, rows) > most_rows:
            groups.append(slice(start, position))
            start, widest = position, 1
        widest = max(widest, rows)
    return [*groups, slice(start, len(functions))]


class Plan:
    """The pooling and ranking of some functions of a batch, as tensors on the device.

    G functions, R rows of reading tokens' sub-tokens, N reading tokens, S sub-tokens, T code tokens, E edges over all
    functions, C pairs of an edge and a reading token (`dependent-to-head`); padded to the largest function.

    An example with G = 1, H = 1 head, and E = 1 edge, `Call:func->args` from `go` to `now`:

        code tokens   go  (  now  )                        T = 4
        sub-tokens    [CLS]  go  (  no  w  )  [SEP]        S = 7; `now` has two, positions 3 and 4
        readers       go, which is position 1              N = 1, R = 1: `self.rows` is [[1]]
        rows          .1  .2  .3  .2  .2  0  0             (G, H, R, S), the attention of position 1
        pool          0  .3  .4  0                         (G * N, H, T): go itself is 0, now is .2 + .2
        rank          0                                    (rules, E, H), for every rule: no token is before `now`
    """

    def __init__(
        self,
        functions: Sequence[EncodedFunction],
        readers: Sequence[np.ndarray],
        length: int,
        device: torch.device,
        elements: int,
        direction: str,
    ):
        send = partial(transfer.send, device=device)
        tokens = max(1, *(len(function.alignment.first) for function in functions))
        most = max(1, *map(len, readers))
        begins = [function.alignment.first[r].astype(np.int64) for function, r in zip(functions, readers)]
        counts = [function.alignment.last[r] - begin + 1 for function, r, begin in zip(functions, readers, begins)]
        # the positions begin, begin + 1, ... of every reading token, concatenated
        rows = [
            np.arange(count.sum()) + np.repeat(begin - (count.cumsum() - count), count)
            for begin, count in zip(begins, counts)
        ]
        self.edges = sum(len(function.edges) for function in functions)
        self.rows = send(_pad(rows, max(1, *map(len, rows)), 0))  # (G, R)
        # a token's weight in a row is the sum over its sub-tokens; a reading token's row is the mean over its own
        first_sub = send(_pad([function.alignment.first for function in functions], tokens, -1))[:, None, :]
        last_sub = send(_pad([function.alignment.last for function in functions], tokens, -1))[:, None, :]
        sub = torch.arange(length, device=device)[:, None]
        self.membership = ((first_sub <= sub) & (sub <= last_sub)).float()  # (G, S, T), all 0 where both are -1
        row = torch.arange(self.rows.shape[1], device=device)
        row_end = send(_pad([count.cumsum() for count in counts], most, 0))[..., None]
        row_count = send(_pad(counts, most, 0))[..., None]
        self.mean = ((row_end - row_count <= row) & (row < row_end)) / row_count.clamp(min=1)  # (G, N, R)
        self.token = torch.arange(tokens, device=device)
        # on a CPU, multiplying and adding is several times as fast as masked_fill
        self.others = (send(_pad(readers, most, -1))[..., None] != self.token)[:, :, None].float()  # (G, N, 1, T)
        self.floor = torch.where(first_sub < 0, -1.0, 0.0)[:, :, None]  # (G, 1, 1, T)
        self.chunk = max(1, elements // tokens)
        self.shuffled = [
            (function.shuffled_by, function.index, np.flatnonzero(function.alignment.mapped)) for function in functions
        ]

        head, first, last = (
            np.concatenate([getattr(f.edges, name) for f in functions]) for name in ("head", "first", "last")
        )
        function_of = np.repeat(np.arange(len(functions)), [len(function.edges) for function in functions])
        # the row of each token after pooling: function * N + position among its reading tokens; -1 for no row
        slots = np.full((len(functions), tokens), -1, np.int64)
        for place, tokens_read in enumerate(readers):
            slots[place, tokens_read] = place * most + np.arange(len(tokens_read))
        self.by_head = direction == HEAD_TO_DEPENDENT
        if self.by_head:
            slot = slots[function_of, head]
            self.first, self.last = send(first.astype(np.int64)), send(last.astype(np.int64))  # (E,)
            # a quarter of real edges differ from another one only in the relation, and have the same ranks
            key = (slot * tokens + first) * tokens + last
            _, distinct, same = np.unique(key, return_index=True, return_inverse=True)
            self.distinct, self.same = send(distinct), send(same)  # (D,) indices of edges, (E,) of `distinct`
            self.several = send(np.flatnonzero(first[distinct] != last[distinct]))  # of `distinct`
        else:
            span = last - first + 1
            ends = span.cumsum()
            edge = np.repeat(np.arange(self.edges), span)  # (C,)
            slot = slots[function_of[edge], np.arange(len(edge)) - (ends - span)[edge] + first[edge]]
            self.target = send(head.astype(np.int64)[edge])  # (C,)
            self.edge = send(edge)  # (C,)
            self.first_pair, self.last_pair = send(ends - span), send(ends - 1)  # (E,)
        self.lost = send(slot < 0)[:, None]  # (E or C, 1)
        self.slot = send(slot.clip(min=0))  # (E or C,)

    def pool(self, rows: torch.Tensor, layer: int) -> torch.Tensor:
        """Pool sub-token rows (G, H, R, S) of a layer to word-level rows of the reading tokens, (G * N, H, T)."""
        count, heads, _, length = rows.shape
        rows = (self.mean[:, None] @ rows).view(count, -1, length)  # (G, H * N, S)
        weights = torch.bmm(rows, self.membership).view(count, heads, -1, len(self.token)).transpose(1, 2)
        # 0 for the token itself; -1 for a token without sub-tokens, so that it ranks below every other
        weights = torch.addcmul(self.floor, weights, self.others)  # (G, N, H, T)
        if any(seed is not None for seed, _, _ in self.shuffled):
            weights = weights.gather(-1, self._sources(layer, heads)[:, None].expand_as(weights))
            weights *= self.others
        return weights.flatten(0, 1)

    def _sources(self, layer: int, heads: int) -> torch.Tensor:
        """The token whose weight each token gets: int64 (G, H, T), drawn per function, layer and head, for all rows."""
        sources = np.tile(np.arange(len(self.token)), (len(self.shuffled), heads, 1))
        for function_sources, (seed, index, mapped) in zip(sources, self.shuffled):
            if seed is not None:
                drawn = np.random.default_rng([seed, index, layer]).random((heads, len(mapped))).argsort(axis=-1)
                function_sources[:, mapped] = mapped[drawn]
        return transfer.send(sources, self.token.device)

    def rank(self, weights: torch.Tensor, slack: float | None = None) -> torch.Tensor:
        """Ranks in the word-level rows (G * N, H, T): uint8 (rules, E, H).

        With a `slack`: the number of tokens with more than `1 + slack` times the weight of the ranked one, ignoring
        ties. That is the best rank that rounding allows for a positive slack, and the worst for a negative one.

        `rank_rows` in `codesyntax_metric/topk_uas.py` gives the same ranks with numpy: a tie rule changes in both.
        """
        return self._rank_dependents(weights, slack) if self.by_head else self._rank_heads(weights, slack)

    def first_choices(self, weights: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """The token ranked first in word-level rows (G * N, H, T) by the heads in `columns` (rules, E): (rules, E)."""
        best = weights.argmax(dim=-1)  # (G * N, H); the lowest index among equals
        if self.by_head:
            return best[self.slot, columns].masked_fill(self.lost[:, 0], -1)
        pairs = best[self.slot, columns[:, self.edge]].masked_fill(self.lost[:, 0], -1)  # (rules, C)
        hit = (pairs[RULES.index("any")] == self.target).byte()
        hit = torch.zeros_like(self.first_pair, dtype=torch.uint8).scatter_reduce_(0, self.edge, hit, "amax")
        either = torch.where(hit.bool(), self.target[self.first_pair], pairs[1, self.first_pair])
        return torch.stack([pairs[0, self.first_pair], either, pairs[2, self.last_pair]])

    def _rank_dependents(self, weights: torch.Tensor, slack: float | None) -> torch.Tensor:
        ranks = torch.empty(
            (len(RULES), len(self.distinct), weights.shape[1]), dtype=torch.uint8, device=weights.device
        )
        for start in range(0, len(self.distinct), self.chunk):
            edge = self.distinct[start : start + self.chunk]
            rows = weights.index_select(0, self.slot[edge])  # (X, H, T)
            first = self.first[edge, None, None]
            ranks[:, start : start + self.chunk] = self._rank_of(rows, _at(rows, first), first, self.lost[edge], slack)
        for start in range(0, len(self.several), self.chunk):  # for dependents of one token, all rules agree
            place = self.several[start : start + self.chunk]
            edge = self.distinct[place]
            rows = weights.index_select(0, self.slot[edge])
            first, last = self.first[edge, None, None], self.last[edge, None, None]
            outside = ((self.token < first) | (last < self.token)).float()
            best = (rows - 4 * outside).amax(dim=-1, keepdim=True)  # weights are from -1 to 1
            ranks[RULES.index("any"), place] = self._rank_of(rows, best, first, self.lost[edge], slack)
            ranks[RULES.index("last"), place] = self._rank_of(rows, _at(rows, last), last, self.lost[edge], slack)
        return ranks[:, self.same]

    def _rank_heads(self, weights: torch.Tensor, slack: float | None) -> torch.Tensor:
        pairs = torch.empty((len(self.edge), weights.shape[1]), dtype=torch.uint8, device=weights.device)
        for start in range(0, len(pairs), self.chunk):
            pair = slice(start, start + self.chunk)
            rows, target = weights.index_select(0, self.slot[pair]), self.target[pair, None, None]
            pairs[pair] = self._rank_of(rows, _at(rows, target), target, self.lost[pair], slack)
        best = torch.full((self.edges, weights.shape[1]), WORST_RANK, dtype=torch.uint8, device=weights.device)
        best.scatter_reduce_(0, self.edge[:, None].expand_as(pairs), pairs, "amin")
        return torch.stack([pairs[self.first_pair], best, pairs[self.last_pair]])

    def _rank_of(
        self, rows: torch.Tensor, weight: torch.Tensor, place: torch.Tensor, lost: torch.Tensor, slack: float | None
    ) -> torch.Tensor:
        """Ranks of tokens with `weight` (X, H, 1) in `rows` (X, H, T), the worst in rows `lost` (X, 1): uint8 (X, H).

        Of equal weights, those before `place` (X, 1, 1) go first, as in `rank_rows`: `place` is the ranked token, or,
        for the best token of a dependent, its first token.
        """
        if slack is None:
            # floats from 0 on compare as their bits do as integers; adding 1 makes the next larger float
            before = rows.view(torch.int32) + (self.token < place).int()
            rank = before.gt_(weight.view(torch.int32)).sum(dim=-1, dtype=torch.int32)
        else:
            rank = torch.gt(rows, weight * (1 + slack) + math.copysign(_UNDERFLOW, slack), out=torch.empty_like(rows))
            rank = rank.sum(dim=-1) - int(slack < 0)  # a negative slack counts the ranked token, too
        return rank.clamp_(max=WORST_RANK).masked_fill_((weight[..., 0] < 0) | lost, WORST_RANK).byte()


def _at(rows: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """The weights of one token (X, 1, 1) for each of `rows` (X, H, T): (X, H, 1)."""
    return rows.gather(2, token.expand(-1, rows.shape[1], 1))


def _pad(arrays: Sequence[np.ndarray], width: int, value: int) -> np.ndarray:
    """Stack arrays (n,) as int64 (len(arrays), width), padded with `value`."""
    padded = np.full((len(arrays), width), value, np.int64)
    for row, array in zip(padded, arrays):
        row[: len(array)] = array
    return padded
