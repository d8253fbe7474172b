"""The edges of Go functions by `go/ast`, which `Go.go` reads."""

from __future__ import annotations

from collections import Counter

from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token

_PROGRAM = Program("go", ["go", "run", "Go.go"])


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a function; raises SyntaxError if this Go cannot read it."""
    return _PROGRAM.edges(code)
