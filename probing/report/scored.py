"""What a report puts side by side on one config: models, controls, baselines and the paper, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.attention.result import KS
from probing.evidence.gather import PROTOCOLS
from probing.evidence.selection import holm
from probing.report import figures
from probing.report.document import Column, Figure
from probing.report.figures import COLOURS
from probing.report.findings import BASELINES, MEANS, Findings, Subject

RULE, K = "first", "1"  # of what is shown for one rule and k only, as in the paper
FILTERS = [Column("rule"), Column("k")]


class Scored(NamedTuple):
    """What has a mean over relations.

    By what stands side by side, MEANS: `sizes`: how many relations are in a mean, and how many edges they have; `scores`: rule
    -> k -> cell; `differences`, by that, rule and k: the difference to the best baseline as [difference, low, high, p].
    """

    name: str
    kind: str
    functions: int
    sizes: dict[str, tuple[int, int]]
    scores: dict[str, Any]
    differences: dict[tuple[str, str, str], list[float]]

    def cell(self, mean: str, rule: str, k: str) -> Any:
        return self.scores.get(mean, {}).get(rule, {}).get(k)

    def difference(self, mean: str, rule: str, k: str) -> list[float] | None:
        return self.differences.get((mean, rule, k))


def means_of(findings: Sequence[Findings]) -> tuple[str, ...]:
    """What stands side by side: both protocols and, where *held-out* lacks relations of a config, SAME_RELATIONS between."""
    lacks = any(found.size("published") != found.size("held-out") for found in findings)
    return MEANS if lacks else PROTOCOLS


def scored_of(found: Findings) -> list[Scored]:
    """Models, controls and baselines, all on the same functions."""
    size = found.functions, {mean: found.size(mean) for mean in MEANS}
    differences = differences_of(found)
    rows = []
    for place, subject in enumerate(found.subjects):
        kind = "; ".join(["model" if subject.is_model else "control"] + ([subject.marks] if subject.marks else []))
        rows.append(Scored(subject.name, kind, *size, subject.means, differences[place]))
    rows.append(Scored(f"random attention, best of {found.random_heads} heads", "control", *size, found.random, {}))
    rows.append(Scored("random attention, a head on average", "control", *size, found.chance, {}))
    rows += [
        Scored(kind, "baseline", *size, {mean: found.baseline(mean, kind) for mean in MEANS}, {}) for kind in BASELINES
    ]
    return rows


def paper_of(found: Findings) -> list[Scored]:
    """The paper's own rows, where it has such a config."""
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for rule in RULES if found.as_published else ():
        for name, of_k in paper.scores(found.config, rule).items():
            scores.setdefault(name, {})[rule] = of_k
    in_mean = [edges for name, edges in paper.edges(found.config).items() if name not in NOT_IN_MEAN]
    size = paper.functions(found.config), {PROTOCOLS[0]: (len(in_mean), sum(in_mean))}
    return [Scored(name, "paper", *size, {PROTOCOLS[0]: of}, {}) for name, of in scores.items()]


def differences_of(found: Findings) -> list[dict[tuple[str, str, str], list[float]]]:
    """For each subject: one of MEANS, rule and k -> [difference to the best baseline, low, high, p].

    p is corrected (Holm) over the models: controls are no claims, so theirs stand alone and add nothing to the models'.
    """
    of_subjects: list[dict[tuple[str, str, str], list[float]]] = [
        {
            (mean, rule, k): [*cell["difference"], cell["p"]]
            for mean, of_rule in subject.differences.items()
            for rule, of_k in of_rule.items()
            for k, cell in of_k.items()
        }
        for subject in found.subjects
    ]
    of_models = [of for of, subject in zip(of_subjects, found.subjects) if subject.is_model]
    for key in {key for of in of_models for key in of}:
        together = [of[key] for of in of_models if key in of]
        for cell, p in zip(together, holm(np.array([cell[-1] for cell in together])).tolist()):
            cell[-1] = p
    return of_subjects


def tests_of(findings: Sequence[Findings]) -> str:
    """How many tests p-values are corrected for, in words."""
    numbers = sorted({len(found.models) for found in findings if found.models})
    return " or ".join(map(str, numbers)) + (" model" if numbers == [1] else " models")


def best_model(found: Findings) -> Subject:
    """The model with the highest held-out mean, or the highest published one where there is no held-out one."""
    return max(found.models, key=lambda model: [_mean(model, protocol) for protocol in PROTOCOLS[::-1]])


def _mean(model: Subject, protocol: str) -> float:
    cell = model.entry["protocols"][protocol]["scores"][RULE][K]
    return -1.0 if cell is None else cell[0]


class Gain(NamedTuple):
    """What a model finds of a relation beyond the best baseline, in percentage points; `p` corrected over the relations."""

    relation: str
    difference: float
    p: float


def gains(model: Subject) -> list[Gain]:
    """Held-out, the largest first, of the relations that are not marked for few functions."""
    comparison = model.comparisons["held-out"]
    relations = model.entry["protocols"]["held-out"]["relations"]
    rule, k = RULES.index(RULE), int(K) - 1
    found = [
        Gain(name, float(comparison.difference.relations[0, rule, k, place]), float(comparison.p_holm[rule, k, place]))
        for place, name in enumerate(comparison.relations)
        if not relations[name]["few_functions"]
    ]
    return sorted(found, key=lambda gain: (-gain.difference, gain.relation))


def head_name(cell: dict[str, Any]) -> str | None:
    """The attention head of a relation's cell as layer-head; None where it found nothing, and is no better than any other."""
    return f"{cell['layer']}-{cell['head']}" if cell["score"][0] > 0 else None


def figure(name: str, title: str, alt: str, table: str, draw: Callable[[], Any]) -> Figure:
    """A figure, drawn here; `table` has its numbers."""
    with figures.style():
        drawn = figures.lay_out(draw())
        return Figure(name, title, alt, table, figures.to_svg(drawn), figures.to_png(drawn))


def line(scores: dict[str, Any], rule: str) -> np.ndarray:
    """The curve of rule -> k -> cell: (3, k), or (1, k) where cells have no interval; NaN where there is none."""
    cells = [scores[rule].get(str(k)) for k in KS]
    cells = [cell if isinstance(cell, (list, tuple)) else [cell] for cell in cells]
    width = max(map(len, cells))
    padded = [(list(cell) + [None] * width)[:width] for cell in cells]
    return np.array(padded, float).T


def styled(found: Findings) -> list[tuple[Subject, str, str]]:
    """Subjects with their colour and line: a control has the colour of its model."""
    models = list(dict.fromkeys(subject.settings["model"] for subject in found.subjects))
    result, seen = [], 0
    for subject in found.subjects:
        if subject.is_model:
            colour, style = COLOURS[seen % len(COLOURS)], "-"
            seen += 1
        else:
            colour = COLOURS[models.index(subject.settings["model"]) % len(COLOURS)]
            style = {"random-weights": "--", "shuffled-attention": ":", "redrawn-dependents": "-."}[
                subject.settings["control"]
            ]
        result.append((subject, colour, style))
    return result
