"""The folder of a report: one page, the same in Markdown, and its tables and figures as files."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path

import jinja2

from codesyntax_dataset.atomic import os_errors_as_ledger_errors, replace, temporary_folder
from codesyntax_dataset.owned_folder import check_owned
from probing.report.document import (
    Figure,
    Part,
    Section,
    Table,
    latex_escaped,
    prose_in_html,
    row_in_html,
)
from probing.report.figures import as_file, for_page, share_styles
from probing.report.pages import environment, fill

FIGURE_FORMATS = {"latex": "pdf", "png": "png"}
"""Format of a report -> that of the figures which it adds."""

MODELS = "models"
"""The folder of the pages of models."""

_OURS = {
    "tables": {".csv", ".tex"},
    "figures": {".svg", ".png", ".pdf"},
    "entries": {".parquet", ".json"},
    MODELS: {".html"},
}
"""The folders of a report, and the files in them."""

_LATEX_FILES = ("report.tex", "report.pdf", "report.aux", "report.log")
"""The document, and what LaTeX makes of it."""

_DOCUMENT = r"""%% %s
\documentclass{article}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,graphicx}
\newsavebox{\fitting}
\newcommand{\fit}[1]{\par\noindent\sbox{\fitting}{#1}%%
  \ifdim\wd\fitting>\linewidth\sbox{\fitting}{\resizebox{\linewidth}{!}{\usebox{\fitting}}}\fi
  \ifdim\ht\fitting>.4\textheight\sbox{\fitting}{\raisebox{\depth}{\usebox{\fitting}}}\fi
  \ifdim\ht\fitting>.8\textheight\resizebox{!}{.8\textheight}{\usebox{\fitting}}\else\usebox{\fitting}\fi\par}
\setlength{\parindent}{0pt}
\setlength{\parskip}{.6em}
\sloppy
\begin{document}
%s
\end{document}
"""
"""The LaTeX document, for pdfLaTeX and its successors."""


@dataclass(frozen=True)
class Report:
    """A document and its files.

    `command`: the one that makes it, such as `report`; `source`: what it is made from, in words;
    `about`: what else is in its folder; `markdown`: the name of the Markdown file; `files`: path ->
    content of further files; `models`: file name -> title and sections of the page of each model,
    if they have any; `format`: "latex" adds `report.tex`, each table as LaTeX and each figure as
    PDF, "png" each figure as PNG.
    """

    command: str
    source: str
    title: str
    sections: Sequence[Section]
    about: str = "The folder of this page has every table as CSV, every figure as SVG, and the report as Markdown."
    markdown: str = "report.md"
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    models: Mapping[str, tuple[str, Sequence[Section]]] = field(default_factory=dict)
    format: str = "html"

    @property
    def answer(self) -> str:
        """The sentence that it opens with."""
        return next(
            part
            for section in self.sections
            for part in section.all_parts()
            if isinstance(part, str)
        )


def save(report: Report, output: Path) -> Path:
    """Write a report into the folder `output`, as a whole or not at all; return the path of its
    page.

    A report of the same command is replaced. Raises LedgerError if `output` is anything else, or
    cannot be written.
    """
    with os_errors_as_ledger_errors(output), temporary_folder(output.parent) as work:
        write(report, work / "report")
        check_ours(output, report.command)
        replace(work / "report", output)
    return output / "index.html"


def check_ours(output: Path, command: str) -> None:
    """Raise LedgerError unless `output` does not exist, or holds a report of this command and
    nothing else."""
    check_owned(output, command, ("report.md", _marker(command)), ours=_is_part)


def _is_part(file: str) -> bool:
    path = Path(file)
    return file in ("index.html", "report.md", *_LATEX_FILES) or path.suffix in _OURS.get(
        str(path.parent), ()
    )


def _marker(command: str) -> str:
    """A line in the `report.md` of each folder that this command may replace."""
    return f"Made by `codesyntax {command}`."


def model_pages(names: Iterable[str]) -> dict[str, str]:
    """Name of a model -> the path of its page in the folder, a plain file name whatever the name
    is."""
    return {
        name: f"{MODELS}/{re.sub(r'[^A-Za-z0-9._-]+', '--', name)[:80].lstrip('.')}-{number}.html"
        for number, name in enumerate(sorted(names), start=1)
    }


def write(report: Report, folder: Path) -> None:
    """Write all files of a report into a new or empty folder."""
    pages = {
        path: dataclasses.replace(report, title=title, sections=sections)
        for path, (title, sections) in report.models.items()
    }
    sections = [section for page in (report, *pages.values()) for section in page.sections]
    files: dict[str, str | bytes] = {**report.files}
    for part in [part for section in sections for part in section.all_parts()]:
        if isinstance(part, Table) and part.within is None:
            files[part.file] = part.to_csv()
        elif isinstance(part, Figure):
            files[f"figures/{part.name}.svg"] = part.svg
            if report.format in FIGURE_FORMATS:
                image = FIGURE_FORMATS[report.format]
                files[f"figures/{part.name}.{image}"] = as_file(part.draw, image)
    if report.format == "latex":
        files |= _in_latex(report, sections)
    text = "\n".join(section.to_markdown() for section in report.sections)
    files[report.markdown] = f"# {report.title}\n\n{_marker(report.command)}\n\n{text}"
    files |= {
        "index.html": _page(report),
        **{path: _page(page, "../") for path, page in pages.items()},
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(
            content if isinstance(content, bytes) else content.encode("utf-8")
        )


def _in_latex(report: Report, sections: Sequence[Section]) -> dict[str, str | bytes]:
    parts = [part for section in sections for part in section.all_parts(drawn=False)]
    files: dict[str, str | bytes] = {
        f"tables/{table.name}.tex": table.to_latex() for table in parts if isinstance(table, Table)
    }
    title = rf"\section*{{{latex_escaped(report.title)}}}"
    text = "\n".join([title, *(section.to_latex() for section in sections)])
    return {**files, "report.tex": _DOCUMENT % (_marker(report.command), text)}


def _page(report: Report, root: str = "") -> str:
    """A page; `root`: the way from it to the folder of the report."""
    return share_styles(fill(_template(), report=report, root=root))


@cache
def _template() -> jinja2.Template:
    templates = environment()
    templates.globals |= {"row_in_html": row_in_html, "prose": prose_in_html, "for_page": for_page}
    templates.filters["by_kind"] = _by_kind
    return templates.get_template("report.html.jinja")


def _by_kind(parts: Iterable[Part]) -> list[tuple[str, list[Part]]]:
    """Neighbouring parts of one kind together, under its name."""
    return [(kind.__name__, list(some)) for kind, some in groupby(parts, type)]
