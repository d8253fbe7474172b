"""The folder of a report: one page, the same in Markdown, and its tables and figures as files."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from codesyntax_dataset.atomic import os_errors_as_ledger_errors, replace, temporary_folder
from codesyntax_dataset.owned_folder import check_owned
from probing.report.document import (
    Figure,
    Part,
    Section,
    Table,
    in_html,
    in_markdown,
    markdown_escaped,
    prose,
)
from probing.report.figures import as_file, for_page
from probing.report.pages import environment, filled_page, text_environment

FIGURE_FORMATS = {"latex": "pdf", "png": "png"}
"""Format of a report -> that of the figures which it adds."""

MODELS = "models"
"""The folder of the pages of models."""

MARKDOWN = "report.md"

_OURS = {
    "tables": {".csv", ".tex"},
    "figures": {".svg", ".png", ".pdf"},
    MODELS: {".html"},
}
"""The folders of a report, and the files in them."""


@dataclass(frozen=True)
class Report:
    """A document and its files.

    `command`: the one that makes it, such as `report`; `source`: what it is made from, in words;
    `about`: what else is in its folder; `readme`: the Space's README.md of boards;
    `models`: file name -> title and sections of the page of each model, if they have any, which are
    made when it is written; `format`: "latex" adds each table as LaTeX and each figure as PDF, "png"
    each figure as PNG.
    """

    command: str
    source: str
    title: str
    sections: Sequence[Section]
    about: str = ""
    readme: str = ""
    models: Mapping[str, tuple[str, Callable[[], Sequence[Section]]]] = field(default_factory=dict)
    format: str = "html"

    def all_parts(self) -> Iterator[Part]:
        """Those of its sections."""
        for section in self.sections:
            yield from section.all_parts()

    @property
    def answer(self) -> str:
        """The sentence that it opens with."""
        return next(part for part in self.all_parts() if isinstance(part, str))


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
    check_owned(output, command, (MARKDOWN, _marker(command)), ours=_is_part)


def _is_part(file: str) -> bool:
    path = Path(file)
    return file in ("index.html", "README.md", MARKDOWN) or path.suffix in _OURS.get(
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
    """Write all files of a report into a new or empty folder, one page after the other."""
    for path, content in _report_files(report):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(
            content if isinstance(content, bytes) else content.encode("utf-8")
        )


def _report_files(report: Report) -> Iterator[tuple[str, str | bytes]]:
    if report.readme:
        yield "README.md", report.readme
    yield from _files_of_parts(report)
    heading = f"# {report.title}\n\n{_marker(report.command)}"
    yield MARKDOWN, f"{heading}\n\n{markdown(report.sections)}"
    yield "index.html", _page(report)
    for path, (title, sections) in report.models.items():
        page = dataclasses.replace(report, title=title, sections=sections())
        yield from _files_of_parts(page)
        yield path, _page(page, "../")


def _files_of_parts(report: Report) -> Iterator[tuple[str, str | bytes]]:
    """The files of tables and figures."""
    for part in report.all_parts():
        if isinstance(part, Table) and part.filed:
            yield part.file, part.to_csv()
            if report.format == "latex":
                yield f"tables/{part.name}.tex", part.to_latex()
        elif isinstance(part, Figure) and (part.on_page or report.format in FIGURE_FORMATS):
            yield f"figures/{part.name}.svg", part.svg
            if report.format in FIGURE_FORMATS:
                image = FIGURE_FORMATS[report.format]
                yield f"figures/{part.name}.{image}", as_file(part.draw, image)


def markdown(sections: Sequence[Section]) -> str:
    """Sections as Markdown."""
    template: Any = _template("md").module
    return "".join(template.section(section) for section in sections).rstrip("\n") + "\n"


def _page(report: Report, root: str = "") -> str:
    """A page; `root`: the way from it to the folder of the report."""
    return filled_page(_template("html"), report=report, root=root)


@cache
def _template(form: str) -> jinja2.Template:
    """The template of a format: html or md."""
    templates = environment() if form == "html" else text_environment()
    templates.globals["for_page"] = for_page
    templates.filters |= {
        "by_kind": _neighbours_by_kind,
        "md": markdown_escaped,
        "prose_html": lambda text: Markup(prose(text, escape, Markup("<code>{}</code>").format)),
        "prose_md": lambda text: prose(text, markdown_escaped, "`{}`".format),
        "cells_html": lambda row, kinds: Markup("".join(map(in_html, row, kinds))),
        "cells_md": lambda row, kinds: map(in_markdown, row, kinds),
    }
    return templates.get_template(f"report.{form}.jinja")


def _neighbours_by_kind(parts: Iterable[Part]) -> list[tuple[str, list[Part]]]:
    """Neighbouring parts of one kind together, under its name."""
    return [(kind.__name__, list(some)) for kind, some in groupby(parts, type)]
