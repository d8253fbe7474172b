"""Results by relation: best heads against baselines, the layers of the heads, and the analysis of
their errors."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

from codesyntax_dataset.protocol import HELD_OUT, PUBLISHED, TABLE_KS
from probing.evidence.baselines import KINDS, kinds_of
from probing.evidence.gather import PUBLISHED_FIRST
from probing.instruments.attention.errors import (
    CLASSES,
    PLACES,
    ErrorAnalysis,
    ErrorExample,
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

_MARKS = {"head": ("«", "»"), "dependent": ("⟦", "⟧"), "chosen": ("✗", "✗")}


def error_parts(analysis: ErrorAnalysis, rule: str) -> list[str | Table]:
    """The share of each class and place in the wrong first choices of each relation, and an example
    of each class."""
    of_relations = analysis.rules[rule]
    title = specs.text("errors-title", settings=analysis.settings, rule=rule)
    shares = _error_shares(analysis, rule, title)
    counts, places = analysis.classes(rule), Counter[str]()
    for relation in of_relations:
        places.update(analysis.places(rule, relation))
    errors = sum(counts.values())
    total = ["all relations", sum(entry.edges for entry in of_relations.values()), errors, ""]
    total += [_percent(counts[name], errors) for name in _occurring(analysis, rule)]
    total += [_percent(places[name], errors) for name in PLACES]
    shares.totals = [total]
    most = sorted(_examples(analysis, rule), key=lambda row: (-row["errors"], row["relation"]))
    first = {row["class"]: row for row in reversed(most)}
    rows = [first[kind] for kind in CLASSES if kind in first]
    examples = specs.table("error-examples", rows, title="An example of each class of errors")
    parts: list[str | Table] = [shares, examples, analysis.signature]
    if differing := analysis.differing[rule]:
        parts.append(
            f"rounding changed {differing} edges: this run hits them and the ledger does not, or the reverse"
        )
    return parts


def _most_errors_first(analysis: ErrorAnalysis, rule: str) -> list[tuple[str, RelationErrors]]:
    return sorted(analysis.rules[rule].items(), key=lambda item: (-item[1].errors, item[0]))


def _occurring(analysis: ErrorAnalysis, rule: str) -> list[str]:
    return [name for name, errors in analysis.classes(rule).items() if errors]


def _error_shares(analysis: ErrorAnalysis, rule: str, title: str) -> Table:
    """The share of each class and place among the errors of each relation."""
    occurring = _occurring(analysis, rule)
    rows: list[list[Any]] = []
    for relation, entry in _most_errors_first(analysis, rule):
        head = f"{entry.layer}-{entry.head}" if entry.errors < entry.edges else None
        row: list[Any] = [relation, entry.edges, entry.errors, head]
        row += [entry.classes[kind].share if kind in entry.classes else None for kind in occurring]
        places = analysis.places(rule, relation).values()
        row += [_percent(count, entry.errors) for count in places]
        rows.append(row)
    return specs.table("errors", rows, title=title, classes=occurring, places=PLACES)


def _percent(count: int, total: int) -> float | None:
    return 100 * count / total if count else None


def _examples(analysis: ErrorAnalysis, rule: str) -> list[dict[str, Any]]:
    """An example of each class of errors of each relation, those with most errors first."""
    rows = []
    for relation, entry in _most_errors_first(analysis, rule):
        for kind, errors in entry.classes.items():
            example = errors.examples[0]
            rows.append(
                {
                    "relation": relation,
                    "class": kind,
                    "errors": errors.errors,
                    "percent": errors.share,
                    "function": example["function"],
                    "code": marked(example),
                }
            )
    return rows


def marked(example: ErrorExample) -> str:
    """The lines of an example with their numbers, and its tokens between marks."""
    lines = dict(example["lines"])
    places = [(example[name], marks) for name, marks in _MARKS.items() if example[name]]
    places.sort(reverse=True)  # from the right, so that columns stay
    for (line, start, end), (before, behind) in places:
        code = lines[str(line)]
        lines[str(line)] = code[:start] + before + code[start:end] + behind + code[end:]
    return "\n".join(f"{line}: {code.strip()}" for line, code in lines.items())
