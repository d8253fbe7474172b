"""The rows that a report compares on one config (models, controls, baselines and the paper), and how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.protocol import (
    CONTROL_TASK,
    KS,
    PROTOCOLS,
    PUBLISHED,
    RANDOM_WEIGHTS,
    REDRAWN_DEPENDENTS,
    SHUFFLED_ATTENTION,
)
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.gather import PUBLISHED_FIRST
from probing.evidence.uncertainty import Comparison, HeadEstimate
from probing.report.document import Column, separated
from probing.report.figures import COLOURS, Dots, stacked
from probing.report.findings import MEANS, Cell, Findings, Scored, Subject
from probing.report.kinds import DIFFERENCE, SCORE

RULE, K = "first", "1"  # where only one rule and k are shown, as in the paper
FILTERS = [Column("rule", of=lambda _, rule, *__: rule), Column("k", of=lambda _, rule, k, *__: k)]
"""The first columns of tables by rule and k. Of a record, what is scored comes first, then the rule, and k."""

_STYLES: dict[str | None, Any] = {
    None: "-",
    RANDOM_WEIGHTS: "--",
    SHUFFLED_ATTENTION: ":",
    REDRAWN_DEPENDENTS: "-.",
    CONTROL_TASK: (0, (1, 3)),
}


def shown_means(all_findings: Sequence[Findings]) -> tuple[str, ...]:
    """The means to show: both protocols and, if *held-out* lacks relations of a config, SAME_RELATIONS between them."""
    lacks = any(findings.size("published") != findings.size("held-out") for findings in all_findings)
    return MEANS if lacks else PUBLISHED_FIRST


def mean_columns(mean: str) -> list[Column]:
    """The columns of one of MEANS, for records of a `Scored`, rule and k."""
    return [
        Column("score", SCORE, mean, of=lambda scored, rule, k, *_: scored.cell(mean, rule, k)),
        Column("vs best baseline", DIFFERENCE, mean, of=lambda scored, rule, k, *_: scored.difference(mean, rule, k)),
    ]


def paper_rows(findings: Findings) -> list[Scored]:
    """The paper's own rows, if it has such a config."""
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for rule in RULES if findings.as_published else ():
        for name, score_by_k in paper.scores(findings.config, rule).items():
            scores.setdefault(name, {})[rule] = score_by_k
    in_mean = [edges for name, edges in paper.edges(findings.config).items() if name not in NOT_IN_MEAN]
    functions, sizes = paper.functions(findings.config), {PUBLISHED: (len(in_mean), sum(in_mean))} if in_mean else {}
    return [Scored(name, "paper", functions, sizes, {PUBLISHED: by_rule}, {}) for name, by_rule in scores.items()]


def tests_in_words(all_findings: Sequence[Findings]) -> str:
    """The number of tests for which p-values are corrected, in words."""
    numbers = sorted({len(findings.models) for findings in all_findings if findings.models})
    return " or ".join(map(str, numbers)) + (" model" if numbers == [1] else " models")


def best_model(findings: Findings) -> Subject:
    """The model with the highest held-out mean, or with the highest published mean if none has a held-out one."""
    return max(findings.models, key=_means)


def drawn(findings: Findings) -> list[Subject]:
    """The models in figures of several: all, or as many of the best as there are colours."""
    best = {model.name for model in sorted(findings.models, key=_means, reverse=True)[: len(COLOURS)]}
    return [model for model in findings.models if model.name in best]


def drawn_in_words(findings: Findings) -> str:
    """A sentence on the models that figures leave out, if they do."""
    every, some = len(findings.models), len(drawn(findings))
    return "" if every == some else f"Of {every} models, the {some} with the highest mean are shown (top-1, held-out). "


def _means(model: Subject) -> list[float]:
    cells = (model.means[protocol][RULE][K] for protocol in PROTOCOLS)
    return [-1.0 if cell is None else cell[0] for cell in cells]


class Gain(NamedTuple):
    """Difference of a model to the best baseline on a relation, in percentage points; `p` corrected over relations."""

    relation: str
    difference: float
    p: float


def gains(model: Subject) -> list[Gain]:
    """Held-out gains, largest first, of the relations that are not marked for few functions."""
    comparison = model.comparisons["held-out"]
    relations = model.scores["protocols"]["held-out"]["relations"]
    all_gains = [
        Gain(name, cell[0], cell[-1])
        for name in comparison.relations
        if not relations[name]["few_functions"] and (cell := difference_on(comparison, name))
    ]
    return sorted(all_gains, key=lambda gain: (-gain.difference, gain.relation))


def difference_on(comparison: Comparison | None, relation: str, rule: str = RULE, k: str = K) -> list[float] | None:
    """[difference, low, high, p] on a relation, p corrected over relations; None if it was not compared there."""
    if comparison is None or relation not in comparison.relations:
        return None
    cell = RULES.index(rule), int(k) - 1, comparison.relations.index(relation)
    return [*comparison.difference.relations[:, *cell].tolist(), float(comparison.p_holm[cell])]


def mean_difference(comparison: Comparison, rule: str = RULE, k: str = K) -> list[float]:
    """[difference, low, high, p] of a mean over relations, p uncorrected."""
    cell = RULES.index(rule), int(k) - 1
    return [*comparison.difference.mean[:, *cell].tolist(), float(comparison.p_mean[cell])]


def with_marks(relation: str, few_functions: bool = False) -> list[str]:
    """The cell of a relation: its name, and what keeps it out of the mean or makes it unreliable."""
    marks = {"few functions": few_functions, "not in mean": relation in NOT_IN_MEAN}
    return [relation, "; ".join(mark for mark, applies in marks.items() if applies)]


def head_name(cell: HeadEstimate) -> str | None:
    """The attention head of a cell as layer-head; None if it found nothing, so that no head is the best."""
    return head_name_of(cell.layer, cell.head, cell.score[0])


def head_name_of(layer: int, head: int, score: float | None) -> str | None:
    return f"{layer}-{head}" if score else None


def line(scores: Mapping[str, Mapping[str, Cell]], rule: str) -> np.ndarray:
    """The curve of rule -> k -> cell: (3, k), or (1, k) if cells have no interval; NaN for missing ones."""
    bounded = stacked(scores[rule].get(str(k)) for k in KS)
    return bounded[:1] if np.isnan(bounded[1:]).all() else bounded


def dots(label: str, cells: Iterable[Sequence[float | None] | None], colour: str) -> Dots:
    """Differences, [difference, low, high, p] or None, as a figure draws them."""
    known = list(cells)
    filled = [cell is not None and cell[3] is not None and separated(cell[3]) for cell in known]
    return Dots(label, stacked(known), colour, filled)


def styled(findings: Findings) -> list[tuple[Subject, str, str]]:
    """The subjects that figures draw, with their colour and line style: a control has the colour of its model."""
    chosen = drawn(findings)
    left_out = {model.settings.model for model in findings.models} - {model.settings.model for model in chosen}
    names = {model.name for model in chosen}
    subjects = [
        subject
        for subject in findings.subjects
        if (subject.name in names if subject.is_model else subject.settings.model not in left_out)
    ]
    models = list(dict.fromkeys(subject.settings.model for subject in subjects))
    result, seen = [], 0
    for subject in subjects:
        if subject.is_model:
            colour = COLOURS[seen % len(COLOURS)]
            seen += 1
        else:
            colour = COLOURS[models.index(subject.settings.model) % len(COLOURS)]
        result.append((subject, colour, _STYLES[subject.settings.control]))
    return result
