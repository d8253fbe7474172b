"""Entries on masked syntax: what a masked language model restores, by function.

There are N pairs of a node type and a function, sorted by node type and function. Their numbers are text, as
`probing.evidence.packing` says: `places` (N,) of the functions in the split; `masked` (N,), sub-tokens in T1; and each
of OUTCOMES, (2, N), T1 and T0, in millionths, rounded; log-probabilities without their sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import FailFast, Field

from codesyntax_dataset.errors import EntryError
from probing.evidence import entry
from probing.evidence.effect import paired
from probing.evidence.entry import FORMAT, CompleteRun, Entry, Interval, Number, Score, Scores
from probing.evidence.masked import OF_MODEL, UNCOMPARED, Masked
from probing.evidence.over_types import over_types
from probing.evidence.packing import packed, unpacked
from probing.prediction.ledger import SIMILARITIES
from probing.prediction.masking import CONTROLS, CURRENT, PROTOCOLS
from probing.prediction.result import (
    DROPPED,
    OUTCOMES,
    VERSION,
    MaskProvenance,
    MaskRun,
    MaskSettings,
    signature_of,
)
from probing.runs import records
from probing.runs.ledger_file import MASKING
from probing.runs.records import exactly, listed, matching
from probing.runs.untrusted_json import PLAIN

HEADLINE = SIMILARITIES[0]
"""The similarity whose effect is tested for each node type."""

PERCENT = 100
"""Shares are shown in percent; log-probabilities are not."""

_MOST_PAIRS = 3 * 10**6
"""More than the largest published config has, all node types of its grammar masked."""

_UNIT = 10**6
_ROUNDED = 2.5 / _UNIT  # more than rounding to millionths changes a sum of two similarities
_LOWEST = 2.0**32 - 1  # in millionths

NodeType = Annotated[str, matching(PLAIN + "{1,60}", "the name of a node type")]


class MaskedEntrySettings(CompleteRun, MaskSettings):
    """The settings of a masking run."""

    protocol: Annotated[str, entry.one_of(PROTOCOLS)]
    node_types: Annotated[tuple[NodeType, ...], FailFast(), listed, Field(min_length=1, max_length=1000)]
    rate: Annotated[float, Field(gt=0, le=1)]
    control: Annotated[str, entry.one_of(CONTROLS)]
    draws: Annotated[int, Field(ge=1, le=10**4)]
    seed: Annotated[int, Field(ge=0, le=2**63)]


class MaskedEntryRun(MaskRun):
    """How the masking ran."""

    family: entry.Family
    device: entry.Device
    output_layer: Literal["masked positions", "all positions"]
    parser: entry.Plain


class Pairs(NamedTuple):
    """N pairs of a node type and a function. `node_type` (N,): indices of `node_types`; `places` (N,); `masked` (N,);
    `arms`: outcome -> T1 and T0 (2, N)."""

    node_types: list[str]
    node_type: np.ndarray
    places: np.ndarray
    masked: np.ndarray
    arms: dict[str, np.ndarray]


class NodeTypeScore(NamedTuple):
    """A node type of an entry: its functions and masked sub-tokens, and outcome -> T1 against T0. HEADLINE has an
    interval of the effect, and its p, corrected over node types."""

    functions: int
    masked: int
    cells: dict[str, Score]


@dataclass(frozen=True, eq=False)
class MaskedScores(Scores):
    """Means over node types of T1, against T0, by outcome; and by the name of a node type."""

    node_types: dict[str, NodeTypeScore]


class MaskedEntry(Entry):
    """What is published about a masked language model on one config.

    `functions`, `copies`, `skips` and `dropped` are of all that was run; `uncompared` counts what was, but is not in
    the numbers. `compared`: each node type with numbers -> its functions. `ledger`: the digest of its content.
    """

    instrument: Literal["masking"]
    version: Literal[2]
    settings: MaskedEntrySettings
    run: MaskedEntryRun
    dropped: Annotated[dict[str, records.Number], exactly(DROPPED)]
    uncompared: Annotated[dict[str, records.Number], exactly(UNCOMPARED)]
    ledger: entry.Sha256
    compared: dict[NodeType, Number]
    places: str
    masked: str
    outcomes: Annotated[dict[str, str], exactly(OUTCOMES)]

    @property
    def copies(self) -> int:
        """Masked copies of functions."""
        masked = self.functions * len(self.settings.node_types) - sum(self.dropped.values())
        return masked * (self.settings.draws + 1)

    @property
    def signature(self) -> str:
        made = MaskProvenance(
            settings=self.settings,
            version=self.version,
            functions=self.functions,
            skips=self.skips,
            dropped=self.dropped,
            commonest={},
            run=self.run,
            versions=self.versions,
        )
        return str(signature_of(made, self.copies))

    @property
    def shared(self) -> dict[str, str]:
        settings = self.settings.model_dump(mode="json", exclude=OF_MODEL)
        shared = {"parser": self.run.parser, "version": self.version, "types": sorted(self.compared)}
        return {name: str(value) for name, value in (settings | shared).items()}

    def content(self) -> Iterator[np.ndarray]:
        """The functions of each node type, by name."""
        pairs = self.pairs()
        for name in sorted(pairs.node_types):
            yield pairs.places[pairs.node_type == pairs.node_types.index(name)]

    def pairs(self) -> Pairs:
        """The values by function. Raises EntryError for text that does not have them."""
        names, sizes = list(self.compared), list(self.compared.values())
        node_type = np.repeat(np.arange(len(names)), sizes)
        places, masked = (
            unpacked(getattr(self, name), name, len(node_type)).astype(np.int64) for name in ("places", "masked")
        )
        arms = {
            name: unpacked(self.outcomes[name], f"outcomes.{name}", 2 * len(node_type)).reshape(2, -1) / _UNIT
            for name in OUTCOMES
        }
        arms["log_probability"] = -arms["log_probability"]
        return Pairs(names, node_type, places, masked, arms)

    def scores(self, beside: Scores | None = None) -> MaskedScores:
        pairs = self.pairs()
        stacked = np.stack([pairs.arms[name].T for name in OUTCOMES], axis=2)  # (N, 2, outcomes)
        mean, p = over_types(pairs.node_type, pairs.places, stacked)
        units = {name: 1 if name == "log_probability" else PERCENT for name in OUTCOMES}
        cells: dict[str, Score | None] = {}
        for place, (name, unit) in enumerate(units.items()):
            t1, t0, effect = (Interval.of(unit * part) for part in mean[..., place])
            cells[name] = t1 and Score(t1, t0, effect, float(p[place]))
        functions, row = np.unique(pairs.places, return_inverse=True)
        sizes = np.bincount(pairs.node_type)
        weight = PERCENT / sizes[pairs.node_type] / len(sizes)
        shares = [np.bincount(row, weight * pairs.arms[name][0], len(functions)) for name in OUTCOMES]
        return MaskedScores(cells, np.array(shares, np.float32), self._of_types(pairs, units))

    def _of_types(self, pairs: Pairs, units: dict[str, int]) -> dict[str, NodeTypeScore]:
        of_types = {name: pairs.node_type == number for number, name in enumerate(pairs.node_types)}
        t1, t0 = ({name: pairs.arms[HEADLINE][arm, of] for name, of in of_types.items()} for arm in (0, 1))
        effects = paired(t1, t0)
        scores = {}
        for name, of in of_types.items():
            cells = {}
            for outcome, unit in units.items():
                mean, reference = pairs.arms[outcome][:, of].mean(axis=1).tolist()
                t1_mean, t0_mean, gained = (Interval(unit * of) for of in (mean, reference, mean - reference))
                cells[outcome] = Score(t1_mean, t0_mean, gained)
            effect = Interval.of(PERCENT * np.array(effects[name].effect))
            cells[HEADLINE] = cells[HEADLINE]._replace(difference=effect, p=effects[name].p_holm)
            scores[name] = NodeTypeScore(int(of.sum()), int(pairs.masked[of].sum()), cells)
        return scores

    def _check(self) -> None:
        names = [name for name in self.settings.node_types if name in self.compared]
        if not names or names != list(self.compared):
            raise EntryError("compared does not have some of the node types of the settings, in their order")
        if (most := max(self.compared.values())) > self.functions or self.functions * len(names) > _MOST_PAIRS:
            raise EntryError(
                f"compared has {most} functions of a node type, expected at most {self.functions}, and at most "
                f"{_MOST_PAIRS:,} pairs of a function and a node type"
            )
        pairs, rows = self.pairs(), self.functions + sum(self.skips.values())
        backwards = (np.diff(pairs.places) <= 0) & (np.diff(pairs.node_type) == 0)
        if backwards.any() or pairs.places.max() >= rows:
            raise EntryError(f"places are not those of functions in a split of {rows}, in order for each node type")
        masked = self.functions * len(self.settings.node_types) - sum(self.dropped.values())
        compared = len(pairs.places) + sum(self.uncompared.values())
        if compared != masked:
            raise EntryError(
                f"{compared} pairs of a function and a node type are compared or counted as not, but {masked} were "
                "masked"
            )
        if self.verified:
            again, of, least = self.verified.functions, self.verified.of, len(np.unique(pairs.places))
            if not (least <= of <= self.functions and again <= of):
                raise EntryError(f"verified is {again} of {of} functions, expected of {least} to {self.functions}")
        _check_possible(pairs, self.settings)


def make(model: Masked) -> MaskedEntry:
    """The entry of a masking result that has node types. Raises EntryError for what no board takes."""
    of_types = list(model.node_types.values())
    arms = {name: np.concatenate([one.arms[name] for one in of_types], axis=1) for name in OUTCOMES}
    return MaskedEntry.made(
        {
            "format": FORMAT,
            "instrument": MASKING,
            "settings": model.settings.model_dump(mode="json"),
            "run": model.run.model_dump(),
            "functions": model.functions,
            "skips": model.skips,
            "versions": model.versions,
            "version": VERSION,
            "dropped": model.dropped,
            "uncompared": {reason: model.uncompared[reason] for reason in UNCOMPARED},
            "ledger": model.ledger,
            "compared": {name: of.functions for name, of in model.node_types.items()},
            "places": packed(np.concatenate([one.places for one in of_types])),
            "masked": packed(np.concatenate([one.sub_tokens for one in of_types])),
            "outcomes": {
                name: packed(np.round(np.abs(np.clip(of, -_LOWEST / _UNIT, 1)) * _UNIT)) for name, of in arms.items()
            },
        }
    )


def _check_possible(pairs: Pairs, settings: MaskSettings) -> None:
    """Refuse what no model can have, whatever it predicts."""
    current = settings.protocol == CURRENT
    jaccard, sorensen_dice, levenshtein, restored = (pairs.arms[name] for name in OUTCOMES[:4])
    most = 2 * jaccard / (1 + jaccard)  # is Sorensen-Dice, for one copy
    unlike = (sorensen_dice < jaccard - _ROUNDED) | (sorensen_dice > most + _ROUNDED)
    masked = pairs.masked * np.array([[1], [settings.draws]])
    broken = np.abs(restored * masked - np.round(restored * masked)) > masked / _UNIT
    broken[1] &= current  # otherwise controls mask other numbers of sub-tokens
    # a true sub-token that is not the most likely one has a probability of at most a half
    likely = pairs.arms["log_probability"] > math.log(0.5) * (1 - restored) + 0.001
    for wrong, why in (
        ((pairs.masked < 1) | (pairs.masked > settings.max_length), "no function has so many masked sub-tokens"),
        (np.max([jaccard, sorensen_dice, levenshtein, restored], axis=0) > 1, "a share is above 1"),
        (broken, "the restored share is not one of its masked sub-tokens"),
        (np.abs(sorensen_dice - most)[:1] > _ROUNDED, "Sorensen-Dice does not follow from Jaccard"),
        (unlike, "Jaccard allows no such Sorensen-Dice"),
        (levenshtein > sorensen_dice + _ROUNDED, "more nodes are in order than in common"),
        (likely, "sub-tokens are too likely for so few that are restored"),
        (current & (restored == 1) & (jaccard < 1), "every sub-token is restored, but the tree is another"),
    ):
        if (where := np.argwhere(np.atleast_2d(wrong))).size:
            arm, pair = where[0].tolist()
            name = pairs.node_types[pairs.node_type[pair]]
            raise EntryError(f"{why}, {('T1', 'T0')[arm]} of {name} in function {pairs.places[pair]}")
