"""A board as a static site, ready to upload as a Space: the page, a Markdown table and CSV."""

from __future__ import annotations

import base64
import csv
import gzip
import html
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codesyntax_dataset import paper
from codesyntax_dataset.atomic import os_errors_as_ledger_errors, temporary_folder
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, BEYOND_OFFSET, PROTOCOLS, TABLE_KS
from codesyntax_dataset.safe_files import printable
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import kinds_of
from probing.evidence.entry import Interval, Score
from probing.evidence.entry_attention import CELLS, MEANS, AttentionEntry, AttentionScores, ChosenHead
from probing.evidence.entry_masked import HEADLINE
from probing.evidence.selection import SAME_RELATIONS
from probing.publish.board import Board
from probing.publish.tables import BoardRow, BoardTable
from probing.report import board_masked
from probing.report.document import row_in_csv
from probing.report.pages import environment, fill, shown
from probing.runs.ledger_file import ATTENTION, MASKING

BEST_FIRST = (BEST_BASELINE, *BASELINES[:-1])
"""`combined` is the best one (Shen et al. 2022, section 4)."""

SHOWN = [(mean, rule, k) for mean in MEANS for rule in RULES for k in TABLE_KS]
"""The means that a board shows, always listed in this order."""

_SPACE = """---
title: CodeSyntax board
sdk: static
app_file: index.html
pinned: false
---

# CodeSyntax board

Top-k UAS of attention heads on the syntactic relations of code, made by `codesyntax board`: {rows} in {tables},
{left_out} left out. [The page](index.html), [the main table](board.md), [its scores](board.csv).
"""

_SPACE_OF_MASKED = """---
title: CodeSyntax board
sdk: static
app_file: index.html
pinned: false
---

# CodeSyntax board

What language models know about the syntax of code, made by `codesyntax board`: {rows} in {tables}, {left_out} left out.
[The page](index.html), [the main tables](board.md), [scores of attention heads](board.csv), [what models restore of
masked syntax](masking.csv).
"""

_OURS = {
    "README.md": "made by `codesyntax board`",
    "board.csv": "board,config,direction,",
    "board.md": "# CodeSyntax board\n",
    "index.html": "<title>CodeSyntax board</title>",
    "masking.csv": "board,config,data,labels,split,protocol,",
}
"""The files of a board, and a text near the beginning of each that identifies it."""

_COLUMNS = (
    *("board", "config", "direction", "data", "labels", "split", "dtype", "functions", "edges"),
    *("kind", "model", "revision", "family", "protocol", "rule", "k", "score", "low", "high"),
    *(
        "difference",
        "difference_low",
        "difference_high",
        "p",
        "rank_first",
        "rank_last",
        "verified",
        "verified_of",
        "file",
    ),
)


def save(board: Board, folder: str | os.PathLike) -> Path:
    """Write `index.html`, `board.md`, `board.csv` and the Space's `README.md`; return the page's path.

    With entries on masked syntax also `masking.csv`.

    An existing board is replaced; other files are kept. Raises LedgerError, before anything is written, if a file of
    one of these names exists that `save` did not write.
    """
    folder = Path(folder)
    check_place(folder)
    tables, left_out = _count(len(board.tables), "table"), _count(len(board.left_out), "file")
    space = _SPACE_OF_MASKED if board.of(MASKING) else _SPACE
    texts = {
        "README.md": space.format(rows=_count(len(board), "row"), tables=tables, left_out=left_out),
        "board.csv": to_csv(board),
        "board.md": to_markdown(board),
        "index.html": to_html(board),
    }
    if board.of(MASKING):
        texts["masking.csv"] = board_masked.to_csv(board.of(MASKING))
    with os_errors_as_ledger_errors(folder), temporary_folder(folder) as work:
        for name, text in texts.items():
            (work / name).write_text(text, encoding="utf-8", newline="\n")
        for name in texts:  # when all are complete
            os.replace(work / name, folder / name)
    return folder / "index.html"


def check_place(folder: str | os.PathLike) -> None:
    """Raise LedgerError if `save` would replace a file that it did not write."""
    with os_errors_as_ledger_errors(Path(folder)):
        for name, mark in _OURS.items():
            check_owned(Path(folder), "board", (name, mark), only=[name])


def to_html(board: Board) -> str:
    """The self-contained page. The details of rows, which are most of the data, are compressed."""
    templates = environment()
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    tables = [_table(table) for table in board.of(ATTENTION)]
    tables += [_paper_table(config) for config in _paper_configs(board)]
    details = json.dumps(shown([_details(table) for table in board.of(ATTENTION)]), separators=(",", ":"))
    return fill(
        templates.get_template("board.html.jinja"),
        board=board,
        attention=bool(board.of(ATTENTION) or not board.of(MASKING)),
        masked=board_masked.to_page(board.of(MASKING)),
        shown=board_masked.SHOWN,
        titles=board_masked.TITLES,
        headline=HEADLINE,
        source=paper.source(),
        page={
            "protocols": PROTOCOLS,
            "same": SAME_RELATIONS,
            "beyond": BEYOND_OFFSET,
            "rules": RULES,
            "ks": TABLE_KS,
            "tables": tables,
        },
        details=base64.b64encode(gzip.compress(details.encode(), mtime=0)).decode(),
    )


def to_markdown(board: Board) -> str:
    """The board's tables, by the rule `first` at k = 1; then the list of files left out."""
    lines = ["# CodeSyntax board", ""]
    lines += [
        "Top-k UAS in percent with 95 % intervals, first token of the dependent, k = 1; Δ is the difference to the "
        "combined",
        "baseline on the same functions. Ranks are ranges: models that a paired permutation test over these functions",
        "does not separate are tied (5 %, Holm over the pairs of a table). Verified: functions of both splits that "
        "were",
        "probed again before the entry was sent, according to the entry. Tables do not compare with each other. A "
        "published",
        "score compares with the held-out one over the same relations, which is shown beside it if these are not all.",
        "Beyond-offset: held-out, on the edges that do not lie at the best offset of their relation, against the next",
        "best offset or keyword there.",
    ]
    if board.of(MASKING) and not board.of(ATTENTION):
        lines = lines[:2]
    for table in board.of(ATTENTION):
        places = [(mean, RULES[0], TABLE_KS[0]) for mean in _scores(table).means]
        lines += ["", f"## {_title(table)}", "", f"{_markdown(_facts(table))}.", ""]
        columns = " | rank | ".join(f"{mean} | Δ | p" for mean, *_ in places)
        lines.append(f"| rank | model | family | verified | {columns} |")
        lines.append("| --: | --- | --- |" + " --: |" * 4 * len(places))
        written = [
            (
                row.scores.cells,
                [_rank(ranks[place]) for place in places],
                [_markdown(row.model), _markdown(row.family), _share(row)],
            )
            for row, ranks in zip(table.rows, table.ranks)
        ]
        written += [
            (_scores(table).baselines[name], [""] * len(places), [f"*{name} baseline*", "", ""])
            for name in _baselines(table)
        ]
        for cells, (rank, *others), about in sorted(written, key=lambda row: _worse(row[0][places[0]])):
            held_out, *published = (_texts(cells[place]) for place in places)
            texts = [rank, *about, *held_out]
            for other, score in zip(others, published):
                texts += [other, *score]
            lines.append(f"| {' | '.join(texts)} |")
    if board.of(MASKING):
        blank = [""] if board.of(ATTENTION) else []
        lines += [*blank, *board_masked.to_markdown(board.of(MASKING), _markdown)]
    if board.left_out:
        lines += ["", "## Left out", "", *(f"- {_markdown(file)}: {_markdown(why)}" for file, why in board.left_out)]
    return "\n".join(lines) + "\n"


def to_csv(board: Board) -> str:
    """One row per score of the page: of models and baselines with intervals, of the paper's rows without."""
    file = io.StringIO()
    writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for table in board.of(ATTENTION):
        for row, ranks in zip(table.rows, table.ranks):
            about = {**_about(table), "kind": "model", "model": printable(row.model), "family": printable(row.family)}
            about |= {"revision": row.revision, "file": row.file}
            about |= dict(zip(("verified", "verified_of"), row.verified or (0, "")))
            for place, cell in row.scores.cells.items():
                if cell is not None and (rank := ranks[place]) is not None and place[0] in _scores(table).means:
                    ranked = {"rank_first": rank[0], "rank_last": rank[1]}
                    writer.writerow(row_in_csv({**about, **_place(place), **_numbers(cell), **ranked}))
        for name in _baselines(table):
            for place, cell in _scores(table).baselines[name].items():
                if cell is not None and place[0] in _scores(table).means:
                    about = {**_about(table), "kind": "baseline", "model": name}
                    writer.writerow(row_in_csv({**about, **_place(place), **_numbers(cell)}))
    for config in _paper_configs(board):
        for name, cells in _paper_rows(config):
            for place, cell in zip(SHOWN, cells):
                if cell is not None:
                    about = {"board": f"{config}.paper", "config": config, "direction": language_of(config).direction}
                    writer.writerow(
                        row_in_csv({**about, "kind": "paper", "model": name, **_place(place), **_numbers(cell)})
                    )
    return file.getvalue()


def _count(number: int, name: str) -> str:
    return f"{number} {name}" + ("" if number == 1 else "s")


def _about(table: BoardTable) -> dict[str, Any]:
    """The values that all rows of a table share in CSV."""
    settings = {
        name: getattr(table.settings, name) for name in ("config", "direction", "data", "labels", "split", "dtype")
    }
    return {"board": table.name, **settings, **{name: table.shared[name] for name in ("functions", "edges")}}


def _baselines(table: BoardTable) -> list[str]:
    """The names of the baselines, the best first."""
    return [name for name in BEST_FIRST if name in kinds_of(table.settings.config)]


def _scores(table: BoardTable) -> AttentionScores:
    """Of the first row; those of baselines are equal for all rows."""
    scores = table.rows[0].scores
    assert isinstance(scores, AttentionScores)
    return scores


def _place(place: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("protocol", "rule", "k"), place))


def _flat(cell: Score) -> list[float | None]:
    """Score, low, high, the same for the difference, and p."""
    none = (None, None, None)
    return [*cell.mean, *(cell.difference or none), cell.p]


def _numbers(cell: Score) -> dict[str, float]:
    names = ("score", "low", "high", "difference", "difference_low", "difference_high", "p")
    return {name: round(value, 4) for name, value in zip(names, _flat(cell)) if value is not None}


def _table(table: BoardTable) -> dict[str, Any]:
    """Data for the page. Each cell, in ten-thousandths: score, low, high, the same for the difference, p, ranks."""
    rows = [
        {
            "name": printable(row.model),
            "revision": row.revision[:12],
            "family": printable(row.family),
            "verified": row.verified,
            "kind": "model",
            "cells": [
                cell and (rank := ranks[place]) and [*_whole(cell), *rank] for place, cell in row.scores.cells.items()
            ],
        }
        for row, ranks in zip(table.rows, table.ranks)
    ]
    rows += [
        {
            "name": name,
            "kind": "baseline",
            "cells": [cell and _whole(cell) for cell in _scores(table).baselines[name].values()],
        }
        for name in _baselines(table)
    ]
    about = {"name": table.name, "config": table.settings.config, "direction": table.settings.direction}
    return {**about, "title": _title(table), "facts": _facts(table), "means": _scores(table).means, "rows": rows}


def _paper_table(config: str) -> dict[str, Any]:
    """The paper's own numbers for the page: from another dataset and other software, so in a separate table."""
    rows = [
        {
            "name": name,
            "kind": "baseline" if name.lower() in BEST_FIRST else "paper",
            "cells": [cell and _whole(cell) for cell in cells],
        }
        for name, cells in _paper_rows(config)
    ]
    return {
        "name": f"{config}.paper",
        "config": config,
        "direction": language_of(config).direction,
        "title": f"{config}: reference, as printed in the paper",
        "facts": f"{paper.source()}. {paper.functions(config):,} {language_of(config).units} of the published dataset, "
        "other software; without intervals, so not ranked",
        "means": ["published"],
        "rows": rows,
    }


def _paper_configs(board: Board) -> list[str]:
    configs = dict.fromkeys(table.settings.config for table in board.of(ATTENTION))
    return [config for config in configs if paper.scores(config, RULES[0])]


def _paper_rows(config: str) -> Iterator[tuple[str, list[Score | None]]]:
    """Models and baselines of the paper: name and, for each of SHOWN that it has, score and difference to the best
    baseline: Combined, or Offset in natural language."""
    by_rule = {rule: paper.scores(config, rule) for rule in RULES}
    for name in dict.fromkeys(name for scores in by_rule.values() for name in scores):
        cells: list[Score | None] = []
        for protocol, rule, k in SHOWN:
            score = by_rule[rule].get(name, {}).get(k) if protocol == "published" else None
            best = by_rule[rule].get("Combined") or by_rule[rule].get("Offset", {})
            if score is None:
                cells.append(None)
            elif name.lower() in BEST_FIRST:
                cells.append(Score(Interval(score)))
            else:
                cells.append(Score(Interval(score), difference=Interval(score - best[k])))
        yield name, cells


def _whole(cell: Score) -> list[int | None]:
    """In ten-thousandths, so that the page, rounding to tenths, shows the same digits as rounding the number itself."""
    return [value if value is None else round(10000 * value) for value in _flat(cell)]


def _details(table: BoardTable) -> dict[str, Any]:
    """The details of rows, in tenths of a percent; an interval is given by its distances from the score."""
    relations = _scores(table).relations
    details = []
    for row in table.rows:
        assert isinstance(row.scores, AttentionScores)
        found = [[_tenths(of.found.get(cell)) for cell in CELLS] for of in row.scores.relations.values()]
        details.append({"facts": _row_facts(row), "found": found})
    return {
        "relations": [[name, *map(int, relation[:4])] for name, relation in relations.items()],
        "combined": [
            [None if cell not in relation.combined else round(10 * relation.combined[cell]) for cell in CELLS]
            for relation in relations.values()
        ],
        "rows": details,
    }


def _tenths(found: ChosenHead | None) -> list[int | None] | None:
    if found is None:
        return None
    value, low, high = found.score
    score = round(10 * value)
    if low is None or high is None:
        return [score, None, None, found.layer, found.head]
    return [score, score - round(10 * low), round(10 * high) - score, found.layer, found.head]


def _row_facts(row: BoardRow) -> list[list[str]]:
    entry = row.entry
    assert isinstance(entry, AttentionEntry)
    ledgers = sorted(entry.ledgers.model_dump().items())
    skipped = ", ".join(f"{count} ({reason})" for reason, count in sorted(entry.skips.items()))
    facts = {
        "signature": entry.signature,
        "revision": row.revision,
        "attention heads": f"{entry.layers} layers of {entry.heads}",
        "functions skipped": skipped or "none",
        "probed again": _verified(row),
        "ledgers": ", ".join(f"{split} SHA-256 {digest}" for split, digest in ledgers),
        "software": ", ".join(f"{name} {version}" for name, version in sorted(entry.versions.items())),
        "file": row.file,
    }
    return [[name, printable(value, most=1000)] for name, value in facts.items()]


def _verified(row: BoardRow) -> str:
    """How much of an entry was probed again, according to the entry."""
    if row.verified is None:
        return "nothing: not sent by codesyntax submit"
    again, of = row.verified
    return f"{again:,} of {of:,} functions of both splits, when codesyntax submit sent it"


def _title(table: BoardTable) -> str:
    settings, functions, edges = table.settings, int(table.shared["functions"]), int(table.shared["edges"])
    units = language_of(settings.config).units
    return f"{settings.config}, {settings.split}, {settings.direction}: {functions:,} {units}, {edges:,} edges"


def _facts(table: BoardTable) -> str:
    """What the rows of a table share, except what its title says."""
    shared = table.shared
    facts = [f"data {table.settings.data}", f"labels {shared['labels']}", shared["dtype"]]
    units = language_of(table.settings.config).units
    facts += [f"{units} of at most {shared['max-length']} sub-tokens of {int(shared['functions of the split']):,}"]
    facts += [f"pooled {shared['pool']}"]
    facts += [f"without predictions of {shared['not-predicted']}"] if "not-predicted" in shared else []
    facts += [f"scoring {shared['scoring']}"]
    functions, edges = (int(shared[f"{name} chosen on"]) for name in ("functions", "edges"))
    facts += [f"held-out heads chosen on {functions:,} {units} of validation, {edges:,} edges"]
    return printable(", ".join(facts))


def _texts(cell: Score | None) -> tuple[str, str, str]:
    """Score, difference and p for Markdown."""
    if cell is None:
        return "", "", ""
    score = f"{cell.mean.value:.1f} [{cell.mean.low:.1f}, {cell.mean.high:.1f}]"
    if cell.difference is None:
        return score, "", ""
    value, low, high = cell.difference
    return score, f"{value:+.1f} [{low:+.1f}, {high:+.1f}]", f"{cell.p:.4f}"


def _share(row: BoardRow) -> str:
    again, of = row.verified or (0, 0)
    return f"{again:,} of {of:,}" if of else "none"


def _rank(rank: tuple[int, int] | None) -> str:
    if rank is None:
        return ""
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]}–{rank[1]}"


def _worse(cell: Score | None) -> float:
    return 0.0 if cell is None else -cell.mean.value


def _markdown(text: str) -> str:
    """Escape foreign text for one cell of a Markdown table."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~-])", r"\\\1", html.escape(printable(text), quote=False))
