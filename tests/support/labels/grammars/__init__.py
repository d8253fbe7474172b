"""Code at random: a table beside this module has a grammar of each language, a symbol above what it may stand for."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

_PART = re.compile(r"\S*'''.*?'''|\S*\"\"\".*?\"\"\"|\S+", re.DOTALL)
"""A word or a symbol; some strings hold blanks."""


@cache
def grammar(language: str) -> dict[str, list[str]]:
    table = Path(__file__).with_name(f"{language}.txt").read_text("utf-8")
    symbols: dict[str, list[str]] = {}
    for symbol, choices in re.findall(r"^(\w+)\n((?: +.*\n)+)", table, re.MULTILINE):
        symbols[symbol] = [line.strip().replace("\\n", "\n") for line in choices.splitlines()]
    return symbols


def expand(language: str, symbol: str, random: Random, depth: int) -> list[str]:
    """The words that a symbol stands for, `depth` levels deep, and by the first of its choices below."""
    if symbol not in (symbols := grammar(language)):
        return [symbol]
    choice = random.choice(symbols[symbol]) if depth > 0 else symbols[symbol][0]
    parts = _PART.findall(choice)
    return [word for part in parts for word in expand(language, part, random, depth - 1)]
