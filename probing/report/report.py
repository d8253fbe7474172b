"""The report: a self-contained page, and its tables, figures and numbers as files."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import UnknownName
from probing.evidence import entries
from probing.evidence.entries import MAKERS
from probing.evidence.entry import for_boards
from probing.evidence.gather import by_instrument
from probing.evidence.merge import RESULTS
from probing.evidence.statistics_cache import caching
from probing.report import contents
from probing.report.edits import read_edited
from probing.report.findings import Findings, read_findings
from probing.report.folder import Report, check_ours, save
from probing.report.information import read_informed
from probing.report.mechanism import read_both
from probing.report.preferences import read_preferred
from probing.report.silencing import read_silenced
from probing.report.syntaxeval import read_groups
from probing.runs.ledger_file import ATTENTION, INFORMATION, MASKING, PREFERENCE, SILENCING

logger = logging.getLogger(__name__)

COMMAND = "report"

FORMATS = ("html", "latex")

_WITH_SECTIONS = {MASKING, SILENCING, INFORMATION, PREFERENCE}
"""Of other instruments than attention, a section of a report has the tables that commands print."""

TITLE = "What attention heads know about the syntax of code"
MASKING_TITLE = "What masked language models restore of the syntax of code"
BOTH_TITLE = "What language models know about the syntax of code"


@checked
def report(
    results: Sequence[str | os.PathLike],
    output: str | os.PathLike,
    data: Any = None,
    format: str = FORMATS[0],
    tell: Any = logger.info,
) -> Path:
    """Write a report on `results`, files or folders that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise`
    wrote, into `output`.

    Returns the path of its page.

    `data`: the location of the dataset, if not the one in the results. `format`: "latex" adds `report.tex`,
    `tables/*.tex` (booktabs) and `figures/*.pdf`. `tell` is called with each step. The folder has `index.html`,
    `report.md`, `tables/*.csv`, `figures/*.svg` and `*.png`, and `entries/*.json`; with many models also
    `models/*.html`, a page with the details of each. It is written as a whole or not at all; an existing report is
    replaced. The same results give the same bytes.

    Raises LedgerError if `results` are not results, or if `output` exists and is not a report; UnknownName for another
    format.
    """
    output = Path(output).resolve()
    check_ours(output, COMMAND)
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    made = replace(make(results, data, tell), latex=format == "latex")
    tell(f"drawing and writing {output}")
    return save(made, output)


def make(results: Sequence[str | os.PathLike], data: Any = None, tell: Any = logger.info) -> Report:
    """The report that `report` writes."""
    files = by_instrument(results)
    probed = files.pop(ATTENTION)
    tell("reading results, resampling them for intervals and tests")
    masked, silenced = read_groups(files[MASKING]), read_silenced(files[SILENCING])
    informed, preferred = read_informed(files[INFORMATION]), read_preferred(files[PREFERENCE])
    others = [RESULTS[name].load(file) for name in files.keys() - _WITH_SECTIONS for file in files[name]]
    with caching():
        all_findings = read_findings(probed, data) if probed or not any(files.values()) else []
    sources = {
        "rank": all_findings,
        "masking": masked,
        "silencing": silenced,
        "information": informed,
        "preference": preferred,
    }
    pages = contents.pages(all_findings)
    of_models = contents.of_models(all_findings, pages)
    return Report(
        command=COMMAND,
        source=" and ".join(name for name, found in sources.items() if found) + " ledgers",
        title=BOTH_TITLE if all_findings and masked else MASKING_TITLE if masked else TITLE,
        sections=contents.sections(
            all_findings,
            masked,
            read_both(all_findings, masked, data),
            silenced,
            read_edited(all_findings, data),
            pages,
            informed,
            preferred,
            others,
        ),
        about=_about(bool(all_findings), bool(masked), bool(pages)),
        files=_entries(all_findings, [file for name in MAKERS for file in files[name]], data),
        models={page: (name, of_models[name]) for name, page in pages.items()},
    )


def _about(attention: bool, masked: bool, pages: bool) -> str:
    """The contents of the folder, in words."""
    files = ["every table as CSV", "every figure as SVG and PNG", *(["a page for each model"] if pages else [])]
    files.append(f"{'this page' if pages else 'the whole report'} as report.md")
    files += [f"each {'attention ' if masked else ''}result as a JSON entry"] if attention else []
    return f"The folder of this page has {', '.join(files[:-1])} and {files[-1]}."


def _entries(all_findings: Sequence[Findings], others: Sequence[Path], data: Any) -> dict[str, str]:
    """Path in the folder -> the entry of each result that a board takes."""
    made = [subject.entry for findings in all_findings for subject in findings.subjects]
    made += [for_boards(partial(entries.of_file, file, data)) for file in others]
    return {f"entries/{entry.file_name}": entry.to_json() for entry in made if entry is not None}
