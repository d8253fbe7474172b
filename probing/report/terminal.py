"""The terminal, or the pipe, that commands print to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from codesyntax_dataset.safe_files import printable

WIDE = 10_000
"""Characters, wider than any table: in a pipe, tables are as wide as their rows."""


class Terminal(Console):
    """Prints texts as they are: no mark-up, and nothing that a terminal would obey."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(plain(part) if isinstance(part, str) else part for part in objects), **options)


def console(wide: bool = False) -> Terminal:
    """The console to print to. In a pipe or a file, or with `wide`, tables are as wide as their rows."""
    terminal = Terminal()
    return terminal if terminal.is_terminal and not wide else Terminal(width=WIDE, soft_wrap=True)


def print_parts(parts: Iterable[object], wide: bool = False) -> None:
    """Print texts and tables; what has no spaces, such as a signature, stays whole, so that it can be copied."""
    out = console(wide)
    for part in parts:
        out.print(part, soft_wrap=out.soft_wrap or (isinstance(part, str) and " " not in part))


def plain(text: str) -> str:
    """A text without the characters that a terminal would obey."""
    return "\n".join(printable(line, most=10_000) for line in text.split("\n"))


def printed_width(texts: Iterable[str]) -> int:
    """The columns of a terminal that the longest line of some texts takes."""
    return max((cell_len(line) for text in texts for line in text.splitlines()), default=0)
