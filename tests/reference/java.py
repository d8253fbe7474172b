"""The edges of Java methods by the tree of the JDK's compiler, which `Java.java` reads."""

from __future__ import annotations

from collections import Counter

from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token

_PROGRAM = Program("java", ["java", "Java.java"])


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a method; raises SyntaxError if this JDK cannot read it."""
    return _PROGRAM.edges(code)
