"""Parse with tree-sitter in a bounded number of steps: its recovery from errors can take the square of the length, and
with some code, such as `class A {` and then `[,Z` 14 times in TypeScript, it never ends and fills the memory."""

from __future__ import annotations

import tree_sitter

from codesyntax_dataset.errors import ParseError

_STEPS, _STEPS_PER_BYTE = 1_000, 0.06
"""Steps of tree-sitter for code of any length, and for each byte. Of 7,623 files and functions of eight languages, none
took more than a third of them; a number of steps, unlike a time, is the same on every computer."""


def parse(language: tree_sitter.Language, data: bytes, keep_text: bool = True) -> tree_sitter.Tree:
    """The tree of some code, with ERROR nodes where it does not parse; raises ParseError if it takes too many steps.

    Without `keep_text`, the nodes of code that does not parse need not know their text: it takes half the time.
    """
    parser = tree_sitter.Parser(language)
    tree = _in_steps(parser, data)
    if not tree.root_node.has_error:
        return parser.parse(data, tree)  # nothing is parsed again, but then nodes know their text
    return parser.parse(data) if keep_text else tree


def _in_steps(parser: tree_sitter.Parser, data: bytes) -> tree_sitter.Tree:
    """The same tree, whose nodes do not know their text: steps are told where the code is read piece by piece."""
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
        raise ParseError("code that does not parse, and takes too long to tell where", 1, 0) from None
    finally:
        parser.reset()
