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
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import tree_sitter

from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.languages.grammar import checked_node_types, parse
from probing.instruments.attention.align import trimmed
from probing.instruments.masking.result import NO_NODE, NO_PLACE, NOTHING_MASKED, TOO_MANY
from probing.models.subtokens import check_language, encode

CURRENT, PUBLISHED, INFILLING = "current", "published", "infilling"
MASKING_PROTOCOLS = (CURRENT, PUBLISHED, INFILLING)

SUB_TOKENS, SPANS = "sub-tokens", "spans"
MASKED_IN_T0 = (SUB_TOKENS, SPANS)
"""What a control masks: as many random sub-tokens, as in the study, or random spans as long as the
nodes, outside of them."""


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

    `ids` (S,), `special` (S,): its sub-tokens, as from `encode`; `place` (S, 2): their characters,
    without spaces. `nodes`: of each type the outermost ones, in order, by their characters, from
    and to (exclusive), (nodes, 2). `eligible`: the positions that a control may mask. They are all
    for the protocol `published`; otherwise none of a special token, be it added by the tokenizer,
    spelled out in the source, or standing for unknown text.
    """

    def __init__(
        self,
        code: str,
        subtokens: tuple[np.ndarray, np.ndarray, np.ndarray],
        tokenizer: Any,
        nodes: dict[str, np.ndarray],
        protocol: str,
    ):
        self.code = code
        self.protocol = protocol
        self.ids, offsets, self.special = subtokens
        self.nodes = nodes
        # spaces alone are the place at their end
        self.place = np.stack(trimmed(code, offsets[:, 0], offsets[:, 1], " "), axis=1)
        self._published = protocol == PUBLISHED
        special = self.special | np.isin(self.ids, tokenizer.all_special_ids)
        self._eligible = self._published | ~special
        self.eligible = np.flatnonzero(self._eligible)
        self._spelled = np.flatnonzero(self._published & (self.ids == tokenizer.mask_token_id))

    def mask(self, node_type: str, rate: float = 1.0, seed: int = 0) -> Mask:
        """The sub-tokens of the nodes of a type: of all nodes, or of `int(rate * nodes)` of them,
        drawn by `seed`.

        Without a node, or if no sub-token is in one, nothing is masked.
        """
        spans = self.nodes[node_type]
        drawn = random.Random(seed).sample(range(len(spans)), int(rate * len(spans)))
        within = self._inside_nodes(spans[sorted(drawn)])
        positions = np.flatnonzero(within.any(axis=1))
        if not len(positions):
            return Mask(positions, 0)
        controls = int(within.sum()) if self._published else len(positions)
        return Mask(np.union1d(positions, self._spelled), controls)

    def control(self, count: int, seed: int) -> np.ndarray:
        """The positions of `count` random sub-tokens, drawn by `seed` without repetition: sorted,
        int64 (M,)."""
        drawn = random.Random(seed).sample(self.eligible.tolist(), count)
        return np.union1d(np.asarray(drawn, np.int64), self._spelled)

    def outside(self, node_type: str) -> np.ndarray:
        """Which of the eligible sub-tokens are in no node of a type: bool."""
        within = self._inside_nodes(self.nodes[node_type])[self.eligible]
        return np.asarray(~within.any(axis=1))

    def control_spans(self, node_type: str, positions: np.ndarray, seed: int) -> np.ndarray:
        """Random runs as long as those of `positions` (M,), outside of the nodes of a type, drawn
        by `seed`: sorted, int64 (M,).

        Runs of several begin and end between words, as nodes do, and touch no other where there is
        room. Long ones are placed first, and one for which there is no place as two halves. A run
        is harder to restore than as many scattered sub-tokens, whatever it holds: a difference to
        this control is not due to that.
        """
        index = np.searchsorted(self.eligible, positions)
        lengths = sorted(map(len, np.split(index, np.flatnonzero(np.diff(index) > 1) + 1)))
        in_word = [match.start() for match in re.finditer(r"(?<=\w)(?=\w)", self.code)]
        begins, ends = ~np.isin(self.place[self.eligible].T, in_word)
        free = self.outside(node_type)
        rng = random.Random(seed)
        chosen = np.zeros(len(free), bool)
        while lengths:
            length = lengths.pop()
            fits = np.convolve(free & ~chosen, np.ones(length), "valid") == length
            if length > 1:
                fits &= begins[: 1 - length] & ends[length - 1 :]
            touched = np.convolve(np.pad(chosen, 1), np.ones(length + 2), "valid")
            apart = fits & (touched == 0)
            places = np.flatnonzero(apart if apart.any() else fits)
            if len(places):
                start = places[rng.randrange(len(places))]
                chosen[start : start + length] = True
            else:
                lengths = sorted([*lengths, length // 2, length - length // 2])
        return self.eligible[chosen]

    def _inside_nodes(self, spans: np.ndarray) -> np.ndarray:
        """True where each sub-token is in each node: bool (S, nodes).

        It is if the two share a character. A sub-token of spaces alone is the place at its end; in
        the protocol `published`, it is in a node that begins there, too. What touches a node
        without characters, which error repair inserts, is in it.
        """
        start, end = self.place.T[:, :, None]
        first, last = spans.T[:, None, :]
        touched = (start <= last) & (first <= end)
        within = np.where((start == end) | (first == last), touched, (start < last) & (first < end))
        if not self._published:
            within &= ~((start == end) & (end == first) & (first < last))
        return within & self._eligible[:, None]


class Masker:
    """Reads functions with the tokenizer of a model that restores, so that the nodes of some types
    can be masked.

    `node_types`: by default those of the language's record. Raises UnknownName for a language, node
    type or protocol that does not exist, ArgumentError for a language without a grammar, and
    ModelError for a tokenizer of another language.
    """

    def __init__(
        self,
        tokenizer: Any,
        language: str,
        node_types: Iterable[str] | None = None,
        *,
        protocol: str = CURRENT,
    ):
        if protocol not in MASKING_PROTOCOLS:
            raise UnknownName("protocol", protocol, MASKING_PROTOCOLS)
        self.node_types = checked_node_types(language, node_types)
        check_language(tokenizer, type(tokenizer).__name__, language)
        self.tokenizer, self.language, self.protocol = tokenizer, language, protocol

    def read(self, codes: Sequence[str]) -> Iterator[Maskable]:
        """The functions of these texts, in order, whether they parse or not; raises ParseError for
        a lone surrogate."""
        # before the tokenizer meets a surrogate
        trees = [parse(code, self.language) for code in codes]
        characters_of = _as_published if self.protocol == PUBLISHED else _node_characters
        for code, tree, subtokens in zip(codes, trees, encode(self.tokenizer, codes)):
            characters = characters_of(code)
            nodes = {
                kind: np.array(characters(nodes), np.int64).reshape(-1, 2)
                for kind, nodes in outermost(tree, self.node_types).items()
            }
            yield Maskable(code, subtokens, self.tokenizer, nodes, self.protocol)


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
) -> tuple[list[MaskedCopy], Counter[str]]:
    """The masked copies of a function, of each node type T1 and then its controls, and why there
    are none for the other types.

    `index`: the function's place in the split, from which the seeds of its copies follow; the rest
    as of `mask`.
    """
    copies = []
    dropped: Counter[str] = Counter()
    for type_number, name in enumerate(node_types):
        first, *seeds = (seed_of(seed, index, name, number) for number in range(draws + 1))
        masked = function.mask(name, rate, seed=first)
        if not len(function.nodes[name]):
            dropped[NO_NODE] += 1
        elif not len(masked.positions):
            dropped[NOTHING_MASKED] += 1
        elif masked.controls > len(function.eligible):
            dropped[TOO_MANY] += 1
        elif control == SPANS and len(masked.positions) > function.outside(name).sum():
            dropped[NO_PLACE] += 1
        else:
            controls = [
                function.control_spans(name, masked.positions, seed)
                if control == SPANS
                else function.control(masked.controls, seed)
                for seed in seeds
            ]
            arms = zip([first, *seeds], [masked.positions, *controls])
            copies += [MaskedCopy(type_number, number, *arm) for number, arm in enumerate(arms)]
    return copies, dropped


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


def _node_characters(code: str) -> Any:
    """From nodes to their characters."""
    starts = np.cumsum([0, *(len(character.encode()) for character in code)])
    return lambda nodes: np.searchsorted(starts, [node.byte_range for node in nodes])


def _as_published(code: str) -> Any:
    """From nodes to what the study took for their characters: row and byte column, cut at the end
    of the line."""
    lengths = [len(line) for line in code.split("\n")]
    starts = list(accumulate((length + 1 for length in lengths), initial=0))

    def offset(point: tree_sitter.Point) -> int:
        return starts[point.row] + min(point.column, lengths[point.row])

    return lambda nodes: [(offset(node.start_point), offset(node.end_point)) for node in nodes]
