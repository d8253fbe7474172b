"""The edges of JavaScript functions by TypeScript's compiler, whose trees `javascript.cjs` reads.

`OTHER` is Babel's parser: whether a function is valid in a module, much of which the compiler's parser does not ask.
"""

from __future__ import annotations

from collections import Counter

from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token

COMPILER = "typescript@6.0.3"  # the last one with an interface for programs
VALIDATOR = "@babel/parser@7.29.15"

_PROGRAM = Program("node", ["node", "javascript.cjs", "javascript"], npm=COMPILER)
OTHER = Program("node", ["node", "valid.cjs", "javascript"], npm=VALIDATOR)


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a function; raises SyntaxError if the compiler cannot read it."""
    return _PROGRAM.edges(code)
