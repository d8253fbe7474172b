"""A function that is to be edited: its tokens, its tree, and the draws of its edit."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import tree_sitter

from codesyntax_dataset.languages import Language
from codesyntax_dataset.languages.grammar import parse_framed
from codesyntax_dataset.languages.language import Editing
from codesyntax_dataset.schema import Token

T = TypeVar("T")

_NAMES = frozenset(
    "class_variable constant global_variable hash_key_symbol identifier instance_variable name property_identifier "
    "shorthand_property_identifier simple_symbol type_identifier variable_name".split()
)
"""Nodes that are names, of all grammars."""

_WORD = re.compile(r"[$@:\\]*[\w\\]*[?!=]?")


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
    for position, change in sorted(changes.items()):
        places |= {*range(since, position)} if depth else set()
        depth, since = depth + change, position
    return places


class Function:
    """The code of a function with what edits ask of it; `edit` is the name of the edit that draws
    are for."""

    def __init__(self, code: str, language: Language, variant: str, edit: str):
        assert language.editing is not None and language.tokenize is not None
        self.code = code
        self.language = language
        self.editing: Editing = language.editing
        self.tokens: list[Token] = language.tokenize(code, variant)
        self.draws = Draws(f"{edit}\n{code}")

    @cached_property
    def identifiers(self) -> list[Token]:
        """The names in tokens: of variables, functions, attributes, types, keyword arguments."""
        left = self.verbatim | self._signs
        return list(
            self._names(
                (token.start, token.end) for token in self.tokens if token.start not in left
            )
        )

    @cached_property
    def interpolated(self) -> list[Token]:
        """The names in the code inside of strings that are one token, or of a field in a string
        that is filled."""
        whole = (token for token in self.tokens if not _WORD.fullmatch(self._text(token)))
        strings = covered(
            (token.start + 1, token.end) for token in whole if token.end - token.start > 1
        )
        spans, inside = [], 0
        for node in self.nodes if strings else ():
            if (
                node.type in _NAMES
                and (span := self.span(node))[0] in strings
                and span[0] >= inside
            ):
                spans.append(span)
                inside = span[1]
        known = {token.text for token in self.identifiers}
        fields = (
            field
            for index in range(len(self.tokens))
            for field in self.fields(index)
            if field.text in known
        )
        named = (*self._names(spans), *fields)  # one place is both in f"{name}".format
        return [*{token.start: token for token in named}.values()]

    def fields(self, index: int) -> list[Token]:
        """The names of the fields in a token that is a string, if what is behind it fills them."""
        token, editing = self.tokens[index], self.editing
        behind = [other.text for other in self.tokens[index + 1 : index + 3]]
        if not any(behind[: len(words)] == [*words] for words in editing.filled_by):
            return []
        text = self._text(token)
        if text[-1:] not in ("'", '"', "#"):
            return []
        spans = (match.span(match.lastindex or 0) for match in editing.field.finditer(text))
        return [
            Token(text[start:end], token.start + start, token.start + end) for start, end in spans
        ]

    def _names(self, spans: Iterable[tuple[int, int]]) -> Iterator[Token]:
        for begin, end in spans:
            text = self.code[begin:end]
            match = self.editing.identifier.fullmatch(text)
            if match and text not in self.language.keywords:
                first, last = match.span(match.lastindex or 0)
                yield Token(text[first:last], begin + first, begin + last)

    def _text(self, token: Token) -> str:
        return self.code[token.start : token.end]

    @cached_property
    def _signs(self) -> set[int]:
        """Where a word is a keyword of the grammar, such as `yield` in some places."""
        return {
            self.span(node)[0]
            for parent in self.nodes
            for node in parent.children
            if node.type.islower() and not node.is_named
        }

    @cached_property
    def verbatim(self) -> set[int]:
        """The characters that are text, not code, and stand as they are."""
        kinds = self.editing.verbatim
        return (
            covered(self.span(node) for node in self.nodes if node.type in kinds)
            if kinds
            else set()
        )

    @cached_property
    def _taken(self) -> set[str]:
        words = {*self.language.keywords, *self.editing.contextual}
        words |= {token.text for token in (*self.tokens, *self.identifiers, *self.interpolated)}
        return {word.lower() for word in words}

    def is_taken(self, name: str) -> bool:
        """True if something in the function, or in the language, already has the name, in any
        case."""
        return name.lower() in self._taken

    @cached_property
    def nodes(self) -> list[tree_sitter.Node]:
        """The nodes of its tree, each before those inside; none if it parses in no frame of its
        language."""
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
        """The tree in the first frame in which it parses, or in the last one, and how many bytes
        stand before it."""
        tree, before = parse_framed(self.code, self.language.name)
        return tree.root_node, before

    @property
    def end(self) -> int:
        """Where its text ends; labels of Python say more of what ends there than of what ends
        before."""
        return len(self.code.rstrip())

    @cached_property
    def _characters(self) -> list[int]:
        """For each byte of the code, the number of its character."""
        if self.code.isascii():
            return list(range(len(self.code) + 1))
        lengths = [len(character.encode()) for character in self.code]
        return [index for index, length in enumerate([*lengths, 1]) for _ in range(length)]

    def span(self, node: tree_sitter.Node) -> tuple[int, int]:
        """The first character of a node, and the one behind its last."""
        before = self._tree[1]
        return self._characters[node.start_byte - before], self._characters[node.end_byte - before]
