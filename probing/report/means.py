"""Means over relations as tables and curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from codesyntax_dataset.protocol import KS, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import kinds_of
from probing.evidence.selection import SAME_RELATIONS
from probing.evidence.statistics import holm
from probing.report import figures
from probing.report.document import COLOURED, COUNT, DIFFERENCE, SCORE, Column, Figure, Table
from probing.report.figures import FAINT, INK, Line
from probing.report.findings import Findings, Subject
from probing.report.scored import (
    FILTERS,
    drawn_in_words,
    line,
    paper_rows,
    shown_means,
    styled,
    tests_in_words,
)

_BASELINE_STYLES = {"offset": "--", "keyword": ":", "combined": "-"}


def overview(all_findings: Sequence[Findings]) -> Table:
    side_by_side, titles = shown_means(all_findings), [findings.title for findings in all_findings]
    rows = []
    everything = [(findings, scored) for findings in all_findings for scored in [*findings.rows, *paper_rows(findings)]]
    for rule, k, (findings, scored) in product(RULES, TABLE_KS, everything):
        if rule not in findings.rules or (scored.kind == "paper" and scored.cell(PUBLISHED, rule, k) is None):
            continue
        row: list[object] = [findings.title, rule, k, scored.name, scored.kind, scored.functions]
        for mean in side_by_side:
            row += scored.sizes.get(mean, (None, None))
            row += [scored.cell(mean, rule, k), scored.difference(mean, rule, k)]
        rows.append(row)
    columns = [
        Column("name"),
        Column("kind"),
        Column("functions", COUNT),
    ]
    for mean in side_by_side:
        columns += [
            *Column.each(COUNT, "relations", "edges", group=mean),
            Column("score", SCORE, mean),
            Column("vs best baseline", DIFFERENCE, mean),
        ]
    return Table(
        "overview",
        "Mean top-k UAS over relations: models, controls, baselines and the paper",
        [Column("config"), *FILTERS, *columns],
        sorted(rows, key=lambda row: titles.index(row[0])),
        "Percent with 95 % intervals. Relations, edges: their number in the mean. Vs best baseline: the difference "
        f"to the combined baseline, on the functions and relations that both have. {_compares(side_by_side)}p: "
        f"corrected (Holm) within a config for {tests_in_words(all_findings)}, and uncorrected for controls. Redrawn "
        f"dependents have other edges, and therefore no difference. {COLOURED}",
        filters=3,
    )


def _compares(side_by_side: Sequence[str]) -> str:
    """A sentence that says which means compare."""
    if SAME_RELATIONS not in side_by_side:
        return ""
    return (
        f"{SAME_RELATIONS.capitalize()}: the mean over the relations that have edges on validation; it compares with "
        "the held-out mean. "
    )


def curves(findings: Findings) -> Figure:
    panels: dict[str, dict[str, list[Line]]] = {}
    for rule in findings.rules:
        for mean in shown_means([findings]):
            lines = panels.setdefault(rule, {}).setdefault(mean, [])
            for subject, colour, style in styled(findings):
                lines.append(Line(subject.name, line(subject.means[mean], rule), colour, style))
            for kind in kinds_of(findings.config):
                style = _BASELINE_STYLES[kind]
                lines.append(Line(kind, line(findings.baseline(mean, kind), rule), INK, style))
            lines.append(Line("random attention", line(findings.random[mean], rule), FAINT, ":"))
            if mean == PUBLISHED:
                theirs = {scored.name: scored.scores[mean] for scored in paper_rows(findings)}
                for name, colour in (("Combined", INK), ("CuBERT", FAINT), ("BERT-large", FAINT)):
                    if rule in theirs.get(name, {}):
                        lines.append(Line(f"{name} (paper)", line(theirs[name], rule), colour, points=True))
    return Figure(
        f"{findings.name}-curves",
        f"{findings.title}: mean top-k UAS over k, by rule (rows) and protocol (columns). "
        f"{_compares(shown_means([findings]))}{drawn_in_words(findings)}Bands are 95 % intervals. Grey lines are "
        "baselines, and broken lines are controls. Circles are the paper's numbers on its own data.",
        f"Curves of the mean score for k from 1 to 20 on {findings.title}. The CSV file of the same name has the "
        "numbers.",
        f"{findings.name}-curves",
        lambda: figures.curves(panels),
    )


def curve_points(findings: Findings) -> Table:
    """The numbers of the curves, of all rows and k."""
    rows = [
        [rule, mean, scored.name, scored.kind, k, scored.cell(mean, rule, str(k))]
        for rule in findings.rules
        for mean in shown_means([findings])
        for scored in findings.rows
        for k in KS
    ]
    names = [Column(name) for name in ("rule", "protocol", "name", "kind")]
    return Table(f"{findings.name}-curves", "", [*names, Column("k", COUNT), Column("score", SCORE)], rows)


def against(findings: Findings, subject: Subject, every: Table) -> Table:
    """The rows of `pairs` that are about one model, as the one that is compared with the others."""
    rows = []
    for rule, k, one, other, *cells in every.rows:
        if one == subject.name:
            rows.append([rule, k, other, *cells])
        elif other == subject.name:
            rows.append([rule, k, one, *([-value, -high, -low, p] for value, low, high, p in cells)])
    return Table(
        findings.file("pairs", subject),
        f"{subject.name} against every other model, mean over relations",
        [*FILTERS, *every.columns[len(FILTERS) + 1 :]],
        rows,
        every.notes,
        filters=2,
    )


def pairs(findings: Findings) -> Table:
    side_by_side = shown_means([findings])
    rows = []
    for rule_number, rule in enumerate(findings.rules):
        for at, k in enumerate(TABLE_KS):
            corrected = {
                mean: holm(np.array([comparisons[mean].p[rule_number, at] for comparisons in findings.pairs.values()]))
                for mean in side_by_side
            }
            for place, ((one, other), comparisons) in enumerate(findings.pairs.items()):
                row: list[object] = [rule, k, findings.subjects[one].name, findings.subjects[other].name]
                for mean in side_by_side:
                    difference = comparisons[mean].mean[:, rule_number, at].tolist()
                    row.append([*difference, float(corrected[mean][place])])
                rows.append(row)
    columns = [Column("model"), Column("vs model")]
    columns += [Column("difference", DIFFERENCE, mean) for mean in side_by_side]
    return Table(
        f"{findings.name}-pairs",
        "Pairs of models, mean over relations",
        [*FILTERS, *columns],
        rows,
        f"Percentage points with 95 % intervals, on the same functions. {_compares(side_by_side)}p: corrected (Holm) "
        f"for {len(findings.pairs)} {'pair' if len(findings.pairs) == 1 else 'pairs'}. {COLOURED}",
        filters=2,
    )
