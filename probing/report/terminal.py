"""How tables look on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table


def console(width: int = 160) -> Console:
    """Where to print. A table in a pipe or a file is as wide as its rows, not as a terminal that is not there."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=width, soft_wrap=True)


def table(title: str, caption: str | None = None) -> Table:
    """A table without columns yet."""
    return Table(
        title=title, title_justify="left", caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
