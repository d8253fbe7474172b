"""The result of silencing sets of heads while minimal pairs are read: what of the margin of valid
code is lost.

The margin of a pair is the log-probability of its valid text less that of the invalid one, in nats.
As Parquet, the ledger has one row per pair and set, sorted by `function`, the place of the pair in
the split, and `silenced`: 0 is the whole model, then come the sets in the order of the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from codesyntax_dataset.errors import LedgerError
from probing.instruments.silencing.result import HeadPlace
from probing.instruments.silencing.sets import HeadSet
from probing.runs import ledger_file
from probing.runs.ledger_file import LOG_PROBABILITY, RowLedger
from probing.runs.records import Count, Number, Record, Texts, listed
from probing.runs.saved import Circumstances, Measured, Provenance, Result
from probing.runs.settings import RankingSettings


class CarryingLedger(RowLedger):
    """N rows of a pair and a set of heads."""

    ROW = np.dtype(
        [
            ("function", "<i4"),
            ("silenced", "<i4"),
            ("phenomenon", "<i4"),
            ("repository", "<i4"),  # in the order of the split
            # of a text, the sum over its sub-tokens; of a masked language model, over those in
            # which the two texts differ, all of them masked; in nats
            ("good", "<f8"),
            ("bad", "<f8"),
        ]
    )
    ORDER = ("function", "silenced")
    GROUP_COLUMN = "phenomenon"
    INSTRUMENT = ledger_file.CARRYING
    COMMAND = "carry"
    DICTIONARY_COLUMNS = ("function", "silenced", "phenomenon", "repository")
    BOUNDS: ClassVar = {"good": LOG_PROBABILITY, "bad": LOG_PROBABILITY}


class CarryingSettings(RankingSettings):
    """Everything that determines which heads are silenced, and how."""

    KIND = (ledger_file.CARRYING,)

    chosen_on: str  # digest of the labels of the functions on which heads are chosen
    direction: str  # of the probe that chose them
    relations: Texts | None  # whose heads are silenced; None: those on which pairs rest
    own: Annotated[tuple[HeadPlace, ...], listed]  # heads that the caller names
    shares: Annotated[tuple[Number, ...], listed]  # percent of all heads
    draws: Number  # sets of other heads for each
    seed: Number  # of these
    stand_in: Literal["mean", "zero", "resampled"]

    def signature_fields(self) -> dict[str, Any]:
        return {
            **super().signature_fields(),
            "relations": self.relations,
            "own": tuple(f"{layer}-{head}" for layer, head in self.own) or None,
            "shares": tuple(map(str, self.shares)),
        }


class CarryingRun(Circumstances):
    """The circumstances of the run."""

    predicts: Literal["masked", "next"]
    """`next`: a decoder predicts all sub-tokens of a text; `masked`: those in which two texts
    differ are restored."""
    layers: Count
    heads: Count
    """In each layer."""


class CarryingProvenance(Provenance):
    """The origin of a ledger of silenced sets."""

    VERSION = 1
    SIGNATURE_FIELDS = (
        "carry",
        (
            "chosen_on direction predicts relations own shares draws seed stand_in"
            " begin max_length pairs version"
        ).split(),
    )

    settings: CarryingSettings
    version: int
    run: CarryingRun
    sets: Annotated[tuple[HeadSet, ...], listed]


class Margins(Record):
    """Of the pairs of a phenomenon: the mean `margin` of the whole model, in nats, and percent of
    them in which it is above 0."""

    pairs: Count
    repositories: Count
    margin: float
    preferred: float


class CarryingResult(Result[CarryingLedger]):
    """What minimal pairs lose if sets of heads are silenced, for one language model on one split;
    `functions` counts pairs."""

    UNIT = "pair"
    LEDGER = CarryingLedger
    PROVENANCE = CarryingProvenance

    instrument: Literal["carrying"]
    settings: CarryingSettings
    run: CarryingRun
    sets: Annotated[tuple[HeadSet, ...], listed]
    """As in the provenance: the sets of heads, in the order of the ledger."""
    phenomena: dict[str, Margins]
    """Phenomenon, and the family of relations on which its pairs rest -> the margins of the whole
    model."""

    @classmethod
    def measured(cls, ledger: CarryingLedger, provenance: CarryingProvenance) -> Measured:
        sets = len(provenance.sets) + 1
        pairs = len(ledger) // sets
        numbered = np.tile(np.arange(sets), pairs)
        if len(ledger) != len(numbered) or (ledger.rows["silenced"] != numbered).any():
            raise LedgerError(
                "the ledger is damaged or was altered: its sets of heads are others than its settings say; "
                "run `codesyntax carry` again"
            )
        whole = ledger.rows[::sets]
        phenomena = {}
        for number, name in enumerate(ledger.names):
            rows = whole[whole["phenomenon"] == number]
            if len(rows):
                margin = rows["good"] - rows["bad"]
                phenomena[name] = Margins(
                    pairs=len(rows),
                    repositories=len(np.unique(rows["repository"])),
                    margin=float(margin.mean()),
                    preferred=100 * float((np.sign(margin) + 1).mean() / 2),
                )
        return {"pairs": pairs}, {"functions": pairs, "phenomena": dict(sorted(phenomena.items()))}

    @property
    def title(self) -> str:
        """The model, the data, and what silenced heads put out, for the titles of tables."""
        return self._title_with([f"{self.settings.stand_in} outputs"])


def places_of(sets: Sequence[HeadSet], seeker: str, share: int, kind: str) -> list[int]:
    """The numbers in the ledger of the sets of a kind."""
    return [
        number
        for number, heads in enumerate(sets, 1)
        if (heads.seeker, heads.share, heads.kind) == (seeker, share, kind)
    ]
