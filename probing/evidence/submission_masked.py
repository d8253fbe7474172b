"""Submissions on masked syntax: what a masked language model restores, by function.

There is one table of hits: node types are groups, the functions of the split that have nodes of the
type are clusters, with an `n` of 1. The systems are T1 and T0, the measures OUTCOMES, in
millionths, rounded, log-probabilities without their sign; and `masked`, sub-tokens in T1. What the
model could not read, or no tree tells, is missed: nothing is masked, and all shares are 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import FailFast, Field

from probing.evidence import impossible, submission
from probing.evidence.impossible import MISSED_NATS, UNIT
from probing.evidence.masked import OF_MODEL, UNCOMPARED, masked_in
from probing.evidence.submission import Facts, Submission, Tables
from probing.instruments.masking import result as mask_result
from probing.instruments.masking.hits import ARMS, EFFECT, T0, T1, TESTED
from probing.instruments.masking.hits import hits as masking_hits
from probing.instruments.masking.masking import CONTROLS, PROTOCOLS
from probing.instruments.masking.result import (
    OUTCOMES,
    SIMILARITIES,
    MaskProvenance,
    MaskResult,
    MaskSettings,
)
from probing.runs import records
from probing.runs.ledger_file import MASKING
from probing.runs.records import PLAIN, exactly, listed, matching
from probing.stats.hits import Group, Hits
from probing.stats.hits_file import Layout
from probing.stats.intervals import Estimate

HEADLINE = SIMILARITIES[0]
"""The similarity whose effect is tested for each node type."""

MASKED_COLUMN = "masked"

TITLES = {
    "jaccard": "Jaccard similarity",
    "sorensen_dice": "Sorensen-Dice similarity",
    "levenshtein": "Levenshtein similarity",
    "restored": "restored sub-tokens",
    "log_probability": "log-probability",
}
"""Outcome -> its title on boards."""

_SCALES = dict.fromkeys(OUTCOMES, 100) | {"log_probability": -1}  # to percent, and nats
_LOWEST = 2**31 - 1  # in millionths

NodeType = Annotated[str, matching(PLAIN + "{1,60}", "the name of a node type")]


class MaskedSettings(submission.CompleteRun, MaskSettings):
    """The settings of a masking run."""

    protocol: Annotated[str, submission.one_of(PROTOCOLS)]
    node_types: Annotated[
        tuple[NodeType, ...], FailFast(), listed, Field(min_length=1, max_length=1000)
    ]
    rate: Annotated[float, Field(gt=0, le=1)]
    control: Annotated[str, submission.one_of(CONTROLS)]
    random_weights: Literal[False]
    draws: Annotated[int, Field(ge=1, le=10**4)]
    seed: Annotated[int, Field(ge=0, le=2**63)]


class MaskedRun(mask_result.MaskRun):
    """The circumstances of the masking."""

    family: submission.Family
    device: submission.Device
    output_layer: Literal["masked positions", "all positions"]
    parser: submission.Plain


class ArmScores(NamedTuple):
    """The scores of a node type by an outcome."""

    t1: float
    t0: float
    effect: Estimate


class MaskedSubmission(Submission):
    """A submission on a masked language model on one config.

    `functions`, `skips` and `dropped` are of all that was run; `uncompared` counts what was, but is
    missed. `ledger`: the digest of its content.
    """

    SYSTEM, RIVAL = T1, T0
    LAYOUT = Layout(ARMS, (*OUTCOMES, MASKED_COLUMN), unit="millionths")

    instrument: Literal["masking"]
    version: Literal[3]
    settings: MaskedSettings
    run: MaskedRun
    dropped: Annotated[dict[str, records.Number], exactly(mask_result.DROPPED)]
    uncompared: Annotated[dict[str, records.Number], exactly(UNCOMPARED)]
    ledger: submission.Sha256

    @property
    def pairs(self) -> int:
        """Functions and node types that were masked, one with the other."""
        return self.functions * len(self.settings.node_types) - sum(self.dropped.values())

    @property
    def copies(self) -> int:
        """Masked copies of functions."""
        return self.pairs * (self.settings.draws + 1)

    @property
    def digests(self) -> dict[str, str]:
        return {"test": self.ledger}

    def facts(self, tables: Tables) -> Facts:
        hits = tables[MASKING]
        values = {"parser": self.run.parser, "functions": self.functions, "copies": self.copies}
        signature = str(MaskProvenance.signature_of(self.settings, values))
        settings = self.settings.model_dump(mode="json", exclude=OF_MODEL)
        shared = {"parser": self.run.parser, "version": self.version, "types": hits.names}
        texts = {name: str(value) for name, value in (settings | shared).items()}
        return Facts(signature, texts, len(hits.clusters))

    def means(self, tables: Tables) -> Tables:
        return {MASKING: in_points(tables[MASKING])}

    @staticmethod
    def cell(mean: str, measure: Any) -> str:
        return str(measure)

    def by_type(self, tables: Tables) -> dict[str, dict[str, ArmScores]]:
        """Node type, in the order of the settings -> outcome -> its scores, in percent and nats.

        The effect on HEADLINE is tested; others have no bounds.
        """
        hits = in_points(tables[MASKING])
        tested = hits.by_group(T1, T0)
        others = np.array(OUTCOMES) != HEADLINE
        for bounds in (tested.low, tested.high, tested.p):
            bounds[others] = np.nan
        arms = [hits.scores(arm) for arm in ARMS]
        scores: dict[str, dict[str, ArmScores]] = {}
        for name in (name for name in self.settings.node_types if name in hits.groups):
            column, scores[name] = hits.names.index(name), {}
            for row, outcome in enumerate(OUTCOMES):
                t1, t0 = (float(scored[row, column]) for scored in arms)
                scores[name][outcome] = ArmScores(t1, t0, tested.at(row, column))
        return scores

    def problems(self, tables: Tables) -> impossible.Problems:
        return impossible.of_masking(self, tables)


def in_points(hits: Hits) -> Hits:
    """A table without `masked`, of percent, and log-probabilities of nats."""
    outcomes = hits.where(measures=OUTCOMES)
    groups = {}
    scales = np.array([[_SCALES[name]] for name in OUTCOMES])
    for name, group in outcomes.groups.items():
        sums = {arm: scales * (group.sums[arm] / UNIT) for arm in ARMS}
        groups[name] = replace(group, sums=sums)
    return replace(outcomes, groups=groups, unit="points", families={EFFECT: TESTED})


def masked(hits: Hits, name: str) -> int:
    """The masked sub-tokens of a node type."""
    return int(hits.groups[name].sums[T1][-1].sum())


def make(result: MaskResult, holding: Mapping[str, np.ndarray]) -> MaskedSubmission:
    """The submission of a masking result; `holding`: as of `masked.holding`.

    Raises EntryError for what no board takes.
    """
    ledger = result.ledger
    names = sorted(name for name in result.settings.node_types if len(holding[name]))
    clusters = np.unique(np.concatenate([holding[name] for name in names]))
    measured = masking_hits(result)
    nats = OUTCOMES.index("log_probability")
    measures = MaskedSubmission.LAYOUT.measures
    groups = {}
    missed = int(np.count_nonzero(ledger.rows["copy"] == 0))
    for name in names:
        places = holding[name]
        sums = np.zeros((len(ARMS), len(measures), len(places)), np.int64)
        sums[:, nats] = MISSED_NATS
        things = np.ones(len(places), np.int64)
        groups[name] = Group(np.searchsorted(clusters, places), things, dict(zip(ARMS, sums)))
        known = measured[HEADLINE].of(name)
        if not len(known):
            continue
        columns = np.searchsorted(places, known)
        sums[:, -1, columns] = masked_in(ledger, name, known)
        missed -= int(np.count_nonzero(sums[0, -1]))
        for row, of_outcome in enumerate(measured.values()):
            systems = of_outcome.cells({name: known}).groups[name].sums
            arms = np.concatenate([systems[arm] for arm in ARMS])
            sums[:, row, columns] = np.round(np.minimum(np.abs(arms) * UNIT, _LOWEST))
    return MaskedSubmission.of_result(
        result,
        {MASKING: Hits(clusters, groups, tuple(measures))},
        version=mask_result.MaskProvenance.VERSION,
        dropped=result.dropped,
        uncompared=dict(zip(UNCOMPARED, (missed, 0))),
        ledger=ledger.digest(),
    )
