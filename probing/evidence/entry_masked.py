"""Entries on masked syntax: what a masked language model restores, by function.

There are N pairs of a node type and a function of the split that has nodes of it, sorted by node type and function.
Their numbers are text, as `probing.evidence.entry` says: `places` (N,) of the functions in the split; `masked` (N,),
sub-tokens in T1; and each of OUTCOMES, (2, N), T1 and T0, in millionths, rounded; log-probabilities without their sign.
What the model could not read, or no tree tells, is missed: nothing is masked, and all shares are 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import FailFast, Field

from probing.evidence import entry
from probing.evidence.entry import Entry, Interval, Score, Scores, packed, unpacked
from probing.evidence.masked import OF_MODEL, UNCOMPARED, holding
from probing.instruments.masking import result as mask_result
from probing.instruments.masking.masking import CONTROLS, PROTOCOLS, PUBLISHED
from probing.instruments.masking.result import OUTCOMES, SIMILARITIES, MaskProvenance, MaskResult, MaskSettings
from probing.runs import records
from probing.runs.records import PLAIN, exactly, listed, matching
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate, corrected

HEADLINE = SIMILARITIES[0]
"""The similarity whose effect is tested for each node type."""

ARMS = ("T1", "T0")

TITLES = {
    "jaccard": "Jaccard similarity",
    "sorensen_dice": "Sorensen-Dice similarity",
    "levenshtein": "Levenshtein similarity",
    "restored": "restored sub-tokens",
    "log_probability": "log-probability",
}
"""Outcome -> its title on boards."""

PERCENT = 100
"""Shares are shown in percent; log-probabilities are not."""

_UNITS = dict.fromkeys(OUTCOMES, PERCENT) | {"log_probability": 1}
_COMPARED = ((ARMS[0],), (ARMS[1],), ARMS)

_MOST_PAIRS = 3 * 10**6
"""More than the largest published config has, all node types of its grammar masked."""

_UNIT = 10**6
_ROUNDED = 2.5 / _UNIT  # more than rounding to millionths changes a sum of two similarities
_LOWEST = 2.0**32 - 1  # in millionths
_MISSED = -20.0  # the log-probability, in nats, of sub-tokens that are missed

NodeType = Annotated[str, matching(PLAIN + "{1,60}", "the name of a node type")]


class MaskedEntrySettings(entry.CompleteRun, MaskSettings):
    """The settings of a masking run."""

    protocol: Annotated[str, entry.one_of(PROTOCOLS)]
    node_types: Annotated[tuple[NodeType, ...], FailFast(), listed, Field(min_length=1, max_length=1000)]
    rate: Annotated[float, Field(gt=0, le=1)]
    control: Annotated[str, entry.one_of(CONTROLS)]
    random_weights: Literal[False]
    draws: Annotated[int, Field(ge=1, le=10**4)]
    seed: Annotated[int, Field(ge=0, le=2**63)]


class MaskedEntryRun(mask_result.MaskRun):
    """The circumstances of the masking."""

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


class TypeScore(NamedTuple):
    """The scores of a node type by outcome, in so many `functions`, of `masked` sub-tokens."""

    functions: int
    masked: int
    cells: dict[str, Score]


@dataclass(frozen=True, eq=False)
class MaskedScores(Scores):
    """Means over node types, by outcome, and the node types by name. `on_read`: if any function is missed, outcome ->
    the mean without these."""

    node_types: dict[str, TypeScore]
    on_read: Mapping[str, float]


class MaskedEntry(Entry):
    """A published entry on a masked language model on one config.

    `functions`, `copies`, `skips` and `dropped` are of all that was run; `uncompared` counts what was, but is missed.
    `compared`: each node type -> the functions with nodes of it. `ledger`: the digest of its content.
    """

    instrument: Literal["masking"]
    version: Literal[2]
    settings: MaskedEntrySettings
    run: MaskedEntryRun
    dropped: Annotated[dict[str, records.Number], exactly(mask_result.DROPPED)]
    uncompared: Annotated[dict[str, records.Number], exactly(UNCOMPARED)]
    ledger: entry.Sha256
    compared: dict[NodeType, entry.Number]
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
        values = {"parser": self.run.parser, "functions": self.functions, "copies": self.copies}
        return str(MaskProvenance.signature_of(self.settings, values))

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

    @property
    def digests(self) -> dict[str, str]:
        return {"test": self.ledger}

    def numbers(self) -> str:
        return entry.digest_of(np.round(_UNIT * np.abs(arm)) for arm in self.pairs().arms.values())

    def pairs(self) -> Pairs:
        """The values by function. Raises EntryError for text that does not have them."""
        names, sizes = list(self.compared), list(self.compared.values())
        node_type = np.repeat(np.arange(len(names)), sizes)
        places, masked = (
            unpacked(getattr(self, name), name, len(node_type)).astype(np.int64) for name in ("places", "masked")
        )
        size = 2 * len(node_type)
        stored = {name: unpacked(self.outcomes[name], f"outcomes.{name}", size) for name in OUTCOMES}
        arms = {name: numbers.reshape(2, -1) / _UNIT for name, numbers in stored.items()}
        arms["log_probability"] = -arms["log_probability"]
        return Pairs(names, node_type, places, masked, arms)

    def scores(self, beside: Scores | None = None) -> MaskedScores:
        pairs = self.pairs()
        hits = _hits(pairs)
        t1, t0, effect = (hits.mean(*systems) for systems in _COMPARED)
        cells: dict[str, Score | None] = {}
        for place, name in enumerate(OUTCOMES):
            mean, reference, difference = (_interval(estimate.at(place)) for estimate in (t1, t0, effect))
            cells[name] = mean and Score(mean, reference, difference, effect.at(place).p)
        shares = PERCENT / np.array([[_UNITS[name]] for name in OUTCOMES]) * hits.contributions(ARMS[0])
        return MaskedScores(cells, shares.astype(np.float32), _of_types(pairs, hits), _on_read(pairs))

    @property
    def verifiable(self) -> tuple[int, int]:
        pairs = self.pairs()
        return len(np.unique(pairs.places[pairs.masked > 0])), self.functions

    def problems(self) -> Iterator[tuple[Any, str]]:
        names = [name for name in self.settings.node_types if name in self.compared]
        in_order = names and names == list(self.compared)
        yield not in_order, "compared does not have some of the node types of the settings, in their order"
        rows, most = self.functions + sum(self.skips.values()), max(self.compared.values())
        yield (
            most > rows or rows * len(names) > _MOST_PAIRS,
            f"compared has {most} functions of a node type, expected at most {rows}, and at most {_MOST_PAIRS:,} pairs "
            "of a function and a node type",
        )
        pairs = self.pairs()
        backwards = (np.diff(pairs.places) <= 0) & (np.diff(pairs.node_type) == 0)
        wrong = backwards.any() or pairs.places.max() >= rows
        yield wrong, f"places are not those of functions in a split of {rows}, in order for each node type"
        masked = self.functions * len(self.settings.node_types) - sum(self.dropped.values())
        compared = int(np.count_nonzero(pairs.masked)) + sum(self.uncompared.values())
        yield (
            compared != masked,
            f"{compared} pairs of a function and a node type are compared or counted as not, but {masked} were masked",
        )
        yield from super().problems()
        for cells, why in _impossible(pairs, self.settings):
            where = np.argwhere(np.atleast_2d(cells))
            arm, pair = where[0].tolist() if where.size else (0, 0)
            place = f"{ARMS[arm]} of {pairs.node_types[pairs.node_type[pair]]} in function {pairs.places[pair]}"
            yield where.size, f"{why}, {place}"


def make(result: MaskResult, holding: Mapping[str, np.ndarray]) -> MaskedEntry:
    """The entry of a masking result; `holding`: as of `masked.holding`. Raises EntryError for what no board takes."""
    first = result.ledger.rows[result.ledger.rows["copy"] == 0]
    names = [name for name in result.settings.node_types if len(holding[name])]
    places = np.concatenate([holding[name] for name in names])
    masked = np.zeros(len(places))
    arms = {name: np.full((2, len(places)), _MISSED if name == "log_probability" else 0.0) for name in OUTCOMES}
    by_outcome, start = {outcome: result.arms(outcome) for outcome in OUTCOMES}, 0
    for name in names:
        if name in by_outcome[HEADLINE]:
            known = by_outcome[HEADLINE][name].functions
            at = start + np.searchsorted(holding[name], known)
            of_type = first[first["node_type"] == result.ledger.node_types.index(name)]
            masked[at] = of_type["masked"][np.isin(of_type["function"], known)]
            for outcome, found in by_outcome.items():
                kept = np.isin(found[name].functions, known)
                arms[outcome][:, at] = found[name].t1[kept], found[name].t0[kept]
        start += len(holding[name])
    return MaskedEntry.of_result(
        result,
        version=mask_result.MaskProvenance.VERSION,
        dropped=result.dropped,
        uncompared=dict(zip(UNCOMPARED, (len(first) - int(np.count_nonzero(masked)), 0))),
        ledger=result.ledger.digest(),
        compared={name: len(holding[name]) for name in names},
        places=packed(places),
        masked=packed(masked),
        outcomes={
            name: packed(np.round(np.abs(np.clip(of, -_LOWEST / _UNIT, 1)) * _UNIT)) for name, of in arms.items()
        },
    )


def of_result(result: MaskResult, data: Any) -> MaskedEntry:
    """The entry of a masking result; `data`: the location of the dataset. Raises EntryError for what no board takes."""
    return make(result, holding(data, result.settings))


def _hits(pairs: Pairs, chosen: np.ndarray | slice = slice(None)) -> Hits:
    """What both arms score by function and node type, by each of OUTCOMES in its unit; of some pairs, bool (N,)."""
    names = [pairs.node_types[number] for number in pairs.node_type[chosen]]
    sums = {
        arm: np.stack([_UNITS[name] * pairs.arms[name][place, chosen] for name in OUTCOMES])
        for place, arm in enumerate(ARMS)
    }
    return Hits.of_rows(pairs.places[chosen], names, sums, OUTCOMES, unit="points")


def _of_types(pairs: Pairs, hits: Hits) -> dict[str, TypeScore]:
    """The node types in the order of the settings; the difference of HEADLINE is tested, corrected over them."""
    t1, t0 = (hits.by_group(arm) for arm in ARMS)
    effect = hits.by_group(*ARMS, tested=[HEADLINE])
    (tested,) = corrected([effect])
    scores = {}
    for name in pairs.node_types:
        column, of_type = hits.names.index(name), pairs.node_type == pairs.node_types.index(name)
        cells = {}
        for place, outcome in enumerate(OUTCOMES):
            mean, reference, gained = (Interval(estimate.at(place, column).value) for estimate in (t1, t0, effect))
            cells[outcome] = Score(mean, reference, gained)
        headline = tested.at(OUTCOMES.index(HEADLINE), column)
        cells[HEADLINE] = cells[HEADLINE]._replace(difference=_interval(headline), p=headline.p)
        scores[name] = TypeScore(int(of_type.sum()), int(pairs.masked[of_type].sum()), cells)
    return scores


def _on_read(pairs: Pairs) -> dict[str, float]:
    read = pairs.masked > 0
    if read.all() or not read.any():
        return {}
    return dict(zip(OUTCOMES, _hits(pairs, read).mean(ARMS[0]).value.tolist()))


def _interval(estimate: Estimate) -> Interval | None:
    return Interval.of(np.array(estimate[:3]))


def _impossible(pairs: Pairs, settings: MaskSettings) -> Iterator[tuple[np.ndarray, str]]:
    """What no model can have, whatever it predicts: in which arms and pairs (2, N) it stands here, and the reason."""
    current = settings.protocol != PUBLISHED
    jaccard, sorensen_dice, levenshtein, restored = (pairs.arms[name] for name in OUTCOMES[:4])
    most = 2 * jaccard / (1 + jaccard)  # is Sorensen-Dice, for one copy
    unlike = (sorensen_dice < jaccard - _ROUNDED) | (sorensen_dice > most + _ROUNDED)
    masked = pairs.masked * np.array([[1], [settings.draws]])
    broken = np.abs(restored * masked - np.round(restored * masked)) > masked / _UNIT
    broken[1] &= current  # otherwise controls mask other numbers of sub-tokens
    # a true sub-token that is not the most likely one has a probability of at most a half
    likely = pairs.arms["log_probability"] > math.log(0.5) * (1 - restored) + 0.001
    missed = pairs.masked == 0
    nothing = np.all([pairs.arms[name] == (_MISSED if name == "log_probability" else 0) for name in OUTCOMES], axis=0)
    yield missed & ~nothing, "nothing is masked, and yet restored"
    yield pairs.masked > settings.max_length, "no function has so many masked sub-tokens"
    yield np.max([jaccard, sorensen_dice, levenshtein, restored], axis=0) > 1, "a share is above 1"
    yield broken, "the restored share is not one of its masked sub-tokens"
    yield np.abs(sorensen_dice - most)[:1] > _ROUNDED, "Sorensen-Dice does not follow from Jaccard"
    yield unlike, "Jaccard allows no such Sorensen-Dice"
    yield levenshtein > sorensen_dice + _ROUNDED, "more nodes are in order than in common"
    yield likely & ~missed, "sub-tokens are too likely for so few that are restored"
    unchanged = current & (restored == 1) & (jaccard < 1)
    yield unchanged, "every sub-token is restored, but the tree is another"
