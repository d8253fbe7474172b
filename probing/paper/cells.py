"""A number of the paper and ours beside it, and whether the two compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from codesyntax_dataset import paper
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import BASELINES, TABLE_KS
from codesyntax_dataset.statistics import Statistics
from probing.paper.attention import HeadExample
from probing.paper.inputs import CONFIGS, Inputs
from probing.paper.measured import Measured

COMPARABLE, NO_DATA = "yes", "empty: no data"


class Compared(NamedTuple):
    """`standing`: COMPARABLE, or why the two numbers do not compare or one of them is missing; `digits`: those that the
    paper prints behind the point."""

    here: float | None
    paper: float | None
    standing: str
    digits: int = 1

    @property
    def difference(self) -> float | None:
        """Of the numbers rounded as in the paper, so that equal ones differ by 0."""
        if self.here is None or self.paper is None:
            return None
        return round(round(self.here, self.digits) - self.paper, self.digits)

    @property
    def compares(self) -> bool:
        return self.standing == COMPARABLE and self.difference is not None

    @property
    def shown(self) -> list[float | None]:
        return [self.here, self.paper, self.difference]


@dataclass(frozen=True)
class Made:
    """Everything that was made: `measured`: config -> scores; `counted`: language -> statistics of all its splits;
    `examples`: language of code -> what its first model predicts in a function."""

    inputs: Inputs
    measured: Mapping[str, Measured]
    counted: Mapping[str, Statistics]
    examples: Mapping[str, HeadExample] = field(default_factory=dict)

    def names(self, config: str) -> list[str]:
        """The names of what is compared on a config: as in the paper, then our models that it does not have."""
        measured = self.measured.get(config)
        models = [] if measured is None else list(measured.models)
        return [*_published(config), *(name for name in models if paper.name_of(name, language_of(config)) is None)]

    def scores(self, config: str, name: str, rule: str) -> dict[str, dict[str, Any]]:
        """The scores that `topk_uas.score` gives for one of `names`; without any scores if there is nothing of it."""
        if config not in self.measured or (given := self._given(config, name)) is None:
            return {"scores": {}, "relations": {}}
        measured = self.measured[config]
        return (measured.models.get(given) or measured.baselines[given.lower()])[rule]

    def of_the_paper(self, language: str) -> bool:
        """True if the data have as many functions as the paper's, and as many edges of each relation in Table 8."""
        if (counted := self.counted.get(language)) is None:
            return False
        ours = {name: relation.edges for name, relation in counted.relations.items()}
        return counted.functions == paper.functions(language) and paper.edges(language) in ({}, ours)

    def lacks(self, config: str) -> list[str]:
        """The models of the paper's tables that were not given: with them, fewer functions might fit all models."""
        in_tables = [name for name, by_k in _published(config).items() if len(by_k) == len(TABLE_KS)]
        return [name for name in in_tables if self._given(config, name) is None]

    def differs(self, config: str) -> dict[str, str]:
        """Differences between the inputs of a config and the paper's: in a word, and in more words."""
        lacks, limit = self.lacks(config), self.inputs.limit
        reasons = {
            "other data": "" if self.of_the_paper(language_of(config)) else "the data are not the paper's",
            "partial": "" if limit is None else f"only the first {limit} functions",
            "other functions": f"not given: {', '.join(lacks)}" if lacks else "",
        }
        return {word: reason for word, reason in reasons.items() if reason}

    def standing(self, config: str, name: str) -> str:
        """Why one of `names` does not compare with the paper on a config, or COMPARABLE."""
        if name not in _published(config):
            return "not in the paper"
        if config in self.inputs.missing:
            return NO_DATA
        if (given := self._given(config, name)) is None:
            return "empty: no such model"
        reasons = list(self.differs(config))
        direction = LANGUAGES[language_of(config)].direction
        if self.measured[config].directions.get(given, direction) != direction:
            reasons.append("other direction")
        return f"no: {', '.join(reasons)}" if reasons else COMPARABLE

    def _given(self, config: str, name: str) -> str | None:
        """The name in results of one of `names`; None if it was not given."""
        models = self.measured[config].models
        if name.lower() in BASELINES or name in models:
            return name
        return next((model for model in models if paper.name_of(model, language_of(config)) == name), None)


def language_of(config: str) -> str:
    return next(language for language, configs in CONFIGS.items() if config in configs)


def _published(config: str) -> dict[str, dict[str, float]]:
    return paper.scores(language_of(config), "first")
