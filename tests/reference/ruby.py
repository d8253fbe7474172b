"""The edges of Ruby methods by Prism, Ruby's own parser since 3.4, whose trees `ruby.cjs` reads."""

from __future__ import annotations

from collections import Counter

from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token

_PROGRAM = Program("node", ["node", "--no-warnings", "ruby.cjs"], npm="@ruby/prism@1.9.0")


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a method; raises SyntaxError if Prism cannot read it."""
    return _PROGRAM.edges(code)
