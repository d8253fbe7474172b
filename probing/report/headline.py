"""The finding in sentences, made from the numbers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.attention.result import TABLE_KS
from probing.evidence.gather import BEST_BASELINE
from probing.evidence.selection import FEW_FUNCTIONS
from probing.report.document import DIFFERENCE, P, Section, separated
from probing.report.findings import Findings, Subject
from probing.report.scored import RULE, Gain, K, Scored, best_model, gains, head_name, scored_of

NAMED = 3
"""Relations, and layers, that a sentence names."""

_PROTOCOL = "held-out"


def section(findings: Sequence[Findings]) -> Section:
    """What was found on each config: each model beside the best baseline, then the relations and layers of the best model."""
    return Section(
        "finding",
        "What was found",
        [
            "Attention heads are chosen on the split validation and scored on data that the choice has not seen (held-out)."
        ],
        [Section(f"{found.name}-finding", found.title, _config(found)) for found in findings],
    )


def _config(found: Findings) -> list[str]:
    rows = {scored.name: scored for scored in scored_of(found)}
    if not found.models:
        return ["Only controls were probed, no model.", _controls(found, rows)]
    texts = [_model(found, model, rows) for model in found.models]
    texts.append(_controls(found, rows))
    best = best_model(found)
    told = [_relations(best), _layers(best)]
    if len(found.models) > 1:
        told.insert(0, f"Of {len(found.models)} models, none has a higher score than {best.name}.")
    return [*texts, " ".join(told)]


def _model(found: Findings, model: Subject, rows: dict[str, Scored]) -> str:
    """One model beside the best baseline: at k = 1 with the interval, and which way it goes at the other k of tables."""
    scored = rows[model.name]
    score = scored.cell(_PROTOCOL, RULE, K)
    if score is None:
        return f"{model.name} has no held-out score: validation has no edges of the relations in the mean."
    sought = "dependents" if found.settings["direction"] == HEAD_TO_DEPENDENT else "head tokens"
    relations, _ = scored.sizes[_PROTOCOL]
    marks = f" ({model.marks})" if model.marks else ""
    baseline = rows[BEST_BASELINE].cell(_PROTOCOL, RULE, K)[0]
    return (
        f"{model.name}{marks}: its heads find {score[0]:.1f} % of the {sought} with one guess (k = 1, rule {RULE}, mean over "
        f"{_counted(relations, 'relation')}), the best baseline finds {baseline:.1f} %. {_compared(scored.difference(_PROTOCOL, RULE, K))}. "
        + _at_other_k(scored)
    )


def _compared(cell: list[float]) -> str:
    difference, low, high, p = cell
    told = f"{DIFFERENCE.show(difference)} points ({_interval(low, high)}p = {P.show(p)})"
    if not separated(p):
        return f"The difference of {told} is not separated from 0"
    return f"The model is {'better' if difference > 0 else 'worse'} than the best baseline: {told}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or low != low else f"95 % interval {DIFFERENCE.show(low)} to {DIFFERENCE.show(high)}, "


def _at_other_k(scored: Scored) -> str:
    told = []
    for k in TABLE_KS:
        cell = scored.difference(_PROTOCOL, RULE, k)
        if k != K and cell is not None:
            told.append(f"{DIFFERENCE.show(cell[0])} (k = {k}{_unless_separated(cell[-1])})")
    return f"At other k the difference is {_listed(told)}." if told else ""


def _controls(found: Findings, rows: dict[str, Scored]) -> str:
    """What there is to find without what the model learned."""
    told = []
    for scored in rows.values():
        cell = scored.cell(_PROTOCOL, RULE, K) if scored.kind.startswith("control") else None
        if cell is not None:
            told.append(f"{scored.name}: {cell[0] if isinstance(cell, list) else cell:.1f} %")
    return f"For comparison, at k = 1: {'; '.join(told)}." if told else "No control has a held-out score."


def _relations(model: Subject) -> str:
    """Where it is furthest above and below the best baseline."""
    found = gains(model)
    if not found:
        return f"No relation is in {FEW_FUNCTIONS} functions and has edges on validation to choose on, so none is told here."
    above = [gain for gain in found if gain.difference > 0]
    below = [gain for gain in reversed(found) if gain.difference < 0]
    better, worse = (sum(separated(gain.p) for gain in some) for some in (above, below))
    told = (
        f"Of {_counted(len(found), 'relation')} in at least {FEW_FUNCTIONS} functions, the heads of {model.name} are better than the best "
        f"baseline in {better} and worse in {worse}, as far as tests can separate them."
    )
    told += f" They gain most in {_named(above)}." if above else " They gain in none."
    return told + (f" They lose most in {_named(below)}." if below else " They lose in none.")


def _named(found: Sequence[Gain]) -> str:
    return _listed(
        [f"{one.relation} ({DIFFERENCE.show(one.difference)}{_unless_separated(one.p)})" for one in found[:NAMED]]
    )


def _layers(model: Subject) -> str:
    """Where the heads are that were chosen on validation."""
    entries: list[dict[str, Any]] = [
        entry for entry in model.entry["protocols"][_PROTOCOL]["relations"].values() if entry["in_mean"]
    ]
    cells = [entry[RULE][K] for entry in entries if head_name(entry[RULE][K])]
    if not cells:
        return "No head finds anything."
    layers = sorted(Counter(cell["layer"] for cell in cells).items(), key=lambda item: (-item[1], item[0]))
    told = [f"in layer {layer} for {count}" for layer, count in layers[:NAMED]]
    if rest := sum(count for _, count in layers[NAMED:]):
        told.append(f"in others for {rest}")
    return (
        f"The best head of a relation lies {_listed(told)} of the {_counted(len(cells), 'relation')} in the mean of which heads "
        f"find anything (layers 0 to {model.settings['layers'] - 1})."
    )


def _unless_separated(p: float) -> str:
    return "" if separated(p) else ", not separated"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]
