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
from codesyntax_dataset.protocol import (
    BASELINES,
    BEST_BASELINE,
    BEYOND_OFFSET,
    HELD_OUT,
    PROTOCOLS,
    PUBLISHED,
    TABLE_KS,
)
from codesyntax_dataset.safe_files import printable
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.baselines import kinds_of
from probing.evidence.protocols import SAME_RELATIONS, TABLE_MEASURES
from probing.evidence.submission import Tables
from probing.evidence.submission_attention import AttentionSubmission
from probing.evidence.submission_masked import HEADLINE, TITLES, MaskedSubmission, masked
from probing.instruments.masking.hits import ARMS, T0
from probing.publish.board import Board, BoardRow, BoardTable, HubResult
from probing.report import folder
from probing.report.document import COLOURED, Column, Section, Table, bounded, tested
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
from probing.stats.intervals import FEW_CLUSTERS, Estimate

BOARD_TITLE = "CodeSyntax board"

_MASKING = "masking.csv"

_SHOWN = ("jaccard", "restored")
"""The outcomes in a table of models."""

_SHARED = (
    "config",
    "data",
    "labels",
    "split",
    "protocol",
    "rate",
    "control",
    "draws",
    "seed",
    "parser",
)
"""The settings of a masking table that it shows."""

INTERVALS = "Percent with 95 % intervals."

_BASELINES = (BEST_BASELINE, *BASELINES[:-1])
"""The baselines, the best one first: `combined` (Shen et al. 2022, section 4)."""

_BOARD_FILES = {
    "README.md": "made by `codesyntax board`",
    "board.csv": "board,config,direction,",
    "board.md": f"# {BOARD_TITLE}\n",
    "index.html": f"<title>{BOARD_TITLE}</title>",
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
    """Write the page, a page for each model, `board.md`, CSV files and the Space's `README.md`.

    An existing board is replaced; other files are kept.

    Args:
        board: what `probing.publish.board.read` returns.
        output: the folder to write to.

    Returns:
        The path of the page.

    Raises:
        LedgerError: before anything is written, if a file of one of these names exists that `save`
        did not write.
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
    return _BOARD_FILES | {_MASKING: "board,config,data,labels,"}


def check_place(output: str | os.PathLike) -> None:
    """Raise LedgerError if `save` would replace a file that it did not write."""
    output = Path(output)
    with os_errors_as_ledger_errors(output):
        check_owned(output / MODELS, "board", only=[])
        pages = {
            f"{MODELS}/{path.name}": "<code>codesyntax board</code>"
            for path in (output / MODELS).glob("*")
        }
        for name, mark in (_ours() | pages).items():
            check_owned(output, "board", (name, mark), only=[name])


def document(board: Board) -> Report:
    """A section for each table of entries that compare, and a page with the details of each
    model."""
    details: dict[str, list[Section]] = {}
    for table in board.tables:
        for row in table.rows:
            parts = (
                _details(table, row)
                if table.instrument == ATTENTION
                else _masked_details(table, row)
            )
            details.setdefault(_page_name(row), []).append(
                Section(_anchor(table), _title(table), parts)
            )
    attention, masked = board.of(ATTENTION), board.of(MASKING)
    links = model_pages(details)
    guided = [ATTENTION] if attention or not masked else []
    guides = [method(f"board {name}") for name in (*guided, *([MASKING] if masked else []))]
    about = " ".join(topic for topic, *_ in guides)
    source = f"{_count(len(board), 'entry', 'entries')}, and {_count(len(board.left_out), 'file', 'files')} left out"
    files = {"board.csv": _scores(board).to_csv()}
    files |= {_MASKING: _masked_scores(masked).to_csv()} if masked else {}
    csv = " and ".join(files)
    files["README.md"] = _SPACE.format(title=BOARD_TITLE, about=about, source=source, csv=csv)
    return Report(
        command="board",
        source=source,
        title=BOARD_TITLE,
        sections=[
            *(_models(table, links, table.name in board.from_data) for table in attention),
            *(_paper(config) for config in _in_paper(board)),
            *(_masked_models(table, links) for table in masked),
            *([_on_hub(board)] if board.on_hub else []),
            Section(
                "reading", "How to read this", [text for _, *texts in guides for text in texts]
            ),
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
_ENTRY = [
    *map(
        Column,
        ("first rank", "last rank", "verified", "verified of", "branch or tag", "remarks", "file"),
    )
]
"""The first columns of a table on a page, its last one, and the last columns of a CSV file."""


def _anchor(table: BoardTable) -> str:
    """The id of a table on a page."""
    return table.name.replace(".", "-")


def _title(table: BoardTable) -> str:
    settings, shared = table.settings, table.shared
    units = language_of(settings.config).units
    if table.instrument == MASKING:
        return (
            f"{settings.config}, {settings.split}, masking: {table.rows[0].entry.scored:,} {units}"
        )
    functions, edges = int(shared["functions"]), int(shared["edges"])
    return f"{settings.config}, {settings.split}, {settings.direction}: {functions:,} {units}, {edges:,} edges"


def _page_name(row: BoardRow) -> str:
    """The title of the page of a row's model."""
    return f"{printable(row.model)}@{row.revision[:12]}"


def _heading(row: BoardRow, links: Mapping[str, str]) -> list[Any]:
    """The model of a row with the link to its page, its revision and family."""
    return [
        [printable(row.model), links[_page_name(row)]],
        row.revision[:12],
        printable(row.family),
    ]


def _rank(ranks: tuple[int, int] | None) -> str | None:
    """A rank, or a range of ranks."""
    return None if ranks is None else "–".join(map(str, dict.fromkeys(ranks)))


def _bounded(estimate: Estimate | None) -> Any:
    return None if estimate is None else bounded(estimate)


def _tested(estimate: Estimate | None) -> Any:
    return None if estimate is None else tested(estimate)


def _best_first(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows of a page by their first score, which is behind the model and its rank."""
    return sorted(rows, key=lambda row: -row[4][0] if row[4] else 0)


def _status(row: BoardRow) -> list[str]:
    """The number of functions that this board ran again, of how many, and with the weights of which
    branch or tag; and what to know before believing the numbers.
    """
    verified = "claimed"
    if row.verified:
        functions, total, reference = row.verified
        verified = f"{functions:,} of {total:,}" + (
            f", {printable(reference)}" if reference else ""
        )
    return [verified, "; ".join(map(printable, row.remarks))]


def _end(row: BoardRow, ranks: tuple[int, int] | None) -> list[Any]:
    """The cells of `_ENTRY`."""
    return [*(ranks or (None, None)), *(row.verified or (0, None, None)), _status(row)[1], row.file]


def _origin(
    table: BoardTable,
    row: BoardRow,
    run: Mapping[str, str],
    read: Mapping[str, str],
    ledgers: Mapping[str, str],
) -> Table:
    """A row's settings, digests and file."""
    entry, claimed = row.entry, row.entry.verified
    claim = (
        claimed
        and f"claims that codesyntax submit ran {claimed.functions:,} of {claimed.total:,} again"
    )
    on_read = ", ".join(f"{name} {score:.1f}" for name, score in entry.on_read.items())
    facts = {
        "signature": entry.signature,
        "revision": row.revision,
        **run,
        "verified by this board": " ".join(_status(row)),
        "verified by the submitter": claim or "none",
        **read,
        "on what it read": on_read or "it read all",
        **ledgers,
        "software": ", ".join(
            f"{name} {version}" for name, version in sorted(entry.versions.items())
        ),
        "file": row.file,
    }
    rows = [[name, printable(value, most=2000)] for name, value in facts.items()]
    columns = [Column("of the entry", NAME), Column("value", CODE)]
    return Table(f"{_anchor(table)}-origin", "Origin", columns, rows, within="")


def _listed(counts: Mapping[str, int]) -> str:
    """Counts by reason."""
    return (
        ", ".join(f"{count:,} ({reason})" for reason, count in sorted(counts.items()) if count)
        or "none"
    )


def _count(number: int, noun: str, plural: str) -> str:
    return f"{number} {noun if number == 1 else plural}"


def _left_out(board: Board) -> Section:
    columns = [Column("file", CODE), Column("reason")]
    table = Table(
        "left-out", "Files left out", columns, [list(file) for file in board.left_out], within=""
    )
    return Section("left-out", "Left out", [table if board.left_out else "All files were read."])


# -------------------------------------------------------------------------------------------------- attention probes


def _models(table: BoardTable, links: Mapping[str, str], from_data: bool) -> Section:
    """The models of a table and the baselines on the same functions, for each rule and k best
    first."""
    columns, means = [*FILTERS, *_MODEL], _means(table)
    for mean in means:
        columns += [
            Column("rank", RANK, mean),
            Column("UAS", SCORE, mean),
            Column("Δ", DIFFERENCE, mean),
        ]
    rows: list[list[Any]] = []
    baselines = _baselines(table)
    for rule, k in product(RULES, TABLE_KS):
        cells = [(mean, rule, k) for mean in means]
        scored: list[list[Any]] = []
        for row, ranks in zip(table.rows, table.ranks):
            line = [*_heading(row, links)]
            for cell in cells:
                line += [_rank(ranks.get(cell)), *_mean(row.means, row.differences, cell)]
            scored.append([*line, _status(row)])
        for name, scores in baselines.items():
            line = [f"{name} baseline", None, None]
            for cell in cells:
                line += [None, *_mean(scores, {}, cell)]
            scored.append([*line, None])
        rows += [[rule, k, *row] for row in _best_first(scored)]
    notes = (
        f"{INTERVALS} Δ: the difference to the combined baseline on the same functions. {COLOURED}"
    )
    columns.append(_VERIFIED)
    shown = Table(
        _anchor(table), "Models and baselines", columns, rows, notes, len(FILTERS), "board.csv"
    )
    return Section(_anchor(table), _title(table), [_facts(table, from_data), shown])


def _mean(
    means: Mapping[Any, Estimate], differences: Mapping[Any, Estimate], cell: Any
) -> list[Any]:
    """The cells of a mean, and of its difference to the combined baseline."""
    return [_bounded(means.get(cell)), _tested(differences.get(cell))]


def _means(table: BoardTable) -> tuple[str, ...]:
    """The means to show: both protocols, SAME_RELATIONS between them if *held-out* lacks relations,
    and any beyond offsets."""
    tables = table.rows[0].tables
    lacks = set(tables[PUBLISHED].counted) - set(tables[HELD_OUT].names)
    both = (HELD_OUT, SAME_RELATIONS, PUBLISHED) if lacks else PROTOCOLS
    return (*both, BEYOND_OFFSET) if BEYOND_OFFSET in tables else both


def _facts(table: BoardTable, from_data: bool) -> str:
    """The settings that the rows of a table share, except those in its title."""
    shared, units = table.shared, language_of(table.settings.config).units
    facts = [f"data {table.settings.data}", f"labels {shared['labels']}", shared["dtype"]]
    facts += [
        f"{units} of at most {shared['max-length']} sub-tokens of {int(shared['functions of the split']):,}"
    ]
    facts += [f"pooled {shared['pool']}"]
    facts += (
        [f"without predictions of {shared['not-predicted']}"] if "not-predicted" in shared else []
    )
    facts += [f"scoring {shared['scoring']}"]
    facts += [
        f"held-out heads chosen on {units} of validation with labels {shared['labels chosen on']}"
    ]
    facts += [
        "baselines computed from the data" if from_data else "baselines as most entries claim them"
    ]
    return f"{printable(', '.join(facts))}."


def _details(table: BoardTable, row: BoardRow) -> list[Table]:
    """A row relation by relation, those that gain most over the combined baseline first, and its
    origin."""
    entry, units = row.entry, language_of(table.settings.config).units
    assert isinstance(entry, AttentionSubmission)
    columns = [*FILTERS, Column("relation", MARKED), *Column.each(COUNT, "edges", units)]
    for protocol in PROTOCOLS:
        columns += [Column("UAS", SCORE, protocol), Column("head", RANK, protocol)]
        columns += [Column("combined", PERCENT, protocol), Column("Δ", POINTS, protocol)]
    rows, relations = [], _relations(entry, row.tables)
    for (rule, k), cells in zip(TABLE_MEASURES, relations):
        cells.sort(key=lambda row: (row[6] is None, -(row[6] or 0)))
        rows += [[rule, str(k), *of_relation] for of_relation in cells]
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
        {
            f"{units} that it could not read": f"{entry.missed:,} of {entry.scored:,}, which count as missed"
        },
        {"ledgers": ", ".join(f"{split} SHA-256 {digest}" for split, digest in digests)},
    )
    return [
        Table(key, "Relation by relation", columns, rows, notes, len(FILTERS), within=""),
        origin,
    ]


def _relations(entry: AttentionSubmission, tables: Tables) -> list[list[list[Any]]]:
    """By each rule and k, the cells of each relation."""
    rows: list[list[list[Any]]] = [[] for _ in TABLE_MEASURES]
    scores = {name: tables[name].by_group(entry.SYSTEM) for name in PROTOCOLS}
    rivals = {name: tables[name].scores(entry.RIVAL) for name in PROTOCOLS}
    for name, group in tables[PUBLISHED].groups.items():
        marks = ["few functions"] if group.few else []
        marks += ["not in mean"] if name in NOT_IN_MEAN else []
        for measure, cells in enumerate(rows):
            row: list[Any] = [[name, "; ".join(marks)], group.total, len(group.n)]
            for protocol in PROTOCOLS:
                if name in tables[protocol].groups:
                    column = tables[protocol].names.index(name)
                    score, rival = (
                        scores[protocol].at(measure, column),
                        float(rivals[protocol][measure, column]),
                    )
                    row += [
                        bounded(score),
                        entry.head(protocol, column, measure),
                        rival,
                        score.value - rival,
                    ]
                else:
                    row += [None] * 4
            cells.append(row)
    return rows


def _paper(config: str) -> Section:
    """The paper's own numbers, in a table of their own: they are from another dataset and other
    software."""
    columns = [
        *FILTERS,
        Column("name"),
        Column("UAS", PERCENT, PUBLISHED),
        Column("Δ", POINTS, PUBLISHED),
    ]
    key, title = f"{config}-paper", f"{config}: reference, as printed in the paper"
    facts = (
        f"{paper.source()}. {paper.functions(config):,} {language_of(config).units} of the published dataset, other "
        "software; without intervals, so not ranked."
    )
    return Section(
        key,
        title,
        [
            facts,
            Table(
                key,
                "Models and baselines",
                columns,
                _paper_rows(config),
                "",
                len(FILTERS),
                "board.csv",
            ),
        ],
    )


def _paper_rows(config: str) -> list[list[Any]]:
    """Rule, k, name, score, and the difference to the best baseline: Combined, or Offset in natural
    language."""
    rows: list[list[Any]] = []
    for rule in RULES:
        scores = paper.scores(config, rule)
        best = scores.get("Combined") or scores.get("Offset", {})
        for k in TABLE_KS:
            for name in sorted(
                (name for name in scores if k in scores[name]), key=lambda name: -scores[name][k]
            ):
                gain = None if name.lower() in _BASELINES else scores[name][k] - best[k]
                rows.append([rule, k, name, scores[name][k], gain])
    return rows


def _in_paper(board: Board) -> list[str]:
    configs = dict.fromkeys(table.settings.config for table in board.of(ATTENTION))
    return [config for config in configs if paper.scores(config, RULES[0])]


def _scores(board: Board) -> Table:
    """One row per score of the page: of models and baselines with intervals, of the paper's rows
    without."""
    texts = [
        "board",
        "config",
        "direction",
        "data",
        "labels",
        "split",
        "dtype",
        "functions",
        "edges",
        "kind",
        "model",
    ]
    texts += ["revision", "family", "protocol", "rule", "k"]
    columns = [*map(Column, texts), Column("score", SCORE), Column("difference", DIFFERENCE)]
    columns += _ENTRY
    rows: list[list[Any]] = []
    for table in board.of(ATTENTION):
        means = _means(table)
        about: list[Any] = [table.name, *(getattr(table.settings, name) for name in texts[1:7])]
        about += [table.shared["functions"], table.shared["edges"]]
        for row, ranks in zip(table.rows, table.ranks):
            kind = ["model", printable(row.model), row.revision, printable(row.family)]
            for cell in row.means:
                if cell[0] in means:
                    scores = _mean(row.means, row.differences, cell)
                    rows.append([*about, *kind, *cell, *scores, *_end(row, ranks[cell])])
        for name, of_baseline in _baselines(table).items():
            for cell in of_baseline:
                if cell[0] in means:
                    scores = _mean(of_baseline, {}, cell)
                    rows.append([*about, "baseline", name, None, None, *cell, *scores])
    for config in _in_paper(board):
        about = [f"{config}.paper", config, language_of(config).direction, *[None] * 6, "paper"]
        for rule, k, name, score, gain in _paper_rows(config):
            rows.append([*about, name, None, None, PUBLISHED, rule, k, score, gain])
    return Table(
        "board", "All scores", columns, [row + [None] * (len(columns) - len(row)) for row in rows]
    )


def _baselines(table: BoardTable) -> dict[str, dict[Any, Estimate]]:
    """The baselines with their scores, the best first; they are equal for all rows. Beyond offsets,
    the combined one alone is shown."""
    entry = table.rows[0].baselines
    means = entry.means(entry.tables)
    scores = {}
    for name in (name for name in _BASELINES if name in kinds_of(table.settings.config)):
        shown = {
            mean: hits
            for mean, hits in means.items()
            if name == BEST_BASELINE or mean != BEYOND_OFFSET
        }
        scores[name] = entry.estimates(shown, name)
    return scores


def _on_hub(board: Board) -> Section:
    columns = [Column("rank", RANK), Column("model", NAME), Column("value", SCORE), Column("badge")]
    columns += [Column("evidence on this board", CODE), Column("notes", CODE)]
    badges = {True: "verified by the Hub's jobs", False: "sent by somebody"}
    rows = [
        [
            result.rank,
            result.model,
            result.value,
            badges[result.badge],
            _evidence(result),
            result.notes,
        ]
        for result in board.on_hub
    ]
    missing = sum(not result.agrees for result in board.on_hub)
    text = (
        f"The Hub lists {_count(len(rows), 'result', 'results')}. Nothing on this board supports {missing} of them: "
        "the model has no entry with that signature, or its entry has another number."
    )
    return Section(
        "hub", "Results on the Hub", [text, Table("hub", "The Hub's own list", columns, rows)]
    )


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
        t0 = row.entry.scores(T0)
        for outcome in _SHOWN:
            scores = [_bounded(row.means[outcome]), _bounded(t0[outcome])]
            cells += [_rank(ranks[outcome]), *scores, _tested(row.differences[outcome])]
        rows.append([*_heading(row, links), *cells, _status(row)])
    units = language_of(table.settings.config).units
    hits = table.rows[0].tables[MASKING]
    counts = ", ".join(f"{name} ({len(group.n):,})" for name, group in sorted(hits.groups.items()))
    shared = ", ".join(
        f"{name} {table.shared[name]}" for name in _SHARED if table.shared[name] != "None"
    )
    facts = f"{shared}; mean over each node type ({units}): {counts}."
    notes = f"Means with 95 % intervals. {COLOURED}"
    shown = Table(_anchor(table), "Models", columns, _best_first(rows), notes, within=_MASKING)
    return Section(_anchor(table), _title(table), [printable(facts, most=2000), shown])


def _masked_details(table: BoardTable, row: BoardRow) -> list[Table]:
    """A row by node type and outcome, and its origin."""
    entry = row.entry
    assert isinstance(entry, MaskedSubmission)
    hits = row.tables[MASKING]
    columns = [
        Column("node type", MARKED),
        *Column.each(COUNT, language_of(table.settings.config).units, "masked"),
    ]
    for outcome, title in TITLES.items():
        columns += Column.each(
            NATS if outcome == "log_probability" else PERCENT, *ARMS, group=title
        )
        columns += [Column("Δ", DIFFERENCE, title)] if outcome == HEADLINE else []
    rows: list[list[Any]] = []
    for name, outcomes in entry.by_type(row.tables).items():
        group = hits.groups[name]
        cells: list[Any] = [
            [name, "few functions" if group.few else ""],
            len(group.n),
            masked(hits, name),
        ]
        for outcome, (t1, t0, effect) in outcomes.items():
            cells += [t1, t0, *([tested(effect)] if outcome == HEADLINE else [])]
        rows.append(cells)
    run = {"functions skipped": _listed(entry.skips), "left out": _listed(entry.dropped)}
    notes = f"Few functions: fewer than {FEW_CLUSTERS}."
    return [
        Table(
            f"{_anchor(table)}-node-types",
            "Node type by node type",
            columns,
            rows,
            notes,
            within="",
        ),
        _origin(table, row, run, {}, {"ledger": f"SHA-256 {entry.ledger}"}),
    ]


def _masked_scores(tables: Sequence[BoardTable]) -> Table:
    """One row per model, outcome and node type, and one without a node type for their mean, which
    has the ranks."""
    texts = [
        "board",
        *_SHARED,
        "model",
        "revision",
        "family",
        "outcome",
        "node type",
        "functions",
        "masked",
    ]
    columns = [
        *map(Column, texts),
        *Column.each(SCORE, *ARMS),
        Column("effect", DIFFERENCE),
        *_ENTRY,
    ]
    rows: list[list[Any]] = []
    for table in tables:
        for row, ranks in zip(table.rows, table.ranks):
            about = [
                table.name,
                *(printable(table.shared[name]) for name in _SHARED),
                printable(row.model),
            ]
            about += [row.revision, printable(row.family)]
            entry, hits = row.entry, row.tables[MASKING]
            assert isinstance(entry, MaskedSubmission)
            sizes = {
                name: [len(group.n), masked(hits, name)] for name, group in hits.groups.items()
            }
            of_types, t0 = entry.by_type(row.tables), entry.scores(T0)
            whole = [entry.scored, sum(sub_tokens for _, sub_tokens in sizes.values())]
            for outcome, score in row.means.items():
                mean = [_bounded(score), _bounded(t0[outcome]), _tested(row.differences[outcome])]
                rows.append([*about, outcome, None, *whole, *mean, *_end(row, ranks[outcome])])
                for name, outcomes in of_types.items():
                    scores = [*map(_alone, outcomes[outcome][:2]), tested(outcomes[outcome].effect)]
                    rows.append([*about, outcome, name, *sizes[name], *scores, *_end(row, None)])
    return Table(MASKING, "All scores of masking", columns, rows)


def _alone(value: float) -> list[Any]:
    """The cell of a score without an interval."""
    return [value, None, None]
