"""Which sub-tokens are masked: those of the nodes of one type, and as many random ones (Velasco et al. 2024).

Two protocols. `published` is the procedure of the study, bugs included (shared by all who compare with it): bytes of a
line count as characters, cut at the line's end; special tokens are masked where they touch a node, and by controls; and
a sub-token over two nodes counts twice. `current`, the default, masks what it says: the sub-tokens of the nodes' own
characters, never a special token, each counted once. Both read the trees of the installed grammar.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import tree_sitter

from codesyntax_dataset.arguments import Natural, checked
from codesyntax_dataset.errors import ArgumentError, ModelError, UnknownName
from codesyntax_dataset.languages.grammar import checked_node_types, parse
from probing.models.subtokens import check_language, encode, tells_characters

CURRENT, PUBLISHED = "current", "published"
PROTOCOLS = (CURRENT, PUBLISHED)

SUB_TOKENS, SPANS = "sub-tokens", "spans"
CONTROLS = (SUB_TOKENS, SPANS)
"""What a control masks: as many random sub-tokens, as in the study, or random spans as long as those of the nodes."""


class Mask(NamedTuple):
    """What is masked: `positions`, sorted, int64 (M,); and how many random sub-tokens a control masks, `controls`.

    They are as many, except in the protocol `published`: it counts a sub-token once for each node that it is in, and
    mask tokens spelled out in the source are among the positions but not counted.
    """

    positions: np.ndarray
    controls: int


class Maskable:
    """A function as a tokenizer reads it, with its nodes, ready to be masked.

    `ids` (S,), `offsets` (S, 2), `special` (S,): its sub-tokens, as from `encode`. `eligible`: the positions that a
    control may mask. They are all for the protocol `published`; otherwise none of a special token, be it added by the
    tokenizer, spelled out in the source, or standing for unknown text.
    """

    def __init__(
        self,
        code: str,
        subtokens: tuple[np.ndarray, np.ndarray, np.ndarray],
        tokenizer: Any,
        spans: dict[str, np.ndarray],
        protocol: str,
    ):
        self.code, self.protocol = code, protocol
        self.ids, self.offsets, self.special = subtokens
        self._spans = spans
        self.place = trimmed(code, self.offsets)
        if protocol == PUBLISHED:
            self.eligible = np.arange(len(self.ids))
            self._spelled = np.flatnonzero(self.ids == tokenizer.mask_token_id)
        else:
            self.eligible = np.flatnonzero(~(self.special | np.isin(self.ids, tokenizer.all_special_ids)))
            self._spelled = np.empty(0, np.int64)

    def nodes(self, node_type: str) -> np.ndarray:
        """The characters of the outermost nodes of a type, in order: from, to (exclusive), (nodes, 2)."""
        return self._spans[node_type]

    def mask(
        self, node_type: str, rate: float = 1.0, nodes: Sequence[int] | np.ndarray | None = None, seed: int = 0
    ) -> Mask:
        """The sub-tokens of the nodes of a type: all nodes, `int(rate * nodes)` of them drawn by `seed`, or `nodes`.

        `nodes` are indices, and need no rate. Without a node, or if no sub-token is in one, nothing is masked.
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
        """The positions of `count` random sub-tokens, drawn by `seed` without repetition: sorted, int64 (M,).

        Raises ArgumentError if there are not so many.
        """
        if count > len(self.eligible):
            raise ArgumentError(f"{count} sub-tokens are to be drawn of {len(self.eligible)}: draw fewer")
        drawn = random.Random(seed).sample(self.eligible.tolist(), count)
        return np.union1d(np.asarray(drawn, np.int64), self._spelled)

    def control_spans(self, positions: np.ndarray, seed: int) -> np.ndarray:
        """As many spans of sub-tokens as `positions` (M,) has, as long, drawn by `seed`: sorted, int64 (M,).

        A span is a run of eligible sub-tokens; at least one that is in none is between two. A span is harder to restore
        than as many scattered sub-tokens, whatever it holds: a difference to this control is not due to that. All
        arrangements are equally likely.
        """
        rng = random.Random(seed)
        place = np.searchsorted(self.eligible, positions)
        lengths = [len(span) for span in np.split(place, np.flatnonzero(np.diff(place) > 1) + 1)]
        rng.shuffle(lengths)
        free = len(self.eligible) - len(place) - (len(lengths) - 1)  # sub-tokens that may be in front of any span
        drawn = sorted(rng.sample(range(free + len(lengths)), len(lengths)))
        starts = np.array(drawn) + [0, *accumulate(lengths[:-1])]
        return self.eligible[np.concatenate([start + np.arange(length) for start, length in zip(starts, lengths)])]

    def _within(self, spans: np.ndarray) -> np.ndarray:
        """Whether each sub-token is in each node: bool (S, nodes).

        It is if the two share a character. A sub-token of spaces alone is the place at its end; in the protocol
        `published`, it is in a node that begins there, too. What touches a node without characters, which error repair
        inserts, is in it.
        """
        start, end = self.place.T[:, :, None]
        first, last = spans.T[:, None, :]
        touched = (start <= last) & (first <= end)
        within = np.where((start == end) | (first == last), touched, (start < last) & (first < end))
        if self.protocol == CURRENT:
            within &= ~((start == end) & (end == first) & (first < last))
            within &= np.isin(np.arange(len(self.ids)), self.eligible)[:, None]
        return within


class Masker:
    """Reads functions, so that the nodes of some types can be masked; each is tokenized once.

    `node_types`: by default those of the language's record. Raises UnknownName for a language, node type or protocol
    that does not exist, ArgumentError for a language without a grammar, ModelError for a tokenizer without a mask token
    or without offsets, or of another language.
    """

    def __init__(
        self, tokenizer: Any, language: str, node_types: Iterable[str] | None = None, *, protocol: str = CURRENT
    ):
        if protocol not in PROTOCOLS:
            raise UnknownName("protocol", protocol, PROTOCOLS)
        self.node_types = checked_node_types(language, node_types)
        if not tells_characters(tokenizer):
            raise ModelError(
                f"{type(tokenizer).__name__} does not tell which characters a sub-token covers: use a fast tokenizer"
            )
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"{type(tokenizer).__name__} has no mask token: use the tokenizer of a masked language model"
            )
        check_language(tokenizer, type(tokenizer).__name__, language)
        self.tokenizer, self.language, self.protocol = tokenizer, language, protocol
        self._subtokens: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def read(self, codes: Sequence[str]) -> Iterator[Maskable]:
        """The functions of these texts, in order, whether they parse or not; raises ParseError for a lone surrogate."""
        trees = [parse(code, self.language) for code in codes]  # before the tokenizer meets a surrogate
        new = [code for code in dict.fromkeys(codes) if code not in self._subtokens]
        if new:
            self._subtokens.update(zip(new, encode(self.tokenizer, new)))
        for code, tree in zip(codes, trees):
            spans = outermost(tree, self.node_types)
            place = _as_published(code) if self.protocol == PUBLISHED else _characters(code)
            yield Maskable(
                code,
                self._subtokens[code],
                self.tokenizer,
                {
                    kind: np.array([place(node) for node in nodes], np.int64).reshape(-1, 2)
                    for kind, nodes in spans.items()
                },
                self.protocol,
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
    """The positions of the sub-tokens to mask, of the nodes of one type: sorted, int64 (M,), maybe empty.

    Positions count special tokens. `node_type`: a name of the language's tree-sitter grammar, such as `if_statement`,
    `identifier`, `=` or `ERROR`; of nodes inside each other, the outermost count. `protocol`: `current` or `published`,
    which masks what the study masked (Velasco et al. 2024); code that does not parse is masked by both. `rate`: the
    share of the nodes, rounded down, drawn by `seed`; `nodes`: which ones instead, as indices.

    Raises UnknownName, with the nearest name, for an unknown node type, language or protocol; ArgumentError for a
    language without a grammar, a rate or nodes out of range; ModelError for a tokenizer without mask token or offsets.
    """
    if not 0 < rate <= 1:
        raise ArgumentError(f"rate is {rate}, expected a share of the nodes above 0, at most 1")
    (function,) = Masker(tokenizer, language, [node_type], protocol=protocol).read([code])
    return function.mask(node_type, rate, nodes, seed).positions


def seed_of(seed: int, function: int, node_type: str, copy: int) -> int:
    """The seed for one masked copy of a function, whatever is drawn before, beside or in another process: 63 bits."""
    digest = hashlib.sha256(f"{seed} {function} {node_type} {copy}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def outermost(tree: tree_sitter.Tree, node_types: Iterable[str]) -> dict[str, list[tree_sitter.Node]]:
    """The nodes of each type that are in no other of that type, depth first, among all nodes, the root included."""
    nodes: dict[str, list[tree_sitter.Node]] = {kind: [] for kind in node_types}
    cursor, above = tree.walk(), []  # the types of the nodes above the cursor's
    while True:
        node = cursor.node
        assert node is not None
        kind = node.type
        if kind in nodes and kind not in above:
            nodes[kind].append(node)
        if cursor.goto_first_child():
            above.append(kind)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return nodes
            above.pop()


def trimmed(code: str, offsets: np.ndarray) -> np.ndarray:
    """The characters of sub-tokens (S, 2) without the spaces at either end; spaces alone become the place at their end.

    RoBERTa's tokenizer says so itself, others, such as GPT-2's, count the space in front of a word to it.
    """
    space = np.fromiter((character == " " for character in code), bool, len(code))
    place = np.arange(len(code))
    word = np.append(np.minimum.accumulate(np.where(space, len(code), place)[::-1])[::-1], len(code))
    behind = np.append(0, np.maximum.accumulate(np.where(space, 0, place + 1)))
    start, end = offsets.T
    start = np.minimum(word[start], end)
    return np.stack([start, np.maximum(behind[end], start)], axis=1)


def _characters(code: str) -> Any:
    """From a node to its characters."""
    starts = np.fromiter(accumulate((len(character.encode()) for character in code), initial=0), np.int64)

    def place(node: tree_sitter.Node) -> tuple[int, int]:
        start, end = np.searchsorted(starts, (node.start_byte, node.end_byte))
        return int(start), int(end)

    return (lambda node: (node.start_byte, node.end_byte)) if code.isascii() else place


def _as_published(code: str) -> Any:
    """From a node to what the study took for its characters: row and byte column, cut at the end of the line."""
    lengths = [len(line) for line in code.split("\n")]
    starts = list(accumulate((length + 1 for length in lengths), initial=0))

    def offset(point: tree_sitter.Point) -> int:
        return starts[point.row] + min(point.column, lengths[point.row])

    return lambda node: (offset(node.start_point), offset(node.end_point))
