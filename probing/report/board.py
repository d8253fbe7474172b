"""A board as a document, and its folder, ready to upload as a Space: pages, Markdown and CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import product
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
from probing.evidence.entry import Score
from probing.evidence.entry_attention import AttentionEntry, AttentionScores, RelationScore
from probing.evidence.entry_masked import ARMS, HEADLINE, TITLES, MaskedEntry, MaskedScores, TypeScore
from probing.publish.board import Board, BoardRow, BoardTable, HubResult
from probing.report import folder
from probing.report.document import COLOURED, Column, Section, Table
from probing.report.folder import MODELS, Report, model_pages
from probing.report.kinds import (
    CODE,
    COUNT,
    DIFFERENCE,
    LINK,
    MARKED,
    NAME,
    NATS,
    PERCENT,
    POINTS,
    RANK,
    SCORE,
)
from probing.report.scored import FILTERS
from probing.report.words import method
from probing.runs.ledger_file import ATTENTION, MASKING
from probing.stats.intervals import FEW_CLUSTERS

TITLE = "CodeSyntax board"

_MASKING = "masking.csv"

_SHOWN = ("jaccard", "restored")
"""The outcomes in a table of models."""

_SHARED = ("config", "data", "labels", "split", "protocol", "rate", "control", "draws", "seed", "parser")
"""The settings of a masking table that it shows."""

INTERVALS = "Percent with 95 % intervals."

_BASELINES = (BEST_BASELINE, *BASELINES[:-1])
"""The baselines, the best one first: `combined` (Shen et al. 2022, section 4)."""

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
    return _OURS | {_MASKING: "board,config,data,labels,"}


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
            parts = _details(table, row) if table.instrument == ATTENTION else _masked_details(table, row)
            details.setdefault(_page_name(row), []).append(Section(_anchor(table), _title(table), parts))
    attention, masked = board.of(ATTENTION), board.of(MASKING)
    links = model_pages(details)
    guided = [ATTENTION] if attention or not masked else []
    guides = [method(f"board {name}") for name in (*guided, *([MASKING] if masked else []))]
    about = " ".join(topic for topic, *_ in guides)
    source = f"{_count(len(board), 'entry', 'entries')}, and {_count(len(board.left_out), 'file', 'files')} left out"
    files = {"board.csv": _scores(board).to_csv()}
    files |= {_MASKING: _masked_scores(masked).to_csv()} if masked else {}
    csv = " and ".join(files)
    files["README.md"] = _SPACE.format(title=TITLE, about=about, source=source, csv=csv)
    return Report(
        command="board",
        source=source,
        title=TITLE,
        sections=[
            *(_models(table, links, table.name in board.from_data) for table in attention),
            *(_paper(config) for config in _in_paper(board)),
            *(_masked_models(table, links) for table in masked),
            *([_on_hub(board)] if board.on_hub else []),
            Section("reading", "How to read this", [text for _, *texts in guides for text in texts]),
            _left_out(board),
        ],
        about=f"{about} All scores: {csv}. The tables as Markdown: board.md.",
        markdown="board.md",
        files=files,
        models={links[name]: (name, sections) for name, sections in details.items()},
    )


# ------------------------------------------------------------------------------------------- what all tables share

_MODEL = [Column("name", LINK), Column("revision", NAME), Column("family")]
_VERIFIED = Column("verified", MARKED)
_ENTRY = [*map(Column, ("first rank", "last rank", "verified", "verified of", "branch or tag", "remarks", "file"))]
"""The first columns of a table on a page, its last one, and the last columns of a CSV file."""


def _anchor(table: BoardTable) -> str:
    """The id of a table on a page."""
    return table.name.replace(".", "-")


def _title(table: BoardTable) -> str:
    settings, shared = table.settings, table.shared
    units = language_of(settings.config).units
    if table.instrument == MASKING:
        return f"{settings.config}, {settings.split}, masking: {_functions(table):,} {units}"
    functions, edges = int(shared["functions"]), int(shared["edges"])
    return f"{settings.config}, {settings.split}, {settings.direction}: {functions:,} {units}, {edges:,} edges"


def _page_name(row: BoardRow) -> str:
    """The title of the page of a row's model."""
    return f"{printable(row.model)}@{row.revision[:12]}"


def _heading(row: BoardRow, links: Mapping[str, str]) -> list[Any]:
    """The model of a row with the link to its page, its revision and family."""
    return [[printable(row.model), links[_page_name(row)]], row.revision[:12], printable(row.family)]


def _rank(ranks: tuple[int, int] | None) -> str | None:
    """A rank, or a range of ranks."""
    return None if ranks is None else "–".join(map(str, dict.fromkeys(ranks)))


def _score(score: Score | None) -> list[Any]:
    """The cells of a score, of what it is compared with, and of the difference."""
    if score is None:
        return [None] * 3
    return [score.mean, score.reference, [*score.difference, score.p] if score.difference else None]


def _best_first(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows of a page by their first score, which is behind the model and its rank."""
    return sorted(rows, key=lambda row: -row[4][0] if row[4] else 0)


def _status(row: BoardRow) -> list[str]:
    """The number of functions that this board ran again, of how many, and with the weights of which branch or tag; and
    what to know before believing the numbers.
    """
    verified = "claimed"
    if row.verified:
        functions, of, reference = row.verified
        verified = f"{functions:,} of {of:,}" + (f", {printable(reference)}" if reference else "")
    return [verified, "; ".join(map(printable, row.remarks))]


def _end(row: BoardRow, ranks: tuple[int, int] | None) -> list[Any]:
    """The cells of `_ENTRY`."""
    return [*(ranks or (None, None)), *(row.verified or (0, None, None)), _status(row)[1], row.file]


def _origin(
    table: BoardTable, row: BoardRow, run: Mapping[str, str], read: Mapping[str, str], ledgers: Mapping[str, str]
) -> Table:
    """A row's settings, digests and file."""
    entry, claimed = row.entry, row.entry.verified
    claim = claimed and f"claims that codesyntax submit ran {claimed.functions:,} of {claimed.of:,} again"
    scores: Any = row.scores
    on_read = ", ".join(f"{name} {score:.1f}" for name, score in scores.on_read.items())
    facts = {
        "signature": entry.signature,
        "revision": row.revision,
        **run,
        "verified by this board": " ".join(_status(row)),
        "verified by the submitter": claim or "none",
        **read,
        "on what it read": on_read or "it read all",
        **ledgers,
        "software": ", ".join(f"{name} {version}" for name, version in sorted(entry.versions.items())),
        "file": row.file,
    }
    rows = [[name, printable(value, most=2000)] for name, value in facts.items()]
    columns = [Column("of the entry", NAME), Column("value", CODE)]
    return Table(f"{_anchor(table)}-origin", "Origin", columns, rows, within="")


def _listed(counts: Mapping[str, int]) -> str:
    """Counts by reason."""
    return ", ".join(f"{count:,} ({reason})" for reason, count in sorted(counts.items()) if count) or "none"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _left_out(board: Board) -> Section:
    columns = [Column("file", CODE), Column("reason")]
    table = Table("left-out", "Files left out", columns, [list(file) for file in board.left_out], within="")
    return Section("left-out", "Left out", [table if board.left_out else "All files were read."])


# -------------------------------------------------------------------------------------------------- attention probes


def _models(table: BoardTable, links: Mapping[str, str], from_data: bool) -> Section:
    """The models of a table and the baselines on the same functions, for each rule and k best first."""
    columns, means = [*FILTERS, *_MODEL], _of(table).means
    for mean in means:
        columns += [Column("rank", RANK, mean), Column("UAS", SCORE, mean), Column("Δ", DIFFERENCE, mean)]
    rows: list[list[Any]] = []
    for rule, k in product(RULES, TABLE_KS):
        places = [(mean, rule, k) for mean in means]
        scored: list[list[Any]] = []
        for row, ranks in zip(table.rows, table.ranks):
            cells = [part for place in places for part in (_rank(ranks[place]), *_mean(row.scores.cells[place]))]
            scored.append([*_heading(row, links), *cells, _status(row)])
        for name, scores in _baselines(table).items():
            cells = [part for place in places for part in (None, *_mean(scores[place]))]
            scored.append([f"{name} baseline", None, None, *cells, None])
        rows += [[rule, k, *row] for row in _best_first(scored)]
    notes = f"{INTERVALS} Δ: the difference to the combined baseline on the same functions. {COLOURED}"
    columns.append(_VERIFIED)
    shown = Table(_anchor(table), "Models and baselines", columns, rows, notes, len(FILTERS), "board.csv")
    return Section(_anchor(table), _title(table), [_facts(table, from_data), shown])


def _mean(score: Score | None) -> list[Any]:
    """The cells of a mean, and of its difference to the combined baseline."""
    mean, _, difference = _score(score)
    return [mean, difference]


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


def _details(table: BoardTable, row: BoardRow) -> list[Table]:
    """A row relation by relation, those that gain most over the combined baseline first, and its origin."""
    entry, units = row.entry, language_of(table.settings.config).units
    assert isinstance(entry, AttentionEntry) and isinstance(row.scores, AttentionScores)
    columns = [*FILTERS, Column("relation", MARKED), *Column.each(COUNT, "edges", units)]
    for protocol in PROTOCOLS:
        columns += [Column("UAS", SCORE, protocol), Column("head", RANK, protocol)]
        columns += [Column("combined", PERCENT, protocol), Column("Δ", POINTS, protocol)]
    rows = []
    for rule, k in product(RULES, TABLE_KS):
        relations = [_relation(name, relation, rule, k) for name, relation in row.scores.relations.items()]
        relations.sort(key=lambda cells: (cells[6] is None, -(cells[6] or 0)))
        rows += [[rule, k, *cells] for cells in relations]
    notes = (
        f"{INTERVALS} Head: layer-head, counted from 0. Combined: the combined baseline. Few functions: fewer than "
        f"{FEW_CLUSTERS}; scores say little and have no interval. Without a head: validation has no such edge."
    )
    key, digests = f"{_anchor(table)}-relations", sorted(entry.digests.items())
    origin = _origin(
        table,
        row,
        {
            "attention heads": f"{entry.layers} layers of {entry.heads}",
            f"{units} skipped": _listed(entry.skips),
        },
        {f"{units} that it could not read": f"{entry.missed:,} of {entry.scored:,}, which count as missed"},
        {"ledgers": ", ".join(f"{split} SHA-256 {digest}" for split, digest in digests)},
    )
    return [Table(key, "Relation by relation", columns, rows, notes, len(FILTERS), within=""), origin]


def _relation(name: str, relation: RelationScore, rule: str, k: str) -> list[Any]:
    marks = ["few functions"] if relation.few_functions else []
    marks += [] if relation.in_mean else ["not in mean"]
    cells: list[Any] = [[name, "; ".join(marks)], relation.edges, relation.functions]
    for protocol in PROTOCOLS:
        found, combined = relation.found.get((protocol, rule, k)), relation.combined.get((protocol, rule, k))
        cells += [None, None] if found is None else [found.score, f"{found.layer}-{found.head}"]
        cells += [combined, None if found is None or combined is None else found.score.value - combined]
    return cells


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
                gain = None if name.lower() in _BASELINES else scores[name][k] - best[k]
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
    columns += _ENTRY
    rows: list[list[Any]] = []
    for table in board.of(ATTENTION):
        means = _of(table).means
        about: list[Any] = [table.name, *(getattr(table.settings, name) for name in texts[1:7])]
        about += [table.shared["functions"], table.shared["edges"]]
        for row, ranks in zip(table.rows, table.ranks):
            kind = ["model", printable(row.model), row.revision, printable(row.family)]
            for place, score in row.scores.cells.items():
                if score is not None and place[0] in means:
                    rows.append([*about, *kind, *place, *_mean(score), *_end(row, ranks[place])])
        for name, scores in _baselines(table).items():
            for place, score in scores.items():
                if score is not None and place[0] in means:
                    rows.append([*about, "baseline", name, None, None, *place, *_mean(score)])
    for config in _in_paper(board):
        about = [f"{config}.paper", config, language_of(config).direction, *[None] * 6, "paper"]
        for rule, k, name, score, gain in _paper_rows(config):
            rows.append([*about, name, None, None, PUBLISHED, rule, k, score, gain])
    return Table("board", "All scores", columns, [row + [None] * (len(columns) - len(row)) for row in rows])


def _of(table: BoardTable) -> AttentionScores:
    """The scores of the first row; those of baselines are equal for all rows."""
    scores = table.rows[0].scores
    assert isinstance(scores, AttentionScores)
    return scores


def _baselines(table: BoardTable) -> dict[str, dict[Any, Score | None]]:
    """The baselines with their scores, the best first."""
    return {name: _of(table).baselines[name] for name in _BASELINES if name in kinds_of(table.settings.config)}


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


# ------------------------------------------------------------------------------------------------------ masked syntax


def _masked_models(table: BoardTable, links: Mapping[str, str]) -> Section:
    """The models of a table with their ranks, best first."""
    columns = [*_MODEL]
    for outcome in _SHOWN:
        title = TITLES[outcome]
        columns += [Column("rank", RANK, title), *Column.each(SCORE, *ARMS, group=title)]
        columns.append(Column("Δ", DIFFERENCE, title))
    columns.append(_VERIFIED)
    rows = []
    for row, ranks in zip(table.rows, table.ranks):
        cells: list[Any] = []
        for outcome in _SHOWN:
            cells += [_rank(ranks[outcome]), *_score(row.scores.cells[outcome])]
        rows.append([*_heading(row, links), *cells, _status(row)])
    units = language_of(table.settings.config).units
    counts = ", ".join(f"{name} ({of.functions:,})" for name, of in sorted(_node_types(table.rows[0]).items()))
    shared = ", ".join(f"{name} {table.shared[name]}" for name in _SHARED if table.shared[name] != "None")
    facts = f"{shared}; mean over each node type ({units}): {counts}."
    notes = f"Means with 95 % intervals. {COLOURED}"
    shown = Table(_anchor(table), "Models", columns, _best_first(rows), notes, within=_MASKING)
    return Section(_anchor(table), _title(table), [printable(facts, most=2000), shown])


def _masked_details(table: BoardTable, row: BoardRow) -> list[Table]:
    """A row by node type and outcome, and its origin."""
    entry = row.entry
    assert isinstance(entry, MaskedEntry)
    columns = [Column("node type", MARKED), *Column.each(COUNT, language_of(table.settings.config).units, "masked")]
    for outcome, title in TITLES.items():
        columns += Column.each(NATS if outcome == "log_probability" else PERCENT, *ARMS, group=title)
        columns += [Column("Δ", DIFFERENCE, title)] if outcome == HEADLINE else []
    rows: list[list[Any]] = []
    for name, of_type in _node_types(row).items():
        mark = "few functions" if of_type.functions < FEW_CLUSTERS else ""
        cells: list[Any] = [[name, mark], of_type.functions, of_type.masked]
        for outcome in TITLES:
            t1, t0, effect = _score(of_type.cells[outcome])
            cells += [t1[0], t0[0], *([effect] if outcome == HEADLINE else [])]
        rows.append(cells)
    run = {"functions skipped": _listed(entry.skips), "left out": _listed(entry.dropped)}
    notes = f"Few functions: fewer than {FEW_CLUSTERS}."
    return [
        Table(f"{_anchor(table)}-node-types", "Node type by node type", columns, rows, notes, within=""),
        _origin(table, row, run, {}, {"ledger": f"SHA-256 {entry.ledger}"}),
    ]


def _masked_scores(tables: Sequence[BoardTable]) -> Table:
    """One row per model, outcome and node type, and one without a node type for their mean, which has the ranks."""
    texts = ["board", *_SHARED, "model", "revision", "family", "outcome", "node type", "functions", "masked"]
    columns = [*map(Column, texts), *Column.each(SCORE, *ARMS), Column("effect", DIFFERENCE), *_ENTRY]
    rows: list[list[Any]] = []
    for table in tables:
        for row, ranks in zip(table.rows, table.ranks):
            about = [table.name, *(printable(table.shared[name]) for name in _SHARED), printable(row.model)]
            about += [row.revision, printable(row.family)]
            masked = sum(of.masked for of in _node_types(row).values())
            for outcome in TITLES:
                mean = [outcome, None, _functions(table), masked, *_score(row.scores.cells[outcome])]
                rows.append([*about, *mean, *_end(row, ranks[outcome])])
                for name, of_type in _node_types(row).items():
                    numbers = [outcome, name, of_type.functions, of_type.masked, *_score(of_type.cells[outcome])]
                    rows.append([*about, *numbers, *_end(row, None)])
    return Table(MASKING, "All scores of masking", columns, rows)


def _node_types(row: BoardRow) -> dict[str, TypeScore]:
    assert isinstance(row.scores, MaskedScores)
    return row.scores.node_types


def _functions(table: BoardTable) -> int:
    return int(table.rows[0].scores.shares.shape[1])
