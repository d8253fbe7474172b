"""Masked language models side by side: on the same functions, with the effect of each node type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.languages import CONFIGS, language_of
from codesyntax_dataset.languages.grammar import parse
from probing.instruments.masking.hits import ARMS, T0, T1, fillers, hits
from probing.instruments.masking.masking import SUB_TOKENS, outermost
from probing.instruments.masking.result import (
    FLOORS,
    SIMILARITIES,
    MaskingLedger,
    MaskResult,
    MaskSettings,
)
from probing.runs.data import load_functions, rows
from probing.runs.saved import read_text
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate

UNCOMPARED = FAILED, UNSHARED = (
    "in one arm, every comparison of trees failed",
    "not in the results that it was compared with",
)
"""Why a function and a node type that were masked are not compared."""

COMPARED = SIMILARITIES[0]
"""The outcome that says which functions are compared: all similarities fail together, and the other
outcomes never."""

BEST_FILLER = "filler"
"""The system that is the best filler of each node type."""

OF_MODEL = {"model", "revision", "max_length", "node_types", "random_weights"}
"""Settings in which results that stand side by side may differ."""


class FillerGain(NamedTuple):
    """The gain of a model over a filler in an outcome of one arm.

    `filler`: the one with the highest mean, `floor`; `gain`: over it, with p corrected over node
    types and arms.
    """

    filler: str
    floor: float
    gain: Estimate

    @property
    def separated(self) -> bool:
        """True if the model has more."""
        return self.gain.significant and self.gain.value > 0


@dataclass(frozen=True)
class Masked:
    """A masked language model: its `result`, of all that was run.

    `hits`: of each outcome, on the functions with a node type that all models with it share, whose
    trees all could be compared; `masked`: node type -> sub-tokens in its nodes there, of those that
    can be compared; `uncompared`: {reason: number of pairs of a function and a node type that were
    run, but are not in `hits`}.
    """

    result: MaskResult
    hits: dict[str, Hits]
    masked: dict[str, int]
    uncompared: dict[str, int]

    @cached_property
    def effects(self) -> dict[str, dict[str, Estimate]]:
        """Outcome -> node type -> T1 less T0."""
        return {
            outcome: measured.each(measured.by_group(T1, T0))
            for outcome, measured in self.hits.items()
        }

    @cached_property
    def gains(self) -> dict[str, dict[str, list[FillerGain]]]:
        """One of FLOORS -> node type -> the gain in T1 and in T0."""
        return {outcome: filler_gains(self.hits[outcome]) for outcome in FLOORS}

    def counted(self, node_type: str) -> int:
        """The functions with a node type, which all models that have it share."""
        return len(self.hits[COMPARED].of(node_type))

    def arms(self, node_type: str, outcome: str) -> np.ndarray:
        """An outcome of the functions with a node type, in T1 and in T0: (2, F)."""
        return np.concatenate([self.hits[outcome].of_cluster(node_type, arm) for arm in ARMS])

    def restores(self, node_type: str) -> bool:
        """True if the model restores more, in an arm, than the sub-token that is masked most often
        would."""
        return any(gain.separated for gain in self.gains["restored"][node_type])

    def tells(self, node_type: str, outcome: str) -> bool:
        """True if an effect on an outcome is more than a filler has, too: similarity is where it
        beats all fillers in both arms."""
        if outcome not in SIMILARITIES:
            return self.restores(node_type)
        beaten = all(gain.separated for gain in self.gains[outcome][node_type])
        return beaten and self.restores(node_type)


def holding(data: Any, settings: MaskSettings) -> dict[str, np.ndarray]:
    """Node type -> the functions of the whole split that have nodes of it, by their places:
    whatever a model reads.

    `data`: as in `probing.runs.data.load_functions`; raises as that does.
    """
    functions, _ = load_functions(data, settings.config, settings.split)
    places: dict[str, list[int]] = {name: [] for name in settings.node_types}
    for batch in rows(functions, None):
        for row in batch:
            nodes_of = outermost(
                parse(row["code"], language_of(settings.config).name), settings.node_types
            )
            for name, nodes in nodes_of.items():
                places[name] += [row["index"]] * bool(nodes)
    return {name: np.array(positions, np.int64) for name, positions in places.items()}


def comparable_masked(files: Sequence[Path]) -> list[list[Path]]:
    """Groups of masking results that can stand side by side, in the order of configs and controls:
    all settings agree, except those of the model, and their trees are of the same parser.

    Raises LedgerError for a file that is not a masking result.
    """
    groups: dict[tuple[int, bool, str, str], list[Path]] = {}
    for file in files:
        try:
            result = MaskResult.read(read_text(file))
            settings = result.settings
            if settings.config not in CONFIGS:
                raise UnknownName("config", settings.config, CONFIGS)
        except (LedgerError, UnknownName) as error:
            raise LedgerError(
                f"{file} is not a masking result ({error}): expected the JSON that `codesyntax mask` wrote"
            ) from error
        spans = settings.control != SUB_TOKENS
        key = (
            list(CONFIGS).index(settings.config),
            spans,
            settings.model_dump_json(exclude=OF_MODEL),
            result.run.parser,
        )
        groups.setdefault(key, []).append(file)
    return [members for _, members in sorted(groups.items())]


def gather_masked(files: Sequence[Path]) -> list[Masked]:
    """The models of one group of `comparable_masked`; of two equal results one is used.

    Raises LedgerError for a result whose numbers do not follow from its ledger, and for two runs
    that differ.
    """
    results = MaskResult.load_each(files)
    all_hits = [hits(result) for result in results]
    shared: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(chain(*(result.node_types for result in results))):
        with_it = [
            measured[COMPARED].of(name)
            for result, measured in zip(results, all_hits)
            if name in result.node_types
        ]
        functions = reduce(np.intersect1d, with_it)
        if len(functions):
            shared[name] = functions
    models = []
    for result, measured in zip(results, all_hits):
        common = {name: shared[name] for name in result.node_types if name in shared}
        ledger = result.ledger
        masked = {}
        for name, chosen in common.items():
            masked[name] = int(masked_in(ledger, name, chosen).sum())
        run = int(np.count_nonzero(ledger.rows["copy"] == 0))
        compared = sum(len(group.places) for group in measured[COMPARED].groups.values())
        unshared = compared - sum(len(places) for places in common.values())
        of_shared = {outcome: of_all.cells(common) for outcome, of_all in measured.items()}
        uncompared = {FAILED: run - compared, UNSHARED: unshared}
        models.append(Masked(result, of_shared, masked, uncompared))
    return models


def masked_in(ledger: MaskingLedger, node_type: str, functions: np.ndarray) -> np.ndarray:
    """The sub-tokens in the nodes of a type, in each of these functions (f,) that was masked."""
    rows = ledger.rows
    of_type = (rows["copy"] == 0) & (rows["node_type"] == ledger.node_types.index(node_type))
    return rows["masked"][of_type & np.isin(rows["function"], functions)]


def filler_gains(measured: Hits) -> dict[str, list[FillerGain]]:
    """Node type -> the gain in T1 and in T0 by the outcome of `measured`."""
    best = {arm: f"{BEST_FILLER} {arm}" for arm in ARMS}
    chosen = []
    for arm, filler in best.items():
        systems = fillers(measured, arm)
        scores = np.stack([measured.scores(system)[0] for system in systems])
        chosen.append([systems[number] for number in scores.argmax(axis=0)])
        measured = measured.chosen(filler, dict(zip(measured.groups, chosen[-1])))
    gained: dict[str, list[FillerGain]] = {name: [] for name in measured.groups}
    for filler, of_arm, estimate in zip(best.values(), chosen, measured.tested(*best.items())):
        each = measured.each(estimate)
        for name, system, floor in zip(each, of_arm, measured.scores(filler)[0].tolist()):
            gained[name].append(FillerGain(system.partition(" ")[0], floor, each[name]))
    return gained
