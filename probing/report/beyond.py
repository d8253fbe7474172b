"""The section of a report on the beyond-offset score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from codesyntax_dataset.protocol import BASELINES, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.baselines import kinds_of
from probing.evidence.beyond import LEAST_HARD_EDGES
from probing.evidence.scores import CHANCE
from probing.report import specs
from probing.report.document import Part, Section, Table
from probing.report.findings import Findings, Score, Subject
from probing.report.scored import HARD, ScoredRow, tests_in_words
from probing.report.words import method

BEYOND_TITLE = "Beyond offsets"


def section(all_findings: Sequence[Findings], *, of_models: bool) -> Section:
    """Hits of heads on the edges that no fixed offset finds: a figure and tables for each config;
    `of_models`: with the relations of each model.
    """
    sections = [_beyond_sections(findings, of_models) for findings in all_findings]
    return Section("beyond", BEYOND_TITLE, method("beyond"), sections)


def relations(findings: Findings, model: Subject) -> list[Table]:
    """Scores of a model on the hard edges of each relation; none if there are too few."""
    return [_beyond_relations(findings, model)] if _avoided(findings) else []


def _avoided(findings: Findings) -> list[int]:
    """The numbers of offsets to avoid beyond which there is something to score."""
    first = findings.subjects[0].name
    return [avoided for avoided in findings.beyond if _hard(findings, first, avoided).score]


def _hard(findings: Findings, name: str, avoided: int) -> ScoredRow:
    return ScoredRow(findings, name, avoided=avoided).get(HARD)


def _beyond_sections(findings: Findings, of_models: bool) -> Section:
    key, avoided = f"{findings.name}-beyond", _avoided(findings)
    if not avoided:
        none = "Too few edges lie beyond the best offset of their relation."
        return Section(key, findings.title, [none])
    parts: list[Part] = [_beyond_means(findings)]
    if of_models:
        parts += [_beyond_relations(findings, model) for model in findings.models]
    parts.append(_strata(findings))
    return Section(key, findings.title, parts)


def _beyond_means(findings: Findings) -> Table:
    kinds = {
        subject.name: "model" if subject.is_model else "control" for subject in findings.subjects
    }
    kinds |= dict.fromkeys(kinds_of(findings.config), "baseline") | {CHANCE: "control"}
    rows = []
    numbers, names = _avoided(findings), list(kinds)
    for avoided, rule, k, name in product(numbers, findings.rules, TABLE_KS, names):
        hard = _hard(findings, name, avoided)._replace(rule=rule, k=k)
        if hard.score:
            further = name + " (further)" * (name == BASELINES[0])
            rows.append({"name": further, "kind": kinds[name], "hard": hard, **_sizes(hard)})
    tests = tests_in_words([findings])
    return specs.table("beyond", rows, f"{findings.name}-beyond", tests=tests)


def _sizes(hard: ScoredRow) -> dict[str, float]:
    """How many relations and hard edges are in a mean; what needs no model has those of the first
    one."""
    findings = hard.findings
    subject = hard.name if hard.name in findings.subject else findings.subjects[0].name
    every = findings.relations(subject, PUBLISHED)
    edges = _in_mean(findings.relations(subject, hard.protocol))
    shares = [number / every[name].items for name, number in edges.items()]
    return {
        "relations": len(edges),
        "hard_edges": sum(edges.values()),
        "share": float(100 * np.mean(shares)),
    }


def _in_mean(scores: Mapping[str, Score]) -> dict[str, int]:
    """The relations in the mean, and their hard edges."""
    counts = {name: score.items for name, score in scores.items() if name not in NOT_IN_MEAN}
    return {name: edges for name, edges in counts.items() if edges >= LEAST_HARD_EDGES}


def _strata(findings: Findings) -> Table:
    rows = [
        {"name": subject.name, **stratum._asdict()}
        for subject in findings.subjects
        for stratum in subject.strata
    ]
    return specs.table("strata", rows, f"{findings.name}-strata")


def _beyond_relations(findings: Findings, model: Subject) -> Table:
    rows: list[ScoredRow] = []
    for avoided, k in product(_avoided(findings), TABLE_KS):
        mean = _hard(findings, model.name, avoided)._replace(k=k)
        names = findings.relations(model.name, mean.protocol)
        of_relations = [mean._replace(group=name) for name in names]
        rows += sorted(of_relations, key=lambda row: -(row.score.value if row.score else 0))
    key = findings.file("beyond", model)
    return specs.table("beyond-by-relation", rows, key, model=model.name)
