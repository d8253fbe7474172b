"""The rows of the table in tests/RELIABILITY.md: what was tried, how often, and what came of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One row. `tried`: how many times; `outcome`: in words, with numbers."""

    what: str
    tried: int
    outcome: str

    def in_markdown(self, command: str) -> str:
        return f"| {self.what} | {self.tried:,} | {self.outcome} | `{command}` |"


Run = Callable[[int, int], Row]
"""Makes a row from a random seed and how many times to try; raises AssertionError for the first thing that is wrong."""


def script(run: Run, times: int) -> None:
    """The command line of one module: `--seed` and `--times`; the last line that it prints has the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", type=int, default=times)
    row = run(**vars(parser.parse_args()))
    print(f"{row.what}: {row.tried:,}, {row.outcome}")
