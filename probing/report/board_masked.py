"""The part of a board on masked syntax, and what all parts of a board share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codesyntax_dataset.safe_files import printable
from probing.evidence.entry import Score
from probing.evidence.entry_masked import HEADLINE, MaskedEntry, MaskedScores
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.prediction.result import OUTCOMES
from probing.publish.tables import BoardRow, BoardTable
from probing.report.document import (
    CODE,
    COLOURED,
    COUNT,
    DIFFERENCE,
    LINK,
    MARKED,
    NAME,
    NATS,
    PERCENT,
    RANK,
    SCORE,
    Column,
    Section,
    Table,
)
from probing.report.syntaxeval import RANDOM

INTERVALS = "Percent with 95 % intervals."

SHOWN = {HEADLINE: "Jaccard similarity", "restored": "restored sub-tokens"}
"""The outcomes in the table of models; the pages of models have all."""

_TITLES = {
    "jaccard": "Jaccard",
    "sorensen_dice": "Sorensen-Dice",
    "levenshtein": "Levenshtein",
    "restored": "restored",
    "log_probability": "log-probability, nats",
}


class Guide:
    """`topic`: the subject of the tables; `texts`: how to read them, a text for each paragraph."""

    def __init__(self, topic: str, texts: str):
        self.topic = " ".join(topic.split())
        self.texts = [" ".join(text.split()) for text in texts.split("\n\n")]


GUIDE = Guide(
    """This board shows how well masked language models restore the syntax of code. The nodes of one type are masked
    (T1), or as many random sub-tokens (T0), and the tree of the restored code is compared with the tree of the
    source.""",
    f"""Masked syntax. Entries share a table if their settings agree in everything but the model, if the same parser
    made their trees, and if every node type was compared on the same functions. A score is the mean over the node types
    of the table; each has the same weight.

    T1, T0, Δ. T1 masks all sub-tokens of the outermost nodes of a type. T0 masks as many random sub-tokens of the same
    function several times, or, where a table says so, random spans as long as the nodes. Δ is T1 − T0. Its p is
    two-sided, the larger of two: a permutation test, which exchanges T1 and T0 at random within functions, and
    Student's t corrected for skewness. The pages of models correct it over node types (Holm). Few functions: fewer than
    {FEW_FUNCTIONS}; such numbers are unreliable and have no interval.

    Jaccard similarity. It compares the types of all nodes of two trees. Any model scores high, because most of a
    function is never masked, and some broken code keeps the types of its nodes. Compare it with other models and with
    T0, not with 100. Restored is the share of masked sub-tokens that the model predicts exactly; it needs no parser.

    Rank. A rank by T1 is a range: models are tied if a paired permutation test over the table's functions does not
    separate them (5 %, Holm's correction for all pairs of a table, p bounded from above). Verified: the makers of this
    board masked this many functions again. Every other entry is claimed.

    Whole split. A score is over all functions that have nodes of a type. A function that a model cannot read, or whose
    trees cannot be compared, counts as missed, with shares of 0 in T1 and T0.""",
)


def section(table: BoardTable, links: Mapping[str, str]) -> Section:
    """The models of a table with their ranks, best first."""
    columns = [Column("name", LINK), Column("revision", NAME), Column("family")]
    for group in SHOWN.values():
        columns += [Column("rank", RANK, group), Column("T1", SCORE, group), Column("T0", SCORE, group)]
        columns += [Column("Δ", DIFFERENCE, group)]
    columns.append(Column("verified", MARKED))
    rows = []
    for row, ranks in zip(table.rows, table.ranks):
        cells = [cell for outcome in SHOWN for cell in (rank(ranks[outcome]), *_arms(row.scores.cells[outcome]))]
        rows.append([*heading(row, links), *cells, status(row)])
    rows.sort(key=lambda row: -row[4][0])
    settings, parser = table.settings, table.rows[0].entry.run.parser
    counts = ", ".join(f"{name} ({of.functions:,})" for name, of in sorted(_scores(table.rows[0]).node_types.items()))
    facts = (
        f"data {settings.data}, labels {settings.labels}, protocol {settings.protocol}, rate {settings.rate:g}, T0 of "
        f"{RANDOM[settings.control]}, {settings.draws} times, seed {settings.seed}, trees of {parser}; mean of node "
        f"types (functions): {counts}."
    )
    shown = Table(anchor(table), "Models", columns, rows, f"{INTERVALS} {COLOURED}", within="masking.csv")
    return Section(anchor(table), _title(table), [printable(facts, most=2000), shown])


def details(table: BoardTable, row: BoardRow) -> Section:
    """A row by node type and outcome, and its origin."""
    columns = [Column("node type", MARKED), Column("functions", COUNT), Column("masked", COUNT)]
    for outcome, group in _TITLES.items():
        kind = NATS if outcome == "log_probability" else PERCENT
        columns += [Column("T1", kind, group), Column("T0", kind, group)]
        columns += [Column("Δ", DIFFERENCE, group)] if outcome == HEADLINE else []
    rows: list[list[Any]] = []
    for name, of in _scores(row).node_types.items():
        rows.append([[name, "few functions" if of.functions < FEW_FUNCTIONS else ""], of.functions, of.masked])
        for outcome in _TITLES:
            t1, t0, effect = _arms(of.cells[outcome])
            rows[-1] += [t1[0], t0[0], *([effect] if outcome == HEADLINE else [])]
    entry, key = row.entry, anchor(table)
    assert isinstance(entry, MaskedEntry)
    facts = {
        "signature": entry.signature,
        "revision": row.revision,
        "functions skipped": listed(entry.skips),
        "not masked": listed(entry.dropped),
        "not compared": listed(entry.uncompared),
        "verified by this board": " ".join(status(row)),
        "verified by the submitter": claim(row),
        "on what it read": on_read(_scores(row).on_read),
        "ledger": f"SHA-256 {entry.ledger}",
        "software": software(entry.versions),
        "file": row.file,
    }
    types = Table(f"{key}-node-types", "Node type by node type", columns, rows, INTERVALS, within="")
    return Section(key, _title(table), [types, origin(key, facts)])


def scores(tables: Sequence[BoardTable]) -> Table:
    """One row per model, outcome and node type, and one without a node type for their mean, which has the ranks."""
    of_settings = ("config", "data", "labels", "split", "protocol", "rate", "control", "draws", "seed")
    texts = [
        "board",
        *of_settings,
        "parser",
        "model",
        "revision",
        "family",
        "outcome",
        "node type",
        "functions",
        "masked",
    ]
    columns = [*map(Column, texts), Column("T1", SCORE), Column("T0", SCORE), Column("effect", DIFFERENCE)]
    columns += map(Column, ("first rank", "last rank", "verified", "verified of", "remarks", "file"))
    rows: list[list[Any]] = []
    for table in tables:
        settings = [getattr(table.settings, name) for name in of_settings]
        for row, ranks in zip(table.rows, table.ranks):
            node_types = _scores(row).node_types
            about = [table.name, *settings, printable(row.entry.run.parser), printable(row.model), row.revision]
            about.append(printable(row.family))
            masked = sum(of.masked for of in node_types.values())
            end = [*(row.verified or (0, None)), status(row)[1], row.file]
            for outcome in OUTCOMES:
                mean = [outcome, None, _functions(table), masked, *_arms(row.scores.cells[outcome])]
                rows.append([*about, *mean, *(ranks[outcome] or (None, None)), *end])
                for name, of in node_types.items():
                    numbers = [outcome, name, of.functions, of.masked, *_arms(of.cells[outcome])]
                    rows.append([*about, *numbers, None, None, *end])
    return Table("masking", "All scores of masked syntax", columns, rows)


def _arms(score: Score | None) -> list[Any]:
    """The cells of T1, T0 and their difference."""
    assert score is not None and score.reference is not None and score.difference is not None
    return [[*score.mean], [*score.reference], [*score.difference, score.p]]


def _scores(row: BoardRow) -> MaskedScores:
    assert isinstance(row.scores, MaskedScores)
    return row.scores


def _functions(table: BoardTable) -> int:
    return int(table.rows[0].scores.shares.shape[1])


def _title(table: BoardTable) -> str:
    return f"{table.settings.config}, {table.settings.split}, masked syntax: {_functions(table):,} functions"


def anchor(table: BoardTable) -> str:
    """The id of a table on a page."""
    return table.name.replace(".", "-")


def page_name(row: BoardRow) -> str:
    """The title of the page of a row's model."""
    return f"{printable(row.model)}@{row.revision[:12]}"


def heading(row: BoardRow, links: Mapping[str, str]) -> list[Any]:
    """The model of a row with the link to its page, its revision and family."""
    return [[printable(row.model), links[page_name(row)]], row.revision[:12], printable(row.family)]


def rank(ranks: tuple[int, int] | None) -> str | None:
    """A rank, or a range of ranks."""
    return None if ranks is None else "–".join(map(str, dict.fromkeys(ranks)))


def status(row: BoardRow) -> list[str]:
    """The number of functions that this board ran again, and of how many; and what to know before believing the
    numbers.
    """
    verified = f"{row.verified[0]:,} of {row.verified[1]:,}" if row.verified else "claimed"
    return [verified, "; ".join(map(printable, row.remarks))]


def claim(row: BoardRow) -> str:
    """The entry's claim about its verification."""
    claimed = row.entry.verified
    return f"claims that codesyntax submit ran {claimed.functions:,} of {claimed.of:,} again" if claimed else "none"


def on_read(scores: Mapping[str, float]) -> str:
    """The headlines on what a model could read."""
    return ", ".join(f"{name} {score:.1f}" for name, score in scores.items()) or "it read all"


def software(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def listed(counts: Mapping[str, int]) -> str:
    """Counts by reason."""
    return ", ".join(f"{count:,} ({reason})" for reason, count in sorted(counts.items()) if count) or "none"


def origin(key: str, facts: Mapping[str, str]) -> Table:
    """A row's settings, digests and file."""
    rows = [[name, printable(value, most=2000)] for name, value in facts.items()]
    return Table(f"{key}-origin", "Origin", [Column("of the entry", NAME), Column("value", CODE)], rows, within="")
