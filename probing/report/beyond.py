"""The section of a report on the beyond-offset score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from codesyntax_dataset.protocol import BASELINES, BEYOND_OFFSET, PUBLISHED, TABLE_KS
from probing.report import specs
from probing.report.document import RowRecord, Section, Table
from probing.report.findings import Findings
from probing.report.scored import ScoredRow, tests_in_words
from probing.report.words import method


def section(all_findings: Sequence[Findings]) -> Section:
    """Hits of heads, baselines and controls on the edges that no fixed offset finds."""
    rows = [row for findings in all_findings for row in _mean_rows(findings)]
    shown: Table | str = "Too few edges lie beyond the best offset of their relation."
    if rows:
        shown = specs.table("beyond", rows, tests=tests_in_words(all_findings))
    return Section("beyond", "Beyond offsets", [*method("beyond"), shown])


def _mean_rows(findings: Findings) -> Iterator[RowRecord]:
    kinds = findings.kinds
    for rule, k, name in product(findings.rules, TABLE_KS, kinds):
        hard = ScoredRow(findings, name, rule, k, protocol=BEYOND_OFFSET)
        if hard.score:
            further = hard.title + " (further)" * (name == BASELINES[0])
            yield {"name": further, "kind": kinds[name], "hard": hard, **_hard_sizes(hard)}


def _hard_sizes(hard: ScoredRow) -> dict[str, float]:
    """How many relations and hard edges are in a mean."""
    findings = hard.findings
    every = findings.relations(findings.subjects[0].name, PUBLISHED)
    edges = findings.in_mean(hard.name, hard.protocol)
    shares = [number / every[name].items for name, number in edges.items()]
    return {
        "relations": len(edges),
        "hard_edges": sum(edges.values()),
        "share": float(100 * np.mean(shares)),
    }
