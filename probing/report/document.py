"""The parts of a report: sections of text, tables and figures, as HTML, Markdown, CSV and in the
terminal."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import rich.console
import rich.table
from markupsafe import escape
from rich import box

from probing.report.kinds import CHOSEN, CODE, LINK, TEXT, Kind, P
from probing.report.words import AS_FILLED, COLOURED, readable
from probing.runs.clusters import over_in_words
from probing.stats.intervals import ALPHA, FEW_CLUSTERS, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


from rich.cells import cell_len
from rich.console import Console

from codesyntax_dataset.safe_files import escaped, plain

Cell = Any
"""A text, a number, None, or a list or tuple: a score in percent is [value, low, high] (low and
high None if it has no interval) or the value alone; a difference is [value, low, high, p]; an
effect is the same, and may have marks after p; the score of a chosen baseline is [value, which]; a
name is [name, marks]."""

RowRecord = dict[str, Any]
"""A row of a table by names: what its columns make their cells of."""


def is_separated(p: float) -> bool:
    """True if a test separates a difference from 0."""
    return p <= ALPHA


def verdict(cell: Cell) -> str:
    """What the test of a difference, [value, low, high, p, ...], says; empty if nothing was
    tested."""
    if not isinstance(cell, (list, tuple)) or _missing(cell[3]):
        return ""
    return "not significant" if not is_separated(cell[3]) else "higher" if cell[0] > 0 else "lower"


def in_cell(value: Any, kind: Kind) -> Cell:
    """The cell of a number of a kind: an estimate alone, with its interval, with p, or with what
    was chosen. A value that has no interval in however many functions stands alone."""
    if not hasattr(value, "low"):
        return value
    if kind is CHOSEN:
        return [value.value, value.chosen]
    numbers = list(value[: min(len(kind.parts), 4)])
    exact = len(numbers) == 3 and math.isnan(value.low) and not 0 < value.n < FEW_CLUSTERS
    return value.value if exact or len(numbers) == 1 else numbers


def tested_cell(estimate: Estimate, *marks: str) -> list[Cell]:
    """The cell of a difference or effect: the value with its interval and p."""
    return [*estimate[:4], *marks]


_TYPED = str.maketrans({"−": "-", "–": "-"})


class Column(NamedTuple):
    """`name`: may have a line break, for the terminal. `group`: a heading over neighbouring columns
    that share it, such as a protocol. `spare`: a terminal too narrow for all columns leaves it out.
    `of`: what its cells are of a record."""

    name: str
    kind: Kind = TEXT
    group: str = ""
    spare: bool = False
    of: Callable[[Any], Any] = str

    @property
    def full_name(self) -> str:
        """In one line, with the group."""
        name = self.name.replace("-\n", "-").replace("\n", " ")
        return f"{self.group}: {name}" if self.group else name


# ------------------------------------------------------------------------------------- the terminal

WIDE = 10_000
"""Characters, wider than any table: in a pipe, tables are as wide as their rows."""


class Terminal(Console):
    """Prints texts as they are: no mark-up, and nothing that a terminal would obey."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        shown = (plain(part) if isinstance(part, str) else part for part in objects)
        super().print(*shown, **options)


def print_parts(parts: Iterable[object], wide: bool = False) -> None:
    """Print texts and tables; what has no spaces, such as a signature, stays whole, so that it can
    be copied. In a pipe or a file, or with `wide`, tables are as wide as their rows."""
    out = Terminal()
    if wide or not out.is_terminal:
        out = Terminal(width=WIDE, soft_wrap=True)
    for part in parts:
        if not isinstance(part, Figure):  # which stands in reports
            out.print(part, soft_wrap=out.soft_wrap or (isinstance(part, str) and " " not in part))


FIRST_ROWS = 10
"""The most rows of a table on the first screen of a command."""


def first_screen(parts: Iterable[Part]) -> list[Part]:
    """The same with tables of at most FIRST_ROWS rows, those with the largest differences, and what
    shows the others."""
    shown: list[Part] = []
    for part in parts:
        if not isinstance(part, Table) or part.filters or len(part.rows) <= FIRST_ROWS:
            shown.append(part)
            continue
        rows = part.largest(FIRST_ROWS)
        shown.append(replace(part, rows=rows))
        shown.append(
            f"{FIRST_ROWS} of {len(part.rows)} rows: --wide prints all, and `codesyntax score FOLDER --csv FILE` "
            "writes all that --output FOLDER keeps"
        )
    return shown


# --------------------------------------------------------------------- tables, figures and sections


@dataclass
class Table:
    """Columns and rows. `name`: of its CSV file, without extension. Rows and totals are given as
    lists of cells, or as records, from which the columns compute their cells.

    The first `filters` columns become filters on the page, initially at their first values; CSV has
    all rows. `notes` are shown below the table. `filed`: whether it has a CSV
    file. `totals`: rows under a line.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: list[Any]
    notes: str = ""
    filters: int = 0
    filed: bool = True
    totals: Sequence[Any] = ()

    def __post_init__(self) -> None:
        has_intervals = any(len(column.kind.parts) > 2 for column in self.columns)
        if has_intervals or "p:" in self.notes:
            self.title += over_in_words()
        self.rows = list(map(self._cells_of, self.rows))
        self.totals = list(map(self._cells_of, self.totals))

    def _cells_of(self, row: Any) -> list[Cell]:
        values = row if isinstance(row, list) else [column.of(row) for column in self.columns]
        return [
            in_cell(value, column.kind) for value, column in zip(values, self.columns, strict=True)
        ]

    @property
    def file(self) -> str:
        """The CSV file with its rows, relative to the folder; empty without one."""
        return f"tables/{self.name}.csv" if self.filed else ""

    @property
    def shown(self) -> Sequence[Column]:
        return self.columns[self.filters :]

    @property
    def kinds(self) -> list[Kind]:
        """Those of the shown columns."""
        return [column.kind for column in self.shown]

    @property
    def bodies(self) -> dict[tuple[str, ...], list[list[Cell]]]:
        """Values of the filters -> the rows shown with them."""
        bodies = defaultdict(list)
        for row in self.rows:
            chosen = tuple(map(str, row[: self.filters]))
            bodies[chosen].append(row[self.filters :])
        return bodies

    @property
    def choices(self) -> dict[str, list[str]]:
        """Filter -> its values."""
        return {
            column.name: list(dict.fromkeys(str(row[number]) for row in self.rows))
            for number, column in enumerate(self.columns[: self.filters])
        }

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings over the columns, each with its number of columns; empty if no column has
        one."""
        spans: list[tuple[str, int]] = []
        for column in self.shown:
            if spans and column.group and column.group == spans[-1][0]:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans if any(name for name, _ in spans) else []

    def to_csv(self) -> str:
        """All rows, full precision; a score with an interval takes three columns."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(
            [column.full_name + part for column in self.columns for part in column.kind.parts]
        )
        for row in [*self.rows, *self.totals]:
            written = []
            for column, cell in zip(self.columns, row):
                values = cell if isinstance(cell, (list, tuple)) else [cell]
                written += [*values, *[None] * (len(column.kind.parts) - len(values))]
            writer.writerow(map(in_csv, written))
        return text.getvalue()

    def to_latex(self) -> str:
        """The rows that the page shows initially, as a table of booktabs."""
        import pandas

        heading = [(_latin(column.group), _latin(column.name)) for column in self.shown]
        rows = [[_latin(_typed(*cell)) for cell in zip(row, self.kinds)] for row in self.initial]
        frame = pandas.DataFrame(rows, columns=pandas.MultiIndex.from_tuples(heading))
        if not self.groups:
            frame = frame.droplevel(0, axis="columns")
        aligned = "".join("r" if kind.numeric else "l" for kind in self.kinds)
        return str(
            frame.to_latex(index=False, escape=True, column_format=aligned, multicolumn_format="c")
        )

    @property
    def initial(self) -> list[list[Cell]]:
        """The rows that the page shows initially, and the totals."""
        first, *_ = *self.bodies.values(), []
        return [*first, *(row[self.filters :] for row in self.totals)]

    def largest(self, most: int) -> list[Any]:
        """So many rows, in their order: those with the largest differences, or the first of a table
        without any."""
        places = (
            number for number, column in enumerate(self.columns) if ", p" in column.kind.parts
        )
        tested = next(places, None)
        if tested is None:
            return self.rows[:most]

        def size(row: list[Cell]) -> float:
            cell = row[tested]
            value = cell[0] if isinstance(cell, (list, tuple)) else cell
            return -abs(value) if value is not None and not _missing(value) else 0

        chosen = {id(row) for row in sorted(self.rows, key=size)[:most]}
        return [row for row in self.rows if id(row) in chosen]

    @property
    def initial_title(self) -> str:
        """The title, with the initial values of the filters."""
        return self._titled("; the CSV file has all")

    def _titled(self, where: str) -> str:
        first = next(iter(self.bodies), ())
        chosen = ", ".join(
            f"{column.full_name} {value}" for column, value in zip(self.columns, first)
        )
        return self.title + (f" ({chosen}{where})" if chosen else "")

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        """Leaves out all spare columns, rather than to cut or break a number, and names them."""
        drawn = self._drawn([])
        if console.measure(drawn, options=options.update(width=WIDE)).minimum > options.max_width:
            drawn = self._drawn([column for column in self.shown if column.spare])
        yield drawn

    def _drawn(self, dropped: Sequence[Column]) -> rich.table.Table:
        below = [self.notes.replace(COLOURED, "").rstrip()]
        if dropped:
            names = ", ".join(column.full_name for column in dropped)
            below.append(f"not shown at this width: {names} (--wide)")
        drawn = rich.table.Table(
            title=plain(self._titled("")),  # no file is beside it
            title_justify="left",
            caption=plain("\n".join(filter(None, below))) or None,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        group = ""
        cells = []
        for number, column in enumerate(self.shown):
            if column in dropped:
                continue
            name = column.name
            kind = column.kind
            if column.group:
                name = f"{column.group if column.group != group else ''}\n{name}"
            group = column.group
            heading = plain(name)
            texts = [_typed(row[number], kind) for row in self.initial]
            lines = "\n".join([heading, *texts]).split("\n")
            whole = kind.look in "nr"  # no number or name is cut or broken
            drawn.add_column(
                heading,
                justify="right" if kind.numeric else "left",
                no_wrap=whole,
                width=max(map(cell_len, lines)) if whole else None,
                min_width=40 if kind is CODE else None,
            )
            cells.append(texts)
        for number, row in enumerate(zip(*cells), 1 + len(self.totals) - len(self.initial)):
            style = "bold" if number > 0 else ""
            drawn.add_row(*row, style=style, end_section=bool(self.totals) and number == 0)
        return drawn


def _latin(text: str) -> str:
    """A text on one line; characters that pdfLaTeX lacks are named by their code points."""
    characters = " ".join(text.replace("Δ", "Delta").split())
    return "".join(
        character if character <= "ÿ" or character in "→…" else f"[U+{ord(character):04X}]"
        for character in characters
    )


def _typed(cell: Cell, kind: Kind) -> str:
    """A cell in signs that every terminal has."""
    return "" if cell == "" else plain(in_text(cell, kind).translate(_TYPED))


@dataclass
class Figure:
    """A drawing, made when it is needed. `name`: of its files; `alt`: its text alternative;
    `table`: the table that has its numbers; `draw`: as in `figures`, in their style; `on_page`:
    whether pages show it, or it is a file of other formats only."""

    name: str
    title: str
    alt: str
    table: str
    draw: Callable[[], MatplotlibFigure]
    on_page: bool = True

    def __post_init__(self) -> None:
        if "interval" in self.title:
            self.title = self.title.removesuffix(".") + over_in_words() + "."

    @cached_property
    def svg(self) -> str:
        """The drawing for pages and files, drawn once."""
        from probing.report import figures  # what prints tables draws nothing

        return figures.svg_of(self.draw)


class Looked(Protocol):
    """A model to look at (`probing.report.atlas`); in Markdown, its table."""

    @property
    def table(self) -> Table: ...

    @property
    def map(self) -> Sequence[Sequence[Any]]: ...


Part = str | Table | Figure | Looked
"""A part of a section: a paragraph, a table, a figure, or a model to look at."""


@dataclass
class Section:
    """Texts, tables and figures under a heading, and its sub-sections. `id`: its anchor on the
    page.

    `drawn`: the numbers of figures, written as CSV only. `folded`: the page shows the heading, and
    the rest on a click.
    """

    id: str
    title: str
    parts: Sequence[Part] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    drawn: list[Table] = field(default_factory=list)
    folded: bool = False

    def all_parts(self) -> list[Part]:
        """Those of the sub-sections, too, with the tables that the page does not show."""
        below = (part for section in self.sections for part in section.all_parts())
        return [*self.parts, *self.drawn, *below]


def prose(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    """A text in which what stands between backticks is code; a backtick without another is text."""
    pieces = re.split(r"`([^`\n]+)`", text)
    return "".join(write(piece) for write, piece in zip(cycle((plain, code)), pieces))


def in_text(cell: Cell, kind: Kind) -> str:
    """A cell in plain text."""
    value, *below = _cell_lines(cell, kind, ", ")
    return f"{value} [{'; '.join(below)}]" if below else value


def in_markdown(cell: Cell, kind: Kind) -> str:
    if kind is LINK and not isinstance(cell, str):
        text, page = cell
        return f"[{markdown_escaped(text)}]({page})"
    return markdown_escaped(in_text(cell, kind))


def in_html(cell: Cell, kind: Kind) -> str:
    """A cell as HTML, with all text escaped and optional end tags omitted.

    A difference is coloured by its sign if its p separates it from 0.
    """
    if kind is LINK and not isinstance(cell, str):
        text, page = cell
        return f'<td class="{kind.look}"><a href="{escape(page)}">{escape(text)}</a>'
    value, *below = map(escape, _cell_lines(cell, kind, " to "))
    look = kind.look
    if ", p" in kind.parts and verdict(cell) in ("higher", "lower") and AS_FILLED not in cell[4:]:
        look += " up" if cell[0] > 0 else " down"
    small = "".join(f"<small>{line}</small>" for line in below)
    return f'<td class="{look}">{value}{small}'  # Markup.format takes five times as long


def in_csv(value: Any) -> Any:
    """A value for a cell of CSV: without control characters, and with an apostrophe before a text
    that a spreadsheet would run as a formula."""
    if _missing(value):
        return ""
    if not isinstance(value, str):
        return value
    text = "\n".join(map(escaped, value.split("\n")))  # code has lines
    return f"'{text}" if text[0] in "=+-@" and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cell_lines(cell: Cell, kind: Kind, between: str) -> list[str]:
    """The main value of a cell, and what follows or stands below it."""
    if not isinstance(cell, (list, tuple)):
        return [_shown_cell(cell, kind)]
    value, *rest = cell
    if len(kind.parts) < 3:
        known = [value, *(part for part in rest if not _missing(part))]
        return [_shown_cell(part, kind) for part in known]
    low, high, *more = rest
    interval = between.join(
        _shown_cell(end, kind) for end in ([low] if _missing(low) else [low, high])
    )
    p_and_marks = (part if isinstance(part, str) else f"p {_shown_cell(part, P)}" for part in more)
    return [_shown_cell(value, kind), interval, *p_and_marks]


def _shown_cell(cell: Cell, kind: Kind) -> str:
    return "–" if _missing(cell) else cell if isinstance(cell, str) else kind.show(cell)


def _missing(cell: Cell) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def markdown_escaped(text: str) -> str:
    """Escape text for one cell of a Markdown table: no mark-up, no line break."""
    text = html.escape(re.sub(r"([\\`*_\[\]|#])", r"\\\1", text), quote=False)
    return readable(re.sub(r"\r\n|[\r\n\v\f\x85\u2028\u2029]", " ⏎ ", text))
