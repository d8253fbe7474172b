"""The parts of a report: sections of text, tables and figures, as HTML, Markdown, CSV and in the
terminal."""

from __future__ import annotations

import csv
import html
import io
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import rich.console
import rich.table
from markupsafe import Markup, escape
from rich import box

from probing.report import figures
from probing.report.kinds import CODE, COST, DIFFERENCE, EFFECT, LINK, SCORE, TEXT, Kind, P
from probing.report.pages import SHOWN
from probing.runs.clusters import clusters_in_words, over_repositories
from probing.stats.intervals import ALPHA, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


from rich.cells import cell_len
from rich.console import Console

from codesyntax_dataset.safe_files import escaped, printable

Cell = Any
"""A text, a number, None, or a list or tuple: a score in percent is [value, low, high] (low and
high None if it has no interval) or the value alone; a difference is [value, low, high, p]; an
effect is the same, and may have marks after p; the score of a chosen baseline is [value, which]; a
name is [name, marks]."""

SIGNIFICANT = f"Green or orange: p up to {ALPHA}."
"""The meaning of the colours of a table, in short: for the first screen."""

COLOURED = (
    f"{SIGNIFICANT} Intervals are not corrected for several tests, so one may exclude 0 although "
    "the corrected p does not separate the difference from 0."
)
"""The same in full, for the notes of tables."""


OVER_REPOSITORIES = "; intervals and p over repositories"
"""Ends the title of every table with intervals or tests that are not over functions."""


def separated(p: float) -> bool:
    """True if a test separates a difference from 0."""
    return p <= ALPHA


def verdict(cell: Cell) -> str:
    """What the test of a difference, [value, low, high, p, ...], says; empty if nothing was
    tested."""
    if cell is None or _missing(cell[3]):
        return ""
    return "not significant" if not separated(cell[3]) else "higher" if cell[0] > 0 else "lower"


def bounded(estimate: Estimate) -> list[Cell]:
    """The cell of a score or cost: the value with its interval."""
    return [estimate.value, estimate.low, estimate.high]


def tested(estimate: Estimate, *marks: str) -> list[Cell]:
    """The cell of a difference or effect: the value with its interval and p."""
    return [*bounded(estimate), estimate.p, *marks]


AS_FILLED = "as filled"
"""The mark of an effect that a filler without any model has, too: it has no colour."""

_CODE_WIDTH = 40
"""The least width of code in a terminal."""

_IN_TERMINAL = {DIFFERENCE: 3, EFFECT: 3, COST: 2}
"""Kinds that take several columns in a terminal: the value, its interval, and p."""

_TYPED = str.maketrans({"−": "-", "–": "-"})


class Column(NamedTuple):
    """`name`: may have a line break, for the terminal. `group`: a heading over neighbouring columns
    that share it, such as a protocol. `spare`: the rank in which a narrow terminal drops the
    column, from 1, or 0 to keep it; one for each column that the terminal shows (`_IN_TERMINAL`);
    empty to keep all. `of`: computes the cell of a record; by default, the cell is the attribute
    with the name of the column."""

    name: str
    kind: Kind = TEXT
    group: str = ""
    spare: tuple[int, ...] = ()
    of: Callable[..., Cell] | None = None

    @classmethod
    def each(cls, kind: Kind, *names: str, group: str = "") -> list[Column]:
        """Neighbouring columns of one kind, in one group."""
        return [cls(name, kind, group) for name in names]

    def cell(self, record: Any) -> Cell:
        """The cell of a record in this column; the parts of a plain tuple are separate arguments of
        `of`."""
        of = self.of or attrgetter(self.name.replace(" ", "_"))
        return of(*record) if type(record) is tuple else of(record)

    @property
    def full_name(self) -> str:
        """In one line, with the group."""
        name = self.name.replace("-\n", "-").replace("\n", " ")
        return f"{self.group}: {name}" if self.group else name


# --------------------------------------------------------------------------------------------------------- the terminal

WIDE = 10_000
"""Characters, wider than any table: in a pipe, tables are as wide as their rows."""


class Terminal(Console):
    """Prints texts as they are: no mark-up, and nothing that a terminal would obey."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(
            *(plain(part) if isinstance(part, str) else part for part in objects), **options
        )


def console(wide: bool = False) -> Terminal:
    """The console to print to. In a pipe or a file, or with `wide`, tables are as wide as their
    rows."""
    terminal = Terminal()
    return terminal if terminal.is_terminal and not wide else Terminal(width=WIDE, soft_wrap=True)


def print_parts(parts: Iterable[object], wide: bool = False) -> None:
    """Print texts and tables; what has no spaces, such as a signature, stays whole, so that it can
    be copied."""
    out = console(wide)
    for part in parts:
        out.print(part, soft_wrap=out.soft_wrap or (isinstance(part, str) and " " not in part))


def plain(text: str) -> str:
    """A text without the characters that a terminal would obey."""
    return "\n".join(printable(line, most=10_000) for line in text.split("\n"))


def printed_width(texts: Iterable[str]) -> int:
    """The columns of a terminal that the longest line of some texts takes."""
    return max((cell_len(line) for text in texts for line in text.splitlines()), default=0)


# ----------------------------------------------------------------------------------------- tables, figures and sections


@dataclass
class Table:
    """Columns and rows. `name`: of its CSV file, without extension. Rows and totals are given as
    lists of cells, or as records, from which the columns compute their cells.

    The first `filters` columns become filters on the page, initially at their first values; CSV has
    all rows. `notes` are shown below the table. `within`: the file that has its rows instead of a
    CSV file of its own, or none if empty. `totals`: rows under a line.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: list[Any]
    notes: str = ""
    filters: int = 0
    within: str | None = None
    totals: Sequence[Any] = ()

    def __post_init__(self) -> None:
        has_intervals = any(len(column.kind.parts) > 2 for column in self.columns)
        if over_repositories() and (has_intervals or "p:" in self.notes):
            self.title += OVER_REPOSITORIES
        self.rows, self.totals = (
            [
                row if isinstance(row, list) else [column.cell(row) for column in self.columns]
                for row in rows
            ]
            for rows in (self.rows, self.totals)
        )

    @property
    def file(self) -> str:
        """The CSV file with its rows, relative to the page."""
        return f"tables/{self.name}.csv" if self.within is None else self.within

    @property
    def shown(self) -> Sequence[Column]:
        return self.columns[self.filters :]

    @property
    def bodies(self) -> dict[tuple[str, ...], list[list[Cell]]]:
        """Values of the filters -> the rows shown with them."""
        bodies: dict[tuple[str, ...], list[list[Cell]]] = {}
        for row in self.rows:
            bodies.setdefault(tuple(map(str, row[: self.filters])), []).append(row[self.filters :])
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
        keys = [
            column.group or number for number, column in enumerate(self.shown)
        ]  # no group: a heading of its own
        spans = [
            (key if isinstance(key, str) else "", len(list(same))) for key, same in groupby(keys)
        ]
        return spans if any(name for name, _ in spans) else []

    def to_csv(self) -> str:
        """All rows, full precision; a score with an interval takes three columns."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(
            [column.full_name + part for column in self.columns for part in column.kind.parts]
        )
        for row in [*self.rows, *self.totals]:
            written: list[Any] = []
            for column, cell in zip(self.columns, row):
                values = list(cell) if isinstance(cell, (list, tuple)) else [cell]
                written += values + [None] * (len(column.kind.parts) - len(values))
            writer.writerow([in_csv(value) for value in written])
        return text.getvalue()

    @property
    def initial(self) -> list[list[Cell]]:
        """The rows that the page shows initially, and the totals."""
        return [
            *next(iter(self.bodies.values()), []),
            *(row[self.filters :] for row in self.totals),
        ]

    @property
    def initial_title(self) -> str:
        """The title, with the initial values of the filters."""
        first = next(iter(self.bodies), ())
        chosen = ", ".join(
            f"{column.full_name} {value}" for column, value in zip(self.columns, first)
        )
        return self.title + (f" ({chosen}; the CSV file has all)" if chosen else "")

    def to_markdown(self) -> str:
        """The initial rows."""
        lines = [f"**{_escape(self.title)}**" + self.initial_title.removeprefix(self.title), ""]
        lines.append("| " + " | ".join(_escape(column.full_name) for column in self.shown) + " |")
        lines.append(
            "| "
            + " | ".join("---:" if column.kind.numeric else "---" for column in self.shown)
            + " |"
        )
        lines += [
            "| "
            + " | ".join(_in_markdown(cell, column.kind) for cell, column in zip(row, self.shown))
            + " |"
            for row in self.initial
        ]
        lines += ["", f"CSV: [{Path(self.file).name}]({self.file})"] if self.file else []
        return "\n".join(lines + (["", _prose(self.notes)] if self.notes else [])) + "\n"

    def to_latex(self) -> str:
        """The initial rows as a tabular of booktabs."""
        alignment = "".join("r" if column.kind.numeric else "l" for column in self.shown)
        lines = [
            f"% {_escape(self.initial_title)}",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
        ]
        if self.groups:
            ends = list(accumulate(span for _, span in self.groups))
            cells = [
                rf"\multicolumn{{{span}}}{{c}}{{{latex_escaped(name)}}}"
                for name, span in self.groups
            ]
            rules = [
                rf"\cmidrule(lr){{{end - span + 1}-{end}}}"
                for (name, span), end in zip(self.groups, ends)
                if name
            ]
            lines += [_line(cells), "".join(rules)]
        lines += [
            _line(latex_escaped(column.name.replace("\n", " ")) for column in self.shown),
            r"\midrule",
        ]
        rows = [
            _line(_in_latex(cell, column.kind) for cell, column in zip(row, self.shown))
            for row in self.initial
        ]
        if self.totals:
            rows.insert(-len(self.totals), r"\midrule")
        return "\n".join([*lines, *rows, r"\bottomrule", r"\end{tabular}", ""])

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        """Drops spare columns, rather than to cut or break a number, and names them."""
        columns = [
            printed
            for number, column in enumerate(self.shown)
            for printed in self._printed(number, column)
        ]
        spare = sorted(
            (printed for printed in columns if printed.spare), key=lambda printed: -printed.spare
        )
        drawn = self._drawn(columns, [])
        dropped: list[_Printed] = []
        while (
            spare
            and console.measure(drawn, options=options.update(width=WIDE)).minimum
            > options.max_width
        ):
            dropped.append(spare.pop())
            drawn = self._drawn(
                [printed for printed in columns if printed not in dropped],
                [printed.full_name for printed in columns if printed in dropped],
            )
        yield drawn

    def _printed(self, number: int, column: Column) -> list[_Printed]:
        """A column as the terminal shows it, where a difference is three: its value, interval and
        p."""
        cells, kind = [row[number] for row in self.initial], column.kind
        names = [column.name, "95 % interval", "p"][: _IN_TERMINAL.get(kind, 1)]
        texts = [_in_terminal(cell, kind) for cell in cells]
        ranks = column.spare or (0,) * len(names)
        return [
            _Printed(column, name, [text[part] for text in texts], rank)
            for part, (name, rank) in enumerate(zip(names, ranks, strict=True))
        ]

    def _drawn(self, columns: Sequence[_Printed], dropped: Sequence[str]) -> rich.table.Table:
        left_out = f"not shown at this width: {', '.join(dropped)} (--wide)" if dropped else ""
        drawn = rich.table.Table(
            title=plain(self.initial_title),
            title_justify="left",
            caption=plain(
                "\n".join(filter(None, [self.notes.replace(COLOURED, "").rstrip(), left_out]))
            )
            or None,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        group = ""
        for column, name, cells, _ in columns:
            heading = plain(
                f"{column.group if column.group != group else ''}\n{name}" if column.group else name
            )
            group, kind = column.group, column.kind
            whole = kind.numeric or kind.look == "r"  # no number or name is cut or broken
            drawn.add_column(
                heading,
                justify="right" if kind.numeric else "left",
                no_wrap=whole,
                min_width=printed_width([heading, *cells])
                if whole
                else _CODE_WIDTH
                if kind is CODE
                else None,
            )
        names = [str(row[0]) for row in self.initial]
        nested = any(name.startswith(" ") for name in names)
        body = len(names) - len(self.totals)
        for number, name in enumerate(names):
            bold = (nested or number >= body) and not name.startswith(" ")
            drawn.add_row(
                *(printed.cells[number] for printed in columns),
                style="bold" if bold else "",
                end_section=bool(self.totals) and number == body - 1,
            )
        return drawn


class _Printed(NamedTuple):
    """A column of the terminal: one that a table shows, or a part of it."""

    column: Column
    name: str
    cells: list[str]
    spare: int

    @property
    def full_name(self) -> str:
        return self.column._replace(name=self.name).full_name


def _in_terminal(cell: Cell, kind: Kind) -> list[str]:
    """A cell, or its parts, in signs that every terminal has."""
    number = _IN_TERMINAL.get(kind, 1)
    if isinstance(cell, (list, tuple)) and number > 1:
        value, interval, *_ = _lines(cell, kind, " to ")
        p = ["-" if _missing(p) else f"{p:.4f}" for p in cell[3 : number + 1]]
        texts = [value, interval, *p]
    else:
        texts = ["" if cell == "" else in_text(cell, kind)] * number
    return [plain(text.translate(_TYPED)) for text in texts]


@dataclass
class Figure:
    """A drawing, made when it is needed. `name`: of its files; `alt`: its text alternative;
    `table`: the table that has its numbers; `draw`: as in `figures`, in their style."""

    name: str
    title: str
    alt: str
    table: str
    draw: Callable[[], MatplotlibFigure]

    def __post_init__(self) -> None:
        if over_repositories() and "interval" in self.title:
            self.title += f" Intervals and p are over {clusters_in_words()}."

    @cached_property
    def svg(self) -> str:
        """The drawing for pages and files, drawn once."""
        return figures.drawn(self.draw)

    def to_latex(self) -> str:
        return (
            rf"\fit{{\includegraphics{{figures/{self.name}.pdf}}}}"
            "\n" + _prose_in_latex(self.title) + "\n"
        )

    def to_markdown(self) -> str:
        image = f"![{_escape(self.alt)}](figures/{self.name}.svg)"
        return (
            f"{image}\n\n*{_prose(self.title)}* CSV: [{self.table}.csv](tables/{self.table}.csv)\n"
        )


Part = str | Table | Figure
"""A part of a section: a paragraph, a table or a figure."""


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

    @property
    def inside(self) -> str:
        """The contents in words: the headings below this one, and the number of figures and
        tables."""
        kinds = [type(part) for part in self.all_parts(drawn=False)]
        counts = {"figure": kinds.count(Figure), "table": kinds.count(Table)}
        contents = [", ".join(section.title for section in self.sections)]
        contents += [
            f"{number} {noun}{'s' * (number > 1)}" for noun, number in counts.items() if number
        ]
        return "; ".join(filter(None, contents))

    def to_markdown(self, level: int = 2) -> str:
        lines = [f"{'#' * level} {_escape(self.title)}\n"]
        lines += [
            _prose(part) + "\n" if isinstance(part, str) else part.to_markdown()
            for part in self.parts
        ]
        return "\n".join(lines + [section.to_markdown(level + 1) for section in self.sections])

    def to_latex(self, level: str = "") -> str:
        """Headings, texts and figures, and the tables by their files."""
        lines = [rf"\{level}section*{{{latex_escaped(self.title)}}}"]
        for part in self.parts:
            if isinstance(part, Table):
                lines.append(rf"\textbf{{{latex_escaped(part.initial_title)}}}")
                lines += [rf"\fit{{\input{{tables/{part.name}.tex}}}}", _prose_in_latex(part.notes)]
            else:
                lines.append(_prose_in_latex(part) if isinstance(part, str) else part.to_latex())
            lines.append("")
        return "\n".join(lines + [section.to_latex("sub" + level) for section in self.sections])

    def all_parts(self, drawn: bool = True) -> list[Part]:
        """Those of the sub-sections, too; with the tables that the page does not show if
        `drawn`."""
        below = (part for section in self.sections for part in section.all_parts(drawn))
        return [*self.parts, *(self.drawn if drawn else ()), *below]


def prose_in_html(text: str) -> Markup:
    """A text as HTML, with all text escaped; what stands between backticks is code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if code else part for part, code in _spans(text)
    )


def _prose(text: str) -> str:
    """The same as Markdown."""
    return "".join(f"`{part}`" if code else _escape(part) for part, code in _spans(text))


def _prose_in_latex(text: str) -> str:
    """The same in LaTeX."""
    pieces = [(latex_escaped(piece), code) for piece, code in _spans(text)]
    return "".join(rf"\texttt{{{piece}}}" if code else piece for piece, code in pieces)


def _spans(text: str) -> list[tuple[str, bool]]:
    """The pieces of a text that are code and those that are not; a backtick without another is
    text."""
    pieces = re.split(r"`([^`\n]+)`", text)
    return [(piece, bool(number % 2)) for number, piece in enumerate(pieces)]


def in_text(cell: Cell, kind: Kind) -> str:
    """A cell in plain text."""
    value, *below = _lines(cell, kind, ", ")
    return f"{value} [{'; '.join(below)}]" if below else value


def _in_markdown(cell: Cell, kind: Kind) -> str:
    if kind is LINK and not isinstance(cell, str):
        text, page = cell
        return f"[{_escape(text)}]({page})"
    return _escape(in_text(cell, kind))


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _in_latex(cell: Cell, kind: Kind) -> str:
    if cell == "":
        return ""
    value, *below = map(latex_escaped, _lines(cell, kind, " to "))
    text = rf"\texttt{{{value}}}" if kind is CODE else value
    return rf"{text} {{\scriptsize ({'; '.join(below)})}}" if below and kind is not LINK else text


def row_in_html(row: Sequence[Cell], columns: Sequence[Column]) -> Markup:
    """The cells of a row: pages have so many that a loop of a template would take most of the
    time."""
    return Markup(
        "".join(in_html(cell, column.kind) for cell, column in zip(row, columns, strict=True))
    )


def in_html(cell: Cell, kind: Kind) -> str:
    """A cell as HTML, with all text escaped and optional end tags omitted.

    A difference is coloured by its sign if its p separates it from 0.
    """
    if kind is LINK and not isinstance(cell, str):
        text, page = cell
        return f'<td class="{kind.look}"><a href="{escape(page)}">{escape(text)}</a>'
    value, *below = map(escape, _lines(cell, kind, " to "))
    look = kind.look
    if (
        kind in (DIFFERENCE, EFFECT)
        and isinstance(cell, (list, tuple))
        and cell[3] is not None
        and separated(cell[3])
    ):
        look += "" if AS_FILLED in cell[4:] else " up" if cell[0] > 0 else " down"
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


def _lines(cell: Cell, kind: Kind, between: str) -> list[str]:
    """The main value of a cell, and what follows or stands below it."""
    if not isinstance(cell, (list, tuple)):
        return [_shown(cell, kind)]
    value, *rest = cell
    if kind not in (SCORE, DIFFERENCE, EFFECT, COST):
        return [_shown(value, kind), *(_shown(part, kind) for part in rest if not _missing(part))]
    low, high, *more = rest
    interval = (
        _shown(low, kind) if _missing(low) else f"{_shown(low, kind)}{between}{_shown(high, kind)}"
    )
    p_and_marks = (part if isinstance(part, str) else f"p {_shown(part, P)}" for part in more)
    return [_shown(value, kind), interval, *p_and_marks]


def _shown(cell: Cell, kind: Kind) -> str:
    return "–" if _missing(cell) else cell if isinstance(cell, str) else kind.show(cell)


def _missing(cell: Cell) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "Δ": r"$\Delta$",
    "→": r"$\to$",
    "–": "--",
    "…": r"\ldots{}",
    "«": r"\guillemotleft{}",
    "»": r"\guillemotright{}",
    "\n": r" \textbar{} ",
}


def latex_escaped(text: str) -> str:
    """A text on one line, whatever characters it has; those that pdfLaTeX lacks are named by their
    code points."""
    return "".join(
        _character(character) for character in re.sub(r"[ \t]*[\r\n]+[ \t]*", "\n", text)
    )


def _character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    if " " <= character <= "~" or (
        character <= "\u017f" and unicodedata.category(character)[0] == "L"
    ):
        return character
    return f"[U+{ord(character):04X}]"


def _escape(text: str) -> str:
    """Escape text for one cell of a Markdown table: no mark-up, no line break."""
    text = "".join(
        "\\" + character if character in "\\`*_[]|#" else character for character in text
    )
    return re.sub(
        r"\r\n|[\r\n\v\f\x85\u2028\u2029]", " ⏎ ", html.escape(text, quote=False)
    ).translate(SHOWN)
