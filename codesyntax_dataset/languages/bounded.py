"""Parse with tree-sitter within bounds: with code that does not parse, it may take ever more time
and memory, or crash.

Its recovery from errors can take the square of the length, and with some code, such as `class A {`
and then `[,Z` 14 times in TypeScript, it never ends and fills the memory. It can be stopped between
steps, but not in the last one, which can take the square of the brackets that nobody closes (7,000
in 50 KB of Go: a minute and 14 GB; Java, whose published labels have signatures of such code,
showed none of it). And the grammar of Ruby writes behind the end of a buffer if too many
here-documents are open. Grammars are told apart by their nodes, as they do not know their names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import tree_sitter

from codesyntax_dataset.errors import ParseError

_STEPS, _STEPS_PER_BYTE = 1_000, 0.06
"""Steps of tree-sitter for code of any length, and for each byte. Of 7,623 files and functions of
eight languages, none took more than a third of them; a number of steps, unlike a time, is the same
on every computer."""

_UNCLOSED = 1_000
"""Brackets, those in texts and comments included: 9 of 78,366 real files have more, all generated
JavaScript."""

_CLOSING = {b"(": b")", b"[": b"]", b"{": b"}"}

_HEREDOC = re.compile(rb"""<<[~-]?["'`]?(\w+)""")
_OPEN = 800
"""Bytes of open here-documents, of the 1,024 of the buffer; none of 1,600 real files has as
many."""


def parse(language: tree_sitter.Language, data: bytes, keep_text: bool = True) -> tree_sitter.Tree:
    """The tree of some code, with ERROR nodes where it does not parse; raises ParseError if it
    exceeds a bound.

    Without `keep_text`, the nodes of code that does not parse need not know their text: it takes
    half the time.
    """
    # in any language but Java
    if (
        _unclosed(data) > _UNCLOSED
        and language.id_for_node_kind("enhanced_for_statement", True) is None
    ):
        raise ParseError("too many unclosed brackets", 1, 0)
    if language.id_for_node_kind("heredoc_beginning", True) is not None:
        _check_heredocs(data)
    parser = tree_sitter.Parser(language)
    tree = _in_steps(parser, data)
    if not tree.root_node.has_error:
        return parser.parse(data, tree)  # nothing is parsed again, but then nodes know their text
    return parser.parse(data) if keep_text else tree


def parse_by(languages: Sequence[tree_sitter.Language], data: bytes) -> tree_sitter.Tree:
    """The tree by the first of some grammars that reads all of the code, or else by the first
    within its bounds."""
    trees: list[tree_sitter.Tree] = []
    for language in languages:
        try:
            trees.append(parse(language, data))
        except ParseError as error:
            beyond = error
            continue
        if not trees[-1].root_node.has_error:
            return trees[-1]
    if not trees:
        raise beyond
    return trees[0]


def _unclosed(data: bytes) -> int:
    """The number of brackets that are open in the end; one of another kind, or before all others,
    closes none."""
    if sum(map(data.count, b"([{")) <= _UNCLOSED:
        return 0
    waiting = bytearray()
    for bracket in re.findall(rb"[][(){}]", data):
        if bracket in b"([{":
            waiting += _CLOSING[bracket]
        elif waiting.endswith(bracket):
            waiting.pop()
    return len(waiting)


def _in_steps(parser: tree_sitter.Parser, data: bytes) -> tree_sitter.Tree:
    """The same tree, whose nodes do not know their text: steps are told where the code is read
    piece by piece."""
    taken, view = 0, memoryview(data)

    def too_many(*_: object) -> bool:
        nonlocal taken
        taken += 1
        return taken > _STEPS + _STEPS_PER_BYTE * len(data)

    def piece(start: int, _: object) -> bytes:
        return bytes(view[start : start + (1 << 16)])

    try:
        return parser.parse(piece, encoding="utf8", progress_callback=too_many)
    except ValueError:  # it was stopped
        raise ParseError(
            "the code does not parse, and finding the place takes too long", 1, 0
        ) from None
    finally:
        parser.reset()


def _check_heredocs(data: bytes) -> None:
    """Raise ParseError where the words of here-documents that wait for their end do not fit the
    scanner's buffer."""
    if sum(len(word) + 4 for word in _HEREDOC.findall(data)) <= _OPEN:
        return
    waiting: Counter[bytes] = Counter()
    for number, line in enumerate(data.split(b"\n"), start=1):
        waiting -= Counter([line.strip()])
        waiting.update(_HEREDOC.findall(line))
        if sum((len(word) + 4) * count for word, count in waiting.items()) > _OPEN:
            raise ParseError("too many here-documents are open", number, 0)
