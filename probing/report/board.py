"""A board as a document, and its folder, ready to upload as a Space: pages, Markdown and CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codesyntax_dataset import paper
from codesyntax_dataset.atomic import os_errors_as_ledger_errors, replace, temporary_folder
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, PROTOCOLS, PUBLISHED, TABLE_KS
from codesyntax_dataset.safe_files import printable
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import kinds_of
from probing.evidence.entry import Entry, Score
from probing.evidence.entry_attention import AttentionEntry, AttentionScores
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.publish.board import Board, HubResult
from probing.publish.tables import BoardRow, BoardTable
from probing.report import board_groups, folder
from probing.report.board_groups import (
    INTERVALS,
    Guide,
    anchor,
    claim,
    heading,
    listed,
    on_read,
    origin,
    page_name,
    rank,
    software,
    status,
)
from probing.report.document import (
    CODE,
    COLOURED,
    COUNT,
    DIFFERENCE,
    LINK,
    MARKED,
    NAME,
    PERCENT,
    POINTS,
    RANK,
    SCORE,
    Column,
    Section,
    Table,
)
from probing.report.folder import MODELS, Report, model_pages
from probing.report.scored import FILTERS
from probing.runs.ledger_file import ATTENTION

TITLE = "CodeSyntax board"

_BEST_FIRST = (BEST_BASELINE, *BASELINES[:-1])
"""Of the baselines, `combined` is the best one (Shen et al. 2022, section 4)."""

_OURS = {
    "README.md": "made by `codesyntax board`",
    "board.csv": "board,config,direction,",
    "board.md": f"# {TITLE}\n",
    "index.html": f"<title>{TITLE}</title>",
}
"""The files of any board, and a text in each that identifies it."""

_SPACE = """---
title: {title}
sdk: static
app_file: index.html
pinned: false
---

# {title}

{about}

It was made by `codesyntax board` from {source}: [the page](index.html), [its tables](board.md), all scores in {csv}.
"""

_GUIDE = Guide(
    """This board shows how well attention heads find the dependents of syntactic relations in code. The score is
    top-k UAS, the mean over relations; fixed offsets and keywords, which need no model, are the baselines.""",
    f"""Tables. Entries share a table if their signatures agree in everything but the model, and if they were scored
    on the same functions. Do not compare scores of different tables: a function may be too long for one tokenizer but
    not for another.

    UAS. Top-k UAS is the percentage of edges whose dependent is among the k tokens to which the chosen head attends
    most. The rules first, last and any say which token of the dependent counts. A model's score is the mean over
    relations; as in the paper, it excludes the relations marked as not in the mean. The 95 % intervals come from a
    bootstrap over functions with the heads held fixed.

    Protocols. Held-out chooses the head of each relation on the validation split and scores it on the test split.
    Published chooses it on the scored data, as in the paper. This is optimistic, and the interval does not include the
    optimism. Relations without edges on validation have no held-out score; a table with such relations also shows the
    published mean over the other relations, which compares with the held-out mean. Beyond-offset is held-out, on the
    edges that the best offset of their relation misses; its baseline is the next best offset or keyword on them.

    Rank. A rank is a range over all models of the table. A model ranks below the models that are better, and above the
    models that are worse, by a paired permutation test over the table's functions (5 %, Holm's correction for all pairs
    of a table, p bounded from above). It is tied with all others, whether or not intervals overlap. Filters do not
    change ranks. Baselines and the paper's models are not ranked.

    Δ. The difference to the combined baseline, which is the better of offset and keyword for each relation, by the same
    protocol, in the same direction, on the same functions. Its p is two-sided, by a paired permutation test over
    functions, and not corrected for the number of models.

    Verified. The makers of this board rebuilt the entry from its ledgers and ran this many functions of both splits
    again. Every other entry is claimed: only its submitter knows where its numbers come from. A forged entry that gains
    more than half a point in any mean is verified once in 20 times; the score of a single relation may gain more.

    Whole split. Every score is over all functions of a split, the same for all models. A function that a model cannot
    read counts as missed. The page of a model also gives its score on the functions that it reads.

    Baselines. The data determine them. If a table says so, this board has computed them; otherwise most of its entries
    claim them.

    Reference. The paper's rows are its printed numbers. They come from another dataset and other software, and
    therefore have a table of their own. {paper.source()}.

    Conflicts and remarks. If a table has several entries for one model and revision, the verified ones count, or all
    of them if none is verified. If their numbers differ, all are shown as in conflict. A remark marks models with the
    ledger or the numbers of another model, or with a name that looks like another.""",
)


def save(board: Board, output: str | os.PathLike) -> Path:
    """Write the page, a page for each model, `board.md`, CSV files and the Space's `README.md`; return the page's path.

    An existing board is replaced; other files are kept. Raises LedgerError, before anything is written, if a file of
    one of these names exists that `save` did not write.
    """
    output = Path(output)
    check_place(output)
    with os_errors_as_ledger_errors(output), temporary_folder(output) as work:
        folder.write(document(board), work / "board")
        for name in (*_ours(), MODELS):
            if (work / "board" / name).exists():
                replace(work / "board" / name, output / name)
            elif (output / name).exists():  # of an earlier board, which had other entries
                (output / name).rename(work / name)
    return output / "index.html"


def _ours() -> dict[str, str]:
    """The files of all boards, also those on instruments other than attention."""
    return _OURS | {
        board_groups.file_of(name): "board,config,data,labels," for name in Entry.kinds if name != ATTENTION
    }


def check_place(output: str | os.PathLike) -> None:
    """Raise LedgerError if `save` would replace a file that it did not write."""
    output = Path(output)
    with os_errors_as_ledger_errors(output):
        check_owned(output / MODELS, "board", only=[])
        pages = {f"{MODELS}/{path.name}": "<code>codesyntax board</code>" for path in (output / MODELS).glob("*")}
        for name, mark in (_ours() | pages).items():
            check_owned(output, "board", (name, mark), only=[name])


def document(board: Board) -> Report:
    """A section for each table of entries that compare, and a page with the details of each model."""
    details: dict[str, list[Section]] = {}
    for table in board.tables:
        for row in table.rows:
            section = _details(table, row) if table.instrument == ATTENTION else board_groups.details(table, row)
            details.setdefault(page_name(row), []).append(section)
    attention = board.of(ATTENTION)
    others = {name: board.of(name) for name in dict.fromkeys(table.instrument for table in board.tables)}
    others.pop(ATTENTION, None)
    links = model_pages(details)
    guides = [_GUIDE] if attention or not others else []
    guides += [board_groups.GUIDES[name] for name in others if name in board_groups.GUIDES]
    about = " ".join(guide.topic for guide in guides)
    source = f"{_count(len(board), 'entry', 'entries')}, and {_count(len(board.left_out), 'file', 'files')} left out"
    files = {"board.csv": _scores(board).to_csv()}
    files |= {board_groups.file_of(name): board_groups.scores(tables).to_csv() for name, tables in others.items()}
    csv = " and ".join(files)
    files["README.md"] = _SPACE.format(title=TITLE, about=about, source=source, csv=csv)
    return Report(
        command="board",
        source=source,
        title=TITLE,
        sections=[
            *(_table(table, links, table.name in board.from_data) for table in attention),
            *(_paper(config) for config in _in_paper(board)),
            *(board_groups.section(table, links) for tables in others.values() for table in tables),
            *([_on_hub(board)] if board.on_hub else []),
            Section("reading", "How to read this", [text for guide in guides for text in guide.texts]),
            _left_out(board),
        ],
        about=f"{about} All scores: {csv}. The tables as Markdown: board.md.",
        markdown="board.md",
        files=files,
        models={links[name]: (name, sections) for name, sections in details.items()},
    )


def _table(table: BoardTable, links: Mapping[str, str], from_data: bool) -> Section:
    """The models of a table and the baselines on the same functions, for each rule and k best first."""
    columns = [*FILTERS, Column("name", LINK), Column("revision", NAME), Column("family")]
    means = _of(table).means
    for mean in means:
        columns += [Column("rank", RANK, mean), Column("UAS", SCORE, mean), Column("Δ", DIFFERENCE, mean)]
    columns.append(Column("verified", MARKED))
    rows = []
    for rule in RULES:
        for k in TABLE_KS:
            scored: list[list[Any]] = []
            places = [(mean, rule, k) for mean in means]
            for row, ranks in zip(table.rows, table.ranks):
                cells = [part for place in places for part in (rank(ranks[place]), *_mean(row.scores.cells[place]))]
                scored.append([*heading(row, links), *cells, status(row)])
            for name, scores in _baselines(table).items():
                cells = [part for place in places for part in (None, *_mean(scores[place]))]
                scored.append([f"{name} baseline", None, None, *cells, None])
            scored.sort(key=lambda row: -row[4][0] if row[4] else 0)
            rows += [[rule, k, *row] for row in scored]
    notes = f"{INTERVALS} Δ: the difference to the combined baseline on the same functions. {COLOURED}"
    shown = Table(anchor(table), "Models and baselines", columns, rows, notes, len(FILTERS), "board.csv")
    return Section(anchor(table), _title(table), [_facts(table, from_data), shown])


def _mean(score: Score | None) -> list[Any]:
    """The cells of a mean, and of its difference to the combined baseline."""
    if score is None:
        return [None, None]
    return [[*score.mean], None if score.difference is None else [*score.difference, score.p]]


def _details(table: BoardTable, row: BoardRow) -> Section:
    """A row relation by relation, those that gain most over the combined baseline first, and its origin."""
    entry, units = row.entry, language_of(table.settings.config).units
    assert isinstance(entry, AttentionEntry)
    columns = [*FILTERS, Column("relation", MARKED), Column("edges", COUNT), Column(units, COUNT)]
    for protocol in PROTOCOLS:
        columns += [Column("UAS", SCORE, protocol), Column("head", RANK, protocol)]
        columns += [Column("combined", PERCENT, protocol), Column("Δ", POINTS, protocol)]
    rows = [
        [rule, k, *relation] for rule in RULES for k in TABLE_KS for relation in _relations(_scores_of(row), rule, k)
    ]
    facts = {
        "signature": entry.signature,
        "revision": row.revision,
        "attention heads": f"{entry.layers} layers of {entry.heads}",
        f"{units} skipped": listed(entry.skips),
        "verified by this board": " ".join(status(row)),
        "verified by the submitter": claim(row),
        f"{units} that it could not read": f"{entry.missed:,} of {entry.scored:,}, which count as missed",
        "on what it read": on_read(_scores_of(row).on_read),
        "ledgers": ", ".join(
            f"{split} SHA-256 {digest}" for split, digest in sorted(entry.ledgers.model_dump().items())
        ),
        "software": software(entry.versions),
        "file": row.file,
    }
    notes = (
        f"{INTERVALS} Head: layer-head, counted from 0. Combined: the combined baseline. Few functions: fewer than "
        f"{FEW_FUNCTIONS}; scores say little and have no interval. Without a head: validation has no such edge."
    )
    key = anchor(table)
    relations = Table(f"{key}-relations", "Relation by relation", columns, rows, notes, len(FILTERS), within="")
    return Section(key, _title(table), [relations, origin(key, facts)])


def _relations(scores: AttentionScores, rule: str, k: str) -> list[list[Any]]:
    rows = []
    for name, relation in scores.relations.items():
        marks = ["few functions"] if relation.few_functions else []
        marks += [] if relation.in_mean else ["not in mean"]
        cells: list[Any] = [[name, "; ".join(marks)], relation.edges, relation.functions]
        for protocol in PROTOCOLS:
            found, combined = relation.found.get((protocol, rule, k)), relation.combined.get((protocol, rule, k))
            cells += [None, None] if found is None else [[*found.score], f"{found.layer}-{found.head}"]
            cells += [combined, None if found is None or combined is None else found.score.value - combined]
        rows.append(cells)
    return sorted(rows, key=lambda cells: (cells[6] is None, -(cells[6] or 0)))


def _paper(config: str) -> Section:
    """The paper's own numbers, in a table of their own: they are from another dataset and other software."""
    columns = [*FILTERS, Column("name"), Column("UAS", PERCENT, PUBLISHED), Column("Δ", POINTS, PUBLISHED)]
    key, title = f"{config}-paper", f"{config}: reference, as printed in the paper"
    facts = (
        f"{paper.source()}. {paper.functions(config):,} {language_of(config).units} of the published dataset, other "
        "software; without intervals, so not ranked."
    )
    return Section(
        key,
        title,
        [facts, Table(key, "Models and baselines", columns, _paper_rows(config), "", len(FILTERS), "board.csv")],
    )


def _paper_rows(config: str) -> list[list[Any]]:
    """Rule, k, name, score, and the difference to the best baseline: Combined, or Offset in natural language."""
    rows: list[list[Any]] = []
    for rule in RULES:
        scores = paper.scores(config, rule)
        best = scores.get("Combined") or scores.get("Offset", {})
        for k in TABLE_KS:
            for name in sorted((name for name in scores if k in scores[name]), key=lambda name: -scores[name][k]):
                gain = None if name.lower() in _BEST_FIRST else scores[name][k] - best[k]
                rows.append([rule, k, name, scores[name][k], gain])
    return rows


def _in_paper(board: Board) -> list[str]:
    configs = dict.fromkeys(table.settings.config for table in board.of(ATTENTION))
    return [config for config in configs if paper.scores(config, RULES[0])]


def _scores(board: Board) -> Table:
    """One row per score of the page: of models and baselines with intervals, of the paper's rows without."""
    texts = ["board", "config", "direction", "data", "labels", "split", "dtype", "functions", "edges", "kind", "model"]
    texts += ["revision", "family", "protocol", "rule", "k"]
    columns = [*map(Column, texts), Column("score", SCORE), Column("difference", DIFFERENCE)]
    columns += map(Column, ("first rank", "last rank", "verified", "verified of", "remarks", "file"))
    rows: list[list[Any]] = []
    for table in board.of(ATTENTION):
        means = _of(table).means
        about: list[Any] = [table.name, *(getattr(table.settings, name) for name in texts[1:7])]
        about += [table.shared["functions"], table.shared["edges"]]
        for row, ranks in zip(table.rows, table.ranks):
            kind = ["model", printable(row.model), row.revision, printable(row.family)]
            end = [*(row.verified or (0, None)), status(row)[1], row.file]
            for place, score in row.scores.cells.items():
                if score is not None and place[0] in means:
                    rows.append([*about, *kind, *place, *_mean(score), *(ranks[place] or (None, None)), *end])
        for name, scores in _baselines(table).items():
            for place, score in scores.items():
                if score is not None and place[0] in means:
                    rows.append([*about, "baseline", name, None, None, *place, *_mean(score)])
    for config in _in_paper(board):
        about = [f"{config}.paper", config, language_of(config).direction, *[None] * 6, "paper"]
        for rule, k, name, score, gain in _paper_rows(config):
            rows.append([*about, name, None, None, PUBLISHED, rule, k, score, gain])
    return Table("board", "All scores", columns, [row + [None] * (len(columns) - len(row)) for row in rows])


def _scores_of(row: BoardRow) -> AttentionScores:
    assert isinstance(row.scores, AttentionScores)
    return row.scores


def _of(table: BoardTable) -> AttentionScores:
    """The scores of the first row; those of baselines are equal for all rows."""
    return _scores_of(table.rows[0])


def _baselines(table: BoardTable) -> dict[str, dict[Any, Score | None]]:
    """The baselines with their scores, the best first."""
    return {name: _of(table).baselines[name] for name in _BEST_FIRST if name in kinds_of(table.settings.config)}


def _on_hub(board: Board) -> Section:
    columns = [Column("rank", RANK), Column("model", NAME), Column("value", SCORE), Column("badge")]
    columns += [Column("evidence on this board", CODE), Column("notes", CODE)]
    badges = {True: "verified by the Hub's jobs", False: "sent by somebody"}
    rows = [[one.rank, one.model, one.value, badges[one.badge], _evidence(one), one.notes] for one in board.on_hub]
    missing = sum(not one.agrees for one in board.on_hub)
    text = (
        f"The Hub lists {_count(len(rows), 'result', 'results')}. Nothing on this board supports {missing} of them: "
        "the model has no entry with that signature, or its entry has another number."
    )
    return Section("hub", "Results on the Hub", [text, Table("hub", "The Hub's own list", columns, rows)])


def _evidence(result: HubResult) -> str:
    if result.row is None:
        return "none"
    if not result.agrees:
        return f"none: another number in {result.row.file}"
    return f"{'verified' if result.row.verified else 'claimed'}: {result.row.file}"


def _left_out(board: Board) -> Section:
    columns = [Column("file", CODE), Column("reason")]
    table = Table("left-out", "Files left out", columns, [list(file) for file in board.left_out], within="")
    return Section("left-out", "Left out", [table if board.left_out else "All files were read."])


def _title(table: BoardTable) -> str:
    settings, units = table.settings, language_of(table.settings.config).units
    functions, edges = (int(table.shared[name]) for name in ("functions", "edges"))
    return f"{settings.config}, {settings.split}, {settings.direction}: {functions:,} {units}, {edges:,} edges"


def _facts(table: BoardTable, from_data: bool) -> str:
    """The settings that the rows of a table share, except those in its title."""
    shared, units = table.shared, language_of(table.settings.config).units
    facts = [f"data {table.settings.data}", f"labels {shared['labels']}", shared["dtype"]]
    facts += [f"{units} of at most {shared['max-length']} sub-tokens of {int(shared['functions of the split']):,}"]
    facts += [f"pooled {shared['pool']}"]
    facts += [f"without predictions of {shared['not-predicted']}"] if "not-predicted" in shared else []
    facts += [f"scoring {shared['scoring']}"]
    facts += [f"held-out heads chosen on {units} of validation with labels {shared['labels chosen on']}"]
    facts += ["baselines computed from the data" if from_data else "baselines as most entries claim them"]
    return f"{printable(', '.join(facts))}."


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
