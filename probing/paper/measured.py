"""What a reproduction measures, by the protocol of the paper alone, and whether it compares with
the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, KS, RULES, TABLE_KS
from codesyntax_dataset.statistics import Statistics
from codesyntax_metric.topk_uas import score
from probing.evidence.baselines import only_kind, pick, rank_ledger, read_edges
from probing.evidence.scores import MEAN
from probing.instruments.attention.errors import ErrorAnalysis
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult, head_name
from probing.paper.inputs import CODE, CONFIGS, Inputs
from probing.paper.joined import Frame, ScoreRow, beside_paper

CUBERT, OFFSET, DATASET = "CuBERT", "Offset", "dataset"
"""Systems: those that Tables 6 and 9 to 12 compare, and what Table 8 counts."""


FURTHER_KEYWORDS = {"java": (";",), "java_with_new_lines": (";",)}
"""Config -> predictors of the paper's keyword baseline that are not keywords of the language.

The paper speaks of `;` as an ablation, but has it in its tables, too: Java, any token, k = 1, is
40.9 in Table 5; on 1,265 functions of CodeSearchNet's test partition it is 41.0 with `;` and 32.7
without. The first token does not tell.
"""


BASELINE_SYSTEMS = tuple(kind.title() for kind in BASELINES)


class ProbedModel(NamedTuple):
    """`name`: as it was given; `direction`: whose row of attention was read."""

    name: str
    direction: str
    signature: str


BASELINES_ONLY = ProbedModel("none: only baselines", "", "")


class Measured(NamedTuple):
    """The scores of models and baselines on the functions that all of the models could read.

    `models`: the paper's name of each model, or else its own -> the model; `rows`: of the frame.
    """

    models: dict[str, ProbedModel]
    rows: list[ScoreRow]


def measure(folder: Path, config: str, ledgers: Mapping[str, Path], limit: int | None) -> Measured:
    """Score the `ledgers` of some models, by their names, and the baselines on the same functions
    of a built dataset.

    One ledger is in memory at a time. Raises LedgerError if the models have no function in common.
    """
    functions = _common_functions(config, ledgers, limit)
    language = language_of_paper(config)
    edges = read_edges(folder, config, "test", functions, FURTHER_KEYWORDS.get(config, ()))
    picks = pick(edges, LANGUAGES[language].direction)
    baselines = rank_ledger(edges, picks)
    rows: list[ScoreRow] = []
    for kind, system in zip(BASELINES, BASELINE_SYSTEMS):
        if system in paper.scores(language, "first"):
            ranks = baselines if kind == BEST_BASELINE else only_kind(baselines, kind)
            rows += _rows_of_means(config, system, ranks)
    for row in _relation_rows(config, OFFSET, only_kind(baselines, "offset")):
        (offset, *_) = picks.names("offset", row.rule, row.group) or ["-"]
        rows.append(row._replace(chosen=str(offset)))
    models: dict[str, ProbedModel] = {}
    for name, file in ledgers.items():
        result = ProbeResult.from_file(file)
        system = system_name(name, language)
        models[system] = ProbedModel(name, result.settings.direction, result.signature)
        ranks = result.ledger if functions is None else result.ledger.only(functions)
        rows += [*_rows_of_means(config, system, ranks), *_relation_rows(config, system, ranks)]
    return Measured(models, rows)


def system_name(model: str, language: str) -> str:
    """The paper's name of a model that it probed, else its own, which is never that of a baseline:
    a model may be in a folder with such a name."""
    name = paper.name_of(model, language) or model
    return f"{name} (model)" if name in (*BASELINE_SYSTEMS, DATASET) else name


def _common_functions(
    config: str, ledgers: Mapping[str, Path], limit: int | None
) -> np.ndarray | None:
    """The places of the functions that all models read; None for all of the split."""
    if not ledgers:
        return None if limit is None else np.arange(limit)
    opened = map(RankLedger.open, ledgers.values())
    read_by = [np.unique(ranks.function) for ranks in opened]
    functions = reduce(np.intersect1d, read_by)
    if not len(functions):
        raise LedgerError(
            f"{', '.join(ledgers)} have no function of {config} in common: reproduce with fewer models"
        )
    return functions


def _rows_of_means(config: str, system: str, ranks: RankLedger) -> Iterator[ScoreRow]:
    """The means over relations at all k of the paper."""
    for rule in RULES:
        scores = score(ranks.counts(), KS, rule)["scores"]
        for k in KS:
            yield ScoreRow(config, MEAN, system, scores[str(k)], rule=rule, k=k)


def _relation_rows(config: str, system: str, ranks: RankLedger) -> Iterator[ScoreRow]:
    """The relations that count in the means, at k = 1, each with its head."""
    for rule in RULES:
        for relation, entry in score(ranks.counts(), 1, rule)["relations"].items():
            if entry["in_mean"]:
                best = entry["1"]
                row = ScoreRow(config, relation, system, best["score"], rule=rule)
                yield row._replace(chosen=head_name(best))


def printed() -> Iterator[ScoreRow]:
    """The numbers of Tables 3 to 5 and 8 to 12, in their order."""
    for config in CONFIGS:
        for rule in RULES:
            for system, by_k in paper.scores(config, rule).items():
                for k, value in by_k.items():
                    yield ScoreRow(config, MEAN, system, value, rule=rule, k=int(k))
            for relation, row in paper.relation_scores(config, rule).items():
                cubert = ScoreRow(config, relation, CUBERT, row.cubert, rule=rule)
                yield cubert
                offset = str(row.offset)
                yield cubert._replace(system=OFFSET, value=row.offset_score, chosen=offset)
        for relation, edges in paper.edges(config).items():
            yield ScoreRow(config, relation, DATASET, edges, "edges", digits=0)


@dataclass(frozen=True)
class Reproduction:
    """Everything that was measured. `measured`: config -> scores; `counted`: language -> statistics
    of all its splits; `errors`: language of code -> the wrong first choices of its first model;
    `cases`: rows of single functions."""

    inputs: Inputs
    measured: dict[str, Measured] = field(default_factory=dict)
    counted: dict[str, Statistics] = field(default_factory=dict)
    errors: dict[str, ErrorAnalysis] = field(default_factory=dict)
    cases: list[list[Any]] = field(default_factory=list)

    @cached_property
    def frame(self) -> Frame:
        """All numbers beside the paper's, and what differs between their inputs."""
        scores = [row for measured in self.measured.values() for row in measured.rows]
        frame = beside_paper([*scores, *self._counts(), *self._error_rows()], printed())
        frame["differs"] = [*map(self.differs, frame["config"], frame["system"])]
        return frame

    def _counts(self) -> Iterator[ScoreRow]:
        """Edges and mean offsets by relation."""
        for config, counted in self.counted.items():
            for name, relation in counted.relations.items():
                yield ScoreRow(config, name, DATASET, relation.offset.mean, "offset")
                if config in CODE:
                    yield ScoreRow(config, name, DATASET, relation.edges, "edges")

    def _error_rows(self) -> Iterator[ScoreRow]:
        """The classes of wrong first choices, the most frequent first; and the kinds that heads
        attend to most."""
        for config, analysis in self.errors.items():
            model, classes = analysis.settings.model, +Counter(analysis.classes("first"))
            for kind, number in classes.most_common():
                yield ScoreRow(config, kind, model, number, "errors")
            for head, kinds in analysis.attended.items():
                tokens = max(1, sum(kinds.values()))
                for kind, number in kinds.items():
                    percent = 100 * number / tokens
                    yield ScoreRow(config, kind, f"{model} {head}", percent, "attended")

    def differs(self, config: str, system: str) -> str:
        """The settings of a model or baseline on a config that are not the paper's; empty if all
        are. Or why the config has nothing."""
        if config not in self.measured:
            return f"empty: {self.inputs.missing.get(config, 'no source was given')}"
        language, models = language_of_paper(config), self.measured[config].models
        counted, differing = self.counted.get(language), []
        if counted is None or counted.functions != paper.functions(language):
            differing.append("data")
        if self.inputs.limit is not None:
            differing.append("limit")
        # with models that were not given, fewer functions might fit all
        known = {*BASELINE_SYSTEMS, *models}
        tables = paper.scores(language, "first").items()
        if any(len(by_k) == len(TABLE_KS) and name not in known for name, by_k in tables):
            differing.append("models")
        direction = LANGUAGES[language].direction
        if models.get(system, BASELINES_ONLY).direction not in ("", direction):
            differing.append("direction")
        return ", ".join(differing)


def language_of_paper(config: str) -> str:
    return next(language for language, configs in CONFIGS.items() if config in configs)
