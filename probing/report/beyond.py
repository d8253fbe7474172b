"""The section of a report on the beyond-offset score."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.baselines import kinds_of
from probing.evidence.beyond import LEAST_HARD_EDGES
from probing.evidence.scores import CHANCE, beyond_protocol, easy_protocol
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Part, Section, Table
from probing.report.figures import CIRCLE, FAINT, INK, TICK, Points
from probing.report.findings import Findings, Subject
from probing.report.kinds import COUNT, MARKED, NAME, PERCENT
from probing.report.scored import (
    FILTERS,
    RULE,
    Place,
    counted,
    difference,
    head,
    score,
    tests_in_words,
    value,
    with_marks,
)
from probing.report.words import method, number_of

BEYOND_TITLE = "Beyond offsets"


def section(all_findings: Sequence[Findings], *, of_models: bool) -> Section:
    """Hits of heads on the edges that no fixed offset finds: a figure and tables for each config;
    `of_models`: with the relations of each model.
    """
    return Section(
        "beyond",
        BEYOND_TITLE,
        method("beyond"),
        [_config(findings, of_models) for findings in all_findings],
    )


def relations(findings: Findings, subject: Subject) -> list[Table]:
    """Scores of a model on the hard edges of each relation; none if there are too few."""
    return [_relations(findings, subject)] if _avoided(findings) else []


def _avoided(findings: Findings) -> list[int]:
    """The numbers of offsets to avoid beyond which there is something to score."""
    first = findings.subjects[0].name
    return [
        avoided for avoided in findings.beyond if findings.score(first, beyond_protocol(avoided))
    ]


def _config(findings: Findings, of_models: bool) -> Section:
    key, shown = f"{findings.name}-beyond", _avoided(findings)
    if not shown:
        return Section(
            key, findings.title, ["Too few edges lie beyond the best offset of their relation."]
        )
    parts: list[Part] = [_figure(findings), _means(findings)]
    parts += [_relations(findings, subject) for subject in findings.models if of_models]
    parts += [_by_strata(findings), _strata(findings)]
    return Section(
        key, findings.title, [*parts, *(_left_out(findings, avoided) for avoided in shown)]
    )


_AVOIDED = Column("offsets avoided", of=lambda row: row.avoided)
_COMPARED = difference("", "vs combined")


def _means(findings: Findings) -> Table:
    kinds = {
        subject.name: "model" if subject.is_model else "control" for subject in findings.subjects
    }
    kinds |= dict.fromkeys(kinds_of(findings.config), "baseline") | {CHANCE: "control"}
    places = [
        Place(findings, name, rule, k, avoided=avoided)
        for avoided, rule, k, name in product(_avoided(findings), findings.rules, TABLE_KS, kinds)
    ]
    return Table(
        f"{findings.name}-beyond",
        "Mean top-k UAS on hard edges",
        [
            _AVOIDED,
            *FILTERS,
            Column("name", of=lambda row: row.name + " (further)" * (row.name == BASELINES[0])),
            Column("kind", of=lambda row: kinds[row.name]),
            Column("relations", COUNT, of=lambda row: len(_hard_edges(row))),
            Column("hard edges", COUNT, of=lambda row: sum(_hard_edges(row).values())),
            Column("% hard", PERCENT, of=_share),
            score(""),
            _COMPARED,
        ],
        [row for row in places if row.score()],
        f"Percent with 95 % intervals. The mean covers relations with at least {LEAST_HARD_EDGES} hard edges. "
        "% hard: the "
        "share of hard edges, mean over relations. Combined: for each relation and k, the better of a further offset "
        f"and a keyword. p: corrected (Holm) for {tests_in_words([findings])}, and uncorrected for controls. "
        f"{COLOURED}",
        filters=3,
    )


def _hard_edges(row: Place) -> dict[str, int]:
    """The relations in the mean of a subject, or of the first for what needs no model, and their
    hard edges."""
    scores = row.findings.relations(_subject(row), row.protocol)
    counts = {name: entry.items for name, entry in scores.items() if name not in NOT_IN_MEAN}
    return {name: edges for name, edges in counts.items() if edges >= LEAST_HARD_EDGES}


def _subject(row: Place) -> str:
    names = [subject.name for subject in row.findings.subjects]
    return row.name if row.name in names else names[0]


def _share(row: Place) -> float:
    """The percentage of edges that are hard, mean over relations."""
    everything = row.findings.relations(_subject(row), PUBLISHED)
    return float(
        100 * np.mean([edges / everything[name].items for name, edges in _hard_edges(row).items()])
    )


def _strata(findings: Findings) -> Table:
    return Table(
        f"{findings.name}-strata",
        "By distance and by length: top-1 UAS on all edges",
        [
            Column("by", of=lambda subject, stratum: stratum.by),
            Column("tokens", NAME, of=lambda subject, stratum: stratum.tokens),
            Column("name", of=lambda subject, stratum: subject.name),
            Column("edges", COUNT, of=lambda subject, stratum: stratum.edges),
            Column("score", PERCENT, of=lambda subject, stratum: stratum.heads),
            Column("best offset", PERCENT, of=lambda subject, stratum: stratum.offset),
        ],
        [(subject, stratum) for subject in findings.subjects for stratum in subject.strata],
        "Distance: from the head to the first token of the dependent. Length: of the function. Percent of all edges of "
        f"the relations in the mean, held-out, rule {RULE}, without intervals: frequent relations count most.",
        filters=1,
    )


def _by_strata(findings: Findings) -> Figure:
    strata = findings.subjects[0].strata
    names = [f"{stratum.by} {stratum.tokens}" for stratum in strata]
    series = [
        Points(subject.name, [stratum.heads for stratum in subject.strata], colour)
        for subject, colour, _ in findings.styled
        if subject.is_model
    ]
    series.append(Points("best offset", [stratum.offset for stratum in strata], INK, TICK))
    return Figure(
        f"{findings.name}-strata",
        f"{findings.title}: top-1 UAS by distance from head to dependent and by length of the function, in tokens. "
        f"{findings.drawn_in_words}".rstrip(),
        "Points for each bin of the table below.",
        f"{findings.name}-strata",
        lambda: figures.rows(names, {"top-1 UAS, %": series}),
    )


def _relations(findings: Findings, subject: Subject) -> Table:
    rows: list[Place] = []
    for avoided, k in product(_avoided(findings), TABLE_KS):
        every = Place(findings, subject.name, RULE, k, avoided=avoided)
        places = [
            every._replace(group=name) for name in findings.relations(subject.name, every.protocol)
        ]
        rows += sorted(places, key=lambda row: -(row.value() or 0))
    return Table(
        findings.file("beyond", subject),
        f"Hard edges by relation, {subject.name}, rule {RULE}",
        [
            _AVOIDED,
            Column("k"),
            Column("relation", MARKED, of=_marked),
            Column("offsets", NAME, of=_offsets),
            counted("edges", PUBLISHED, "items"),
            counted("hard", "", "items"),
            Column("score, easy", PERCENT, of=lambda row: row.value(easy_protocol(row.avoided))),
            head(""),
            score(""),
            value("", "chance", CHANCE),
            value("", "combined", BEST_BASELINE),
            _COMPARED,
        ],
        rows,
        "Offsets: the distances from head to dependent that hard edges avoid. Score: on hard edges. Easy: on the "
        "other edges, by the head that finds most of them on validation. Percent with 95 % intervals. p: corrected "
        f"(Holm) over the relations of a k. {COLOURED}",
        filters=2,
    )


def _marked(row: Place) -> list[str]:
    name, marks = with_marks(row.group)
    entry = row.score()
    return [name, marks or ("few edges" if entry and entry.items < LEAST_HARD_EDGES else "")]


def _offsets(row: Place) -> str:
    entry = row.score(name=CHANCE)
    return entry.chosen if entry else ""


def _left_out(findings: Findings, avoided: int) -> str:
    model = findings.beyond[avoided]
    assert model is not None
    named = [
        f"{name} ({number_of(count, 'function')})" for name, count in sorted(model.few.items())
    ]
    named += [
        f"{name} ({model.edges[name][0]} edges)"
        for name in model.shown.relations
        if name not in model.chosen.relations
    ]
    named += [f"{name} (none on validation)" for name in model.unchosen]
    offsets = "the best offset" if avoided == 1 else f"the {avoided} best offsets"
    return f"Not in the mean beyond {offsets}: {', '.join(named) or 'none'}."


def _figure(findings: Findings) -> Figure:
    """By relation, beyond the fewest offsets."""
    avoided = _avoided(findings)[0]
    hard, easy = beyond_protocol(avoided), easy_protocol(avoided)
    of_first = findings.relations(findings.subjects[0].name, hard)
    counts = [
        name
        for name in of_first
        if of_first[name].items >= LEAST_HARD_EDGES and name not in NOT_IN_MEAN
    ]
    names = sorted(counts, key=lambda name: -of_first[name].value)

    def points(label: str, name: str, protocol: str, *look: str) -> Points:
        scores = findings.relations(name, protocol)
        return Points(
            label,
            [scores[relation].value if relation in scores else None for relation in names],
            *look,
        )

    series = []
    for subject, colour, _ in findings.styled:
        if subject.is_model and findings.relations(subject.name, hard):
            series.append(points(f"{subject.name}, hard", subject.name, hard, colour))
            series.append(points(f"{subject.name}, easy", subject.name, easy, colour, CIRCLE))
    rival = "the next best offset" + (" or keyword" if findings.language.keywords else "")
    series.append(points(f"{rival}, hard", BEST_BASELINE, hard, INK, TICK))
    series.append(points("chance, hard", CHANCE, hard, FAINT, TICK))
    return Figure(
        f"{findings.name}-beyond",
        f"{findings.title}: top-1 UAS by relation, on easy edges (circles), which lie at the best offset, and on "
        "hard edges (dots), which do not. The head is the best one on the same kind of edges of validation. Lines "
        f"show the rules that need no model. {findings.drawn_in_words}".rstrip(),
        f"Points for {', '.join(names)}. The tables have the numbers.",
        f"{findings.name}-beyond",
        lambda: figures.rows(names, {"top-1 UAS, %": series}),
    )
