"""The edges of Ruby methods by Prism, Ruby's own parser since 3.4, whose trees `ruby.cjs` reads.

`OTHER` is the parser of the Ruby that is installed, before 3.4 that of `parse.y`: whether it reads a method.
"""

from __future__ import annotations

from collections import Counter

from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token

_PROGRAM = Program("node", ["node", "--no-warnings", "ruby.cjs"], npm="@ruby/prism@1.9.0")
OTHER = Program("ruby", ["ruby", "-W0", "valid.rb"])


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a method; raises SyntaxError if Prism cannot read it."""
    return _PROGRAM.edges(code)
