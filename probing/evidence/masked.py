"""Masked language models side by side: on the same functions, with the effect of each node type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.languages import CONFIGS, language_of
from codesyntax_dataset.languages.grammar import parse
from probing.evidence.effect import PairedEffect, paired
from probing.instruments.masking.examples import Worked, examples_path
from probing.instruments.masking.examples import load as load_examples
from probing.instruments.masking.masking import SUB_TOKENS, outermost
from probing.instruments.masking.result import (
    FLOORS,
    OUTCOMES,
    SIMILARITIES,
    MaskResult,
    MaskRun,
    MaskSettings,
    OutcomeArms,
)
from probing.runs.data import load_functions, rows
from probing.runs.saved import read_text
from probing.stats.statistics import SEPARATED

UNCOMPARED = FAILED, UNSHARED = (
    "in one arm, every comparison of trees failed",
    "not in the results that it was compared with",
)
"""Why a function and a node type that were masked are not compared."""

TESTED = 3
"""The outcomes that a finding takes up: similarity of trees, restored sub-tokens and log-probability."""

OF_MODEL = {"model", "revision", "max_length", "node_types", "random_weights"}
"""Settings in which results that stand side by side may differ."""


class FillerGain(NamedTuple):
    """The gain of a model over a filler in an outcome of one arm.

    `filler`: the column of FLOORS with the highest mean, `floor`; `gain`: over it, corrected over node types and arms.
    """

    filler: str
    floor: float
    gain: PairedEffect

    @property
    def separated(self) -> bool:
        """True if the model has more."""
        return self.gain.p_holm < SEPARATED and self.gain.effect.estimate > 0


class MaskedType(NamedTuple):
    """A node type on the F functions that all models with it share, whose trees all could be compared.

    `places`: (F,) in the split; `sub_tokens`: (F,) in its nodes; `arms`: one of OUTCOMES -> T1 and T0 (2, F);
    `effects`: one of OUTCOMES -> the effect, corrected over the node types of the model and as many outcomes as TESTED;
    `gains`: one of FLOORS -> in T1 and in T0.
    """

    places: np.ndarray
    sub_tokens: np.ndarray
    arms: dict[str, np.ndarray]
    effects: dict[str, PairedEffect]
    gains: dict[str, list[FillerGain]]

    @property
    def functions(self) -> int:
        return len(self.places)

    @property
    def restores(self) -> bool:
        """True if the model restores more, in an arm, than the sub-token that is masked most often would."""
        return any(gain.separated for gain in self.gains["restored"])

    def tells(self, outcome: str) -> bool:
        """True if an effect on an outcome is more than a filler has, too: similarity is where it beats all fillers in
        both arms."""
        return self.restores and (outcome not in SIMILARITIES or all(gain.separated for gain in self.gains[outcome]))

    @property
    def masked(self) -> int:
        return int(self.sub_tokens.sum())


class Masked(NamedTuple):
    """A masked language model. `settings`, `signature`, `functions`, `copies`, `skips`, `dropped`, `without_place`,
    `run`: as in MaskResult, of all that was run.

    `failed`: copies whose trees could not be compared; `uncompared`: {reason: number of pairs of a function and a node
    type that were run, but are not in `node_types`}; `examples`: None if there are none beside the result.
    """

    settings: MaskSettings
    signature: str
    node_types: dict[str, MaskedType]
    functions: int
    copies: int
    failed: int
    skips: dict[str, int]
    dropped: dict[str, int]
    uncompared: dict[str, int]
    without_place: dict[str, tuple[int, int]]
    run: MaskRun
    examples: list[Worked] | None = None


def holding(data: Any, settings: MaskSettings) -> dict[str, np.ndarray]:
    """Node type -> the functions of the whole split that have nodes of it, by their places: whatever a model reads.

    `data`: as in `probing.runs.data.load_functions`; raises as that does.
    """
    functions, _ = load_functions(data, settings.config, settings.split)
    places: dict[str, list[int]] = {name: [] for name in settings.node_types}
    numbers = count()
    for batch in rows(functions, None):
        for row, place in zip(batch, numbers):
            found = outermost(parse(row["code"], language_of(settings.config).name), settings.node_types)
            for name, nodes in found.items():
                places[name] += [place] * bool(nodes)
    return {name: np.array(of, np.int64) for name, of in places.items()}


def comparable(files: Sequence[Path]) -> list[list[Path]]:
    """Groups of masking results that can stand side by side, in the order of configs and controls: all settings agree,
    except those of the model, and their trees are of the same parser.

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
        key = list(CONFIGS).index(settings.config), spans, settings.model_dump_json(exclude=OF_MODEL), result.run.parser
        groups.setdefault(key, []).append(file)
    return [members for _, members in sorted(groups.items())]


def gather(files: Sequence[Path]) -> list[Masked]:
    """The models of one group of `comparable`; of two equal results one is used.

    Raises LedgerError for a result whose numbers do not follow from its ledger, and for two runs that differ.
    """
    results: dict[MaskSettings, tuple[Path, MaskResult]] = {}
    examples: dict[MaskSettings, list[Worked]] = {}
    for file in files:
        result = MaskResult.load(file)
        known, other = results.setdefault(result.settings, (file, result))
        if other.ledger.rows.tobytes() != result.ledger.rows.tobytes():
            raise LedgerError(
                f"{file} and {known} are two runs of the same job, but their copies differ: give only one"
            )
        if (beside := examples_path(file)).exists():
            examples[result.settings] = load_examples(beside, result)
    columns = (*OUTCOMES, *chain(*FLOORS.values()))
    all_arms = [{column: result.arms(column) for column in columns} for _, result in results.values()]
    shared: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(name for arms in all_arms for name in arms[SIMILARITIES[0]]):
        # all similarities fail together, and the other outcomes never
        with_it = [arms[SIMILARITIES[0]][name].functions for arms in all_arms if name in arms[SIMILARITIES[0]]]
        functions = reduce(np.intersect1d, with_it)
        if len(functions):
            shared[name] = functions
    return [
        _masked(result, arms, shared)._replace(examples=examples.get(settings))
        for (settings, (_, result)), arms in zip(results.items(), all_arms)
    ]


def _masked(result: MaskResult, arms: dict[str, dict[str, OutcomeArms]], shared: dict[str, np.ndarray]) -> Masked:
    names = [name for name in result.node_types if name in shared]
    kept = {column: {name: _only(by_type[name], shared[name]) for name in names} for column, by_type in arms.items()}
    effects, over_fillers = {}, {outcome: gains(kept, outcome) for outcome in FLOORS}
    for outcome in OUTCOMES:
        t1, t0 = ({name: both[arm] for name, both in kept[outcome].items()} for arm in (0, 1))
        effects[outcome] = paired(t1, t0, outcomes=TESTED)
    first = result.ledger.rows[result.ledger.rows["copy"] == 0]
    node_types = {}
    for name in names:
        rows = first[first["node_type"] == result.ledger.node_types.index(name)]
        node_types[name] = MaskedType(
            places=shared[name],
            sub_tokens=rows["masked"][np.isin(rows["function"], shared[name])],
            arms={outcome: kept[outcome][name] for outcome in OUTCOMES},
            effects={outcome: of[name] for outcome, of in effects.items()},
            gains={outcome: of[name] for outcome, of in over_fillers.items()},
        )
    known = sum(len(one.functions) for one in arms[SIMILARITIES[0]].values())
    uncompared = {FAILED: len(first) - known, UNSHARED: known - sum(one.functions for one in node_types.values())}
    of_result = ("settings", "signature", "functions", "copies", "skips", "dropped", "without_place", "run")
    return Masked(
        **{name: getattr(result, name) for name in of_result},
        node_types=node_types,
        failed=sum(scores.failed for scores in result.node_types.values()),
        uncompared=uncompared,
    )


def gains(arms: Mapping[str, Mapping[str, np.ndarray]], outcome: str) -> dict[str, list[FillerGain]]:
    """Node type -> the gain in T1 and in T0, from column -> node type -> both arms (2, F)."""
    places = {f"{name} {arm}": (name, arm) for name in arms[outcome] for arm in (0, 1)}
    of_model = {key: arms[outcome][name][arm] for key, (name, arm) in places.items()}
    fillers = {
        key: max(FLOORS[outcome], key=lambda filler: arms[filler][name][arm].mean())
        for key, (name, arm) in places.items()
    }
    floors = {key: arms[fillers[key]][name][arm] for key, (name, arm) in places.items()}
    found = paired(of_model, floors)
    each = {key: FillerGain(fillers[key], float(floors[key].mean()), gain) for key, gain in found.items()}
    return {name: [each[f"{name} {arm}"] for arm in (0, 1)] for name in arms[outcome]}


def _only(arms: OutcomeArms, functions: np.ndarray) -> np.ndarray:
    """Both arms (2, F) of some of their functions."""
    return np.stack([arms.t1, arms.t0])[:, np.isin(arms.functions, functions)]
