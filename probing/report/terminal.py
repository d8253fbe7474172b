"""How tables look on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table

_WIDE = 250  # characters, more than any table of ours has


def console(wide: bool = False) -> Console:
    """Where to print. A table in a pipe or a file, or one that is wanted `wide`, is as wide as its rows."""
    terminal = Console()
    return terminal if terminal.is_terminal and not wide else Console(width=_WIDE, soft_wrap=True)


def table(title: str, caption: str | None = None) -> Table:
    """A table without columns yet."""
    return Table(
        title=title, title_justify="left", caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )


def print_table(out: Console, shown: Table, spare: Sequence[int] = ()) -> None:
    """Print a table so that no number in it is cut or broken.

    `spare`: the columns that may go where the terminal is too narrow for all, in the order they go; it is said which do.
    """
    gone: list[int] = []
    narrower = _without(shown, gone)
    while len(gone) < len(spare) and out.measure(narrower, options=out.options.update(width=_WIDE)).minimum > out.width:
        gone.append(spare[len(gone)])
        narrower = _without(shown, gone)
    if gone:
        names = ", ".join(" ".join(str(shown.columns[index].header).split()) for index in sorted(gone))
        narrower.caption = f"{shown.caption or ''}\nnot shown at this width: {names} (--wide)".strip()
    out.print(narrower)


def _without(shown: Table, gone: Sequence[int]) -> Table:
    """The same table without some columns; columns of numbers stand on the right and are not broken."""
    kept: list[Column] = [column for index, column in enumerate(shown.columns) if index not in gone]
    narrower = table(shown.title, shown.caption)
    for column in kept:
        whole = column.no_wrap or column.justify == "right"
        width = max(
            cell_len(line) for cell in (column.header, *column.cells) for line in str(cell).splitlines() or [""]
        )
        narrower.add_column(
            column.header, justify=column.justify, no_wrap=whole, min_width=width if whole else column.min_width
        )
    for row, cells in zip(shown.rows, zip(*(column.cells for column in kept))):
        narrower.add_row(*cells, style=row.style, end_section=row.end_section)
    return narrower
