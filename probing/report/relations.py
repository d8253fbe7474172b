"""Results by relation: best heads against baselines, the layers of the heads, and the analysis of
their errors."""

from __future__ import annotations

from itertools import product

from codesyntax_dataset.protocol import HELD_OUT, PUBLISHED, TABLE_KS
from probing.evidence.baselines import kinds_of
from probing.evidence.gather import PUBLISHED_FIRST
from probing.instruments.attention.errors import (
    ErrorAnalysis,
)
from probing.report import specs
from probing.report.document import Part, Table
from probing.report.findings import Findings, Subject
from probing.report.scored import ScoredRow


def table(findings: Findings, model: Subject) -> Table:
    """Every relation by both protocols, as in Tables 6 and 9 to 12 of the paper."""
    rows = []
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
        kinds={protocol: kinds_of(findings.config, protocol)[:-1] for protocol in PUBLISHED_FIRST},
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


# ------------------------------------------------------------------------------------------- errors


def error_parts(analysis: ErrorAnalysis, rule: str) -> list[Part]:
    """The share of each class in the wrong first choices of each relation."""
    counts = analysis.classes(rule)
    occurring = [name for name, errors in counts.items() if errors]
    by_relation = sorted(analysis.rules[rule].items(), key=lambda item: (-item[1].errors, item[0]))
    rows = []
    for relation, entry in by_relation:
        head = f"{entry.layer}-{entry.head}" if entry.errors < entry.edges else None
        shares = [
            entry.classes[kind].share if kind in entry.classes else None for kind in occurring
        ]
        rows.append([relation, entry.edges, entry.errors, head, *shares])
    title = specs.text("errors-title", settings=analysis.settings, rule=rule)
    table = specs.table("errors", rows, title=title, classes=occurring)
    errors = sum(counts.values())
    edges = sum(entry.edges for _, entry in by_relation)
    shares = [100 * counts[name] / errors for name in occurring]
    table.totals = [["all relations", edges, errors, "", *shares]]
    parts: list[Part] = [table, analysis.signature]
    if differing := analysis.differing[rule]:
        parts.append(
            f"rounding changed {differing} edges: this run hits them and the ledger does not, or the reverse"
        )
    return parts
