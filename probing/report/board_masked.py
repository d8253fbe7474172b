"""The tables of a board on masked syntax, for its page, its Markdown, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.safe_files import printable
from probing.evidence.entry import Score
from probing.evidence.entry_masked import HEADLINE, MaskedEntry, MaskedScores, NodeTypeScore
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.prediction.result import OUTCOMES
from probing.publish.tables import BoardRow, BoardTable
from probing.report.document import row_in_csv
from probing.report.syntaxeval import RANDOM

SHOWN = {HEADLINE: "Jaccard similarity", "restored": "restored sub-tokens"}
"""The outcomes of the main table, those of tasks; the details have all."""

TITLES = {
    "jaccard": "Jaccard",
    "sorensen_dice": "Sorensen-Dice",
    "levenshtein": "Levenshtein",
    "restored": "restored",
    "log_probability": "log-probability, nats",
}

_PARTS = ("t1", "t0", "effect")
_COLUMNS = (
    *("board", "config", "data", "labels", "split", "protocol", "rate", "control", "draws", "seed", "parser"),
    *("model", "revision", "family", "outcome", "node_type", "functions", "masked"),
    *(f"{part}{bound}" for part in _PARTS for bound in ("", "_low", "_high")),
    *("p", "rank_first", "rank_last", "verified", "verified_of", "file"),
)


def to_csv(tables: Sequence[BoardTable]) -> str:
    """One row per model, outcome and node type, and one without a node type for their mean, which has the ranks."""
    file = io.StringIO()
    writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for table in tables:
        of_table = {"board": table.name, "parser": printable(table.rows[0].entry.run.parser)}
        of_table |= {name: getattr(table.settings, name) for name in _COLUMNS[1:10]}
        for row, ranks in zip(table.rows, table.ranks):
            about = {**of_table, "model": printable(row.model), "revision": row.revision, "file": row.file}
            about |= {"family": printable(row.family)}
            again, of = row.verified or (0, "")
            about |= {"verified": str(again), "verified_of": str(of)}
            node_types = _node_types(row)
            masked = sum(of.masked for of in node_types.values())
            for outcome in OUTCOMES:
                mean = {"outcome": outcome, "functions": _functions(table), "masked": masked}
                first, last = ranks[outcome] or (None, None)
                mean |= {**_numbers(row.scores.cells[outcome]), "rank_first": first, "rank_last": last}
                writer.writerow(row_in_csv(about | mean))
                for name, kind in node_types.items():
                    counts = {"node_type": name, "functions": kind.functions, "masked": kind.masked}
                    writer.writerow(
                        row_in_csv({**about, "outcome": outcome, **counts, **_numbers(kind.cells[outcome])})
                    )
    return file.getvalue()


def to_page(tables: Sequence[BoardTable]) -> list[dict[str, Any]]:
    """Data for the template: all numbers as text, with the places of dots and lines in percent of their axes."""
    return [
        {
            "title": title(table),
            "facts": f"{facts(table)}; mean of node types (functions): {', '.join(counts(table))}",
            "axes": {outcome: _axis(table, outcome) for outcome in SHOWN},
            "rows": [
                {
                    "name": printable(row.model),
                    "revision": row.revision[:12],
                    "family": printable(row.family),
                    "verified": verified(row),
                    "cells": {
                        outcome: {
                            **_texts(row.scores.cells[outcome]),
                            "rank": rank(ranks[outcome]),
                            **_places(row.scores.cells[outcome], _axis(table, outcome)),
                        }
                        for outcome in SHOWN
                    },
                    "types": [_type(name, of) for name, of in _node_types(row).items()],
                    "facts": _row_facts(row),
                }
                for row, ranks in _best_first(table)
            ],
        }
        for table in tables
    ]


def _type(name: str, of: NodeTypeScore) -> list[Any]:
    few = of.functions < FEW_FUNCTIONS
    return [name, few, f"{of.functions:,}", f"{of.masked:,}", [_texts(of.cells[outcome]) for outcome in TITLES]]


def to_markdown(tables: Sequence[BoardTable], escape: Any) -> list[str]:
    """Lines of Markdown; `escape`: for foreign text."""
    lines = [
        "Masked syntax: means over node types in percent with 95 % intervals. T1: the nodes of the type are masked;",
        "T0: as many random sub-tokens are; Δ is T1 − T0. Jaccard similarity compares the tree of what a model",
        "restores with that of the source, most of which is never masked; restored is the share of masked sub-tokens",
        "that it predicts exactly. Ranks by T1 are ranges: models that a paired permutation test over functions does",
        "not separate are tied (5 %, Holm over the pairs of a table).",
    ]
    for table in tables:
        types = ", ".join(map(escape, counts(table)))
        lines += ["", f"## {title(table)}", "", f"{escape(facts(table))}; mean of node types (functions): {types}.", ""]
        columns = [f"rank | {TITLES[outcome]} T1 | T0 | Δ | p" for outcome in SHOWN]
        lines.append(f"| model | family | verified | {' | '.join(columns)} |")
        lines.append("| --- | --- |" + " --: |" * (1 + 5 * len(SHOWN)))
        for row, ranks in _best_first(table):
            again, of = row.verified or (0, 0)
            cells = [escape(row.model), escape(row.family), f"{again:,} of {of:,}" if of else "none"]
            for outcome in SHOWN:
                texts = _texts(row.scores.cells[outcome])
                with_bounds = [f"{texts[part]} [{texts[f'{part}_bounds']}]" for part in _PARTS]
                cells += [rank(ranks[outcome]), *with_bounds, texts["p"]]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def title(table: BoardTable) -> str:
    return f"{table.settings.config}, {table.settings.split}, masked syntax: {_functions(table):,} functions"


def facts(table: BoardTable) -> str:
    """What the rows of a table share, except what its title says."""
    made = table.settings
    return printable(
        f"data {made.data}, labels {made.labels}, protocol {made.protocol}, rate {made.rate:g}, T0 of "
        f"{RANDOM[made.control]}, {made.draws} times, seed {made.seed}, trees of {table.rows[0].entry.run.parser}"
    )


def counts(table: BoardTable) -> list[str]:
    """The node types of the mean, with their functions."""
    return [f"{name} ({of.functions:,})" for name, of in sorted(_node_types(table.rows[0]).items())]


def verified(row: BoardRow) -> str:
    return f"{row.verified[0]:,} of {row.verified[1]:,} verified" if row.verified else "not verified"


def rank(of: tuple[int, int] | None) -> str:
    if of is None:
        return ""
    return str(of[0]) if of[0] == of[1] else f"{of[0]}–{of[1]}"


def _best_first(table: BoardTable) -> list[tuple[BoardRow, dict[str, tuple[int, int] | None]]]:
    return sorted(zip(table.rows, table.ranks), key=lambda row: -row[0].scores.headline)


def _node_types(row: BoardRow) -> dict[str, NodeTypeScore]:
    assert isinstance(row.scores, MaskedScores)
    return row.scores.node_types


def _functions(table: BoardTable) -> int:
    return int(table.rows[0].scores.shares.shape[1])


def _parts(cell: Score) -> dict[str, tuple[float | None, ...]]:
    return {part: tuple(of) if of else (None, None, None) for part, of in zip(_PARTS, cell[:3])}


def _numbers(cell: Score | None) -> dict[str, float]:
    if cell is None:
        return {}
    found = {
        f"{part}{bound}": number
        for part, numbers in _parts(cell).items()
        for bound, number in zip(("", "_low", "_high"), numbers)
    }
    return {name: round(number, 4) for name, number in (found | {"p": cell.p}).items() if number is not None}


def _texts(cell: Score | None) -> dict[str, str]:
    """Numbers and bounds with one decimal, p with four, and how the difference looks."""
    assert cell is not None
    texts = {"p": "" if cell.p is None else f"{cell.p:.4f}", "look": ""}
    for part, (number, low, high) in _parts(cell).items():
        shown = _signed if part == "effect" else _plain
        texts[part] = shown(_known(number))
        texts[f"{part}_bounds"] = "" if low is None or high is None else f"{shown(low)} to {shown(high)}"
    if cell.difference and cell.difference.low is not None and cell.difference.high is not None:
        texts["look"] = "up" if cell.difference.low > 0 else "down" if cell.difference.high < 0 else ""
    return texts


def _plain(number: float) -> str:
    return f"{number:.1f}".replace("-", "−")


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", "−") if round(number, 1) else "0.0"


def _known(number: float | None) -> float:
    if number is None:
        raise LedgerError("a mean of an entry is missing")
    return number


def _axis(table: BoardTable, outcome: str) -> tuple[int, int]:
    cells = [row.scores.cells[outcome] for row in table.rows]
    numbers = [part for cell in cells if cell for of in (cell.mean, cell.reference) if of for part in of]
    known = [number for number in numbers if number is not None]
    low, high = 10 * math.floor(min(known) / 10), 10 * math.ceil(max(known) / 10)
    return low, max(high, low + 10)


def _places(cell: Score | None, axis: tuple[int, int]) -> dict[str, str]:
    assert cell is not None and cell.reference is not None

    def at(number: float | None) -> str:
        return "" if number is None else f"{100 * (number - axis[0]) / (axis[1] - axis[0]):.2f}"

    mean, low, high = cell.mean
    width = "" if low is None or high is None else f"{100 * (high - low) / (axis[1] - axis[0]):.2f}"
    return {"dot": at(mean), "left": at(low), "width": width, "line": at(cell.reference.value)}


def _row_facts(row: BoardRow) -> list[tuple[str, str]]:
    entry = row.entry
    assert isinstance(entry, MaskedEntry)
    reasons = {"functions skipped": entry.skips, "not masked": entry.dropped, "not compared": entry.uncompared}
    again = "nothing: not sent by codesyntax submit"
    if row.verified:
        again = f"{row.verified[0]:,} of {row.verified[1]:,} functions, when codesyntax submit sent it"
    found = {
        "signature": entry.signature,
        "revision": row.revision,
        **{
            name: ", ".join(f"{count:,} ({reason})" for reason, count in sorted(of.items()) if count) or "none"
            for name, of in reasons.items()
        },
        "masked again": again,
        "ledger": f"SHA-256 {entry.ledger}",
        "software": ", ".join(f"{name} {version}" for name, version in sorted(entry.versions.items())),
        "file": row.file,
    }
    return [(name, printable(value, most=2000)) for name, value in found.items()]
