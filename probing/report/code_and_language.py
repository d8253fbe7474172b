"""Code against language: the same models beside the best baseline on both (Shen et al. 2022, section 4).

The paper's second finding: on English and German, attention heads find more than fixed offsets do, and on code they do
not (its Figures 2, 3, 7 and 8 and Table 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from codesyntax_dataset.protocol import BEST_BASELINE, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.report import figures
from probing.report.document import (
    COLOURED,
    COUNT,
    DIFFERENCE,
    NAME,
    PERCENT,
    SCORE,
    Column,
    Figure,
    Section,
    Table,
    separated,
)
from probing.report.figures import COLOURS, Dots, Shares
from probing.report.findings import Findings
from probing.report.scored import RULE, K, shown_means, tests_in_words
from probing.report.statistics import BINS_NAMED, binned
from probing.report.words import method

NEAR = (1, 5)
"""Distances in tokens up to which the table gives the share of edges."""

_ID = "code-and-language"


def sections(all_findings: Sequence[Findings]) -> list[Section]:
    """One section on the models that were probed on both; none if there is no such model."""
    by_kind = [
        {model.name: None for findings in all_findings if _kind(findings) == kind for model in findings.models}
        for kind in ("code", "language")
    ]
    models = [name for name in by_kind[0] if name in by_kind[1]]
    chosen = [findings for findings in all_findings if any(model.name in models for model in findings.models)]
    if not models:
        return []
    parts: list[str | Table | Figure] = [*method("code-and-language"), _figure(chosen, models), _table(chosen, models)]
    return [Section(_ID, "Code against language", parts, drawn=[_offsets(chosen)])]


def _kind(findings: Findings) -> str:
    return "language" if findings.language.of_treebanks else "code"


def _figure(chosen: Sequence[Findings], models: Sequence[str]) -> Figure:
    panels: dict[str, list[Dots]] = {}
    for mean in shown_means(chosen):
        for model, colour in zip(models, cycle(COLOURS)):
            rows = [findings.row.get(model) for findings in chosen]
            known = [(row and row.difference(mean, RULE, K)) or [np.nan] * 4 for row in rows]
            effects = np.array([cell[:3] for cell in known], float).T
            dots = Dots(model, effects, colour, [separated(cell[3]) for cell in known])
            panels.setdefault(mean, []).append(dots)
    shares = np.array([_shares(findings) for findings in chosen])
    (occurring,) = np.nonzero(shares.any(axis=0))
    kept = slice(occurring[0], occurring[-1] + 1)
    shares[:, BINS_NAMED.index("0")] = np.nan  # a gap between the two sides
    lines = [
        Shares(f"{findings.title} ({_kind(findings)})", share[kept], colour, "--" if _kind(findings) == "code" else "-")
        for findings, share, colour in zip(chosen, shares, cycle(COLOURS[::-1]))
    ]
    titles = [findings.title for findings in chosen]
    return Figure(
        _ID,
        "Top: the difference between the mean score of each model and of the best baseline, k = 1, with 95 % "
        "intervals. Filled points: p < 0.05. Bottom: the distance of dependents from their heads. Dependents on the "
        "left come first.",
        f"Dots for the difference to the best baseline in {', '.join(titles)}, above curves of the share of edges by "
        "offset. The table and the CSV file of offsets have the numbers.",
        f"{_ID}-offsets",
        lambda: figures.code_and_language(titles, panels, BINS_NAMED[kept], lines),
    )


def _table(chosen: Sequence[Findings], models: Sequence[str]) -> Table:
    side_by_side = shown_means(chosen)
    rows = []
    for k in TABLE_KS:
        for findings in chosen:
            near = [_near(findings, distance) for distance in NEAR]
            scored = findings.row
            for model in (name for name in models if name in scored):
                row = [k, _kind(findings), findings.title, model, findings.functions, *near]
                for mean in side_by_side:
                    row += [one.cell(mean, RULE, k) for one in (scored[model], scored[BEST_BASELINE])]
                    row.append(scored[model].difference(mean, RULE, k))
                rows.append(row)
    columns = [Column("k"), Column("kind"), Column("config", NAME), Column("model")]
    columns += [Column("functions", COUNT), *(Column(f"within {distance}", PERCENT, "offsets") for distance in NEAR)]
    for mean in side_by_side:
        columns += [Column("score", SCORE, mean), Column("best baseline", SCORE, mean)]
        columns += [Column("difference", DIFFERENCE, mean)]
    return Table(
        _ID,
        "Models and the best baseline on code and on sentences",
        columns,
        rows,
        f"Percent with 95 % intervals, rule {RULE}, mean over relations. Functions: for languages, sentences. "
        "Offsets: the percentage of edges, mean over relations, whose dependent is at most so many tokens from its "
        f"head. p: corrected (Holm) within a config for {tests_in_words(chosen)}. {COLOURED}",
        filters=1,
    )


def _offsets(chosen: Sequence[Findings]) -> Table:
    """The numbers of the lower part of the figure."""
    rows = [
        [findings.title, name, share]
        for findings in chosen
        for name, share in zip(BINS_NAMED, _shares(findings).tolist())
    ]
    return Table(f"{_ID}-offsets", "", [Column("config", NAME), Column("offset"), Column("percent", PERCENT)], rows)


def _shares(findings: Findings) -> np.ndarray:
    """Percent of edges in each bin of offsets, mean over relations: (bins,)."""
    counts = [binned(offsets) for offsets in _in_mean(findings)]
    return 100 * np.mean([count / count.sum() for count in counts], axis=0)


def _near(findings: Findings, distance: int) -> float:
    """Percent of edges with at most `distance` tokens from head to dependent, mean over relations."""
    shares = [
        sum(edges for offset, edges in offsets.items() if abs(offset) <= distance) / sum(offsets.values())
        for offsets in _in_mean(findings)
    ]
    return 100 * float(np.mean(shares))


def _in_mean(findings: Findings) -> list[dict[int, int]]:
    return [offsets for name, offsets in findings.offsets.items() if name not in NOT_IN_MEAN]
