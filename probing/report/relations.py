"""Results by relation: best heads against baselines, the layers of the heads, and the analysis of
their errors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from codesyntax_dataset.protocol import HELD_OUT, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import KINDS, kinds_of
from probing.evidence.gather import PUBLISHED_FIRST
from probing.instruments.attention.errors import (
    CLASSES,
    ErrorAnalysis,
    RelationErrors,
)
from probing.report import specs
from probing.report.document import Table
from probing.report.findings import Findings, Subject
from probing.report.scored import ScoredRow


def table(findings: Findings, model: Subject) -> Table:
    """Every relation by both protocols, as in Tables 6 and 9 to 12 of the paper."""
    rows: list[ScoredRow] = []
    for rule, k in product(findings.rules, TABLE_KS):
        rows += _relations_in_order(findings, model, rule, k)
    tested = set()
    for protocol in PUBLISHED_FIRST:
        names = findings.relations(model.name, protocol)
        differences = [findings.difference(model.name, protocol, group=name) for name in names]
        tested.add(sum(difference is not None for difference in differences))
    return specs.table(
        "relations",
        rows,
        findings.file("relations", model),
        model=model.name,
        units=findings.language.units,
        protocols=PUBLISHED_FIRST,
        kinds=[kind for kind in KINDS if kind in kinds_of(findings.config)],
        tests=" or ".join(map(str, sorted(tested - {0}))),
    )


def _relations_in_order(findings: Findings, model: Subject, rule: str, k: str) -> list[ScoredRow]:
    """The relations by a rule and k, largest held-out difference first, those without any last."""
    names = findings.relations(model.name, PUBLISHED)
    scored = [ScoredRow(findings, model.name, rule, k, name) for name in names]

    def order(row: ScoredRow) -> tuple[bool, float, str]:
        gained = row.get(HELD_OUT).difference
        return gained is None, -gained.value if gained else 0, row.group

    return sorted(scored, key=order)


# --------------------------------------------------------------------------------------------------------------- errors

_ABOUT_HEADS = "Head: layer-head at k = 1, counted from 0."


def error_parts(analysis: ErrorAnalysis, rule: str) -> list[str | Table]:
    """The share of each class in the wrong first choices of each relation."""
    of_relations = analysis.rules[rule]
    title = specs.text("errors-title", settings=analysis.settings, rule=rule)
    shares = _error_shares(analysis, [rule], "errors", title, _ABOUT_HEADS)
    counts = analysis.classes(rule)
    errors = sum(counts.values())
    total = ["all relations", sum(entry.edges for entry in of_relations.values()), errors, ""]
    total += [_percent(counts[name], errors) for name in _occurring(analysis, [rule])]
    shares.totals = [total]
    parts: list[str | Table] = [shares, analysis.signature]
    if differing := analysis.differing[rule]:
        parts.append(
            f"rounding changed {differing} edges: this run hits them and the ledger does not, or the reverse"
        )
    return parts


def error_tables(findings: Findings, model: Subject) -> list[str | Table]:
    """The same in a report, by all rules."""
    if model.errors is None:
        return [specs.text("not-analysed", model=model)]
    return [
        _error_shares(
            model.errors,
            RULES,
            findings.file("errors", model),
            f"What the best heads of {model.name} find where they are wrong, in percent of the relation's errors",
            specs.text("errors-notes", model=model, units=findings.language.units),
        ),
    ]


def _most_errors_first(analysis: ErrorAnalysis, rule: str) -> list[tuple[str, RelationErrors]]:
    return sorted(analysis.rules[rule].items(), key=lambda item: (-item[1].errors, item[0]))


def _occurring(analysis: ErrorAnalysis, rules: Sequence[str]) -> list[str]:
    return [name for name in CLASSES if any(analysis.classes(rule)[name] for rule in rules)]


def _error_shares(
    analysis: ErrorAnalysis, rules: Sequence[str], name: str, title: str, notes: str
) -> Table:
    """The share of each class among the errors of each relation."""
    occurring, several = _occurring(analysis, rules), len(rules) > 1
    rows: list[list[Any]] = []
    for rule in rules:
        for relation, entry in _most_errors_first(analysis, rule):
            head = f"{entry.layer}-{entry.head}" if entry.errors < entry.edges else None
            row: list[Any] = [rule] if several else []
            row += [relation, entry.edges, entry.errors, head]
            for kind in occurring:
                row.append(entry.classes[kind].share if kind in entry.classes else None)
            rows.append(row)
    return specs.table(
        "errors",
        rows,
        name,
        title=title,
        notes=notes,
        several=several,
        filters=int(several),
        classes=occurring,
    )


def _percent(count: int, total: int) -> float | None:
    return 100 * count / total if count else None
