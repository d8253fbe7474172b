"""The section of a report on silenced heads: whether a model uses the heads that find a relation
best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import language_of
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.silencing.hits import SilencingEffect, silencing_effects
from probing.instruments.silencing.result import SilencingResult
from probing.report import specs
from probing.report.document import Part, Section, Table
from probing.report.words import file_names, method, skipped

SILENCING_TITLE = "Heads that look and heads that serve"

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
    def asked(self) -> str:
        """What is predicted of a relation."""
        if self.result.run.predicts == "next":
            return "the first tokens of dependents predicted"
        read = self.result.settings.direction == HEAD_TO_DEPENDENT
        return f"all {'head tokens' if read else 'dependents'} of a relation masked together"


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


def read_silenced(files: Sequence[Path]) -> list[SilencedModel]:
    """The silencing results in files, each once, by config and model.

    Raises LedgerError for files that are not silencing results, or do not follow from their
    ledgers.
    """
    results: dict[Any, tuple[Path, SilencingResult]] = {}
    for file in files:
        result = SilencingResult.load(file)
        known, other = results.setdefault(result.settings, (file, result))
        if other.ledger.rows.tobytes() != result.ledger.rows.tobytes():
            raise LedgerError(
                f"{file} and {known} are two runs of the same job, but their costs differ: give only one"
            )

    def order(read: tuple[Path, SilencingResult]) -> tuple[str, str, str]:
        file, result = read
        return result.settings.config, result.title, file.name

    in_order = [result for _, result in sorted(results.values(), key=order)]
    settings = [result.settings for result in in_order]
    names = file_names(
        ["-".join(["heads", run.config, run.model, *run.deviations]) for run in settings]
    )
    return [
        SilencedModel(name, result, silencing_effects(result))
        for name, result in zip(names, in_order)
    ]


def verdicts(silenced: Sequence[SilencedModel]) -> Table:
    """The number of relations with each verdict."""
    rows: list[list[Any]] = []
    for model in silenced:
        numbers = Counter(map(verdict, model.relations.values()))
        rows.append([model.title, *(numbers[name] for name in VERDICTS)])
    return specs.table("heads-verdicts", rows, verdicts=VERDICTS)


def sections(silenced: Sequence[SilencedModel]) -> list[Section]:
    """One section, with the verdicts on all results and a part for each; none without results."""
    if not silenced:
        return []
    parts: list[Part] = [verdicts(silenced), *method("silencing")]
    return [Section("heads", SILENCING_TITLE, parts, [*map(_silenced, silenced)])]


def _silenced(model: SilencedModel) -> Section:
    result, settings = model.result, model.result.settings
    about = specs.text(
        "silencing",
        result=result,
        settings=settings,
        units=language_of(settings.config).units,
        asked=model.asked,
        matched=matched_heads(result),
    )
    return Section(
        model.name,
        model.title,
        [about, *skipped(edges=result.left_out, functions=result.skips), table(model)],
    )


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
    rivals = max(len(head.matched) for head in result.heads.values())
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
            }
        )
    return specs.table(
        "silencing",
        rows,
        model.name,
        result=result,
        asked=model.asked,
        matched=matched_heads(result),
        relations=len(rows),
    )
