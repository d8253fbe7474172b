"""The finding in sentences, generated from the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codesyntax_dataset.protocol import BEST_BASELINE, TABLE_KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.report import beyond, emergence
from probing.report.document import COLOURED, DIFFERENCE, LINK, SCORE, Column, P, Section, Table, separated
from probing.report.findings import Findings, Scored, Subject
from probing.report.scored import RULE, Gain, K, best_model, gains
from probing.report.words import counted, interval, listed

TITLE = "What was found"

NAMED = 3
"""How many relations or layers a sentence names."""

_PROTOCOL = "held-out"


def section(all_findings: Sequence[Findings], *, of_models: bool) -> Section:
    """The finding on each config: each model against the best baseline, then relations and layers of the best model;
    unless `of_models`, of the others nothing is said."""
    return Section(
        "finding",
        TITLE,
        ["Attention heads are chosen on the split validation and scored on unseen data (held-out)."],
        [
            Section(f"{findings.name}-finding", findings.title, _config(findings, of_models))
            for findings in all_findings
        ],
    )


def of_model(findings: Findings, model: Subject) -> str:
    """The sentences on one model."""
    return _model(findings, model)


def models(all_findings: Sequence[Findings], pages: Mapping[str, str]) -> Table:
    """The models, best first, with what they find of all edges and beyond offsets; `pages`: name of a model -> the link
    to its page."""
    cells: dict[str, list[Any]] = {name: [] for name in pages}
    columns = [Column("name", LINK)]
    for findings in all_findings:
        subjects = {model.name: model for model in findings.models}
        for name, row in cells.items():
            row += [None] * 3 if name not in subjects else [
                findings.row[name].cell(_PROTOCOL, RULE, K),
                findings.row[name].difference(_PROTOCOL, RULE, K),
                beyond.score(subjects[name]),
            ]  # fmt: skip
        columns += [
            Column("score", SCORE, findings.title),
            Column("vs best baseline", DIFFERENCE, findings.title),
            Column("beyond offsets", SCORE, findings.title),
        ]
    best_first = sorted(cells, key=lambda name: [-(cell or [-1])[0] for cell in cells[name][::3]])
    return Table(
        "models",
        f"{len(pages)} models, each with a page of its own: mean over relations, k = {K}, rule {RULE}",
        columns,
        [[[name, pages[name]], *cells[name]] for name in best_first],
        f"Percent with 95 % intervals, held-out. Vs best baseline: p is corrected (Holm) for the models of a config. "
        f"{COLOURED} Beyond offsets: on the edges that do not lie at the best offset of their relation.",
    )


def _config(findings: Findings, of_models: bool) -> list[str]:
    if not findings.models:
        return ["Only controls were probed, and no model.", _controls(findings)]
    best = best_model(findings)
    texts = [_model(findings, model) for model in (findings.models if of_models else [best])]
    texts += [emergence.sentence(training) for training in findings.trainings]
    texts.append(_controls(findings))
    sentences = [_relations(best, findings.language.units)]
    if len(findings.models) > 1:
        sentences.insert(0, f"Of {len(findings.models)} models, none scores higher than {best.name}.")
    return [*texts, " ".join(sentences)]


def _model(findings: Findings, model: Subject) -> str:
    """One model beyond offsets; then, on all edges, against the best baseline: at k = 1 with the interval, and the
    differences at the other k of tables."""
    scored = findings.row[model.name]
    score = scored.cell(_PROTOCOL, RULE, K)
    if score is None:
        return f"{model.name} has no held-out score: validation has no edges of the relations in the mean."
    sought = "dependents" if findings.settings.direction == HEAD_TO_DEPENDENT else "head tokens"
    relations, _ = scored.sizes[_PROTOCOL]
    marks = f" ({model.marks})" if model.marks else ""
    baseline = findings.row[BEST_BASELINE].cell(_PROTOCOL, RULE, K)[0]
    return (
        f"{model.name}{marks}: {beyond.sentence(findings, model)} "
        f"Of all edges, its heads find {score[0]:.1f} % of the {sought} with one guess (k = 1, rule {RULE}, "
        f"mean over {counted(relations, 'relation')}); the best baseline finds {baseline:.1f} %. "
        f"{_compared(scored.difference(_PROTOCOL, RULE, K))}. " + _at_other_k(scored)
    )


def _compared(cell: list[float] | None) -> str:
    assert cell is not None  # who has a score has its difference
    difference, low, high, p = cell
    points = f"{DIFFERENCE.show(difference)} points ({_interval(low, high)}p = {P.show(p)})"
    if not separated(p):
        return f"The difference of {points} is not separated from 0"
    return f"The model is {'better' if difference > 0 else 'worse'} than the best baseline: {points}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None or low != low else f"{interval(low, high, DIFFERENCE)}, "


def _at_other_k(scored: Scored) -> str:
    differences = [
        f"{DIFFERENCE.show(cell[0])} (k = {k}{_unless_separated(cell[-1])})"
        for k in TABLE_KS
        if k != K and (cell := scored.difference(_PROTOCOL, RULE, k))
    ]
    return f"At other k the difference is {listed(differences)}." if differences else ""


def _controls(findings: Findings) -> str:
    """The scores of the controls."""
    scores = []
    for scored in findings.rows:
        cell = scored.cell(_PROTOCOL, RULE, K) if scored.kind.startswith("control") else None
        if cell is not None:
            scores.append(f"{scored.name}: {cell[0] if isinstance(cell, list) else cell:.1f} %")
    return f"For comparison, at k = 1: {'; '.join(scores)}." if scores else "No control has a held-out score."


def _relations(model: Subject, units: str) -> str:
    """The relations on which the model is furthest above and below the best baseline."""
    all_gains = gains(model)
    if not all_gains:
        return f"No relation is in at least {FEW_FUNCTIONS} {units} and has edges on validation, so none is named here."
    above = [gain for gain in all_gains if gain.difference > 0]
    below = [gain for gain in reversed(all_gains) if gain.difference < 0]
    better, worse = (sum(separated(gain.p) for gain in some) for some in (above, below))
    text = (
        f"Of {counted(len(all_gains), 'relation')} in at least {FEW_FUNCTIONS} {units}, the heads of {model.name} "
        f"are better than the best baseline in {better} and worse in {worse}, as far as tests can separate them."
    )
    text += f" They gain most in {_named(above)}." if above else " They gain in none."
    return text + (f" They lose most in {_named(below)}." if below else " They lose in none.")


def _named(largest: Sequence[Gain]) -> str:
    """The first of these, those that the test separates from 0 before others."""
    first = sorted(largest, key=lambda one: not separated(one.p))[:NAMED]
    return listed([f"{one.relation} ({DIFFERENCE.show(one.difference)}{_unless_separated(one.p)})" for one in first])


def _unless_separated(p: float) -> str:
    return "" if separated(p) else ", not separated"
