"""The rows of the table in tests/RELIABILITY.md: what was tried, how often, and what came of it."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One row. `tried`: how many times; `outcome`: in words, with numbers."""

    what: str
    tried: int
    outcome: str

    def in_markdown(self, command: str) -> str:
        return f"| {self.what} | {self.tried:,} | {self.outcome} | `{command}` |"
