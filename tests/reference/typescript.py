"""The edges of TypeScript functions by TypeScript's compiler, whose trees `javascript.cjs` reads.

`OTHER` is Babel's parser: whether a function is valid in a module, much of which the compiler's parser does not ask.
"""

from __future__ import annotations

from collections import Counter

from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token
from reference.javascript import COMPILER, VALIDATOR

_PROGRAM = Program("node", ["node", "javascript.cjs", "typescript"], npm=COMPILER)
OTHER = Program("node", ["node", "valid.cjs", "typescript"], npm=VALIDATOR)


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a function; raises SyntaxError if the compiler cannot read it."""
    return _PROGRAM.edges(code)
