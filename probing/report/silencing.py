"""Silenced heads as tables: whether a model uses the heads that find a relation best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.silencing.hits import SilencingEffect, silencing_effects
from probing.instruments.silencing.result import SilencingResult
from probing.report import specs
from probing.report.document import Part, Table
from probing.report.words import skipped
from probing.stats.intervals import FEW_CLUSTERS

VERDICTS = MOST, ANOTHER, NOTHING, LESS, ALIKE, FEW = (
    "serves most",
    "serves, but another more",
    "serves nothing",
    "serves less",
    "not told apart",
    "few functions",
)
"""The verdicts on a relation, see `how_it_serves`."""


def how_it_serves(effect: SilencingEffect) -> str:
    """Whether the best head of a relation serves: MOST if silencing it costs something, more than
    silencing the matched heads on average, as far as the test separates the two, and more than
    silencing any of them."""
    if effect.difference.n < FEW_CLUSTERS:
        return FEW
    if not effect.difference.significant:
        return ALIKE
    if effect.difference.value < 0:
        return LESS
    if effect.cost.low <= 0:
        return NOTHING
    return ANOTHER if effect.costlier else MOST


def verdicts(title: str, effects: Mapping[str, SilencingEffect]) -> Table:
    """The number of relations with each verdict."""
    numbers = Counter(map(how_it_serves, effects.values()))
    row = [title, *(numbers[name] for name in VERDICTS)]
    return specs.table("heads-verdicts", [row], verdicts=VERDICTS)


def silencing_parts(result: SilencingResult) -> list[Part]:
    """The relations, those that heads find best first, with the cost of silencing the best head of
    each."""
    effects = silencing_effects(result)
    return [
        _effects_table(result, effects),
        verdicts(result.title, effects),
        result.signature,
        *skipped(edges=result.left_out, functions=result.skips),
    ]


def _predicted_of(result: SilencingResult) -> str:
    """What is predicted of a relation."""
    if result.run.predicts == "next":
        return "the first tokens of dependents predicted"
    read = result.settings.direction == HEAD_TO_DEPENDENT
    return f"all {'head tokens' if read else 'dependents'} of a relation masked together"


def matched_heads(result: SilencingResult) -> str:
    """Which heads the best one is compared with, in words."""
    rivals = max(len(head.matched) for head in result.heads.values())
    every = rivals == result.run.heads - 1
    return f"{'all' if every else 'drawn'} {rivals} other heads of its layer"


def _effects_table(result: SilencingResult, effects: Mapping[str, SilencingEffect]) -> Table:
    """The relations, highest score first."""
    rows = []
    for name, effect in effects.items():
        chosen = result.heads[name]
        rows.append(
            {
                "relation": name,
                "costs": result.relations[name],
                "chosen": chosen,
                "effect": effect,
                "head": "-".join(map(str, chosen.best)),
                "costlier": f"{effect.costlier} of {len(chosen.matched)}",
                "verdict": how_it_serves(effect),
            }
        )
    return specs.table(
        "silencing",
        rows,
        result=result,
        asked=_predicted_of(result),
        matched=matched_heads(result),
        relations=len(rows),
    )
