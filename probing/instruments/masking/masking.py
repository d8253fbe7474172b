"""Which sub-tokens are masked: those of the nodes of one type, T1, and as many random ones, T0
(Velasco et al. 2024).

Three protocols. `published` is the procedure of the study, bugs included (shared by all who compare
with it): bytes of a line count as characters, cut at the line's end; special tokens are masked
where they touch a node, and by controls; and a sub-token over two nodes counts twice. `current`,
the default, masks what it says: the sub-tokens of the nodes' own characters, never a special token,
each counted once. `infilling`, that of decoders, chooses the same sub-tokens, but they are restored
otherwise: each run of neighbours is a hole of its own, of which the model reads both sides as they
are in the source, the other holes filled. So its numbers are not those of `current`, and results
are never mixed. All read the trees of the installed grammar.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import tree_sitter

from codesyntax_dataset.arguments import Natural, checked
from codesyntax_dataset.errors import ArgumentError, ModelError, UnknownName
from codesyntax_dataset.languages.grammar import checked_node_types, parse
from probing.instruments.attention.align import trimmed
from probing.instruments.masking.result import NO_NODE, NO_PLACE, NOTHING_MASKED, TOO_MANY
from probing.models.subtokens import check_language, encode, tells_characters

CURRENT, PUBLISHED, INFILLING = "current", "published", "infilling"
PROTOCOLS = (CURRENT, PUBLISHED, INFILLING)

SUB_TOKENS, SPANS = "sub-tokens", "spans"
CONTROLS = (SUB_TOKENS, SPANS)
"""The spans that a control masks: as many random sub-tokens, as in the study, or random spans of
code as long as the nodes."""

_TRIES = 20  # to place all spans of a control at random, before those of T1 stand again


class Mask(NamedTuple):
    """The masked `positions`, sorted, int64 (M,); and how many random sub-tokens a control masks,
    `controls`.

    They are as many, except in the protocol `published`: it counts a sub-token once for each node
    that it is in, and mask tokens spelled out in the source are among the positions but not
    counted.
    """

    positions: np.ndarray
    controls: int


class Maskable:
    """A function as a tokenizer reads it, with its nodes, ready to be masked.

    `ids` (S,), `offsets` (S, 2), `special` (S,): its sub-tokens, as from `encode`. `eligible`: the
    positions that a control may mask. They are all for the protocol `published`; otherwise none of
    a special token, be it added by the tokenizer, spelled out in the source, or standing for
    unknown text.
    """

    def __init__(
        self,
        code: str,
        subtokens: tuple[np.ndarray, np.ndarray, np.ndarray],
        tokenizer: Any,
        spans: dict[str, np.ndarray],
        protocol: str,
        leaves: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None,
    ):
        self.code, self.protocol, self._leaves = code, protocol, leaves
        self.ids, self.offsets, self.special = subtokens
        self._spans = spans
        start, end = self.offsets.T
        # spaces alone are the place at their end
        self.place = np.stack(trimmed(code, start, end, " "), axis=1)
        if protocol == PUBLISHED:
            self.eligible = np.arange(len(self.ids))
            self._spelled = np.flatnonzero(self.ids == tokenizer.mask_token_id)
        else:
            self.eligible = np.flatnonzero(
                ~(self.special | np.isin(self.ids, tokenizer.all_special_ids))
            )
            self._spelled = np.empty(0, np.int64)

    def nodes(self, node_type: str) -> np.ndarray:
        """The characters of the outermost nodes of a type, in order: from, to (exclusive), (nodes,
        2)."""
        return self._spans[node_type]

    def mask(
        self,
        node_type: str,
        rate: float = 1.0,
        nodes: Sequence[int] | np.ndarray | None = None,
        seed: int = 0,
    ) -> Mask:
        """The sub-tokens of the nodes of a type: all nodes, `int(rate * nodes)` of them drawn by
        `seed`, or `nodes`.

        `nodes` are indices, and need no rate. Without a node, or if no sub-token is in one, nothing
        is masked.
        """
        spans = self.nodes(node_type)
        if nodes is None and rate < 1:
            nodes = sorted(random.Random(seed).sample(range(len(spans)), int(rate * len(spans))))
        if nodes is not None:
            chosen = np.asarray(nodes, np.int64).reshape(-1)
            if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(spans):
                raise ArgumentError(
                    f"nodes are {chosen.tolist()}, but the code has {len(spans)} nodes of the type "
                    f"{node_type}: expected indices from 0"
                )
            spans = spans[np.unique(chosen)]
        within = self._within(spans)
        controls = int(within.sum() if self.protocol == PUBLISHED else within.any(axis=1).sum())
        if not controls:
            return Mask(np.empty(0, np.int64), 0)
        return Mask(np.union1d(np.flatnonzero(within.any(axis=1)), self._spelled), controls)

    def control(self, count: int, seed: int) -> np.ndarray:
        """The positions of `count` random sub-tokens, drawn by `seed` without repetition: sorted,
        int64 (M,).

        Raises ArgumentError if there are not so many.
        """
        if count > len(self.eligible):
            raise ArgumentError(
                f"{count} sub-tokens are to be drawn of {len(self.eligible)}: draw fewer"
            )
        drawn = random.Random(seed).sample(self.eligible.tolist(), count)
        return np.union1d(np.asarray(drawn, np.int64), self._spelled)

    def comparable(
        self, node_type: str, positions: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of `positions` (M,) in nodes that a random span of code can be compared with, and
        such spans: sorted.

        Such a span is as long, goes from leaf to leaf of the tree as a node does, holds neither a
        comment nor a string that is a statement (a docstring), and shares no sub-token with any
        node of the type; no two of them touch. The nodes are taken in random order, by `seed`, long
        ones first.
        """
        runs = self._eligible_runs(positions)
        lengths = [len(run) for run in runs]
        placed = self._arranged(node_type, lengths, random.Random(seed))
        runs_left = [run for run, start in zip(runs, placed) if start is not None]
        return np.concatenate([np.empty(0, np.int64), *runs_left]), self._positions_of(
            placed, lengths
        )

    def control_spans(
        self, node_type: str, positions: np.ndarray, otherwise: np.ndarray, seed: int
    ) -> np.ndarray:
        """Random spans of code as long as those of `positions` (M,), drawn by `seed`: sorted, int64
        (M,).

        `positions`, `otherwise`: from `comparable`; the latter stand where no draw finds a place
        for all spans. A span is harder to restore than as many scattered sub-tokens, whatever it
        holds: a difference to this control is not due to that.
        """
        lengths, rng = [len(run) for run in self._eligible_runs(positions)], random.Random(seed)
        for _ in range(_TRIES):
            placed = self._arranged(node_type, lengths, rng)
            if None not in placed:
                return self._positions_of(placed, lengths)
        return otherwise

    def nodes_at(self, node_type: str, positions: np.ndarray) -> int:
        """The number of nodes of a type that have a sub-token at these positions (M,)."""
        return int(self._within(self.nodes(node_type))[positions].any(axis=0).sum())

    def _positions_of(self, placed: Sequence[int | None], lengths: Sequence[int]) -> np.ndarray:
        """The positions of the spans that found a place: sorted, int64."""
        spans = [
            np.arange(start, start + length)
            for start, length in zip(placed, lengths)
            if start is not None
        ]
        return np.sort(self.eligible[np.concatenate([np.empty(0, np.int64), *spans])])

    def _eligible_runs(self, positions: np.ndarray) -> list[np.ndarray]:
        """Positions (M,) that follow each other, among those that are eligible."""
        index = np.searchsorted(self.eligible, positions)
        return np.split(positions, np.flatnonzero(np.diff(index) > 1) + 1) if len(index) else []

    def _arranged(
        self, node_type: str, lengths: Sequence[int], rng: random.Random
    ) -> list[int | None]:
        """Where spans of these lengths begin, among the eligible sub-tokens; None for one that
        finds no place."""
        begins, ends, kept_out = self._code
        nodes = np.asarray(self._within(self.nodes(node_type)).any(axis=1))[self.eligible]
        taken = kept_out | nodes
        placed: list[int | None] = [None] * len(lengths)
        order = rng.sample(range(len(lengths)), len(lengths))
        for number in sorted(order, key=lambda number: -lengths[number]):
            length = lengths[number]
            before = np.append(0, np.cumsum(taken))
            free = before[length:] == before[:-length]
            starts = np.flatnonzero(free & begins[: len(free)] & ends[length - 1 :])
            if len(starts):
                start = int(starts[rng.randrange(len(starts))])
                placed[number] = start
                taken = taken.copy()
                taken[max(0, start - 1) : start + length + 1] = True
        return placed

    @cached_property
    def _code(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the eligible sub-tokens: with which a leaf begins, with which one ends, and which are
        in no code."""
        assert self._leaves is not None
        leaves, no_code = self._leaves()
        within = self._within(leaves)
        within = within[:, within.any(axis=0)]
        begins, ends = np.zeros((2, len(self.ids)), bool)
        begins[within.argmax(axis=0)] = True
        ends[len(self.ids) - 1 - within[::-1].argmax(axis=0)] = True
        kept_out = np.asarray(self._within(no_code).any(axis=1))
        return begins[self.eligible], ends[self.eligible], kept_out[self.eligible]

    def _within(self, spans: np.ndarray) -> np.ndarray:
        """True where each sub-token is in each node: bool (S, nodes).

        It is if the two share a character. A sub-token of spaces alone is the place at its end; in
        the protocol `published`, it is in a node that begins there, too. What touches a node
        without characters, which error repair inserts, is in it.
        """
        start, end = self.place.T[:, :, None]
        first, last = spans.T[:, None, :]
        touched = (start <= last) & (first <= end)
        within = np.where((start == end) | (first == last), touched, (start < last) & (first < end))
        if self.protocol != PUBLISHED:
            within &= ~((start == end) & (end == first) & (first < last))
            within &= np.isin(np.arange(len(self.ids)), self.eligible)[:, None]
        return within


class Masker:
    """Reads functions, so that the nodes of some types can be masked; each is tokenized once.

    `node_types`: by default those of the language's record. Raises UnknownName for a language, node
    type or protocol that does not exist, ArgumentError for a language without a grammar, ModelError
    for a tokenizer without offsets or of another language, or, but for infilling, without a mask
    token.
    """

    def __init__(
        self,
        tokenizer: Any,
        language: str,
        node_types: Iterable[str] | None = None,
        *,
        protocol: str = CURRENT,
    ):
        if protocol not in PROTOCOLS:
            raise UnknownName("protocol", protocol, PROTOCOLS)
        self.node_types = checked_node_types(language, node_types)
        if not tells_characters(tokenizer):
            raise ModelError(
                f"{type(tokenizer).__name__} does not tell which characters a sub-token covers: use a fast tokenizer"
            )
        if tokenizer.mask_token_id is None and protocol != INFILLING:
            raise ModelError(
                f"{type(tokenizer).__name__} has no mask token: use the tokenizer of a masked language model"
            )
        check_language(tokenizer, type(tokenizer).__name__, language)
        self.tokenizer, self.language, self.protocol = tokenizer, language, protocol
        self._subtokens: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def read(self, codes: Sequence[str]) -> Iterator[Maskable]:
        """The functions of these texts, in order, whether they parse or not; raises ParseError for
        a lone surrogate."""
        # before the tokenizer meets a surrogate
        trees = [parse(code, self.language) for code in codes]
        new = [code for code in codes if code not in self._subtokens]
        if new:
            self._subtokens.update(zip(new, encode(self.tokenizer, new)))
        for code, tree in zip(codes, trees):
            spans = outermost(tree, self.node_types)
            position_of = (
                _as_published(code) if self.protocol == PUBLISHED else _node_characters(code)
            )
            yield Maskable(
                code,
                self._subtokens[code],
                self.tokenizer,
                {
                    kind: np.array([position_of(node) for node in nodes], np.int64).reshape(-1, 2)
                    for kind, nodes in spans.items()
                },
                self.protocol,
                partial(_leaves, tree, position_of),
            )


@checked
def mask_positions(
    code: str,
    tokenizer: Any,
    node_type: str,
    language: str = "python",
    *,
    protocol: str = CURRENT,
    rate: float | int = 1.0,
    nodes: Sequence[int] | np.ndarray | None = None,
    seed: Natural = 0,
) -> np.ndarray:
    """The positions of the sub-tokens to mask, of the nodes of one type: sorted, int64 (M,), maybe
    empty.

    Positions count special tokens. `node_type`: a name of the language's tree-sitter grammar, such
    as `if_statement`, `identifier`, `=` or `ERROR`; of nodes inside each other, the outermost
    count. `protocol`: `current`, `infilling`, or `published`, which masks what the study masked
    (Velasco et al. 2024); code that does not parse is masked by both. `rate`: the share of the
    nodes, rounded down, drawn by `seed`; `nodes`: which ones instead, as indices.

    Raises UnknownName, with the nearest name, for an unknown node type, language or protocol;
    ArgumentError for a language without a grammar, a rate or nodes out of range; ModelError for a
    tokenizer without mask token or offsets.
    """
    if not 0 < rate <= 1:
        raise ArgumentError(f"rate is {rate}, expected a share of the nodes above 0, at most 1")
    (function,) = Masker(tokenizer, language, [node_type], protocol=protocol).read([code])
    return function.mask(node_type, rate, nodes, seed).positions


def seed_of(seed: int, function: int, node_type: str, copy: int) -> int:
    """The seed for one masked copy of a function, whatever is drawn before, beside or in another
    process: 63 bits."""
    digest = hashlib.sha256(f"{seed} {function} {node_type} {copy}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class MaskedCopy(NamedTuple):
    """A copy of a function in which `positions` (M,) are masked, that follow from `seed`.

    `node_type`: by its index among those asked for; `number`: 0 for T1, from 1 for its controls.
    """

    node_type: int
    number: int
    seed: int
    positions: np.ndarray


def masked_copies(
    function: Maskable,
    index: int,
    node_types: Sequence[str],
    draws: int,
    seed: int,
    rate: float = 1.0,
    control: str = SUB_TOKENS,
) -> tuple[list[MaskedCopy], Counter[str], Counter[tuple[str, bool]]]:
    """The masked copies of a function, of each node type T1 and then its controls, and why there
    are none for the other types; and for the control `spans`, the number of nodes of each type that
    have a place for a control beside them (True), or have none.

    `index`: the function's place in the split, from which the seeds of its copies follow; the rest
    as of `mask`.
    """
    copies: list[MaskedCopy] = []
    dropped: Counter[str] = Counter()
    placed: Counter[tuple[str, bool]] = Counter()
    for type_number, name in enumerate(node_types):
        first, *seeds = (seed_of(seed, index, name, number) for number in range(draws + 1))
        masked = function.mask(name, rate, seed=first)
        if not len(function.nodes(name)):
            dropped[NO_NODE] += 1
        elif not len(masked.positions):
            dropped[NOTHING_MASKED] += 1
        elif masked.controls > len(function.eligible):
            dropped[TOO_MANY] += 1
        else:
            positions = masked.positions
            if control == SPANS:
                positions, spans = function.comparable(name, masked.positions, first)
                controls = [function.control_spans(name, positions, spans, seed) for seed in seeds]
                nodes = function.nodes_at(name, masked.positions)
                with_place = function.nodes_at(name, positions)
                placed.update({(name, True): with_place, (name, False): nodes - with_place})
            else:
                controls = [function.control(masked.controls, seed) for seed in seeds]
            if len(positions):
                arms = enumerate(zip([first, *seeds], [positions, *controls]))
                copies += [
                    MaskedCopy(type_number, number, seed, where) for number, (seed, where) in arms
                ]
            else:
                dropped[NO_PLACE] += 1
    return copies, dropped, placed


def outermost(
    tree: tree_sitter.Tree, node_types: Iterable[str]
) -> dict[str, list[tree_sitter.Node]]:
    """The nodes of each type that are in no other of that type, depth first, among all nodes, the
    root included."""
    nodes: dict[str, list[tree_sitter.Node]] = {kind: [] for kind in node_types}
    none: frozenset[str] = frozenset()
    waiting = [(tree.root_node, none)]  # each with the types of the nodes above
    while waiting:
        node, above = waiting.pop()
        if node.type in nodes and node.type not in above:
            nodes[node.type].append(node)
            above |= {node.type}
        waiting += [(child, above) for child in reversed(node.children)]
    return nodes


def _leaves(
    tree: tree_sitter.Tree, position_of: Callable[[tree_sitter.Node], Any]
) -> tuple[np.ndarray, np.ndarray]:
    """The characters of the leaves of code (L, 2), and of what is none: comments, and strings that
    are statements."""
    leaves: list[tree_sitter.Node] = []
    no_code: list[tree_sitter.Node] = []
    todo = [tree.root_node]
    while todo:
        node = todo.pop()
        stated = node.named_children if node.type == "expression_statement" else []
        if node.is_extra or (len(stated) == 1 and "string" in stated[0].type):
            no_code.append(node)
        elif node.child_count:
            todo += node.children
        elif node.end_byte > node.start_byte:
            leaves.append(node)

    def positions(nodes: Sequence[tree_sitter.Node]) -> np.ndarray:
        return np.array([position_of(node) for node in nodes], np.int64).reshape(-1, 2)

    return positions(leaves), positions(no_code)


def _node_characters(code: str) -> Any:
    """From a node to its characters."""
    starts = np.fromiter(
        accumulate((len(character.encode()) for character in code), initial=0), np.int64
    )

    def place(node: tree_sitter.Node) -> tuple[int, int]:
        start, end = np.searchsorted(starts, (node.start_byte, node.end_byte))
        return int(start), int(end)

    return (lambda node: (node.start_byte, node.end_byte)) if code.isascii() else place


def _as_published(code: str) -> Any:
    """From a node to what the study took for its characters: row and byte column, cut at the end of
    the line."""
    lengths = [len(line) for line in code.split("\n")]
    starts = list(accumulate((length + 1 for length in lengths), initial=0))

    def offset(point: tree_sitter.Point) -> int:
        return starts[point.row] + min(point.column, lengths[point.row])

    return lambda node: (offset(node.start_point), offset(node.end_point))
