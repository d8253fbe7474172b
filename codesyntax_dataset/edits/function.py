"""A function that is to be edited: its tokens, its tree, and the draws of its edit."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import tree_sitter

from codesyntax_dataset.languages import Language
from codesyntax_dataset.languages.grammar import parse
from codesyntax_dataset.languages.language import Editing
from codesyntax_dataset.schema import Token

T = TypeVar("T")


class Draws:
    """Random draws that depend on a text alone, the same on every version of Python."""

    def __init__(self, seed: str):
        self._random = random.Random(int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big"))

    def below(self, number: int) -> int:
        return int(self._random.random() * number)  # only `random` is promised to stay the same

    def one(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        keys = [self._random.random() for _ in items]
        return [item for _, item in sorted(zip(keys, items), key=lambda pair: pair[0])]


def covered(spans: Iterable[tuple[int, int]]) -> set[int]:
    """The places in at least one of some spans, which may be many and inside each other."""
    changes: Counter[int] = Counter()
    for start, end in spans:
        changes[start] += 1
        changes[end] -= 1
    places, depth, since = set(), 0, 0
    for place, change in sorted(changes.items()):
        places |= {*range(since, place)} if depth else set()
        depth, since = depth + change, place
    return places


class Function:
    """The code of a function with what edits ask of it; `edit` is the name of the edit that draws are for."""

    def __init__(self, code: str, language: Language, variant: str, edit: str):
        assert language.editing is not None and language.tokenize is not None
        self.code = code
        self.language = language
        self.editing: Editing = language.editing
        self.tokens: list[Token] = language.tokenize(code, variant)
        self.draws = Draws(f"{edit}\n{code}")

    @cached_property
    def identifiers(self) -> list[Token]:
        """What is a name in tokens: of variables, functions, attributes, types, keyword arguments."""
        found = []
        for token in self.tokens:
            text = self.code[token.start : token.end]
            match = self.editing.identifier.fullmatch(text)
            if match and text not in self.language.keywords and token.start not in self.verbatim:
                start, end = match.span(match.lastindex or 0)
                found.append(Token(text[start:end], token.start + start, token.start + end))
        return found

    @cached_property
    def verbatim(self) -> set[int]:
        """The characters that are text, not code, and stand as they are."""
        kinds = self.editing.verbatim
        return covered(self.span(node) for node in self.nodes if node.type in kinds) if kinds else set()

    @cached_property
    def _taken(self) -> set[str]:
        words = {*self.language.keywords, *self.editing.contextual}
        words |= {token.text for token in (*self.tokens, *self.identifiers)}
        return {word.lower() for word in words}

    def is_taken(self, name: str) -> bool:
        """Whether something in the function, or in the language, already has the name, in any case."""
        return name.lower() in self._taken

    @cached_property
    def nodes(self) -> list[tree_sitter.Node]:
        """The nodes of its tree, each before those inside; none if it parses in no frame of its language."""
        root, before = self._tree
        end = before + len(self.code.encode())
        nodes, waiting = [], [] if root.has_error else [root]
        while waiting:
            node = waiting.pop()
            if before <= node.start_byte and node.end_byte <= end:
                nodes.append(node)
            waiting += reversed(node.named_children)
        return nodes

    @cached_property
    def _tree(self) -> tuple[tree_sitter.Node, int]:
        """The tree in the first frame in which it parses, or in the last one, and how many bytes stand before it."""
        for before, after in self.language.frames:
            root = parse(before + self.code + after, self.language.name).root_node
            if not root.has_error:
                break
        return root, len(before.encode())

    @property
    def end(self) -> int:
        """Where its text ends; labels of Python say more of what ends there than of what ends before."""
        return len(self.code.rstrip())

    @cached_property
    def _characters(self) -> list[int]:
        """For each byte of the code, the number of its character."""
        if self.code.isascii():
            return list(range(len(self.code) + 1))
        lengths = [len(character.encode()) for character in self.code]
        return [place for place, length in enumerate([*lengths, 1]) for _ in range(length)]

    def span(self, node: tree_sitter.Node) -> tuple[int, int]:
        """The first character of a node, and the one behind its last."""
        before = self._tree[1]
        return self._characters[node.start_byte - before], self._characters[node.end_byte - before]
