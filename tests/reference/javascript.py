"""The edges of JavaScript functions by TypeScript's compiler, whose trees `javascript.cjs` reads."""

from __future__ import annotations

from collections import Counter

from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token

COMPILER = "typescript@6.0.3"  # the last one with an interface for programs

_PROGRAM = Program("node", ["node", "javascript.cjs", "javascript"], npm=COMPILER)


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a function; raises SyntaxError if the compiler cannot read it."""
    return _PROGRAM.edges(code)
