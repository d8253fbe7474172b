"""The result of a silencing run: costs by relation, their signature, and everything needed to check
and repeat it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per
function, relation and set of silenced heads, sorted by function (its position in the split),
relation and `silenced`: 0 is the whole model, 1 the best head of the relation, and from 2 on the
heads of the same layer that it is compared with; then the best three heads together and as many
others, then the best ten.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from codesyntax_dataset.errors import LedgerError
from probing.runs import ledger_file
from probing.runs.ledger_file import LOG_PROBABILITY, RowLedger
from probing.runs.records import Count, Number, Record, exactly, listed
from probing.runs.saved import Circumstances, Provenance, Result
from probing.runs.settings import RankingSettings

WHOLE = 0
"""Where nothing is silenced."""

RESTORED = READING_END, DEPENDENTS = "reading-end", "dependents"
"""Which end of an edge a masked language model restores: the one whose row of attention is read, so
that silencing a head takes from it what it read at the other end; or the dependents. Decoders
predict dependents."""

LOSS_DECIMALS = 6
"""Those of log-probabilities, as many as float32 gives."""


class SilencingLedger(RowLedger):
    """N rows of a function, a relation and a silenced head."""

    ROW = np.dtype(
        [
            ("function", "<i4"),
            ("relation", "<i4"),
            ("silenced", "<i4"),
            ("heads", "<i4"),  # how many are silenced together
            ("edges", "<i4"),  # of which an end is asked for
            ("sub_tokens", "<i4"),  # of these ends
            ("length", "<i4"),  # sub-tokens of the function
            # of the true sub-tokens, the mean over those asked for, in nats
            ("log_probability", "<f8"),
        ]
    )
    ORDER = ("function", "relation", "silenced")
    GROUP_COLUMN = "relation"
    INSTRUMENT = ledger_file.SILENCING
    COMMAND = "ablate"
    DICTIONARY_COLUMNS = (
        "function",
        "relation",
        "silenced",
        "heads",
        "edges",
        "sub_tokens",
        "length",
    )
    BOUNDS: ClassVar = {
        **dict.fromkeys(("edges", "sub_tokens", "length"), (1, np.inf)),
        "heads": (0, np.inf),
        "log_probability": LOG_PROBABILITY,
    }

    @property
    def relations(self) -> list[str]:
        return self.names

    def __repr__(self) -> str:
        functions = len(np.unique(self.rows["function"]))
        return f"SilencingLedger: {len(self)} predictions in {functions} functions, {len(self.relations)} relations"

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        super().check(rows)
        if (rows["sub_tokens"] > rows["length"]).any():
            raise ValueError("sub-tokens that cannot be")
        if ((rows["silenced"] == WHOLE) != (rows["heads"] == 0)).any():
            raise ValueError("heads that cannot be")


LEFT_OUT = NO_HEAD, NO_SUB_TOKEN, NOT_AFTER = (
    "no head of its relation beats a guess by distance on unseen functions of validation",
    "end without sub-tokens",
    "dependent not after its head token",
)
"""Why an edge is not asked for; the last in decoders alone, which predict a dependent from what is
before it."""


HeadPlace = Annotated[tuple[Number, Number], listed]
"""Layer and head."""

HeadPlaces = Annotated[tuple[HeadPlace, ...], listed]


class HeadGroup(Record):
    """The `best` heads of a relation on validation, silenced together, and sets of as many others,
    of the same layers as far as these have so many, that they are compared with."""

    best: HeadPlaces
    matched: Annotated[tuple[HeadPlaces, ...], listed]


class Chosen(Record):
    """The best heads of a relation on validation: one, then several together (`groups`).

    `score`: percent of the `edges` that it finds with one guess, rule first; `beyond`: the same of
    the `hard` ones, those not at the best offset of the relation, None without any. Both of the
    best head, on the functions of test that were probed.
    """

    groups: Annotated[tuple[HeadGroup, ...], listed, Field(min_length=1)]
    edges: Number
    score: float
    hard: Number
    beyond: float | None

    @property
    def best(self) -> HeadPlace:
        return self.groups[0].best[0]

    @property
    def silenced(self) -> list[HeadPlaces]:
        """The silenced sets, in the order of the ledger's column of this name."""
        return [(), *(heads for group in self.groups for heads in (group.best, *group.matched))]


class SilencingSettings(RankingSettings):
    """Everything that determines a silencing run."""

    KIND = (ledger_file.SILENCING,)

    chosen_on: str  # digest of the labels of the split validation
    direction: str  # of the probe that chose the heads
    restored: str  # one of RESTORED
    draws: int  # the most sets of heads that the best are compared with
    seed: int  # of these heads
    # functions of validation, over whose sub-tokens the output of a head is averaged
    reference: int


class SilencingRun(Circumstances):
    """The circumstances of the run."""

    predicts: Literal["masked", "next"]
    """`masked` if an end of edges is masked and restored, `next` if a decoder predicts first tokens
    of dependents."""
    layers: Count
    heads: Count
    """In each layer."""


class SilencingProvenance(Provenance):
    """The origin of a silencing ledger."""

    VERSION = 3  # of choosing and silencing heads
    SIGNATURE_FIELDS = (
        "silence",
        ("chosen_on", "direction", "predicts", "restored", "draws", "seed", "reference")
        + ("weights", "begin", "max_length", "functions", "edges", "version"),
    )

    settings: SilencingSettings
    version: int
    functions: Count
    """Number of functions with a dependent to predict."""
    passes: Count
    """Forward passes of single functions."""
    left_out: Annotated[dict[str, Number], exactly(LEFT_OUT)]
    """Reason -> number of edges that are not asked for."""
    heads: dict[str, Chosen]
    """Relation -> its best head."""
    run: SilencingRun


class RelationCosts(Record):
    """The cost of silencing in a relation: means over functions, in nats per sub-token that is
    asked for.

    `functions`, `edges` and `sub_tokens` that were asked for; `share`: percent of a function's
    sub-tokens; `log_probability`: of the whole model; `cost`: what is lost of it if the best head
    is silenced; `matched`: the mean of the same over the heads that it is compared with;
    `costlier`: how many of these cost more.
    """

    functions: Count
    edges: Count
    sub_tokens: Count
    share: float
    log_probability: float
    cost: float
    matched: float
    costlier: Number


class Costs(NamedTuple):
    """The cost of silencing in the F functions with a relation, in nats per sub-token: number of
    heads -> of the best ones together (F,), and of M matched sets (F, M).
    """

    functions: np.ndarray
    together: dict[int, tuple[np.ndarray, np.ndarray]]

    @property
    def best(self) -> np.ndarray:
        return self.together[1][0]

    @property
    def matched(self) -> np.ndarray:
        return self.together[1][1]


class SilencingResult(Result[SilencingLedger]):
    """The service of one language model's best heads on one split, by relation."""

    LEDGER = SilencingLedger
    PROVENANCE = SilencingProvenance

    instrument: Literal["silencing"]
    settings: SilencingSettings
    run: SilencingRun
    relations: dict[str, RelationCosts]
    heads: dict[str, Chosen]
    """As in the provenance, like the other two."""
    passes: Count
    left_out: dict[str, Number]

    @classmethod
    def from_ledger(
        cls, ledger: SilencingLedger, data_folder: Path | None = None
    ) -> SilencingResult:
        provenance = SilencingProvenance.of(ledger)
        _check_heads(ledger, provenance)
        whole = ledger.rows[ledger.rows["silenced"] == WHOLE]
        return cls._from_provenance(
            ledger,
            data_folder,
            provenance,
            provenance.signature(edges=int(whole["edges"].sum())),
            relations={
                name: _relation_costs(*_costs(ledger, name, provenance.heads[name]))
                for name in sorted(provenance.heads)
            },
        )

    def costs(self) -> dict[str, Costs]:
        """Relation -> the costs in its functions; a cost is above 0 if the silenced head helps to
        predict."""
        return {name: _costs(self.ledger, name, self.heads[name])[1] for name in self.relations}

    @property
    def title(self) -> str:
        """The model, the data and how heads look, for the titles of tables."""
        return self._titled(self.settings.model, *self.settings.deviations, self.settings.direction)

    def __repr__(self) -> str:
        lines = [
            f"SilencingResult: {self.title}",
            f"{self.functions} functions, {self.passes} forward passes; cost in nats, of the best head and of others:",
        ]
        for name, costs in self.relations.items():
            lines.append(f"{name:>32}{costs.cost:>9.3f}{costs.matched:>9.3f}")
        return "\n".join([*lines, self.signature])


def _costs(ledger: SilencingLedger, relation: str, chosen: Chosen) -> tuple[np.ndarray, Costs]:
    """The rows of a relation in which nothing is silenced, and the costs in its functions."""
    rows = ledger.rows[ledger.named()[relation]]
    whole = rows[rows["silenced"] == WHOLE]
    lost = whole["log_probability"][:, None] - rows["log_probability"].reshape(len(whole), -1)
    together, start = {}, 1
    for group in chosen.groups:
        end = start + 1 + len(group.matched)
        together[len(group.best)] = lost[:, start], lost[:, start + 1 : end]
        start = end
    return whole, Costs(whole["function"], together)


def _relation_costs(whole: np.ndarray, costs: Costs) -> RelationCosts:
    best, matched = float(costs.best.mean()), costs.matched.mean(axis=0)
    return RelationCosts(
        functions=len(whole),
        edges=int(whole["edges"].sum()),
        sub_tokens=int(whole["sub_tokens"].sum()),
        share=float(100 * (whole["sub_tokens"] / whole["length"]).mean()),
        log_probability=float(whole["log_probability"].mean()),
        cost=best,
        matched=float(matched.mean()),
        costlier=int((matched > best).sum()),
    )


def _check_heads(ledger: SilencingLedger, provenance: SilencingProvenance) -> None:
    """Raise LedgerError unless every function and relation has the rows of the heads that the
    settings say."""
    rows, reason = ledger.rows, ""
    known, scored = provenance.heads, np.unique(rows["relation"])
    if sorted(known) != sorted(ledger.relations) or len(scored) != len(known):
        reason = "its relations are others than its settings say"
    else:
        heads: list[int] = []
        numbers: list[int] = []
        for relation in rows["relation"][rows["silenced"] == WHOLE]:
            silenced = known[ledger.relations[relation]].silenced
            heads += map(len, silenced)
            numbers += range(len(silenced))
        if heads != rows["heads"].tolist() or numbers != rows["silenced"].tolist():
            reason = "its heads are others than its settings say"
        elif len(np.unique(rows["function"])) != provenance.functions:
            reason = "it has more or fewer functions than its settings say"
    if reason:
        raise LedgerError(
            f"the silencing ledger is damaged or was altered: {reason}; run `codesyntax ablate` again"
        )
