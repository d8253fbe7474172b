"""Tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table

from codesyntax_dataset.safe_files import printable

_WIDE = 250  # characters, wider than any of our tables


class _Terminal(Console):
    """Prints texts as they are: no mark-up, and nothing that a terminal would obey."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(_plain(one) if isinstance(one, str) else one for one in objects), **options)


def console(wide: bool = False) -> Console:
    """The console to print to. In a pipe or a file, or with `wide`, tables are as wide as their rows."""
    terminal = _Terminal(markup=False)
    return terminal if terminal.is_terminal and not wide else _Terminal(width=_WIDE, soft_wrap=True, markup=False)


def _plain(text: str) -> str:
    return "\n".join(printable(line, most=10_000) for line in text.split("\n"))


def table(title: str, caption: str | None = None) -> Table:
    """A table that has no columns yet."""
    return Table(
        title=title, title_justify="left", caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )


def print_table(out: Console, shown: Table, spare: Sequence[int] = ()) -> None:
    """Print a table without cutting or breaking any number.

    `spare`: the columns to drop, in this order, if the terminal is too narrow; a caption names those that were dropped.
    """
    dropped: list[int] = []
    narrower = _without(shown, dropped)
    while (
        len(dropped) < len(spare) and out.measure(narrower, options=out.options.update(width=_WIDE)).minimum > out.width
    ):
        dropped.append(spare[len(dropped)])
        narrower = _without(shown, dropped)
    if dropped:
        names = ", ".join(" ".join(str(shown.columns[index].header).split()) for index in sorted(dropped))
        narrower.caption = f"{shown.caption or ''}\nnot shown at this width: {names} (--wide)".strip()
    out.print(narrower)


def _without(shown: Table, dropped: Sequence[int]) -> Table:
    """The same table without some columns; right-aligned columns of numbers are never broken."""
    kept: list[Column] = [column for index, column in enumerate(shown.columns) if index not in dropped]
    narrower = table(_plain(str(shown.title)), None if shown.caption is None else str(shown.caption))
    for column in kept:
        whole = column.no_wrap or column.justify == "right"
        width = max(
            cell_len(line) for cell in (column.header, *column.cells) for line in str(cell).splitlines() or [""]
        )
        narrower.add_column(
            column.header, justify=column.justify, no_wrap=whole, min_width=width if whole else column.min_width
        )
    for row, cells in zip(shown.rows, zip(*(column.cells for column in kept))):
        narrower.add_row(*(_plain(str(cell)) for cell in cells), style=row.style, end_section=row.end_section)
    return narrower
