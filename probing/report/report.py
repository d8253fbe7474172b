"""The report: a self-contained page, and its tables, figures and numbers as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import writing
from codesyntax_dataset.errors import LedgerError
from probing.evidence import entry, entry_masked
from probing.evidence.gather import by_instrument
from probing.report import contents
from probing.report.document import Figure, Section, Table, in_html
from probing.report.figures import for_page
from probing.report.findings import Findings, read_findings
from probing.report.mechanism import read_both
from probing.report.pages import environment
from probing.report.syntaxeval import Group, read_groups

MARKER = "Made by `codesyntax report`."
"""A line in `report.md`; `report` may replace a folder whose `report.md` has it."""

TITLE = "What attention heads know about the syntax of code"
MASKING_TITLE = "What masked language models restore of the syntax of code"
BOTH_TITLE = "What language models know about the syntax of code"


@checked
def report(results: Sequence[str | os.PathLike], output: str | os.PathLike, data: Any = None) -> Path:
    """Write a report on `results`, files or folders that `probe` or `mask` wrote, into the folder `output`.

    Returns the path of its page.

    `data`: the location of the dataset, if not the one in the results. The folder holds `index.html`, `report.md`,
    `tables/*.csv`, `figures/*.svg` and `*.png`, and `entries/*.json`. It is written as a whole or not at all; an
    existing report is replaced. The same results give the same bytes.

    Raises LedgerError if `results` are not results, or if `output` exists and is not a report.
    """
    output = Path(output).resolve()
    _check_ours(output)
    masking, probed = by_instrument(results)
    masked = read_groups(masking)
    all_findings = read_findings(probed, data) if probed or not masked else []
    sections = contents.sections(all_findings, masked, read_both(all_findings, masked, data))
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as work:
            folder = Path(work, "report")
            _write(folder, all_findings, masked, sections)
            _check_ours(output)
            replaced = Path(work, "replaced")
            if output.exists():
                output.rename(replaced)
            try:
                folder.rename(output)
            except OSError:
                if replaced.exists():
                    replaced.rename(output)
                raise
    return output / "index.html"


def _write(
    folder: Path, all_findings: Sequence[Findings], masked: Sequence[Group], sections: Sequence[Section]
) -> None:
    for name in ("tables", "figures", "entries"):
        (folder / name).mkdir(parents=True)
    for part in [part for section in sections for part in section.all_parts()]:
        if isinstance(part, Table):
            _text(folder / "tables" / f"{part.name}.csv", part.to_csv())
        elif isinstance(part, Figure):
            _text(folder / "figures" / f"{part.name}.svg", part.svg)
            (folder / "figures" / f"{part.name}.png").write_bytes(part.png)
    for findings in all_findings:
        for subject in findings.subjects:
            _text(folder / "entries" / entry.file_name(subject.settings), entry.to_json(subject.entry))
    for model in (model for group in masked for model in group.models.values() if model.node_types):
        _text(folder / "entries" / entry.file_name(model.settings), entry.to_json(entry_masked.make(model)))
    title = BOTH_TITLE if all_findings and masked else TITLE if all_findings else MASKING_TITLE
    _text(folder / "report.md", f"# {title}\n\n{MARKER}\n\n" + "\n".join(part.to_markdown() for part in sections))
    _text(folder / "index.html", _page(sections, title, bool(all_findings), bool(masked)))


def _page(sections: Sequence[Section], title: str = TITLE, attention: bool = True, masking: bool = False) -> str:
    templates = environment()
    templates.globals |= {"in_html": in_html, "for_page": for_page}
    templates.tests |= {
        "table": lambda part: isinstance(part, Table),
        "figure": lambda part: isinstance(part, Figure),
    }
    return templates.get_template("report.html.jinja").render(
        title=title, sections=sections, attention=attention, masking=masking
    )


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _check_ours(output: Path) -> None:
    """Raise LedgerError unless `output` does not exist, or holds a report that `report` wrote and nothing else."""
    if not output.exists():
        return
    if not output.is_dir():
        raise LedgerError(f"{output} is a file, expected a folder or a new path: choose another output")
    files = {
        path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_symlink() or not path.is_dir()
    }
    if not files:
        return
    text = output / "report.md"
    if not text.is_file() or MARKER not in text.read_text(encoding="utf-8", errors="replace"):
        raise LedgerError(
            f"{output} is not empty and was not made by `codesyntax report`: choose another output or remove it"
        )
    ours = {"tables": {".csv"}, "figures": {".svg", ".png"}, "entries": {".json"}}
    for name in sorted(files - {"index.html", "report.md"}):
        path = Path(name)
        if path.suffix not in ours.get(str(path.parent), set()):
            raise LedgerError(
                f"{output} would be replaced, but {name} in it was not made by `codesyntax report`: move it away"
            )
