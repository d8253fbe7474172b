"""The result of surprisal: how well a decoder foresees the tokens of syntax nodes, beside matched tokens.

A ledger needs no torch and no model. As Parquet it has one row per node and role, for the tokens of the node and for
their controls: means over them.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from probing.prediction.preference_result import bins
from probing.runs import ledger_file
from probing.runs.ledger_file import RowLedger
from probing.runs.records import Count, Record, Texts
from probing.runs.saved import Circumstances, Provenance, Result
from probing.runs.settings import ControlledSettings

ROLES = FIRST, CLOSING, ALL = "first", "closing", "all"
"""Which tokens of a node: the one with which it begins, the one with which it ends if it has several, and all."""

MEASURED = BITS, GRAMS, FREQUENCY, PLACE = "bits", "grams", "frequency", "place"
"""Of a token: its surprisal for the model and for a 5-gram model, in bits; the binary logarithm of how often its text
stands in the functions; and how many tokens of the function come before it, as a share."""

LEAST_NODES = 25
"""A node type with fewer is in no mean."""

DEPTHS = (0, 4, 6, 8, 10, 12)
"""Where the bins of depths begin, in levels of the tree."""

DISTANCES = (0, 2, 4, 8, 16, 32, 64, 128)
"""Where the bins of distances begin, in tokens from the first to the closing one."""

DECIMALS = 6

MOST = 1e6
"""More than the bits of any token."""

VERSION = 1
"""Of what is measured: raised whenever the same settings give other numbers."""


class SurprisalLedger(RowLedger):
    """N nodes in a role."""

    ROW = np.dtype(
        [
            *((name, "<i4") for name in ("function", "node_type", "node", "role", "depth", "distance")),
            *((f"{of}{name}", "<f8") for of in ("", "control_") for name in MEASURED),
        ]
    )
    ORDER = ("function", "node_type", "node", "role")
    NAMED = "node_type"
    INSTRUMENT = ledger_file.SURPRISAL
    COMMAND = "surprise"
    REPEATED = ("node_type", "function", "role", "depth", "distance")
    BOUNDS: ClassVar = {
        "role": (0, len(ROLES) - 1),
        **{of + name: (0, MOST) for of in ("", "control_") for name in MEASURED},
    }

    def of(self, role: str) -> SurprisalLedger:
        """The rows of a role."""
        return SurprisalLedger(self.names, self.rows[self.rows["role"] == ROLES.index(role)], self.settings)

    def gained(self) -> np.ndarray:
        """By how many bits each row is foreseen better than its control, by the model and by 5-grams: (N, 2)."""
        return np.stack([self.rows[f"control_{name}"] - self.rows[name] for name in (BITS, GRAMS)], axis=1)


class SurprisalSettings(ControlledSettings):
    """Everything that determines the surprisal of nodes."""

    KIND = (ledger_file.SURPRISAL,)

    node_types: Texts


class SurprisalRun(Circumstances):
    """The circumstances of the run. `parser`: its version and that of the grammar."""

    parser: str


class SurprisalProvenance(Provenance):
    """The origin of a ledger of surprisal. `unmatched`: role -> node type -> nodes without a control."""

    RUN, WHAT, AGAIN, VERSION = "a run over nodes", "surprisal", "run `codesyntax surprise` again", VERSION
    SIGNED = "surprise", ("node_types", "max_length", "dtype", "rows", "version", "control")

    settings: SurprisalSettings
    run: SurprisalRun
    version: int
    unmatched: dict[str, dict[str, Count]]


class Surprisal(Record):
    """Means over some `nodes`: of each of MEASURED, of their tokens and of the controls."""

    nodes: Count
    tokens: dict[str, float]
    controls: dict[str, float]


class SurprisalResult(Result[SurprisalLedger]):
    """The surprisal of nodes for one decoder on one split: role -> group -> means."""

    LEDGER = SurprisalLedger
    PROVENANCE = SurprisalProvenance

    instrument: Literal["surprisal"]
    settings: SurprisalSettings
    run: SurprisalRun
    unmatched: dict[str, dict[str, Count]]
    node_types: dict[str, dict[str, Surprisal]]
    depths: dict[str, dict[str, Surprisal]]
    distances: dict[str, dict[str, Surprisal]]

    @classmethod
    def from_ledger(cls, ledger: SurprisalLedger, data_folder: Path | None = None) -> SurprisalResult:
        made = SurprisalProvenance.of(ledger)
        groups: dict[str, dict[str, dict[str, Surprisal]]] = {by: {} for by in ("node_types", "depths", "distances")}
        for role in ROLES:
            part = ledger.of(role)
            for by, of in groups_of(part).items():
                groups[by][role] = {name: _surprisal(part.rows[chosen]) for name, chosen in of}
        functions = len(np.unique(ledger.rows["function"]))
        return cls._of(ledger, data_folder, made, made.signature(rows=len(ledger)), functions=functions, **groups)


def groups_of(ledger: SurprisalLedger) -> dict[str, list[tuple[str, np.ndarray]]]:
    """By what the rows of a role are grouped -> the groups that have any: the name, and which rows, bool (N,)."""
    rows = ledger.rows
    return {
        "node_types": [*ledger.named().items()],
        "depths": [*bins(rows["depth"], DEPTHS)],
        "distances": [*bins(rows["distance"], DISTANCES)],
    }


def _surprisal(rows: np.ndarray) -> Surprisal:
    tokens, controls = ({name: float(rows[of + name].mean()) for name in MEASURED} for of in ("", "control_"))
    return Surprisal(nodes=len(rows), tokens=tokens, controls=controls)
