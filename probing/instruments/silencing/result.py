"""The result of a silencing run: costs by relation, their signature, and everything needed to check
and repeat it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per
function, relation and silenced head, sorted by function (its position in the split), relation and
`silenced`: 0 is the whole model, 1 the best head of the relation, and from 2 on the heads of the
same layer that it is compared with.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from codesyntax_dataset.errors import LedgerError
from probing.runs import ledger_file
from probing.runs.ledger_file import LOG_PROBABILITY, RowLedger
from probing.runs.records import Count, Number, Numbers, Record, exactly, listed
from probing.runs.saved import Circumstances, Measured, Provenance, Result
from probing.runs.settings import RankingSettings

WHOLE = 0
"""Where nothing is silenced."""

LOSS_DECIMALS = 6
"""Those of log-probabilities, as many as float32 gives."""


class SilencingLedger(RowLedger):
    """N rows of a function, a relation and a silenced head."""

    ROW = np.dtype(
        [
            ("function", "<i4"),
            ("relation", "<i4"),
            ("silenced", "<i4"),
            ("edges", "<i4"),  # of which an end is asked for
            # of the true sub-tokens, the mean over those asked for, in nats
            ("log_probability", "<f8"),
        ]
    )
    ORDER = ("function", "relation", "silenced")
    GROUP_COLUMN = "relation"
    INSTRUMENT = ledger_file.SILENCING
    COMMAND = "ablate"
    DICTIONARY_COLUMNS = ("function", "relation", "silenced", "edges")
    BOUNDS: ClassVar = {"edges": (1, np.inf), "log_probability": LOG_PROBABILITY}


LEFT_OUT = NO_HEAD, NO_SUB_TOKEN, NOT_AFTER = (
    "no head of its relation beats a guess by distance on unseen functions of validation",
    "end without sub-tokens",
    "dependent not after its head token",
)
"""Why an edge is not asked for; the last in decoders alone, which predict a dependent from what is
before it."""


HeadPlace = Annotated[tuple[Number, Number], listed]
"""Layer and head."""


class Chosen(Record):
    """The `best` head of a relation on validation, and those of its layer that it is compared with,
    `matched`.

    `score`: percent of the `edges` that the best head finds with one guess, rule first; `beyond`:
    the same of the `hard` ones, those not at the best offset of the relation, None without any.
    Both on the functions of test that were probed.
    """

    best: HeadPlace
    matched: Annotated[tuple[HeadPlace, ...], listed]
    edges: Number
    score: float
    hard: Number
    beyond: float | None

    @property
    def silenced(self) -> list[tuple[HeadPlace, ...]]:
        """The silenced heads, in the order of the ledger's column of this name: first none."""
        return [(), (self.best,), *((head,) for head in self.matched)]


class SilencingSettings(RankingSettings):
    """Everything that determines a silencing run."""

    KIND = (ledger_file.SILENCING,)

    chosen_on: str  # digest of the labels of the split validation
    direction: str  # of the probe that chose the heads
    draws: int  # the most heads that the best one is compared with
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

    VERSION = 4  # of choosing and silencing heads
    SIGNATURE_FIELDS = (
        "silence",
        (
            "chosen_on direction predicts draws seed reference"
            " begin max_length functions edges version"
        ).split(),
    )

    settings: SilencingSettings
    version: int
    functions: Count
    """Number of functions with a dependent to predict."""
    left_out: Annotated[Numbers, exactly(LEFT_OUT)]
    """Reason -> number of edges that are not asked for."""
    heads: dict[str, Chosen]
    """Relation -> its best head."""
    run: SilencingRun


class RelationCosts(Record):
    """The cost of silencing in a relation: means over functions, in nats per sub-token that is
    asked for.

    `functions` and `edges` that were asked for; `cost`: the log-probability that is lost if the
    best head is silenced; `matched`: the mean of the same over the heads that it is compared with;
    `costlier`: how many of these cost more.
    """

    functions: Count
    edges: Count
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
    """As in the provenance, like what is left out."""
    left_out: Numbers

    @classmethod
    def measured(cls, ledger: SilencingLedger, provenance: SilencingProvenance) -> Measured:
        _check_heads(ledger, provenance)
        relations = {
            name: _relation_costs(ledger.rows[chosen])
            for name, chosen in sorted(ledger.named().items())
        }
        edges = sum(costs.edges for costs in relations.values())
        return {"edges": edges}, {"relations": relations}

    @property
    def title(self) -> str:
        """The model, the data and how heads look, for the titles of tables."""
        return self._title_with([self.settings.direction])


def log_probabilities(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Those of a relation in its F functions: of the whole model (F,), without the best head (F,),
    and without each of M matched heads (F, M)."""
    predicted = rows["log_probability"].reshape((rows["silenced"] == WHOLE).sum(), -1)
    return predicted[:, 0], predicted[:, 1], predicted[:, 2:]


def _relation_costs(rows: np.ndarray) -> RelationCosts:
    edges = rows["edges"][rows["silenced"] == WHOLE]
    whole, without_best, without_others = log_probabilities(rows)
    best = float((whole - without_best).mean())
    matched = (whole[:, None] - without_others).mean(axis=0)
    return RelationCosts(
        functions=len(whole),
        edges=int(edges.sum()),
        cost=best,
        matched=float(matched.mean()),
        costlier=int((matched > best).sum()),
    )


def _check_heads(ledger: SilencingLedger, provenance: SilencingProvenance) -> None:
    """Raise LedgerError unless every function and relation has the rows of the heads that the
    settings say."""
    rows = ledger.rows
    reason = ""
    known = provenance.heads
    scored = np.unique(rows["relation"])
    if sorted(known) != sorted(ledger.names) or len(scored) != len(known):
        reason = "its relations are others than its settings say"
    else:
        numbers = [
            number
            for relation in rows["relation"][rows["silenced"] == WHOLE]
            for number in range(len(known[ledger.names[relation]].silenced))
        ]
        if numbers != rows["silenced"].tolist():
            reason = "its heads are others than its settings say"
        elif len(np.unique(rows["function"])) != provenance.functions:
            reason = "it has more or fewer functions than its settings say"
    if reason:
        raise LedgerError(
            f"the silencing ledger is damaged or was altered: {reason}; run `codesyntax ablate` again"
        )
