"""The section of a report on the beyond-offset score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import BASELINES, PUBLISHED, TABLE_KS
from probing.evidence.beyond import LEAST_HARD_EDGES
from probing.evidence.scores import CHANCE
from probing.report import specs
from probing.report.document import Section, Table
from probing.report.findings import Findings
from probing.report.scored import HARD, ScoredRow, tests_in_words
from probing.report.words import method


def section(all_findings: Sequence[Findings]) -> Section:
    """Hits of heads, baselines and controls on the edges that no fixed offset finds."""
    rows = [row for findings in all_findings for row in _mean_rows(findings)]
    shown: Table | str = "Too few edges lie beyond the best offset of their relation."
    if rows:
        shown = specs.table("beyond", rows, tests=tests_in_words(all_findings))
    return Section("beyond", "Beyond offsets", [*method("beyond"), shown])


def _avoided(findings: Findings) -> list[int]:
    """The numbers of offsets to avoid beyond which there is something to score."""
    first = findings.subjects[0].name
    return [avoided for avoided in findings.beyond if _hard(findings, first, avoided).score]


def _hard(findings: Findings, name: str, avoided: int) -> ScoredRow:
    return ScoredRow(findings, name, avoided=avoided).get(HARD)


def _mean_rows(findings: Findings) -> Iterator[dict[str, Any]]:
    kinds = findings.kinds | {CHANCE: "control"}
    numbers, names = _avoided(findings), list(kinds)
    for avoided, rule, k, name in product(numbers, findings.rules, TABLE_KS, names):
        hard = _hard(findings, name, avoided)._replace(rule=rule, k=k)
        if hard.score:
            further = name + " (further)" * (name == BASELINES[0])
            yield {"name": further, "kind": kinds[name], "hard": hard, **_sizes(hard)}


def _sizes(hard: ScoredRow) -> dict[str, float]:
    """How many relations and hard edges are in a mean; what needs no model has those of the first
    one."""
    findings = hard.findings
    subject = hard.name if hard.name in findings.subject else findings.subjects[0].name
    every = findings.relations(subject, PUBLISHED)
    edges = findings.in_mean(subject, hard.protocol, LEAST_HARD_EDGES)
    shares = [number / every[name].items for name, number in edges.items()]
    return {
        "relations": len(edges),
        "hard_edges": sum(edges.values()),
        "share": float(100 * np.mean(shares)),
    }
