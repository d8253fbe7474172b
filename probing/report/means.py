"""Means over relations as tables and curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codesyntax_metric.topk_uas import RULES
from probing.attention.result import KS, TABLE_KS
from probing.evidence.gather import BEST_BASELINE, PROTOCOLS
from probing.evidence.selection import SAME_RELATIONS, holm
from probing.report import figures
from probing.report.document import COLOURED, COUNT, DIFFERENCE, NAME, SCORE, Column, Figure, Table
from probing.report.figures import FAINT, INK, Line
from probing.report.findings import BASELINES, Findings
from probing.report.scored import FILTERS, figure, line, means_of, paper_of, scored_of, styled, tests_of


def overview(findings: Sequence[Findings]) -> Table:
    side_by_side = means_of(findings)
    rows = []
    everything = [(found.title, scored) for found in findings for scored in [*scored_of(found), *paper_of(found)]]
    for rule in RULES:
        for k in TABLE_KS:
            for title, scored in everything:
                if scored.kind == "paper" and scored.cell(PROTOCOLS[0], rule, k) is None:
                    continue
                row = [rule, k, title, scored.name, scored.kind, scored.functions]
                for mean in side_by_side:
                    row += scored.sizes.get(mean, (None, None))
                    row += [scored.cell(mean, rule, k), scored.difference(mean, rule, k)]
                rows.append(row)
    columns = [
        Column("config", NAME),
        Column("name"),
        Column("kind"),
        Column("functions", COUNT),
    ]
    for mean in side_by_side:
        columns += [
            Column("relations", COUNT, mean),
            Column("edges", COUNT, mean),
            Column("score", SCORE, mean),
            Column("less best baseline", DIFFERENCE, mean),
        ]
    return Table(
        "overview",
        "Mean top-k UAS over relations, models beside controls, baselines and the paper",
        [*FILTERS, *columns],
        rows,
        "Percent with 95 % intervals. Relations, edges: those in the mean. Less best baseline: the score less that of the "
        f"combined baseline on the same functions, over the relations that both have. {_compares(side_by_side)}{_tested(findings)}",
        filters=2,
    )


def _compares(side_by_side: Sequence[str]) -> str:
    """Which means compare."""
    if SAME_RELATIONS not in side_by_side:
        return ""
    return (
        f"{SAME_RELATIONS.capitalize()}: the mean without the relations that have no edges on validation; it is this one that "
        "the held-out mean compares with. "
    )


def _tested(findings: Sequence[Findings]) -> str:
    return (
        f"p: corrected (Holm) within a config for {tests_of(findings)}; that of a control is not, and counts for no model. "
        f"{COLOURED}"
    )


def table(found: Findings) -> Table:
    side_by_side = means_of([found])
    rows = []
    everything = [*scored_of(found), *paper_of(found)]
    for rule in RULES:
        for scored in everything:
            cells = [scored.cell(mean, rule, k) for mean in side_by_side for k in TABLE_KS]
            if scored.kind != "paper" or cells[0] is not None:
                rows.append([rule, scored.name, scored.kind, *cells])
    columns = [Column(f"k = {k}", SCORE, mean) for mean in side_by_side for k in TABLE_KS]
    return Table(
        f"{found.name}-means",
        "Mean over relations, as Tables 3 (first) and 5 (any) of the paper",
        [Column("rule"), Column("name"), Column("kind"), *columns],
        rows,
        f"Percent with 95 % intervals. {_compares(side_by_side)}".rstrip(),
        filters=1,
    )


def differences(found: Findings) -> Table:
    side_by_side = means_of([found])
    rows = []
    for rule in RULES:
        for scored in scored_of(found):
            for k in TABLE_KS if scored.differences else ():
                cells = [scored.difference(mean, rule, k) for mean in side_by_side]
                rows.append([rule, scored.name, scored.kind, int(k), *cells])
    columns = [Column("rule"), Column("name"), Column("kind"), Column("k", COUNT)]
    columns += [Column("difference", DIFFERENCE, mean) for mean in side_by_side]
    return Table(
        f"{found.name}-differences",
        f"Mean over relations less that of the best baseline ({BEST_BASELINE})",
        columns,
        rows,
        f"Percentage points with 95 % intervals. {_compares(side_by_side)}{_tested([found])} Shuffled labels have other edges than the baselines, and "
        "no difference.",
        filters=1,
    )


def curves(found: Findings) -> Figure:
    panels: dict[str, dict[str, list[Line]]] = {}
    for rule in RULES:
        for mean in means_of([found]):
            lines = panels.setdefault(rule, {}).setdefault(mean, [])
            for subject, colour, style in styled(found):
                lines.append(Line(subject.name, line(subject.means[mean], rule), colour, style))
            for kind, style in zip(BASELINES, ("--", ":", "-")):
                lines.append(Line(kind, line(found.baseline(mean, kind), rule), INK, style))
            lines.append(Line("random attention", line(found.random[mean], rule), FAINT, ":"))
            if mean == PROTOCOLS[0]:
                theirs = {scored.name: scored.scores[mean] for scored in paper_of(found)}
                for name, colour in (("Combined", INK), ("CuBERT", FAINT)):
                    if rule in theirs.get(name, {}):
                        lines.append(Line(f"{name} (paper)", line(theirs[name], rule), colour, points=True))
    return figure(
        f"{found.name}-curves",
        f"{found.title}: mean top-k UAS over k, by rule (rows) and protocol (columns). "
        f"{_compares(means_of([found]))}Bands are 95 % intervals. "
        "Lines without colour are baselines, broken coloured lines are controls; circles are the paper's figures for its own data.",
        f"Curves of the mean score over k from 1 to 20 on {found.title}; the numbers are in the CSV file of the same name.",
        f"{found.name}-curves",
        lambda: figures.curves(panels),
    )


def curve_points(found: Findings) -> Table:
    """What the curves show, and the rest of the k."""
    rows = [
        [rule, mean, scored.name, scored.kind, k, scored.cell(mean, rule, str(k))]
        for rule in RULES
        for mean in means_of([found])
        for scored in scored_of(found)
        for k in KS
    ]
    names = [Column(name) for name in ("rule", "protocol", "name", "kind")]
    return Table(f"{found.name}-curves", "", [*names, Column("k", COUNT), Column("score", SCORE)], rows)


def pairs(found: Findings) -> Table:
    side_by_side = means_of([found])
    rows = []
    for rule_number, rule in enumerate(RULES):
        for k in TABLE_KS:
            corrected = {
                mean: holm(np.array([of[mean].p_mean[rule_number, int(k) - 1] for of in found.pairs.values()]))
                for mean in side_by_side
            }
            for place, ((one, other), of) in enumerate(found.pairs.items()):
                row = [rule, k, found.subjects[one].name, found.subjects[other].name]
                for mean in side_by_side:
                    difference = of[mean].difference.mean[:, rule_number, int(k) - 1].tolist()
                    row.append([*difference, float(corrected[mean][place])])
                rows.append(row)
    columns = [Column("model"), Column("less model")]
    columns += [Column("difference", DIFFERENCE, mean) for mean in side_by_side]
    return Table(
        f"{found.name}-pairs",
        "Models compared in pairs, mean over relations",
        [*FILTERS, *columns],
        rows,
        f"Percentage points with 95 % intervals, on the same functions. {_compares(side_by_side)}p: corrected (Holm) for {len(found.pairs)} "
        f"{'pair' if len(found.pairs) == 1 else 'pairs'}. {COLOURED}",
        filters=2,
    )
