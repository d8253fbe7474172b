"""What a reproduction measures, by the protocol of the paper alone, and whether it compares with
the paper."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, KS, RULES, TABLE_KS
from codesyntax_dataset.statistics import Statistics
from codesyntax_metric.topk_uas import score
from probing.evidence.baselines import ledger, only, pick, read_edges
from probing.evidence.scores import MEAN
from probing.instruments.attention.errors import ErrorAnalysis
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult, head_name
from probing.paper.cases import Case
from probing.paper.inputs import CODE, CONFIGS, Inputs
from probing.paper.joined import COMPARABLE, Frame, ScoreRow, join

CUBERT, OFFSET, DATASET = "CuBERT", "Offset", "dataset"
"""Systems: those that Tables 6 and 9 to 12 compare, and what Table 8 counts."""

NO_DATA = "empty: no data"

FURTHER_KEYWORDS = {"java": (";",), "java_with_new_lines": (";",)}
"""Config -> predictors of the paper's keyword baseline that are not keywords of the language.

The paper speaks of `;` as an ablation, but has it in its tables, too: Java, any token, k = 1, is
40.9 in Table 5; on 1,265 functions of CodeSearchNet's test partition it is 41.0 with `;` and 32.7
without. The first token does not tell.
"""


class ProbedModel(NamedTuple):
    """`name`: as it was given; `direction`: whose row of attention was read."""

    name: str
    direction: str
    signature: str


NO_MODEL = ProbedModel("none: only baselines", "", "")


@dataclass(frozen=True)
class Measured:
    """The scores of models and baselines on the functions that all of the models could read.

    `functions`: how many; `models`: the paper's name of each model, or else its own -> the model;
    `rows`: of the frame.
    """

    functions: int
    models: dict[str, ProbedModel]
    rows: list[ScoreRow]


def measure(folder: Path, config: str, ledgers: Mapping[str, Path], limit: int | None) -> Measured:
    """Score the `ledgers` of some models, by their names, and the baselines on the same functions
    of a built dataset.

    One ledger is in memory at a time. Raises LedgerError if the models have no function in common.
    """
    functions = _common_functions(config, ledgers, limit)
    language = language_of(config)
    edges = read_edges(folder, config, "test", functions, FURTHER_KEYWORDS.get(config, ()))
    picks = pick(edges, LANGUAGES[language].direction)
    baselines = ledger(edges, picks)
    rows: list[ScoreRow] = []
    for kind in BASELINES:
        if kind.title() in paper.scores(language, "first"):
            ranks = baselines if kind == BEST_BASELINE else only(baselines, kind)
            of_kind = _mean_rows(config, kind.title(), ranks)
            rows += [row for row in of_kind if row.group == MEAN or row.system == OFFSET]
    models: dict[str, ProbedModel] = {}
    for name, file in ledgers.items():
        result = ProbeResult.from_file(file)
        system = system_name(name, language, models)
        models[system] = ProbedModel(name, result.settings.direction, result.signature)
        rows += _mean_rows(
            config,
            system,
            result.ledger if functions is None else result.ledger.only(functions),
        )
    rows += list(_against_offset(rows))
    for number, row in enumerate(rows):
        if row.system == OFFSET and row.group != MEAN:
            offsets = picks.names("offset", row.rule, row.group)
            chosen = str(offsets[0]) if offsets else ""
            rows[number] = row._replace(chosen=chosen)
    return Measured(edges.settings.functions, models, rows)


def system_name(model: str, language: str, taken: Container[str]) -> str:
    """The paper's name of a model if it probed it, and none of `taken` has that name; else its own,
    which is never that of a baseline: a model may be in a folder with such a name."""
    known = paper.name_of(model, language)
    if known is not None and known not in taken:
        return known
    return f"{model} (model)" if model in (*BASELINE_SYSTEMS, DATASET) else model


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


def _mean_rows(config: str, system: str, ranks: RankLedger) -> Iterator[ScoreRow]:
    """The means at all k of the paper, and the relations that count in them at k = 1, each with its
    head."""
    counts = ranks.counts()
    for rule in RULES:
        scores = score(counts, KS, rule)
        for k in KS:
            yield ScoreRow(config, MEAN, system, scores["scores"][str(k)], rule=rule, k=k)
        for relation, entry in scores["relations"].items():
            if entry["in_mean"]:
                best, edges = entry["1"], entry["edges"]
                head = head_name(best)
                yield ScoreRow(
                    config,
                    relation,
                    system,
                    best["score"],
                    rule=rule,
                    chosen=head,
                    items=edges,
                )


def _against_offset(rows: Sequence[ScoreRow], digits: int | None = None) -> Iterator[ScoreRow]:
    """The differences of models to the best offset, relation by relation."""
    offsets = {}
    for row in rows:
        if row.system == OFFSET:
            offsets[row.config, row.rule, row.group] = row.value
    for row in rows:
        if row.group != MEAN and row.system not in BASELINE_SYSTEMS:
            value = row.value - offsets[row.config, row.rule, row.group]
            value = value if digits is None else round(value, digits)
            yield row._replace(value=value, against=OFFSET, chosen="")


BASELINE_SYSTEMS = tuple(kind.title() for kind in BASELINES)


def printed() -> Iterator[ScoreRow]:
    """The numbers of Tables 3 to 5 and 8 to 12, in their order."""
    for config in CONFIGS:
        for rule in RULES:
            for system, by_k in paper.scores(config, rule).items():
                for k, value in by_k.items():
                    yield ScoreRow(config, MEAN, system, value, rule=rule, k=int(k))
            relations: list[ScoreRow] = []
            for relation, row in paper.relation_scores(config, rule).items():
                offset = ScoreRow(
                    config,
                    relation,
                    OFFSET,
                    row.offset_score,
                    rule=rule,
                    chosen=str(row.offset),
                )
                relations += [
                    ScoreRow(config, relation, CUBERT, row.cubert, rule=rule),
                    offset,
                ]
            yield from relations
            yield from _against_offset(relations, 1)
        for relation, edges in paper.edges(config).items():
            yield ScoreRow(config, relation, DATASET, edges, "edges", digits=0)


@dataclass(frozen=True)
class Reproduction:
    """Everything that was measured. `measured`: config -> scores; `counted`: language -> statistics
    of all its splits; `errors`: language of code -> the wrong first choices of its first model;
    `cases`: single functions."""

    inputs: Inputs
    measured: Mapping[str, Measured] = field(default_factory=dict)
    counted: Mapping[str, Statistics] = field(default_factory=dict)
    errors: Mapping[str, ErrorAnalysis] = field(default_factory=dict)
    cases: Sequence[Case] = ()

    @cached_property
    def frame(self) -> Frame:
        """All numbers beside the paper's."""
        scores = [row for measured in self.measured.values() for row in measured.rows]
        ours = [*scores, *self._counts(), *self._error_rows()]
        return join(ours, printed(), self.standing)

    def _counts(self) -> Iterator[ScoreRow]:
        """Edges and mean offsets by relation; no edges of relations that only the paper has."""
        for config, counted in self.counted.items():
            for name, relation in counted.relations.items():
                yield ScoreRow(
                    config,
                    name,
                    DATASET,
                    relation.offset.mean,
                    "offset",
                    items=relation.edges,
                )
            for name in {**counted.relations, **paper.edges(config)} if config in CODE else ():
                edges = counted.relations[name].edges if name in counted.relations else 0
                yield ScoreRow(config, name, DATASET, edges, "edges")

    def _error_rows(self) -> Iterator[ScoreRow]:
        """The classes of wrong first choices, the most frequent first; and the kinds that heads
        attend to most."""
        for config, analysis in self.errors.items():
            model = analysis.settings.model
            classes = analysis.classes("first")
            errors = sum(classes.values())
            for kind, number in sorted(classes.items(), key=lambda counted: -counted[1]):
                if number:
                    percent = 100 * number / errors
                    yield ScoreRow(config, kind, model, number, "errors")
                    yield ScoreRow(config, kind, model, percent, "percent")
            for head, kinds in analysis.attended.items():
                tokens = max(1, sum(kinds.values()))
                for kind, number in kinds.items():
                    percent = 100 * number / tokens
                    yield ScoreRow(config, kind, f"{model} {head}", percent, "attended")

    def has_data_of_the_paper(self, language: str) -> bool:
        """True if the data have as many functions as the paper's, and as many edges of each
        relation in Table 8."""
        counted = self.counted.get(language)
        edges = paper.edges(language)
        if counted is None or counted.functions != paper.functions(language):
            return False
        return not edges or edges == {
            name: relation.edges for name, relation in counted.relations.items()
        }

    def differs(self, config: str) -> dict[str, str]:
        """Differences between the inputs of a config and the paper's: in a word, and in more
        words."""
        language, limit, reasons = language_of(config), self.inputs.limit, {}
        if not self.has_data_of_the_paper(language):
            reasons["other data"] = "the data are not the paper's"
        if limit is not None:
            reasons["partial"] = f"only the first {limit} functions"
        known = {*BASELINE_SYSTEMS, *self.measured[config].models}
        in_tables = paper.scores(language, "first").items()
        lacks = [
            name for name, by_k in in_tables if len(by_k) == len(TABLE_KS) and name not in known
        ]
        if lacks:  # with them, fewer functions might fit all models
            reasons["other functions"] = f"not given: {', '.join(lacks)}"
        return reasons

    def standing(self, config: str, system: str) -> str:
        """Why the numbers of a system do not compare with the paper's on a config, or
        COMPARABLE."""
        language = language_of(config)
        if system != DATASET and system not in paper.scores(language, "first"):
            return "not in the paper"
        if config in self.inputs.missing:
            return NO_DATA
        if system == DATASET:
            return COMPARABLE if self.has_data_of_the_paper(language) else "no: other data"
        model = self.measured[config].models.get(system)
        if model is None and system not in BASELINE_SYSTEMS:
            return "empty: no such model"
        reasons = list(self.differs(config))
        if model is not None and model.direction != LANGUAGES[language].direction:
            reasons.append("other direction")
        return f"no: {', '.join(reasons)}" if reasons else COMPARABLE


def language_of(config: str) -> str:
    return next(language for language, configs in CONFIGS.items() if config in configs)
