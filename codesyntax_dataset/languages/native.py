"""The languages' own parsers, which certify minimal pairs (`codesyntax_dataset.pairs`) where a
computer has them."""

from __future__ import annotations

from typing import NamedTuple


class Native(NamedTuple):
    """`parser`: its name in certificates. `frames`: what makes a whole program of a function for
    it, tried in turn."""

    parser: str
    frames: tuple[tuple[str, str], ...] = (("", ""),)


_SCRIPT = (("", ""), ("(", "\n)"), ("class A {", "\n}"))

NATIVE = {
    "python": Native("ast"),
    "java": Native("javac", (("class A {", "\n}"),)),
    "javascript": Native("v8", _SCRIPT),
    "typescript": Native("tsc", _SCRIPT),
    "go": Native("go", (("package p\n", ""),)),
    "php": Native("php", (("class A {", "\n}"), ("", ""))),
    "ruby": Native("ruby"),
    "rust": Native("rustc", (("struct A;\nimpl A {", "\n}"),)),
}
