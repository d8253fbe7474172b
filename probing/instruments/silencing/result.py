"""The result of a silencing run: costs by relation, their signature, and everything needed to check
and repeat it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per
function, relation and set of silenced heads, sorted by function (its position in the split),
relation and `silenced`: 0 is the whole model, 1 the best head of the relation, and from 2 on the
heads of the same layer that it is compared with; then the best three heads together and as many
others, then the best ten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

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
        + ("begin", "max_length", "functions", "edges", "version"),
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
    def measured(
        cls, ledger: SilencingLedger, provenance: SilencingProvenance
    ) -> tuple[dict[str, int], dict[str, Any]]:
        _check_heads(ledger, provenance)
        relations = {
            name: _relation_costs(ledger.rows[chosen], provenance.heads[name])
            for name, chosen in sorted(ledger.named().items())
        }
        edges = sum(costs.edges for costs in relations.values())
        return {"edges": edges}, {"relations": relations}

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


def by_group(
    rows: np.ndarray, chosen: Chosen
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """The log-probabilities of a relation in its F functions, for each number of heads that are
    silenced together: of the whole model (F,), without the best heads (F,), and without each of M
    matched sets (F, M)."""
    functions = (rows["silenced"] == WHOLE).sum()
    predicted = rows["log_probability"].reshape(functions, -1)
    start = 1
    for group in chosen.groups:
        end = start + 1 + len(group.matched)
        yield len(group.best), predicted[:, 0], predicted[:, start], predicted[:, start + 1 : end]
        start = end


def _relation_costs(rows: np.ndarray, chosen: Chosen) -> RelationCosts:
    whole = rows[rows["silenced"] == WHOLE]
    _, log_probability, without_best, without_others = next(by_group(rows, chosen))
    best = float((log_probability - without_best).mean())
    matched = (log_probability[:, None] - without_others).mean(axis=0)
    return RelationCosts(
        functions=len(whole),
        edges=int(whole["edges"].sum()),
        sub_tokens=int(whole["sub_tokens"].sum()),
        share=float(100 * (whole["sub_tokens"] / whole["length"]).mean()),
        log_probability=float(log_probability.mean()),
        cost=best,
        matched=float(matched.mean()),
        costlier=int((matched > best).sum()),
    )


def _check_heads(ledger: SilencingLedger, provenance: SilencingProvenance) -> None:
    """Raise LedgerError unless every function and relation has the rows of the heads that the
    settings say."""
    rows, reason = ledger.rows, ""
    known, scored = provenance.heads, np.unique(rows["relation"])
    if sorted(known) != sorted(ledger.names) or len(scored) != len(known):
        reason = "its relations are others than its settings say"
    else:
        heads: list[int] = []
        numbers: list[int] = []
        for relation in rows["relation"][rows["silenced"] == WHOLE]:
            silenced = known[ledger.names[relation]].silenced
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
