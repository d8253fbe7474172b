"""The functions in a source file, by the table of its language.

They are found in the tree from which labels are read (`labels.Labels.tree`). Of a file that no
grammar reads as a whole, the parts are read alone, told apart by their indentation; what is inside
of a class or module that cannot be read is such parts again. So what cannot be read takes nothing
with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import tree_sitter

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages.language import (
    UNREAD_FUNCTION,
    UNREAD_OUTSIDE,
    Definition,
    Unread,
)
from codesyntax_dataset.languages.tables.labels import Labels, Tree
from codesyntax_dataset.languages.tables.parts import Find, Nodes, compiled

_CONTINUING = re.compile(
    rb"[])}{.?:&|>]|(?:catch|elif|else|elsif|end|ensure|except|extends|finally|implements|rescue|then|throws|where)\b"
    rb"|\w+:\Z"
)
"""What a line begins with that continues the part before it, or a label."""

_PRECEDING = re.compile(rb"@|#(?![\w$])|//|/?\*")
"""What decorators and comments begin with: they belong to the part behind them."""

_PROGRAM = re.compile(rb"<\?php\b|\?>")
"""Where PHP begins and ends: parts are inside."""

_DEEPEST = 50


class _Around(NamedTuple):
    """What is around a piece of a file: the bytes and lines before it, and the names of what it is
    in."""

    start: int = 0
    line: int = 0
    prefix: str = ""


class _Named(NamedTuple):
    """A node that has the name of a function. `callback`: whether it counts only without functions
    inside; `published`: whether the published procedure finds it."""

    node: tree_sitter.Node
    name: str
    callback: bool
    published: bool


def definitions(text: str, labels: Labels) -> Iterator[Definition | Unread]:
    """The named functions and methods of a file, in order, and what cannot be read; nested ones are
    part of the outer.

    Raises ParseError as `Labels.tree`.
    """
    data = text.encode()
    unread = labels.table.unread
    plain = unread.sub(lambda word: b" " * len(word[0]), data) if unread else data
    tree = labels.tree(plain.decode(), of="file")
    finder = _Finder(data, labels, _hidden(tree.root, labels.table.whole))
    if not tree.root.has_error:
        return finder.defined(tree, _Around())
    within = _PROGRAM.sub(_blank, plain)
    return finder.parts(within.splitlines(keepends=True), _Around())


def _blank(text: re.Match[bytes]) -> bytes:
    return b" " * len(text[0])


def _indent(line: bytes) -> int:
    line = line.expandtabs(8)
    return len(line) - len(line.lstrip())


def _name(parts: Nodes, data: bytes) -> str:
    """The text of what the path to a name leads to: of its first node, or from the first to the
    last."""
    if not parts:
        return ""
    whole = len(parts) == 2 and parts[1].type in ("string", "template_string")
    name = data[parts[0].start_byte : parts[whole].end_byte].decode()
    return f"{name})" if whole else name


def _hidden(root: tree_sitter.Node, whole: frozenset[str]) -> frozenset[int]:
    """The lines that begin inside of a string or comment, if something cannot be read."""
    rows: set[int] = set()
    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        text = node.type in whole or (node.is_extra and not node.is_error) or not node.children
        if not text:
            waiting += node.children
        elif node.start_point.row < node.end_point.row:
            rows.update(
                range(node.start_point.row + 1, node.end_point.row + (node.end_point.column > 0))
            )
    return frozenset(rows)


class _Finder:
    """Finds the functions of a file; `hidden` are the lines that begin no part."""

    def __init__(self, data: bytes, labels: Labels, hidden: frozenset[int]):
        self._data, self._labels, self._hidden = data, labels, hidden
        table = labels.table
        roles = {"scope": table.scopes, "function": table.functions, "callback": table.callbacks}
        self._names: dict[str, list[tuple[str, Find]]] = {}
        for role, paths in roles.items():
            for node, path in paths.items():
                self._names.setdefault(node, []).append((role, compiled(path)))

    def defined(self, tree: Tree, around: _Around) -> Iterator[Definition]:
        """The functions in a tree."""
        line, counted = around.line, around.start
        for node, name, _, published in self._named(tree, tree.root, around.prefix):
            start = around.start + tree.place(node.start_byte)
            end = around.start + tree.place(node.end_byte)
            line += self._data.count(b"\n", counted, start)
            counted = start
            last = line + self._data.count(b"\n", start, end - 1)
            code = self._data[start:end].decode()
            yield Definition(name, line + 1, last + 1, code, not published)

    def _named(self, tree: Tree, root: tree_sitter.Node, prefix: str) -> Iterator[_Named]:
        """The functions in a node, but for itself."""
        names, unpublished, data = self._names, self._labels.table.unpublished, tree.data
        waiting = [(root, prefix, True)]
        while waiting:
            node, prefix, published = waiting.pop()
            kind = node.type
            published = published and kind not in unpublished
            ours = (
                kind in names and node.start_byte >= tree.start and node is not root
            )  # not of the frame
            for role, path in names[kind] if ours else ():
                if not (name := _name(path(node), data)):
                    continue
                if role == "scope":
                    prefix += f"{name}."
                    continue
                named = _Named(node, prefix + name, role == "callback", published)
                # it may be only the place where others are defined, such as a module or a suite of tests
                nested = list(self._named(tree, node, prefix)) if named.callback else []
                yield from nested or [named]
                break
            else:
                waiting += [
                    (child, prefix, published)
                    for child in reversed(node.children)
                    if child.named_child_count
                ]

    def parts(
        self, lines: Sequence[bytes], around: _Around, depth: int = 0
    ) -> Iterator[Definition | Unread]:
        """Those in some lines, part by part."""
        starts = list(accumulate(map(len, lines), initial=around.start))
        for first, last in self._divided(lines, around.line):
            part = lines[first:last]
            here = around._replace(start=starts[first], line=around.line + first)
            tree = self._tree(part, depth)
            if tree is not None and not tree.root.has_error:
                yield from self.defined(tree, here)
            elif any(map(bytes.strip, part)):
                inside = list(self._inside(part, here, depth + 1)) if depth < _DEEPEST else []
                if tree and not any(isinstance(each, Definition) for each in inside):
                    inside += self._closed(tree, here)
                yield from inside or [Unread(UNREAD_OUTSIDE, here.line + 1)]

    def _closed(self, tree: Tree, around: _Around) -> Iterator[Definition | Unread]:
        """The functions in a part that cannot be read that are whole, because a sign or word says
        where they end; and the others."""
        for each, named in zip(
            self.defined(tree, around), self._named(tree, tree.root, around.prefix)
        ):
            whole = each.code.endswith(("}", "end")) and not named.node.has_error
            yield each if whole else Unread(UNREAD_FUNCTION, each.first_line)

    def _divided(self, lines: Sequence[bytes], line: int) -> Iterator[tuple[int, int]]:
        """Where parts begin and end, in lines that begin at one of the file."""
        visible = [
            number
            for number, text in enumerate(lines)
            if text.strip() and line + number not in self._hidden
        ]
        least = min((_indent(lines[number]) for number in visible), default=0)
        starts, before = [0], True
        for number in visible:
            text = lines[number].strip()
            begins = _indent(lines[number]) == least and not _CONTINUING.match(text)
            if begins and not before:
                starts.append(number)
            before = begins and _PRECEDING.match(text) is not None
        return zip(starts, [*starts[1:], len(lines)])

    def _tree(self, lines: Sequence[bytes], depth: int) -> Tree | None:
        framed = depth or self._labels.table.file_grammar
        try:
            return self._labels.tree(b"".join(lines).decode(), of="part" if framed else "file")
        except ParseError:  # beyond a bound
            return None

    def _inside(
        self, lines: Sequence[bytes], around: _Around, depth: int
    ) -> Iterator[Definition | Unread]:
        """Those in a part that cannot be read: inside of a class or module, but not of a
        function."""
        least = min(_indent(line) for line in lines if line.strip())
        inner = [_indent(line) > least or not line.strip() for line in lines]
        skeleton = [
            re.sub(rb"[^\r\n]+", _blank, line) if deeper else line
            for line, deeper in zip(lines, inner)
        ]
        tree = self._tree(skeleton, depth)
        if tree is None or tree.root.has_error:
            return
        named = list(self._named(tree, tree.root, around.prefix))
        if all(each.callback for each in named):
            within = around._replace(prefix=around.prefix + self._scope(tree))
            starts = list(accumulate(map(len, lines), initial=around.start))
            for match in re.finditer("1+", "".join(str(int(deeper)) for deeper in inner)):
                first, last = match.span()
                here = within._replace(start=starts[first], line=around.line + first)
                yield from self.parts(lines[first:last], here, depth)

    def _scope(self, tree: Tree) -> str:
        """The names of what is around the blank lines of a part."""
        names, waiting = "", [tree.root]
        while waiting:
            node = waiting.pop()
            roles = dict(self._names.get(node.type, ())) if node.start_byte >= tree.start else {}
            if "scope" in roles and (name := _name(roles["scope"](node), tree.data)):
                names += f"{name}."
            waiting += reversed(node.named_children)
        return names
