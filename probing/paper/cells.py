"""The paper's numbers and ours beside them, by the protocol of the paper alone, and whether the two compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, KS, RULES, TABLE_KS
from codesyntax_dataset.statistics import Statistics
from codesyntax_metric.topk_uas import score
from probing.evidence.baselines import ledger, only, pick, read_edges
from probing.instruments.attention.errors import ErrorAnalysis
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.paper.inputs import CONFIGS, Inputs
from probing.report.document import Column, Figure, Table
from probing.report.kinds import Kind

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

    @staticmethod
    def columns(group: str, kind: Kind, difference: Kind, paper: str = "paper") -> list[Column]:
        """The three columns that it takes; `kind`, `difference`: of the numbers and of their difference."""
        return [*Column.each(kind, "here", paper, group=group), Column("difference", difference, group)]


def compared(
    name: str, title: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]], notes: str, filters: int = 0
) -> tuple[Table, list[Compared]]:
    """A table, in the rows of which a Compared takes three columns; and those that have a number in the paper."""
    rows = list(rows)
    found = [cell for cell in chain(*rows) if isinstance(cell, Compared) and cell.paper is not None]
    flat = [[*chain(*(cell.shown if isinstance(cell, Compared) else [cell] for cell in row))] for row in rows]
    return Table(name, title, columns, flat, notes, filters=filters), found


Scores = dict[str, dict[str, Any]]
"""Rule -> `codesyntax_metric.topk_uas.score` at all k of the paper."""


FURTHER_KEYWORDS = {"java": (";",), "java_with_new_lines": (";",)}
"""Config -> predictors of the paper's keyword baseline that are not keywords of the language.

The paper speaks of `;` as an ablation, but has it in its tables, too: Java, any token, k = 1, is 40.9 in Table 5; on
1,265 functions of CodeSearchNet's test partition it is 41.0 with `;` and 32.7 without. The first token does not tell.
"""


@dataclass(frozen=True)
class Measured:
    """Scores of models and baselines on the functions that all of the models could read.

    `offsets`: rule -> relation -> the offsets of the baseline, best first;
    `directions`: model -> whose row of attention was read; `signatures`: model -> that of its result.
    """

    config: str
    functions: int
    models: dict[str, Scores]
    baselines: dict[str, Scores]
    offsets: dict[str, dict[str, list[Any]]]
    directions: dict[str, str]
    signatures: dict[str, str]


def measure(folder: Path, config: str, ledgers: Mapping[str, Path], limit: int | None) -> Measured:
    """Score the `ledgers` of some models, by their names, and the baselines on the same functions of a built dataset.

    One ledger is in memory at a time. Raises LedgerError if the models have no function in common.
    """
    read_by = [np.unique(RankLedger.open(file).function) for file in ledgers.values()]
    functions = reduce(np.intersect1d, read_by) if read_by else None if limit is None else np.arange(limit)
    if functions is not None and not len(functions):
        raise LedgerError(f"{', '.join(ledgers)} have no function of {config} in common: reproduce with fewer models")
    models, directions, signatures = {}, {}, {}
    for name, file in ledgers.items():
        result = ProbeResult.from_file(file)
        directions[name], signatures[name] = result.settings.direction, result.signature
        models[name] = _scores(result.ledger if functions is None else result.ledger.only(functions))
    edges = read_edges(folder, config, "test", functions, FURTHER_KEYWORDS.get(config, ()))
    picks = pick(edges, LANGUAGES[language_of(config)].direction)
    ranks = ledger(edges, picks)
    return Measured(
        config,
        edges.settings.functions,
        models,
        {kind: _scores(ranks if kind == BEST_BASELINE else only(ranks, kind)) for kind in BASELINES},
        picks.picked["offset"],
        directions,
        signatures,
    )


def _scores(ranks: RankLedger) -> Scores:
    counts = ranks.counts()
    return {rule: score(counts, KS, rule) for rule in RULES}


class HeadExample(NamedTuple):
    """A figure of what one attention head predicts in one function, and the edges in rows."""

    drawn: Figure
    rows: list[list[Any]]


@dataclass(frozen=True)
class Made:
    """Everything that was made: `measured`: config -> scores; `counted`: language -> statistics of all its splits;
    `examples`: language of code -> what its first model predicts in a function; `errors`: language of code -> its wrong
    first choices."""

    inputs: Inputs
    measured: Mapping[str, Measured]
    counted: Mapping[str, Statistics]
    examples: Mapping[str, HeadExample] = field(default_factory=dict)
    errors: Mapping[str, ErrorAnalysis] = field(default_factory=dict)

    def names(self, config: str) -> list[str]:
        """The names of what is compared on a config: as in the paper, then our models that it does not have."""
        measured = self.measured.get(config)
        models = [] if measured is None else list(measured.models)
        return [*_published(config), *(name for name in models if paper.name_of(name, language_of(config)) is None)]

    def scores(self, config: str, name: str, rule: str) -> Scores:
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
