"""The code of a function as phenomena read it: its tokens, those of the grammar's tree, and the
nodes around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import tree_sitter

from codesyntax_dataset.edits.function import Draws
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages.grammar import parse_framed


@dataclass(eq=False)
class Node:
    """A node of the tree: `start` and `end` are characters, `first` and `last` the places of its
    tokens."""

    type: str
    parent: Node | None
    start: int
    end: int
    level: int
    children: list[Node] = field(default_factory=list)
    first: int = -1
    last: int = -1

    def ancestors(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def descendants(self, outside: Callable[[Node], bool] = lambda node: False) -> Iterator[Node]:
        """The nodes inside, in the order of the text, but for what is in nodes that are
        `outside`."""
        waiting = self.children[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            if not outside(node):
                waiting += reversed(node.children)


class Code:
    """The code of a function that parses; raises ParseError otherwise."""

    def __init__(self, text: str, language: str):
        self.text, self.language = text, language
        self.draws = Draws(f"pairs\n{text}")
        self.nodes: list[Node] = []
        self.tokens: list[Node] = []
        tree, before = parse_framed(text, language)
        if tree.root_node.has_error:
            raise ParseError("the grammar cannot read it", 1, 0)
        self._add(tree.root_node, before)

    def _add(self, root: tree_sitter.Node, before: int) -> None:
        lengths = [len(character.encode()) for character in self.text]
        characters = [index for index, length in enumerate([*lengths, 1]) for _ in range(length)]
        waiting: list[tuple[tree_sitter.Node, Node | None]] = [(root, None)]
        while waiting:
            read, parent = waiting.pop()
            first, last = read.start_byte - before, read.end_byte - before
            if read.is_extra or first == last or last <= 0 or first >= len(characters) - 1:
                continue  # a comment, nothing, or part of the frame
            start, end = characters[max(first, 0)], characters[min(last, len(characters) - 1)]
            node = Node(read.type, parent, start, end, parent.level + 1 if parent else 0)
            self.nodes.append(node)
            if parent:
                parent.children.append(node)
            if read.child_count:
                waiting += [(child, node) for child in reversed(read.children)]
            elif 0 <= first and last < len(characters):
                node.first = node.last = len(self.tokens)
                self.tokens.append(node)
        for node in reversed(self.nodes):
            if node.parent is not None and node.first >= 0:
                node.parent.first = node.first
                node.parent.last = max(node.parent.last, node.last)

    def of(self, node: Node) -> str:
        return self.text[node.start : node.end]

    def token(self, index: int) -> str:
        """The text of a token, empty beyond the last."""
        return self.of(self.tokens[index]) if 0 <= index < len(self.tokens) else ""

    def depth(self, start: int, end: int) -> int:
        """How many levels the deepest token from one place to another lies below the first of
        them."""
        first, last = sorted((start, end))
        return (
            max(token.level for token in self.tokens[first : last + 1]) - self.tokens[first].level
        )
