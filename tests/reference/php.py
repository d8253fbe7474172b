"""The edges of PHP functions by nikic/php-parser, which `php.php` reads: Debian's package `php-parser`.

`OTHER` is PHP itself, by its extension `ast` (Debian's `php-ast`): whether it reads a function.
"""

from __future__ import annotations

import functools
import subprocess
from collections import Counter

import pytest
from support.references.reference_parsers import Place, Program

from codesyntax_dataset.schema import Token

_PROGRAM = Program("php", ["php", "php.php"])
OTHER = Program("php", ["php", "valid.php"])


@functools.cache
def _installed() -> bool:
    try:
        found = subprocess.run(
            ["php", "-r", "exit((int) !@include 'PhpParser/autoload.php');"], check=False
        )
    except FileNotFoundError:
        return False
    return found.returncode == 0


def edges(code: str, tokens: list[Token]) -> Counter[Place]:
    """The edges of a function or method; raises SyntaxError if the parser cannot read it."""
    if not _installed():
        pytest.skip("php-parser is not installed, which this test compares with")
    return _PROGRAM.edges(code)
