"""The findings on the models of one config, as plain data, so that ledgers can be freed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import Language, language_of
from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    CONTROL_TASK,
    HELD_OUT,
    KS,
    PROTOCOLS,
    PUBLISHED,
    RANDOM_WEIGHTS,
    REDRAWN_DEPENDENTS,
    SHUFFLED_ATTENTION,
)
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence import gather
from probing.evidence.baselines import KINDS, Edges, Named, kinds_of
from probing.evidence.beyond import Beyond, Rivals, Stratum
from probing.evidence.compared import Emergence, emergence
from probing.evidence.gather import PUBLISHED_FIRST
from probing.evidence.protocols import (
    MEASURES,
    SAME_RELATIONS,
    TABLE_MEASURES,
    ChosenHits,
    Comparison,
    apply_each,
    choose,
    compare_means,
    over_models,
)
from probing.evidence.random_attention import by_relation, random_attention
from probing.evidence.random_attention import expected as expected_scores
from probing.evidence.submission import Submission, for_boards
from probing.evidence.summary import Means, Summary, means
from probing.instruments.attention.errors import ErrorAnalysis, errors_path, load
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult, at_step
from probing.report import figures
from probing.report.words import distinct, file_names
from probing.runs.progress import progress
from probing.runs.settings import Settings, extent
from probing.stats.cache import cached
from probing.stats.intervals import Estimate

DISTINGUISHING = ("revision", "dtype", "max_length", "also_fits", "seed", "begin")
"""Settings that are added to the name of a model probed more than once."""

MEANS = (PUBLISHED, SAME_RELATIONS, HELD_OUT)
"""The means that are shown side by side."""


RULE, K = "first", "1"  # where only one rule and k are shown, as in the paper

_STYLES: dict[str | None, Any] = {
    None: "-",
    RANDOM_WEIGHTS: "--",
    SHUFFLED_ATTENTION: ":",
    REDRAWN_DEPENDENTS: "-.",
    CONTROL_TASK: (0, (1, 3)),
}
"""The line styles of models and controls in figures."""


class CommonResult(NamedTuple):
    """A result on test, restricted to the functions that all subjects could read; `to_choose_on`: those of validation,
    `heads`: of each layer; `layers_note`: what the numbers of layers stand for, if some have no attention."""

    settings: Settings
    signature: str
    layers: int
    heads: int
    functions: int
    to_choose_on: int
    edges: int
    skips: dict[str, int]
    layers_note: list[str]


@dataclass
class Subject:
    """A model or one of its controls.

    `file`, `chosen_on`: its results on test and on validation. `result`: that of test on the functions of the report;
    `functions`: how many it was probed on. `scores`, `comparisons`, `differences`: as Evidence has them. `entry`: None
    if no board takes it. `heads`: relation -> top-1 UAS in percent, rule first, of each attention head (layers, heads).
    `errors`: None if they were not analysed. `beyond`, `beyond_compared`: number of avoided offsets -> what it finds on
    hard edges, and against the best rival there. `strata`: what it finds by distance and length.
    """

    name: str
    file: Path
    chosen_on: Path
    result: CommonResult
    scores: gather.EvidenceScores
    comparisons: dict[str, Comparison]
    differences: dict[str, Estimate]
    entry: Submission | None
    heads: dict[str, np.ndarray]
    functions: int
    errors: ErrorAnalysis | None
    beyond: dict[int, Beyond | None]
    beyond_compared: dict[int, Comparison | None]
    strata: list[Stratum]

    @cached_property
    def settings(self) -> Settings:
        return self.result.settings

    @property
    def means(self) -> dict[str, Means]:
        """One of MEANS -> its scores."""
        scores = {protocol: self.scores.protocols[protocol].scores for protocol in PUBLISHED_FIRST}
        return {**scores, SAME_RELATIONS: self.scores.same_relations.scores}

    @property
    def is_model(self) -> bool:
        return self.settings.control is None

    @property
    def marks(self) -> str:
        """Its differences from a full run in float32, in words."""
        settings = self.settings
        marks = [settings.dtype] if settings.dtype != "float32" else []
        marks += [f"partial: {extent(settings.limit)}"] if settings.limit is not None else []
        return "; ".join(marks)


Cell = Sequence[float | None] | float | None
"""[score, low, high] of a mean, or a score without an interval."""


class Scored(NamedTuple):
    """One row: anything that has a mean over relations.

    `sizes`: one of MEANS -> number of relations in it, and of their edges. `scores`: one of MEANS -> rule -> k -> cell.
    `differences`: one of MEANS -> difference to the best baseline, (M,).
    """

    name: str
    kind: str
    functions: int | None
    sizes: dict[str, tuple[int, int]]
    scores: Mapping[str, Mapping[str, Mapping[str, Cell]]]
    differences: dict[str, Estimate]

    def cell(self, mean: str, rule: str, k: str) -> Cell:
        return self.scores.get(mean, {}).get(rule, {}).get(k)

    def difference(self, mean: str, rule: str, k: str) -> list[float] | None:
        """[difference, low, high, p]; None if there is none."""
        if mean not in self.differences:
            return None
        difference = self.differences[mean].at(MEASURES.index((rule, int(k))))
        return None if np.isnan(difference.value) else list(difference[:4])


@dataclass
class Findings:
    """Subjects on the same functions, and their baselines and controls.

    `random`: one of MEANS -> scores of random attention, rule -> k -> [score, low, high]; `chance`: the same, without
    intervals, for a single random head on average. `picked`: protocol -> kind -> rule -> relation -> offsets or
    keywords, best first. `chosen`: protocol -> rule -> relation -> the kind that the best baseline uses for each k of
    KS. `offsets`: relation -> offset from head to dependent, in tokens -> edges. `rules`: those that differ, only the
    first if every dependent is one token. `pairs`: (index of one model, of the other) -> one of MEANS -> comparison at
    TABLE_KS.
    `rivals`: number of avoided offsets -> what needs no model there. `trainings`: models of which several checkpoints
    were probed; their last ones are the subjects.
    """

    title: str
    name: str  # of files
    subjects: list[Subject]
    baselines: dict[str, dict[str, Summary]]
    random_heads: int  # as many as the largest model has
    random: dict[str, Means]
    chance: dict[str, dict[str, dict[str, float | None]]]
    picked: dict[str, Named]
    chosen: dict[str, dict[str, dict[str, list[str]]]]
    offsets: dict[str, dict[int, int]]
    rules: tuple[str, ...]
    pairs: dict[tuple[int, int], dict[str, Estimate]]
    rivals: dict[int, Rivals | None]
    trainings: list[Emergence]

    @property
    def settings(self) -> Settings:
        return self.subjects[0].settings

    def file(self, part: str, subject: Subject) -> str:
        """The name of files and sections on a subject, such as python-relations-tiny."""
        names = file_names([one.name for one in self.subjects])
        return f"{self.name}-{part}-{names[self.subjects.index(subject)]}"

    @property
    def config(self) -> str:
        return self.settings.config

    @property
    def language(self) -> Language:
        return language_of(self.config)

    @property
    def functions(self) -> int:
        return self.subjects[0].result.functions

    @property
    def edges(self) -> int:
        return self.subjects[0].result.edges

    def size(self, mean: str) -> tuple[int, int]:
        """The number of relations in one of MEANS, and of their edges."""
        protocol = "published" if mean == "published" else "held-out"
        relations = self.subjects[0].scores.protocols[protocol].relations.values()
        edges = [entry.edges for entry in relations if entry.in_mean]
        return len(edges), sum(edges)

    def baseline(self, mean: str, kind: str) -> Means:
        """One of MEANS of a baseline."""
        if mean == SAME_RELATIONS:
            return self.subjects[0].scores.same_relations.baselines[kind]
        return self.baselines[mean][kind].scores

    @property
    def models(self) -> list[Subject]:
        return [subject for subject in self.subjects if subject.is_model]

    @cached_property
    def rows(self) -> list[Scored]:
        """Models, controls and baselines, all on the same functions."""
        return _rows(self)

    @cached_property
    def row(self) -> dict[str, Scored]:
        """Name -> its row."""
        return {row.name: row for row in self.rows}

    @property
    def as_published(self) -> bool:
        """True if the paper has numbers for such a run."""
        settings = self.settings
        as_scored = settings.direction == self.language.direction and settings.split == "test"
        return as_scored and bool(paper.scores(self.config, RULES[0]))

    @property
    def paper_rows(self) -> list[Scored]:
        """The paper's own rows, if it has such a config."""
        scores: dict[str, dict[str, dict[str, float]]] = {}
        for rule in RULES if self.as_published else ():
            for name, score_by_k in paper.scores(self.config, rule).items():
                scores.setdefault(name, {})[rule] = score_by_k
        in_mean = [edges for name, edges in paper.edges(self.config).items() if name not in NOT_IN_MEAN]
        functions, sizes = paper.functions(self.config), {PUBLISHED: (len(in_mean), sum(in_mean))} if in_mean else {}
        return [Scored(name, "paper", functions, sizes, {PUBLISHED: by_rule}, {}) for name, by_rule in scores.items()]

    @property
    def best_model(self) -> Subject:
        """The model with the highest held-out mean, or with the highest published mean if none has a held-out one."""
        return max(self.models, key=_means)

    @property
    def drawn(self) -> list[Subject]:
        """The models in figures of several: all, or as many of the best as there are colours."""
        best = {model.name for model in sorted(self.models, key=_means, reverse=True)[: len(figures.COLOURS)]}
        return [model for model in self.models if model.name in best]

    @property
    def drawn_in_words(self) -> str:
        """A sentence on the models that figures leave out, if they do."""
        models, some = len(self.models), len(self.drawn)
        if models == some:
            return ""
        return f"Of {models} models, the {some} with the highest mean are shown (top-1, held-out). "

    @property
    def styled(self) -> list[tuple[Subject, str, Any]]:
        """The subjects that figures draw, with their colour and line style: a control has the colour of its model."""
        left_out = {model.settings.model for model in self.models} - {model.settings.model for model in self.drawn}
        names = {model.name for model in self.drawn}
        subjects = [
            subject
            for subject in self.subjects
            if (subject.name in names if subject.is_model else subject.settings.model not in left_out)
        ]
        models = list(dict.fromkeys(subject.settings.model for subject in subjects))
        result, seen = [], 0
        for subject in subjects:
            place = seen if subject.is_model else models.index(subject.settings.model)
            seen += subject.is_model
            colour = figures.COLOURS[place % len(figures.COLOURS)]
            result.append((subject, colour, _STYLES[subject.settings.control]))
        return result


def _means(model: Subject) -> list[float]:
    """The means by which models are ordered, the held-out one first."""
    cells = (model.means[protocol][RULE][K] for protocol in PROTOCOLS)
    return [-1.0 if cell is None or cell[0] is None else cell[0] for cell in cells]


def _rows(findings: Findings) -> list[Scored]:
    size = findings.functions, {mean: findings.size(mean) for mean in MEANS}
    differences = _corrected_differences(findings)
    rows = []
    for place, subject in enumerate(findings.subjects):
        kind = "; ".join(["model" if subject.is_model else "control"] + ([subject.marks] if subject.marks else []))
        rows.append(Scored(subject.name, kind, *size, subject.means, differences[place]))
    rows.append(
        Scored(f"random attention, best of {findings.random_heads} heads", "control", *size, findings.random, {})
    )
    rows.append(Scored("random attention, a head on average", "control", *size, findings.chance, {}))
    rows += [
        Scored(kind, "baseline", *size, {mean: findings.baseline(mean, kind) for mean in MEANS}, {})
        for kind in kinds_of(findings.config)
    ]
    return rows


def _corrected_differences(findings: Findings) -> list[dict[str, Estimate]]:
    """For each subject: one of MEANS -> difference to the best baseline, (M,), p corrected over the models."""
    models = [subject.is_model for subject in findings.subjects]
    corrected: list[dict[str, Estimate]] = [{} for _ in models]
    for mean in MEANS:
        differences = over_models([subject.differences.get(mean) for subject in findings.subjects], models)
        for of_subject, difference in zip(corrected, differences):
            if difference is not None:
                of_subject[mean] = difference
    return corrected


def read_findings(paths: Sequence[Path], data: Any = None) -> list[Findings]:
    """The findings of each group of comparable results, in the order of configs; one group is in memory at a time.

    Raises LedgerError for files that are not results, or that do not match each other or their data.
    """
    groups = gather.comparable(paths)
    all_findings: list[Findings] = []
    names: list[str] = []  # of files
    for shared, files in progress(groups, desc="gathering", unit="config"):
        title = [shared.config]
        same_config = [other for other, _ in groups if other.config == shared.config]
        title += [shared.data] if len({other.data for other in same_config}) > 1 else []
        title += [shared.split] if shared.split != "test" else []
        title += [shared.direction] if shared.direction != language_of(shared.config).direction else []
        names.append(", ".join(title))
        units = language_of(shared.config).units
        title += [f"partial, {extent(shared.limit, units)}"] if shared.limit is not None else []
        all_findings.append(_gathered(", ".join(title), file_names(names)[-1], files, data))
    return all_findings


def _gathered(title: str, name: str, files: list[Path], data: Any) -> Findings:
    probed = gather.find(files)
    evidence = gather.gather(probed, data)
    trainings = _trainings(evidence)
    earlier = {id(one) for training in trainings for one in training[:-1]}
    probed = [whole for whole, one in zip(probed, evidence) if id(one) not in earlier]
    evidence = [one for one in evidence if id(one) not in earlier]
    first = evidence[0]
    validation, test = first.splits.edges["validation"], first.splits.edges["test"]
    direction = first.probed.test.settings.direction
    made = zip(map(_subject, _names([one.probed.test for one in evidence]), evidence, probed), evidence)
    in_order = sorted(made, key=lambda pair: (not pair[0].is_model, pair[0].name))
    subjects, evidence = [subject for subject, _ in in_order], [one for _, one in in_order]
    models = [place for place, subject in enumerate(subjects) if subject.is_model]
    hits = [_side_by_side(one.hits) for one in evidence]
    pairs = list(combinations(models, 2))
    at_tables = [{mean: chosen.at(TABLE_MEASURES) for mean, chosen in of_model.items()} for of_model in hits]
    of_pairs = {
        (one, other): {mean: _compared(at_tables[one][mean], at_tables[other][mean]) for mean in at_tables[one]}
        for one, other in pairs
    }
    by_chance = by_relation(test, direction)
    drawn = max(int(np.prod(one.probed.test.ledger.ranks.shape[2:])) for one in evidence)
    return Findings(
        title=title,
        name=name,
        subjects=subjects,
        baselines=subjects[0].scores.baselines,
        random_heads=drawn,
        random=_random(validation, test, direction, drawn),
        chance={mean: _chance(by_chance, chosen.relations) for mean, chosen in hits[0].items()},
        picked={protocol: picks.picked for protocol, picks in first.splits.baselines.picks.items()},
        chosen={
            protocol: {
                rule: {name: [KINDS[head] for head in heads[number, :, 1]] for name, heads in choice.items()}
                for number, rule in enumerate(RULES)
            }
            for protocol, kinds in first.splits.baselines.hits.items()
            for choice in [kinds[BEST_BASELINE].choice]
        },
        offsets=_offsets(test),
        rules=RULES if (test.first != test.last).any() else RULES[:1],
        pairs=of_pairs,
        rivals=first.splits.rivals,
        trainings=[emergence(training) for training in trainings if training[0].probed.test.settings.control is None],
    )


def _subject(name: str, one: gather.Evidence, whole: gather.Probed) -> Subject:
    """`whole`: the probes of all functions, of which `one` has those that all subjects could read."""
    file, test = one.probed.files["test"], one.probed.test
    errors = load(errors_path(file)) if errors_path(file).exists() else None
    if errors is not None and errors.signature != whole.test.signature:
        raise LedgerError(f"{errors_path(file)} does not belong to {file.name}: run `codesyntax errors {file}` again")
    counts = test.functions, one.probed.validation.functions, len(test.ledger)
    return Subject(
        name=name,
        file=file,
        chosen_on=one.probed.files["validation"],
        result=CommonResult(
            test.settings, test.signature, test.layers, test.heads, *counts, test.skips, test.run.layers_note
        ),
        scores=one.scores,
        comparisons=one.comparisons,
        differences=one.differences,
        entry=for_boards(one.submission),
        heads=_heads(test.ledger),
        functions=whole.test.functions,
        errors=errors,
        beyond=one.beyond,
        beyond_compared=one.beyond_compared,
        strata=one.strata,
    )


def _trainings(evidence: Sequence[gather.Evidence]) -> list[list[gather.Evidence]]:
    """The checkpoints of each model of which there are several, in order of their steps.

    Raises LedgerError for two of one step, which have the name of one model, and need not be of one training.
    """
    trainings: dict[Settings, dict[int, gather.Evidence]] = {}
    for one in evidence:
        test = one.probed.test
        if (step := test.run.step) is not None:
            by_step = trainings.setdefault(gather.alike(test).model_copy(update={"revision": ""}), {})
            if (other := by_step.setdefault(step, one)) is not one:
                raise LedgerError(
                    f"{one.probed.files['test']} and {other.probed.files['test']} are both of "
                    f"{at_step(test.settings.model, step)}, but their weights differ: give the checkpoints of one "
                    "training only"
                )
    return [[by_step[step] for step in sorted(by_step)] for by_step in trainings.values() if len(by_step) > 1]


def _names(probed: Sequence[ProbeResult]) -> list[str]:
    """Distinct names of models and controls."""
    settings = [one.settings for one in probed]
    names = [", ".join([at_step(one.settings.model, one.run.step), *one.settings.instead]) for one in probed]
    return distinct(names, settings, DISTINGUISHING)


def _heads(ledger: RankLedger) -> dict[str, np.ndarray]:
    found = {name: np.zeros(ledger.ranks.shape[2:], np.int64) for name in ledger.relations}
    for part, ranks in ledger.parts():
        for number, name in enumerate(ledger.relations):
            found[name] += (ranks[0, ledger.relation[part] == number] == 0).sum(axis=0)
    edges = np.bincount(ledger.relation, minlength=len(ledger.relations))
    return {name: 100 * found[name] / count for name, count in sorted(zip(ledger.relations, edges.tolist())) if count}


def _offsets(edges: Edges) -> dict[str, dict[int, int]]:
    """Relation -> offset from head to dependent, ascending -> edges."""
    offset = edges.first - edges.head
    counted = {}
    for number, name in enumerate(edges.relations):
        values, counts = np.unique(offset[edges.relation == number], return_counts=True)
        counted[name] = dict(zip(values.tolist(), counts.tolist()))
    return counted


def _random(validation: Edges, test: Edges, direction: str, heads: int) -> dict[str, Means]:
    def compute() -> dict[str, np.ndarray]:
        scored = random_attention(test, direction, heads)
        # the best heads on validation are any heads here: draws of the two splits have nothing in common
        cells = np.zeros((len(RULES), len(KS), 2), int)
        any_heads = {name: cells + (0, number % heads) for number, name in enumerate(sorted(on_validation))}
        both = apply_each(scored, [choose(scored), any_heads])
        side_by_side = _side_by_side(dict(zip((PUBLISHED, HELD_OUT), both)))
        return {mean: np.array(chosen.hits.mean(chosen.system)[:4]) for mean, chosen in side_by_side.items()}

    on_validation = [validation.relations[number] for number in np.unique(validation.relation)]
    made_of = chain([repr(on_validation).encode()], test.content())
    found = cached(f"random attention {direction} {heads}", made_of, compute)
    return {mean: means(Estimate(value, low, high, p, 0)) for mean, (value, low, high, p) in found.items()}


def _compared(first: ChosenHits, second: ChosenHits) -> Estimate:
    """The difference of two means, from the cache if it was computed before: of many models, there are many pairs."""

    def compute() -> dict[str, np.ndarray]:
        difference = compare_means(first, second)
        return {"difference": np.array(difference[:4]), "n": np.array(float(difference.n))}

    found = cached("pair of models", chain(first.hits.content(), second.hits.content()), compute)
    value, low, high, p = found["difference"]
    return Estimate(value, low, high, p, int(found["n"]))


def _side_by_side(hits: Mapping[str, ChosenHits]) -> dict[str, ChosenHits]:
    """The hits by both protocols, and of SAME_RELATIONS."""
    return {**hits, SAME_RELATIONS: hits[PUBLISHED].only(hits[HELD_OUT].relations)}


def _chance(of_relation: Mapping[str, np.ndarray], relations: Sequence[str]) -> dict[str, dict[str, float | None]]:
    expected = expected_scores(of_relation, relations)
    cells: dict[str, dict[str, float | None]] = {rule: {} for rule in RULES}
    for (rule, k), score in zip(MEASURES, expected.tolist()):
        cells[rule][str(k)] = None if np.isnan(score) else score
    return cells
