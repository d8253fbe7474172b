"""Silenced heads as tables: whether a model uses the heads that find a relation best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from probing.instruments.silencing.hits import (
    SilencingEffect,
    expected_top_heads,
    silencing_effects,
)
from probing.instruments.silencing.result import DEPENDENTS, READING_END, SilencingResult
from probing.report import specs
from probing.report.document import Table
from probing.report.words import listed, skipped

PREDICTED = {
    ("masked", READING_END): "all its head tokens in a function are masked together",
    ("masked", DEPENDENTS): "all its dependents in a function are masked together",
    ("next", DEPENDENTS): "the first token of each dependent is predicted",
}
"""The prediction task of a relation, by the field `predicts` of a run and its setting
`restored`."""

VERDICTS = MOST, ANOTHER, NOTHING, LESS, ALIKE, FEW = (
    "serves most",
    "serves, but another more",
    "serves nothing",
    "serves less",
    "not told apart",
    "few functions",
)
"""The verdicts on a relation, see `verdict`."""


class SilencedModel(NamedTuple):
    """A silencing result with what its heads serve. `name`: of files."""

    name: str
    result: SilencingResult
    relations: dict[str, SilencingEffect]

    @property
    def title(self) -> str:
        return self.result.title

    @property
    def counted(self) -> dict[str, SilencingEffect]:
        """The relations that are not in few functions."""
        return {name: effect for name, effect in self.relations.items() if not effect.few_functions}


def verdict(effect: SilencingEffect) -> str:
    """Whether the best head of a relation serves: MOST if silencing it costs something, more than
    silencing the matched heads on average, as far as the test separates the two, and more than
    silencing any of them."""
    if effect.few_functions:
        return FEW
    if not effect.difference.significant:
        return ALIKE
    if effect.difference.value < 0:
        return LESS
    if effect.cost.low <= 0:
        return NOTHING
    return ANOTHER if effect.costlier else MOST


def verdicts(silenced: Sequence[SilencedModel]) -> Table:
    """The number of relations with each verdict, and how many heads are the costliest of their
    layer."""
    rows: list[list[Any]] = []
    for model in silenced:
        numbers = Counter(map(verdict, model.relations.values()))
        heads = expected_top_heads(model.counted) if model.counted else (0, None, None)
        rows.append([model.title, *(numbers[name] for name in VERDICTS), *heads])
    return specs.table("heads-verdicts", rows, verdicts=VERDICTS)


def silencing_parts(result: SilencingResult) -> list[str | Table]:
    """The relations, those that heads find best first, with the cost of silencing the best head of
    each."""
    model = SilencedModel("silencing", result, silencing_effects(result))
    below = [
        result.signature,
        *result.run.layers_note,
        *skipped(edges=result.left_out, functions=result.skips),
    ]
    return [table(model), verdicts([model]), *below]


def matched_heads(result: SilencingResult) -> str:
    """Which heads the best one is compared with, in words."""
    rivals = max(len(head.groups[0].matched) for head in result.heads.values())
    every = rivals == result.run.heads - 1
    return f"{'all' if every else 'drawn'} {rivals} other heads of its layer"


def table(model: SilencedModel) -> Table:
    """The relations, highest score first."""
    result = model.result
    rows = []
    for name, effect in model.relations.items():
        rows.append(
            {
                "relation": name,
                "costs": result.relations[name],
                "chosen": result.heads[name],
                "effect": effect,
                "head": "-".join(map(str, effect.head)),
                "costlier": f"{effect.costlier} of {effect.rivals}",
                "verdict": verdict(effect),
                "together": effect.together,
            }
        )
    numbers = sorted({number for effect in model.relations.values() for number in effect.together})
    return specs.table(
        "silencing",
        rows,
        model.name,
        result=result,
        numbers=numbers,
        asked=PREDICTED[result.run.predicts, result.settings.restored],
        matched=matched_heads(result),
        relations=len(rows),
        best=listed([*map(str, numbers)]) if numbers else "n",
    )
