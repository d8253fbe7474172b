"""Tokens and edges of code by the table of its language.

- Tokens are the leaves of the grammar's tree, and the nodes that are whole; white space and
  comments are none, nor is white space at the ends of plain text. Where interpolated strings are
  asked for, the tokens of one are those of its expressions, and the text before, between and behind
  these, brackets included, as in ECMAScript's templates.
- A dependent is what the grammar says: all tokens of its nodes, from the first to the last.
  Brackets that only group are not part of what is inside them.
- A head is the first token of its nodes, or the last for the relations in `FROM_LAST_TOKEN`;
  brackets that only group are passed over. Edges point forward: the dependent begins after the
  head.
"""

from __future__ import annotations

import functools
import importlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

import tree_sitter

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import bounded
from codesyntax_dataset.languages.language import Dialect, with_line_breaks
from codesyntax_dataset.languages.tables.constructs import CHILDREN, CONSTRUCTS, FROM_LAST_TOKEN
from codesyntax_dataset.languages.tables.operators import Brackets
from codesyntax_dataset.languages.tables.parts import COUNTED, Find, Nodes, compiled, named_children
from codesyntax_dataset.languages.tables.table import Table
from codesyntax_dataset.schema import Annotation, Edge, Token


@functools.cache
def grammar(name: str) -> tree_sitter.Language:
    """The tree-sitter grammar of a package, or of a function in one (`package.function`)."""
    package, _, function = name.partition(".")
    return tree_sitter.Language(getattr(importlib.import_module(package), function or "language")())


_Asked = Callable[[bytes], object]

_Reading = tuple[tree_sitter.Language, tree_sitter.Query | None, _Asked, tuple[str, str]]
"""A grammar, its query for what no function has, whether code may have it, and a frame."""

_CALLED = re.compile(rb"\w+\s*\([^()]*\)(?:\s*\.\s*\w+)?")  # such as `import("a").B`
_PIECE = re.compile(rb"'[^'\n]*'|\"[^\"\n]*\"|\w+|[^\w\s]")

_Span = tuple[int, int]  # in bytes
_Edit = tuple[int, int, bytes]  # what stands in place of these bytes


def _readings(
    by: Iterable[Dialect], frames: Sequence[tuple[str, str]], asked: _Asked
) -> list[_Reading]:
    """Each grammar in each of its frames, by default in these."""
    return [
        (ready, tree_sitter.Query(ready, refused) if refused else None, asked, frame)
        for name, refused, own in by
        for ready in [grammar(name)]
        for frame in own or frames
    ]


class _Rule(NamedTuple):
    # name, head, dependent, whether the head is a last token
    relations: list[tuple[str, str, str, bool]]
    parts: dict[str, Find]


def _between(construct: str, left: tree_sitter.Node, right: tree_sitter.Node) -> _Rule:
    """The rule of an operator between two nodes."""
    [relation] = CONSTRUCTS[construct].relations
    head, _, dependent = relation.partition("->")
    parts: dict[str, Find] = {head: lambda _: [left], dependent: lambda _: [right]}
    return _Rule([(f"{construct}:{relation}", head, dependent, False)], parts)


class Tree(NamedTuple):
    """The tree of a function or file in its frame: it is the bytes of `data` from `start` to
    `end`."""

    root: tree_sitter.Node
    data: bytes
    start: int
    end: int
    error: tree_sitter.Node | None  # the first node that the language does not have
    query: tree_sitter.Query | None  # for such nodes
    readings: Sequence[_Reading]  # of which it is one
    # bytes that end a name in the tree, or stand behind a node: tokens of their own
    signs: frozenset[int] = frozenset()
    inserted: tuple[int, ...] = ()  # bytes that are not in the code, in order
    # where in the code several tokens are one name in the tree -> these, and whether its last one
    # is its head
    joined: Mapping[int, tuple[list[_Span], bool]] = MappingProxyType({})

    def place(self, byte: int) -> int:
        """Where in the code a byte of the tree is."""
        return byte - self.start - bisect_left(self.inserted, byte)


class _Walk(NamedTuple):
    """The items that a walk through a tree meets, in the order of the text."""

    leaves: list[_Span]
    comments: list[tree_sitter.Node]
    # a construct, or the head of a node; its first leaf
    related: list[tuple[_Rule | int, tree_sitter.Node, int]]
    opening: set[int]  # the bytes where brackets that only group begin
    closing: set[int]  # and end
    signs: frozenset[int]  # as in the tree
    # operators that the grammar may group otherwise than the language
    competing: list[tree_sitter.Node]
    breaks: list[int]  # the bytes of line breaks that mean nothing to the language
    # where what follows a statement ends -> its first leaf
    trailing: dict[int, int]


class Labels:
    """The tokens and edges of functions by a table."""

    def __init__(self, table: Table):
        self.table = table
        by_grammar = (Dialect(table.grammar, table.refused), *table.dialects)
        of_files = {table.file_grammar or table.grammar: table.refused} | {
            dialect.grammar: dialect.refused for dialect in table.dialects
        }
        asked = table.suspect.search if table.suspect else lambda _: True
        self._readings = {
            "function": _readings(by_grammar, table.frames, asked),
            "part": _readings(by_grammar, (*dict.fromkeys((*table.frames, *table.suites)),), asked),
            "file": _readings(
                [Dialect(*both) for both in of_files.items()],
                (("", ""),),
                table.runs_on.search if table.runs_on else lambda _: False,
            ),
        }
        self._rules: dict[str, list[_Rule]] = {}  # by the type of the node
        self._inside: dict[tuple[str, str], list[_Rule]] = {}  # by those of parent and node
        for rule in table.rules:
            relations = [
                (
                    f"{rule.construct}:{name}",
                    head,
                    dependent,
                    f"{rule.construct}:{name}" in FROM_LAST_TOKEN,
                )
                for name in CONSTRUCTS[rule.construct].relations
                for head, dependent in [name.split("->")]
                if head in rule.parts and dependent in rule.parts
            ]
            ready = _Rule(relations, {part: compiled(path) for part, path in rule.parts.items()})
            parent, _, node = rule.node.rpartition("/")
            if parent:
                self._inside.setdefault((parent, node), []).append(ready)
            else:
                self._rules.setdefault(node, []).append(ready)
        self._parents = {parent for parent, _ in self._inside}
        self._around = table.brackets | table.flat
        self._strings = table.interpolated & table.whole

    def annotate(self, code: str, interpolated: bool = False) -> Annotation:
        """The labels of a function; raises ParseError, with line and column, if it does not parse.

        With `interpolated`, strings with expressions inside are not whole.
        """
        tree, walk = self._read(code, interpolated)
        if tree.error is not None:
            raise _error_at(code, tree)
        if self._lacking(walk):
            raise _at(code, 0, "operators are grouped otherwise than the language does")
        return Annotation(_tokens(code, tree, walk), list(self._edges(walk)))

    def tokenize(self, code: str, interpolated: bool = False) -> list[Token]:
        """Only the tokens, also of code that does not parse: what the grammar cannot read is in
        tokens, too."""
        tree, walk = self._read(code, interpolated)
        return _tokens(code, tree, walk)

    def tree(self, code: str, of: Literal["function", "part", "file"] = "function") -> Tree:
        """The tree of a function, from which its edges are read, or of a file or a part of one.

        If it does not parse, it is that of the code in a form that the grammar can read, if there
        is one.
        """
        try:
            data = with_line_breaks(code).encode()
        except UnicodeEncodeError as wrong:
            raise _at(code, wrong.start, "a lone surrogate, half of a character") from None
        if "\0" in code:
            raise _at(code, code.index("\0"), "a NUL character")
        first = tree = self._in_frame(data, self._readings[of])
        for repair in (
            self._respelled,
            self._plain,
            self._separated,
            self._with_suffixes,
            self._separated,
        ):
            if tree.error is None:
                return tree
            again = repair(tree)
            if again.error is None or again.place(again.error.start_byte) >= tree.place(
                tree.error.start_byte
            ):
                tree = again
        return first if tree.error is not None else tree

    def _read(self, code: str, interpolated: bool) -> tuple[Tree, _Walk]:
        """The tree and what is in it; operators are grouped as the language does, where the grammar
        can read that."""
        tree = self.tree(code)
        walk = self._walked(tree, interpolated)
        if tree.error is None and (edits := self._lacking(walk)):
            edited = self._edited(tree, edits)
            if edited.error is None:
                return edited, self._walked(edited, interpolated)
        return tree, walk

    def _lacking(self, walk: _Walk) -> list[_Edit]:
        """The brackets that are missing so that the grammar groups operators as the language
        does."""
        operators = self.table.operators
        places = set().union(*map(operators.brackets, walk.competing)) if operators else set()
        return [*_around(places), *((position, position + 1, b" ") for position in walk.breaks)]

    def _edited(self, tree: Tree, edits: list[_Edit]) -> Tree:
        """The tree of the code with further brackets, those that close before those that open, or
        other white space."""
        data, inserted, signs = bytearray(), [], []
        last = tree.start
        for start, end, text in [*sorted(edits, key=itemgetter(0)), (tree.end, tree.end, b"")]:
            moved = len(data) - last
            signs += [sign + moved for sign in tree.signs if last <= sign < start]
            inserted += [position + moved for position in tree.inserted if last <= position < start]
            data += tree.data[last:start] + text
            inserted += range(len(data) - len(text) + end - start, len(data))
            last = end
        edited = self._in_frame(bytes(data), tree.readings)
        return edited._replace(
            signs=frozenset(edited.start + sign for sign in signs),
            inserted=tuple(edited.start + position for position in inserted),
            joined=tree.joined,
        )

    def _written(self, tree: Tree, data: bytes) -> Tree:
        """The tree of other code of the same length."""
        again = self._in_frame(data, tree.readings)
        moved = again.start - tree.start
        return again._replace(
            signs=frozenset(sign + moved for sign in tree.signs),
            inserted=tuple(position + moved for position in tree.inserted),
            joined=tree.joined,
        )

    def _respelled(self, tree: Tree) -> Tree:
        """The tree of code in which other words stand for what the grammar cannot read."""
        data = bytearray(tree.data[tree.start : tree.end])
        joined = dict(tree.joined)
        for pattern, text in self.table.respelled:
            for match in pattern.finditer(bytes(data)):
                data[match.start() : match.end()] = text(match) if callable(text) else text
        names = (
            [match.span("name") for match in self.table.names.finditer(data)]
            if self.table.names
            else []
        )
        matches = tree_sitter.QueryCursor(tree.query).matches(tree.root) if tree.query else ()
        for node in (node for _, captures in matches for node in captures.get("name", ())):
            start = node.start_byte - tree.start
            if called := _CALLED.match(data, start):
                names.append(called.span())
        for start, end in dict.fromkeys(names):
            pieces = [
                (
                    tree.place(tree.start + start + piece.start()),
                    tree.place(tree.start + start + piece.end()),
                )
                for piece in _PIECE.finditer(data[start:end])
            ]
            joined[tree.place(tree.start + start)] = pieces, data[start:end].startswith(b"import")
            data[start:end] = b"_" * (end - start)
        if data == tree.data[tree.start : tree.end]:
            return tree
        return self._written(tree, bytes(data))._replace(joined=joined)

    def _separated(self, tree: Tree) -> Tree:
        """The tree with what separates, but for ends of statements that do not end any."""
        if not (edits := self._separating(tree)):
            return tree
        again = self._edited(tree, edits)
        ends = {
            again.place(byte): again.root.descendant_for_byte_range(byte, byte + 1)
            for byte in again.inserted
            if again.data[byte : byte + 1] == b";"
        }
        wrong = {
            place
            for place, node in ends.items()
            if node is None or node.type != ";" or (node.parent and node.parent.is_error)
        }
        if not wrong:
            return again
        kept = [edit for edit in edits if edit[2] != b";" or tree.place(edit[0]) not in wrong]
        return self._edited(tree, kept) if kept else tree

    def _separating(self, tree: Tree) -> list[_Edit]:
        """Brackets around what the grammar cannot read without them, and the ends of statements
        that it overlooks."""
        inside = [
            match.span("inside")
            for lacking in self.table.enclosed
            for match in lacking.finditer(tree.data)
        ]
        matches = tree_sitter.QueryCursor(tree.query).matches(tree.root) if tree.query else ()
        for _, captures in matches:
            if nodes := captures.get("bracketed"):
                inside.append((nodes[0].start_byte, nodes[-1].end_byte))
        starts = {node.start_byte for _, captures in matches for node in _statements(captures)}
        if self.table.begins:
            starts |= {match.end() for match in self.table.begins.finditer(tree.data)}
        starts |= {node.end_byte for _, captures in matches for node in captures.get("opened", ())}
        ends = dict(sorted(inside))  # the last of those that begin alike
        return [
            *_around([Brackets(start, end) for start, end in ends.items()]),
            *((start, start, b";") for start in starts),
            *(
                (match.end(), match.end(), text)
                for pattern, text in self.table.completed
                for match in pattern.finditer(tree.data)
            ),
        ]

    def _with_suffixes(self, tree: Tree) -> Tree:
        """The tree with each sign as a letter of the name before it, or a blank."""
        if self.table.suffixed is None:
            return tree
        plain = bytearray(tree.data[tree.start : tree.end])
        leaves = {
            start - tree.start for start, end in self._walked(tree).leaves if end - start == 1
        }
        starts = [match.start("sign") for match in self.table.suffixed.finditer(plain)]
        signs = [sign for sign in starts if sign in leaves]
        for sign in signs:
            plain[sign] = ord(" " if plain[sign - 1] in b")]" else "_")
        again = self._written(tree, bytes(plain)) if signs else tree
        return again._replace(signs=again.signs | {again.start + sign for sign in signs})

    def _plain(self, tree: Tree) -> Tree:
        """The tree with blanks in place of comments, and of line breaks that mean nothing, in
        brackets or escaped.

        Names that the grammar may take for keywords are other names.
        """
        data, soft = tree.data[tree.start : tree.end], self.table.soft
        walk = self._walked(tree)
        plain = bytearray(
            soft.sub(lambda name: re.sub(rb"\S", b"_", name[0]), data) if soft else data
        )
        for node in walk.comments:
            inside = slice(node.start_byte - tree.start, node.end_byte - tree.start)
            every = plain[node.start_byte - tree.start] == ord("\\")
            plain[inside] = re.sub(rb"(?s)." if every else rb"[^\r\n]", b" ", plain[inside])
        depth = position = 0
        for start, end in walk.leaves if self.table.joins_lines else ():
            between, word = (
                slice(position, start - tree.start),
                data[start - tree.start : end - tree.start],
            )
            if depth > 0:
                plain[between] = re.sub(rb"[\r\n]", b" ", plain[between])
            depth += (word in (b"(", b"[", b"{")) - (word in (b")", b"]", b"}"))
            position = end - tree.start
        return tree if plain == data else self._written(tree, bytes(plain))

    def _in_frame(self, data: bytes, readings: Sequence[_Reading]) -> Tree:
        """The tree by the first grammar, in the first frame, with which the code parses, or its
        error comes last."""
        trees: list[Tree] = []
        for ready, refused, asked, (before, after) in readings:
            start = len(before.encode())
            framed = before.encode() + data + after.encode()
            try:
                root = bounded.parse(ready, framed, keep_text=False).root_node
            except ParseError as wrong:
                unbounded = wrong
                continue
            error = self._error(root, start, refused if asked(framed) else None)
            trees.append(Tree(root, framed, start, start + len(data), error, refused, readings))
            if error is None:
                return trees[-1]
        if not trees:
            raise unbounded
        return max(trees, key=lambda tree: tree.error.start_byte - tree.start if tree.error else 0)

    def _error(
        self, root: tree_sitter.Node, start: int, refused: tree_sitter.Query | None
    ) -> tree_sitter.Node | None:
        """The first node that the language does not have, or the root if the code reaches out of
        its frame."""
        if root.has_error:
            node = root
            while not (node.is_error or node.is_missing):
                inside = next(
                    (child for child in node.children if child.has_error or child.is_missing), None
                )
                if inside is None:  # the error is in a part of the node that the tree does not show
                    break
                node = inside
            return node
        if start:
            frame = root.descendant_for_byte_range(start - 1, root.end_byte)
            if frame is None or frame.start_byte != start - 1:
                return root
        captures = tree_sitter.QueryCursor(refused).captures(root) if refused else {}
        refusals = [*_statements(captures)]
        for name in ("refused", "opened", "name"):
            refusals += captures.get(name, ())
        return min(refusals, key=lambda node: node.start_byte, default=None)

    def _walked(self, tree: Tree, interpolated: bool = False) -> _Walk:
        rules, inside, parents = self._rules, self._inside, self._parents
        whole, text = self.table.whole, self.table.text
        brackets, flat, chains = self.table.brackets, self.table.flat, self.table.chains
        strings = self._strings if interpolated else frozenset()
        trailing = self.table.trailing
        data, first, last, signs, joined = tree.data, tree.start, tree.end, tree.signs, tree.joined
        operators, inserted = self.table.operators, frozenset(tree.inserted)
        rivals = operators.rivals if operators and tree.error is None else {}
        walk = _Walk([], [], [], set(), set(), tree.signs, [], [], {})
        leaves, related, opening = walk.leaves, walk.related, walk.opening
        waiting: list[tuple[tree_sitter.Node | _Span, int, str]] = [(tree.root, -1, "")]
        while waiting:
            node, above, parent = waiting.pop()
            if isinstance(node, tuple):
                leaves.append(node)
                continue
            children: Sequence[tree_sitter.Node | _Span]
            kind, start, end = node.type, node.start_byte, node.end_byte
            if (
                inserted
                and start in inserted
                and end > start
                and inserted.issuperset(range(start, end))
            ):
                continue
            if first <= start and end <= last:
                begin = len(leaves)
                if trailing and kind in trailing:
                    walk.trailing[end] = begin
                if kind in whole:
                    children = self._interpolated(node, data) if kind in strings else ()
                elif node.is_extra and not node.is_error and kind not in COUNTED:
                    walk.comments.append(node)
                    continue
                elif kind in chains:
                    construct, parts = chains[kind]
                    children = operands = _flattened(node, parts)
                    left, *others = [child for child in operands if child.is_named]
                    related.extend(
                        (_between(construct, left, right), node, begin) for right in others
                    )
                else:
                    children = node.children
                if kind in text and not children:
                    leaves.extend(_stripped(data, start, end))
                elif not children and end > start:
                    if joined and (pieces := joined.get(tree.place(start))):
                        moved = start - tree.place(start)
                        spans = [(left + moved, right + moved) for left, right in pieces[0]]
                        leaves.extend(spans)
                        if pieces[1]:
                            opening.update(left for left, _ in spans[:-1])
                    elif signs and {end - 1, end} & signs:
                        name = end - (end - 1 in signs)
                        leaves.extend([(start, name), (name, end + (end in signs))])
                    else:
                        leaves.append((start, end))
                groups = kind in brackets and _groups(node.children)
                if groups:
                    opening.add(start)
                    walk.closing.add(end)
                if kind not in flat and not groups and node.is_named:
                    if 0 <= above < begin:
                        related.append((above, node, begin))
                    above = begin
                if kind in rules:
                    related.extend([(rule, node, begin) for rule in rules[kind]])
                if operators is not None and kind in rivals and children:
                    before, behind = rivals[kind]
                    asked = (before and node.children[0].type in before) or (
                        behind and node.children[-1].type in behind
                    )
                    if asked and operators.competes(node):
                        walk.competing.append(node)
                    if (
                        kind in operators.continued
                        and (line_break := operators.line_break(node, data)) is not None
                    ):
                        walk.breaks.append(line_break)
                if parent in parents and (parent, kind) in inside:
                    related.extend([(rule, node, begin) for rule in inside[parent, kind]])
            else:  # of the frame
                children = node.children
            if children:
                waiting += [(child, above, kind) for child in reversed(children)]
        return walk

    def _interpolated(
        self, string: tree_sitter.Node, data: bytes
    ) -> list[tree_sitter.Node | _Span]:
        """The expressions inside of a string and the text around each, in order."""
        inside, text, expressions = (
            self.table.interpolated - self.table.whole,
            self.table.literal,
            [],
        )
        waiting = string.children[::-1]
        while waiting:
            node = waiting.pop()
            if node.type in inside:
                waiting += node.children[::-1]
            elif node.type not in text:
                expressions.append(node)
        pieces: list[tree_sitter.Node | _Span] = []
        start = string.start_byte
        for node in expressions:
            pieces += [*_stripped(data, start, node.start_byte), node]
            start = node.end_byte
        return [*pieces, *_stripped(data, start, string.end_byte)]

    def _edges(self, walk: _Walk) -> Iterator[Edge]:
        opening, closing, signs, trailing = walk.opening, walk.closing, walk.signs, walk.trailing
        starts = [start for start, _ in walk.leaves]
        ends = [end for _, end in walk.leaves]
        first_at = {start: index for index, start in enumerate(starts)}
        last_at = {end: index for index, end in enumerate(ends)}

        def first_of(node: tree_sitter.Node) -> int:
            index = first_at.get(node.start_byte)
            return bisect_left(starts, node.start_byte) if index is None else index

        def last_of(node: tree_sitter.Node) -> int:
            end = node.end_byte
            if signs:
                # `a.b!` is `(a.b)!`
                signed = end - 1 in signs and node.type == "property_identifier"
                end += (end in signs) - signed
            index = last_at.get(end)
            return bisect_right(ends, end) - 1 if index is None else index

        for rule, node, begin in walk.related:
            if isinstance(rule, int):
                head, end = rule, last_of(node)
                while starts[head] in opening:
                    head += 1
                if head < begin <= end:
                    yield Edge(CHILDREN, head, begin, end)
                continue
            parts = {part: self._inner(find(node), signs) for part, find in rule.parts.items()}
            for relation, head_part, part, from_last in rule.relations:
                heads, nodes = parts[head_part], parts[part]
                if head_part == part:  # the first of several, and the others
                    nodes = self._inner(heads[1:], signs)
                if heads and nodes:
                    if from_last:
                        head = last_of(heads[-1])
                        while ends[head] in closing:
                            head -= 1
                    else:
                        head = first_of(heads[0])
                        while starts[head] in opening:
                            head += 1
                    begin, end = first_of(nodes[0]), last_of(nodes[-1])
                    while trailing and trailing.get(ends[end], 0) > begin:
                        end = trailing[ends[end]] - 1
                    if head < begin <= end:
                        yield Edge(relation, head, begin, end)

    def _inner(self, nodes: Nodes, signs: frozenset[int]) -> Nodes:
        """A single node without the brackets that only group it; a sign behind these is one of the
        node."""
        while (
            len(nodes) == 1
            and (outer := nodes[0]).type in self._around
            and outer.end_byte not in signs
            and len(inside := named_children(outer)) == 1
            and (
                _groups(outer.children)
                if outer.type in self.table.brackets
                else outer.child_count == 1
            )
        ):
            nodes = inside
        return nodes


def _around(places: Collection[Brackets]) -> list[_Edit]:
    """These brackets, those that close before those that open; where nothing is between, as one."""
    closing = [(end, end, sign) for start, end, sign in places if start < end]
    return closing + [(start, start, b"(" if start < end else b"()") for start, end, _ in places]


def _statements(captures: Mapping[str, Nodes]) -> Nodes:
    """Captured nodes that begin a statement, because they begin a line."""
    nodes = captures.get("statement", ())
    return [
        node
        for node in nodes
        if node.prev_sibling and node.prev_sibling.end_point.row < node.start_point.row
    ]


def _flattened(chain: tree_sitter.Node, parts: frozenset[str]) -> Nodes:
    """The operands and operators of a chain, in order."""
    flat, waiting = [], chain.children[::-1]
    while waiting:
        node = waiting.pop()
        if node.type in parts:
            waiting += node.children[::-1]
        else:
            flat.append(node)
    return flat


def _groups(children: Nodes) -> bool:
    """True if brackets with these children do nothing but group: a comma makes a tuple, as does
    nothing inside."""
    return len(children) != 2 and not any(child.type == "," for child in children)


def _stripped(data: bytes, start: int, end: int) -> list[_Span]:
    """Where plain text begins and ends without white space around it; nothing if it is only white
    space."""
    text = data[start:end]
    start += len(text) - len(text.lstrip())
    return [(start, start + len(text.strip()))] if text.strip() else []


def _tokens(code: str, tree: Tree, walk: _Walk) -> list[Token]:
    spans = [(start - tree.start, end - tree.start) for start, end in walk.leaves]
    if inserted := [position - tree.start for position in tree.inserted]:
        spans = [
            (start - bisect_left(inserted, start), end - bisect_left(inserted, end))
            for start, end in spans
        ]
    if tree.error is not None:
        spans = sorted({*spans, *_unread(code, tree, walk, spans)})
    if code.isascii():
        return [Token(code[start:end], start, end) for start, end in spans]
    lengths = accumulate((len(character.encode()) for character in code), initial=0)
    places = {position: index for index, position in enumerate(lengths)}
    return [
        Token(code[places[start] : places[end]], places[start], places[end]) for start, end in spans
    ]


def _unread(code: str, tree: Tree, walk: _Walk, spans: list[_Span]) -> Iterator[_Span]:
    """The text that is in no leaf, because the grammar cannot read it, up to the next blank."""
    data, position = code.encode(), 0
    comments = [
        (node.start_byte - tree.start, node.end_byte - tree.start) for node in walk.comments
    ]
    for start, end in [*sorted([*spans, *comments]), (len(data), len(data))]:
        for match in re.finditer(rb"\S+", data[position:start]):
            yield position + match.start(), position + match.end()
        position = max(position, end)


def _error_at(code: str, tree: Tree) -> ParseError:
    assert tree.error is not None
    position = len(
        code.encode()[: max(0, tree.error.start_byte - tree.start)].decode(errors="ignore")
    )
    return _at(
        code, position, "something is missing" if tree.error.is_missing else "cannot be read"
    )


def _at(code: str, position: int, problem: str) -> ParseError:
    """The error at a character of the code."""
    line_start = code.rfind("\n", 0, position) + 1
    return ParseError(problem, code.count("\n", 0, line_start) + 1, position - line_start)
