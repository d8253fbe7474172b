"""A board as a document, and its folder, ready to upload as a Space: pages, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    BEYOND_OFFSET,
    HELD_OUT,
    PROTOCOLS,
    PUBLISHED,
    TABLE_KS,
)
from codesyntax_dataset.safe_files import printable
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import KINDS, kinds_of
from probing.evidence.protocols import TABLE_MEASURES
from probing.evidence.submission import Tables
from probing.evidence.submission_attention import AttentionSubmission
from probing.evidence.submission_masked import TITLES, MaskedSubmission, masked
from probing.instruments.masking.hits import T0
from probing.publish.board import Board, BoardRow, BoardTable
from probing.report import folder, specs
from probing.report.document import RowRecord, Section, Table
from probing.report.folder import Report, model_pages
from probing.report.scored import with_marks
from probing.report.words import method, number_of
from probing.runs.ledger_file import ATTENTION, MASKING
from probing.stats.intervals import Estimate

BOARD_TITLE = "CodeSyntax board"

_SHOWN = ("jaccard", "restored")
"""The outcomes in a table of models."""

_OF_MASKING = "config data labels split protocol rate control draws seed parser".split()
"""The settings that rows of masking share."""

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
    """A section for each table of entries that compare, and a page with the details of each
    model."""
    details: dict[str, list[Section]] = {}
    for table in board.tables:
        details_of = _details if table.instrument == ATTENTION else _masked_details
        for row in table.rows:
            section = Section(_anchor(table), _table_title(table), details_of(table, row))
            details.setdefault(_page_name(row), []).append(section)
    links = model_pages(details)
    instruments = [name for name in (ATTENTION, MASKING) if board.of(name)] or [ATTENTION]
    guides = [method(f"board {name}") for name in instruments]
    about = " ".join(topic for topic, *_ in guides)
    left_out = number_of(len(board.left_out), "file")
    source = f"{number_of(len(board), 'submission')}, and {left_out} left out"
    sections = [_models_table(table, links) for table in board.of(ATTENTION)]
    sections += [_masked_models(table, links) for table in board.of(MASKING)]
    reading = [text for _, *texts in guides for text in texts]
    sections.append(Section("reading", "How to read this", reading))
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
        models={links[name]: (name, sections) for name, sections in details.items()},
    )


# ---------------------------------------------------------------------------- what all tables share


def _anchor(table: BoardTable) -> str:
    """The id of a table on a page."""
    return table.name.replace(".", "-")


def _table_title(table: BoardTable) -> str:
    settings = table.settings
    shared = table.shared
    title = f"{settings.config}, {settings.split}"
    units = _units(table)
    if table.instrument == MASKING:
        return f"{title}, masking: {table.rows[0].entry.scored:,} {units}"
    functions = int(shared["functions"])
    edges = int(shared["edges"])
    return f"{title}, {settings.direction}: {functions:,} {units}, {edges:,} edges"


def _units(table: BoardTable) -> str:
    return language_of(table.settings.config).units


def _page_name(row: BoardRow) -> str:
    """The title of the page of a row's model."""
    return f"{printable(row.model)}@{row.revision[:12]}"


def _rank_range(ranks: tuple[int, int]) -> str:
    """A rank, or a range of ranks."""
    return "–".join(map(str, dict.fromkeys(ranks)))


def _on_page(row: BoardRow, links: Mapping[str, str]) -> RowRecord:
    """The model of a row on a page, with the link to its own."""
    return {
        "link": [printable(row.model), links[_page_name(row)]],
        "commit": row.revision[:12],
        "family": printable(str(row.entry.run.family)),
        "status": _status(row),
    }


def _status(row: BoardRow) -> list[str]:
    """The number of functions that this board ran again, of how many, and with the weights of which
    branch or tag; and what to know before believing the numbers.
    """
    verified = "claimed"
    if row.verified:
        functions, total, reference = row.verified
        verified = f"{functions:,} of {total:,}"
        verified += f", {printable(reference)}" if reference else ""
    return [verified, "; ".join(map(printable, row.remarks))]


def _origin(table: BoardTable, row: BoardRow, spec: str, **words: str) -> Table:
    """A row's settings, digests and file."""
    entry = row.entry
    versions = [f"{name} {version}" for name, version in sorted(entry.versions.items())]
    facts = specs.facts(
        spec,
        entry=entry,
        row=row,
        skips=_listed(entry.skips),
        status=" ".join(_status(row)),
        software=", ".join(versions),
        **words,
    )
    rows = [[name, printable(value, most=2000)] for name, value in facts.items()]
    return specs.table("board-origin", rows, f"{_anchor(table)}-origin", filed=False)


def _listed(counts: Mapping[str, int]) -> str:
    """Counts by reason."""
    texts = [f"{count:,} ({reason})" for reason, count in sorted(counts.items()) if count]
    return ", ".join(texts) or "none"


# --------------------------------------------------------------------------------- attention probes


def _attention_lines(
    table: BoardTable, shown: Sequence[str], links: Mapping[str, str]
) -> list[RowRecord]:
    """A line for each rule, k, and model or baseline on the same functions, the best first by the
    first of the means shown; each with its `means`, and models with the ranks."""
    lines = []
    baselines = _baselines(table)
    for rule, k in product(RULES, TABLE_KS):
        measure = {"rule": rule, "k": k}
        of_cell = []
        for row, ranks in zip(table.rows, table.ranks):
            means = {}
            for protocol in shown:
                cell = protocol, rule, k
                if cell in row.means:
                    gain = row.differences.get(cell)
                    rank = _rank_range(ranks[cell])
                    means[protocol] = {"score": row.means[cell], "difference": gain, "rank": rank}
            of_cell.append({**measure, **_on_page(row, links), "means": means})
        for name, scores in baselines.items():
            means = {
                protocol: {"score": scores[protocol, rule, k]}
                for protocol in shown
                if (protocol, rule, k) in scores
            }
            of_cell.append({**measure, "link": f"{name} baseline", "means": means})
        lines += sorted(of_cell, key=lambda line: -_headline_score(line["means"], shown[0]))
    return lines


def _headline_score(means: Mapping[str, Any], protocol: str) -> float:
    return means[protocol]["score"].value if protocol in means else 0


def _models_table(table: BoardTable, links: Mapping[str, str]) -> Section:
    name = _anchor(table)
    shown = _means_shown(table)
    lines = _attention_lines(table, shown, links)
    models = specs.table("board-models", lines, name, means=shown)
    return Section(name, _table_title(table), [_facts(table), models])


def _means_shown(table: BoardTable) -> tuple[str, ...]:
    """The means to show: both protocols, and any beyond offsets."""
    shown = (*PROTOCOLS, BEYOND_OFFSET)
    return tuple(protocol for protocol in shown if protocol in table.rows[0].entry.tables)


def _facts(table: BoardTable) -> str:
    """The settings that the rows of a table share, except those in its title."""
    shared = table.shared
    units = _units(table)
    predicted = shared.get("not-predicted")
    facts = specs.text(
        "board-facts",
        settings=table.settings,
        shared=shared,
        units=units,
        split=int(shared["functions of the split"]),
        predicted=f"without predictions of {predicted}, " if predicted else "",
    )
    return f"{printable(facts)}."


def _details(table: BoardTable, row: BoardRow) -> list[Table]:
    """A row relation by relation, those that gain most over the combined baseline first, and its
    origin."""
    entry = row.entry
    units = _units(table)
    assert isinstance(entry, AttentionSubmission)
    digests = [f"{split} SHA-256 {digest}" for split, digest in sorted(entry.digests.items())]
    return [
        specs.table(
            "board-relations",
            _relations_of_entry(entry, entry.tables),
            f"{_anchor(table)}-relations",
            filed=False,
            units=units,
            protocols=PROTOCOLS,
        ),
        _origin(table, row, "board-attention", units=units, ledgers=", ".join(digests)),
    ]


def _relations_of_entry(entry: AttentionSubmission, tables: Tables) -> list[RowRecord]:
    """The relations by each rule and k, largest gain first, those without any last."""
    scores = {name: tables[name].by_group(entry.SYSTEM) for name in PROTOCOLS}
    rivals = {name: tables[name].scores(entry.RIVAL) for name in PROTOCOLS}
    rows = []
    for measure, (rule, k) in enumerate(TABLE_MEASURES):
        lines = []
        for name, group in tables[PUBLISHED].groups.items():
            line: RowRecord = {
                "rule": rule,
                "k": str(k),
                "relation": with_marks(name, len(group.n)),
                "edges": group.total,
                "functions": len(group.n),
            }
            for protocol in PROTOCOLS:
                if name in tables[protocol].groups:
                    column = tables[protocol].names.index(name)
                    score = scores[protocol].at(measure, column)
                    rival = float(rivals[protocol][measure, column])
                    line[protocol] = {
                        "score": score,
                        "head": entry.head(protocol, column, measure),
                        "combined": rival,
                        "gain": score.value - rival,
                    }
            lines.append(line)
        rows += sorted(lines, key=lambda line: -line.get(HELD_OUT, {}).get("gain", -np.inf))
    return rows


def _baselines(table: BoardTable) -> dict[str, dict[Any, Estimate]]:
    """The baselines with their scores, the best first; they are equal for all rows. Beyond offsets,
    the combined one alone is shown."""
    entry = table.rows[0].entry
    means = dict(entry.means(entry.tables))
    scores = {BEST_BASELINE: entry.estimates(means, BEST_BASELINE)}
    means.pop(BEYOND_OFFSET, None)
    for name in KINDS:
        known = {
            mean: hits
            for mean, hits in means.items()
            if name in kinds_of(table.settings.config, mean)
        }
        if known:
            scores[name] = entry.estimates(known, name)
    return scores


# ------------------------------------------------------------------------------------ masked syntax


def _masked_models(table: BoardTable, links: Mapping[str, str]) -> Section:
    """The models of a table with their ranks, best first."""
    lines = []
    for row, ranks in zip(table.rows, table.ranks):
        t0 = row.entry.scores(T0)
        titled = {
            TITLES[outcome]: {
                "T1": row.means[outcome],
                "T0": t0[outcome],
                "effect": row.differences[outcome],
                "rank": _rank_range(ranks[outcome]),
            }
            for outcome in _SHOWN
        }
        lines.append({"titles": titled, **_on_page(row, links)})
    titles = [TITLES[outcome] for outcome in _SHOWN]
    rows = sorted(lines, key=lambda line: -line["titles"][titles[0]]["T1"].value)
    groups = sorted(table.rows[0].entry.tables[MASKING].groups.items())
    counts = ", ".join(f"{name} ({len(group.n):,})" for name, group in groups)
    settings = ((name, table.shared[name]) for name in _OF_MASKING)
    shared = ", ".join(f"{name} {text}" for name, text in settings if text != "None")
    facts = f"{shared}; mean over each node type ({_units(table)}): {counts}."
    name = _anchor(table)
    shown = specs.table("board-masked-models", rows, name, titles=titles)
    return Section(name, _table_title(table), [printable(facts, most=2000), shown])


def _masked_details(table: BoardTable, row: BoardRow) -> list[Table]:
    """A row by node type and outcome, and its origin."""
    entry = row.entry
    tables = entry.tables
    assert isinstance(entry, MaskedSubmission)
    rows = []
    for node_type, outcomes in entry.by_type(tables).items():
        group = tables[MASKING].groups[node_type]
        of_type = {
            "node_type": node_type,
            "marked": [node_type, "few functions" * group.few],
            "functions": len(group.n),
            "masked": masked(tables[MASKING], node_type),
        }
        for outcome, (t1, t0, effect) in outcomes.items():
            of_type[outcome] = {"T1": t1, "T0": t0, "effect": effect}
        rows.append(of_type)
    name = f"{_anchor(table)}-node-types"
    units = _units(table)
    types = specs.table("board-node-types", rows, name, filed=False, units=units)
    origin = _origin(
        table,
        row,
        "board-masking",
        dropped=_listed(entry.dropped),
        ledger=f"SHA-256 {entry.ledger}",
    )
    return [types, origin]
