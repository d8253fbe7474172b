"""A board as a document, and its folder, ready to upload as a Space: pages, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.safe_files import printable
from probing.evidence.headlines import Mean, Means
from probing.evidence.submission import scores
from probing.instruments.registry import INSTRUMENTS
from probing.publish.board import Board, BoardRow, BoardTable
from probing.report import folder, specs
from probing.report.document import RowRecord, Section, Table
from probing.report.folder import Report, model_pages
from probing.report.words import method, number_of
from probing.runs.clusters import over_in_words
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate

BOARD_TITLE = "CodeSyntax board"

_DIFFERS = 0.05
"""From here on a claim is another number than ours, as boards round."""

_SPACE = """---
title: {title}
sdk: static
app_file: index.html
pinned: false
---

# {title}

{about}

Made by `codesyntax board` from {source}: [the page](index.html), [its tables](report.md), and these as CSV in `tables`.
"""


def save(board: Board, output: StrPath) -> Path:
    """Write the page, a page for each model, `report.md`, CSV files and the Space's `README.md`;
    return the path of the page.

    Args:
        board: what `probing.publish.board.read` returns.
        output: the folder to write to; an existing board is replaced.

    Raises:
        LedgerError: before anything is written, if the folder has anything else.
    """
    return folder.save(document(board), Path(output))


def document(board: Board) -> Report:
    """A section for each table of rows that compare, and a page with the details of each model."""
    rows_of: dict[str, list[tuple[BoardTable, BoardRow]]] = {}
    for table in board.tables:
        for row in table.rows:
            rows_of.setdefault(_page_name(row), []).append((table, row))
    links = model_pages(rows_of)
    verified = sum(len(table.verified) for table in board.tables)
    rows = f"{number_of(verified, 'run')} of our own, {number_of(len(board) - verified, 'claim')}"
    source = f"{rows}, and {number_of(len(board.left_out), 'file')} left out"
    about, *reading = method("board")
    sections = [_models(table, links) for table in board.tables]
    sections.append(Section("reading", "How to read this", [about, *reading]))
    refused: Table | str = "All files were read."
    if board.left_out:
        refused = specs.table("board-left-out", map(list, board.left_out), "left-out")
    sections.append(Section("left-out", "Left out", [refused]))
    return Report(
        command="board",
        source=source,
        title=BOARD_TITLE,
        sections=sections,
        about=f"{about} The tables as CSV: tables. As Markdown: report.md.",
        readme=_SPACE.format(title=BOARD_TITLE, about=about, source=source),
        models={
            links[name]: (name, partial(_model_sections, rows)) for name, rows in rows_of.items()
        },
    )


def _model_sections(rows: Sequence[tuple[BoardTable, BoardRow]]) -> list[Section]:
    """Those of the page of a model."""
    return [Section(_anchor(table), _title(table), _details(table, row)) for table, row in rows]


def _anchor(table: BoardTable) -> str:
    """The id of a table on a page."""
    return table.name.replace(".", "-")


def _title(table: BoardTable) -> str:
    shared = table.shared
    result = INSTRUMENTS[shared["instrument"]].result
    units = f"{result.UNIT}s" if result.UNIT != "function" else language_of(shared["config"]).units
    total = table.rows[0].about["functions"]
    named = [shared["config"], shared["instrument"], shared.get("direction", "")]
    over = over_in_words(table.rows[0].about["over"])
    return f"{', '.join(filter(None, named))}: {total:,} {units}{over}"


def _page_name(row: BoardRow) -> str:
    """The title of the page of a row's model."""
    return f"{printable(row.model)}@{row.revision[:12]}"


def _models(table: BoardTable, links: Mapping[str, str]) -> Section:
    """The models of a table, those that this board ran before those that are claimed; and what they
    share."""
    shared = (f"{name} {text}" for name, text in table.shared.items())
    parts: list[Any] = [printable(f"{', '.join(shared)}.", most=2000)]
    name = _anchor(table)
    if table.verified:
        lines = [*_lines(table, table.verified, links)]
        parts.append(_models_table(table, lines, name, "Run by this board", verified=True))
    if table.claimed:
        lines = [*_lines(table, table.claimed, links)]
        parts.append(_models_table(table, lines, f"{name}-claimed", "Claimed", verified=False))
    return Section(name, _title(table), parts)


def _models_table(
    table: BoardTable, lines: Sequence[RowRecord], name: str, title: str, verified: bool
) -> Table:
    return specs.table(
        "board-models",
        lines,
        name,
        title=title,
        verified=verified,
        means=_shown_means(table),
        by=_by(table),
        rival=table.headline.rival,
        filters=len(_by(table)),
    )


def _shown_means(table: BoardTable) -> Sequence[str]:
    """The means to show, the first of which sorts."""
    return table.headline.shown or list(dict.fromkeys(name for name, _ in table.rows[0].means))


def _by(table: BoardTable) -> list[str]:
    """The names of what measures consist of, if a mean has several."""
    return ["rule", "k"] if isinstance(_measures(table)[0], tuple) else []


def _measures(table: BoardTable) -> list[Any]:
    """Of each mean, those that it does not share with others count as one."""
    measures = list(dict.fromkeys(measure for _, measure in table.rows[0].means))
    return measures if isinstance(measures[0], tuple) else measures[:1]


def _cell(table: BoardTable, mean: str, measure: Any) -> tuple[str, Any]:
    """The mean by a measure, or by its own."""
    if isinstance(measure, tuple):
        return mean, measure
    return next(cell for cell in table.rows[0].means if cell[0] == mean)


def _lines(
    table: BoardTable, rows: Sequence[BoardRow], links: Mapping[str, str]
) -> Iterator[RowRecord]:
    """A line for each measure and model, or rival that is the same for all, best first."""
    shown = _shown_means(table)
    rivals = _rivals_of_all(rows[0].read()) if _by(table) else {}
    for measure in _measures(table):
        by = dict(zip(_by(table), measure))
        lines = []
        for row in rows:
            means = {}
            for name in shown:
                cell = _cell(table, name, measure)
                if cell in row.means:
                    means[name] = {
                        "score": row.means[cell],
                        "difference": row.differences.get(cell),
                        "rank": "–".join(map(str, dict.fromkeys(row.ranks.get(cell, ())))),
                    }
            lines.append({"by": by, "means": means, **_model_cells(table, row, measure, links)})
        for system, own in rivals.items():
            means = {
                name: {"score": own[name, measure]} for name in shown if (name, measure) in own
            }
            lines.append({"by": by, "means": means, "link": f"{system} baseline"})
        yield from sorted(lines, key=lambda line: -_first_score(line["means"], shown[0]))


def _first_score(means: Mapping[str, Any], name: str) -> float:
    return means[name]["score"].value if name in means else 0


def _rivals_of_all(means: Means) -> dict[str, dict[Any, Any]]:
    """The scores of the systems that need no model."""
    systems = dict.fromkeys(system for mean in means.values() for system in mean.hits.systems[:-1])
    return {
        system: scores(
            {name: mean for name, mean in means.items() if system in mean.hits.systems}, system
        )
        for system in systems
    }


def _model_cells(
    table: BoardTable, row: BoardRow, measure: Any, links: Mapping[str, str]
) -> RowRecord:
    """The model of a row on a page, with the link to its own; and what is claimed of it."""
    claims = []
    for name in _shown_means(table):
        cell = _cell(table, name, measure)
        claimed = row.claimed.get(cell)
        if claimed and abs(claimed.value - row.means[cell].value) >= _DIFFERS:
            claims.append(f"{name} {claimed.value:.1f}")
    return {
        "link": [printable(row.model), links[_page_name(row)]],
        "commit": row.revision[:12],
        "family": printable(str(row.made["run"].get("family"))),
        "claimed": ", ".join(claims),
        "verified": printable(row.verified or ""),
    }


def _details(table: BoardTable, row: BoardRow) -> list[Table]:
    """A row group by group, those that gain most over the rival first, and its origin."""
    provenance = row.made
    name = _anchor(table)
    groups = specs.table(
        "board-groups",
        [*_group_lines(table, row.read())],
        f"{name}-groups",
        filed=False,
        means=list(dict.fromkeys(mean for mean, _ in row.means)),
        by=_by(table),
        rival=table.headline.rival,
        filters=len(_by(table)),
    )
    versions = [
        f"{package} {version}" for package, version in sorted(provenance["versions"].items())
    ]
    skips = [
        f"{count:,} ({reason})" for reason, count in sorted(provenance["skips"].items()) if count
    ]
    facts = specs.facts(
        "board",
        row=row,
        skips=", ".join(skips) or "none",
        status="no: claimed" if row.verified is None else f"yes {row.verified}",
        software=", ".join(versions),
    )
    lines = [[fact, printable(value, most=2000)] for fact, value in facts.items()]
    return [groups, specs.table("board-origin", lines, f"{name}-origin", filed=False)]


def _group_lines(table: BoardTable, means: Means) -> Iterator[RowRecord]:
    """The groups by each measure, largest difference to the rival in the first mean first."""
    system, rival = table.headline.system, table.headline.rival
    every = {name: _cells_of_groups(mean, system, rival) for name, mean in means.items()}
    firsts = {group: mean.hits for mean in reversed(means.values()) for group in mean.hits.names}
    for number, measure in enumerate(_measures(table)):
        by = dict(zip(_by(table), measure))
        lines: list[tuple[float, RowRecord]] = []
        for group, hits in sorted(firsts.items()):
            of_means = {
                name: cells[number][group]
                for name, cells in every.items()
                if group in cells[number]
            }
            cells = hits.groups[group]
            line = {
                "by": by,
                "of": _marked(hits, group),
                "things": cells.total,
                "in": len(cells.places),
                "means": of_means,
            }
            gained = next(iter(of_means.values()))["difference"].value
            lines.append((gained, line))
        yield from (line for _, line in sorted(lines, key=lambda each: -each[0]))


def _marked(hits: Hits, group: str) -> list[str]:
    """The cell of a group: its name, and what keeps it out of the mean or makes it unreliable."""
    marks = {"few": hits.groups[group].few, "not in mean": group in hits.left_out}
    return [group, "; ".join(filter(marks.get, marks))]


def _cells_of_groups(mean: Mean, system: str, rival: str) -> list[dict[str, RowRecord]]:
    """By each measure: group -> its cells."""
    hits = mean.hits
    numbers = zip(
        _plain_cells(hits.by_group(system)),
        _plain_cells(hits.by_group(system, rival)),
        hits.scores(rival).tolist(),
    )
    return [
        {
            group: {
                "score": score,
                "difference": difference,
                "rival": other,
                "chosen": mean.chosen[group][row] if group in mean.chosen else "",
            }
            for group, score, difference, other in zip(hits.names, *of_measure)
        }
        for row, of_measure in enumerate(numbers)
    ]


def _plain_cells(estimate: Estimate) -> list[list[Estimate]]:
    """Each of estimates (M, G), as plain numbers."""
    parts = [np.broadcast_to(part, estimate.value.shape).tolist() for part in estimate]
    return [[Estimate(*cell) for cell in zip(*of_measure)] for of_measure in zip(*parts)]
