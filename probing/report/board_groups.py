"""The tables of a board whose scores are means over node types or relations, and what all its tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codesyntax_dataset.safe_files import printable
from probing.evidence.entry import GroupedEntry, GroupScores, Score
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.publish.tables import BoardRow, BoardTable
from probing.report.document import (
    CODE,
    COLOURED,
    COST,
    COUNT,
    DIFFERENCE,
    LINK,
    MARKED,
    NAME,
    NATS,
    PERCENT,
    RANK,
    SCORE,
    SIGNED,
    Column,
    Section,
    Table,
)
from probing.runs.ledger_file import INFORMATION, MASKING, PREFERENCE

INTERVALS = "Percent with 95 % intervals."


class Guide:
    """`topic`: the subject of the tables; `texts`: how to read them, a text for each paragraph."""

    def __init__(self, topic: str, texts: str):
        self.topic = " ".join(topic.split())
        self.texts = [" ".join(text.split()) for text in texts.split("\n\n")]


MASKED = Guide(
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

INFORMED = Guide(
    """What the attention of all heads together tells of syntax beyond words and positions.""",
    f"""Usable information. A log-linear choice among the tokens of a function is fitted on validation and scored on
    test: from words and positions, which need no model, from the attention of all heads, and from both. Attention
    adds as many bits as the log-loss of both is below that of words and positions alone; it may be negative. Scores
    in percent are top-1 UAS. Every relation of the table has the same weight.

    Ranks are those of masked syntax, by the bits or percent of each column. Entries share a table only if the same
    edges were drawn of the same functions; words and positions are those of a verified entry or of most entries.
    Few functions: fewer than {FEW_FUNCTIONS}.""",
)


PREFERRED = Guide(
    """Which of two texts, alike but for one place, a language model finds likelier: the one that parses, or the one
    that does not.""",
    f"""Minimal pairs. A decoder scores a text by the sum of the log-probabilities of its sub-tokens, a masked language
    model by its pseudo-log-likelihood, each sub-token masked alone. The accuracy is the share of pairs in which the
    text that parses scores higher, as a whole, or by the sub-tokens in which the two differ; ties count half, and 50 is
    chance. Every phenomenon of the table has the same weight.

    Ranks are those of masked syntax, by the accuracies in each repository, whose pairs are not independent. Entries
    share a table only if their models read the same pairs. Few functions: fewer than {FEW_FUNCTIONS} repositories.""",
)


GUIDES = {MASKING: MASKED, INFORMATION: INFORMED, PREFERENCE: PREFERRED}
"""Instrument -> how to read its tables."""

SCORES = {"percent": SCORE, "nats": NATS, "bits": COST}
"""Unit -> the format of a mean with its interval."""

_VALUES = {"percent": PERCENT, "nats": NATS, "bits": SIGNED}


def section(table: BoardTable, links: Mapping[str, str]) -> Section:
    """The models of a table with their ranks, best first."""
    entry = _entry(table.rows[0])
    arm, other = entry.ARMS
    columns = [Column("name", LINK), Column("revision", NAME), Column("family")]
    outcomes = {name: entry.OUTCOMES[name] for name in entry.SHOWN}
    compared = {name for name in outcomes if _compared(table, name)}
    for name, (group, unit) in outcomes.items():
        columns += [Column("rank", RANK, group), Column(arm, SCORES[unit], group)]
        if name in compared:
            columns += [Column(other, SCORES[unit], group), Column("Δ", DIFFERENCE, group)]
    columns.append(Column("verified", MARKED))
    rows = []
    for row, ranks in zip(table.rows, table.ranks):
        rows.append(heading(row, links))
        for name in outcomes:
            rows[-1] += [rank(ranks[name]), *_cells(row.scores.cells[name])[: 3 if name in compared else 1]]
        rows[-1].append(status(row))
    rows.sort(key=lambda row: -row[4][0])
    counts = ", ".join(f"{name} ({of.functions:,})" for name, of in sorted(_scores(table.rows[0]).groups.items()))
    shared = ", ".join(f"{name} {table.shared[name]}" for name in entry.SHARED if table.shared[name] != "None")
    facts = f"{shared}; mean over each {entry.GROUP} ({entry.units}): {counts}."
    notes = f"Means with 95 % intervals. {COLOURED}"
    shown = Table(anchor(table), "Models", columns, rows, notes, within=file_of(entry.instrument))
    return Section(anchor(table), _title(table), [printable(facts, most=2000), shown])


def details(table: BoardTable, row: BoardRow) -> Section:
    """A row by node type or relation and outcome, and its origin."""
    entry, scores, key = _entry(row), _scores(row), anchor(table)
    arm, other = entry.ARMS
    headline = next(iter(entry.OUTCOMES))
    columns = [Column(entry.GROUP, MARKED), Column(entry.units, COUNT), Column(entry.COUNTED, COUNT)]
    compared = {name for name in entry.OUTCOMES if _compared(table, name)}
    for name, (group, unit) in entry.OUTCOMES.items():
        columns.append(Column(arm, _VALUES[unit], group))
        columns += [Column(other, _VALUES[unit], group)] if name in compared else []
        columns += [Column("Δ", DIFFERENCE, group)] if name in compared and name == headline else []
    rows: list[list[Any]] = []
    for group, of in scores.groups.items():
        rows.append([[group, "few functions" if of.functions < FEW_FUNCTIONS else ""], of.functions, of.counted])
        for name in entry.OUTCOMES:
            value, reference, effect = _cells(of.cells[name])
            rows[-1].append(value[0])
            rows[-1] += [reference[0]] if name in compared else []
            rows[-1] += [effect] if name in compared and name == headline else []
    facts = {
        "signature": entry.signature,
        "revision": row.revision,
        "functions skipped": listed(entry.skips),
        "left out": listed(entry.dropped),
        "verified by this board": " ".join(status(row)),
        "verified by the submitter": claim(row),
        "on what it read": on_read(scores.on_read),
        "ledger": f"SHA-256 {entry.ledger}",
        "software": software(entry.versions),
        "file": row.file,
    }
    title = f"{entry.GROUP.capitalize()} by {entry.GROUP}"
    notes = f"Few functions: fewer than {FEW_FUNCTIONS}."
    of_groups = Table(f"{key}-{entry.GROUP.replace(' ', '-')}s", title, columns, rows, notes, within="")
    return Section(key, _title(table), [of_groups, origin(key, facts)])


def scores(tables: Sequence[BoardTable]) -> Table:
    """Of the tables of an instrument: one row per model, outcome and group, and one without a group for their mean,
    which has the ranks."""
    first = _entry(tables[0].rows[0])
    arm, other = first.ARMS
    texts = ["board", *first.SHARED, "model", "revision", "family", "outcome", first.GROUP, "functions", first.COUNTED]
    columns = [*map(Column, texts), Column(arm, SCORE), Column(other, SCORE), Column("effect", DIFFERENCE)]
    columns += map(Column, ("first rank", "last rank", "verified", "verified of", "remarks", "file"))
    rows: list[list[Any]] = []
    for table in tables:
        for row, ranks in zip(table.rows, table.ranks):
            groups = _scores(row).groups
            about = [table.name, *(printable(table.shared[name]) for name in first.SHARED), printable(row.model)]
            about += [row.revision, printable(row.family)]
            counted = sum(of.counted for of in groups.values())
            end = [*(row.verified or (0, None)), status(row)[1], row.file]
            for name in first.OUTCOMES:
                mean = [name, None, _functions(table), counted, *_cells(row.scores.cells[name])]
                rows.append([*about, *mean, *(ranks[name] or (None, None)), *end])
                for group, of in groups.items():
                    numbers = [name, group, of.functions, of.counted, *_cells(of.cells[name])]
                    rows.append([*about, *numbers, None, None, *end])
    return Table(first.instrument, f"All scores of {first.instrument}", columns, rows)


def file_of(instrument: str) -> str:
    """The CSV file with all scores of an instrument."""
    return f"{instrument}.csv"


def _compared(table: BoardTable, outcome: str) -> bool:
    return any(score is not None and score.reference for score in (row.scores.cells[outcome] for row in table.rows))


def _cells(score: Score | None) -> list[Any]:
    """The cells of a score, of what it is compared with, and of the difference."""
    if score is None:
        return [[None] * 3, None, None]
    reference = [*score.reference] if score.reference else None
    return [[*score.mean], reference, [*score.difference, score.p] if score.difference else None]


def _entry(row: BoardRow) -> GroupedEntry:
    assert isinstance(row.entry, GroupedEntry)
    return row.entry


def _scores(row: BoardRow) -> GroupScores:
    assert isinstance(row.scores, GroupScores)
    return row.scores


def _functions(table: BoardTable) -> int:
    return int(table.rows[0].scores.shares.shape[1])


def _title(table: BoardTable) -> str:
    settings, units = table.settings, _entry(table.rows[0]).units
    return f"{settings.config}, {settings.split}, {table.instrument}: {_functions(table):,} {units}"


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
