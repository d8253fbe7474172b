"""What is known of the models of one config: their rows of the frame, and what tables and figures
need beside these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import Language, language_of
from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    BEYOND_OFFSET,
    HELD_OUT,
    PROTOCOLS,
)
from codesyntax_metric.topk_uas import RULES
from probing.evidence import gather, scores
from probing.evidence.baselines import kinds_of
from probing.evidence.protocols import compare_hits, in_mean
from probing.evidence.redrawn import drawn_again
from probing.evidence.scores import MEAN, RANDOM_BEST, RANDOM_HEAD
from probing.instruments.attention.result import ProbeResult
from probing.report.words import RULE, K, distinct, file_names, number_of
from probing.runs.clusters import FUNCTION, unit_of
from probing.runs.progress import progress
from probing.runs.settings import Settings, extent
from probing.stats.intervals import FEW_CLUSTERS, Estimate, family

DISTINGUISHING = ("revision", "dtype", "max_length", "seed", "begin")
"""Settings that are added to the name of a model probed more than once."""


class Score(NamedTuple):
    """A row of the frame, without what it is about."""

    value: float
    low: float
    high: float
    p: float
    n: int
    functions: int
    items: int
    chosen: str


@dataclass
class Subject:
    """A model or one of its controls.

    `file`, `chosen_on`: its results on test and on validation. `probed`: how many functions of test
    it was probed on; `functions`, `to_choose_on` and `edges`: of these, and of validation, what all
    subjects could read. `heads`: of each layer.
    """

    name: str
    file: Path
    chosen_on: Path
    settings: Settings
    signature: str
    layers: int
    heads: int
    probed: int
    functions: int
    to_choose_on: int
    edges: int
    skips: dict[str, int]
    evidence: gather.Evidence

    @property
    def is_model(self) -> bool:
        return self.settings.control is None


class ChosenOn(NamedTuple):
    """The functions of validation, the number of repositories that they are from, 0 if that is
    unknown, and what of them is drawn again within intervals, in the plural; empty if nothing is."""

    functions: int
    repositories: int
    drawn: str


@dataclass
class Training:
    """The checkpoints of a model. `steps`: ascending; `means`: protocol -> of each step the mean
    with one guess, and its difference to the best baseline."""

    model: str
    steps: list[int]
    means: dict[str, list[tuple[Score, Score]]]


Key = tuple[str, str, str, int, str, str]
"""Of a score: who has it, protocol, rule, k, group, and whom it is against."""


@dataclass
class Findings:
    """Subjects on the same functions, and their baselines and controls.

    `name`: of files; `scores`: the rows of the frame, of subjects by their names, and of systems
    that need no model. `rules`: those that differ, only the first if every dependent is one token.
    `pairs`: (index of one model, of the other) -> the difference of their held-out means, p
    corrected (Holm) over all pairs. `trainings`: models of which several checkpoints were probed;
    their last ones are the subjects. `tested`: the models, of which each checkpoint is one, for
    which p of means is corrected. `chosen_on`: what heads and rules are chosen on; `origins`: the
    number of repositories of functions that intervals are over, 0 if that is unknown, or if they
    are over repositories.
    """

    title: str
    name: str
    subjects: list[Subject]
    scores: dict[Key, Score]
    rules: tuple[str, ...]
    pairs: dict[tuple[int, int], Estimate]
    trainings: list[Training]
    tested: int
    chosen_on: ChosenOn
    origins: int

    # -------------------------------------------------------------------------------------------------------- scores

    def score(
        self, name: str, protocol: str, rule: str = RULE, k: str = K, group: str = MEAN
    ) -> Score | None:
        """Of a subject, or a system without a model; None if it has none."""
        return self.scores.get((name, protocol, rule, int(k), group, ""))

    def difference(
        self, name: str, protocol: str, rule: str = RULE, k: str = K, group: str = MEAN
    ) -> Score | None:
        """Of a subject to the best baseline."""
        return self.scores.get((name, protocol, rule, int(k), group, BEST_BASELINE))

    @cached_property
    def _groups(self) -> dict[tuple[str, str], dict[str, Score]]:
        """Who and protocol -> group -> its score with one guess."""
        groups: dict[tuple[str, str], dict[str, Score]] = {}
        for (name, protocol, rule, k, group, against), score in self.scores.items():
            if group != MEAN and (rule, k, against) == (RULE, int(K), ""):
                groups.setdefault((name, protocol), {})[group] = score
        return groups

    def relations(self, name: str, protocol: str) -> dict[str, Score]:
        """Relation -> the score with one guess of a subject or system."""
        return self._groups.get((name, protocol), {})

    def in_mean(self, name: str, protocol: str) -> dict[str, int]:
        """The relations of a mean, with their edges."""
        return {
            relation: score.items
            for relation, score in self.relations(name, protocol).items()
            if in_mean(relation, score.functions, protocol)
        }

    # ------------------------------------------------------------------------------------------------------ settings

    @property
    def settings(self) -> Settings:
        return self.subjects[0].settings

    @property
    def place(self) -> str:
        """The language, or the config and what else is unusual, for sentences."""
        title, *_ = self.title.partition(", partial, ")
        plain = self.config == self.language.name
        return self.language.title + title.removeprefix(self.config) if plain else title

    @property
    def part(self) -> str:
        """How a sentence begins on a part of a split, or on few functions, up to the letter W."""
        part = extent(self.settings.limit, self.language.units)
        if self.functions < FEW_CLUSTERS:
            part = f"{number_of(self.functions, self.language.unit)}, too few for a claim"
        elif part:
            part = f"{'the ' * part.startswith('first')}{part} (a partial run)"
        return f"On {part}, w" if part else "W"

    def file(self, part: str, subject: Subject) -> str:
        """The name of files and sections on a subject, such as python-relations-tiny."""
        names = file_names([subject.name for subject in self.subjects])
        return f"{self.name}-{part}-{names[self.subjects.index(subject)]}"

    @property
    def config(self) -> str:
        return self.settings.config

    @property
    def language(self) -> Language:
        return language_of(self.config)

    @property
    def functions(self) -> int:
        return self.subjects[0].functions

    # ------------------------------------------------------------------------------------------------ who is scored

    @property
    def models(self) -> list[Subject]:
        return [subject for subject in self.subjects if subject.is_model]

    @property
    def kinds(self) -> dict[str, str]:
        """Who is scored on the same functions -> its kind: models, controls and baselines."""
        controls = dict.fromkeys((RANDOM_BEST, RANDOM_HEAD), "control")
        baselines = dict.fromkeys(kinds_of(self.config), "baseline")
        subjects = {
            subject.name: "model" if subject.is_model else "control" for subject in self.subjects
        }
        return subjects | controls | baselines

    @property
    def ranked(self) -> list[Subject]:
        """The models, the highest held-out mean first; those without one by the published mean."""

        def means(model: Subject) -> list[float]:
            scores = [self.score(model.name, protocol) for protocol in PROTOCOLS]
            return [-1.0 if score is None else score.value for score in scores]

        return sorted(self.models, key=means, reverse=True)


def read_findings(
    paths: Sequence[Path], data: Any = None, relations: bool = True
) -> list[Findings]:
    """The findings of each group of comparable results, in the order of configs. `relations`: with
    their scores.

    Raises LedgerError for files that are not results, or that do not match each other or their
    data.
    """
    groups = gather.comparable(paths)
    all_findings = []
    names = []  # of files
    for shared, probed in progress(list(groups.items()), desc="gathering", unit="config"):
        language = language_of(shared.config)
        datasets = {other.data for other in groups if other.config == shared.config}
        qualifiers = (
            (shared.config, True),
            (shared.data, len(datasets) > 1),
            (shared.split, shared.split != "test"),
            (shared.direction, shared.direction != language.direction),
        )
        title = ", ".join(text for text, needed in qualifiers if needed)
        names.append(title)
        if shared.limit is not None:
            title += f", partial, {extent(shared.limit, language.units)}"
        all_findings.append(_gathered(title, file_names(names)[-1], probed, data, relations))
    return all_findings


def _gathered(
    title: str, name: str, probed: list[gather.Probed], data: Any, relations: bool
) -> Findings:
    evidence = gather.gather(probed, data)
    trainings = _trainings(evidence)
    earlier = {id(checkpoint) for training in trainings for checkpoint in training[:-1]}
    last = [pair for pair in zip(evidence, probed) if id(pair[0]) not in earlier]
    names = _distinct_names([model.probed.test for model, _ in last])
    subjects = [
        (_subject(name, model, read.test.functions), model)
        for name, (model, read) in zip(names, last)
    ]
    subjects.sort(key=lambda pair: (not pair[0].is_model, pair[0].name))
    ordered = [model for _, model in subjects]
    test = ordered[0].splits.edges["test"]
    rows = zip(
        (subject.name for subject, _ in subjects), scores.of_models(ordered, groups=relations)
    )
    one_guess = {
        number: model.hits[HELD_OUT].at([(RULE, int(K))])
        for number, (subject, model) in enumerate(subjects)
        if subject.is_model
    }
    pairs = [*combinations(one_guess, 2)]
    means = [compare_hits(one_guess[first], one_guess[second]).mean for first, second in pairs]
    return Findings(
        title=title,
        name=name,
        subjects=[subject for subject, _ in subjects],
        scores=_scores(chain(rows, [("", scores.of_baselines(ordered, groups=relations))])),
        rules=RULES if (test.first != test.last).any() else RULES[:1],
        pairs={pair: mean.at(0) for pair, mean in zip(pairs, family(means))},
        trainings=[
            _training(training)
            for training in trainings
            if training[0].probed.test.settings.control is None
            and training[0].hits[HELD_OUT].hits.counted
        ],
        chosen_on=_chosen_on(ordered[0]),
        origins=test.origins if unit_of(test.over) == FUNCTION else 0,
        tested=sum(model.probed.settings.control is None for model in evidence),
    )


def _chosen_on(evidence: gather.Evidence) -> ChosenOn:
    validation = evidence.probed.validation
    drawn = drawn_again(validation.ledger)
    origins = evidence.splits.edges["validation"].origins
    return ChosenOn(validation.functions, origins, drawn.units if drawn else "")


def _training(checkpoints: Sequence[gather.Evidence]) -> Training:
    runs = [checkpoint.probed.test for checkpoint in checkpoints]
    names = list(map(str, range(len(checkpoints))))
    known = _scores(zip(names, scores.of_models(checkpoints, groups=False)))
    means = {}
    for protocol in (HELD_OUT, BEYOND_OFFSET):
        keys = [(name, protocol, RULE, int(K), MEAN) for name in names]
        if (*keys[0], BEST_BASELINE) in known:  # of all or of none
            means[protocol] = [(known[*key, ""], known[*key, BEST_BASELINE]) for key in keys]
    steps = [run.run.step for run in runs if run.run.step is not None]
    return Training(runs[0].settings.model, steps, means)


def _scores(named: Iterable[tuple[str, Iterable[scores.Row]]]) -> dict[Key, Score]:
    """Rows of the frame, by the names of models; a system's own rows may come with each model."""
    known = {}
    for name, rows in named:
        for row in rows:
            who = name if row["system"] == scores.MODEL else row["system"]
            key = who, row["protocol"], row["rule"], row["k"], row["group"], row["against"]
            known[key] = Score(*(row[part] for part in Score._fields))
    return known


def _subject(name: str, model: gather.Evidence, read: int) -> Subject:
    """`read`: how many functions of the split the model could read."""
    test = model.probed.test
    return Subject(
        name=name,
        file=model.probed.files["test"],
        chosen_on=model.probed.files["validation"],
        settings=test.settings,
        signature=test.signature,
        layers=test.layers,
        heads=test.heads,
        probed=read,
        functions=test.functions,
        to_choose_on=model.probed.validation.functions,
        edges=len(test.ledger),
        skips=test.skips,
        evidence=model,
    )


def _trainings(evidence: Sequence[gather.Evidence]) -> list[list[gather.Evidence]]:
    """The checkpoints of each model of which there are several, in order of their steps.

    Raises LedgerError for two of one step, which have the name of one model, and need not be of one
    training.
    """
    trainings: dict[Settings, dict[int, gather.Evidence]] = {}
    for model in evidence:
        test = model.probed.test
        if (step := test.run.step) is not None:
            by_step = trainings.setdefault(
                gather.alike(test).model_copy(update={"revision": ""}), {}
            )
            if (other := by_step.setdefault(step, model)) is not model:
                raise LedgerError(
                    f"{model.probed.files['test']} and {other.probed.files['test']} are both of "
                    f"{test.model}, but their weights differ: give the checkpoints of one "
                    "training only"
                )
    return [
        [by_step[step] for step in sorted(by_step)]
        for by_step in trainings.values()
        if len(by_step) > 1
    ]


def _distinct_names(probed: Sequence[ProbeResult]) -> list[str]:
    """Distinct names of models and controls, none of which is that of a system without a model: a
    model may be in a folder with such a name."""
    settings = [result.settings for result in probed]
    names = [", ".join([result.model, *result.settings.deviations]) for result in probed]
    return [
        f"{name} (model)" if name in scores.WITHOUT_MODEL else name
        for name in distinct(names, settings, DISTINGUISHING)
    ]
