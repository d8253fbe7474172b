"""The folder of a report: one page, the same in Markdown, and its tables and figures as files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codesyntax_dataset.atomic import os_errors_as_ledger_errors, replace, temporary_folder
from codesyntax_dataset.owned_folder import check_owned
from probing.report.document import Figure, Section, Table, in_html
from probing.report.figures import for_page
from probing.report.pages import environment, fill

MODELS = "models"
"""The folder of the pages of models."""

_OURS = {"tables": {".csv"}, "figures": {".svg", ".png"}, "entries": {".json"}, MODELS: {".html"}}
"""The folders of a report, and the files in them."""


@dataclass(frozen=True)
class Report:
    """What is written. `command`: the one that makes it, such as `report`; `source`: what it is made from, in words;
    `entries`: file name -> JSON; `entry`: what each of these is, in words, if the page is to say it; `models`: file
    name -> title and sections of the page of each model, if they have any."""

    command: str
    source: str
    title: str
    sections: Sequence[Section]
    entries: Mapping[str, str] = field(default_factory=dict)
    entry: str = ""
    models: Mapping[str, tuple[str, Sequence[Section]]] = field(default_factory=dict)


def save(report: Report, output: Path) -> Path:
    """Write a report into the folder `output`, as a whole or not at all; return the path of its page.

    A report of the same command is replaced. Raises LedgerError if `output` is anything else, or cannot be written.
    """
    with os_errors_as_ledger_errors(output), temporary_folder(output.parent) as work:
        _write(report, work / "report")
        check_ours(output, report.command)
        replace(work / "report", output)
    return output / "index.html"


def check_ours(output: Path, command: str) -> None:
    """Raise LedgerError unless `output` does not exist, or holds a report of this command and nothing else."""
    check_owned(output, command, ("report.md", _marker(command)), ours=_is_part)


def _is_part(file: str) -> bool:
    path = Path(file)
    return file in ("index.html", "report.md") or path.suffix in _OURS.get(str(path.parent), ())


def _marker(command: str) -> str:
    """A line in the `report.md` of each folder that this command may replace."""
    return f"Made by `codesyntax {command}`."


def _write(report: Report, folder: Path) -> None:
    pages = {
        name: dataclasses.replace(report, title=title, sections=of_one)
        for name, (title, of_one) in report.models.items()
    }
    for name in _OURS:
        if name != MODELS or pages:
            (folder / name).mkdir(parents=True)
    sections = [section for page in (report, *pages.values()) for section in page.sections]
    for part in [part for section in sections for part in section.all_parts()]:
        if isinstance(part, Table):
            if part.within is None:
                _text(folder / part.file, part.to_csv())
        elif isinstance(part, Figure):
            _text(folder / "figures" / f"{part.name}.svg", part.svg)
            (folder / "figures" / f"{part.name}.png").write_bytes(part.png)
    for file, entry in report.entries.items():
        _text(folder / "entries" / file, entry)
    text = "\n".join(section.to_markdown() for section in report.sections)
    _text(folder / "report.md", f"# {report.title}\n\n{_marker(report.command)}\n\n{text}")
    _text(folder / "index.html", _page(report))
    for name, page in pages.items():
        _text(folder / MODELS / name, _page(page, "../"))


def _page(report: Report, root: str = "") -> str:
    """A page; `root`: the way from it to the folder of the report."""
    templates = environment()
    templates.globals |= {"in_html": in_html, "for_page": for_page}
    templates.tests |= {
        "table": lambda part: isinstance(part, Table),
        "figure": lambda part: isinstance(part, Figure),
    }
    return fill(templates.get_template("report.html.jinja"), report=report, root=root)


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
