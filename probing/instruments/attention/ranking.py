"""Rank dependents on the model's device while a batch runs: the fast counterpart of
`topk_uas.rank_attention`.

In the direction `head-to-dependent` (as published) the head token reads: the dependent's tokens are
ranked in its row of attention. In `dependent-to-head` the dependent's tokens read: the head token
is ranked in each of their rows. Only the rows of reading tokens are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES, WORST_RANK
from probing.instruments.attention.encoded import EncodedFunction
from probing.models import transfer

if TYPE_CHECKING:
    from probing.models.capture import Rows

_MORE_THAN_ANY = 1e30
"""Weights are below 1."""

_LEAST_ROWS = 30
"""Rows of a long function that are read at once, unless memory runs out: fewer take longer each."""

_FEW = 3
"""The most sub-tokens of a token that are added up column by column."""


class BatchListener:
    """Listens to one forward pass over some functions and fills `found`, (rules, edges, ...), edges
    in batch order.

    Everything that does not depend on the layer is prepared once, on the device; a layer consists
    of matrix products and comparisons, without waiting for the device. At most `elements` weights
    are in memory at once, or those of one row: short functions are read together, and a long one in
    blocks of rows. `averages`: each head counts twice, behind all heads with weights that are
    averaged over the sub-tokens of a token instead of summed. `causal`: no sub-token attends to a
    later one, so that later ones can be left out, if the listener asks for no others: SKIPS_UNSEEN.
    Subclasses implement `on_layer`, which processes one layer.
    """

    SKIPS_UNSEEN: ClassVar[bool] = True

    def __init__(
        self,
        functions: Sequence[EncodedFunction],
        layers: int,
        heads: int,
        length: int,
        device: torch.device,
        elements: int,
        direction: str = HEAD_TO_DEPENDENT,
        causal: bool = False,
        averages: bool = False,
    ):
        self.layer = 0
        self.averages = averages
        self.layers = layers
        skips_unseen = causal and self.SKIPS_UNSEEN
        readers = [function.readers(direction) for function in functions]
        self.groups: list[tuple[slice, Plan]] = []
        for group in _group_by_size(functions, readers, elements // (heads * length)):
            plan = Plan(
                functions[group],
                readers[group],
                length,
                heads,
                device,
                elements,
                direction,
                skips_unseen,
            )
            self.groups.append((group, plan))
        edges = sum(plan.edges for _, plan in self.groups)
        self.found = self.nothing(edges, heads * (1 + averages), device)

    def __call__(self, rows: Rows) -> None:
        """Process one layer; called by the attention function."""
        edge = 0
        for group, plan in self.groups:
            pooled = plan.pooled(partial(rows, group))
            if self.averages:
                pooled = plan.with_averages(pooled)
            self.on_layer(plan, slice(edge, edge + plan.edges), pooled)
            edge += plan.edges
        self.layer += 1

    @property
    def heard(self) -> Tensor:
        """All that was heard."""
        return self.found

    def nothing(self, edges: int, heads: int, device: torch.device) -> Tensor:
        """The initial value of `found`; empty for a listener that keeps something else."""
        return torch.empty(0, device=device)

    def on_layer(self, plan: Plan, edges: slice, pooled: Pooled) -> None:
        """Process `self.layer` for `edges`, those of `plan`, from its word-level rows, which are
        computed as they are asked for."""
        raise NotImplementedError


class BatchRanker(BatchListener):
    """Ranks all edges by all attention heads: uint8 (rules, edges, layers, heads)."""

    def nothing(self, edges: int, heads: int, device: torch.device) -> Tensor:
        return torch.empty(
            (len(RULES), edges, self.layers, heads), dtype=torch.uint8, device=device
        )

    def on_layer(self, plan: Plan, edges: slice, pooled: Pooled) -> None:
        self.found[:, edges, self.layer] = plan.rank(pooled, self.found.shape[-1])


class FirstChoices(BatchListener):
    """Finds the token ranked first by one attention head per relation and rule: int64 (rules,
    edges).

    `picked`: int (rules, relations, 2), layer and head, with the relations of the edges. The choice
    is made in the row of the token that reads for the edge and the rule, and is -1 if that token
    has no sub-tokens. In the direction `dependent-to-head`, rule `any` reads all tokens of the
    dependent: of their choices it takes the head token if it is among them, otherwise the choice of
    the first token.
    """

    def __init__(self, functions: Sequence[EncodedFunction], *arguments: Any, picked: np.ndarray):
        super().__init__(functions, *arguments)
        # (rules, edges, 2)
        picked = picked[:, np.concatenate([function.edges.relation for function in functions])]
        self.layer_of, self.head_of = picked[..., 0], picked[..., 1]

    def nothing(self, edges: int, heads: int, device: torch.device) -> Tensor:
        return torch.full((len(RULES), edges), -1, dtype=torch.int64, device=device)

    def on_layer(self, plan: Plan, edges: slice, pooled: Pooled) -> None:
        here = self.layer_of[:, edges] == self.layer  # (rules, E)
        if not here.any():
            return
        heads, column = np.unique(self.head_of[:, edges][here], return_inverse=True)
        # also for edges of other layers, whose choices are not kept
        columns = np.zeros(here.shape, np.int64)
        columns[here] = column
        is_here, column_of, head_at = (
            transfer.send(array, self.found.device) for array in (here, columns, heads)
        )
        chosen = plan.first_choices(pooled, head_at, column_of)
        self.found[:, edges] = torch.where(is_here, chosen, self.found[:, edges])


def _group_by_size(
    functions: Sequence[EncodedFunction], readers: Sequence[np.ndarray], most_rows: int
) -> list[slice]:
    """Split a batch into groups of functions with at most `most_rows` padded rows to read (or of
    one function)."""
    groups, start, widest = [], 0, 1
    for position, (function, tokens) in enumerate(zip(functions, readers)):
        rows = int((function.alignment.last[tokens] - function.alignment.first[tokens] + 1).sum())
        if position > start and (position + 1 - start) * max(widest, rows) > most_rows:
            groups.append(slice(start, position))
            start, widest = position, 1
        widest = max(widest, rows)
    return [*groups, slice(start, len(functions))]


def _blocks_of_rows(readers: Iterable[tuple[int, int]], most: int) -> list[slice]:
    """Split readers, each with the number of its rows and of their weights, into consecutive ones.

    Padded to the widest, the rows of a block have at most `most` weights, or those of one reader.
    """
    blocks, start, position, rows, widest = [], 0, -1, 0, 0
    for position, (count, width) in enumerate(readers):
        rows, widest = rows + count, max(widest, width)
        if position > start and rows * widest > most:
            blocks.append(slice(start, position))
            start, rows, widest = position, count, width
    return [*blocks, slice(start, position + 1)]


class _Columns:
    """Adds up the columns of one function's sub-tokens to those of its tokens, each from the first
    sub-token on, so that sums are those of `_pooled_sums`, without another layout of the rows."""

    def __init__(self, first: np.ndarray, counts: np.ndarray, send: Callable[[np.ndarray], Tensor]):
        """`first`, `counts` (T,): the first sub-token of each token and how many there are."""
        self._first = send(np.where(counts > 0, first, 0))
        self._unmapped = np.flatnonzero(counts == 0), send(np.flatnonzero(counts == 0))
        self._further = []
        for number in range(1, _FEW):
            tokens = np.flatnonzero((counts > number) & (counts <= _FEW))
            self._further.append((tokens, send(tokens), send(first[tokens] + number)))
        many = np.flatnonzero(counts > _FEW)
        self._ends = np.append(0, counts[many].cumsum())
        self._many = many, send(many), send(_consecutive(first[many], counts[many]))
        self._bags, self._every = send(self._ends), send(np.arange(self._ends[-1]))

    def pooled(self, rows: Tensor, tokens: int) -> Tensor:
        """The first `tokens` of rows (M, S): (M, T); of no use for a token without sub-tokens."""
        sums = rows.index_select(1, self._first[:tokens])
        for several, there, columns in self._further:
            count = np.searchsorted(several, tokens)
            sums.index_add_(1, there[:count], rows.index_select(1, columns[:count]))
        several, there, columns = self._many
        count = np.searchsorted(several, tokens)
        if count:
            table = rows.index_select(1, columns[: self._ends[count]]).t().contiguous()
            every = self._every[: len(table)]
            of_many = _pooled_sums(table, every, self._bags[: count + 1])
            sums.index_copy_(1, there[:count], of_many.t())
        return sums

    def fill(self, weights: Tensor) -> Tensor:
        """Weights (..., T), in place, with -1 for tokens without sub-tokens."""
        unmapped, there = self._unmapped
        count = np.searchsorted(unmapped, weights.shape[-1])
        return weights.index_fill_(-1, there[:count], -1.0)


class Block(NamedTuple):
    """The readers of a plan that are read at once: `readers`, of each function, N at most.

    `tokens`, `columns`: how many of the code tokens and sub-tokens, from the first on, have
    weights; `parts`: positions (G, R) of the rows that are read at once, with the indices of those
    that belong to each reader and head, as `embedding_bag` takes them; `scale` (G * N, 1, 1): one
    over the number of a reader's rows; `own` (G * N, 1, 1): the reader; `lookups`: those of the
    plan that the block answers, `several` of them with several tokens; `slot`: the place of the
    reader of each among G * N; `single`: whether each reader has one row.
    """

    readers: Sequence[np.ndarray]
    tokens: int
    columns: int
    parts: list[tuple[Tensor, Tensor, Tensor]]
    scale: Tensor
    own: Tensor
    lookups: slice
    several: Tensor
    slot: Tensor
    single: bool


Pooled = Iterable[tuple[Block, Tensor]]
"""Word-level rows of the reading tokens (G * N, H, T), block by block."""


class Plan:
    """The pooling and ranking of some functions of a batch, as tensors on the device.

    G functions, R rows of reading tokens' sub-tokens, N reading tokens, S sub-tokens, T code
    tokens, E edges over all functions, C pairs of an edge and a reading token
    (`dependent-to-head`); padded to the largest function. A lookup is a reading token with the
    tokens that are ranked in its row, from `first` to `last`; D are distinct. Several functions
    have one block of readers, one function has as many as it needs.

    An example with G = 1, H = 1 head, and E = 1 edge, `Call:func->args` from `go` to `now`:

        code tokens  go  (  now  )                   T = 4
        sub-tokens   [CLS]  go  (  no  w  )  [SEP]   S = 7; `now` has two, positions 3 and 4
        readers      go, which is position 1         N = 1, R = 1: the block reads the row [[1]]
        rows         .1  .2  .3  .2  .2  0  0        (G, H, R, S), the attention of position 1
        pooled       0  .3  .4  0                    (G * N, H, T): go itself is 0, now is .2 + .2
        rank         0                               (rules, E, H): no token is before `now`
    """

    def __init__(
        self,
        functions: Sequence[EncodedFunction],
        readers: Sequence[np.ndarray],
        length: int,
        heads: int,
        device: torch.device,
        elements: int,
        direction: str,
        causal: bool,
    ):
        send = partial(transfer.send, device=device)
        tokens = max(1, *(len(function.alignment.first) for function in functions))
        self.heads, self.elements = heads, elements
        # a token's weight in a row is the sum over its sub-tokens; a reading token's row is the
        # mean over its own
        first_sub, last_sub = (
            _pad([f.alignment[end] for f in functions], tokens, -1) for end in (0, 1)
        )
        counts = np.where(first_sub < 0, 0, last_sub - first_sub + 1)  # (G, T)
        self.columns = _Columns(first_sub[0], counts[0], send) if len(functions) == 1 else None
        self.sizes = counts.clip(1)
        self.ends = np.append(0, counts.cumsum())
        begins = first_sub + length * np.arange(len(functions))[:, None]
        self.sub_tokens, self.bags = (
            send(_consecutive(begins.ravel(), counts.ravel())),
            send(self.ends),
        )
        # (G, 1, 1, T)
        self.floor = send(np.where(counts, np.float32(0), np.float32(-1)))[:, None, None]
        self.token = torch.arange(tokens, device=device)

        head, first, last = (
            np.concatenate([getattr(f.edges, name) for f in functions]).astype(np.int64)
            for name in ("head", "first", "last")
        )
        self.edges = len(head)
        function_of = np.repeat(
            np.arange(len(functions)), [len(function.edges) for function in functions]
        )
        self.by_head = direction == HEAD_TO_DEPENDENT
        reader = head
        if not self.by_head:
            span = last - first + 1
            edge = np.repeat(np.arange(self.edges), span)  # (C,)
            self.edge = send(edge)
            # (E,)
            self.first_pair, self.last_pair = (
                send(span.cumsum() - span),
                send(span.cumsum() - 1),
            )
            reader, function_of = _consecutive(first, span), function_of[edge]
            first = last = head[edge]

        # the last token that may have weight in a row, or is ranked in it
        reach = np.full(tokens, tokens - 1)
        width = np.full(tokens, length)  # sub-tokens up to that one
        if causal and len(functions) == 1:
            reach = (
                np.searchsorted(np.maximum.accumulate(first_sub[0]), last_sub[0], side="right") - 1
            )
            np.maximum.at(reach, reader, last)
            width = np.maximum.accumulate(last_sub[0])[reach] + 1
        blocks = [readers]
        if len(functions) == 1:
            each = zip(counts[0][readers[0]].tolist(), width[readers[0]].tolist())
            most = elements // heads
            if elements > 1:
                most = max(most, _LEAST_ROWS * length)
            blocks = [[readers[0][part]] for part in _blocks_of_rows(each, most)]
        # the row of each token after pooling: in its block, function * N + position among the
        # readers; -1 for no row
        slots = np.full((len(functions), tokens), -1, np.int64)
        starts = [0]
        for block in blocks:
            most = max(map(len, block))
            for row, read in enumerate(block):
                slots[row, read] = starts[-1] + row * most + np.arange(len(read))
            starts.append(starts[-1] + len(block) * most)
        slot = slots[function_of, reader]
        # many lookups differ only in the relation, or are in one body and in the next, and have the
        # same ranks
        key = (slot * tokens + first) * tokens + last
        _, distinct, same = np.unique(key, return_index=True, return_inverse=True)
        self.same = send(same)  # (E or C,), of the lookups
        # (D,), ascending by slot
        slot, first, last = (
            slot[distinct],
            first[distinct],
            last[distinct],
        )
        self.first, self.last = send(first), send(last)
        self.blocks = []
        for block, start, end in zip(blocks, starts, starts[1:]):
            if start == end:
                continue
            begin, stop = np.searchsorted(slot, [start, end]).tolist()
            every = np.concatenate(block)
            own = _pad(block, max(map(len, block)), 0)  # (G, N)
            rows = [
                _consecutive(first_sub[row, read], counts[row, read])
                for row, read in enumerate(block)
            ]
            columns = int(width[every].max())
            self.blocks.append(
                Block(
                    readers=block,
                    tokens=int(reach[every].max()) + 1,
                    columns=columns,
                    parts=[
                        *self._block_parts(
                            rows, [counts[g, read] for g, read in enumerate(block)], columns, send
                        )
                    ],
                    scale=send((1 / np.take_along_axis(counts, own, 1).clip(1)).astype(np.float32))[
                        ..., None, None
                    ],
                    own=send(own.ravel())[:, None, None],
                    lookups=slice(begin, stop),
                    several=send(begin + np.flatnonzero(first[begin:stop] != last[begin:stop])),
                    slot=send(slot[begin:stop] - start),
                    single=len(block) == 1 and bool((counts[0, block[0]] == 1).all()),
                )
            )

    def _block_parts(
        self, rows: Sequence[np.ndarray], counts: Sequence[np.ndarray], columns: int, send: Callable
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The `parts` of a block, from the positions (R,) of its rows and their number (N,) of each
        reader, for each function: one, or several if it is a single reader of more rows than are
        read at once."""
        head = np.arange(self.heads)
        most, longest = max(map(len, counts)), max(map(len, rows))
        single = len(rows) == most == 1
        at_once = max(1, self.elements // (self.heads * columns)) if single else longest
        for start in range(0, longest, at_once):
            length = min(at_once, longest - start)
            part = _pad([positions[start : start + length] for positions in rows], length, 0)
            if start:  # the sum goes on: that so far of a head stands before its rows
                index = np.column_stack(
                    [head, len(head) + head[:, None] * length + np.arange(length)]
                )
                ends = np.arange(len(head) + 1) * (length + 1)
            else:
                # (G, N, H)
                number = np.minimum(_pad(counts, most, 0), length)[..., None].repeat(len(head), 2)
                first = number[..., 0].cumsum(1) - number[..., 0]  # (G, N)
                begin = first[..., None] + length * (
                    len(head) * np.arange(len(rows))[:, None, None] + head
                )
                index, ends = (
                    _consecutive(begin.ravel(), number.ravel()),
                    np.append(0, number.cumsum()),
                )
            yield send(part), send(index.ravel()), send(ends)

    def pooled(self, rows: Callable[[Tensor, int], Tensor]) -> Pooled:
        """Pool the sub-token rows of a layer, block by block; `rows` returns those at positions,
        (G, H, R, S)."""
        count = len(self.floor)
        for block in self.blocks:
            read: Tensor | None = None
            for positions, index, ends in block.parts:
                part = rows(positions, block.columns).flatten(0, 2)  # (G * H * R, S)
                if block.single:
                    read = part  # (H * N, S)
                    continue
                # (G * N * H, S)
                read = _pooled_sums(part if read is None else torch.cat([read, part]), index, ends)
            assert read is not None
            own = block.own.expand(-1, self.heads, -1)
            if self.columns:
                sums = self.columns.pooled(read, block.tokens)
                # (N, H, T)
                weights = (
                    sums.unflatten(0, (self.heads, -1)).transpose(0, 1)
                    if block.single
                    else sums.unflatten(0, (-1, self.heads)).mul_(block.scale[0])
                )
                yield block, self.columns.fill(weights).scatter_(2, own, 0.0)
                continue
            end = (count - 1) * len(self.token) + block.tokens
            bags, sub_tokens = self.bags[: end + 1], self.sub_tokens[: self.ends[end]]
            # (G * S, N * H)
            table = read.unflatten(0, (count, -1)).transpose(1, 2).contiguous().flatten(0, 1)
            # (G, N * H, T)
            words = _pooled_sums(table, sub_tokens, bags).unflatten(0, (count, -1)).transpose(1, 2)
            # -1 for a token without sub-tokens, so that it ranks below every other; 0 for the token
            # itself
            floor = self.floor[..., : block.tokens]
            by_reader = words.unflatten(1, (-1, self.heads))  # (G, N, H, T)
            weights = torch.addcmul(floor, by_reader.contiguous(), block.scale).flatten(0, 1)
            yield block, weights.scatter_(2, own, 0.0)

    def with_averages(self, pooled: Pooled) -> Pooled:
        """The same, and behind the heads each of them again with weights that are averaged over the
        sub-tokens of a token: (G * N, 2 * H, T)."""
        sizes = transfer.send(self.sizes, self.token.device)[:, None, None]
        for block, weights in pooled:
            summed = weights.unflatten(0, (len(sizes), -1))  # (G, N, H, T)
            averages = summed / sizes[..., : block.tokens]  # -1 stays
            yield block, torch.cat([weights, averages.flatten(0, 1)], 1)

    def rank(self, pooled: Pooled, heads: int) -> Tensor:
        """Ranks in word-level rows of so many heads: uint8 (rules, E, H).

        `rank_rows` in `codesyntax_metric/topk_uas.py` gives the same ranks with numpy: a tie rule
        changes in both.
        """
        shape = len(RULES), len(self.first), heads
        ranks = torch.full(shape, WORST_RANK, dtype=torch.uint8, device=self.token.device)
        for block, weights in pooled:
            self._rank_block(block, weights, ranks)
        of_lookups = ranks[:, self.same]
        if self.by_head:
            return of_lookups
        pairs = of_lookups[0]  # of single tokens, for which all rules agree
        best = torch.full((self.edges, heads), WORST_RANK, dtype=torch.uint8, device=pairs.device)
        best.scatter_reduce_(0, self.edge[:, None].expand_as(pairs), pairs, "amin")
        return torch.stack([pairs[self.first_pair], best, pairs[self.last_pair]])

    def _rank_block(self, block: Block, weights: Tensor, ranks: Tensor) -> None:
        """Fill `ranks` of the lookups of a block, as many at a time as the budget allows."""
        chunk = max(1, self.elements // (weights.shape[1] * block.tokens))
        begin, end = block.lookups.start, block.lookups.stop
        for start in range(begin, end, chunk):
            places = slice(start, min(start + chunk, end))
            # (X, H, T)
            rows = weights.index_select(0, block.slot[start - begin : start - begin + chunk])
            first = self.first[places, None, None]
            ranks[:, places] = self._rank_of(rows, _at(rows, first), first, in_place=True)
        # for dependents of one token, all rules agree
        for start in range(0, len(block.several), chunk):
            several = block.several[start : start + chunk]
            rows = weights.index_select(0, block.slot[several - begin])
            first, last = self.first[several, None, None], self.last[several, None, None]
            token = self.token[: block.tokens]
            outside = ((token < first) | (last < token)).float()
            best = (rows - _MORE_THAN_ANY * outside).amax(dim=-1, keepdim=True)
            ranks[RULES.index("any"), several] = self._rank_of(rows, best, first)
            ranks[RULES.index("last"), several] = self._rank_of(rows, _at(rows, last), last)

    def first_choices(self, pooled: Pooled, heads: Tensor, columns: Tensor) -> Tensor:
        """The token ranked first by the attention head `heads[columns]`, `columns` (rules, E):
        int64 (rules, E)."""
        best = torch.full((len(self.first), len(heads)), -1, device=self.token.device)
        for block, weights in pooled:
            # the lowest index among equals
            best[block.lookups] = weights[:, heads].argmax(dim=-1)[block.slot]
        if self.by_head:
            return best[self.same, columns]
        pairs = best[self.same, columns[:, self.edge]]  # (rules, C)
        target = self.first[self.same]
        hit = (pairs[RULES.index("any")] == target).byte()
        hit = torch.zeros_like(self.first_pair, dtype=torch.uint8).scatter_reduce_(
            0, self.edge, hit, "amax"
        )
        either = torch.where(hit.bool(), target[self.first_pair], pairs[1, self.first_pair])
        return torch.stack([pairs[0, self.first_pair], either, pairs[2, self.last_pair]])

    def _rank_of(
        self, rows: Tensor, weight: Tensor, token: Tensor, in_place: bool = False
    ) -> Tensor:
        """Ranks of tokens with `weight` (X, H, 1) in `rows` (X, H, T): uint8 (X, H).

        Of equal weights, those before `token` (X, 1, 1) go first, as in `rank_rows`: `token` is the
        ranked token, or, for the best token of a dependent, its first token. `in_place`: the rows
        are not needed any more.
        """
        # floats from 0 on compare as their bits do as integers; adding 1 makes the next larger float
        earlier = (self.token[: rows.shape[-1]] < token).int()
        bits = rows.view(torch.int32)
        before = bits.add_(earlier) if in_place else bits + earlier
        rank = before.gt_(weight.view(torch.int32)).sum(dim=-1, dtype=torch.int32)
        return rank.clamp_(max=WORST_RANK).masked_fill_(weight[..., 0] < 0, WORST_RANK).byte()


def _at(rows: Tensor, token: Tensor) -> Tensor:
    """The weights of one token (X, 1, 1) for each of `rows` (X, H, T): (X, H, 1)."""
    return rows.gather(2, token.expand(-1, rows.shape[1], 1))


def _pooled_sums(table: Tensor, index: Tensor, ends: Tensor) -> Tensor:
    """Sums of rows of `table`: the first of those at `index[: ends[1]]`, one by one, so that no
    split changes a sum."""
    return torch.nn.functional.embedding_bag(
        index, table, ends, mode="sum", include_last_offset=True
    )


def _consecutive(begin: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers begin, begin + 1, ..., `count` of them, of every run, concatenated: int64."""
    return np.arange(count.sum()) + np.repeat(begin - (count.cumsum() - count), count)


def _pad(arrays: Sequence[np.ndarray], width: int, value: int) -> np.ndarray:
    """Stack arrays (n,) as int64 (len(arrays), width), padded with `value`."""
    padded = np.full((len(arrays), width), value, np.int64)
    for row, array in zip(padded, arrays):
        row[: len(array)] = array
    return padded
