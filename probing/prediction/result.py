"""The result of a masking run: means by node type, their signature, and everything needed to check and repeat them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import LedgerError, UnknownName
from probing.prediction.ledger import HITS, SIMILARITIES, MaskingLedger
from probing.prediction.schema import (
    Arm,
    MaskRun,
    MaskSettings,
    Provenance,
    ResultFile,
    Signature,
    TypeScores,
)
from probing.runs.ledger_file import MASKING
from probing.runs.saved import FORMAT, SavedResult

if TYPE_CHECKING:
    import pandas

OUTCOMES = (*SIMILARITIES, "restored", "log_probability")
"""What is compared between the two arms: the similarities, from 0 to 1; `restored`, the share of masked sub-tokens of
which the true one is the most likely, from 0 to 1; `log_probability` of the true ones, in nats."""


class Arms(NamedTuple):
    """An outcome of the functions (F,) with a node type, in both arms, and their places in the split."""

    functions: np.ndarray
    t1: np.ndarray
    t0: np.ndarray


@dataclass(repr=False)
class MaskResult(SavedResult):
    """What one masked language model restores on one split, by node type.

    `node_types`: {node type: TypeScores}, only those that occur. `functions`: the number of functions that were read;
    `copies`: masked copies of them; `skips`: {reason: number of skipped functions}; `dropped`: {reason: number of pairs
    of a function and a node type that nothing was masked for}. `data_folder`: as in `ProbeResult`.
    """

    file: ClassVar = ResultFile

    signature: str
    node_types: dict[str, TypeScores]
    functions: int
    copies: int
    skips: dict[str, int]
    dropped: dict[str, int]
    settings: MaskSettings
    run: MaskRun
    versions: dict[str, str]
    ledger: MaskingLedger
    data_folder: Path | None = field(default=None, compare=False)

    @classmethod
    def from_file(cls, ledger: Path) -> MaskResult:
        return cls.from_ledger(MaskingLedger.load(ledger))

    @classmethod
    def from_ledger(cls, ledger: MaskingLedger) -> MaskResult:
        """Compute the result from a ledger.

        Raises LedgerError if the ledger does not say how it was made, or does not hold what it says.
        """
        made = Provenance.of(ledger)
        _check_counts(ledger, made)
        return cls(
            signature=str(Signature(made, len(ledger))),
            node_types={
                name: _scores(ledger.rows[ledger.rows["node_type"] == place])
                for place, name in enumerate(ledger.node_types)
                if (ledger.rows["node_type"] == place).any()
            },
            functions=made.functions,
            copies=len(ledger),
            skips=made.skips,
            dropped=made.dropped,
            settings=made.settings,
            run=made.run,
            versions=made.versions,
            ledger=ledger,
        )

    def arms(self, outcome: str = "jaccard") -> dict[str, Arms]:
        """Node type -> an outcome of its functions in both arms; those without a number in one of them are left out.

        Raises UnknownName for an outcome that is not in OUTCOMES.
        """
        if outcome not in OUTCOMES:
            raise UnknownName("outcome", outcome, OUTCOMES)
        found = {}
        for place, name in enumerate(self.ledger.node_types):
            rows = self.ledger.rows[self.ledger.rows["node_type"] == place]
            if len(rows):
                functions, t1, t0 = _by_function(rows, _outcome(rows, outcome))
                known = ~(np.isnan(t1) | np.isnan(t0))
                found[name] = Arms(functions[known], t1[known], t0[known])
        return found

    def to_pandas(self) -> pandas.DataFrame:
        """A table with one row per node type and arm, T1 and T0."""
        import pandas

        return pandas.DataFrame(
            {"node_type": name, "arm": arm.upper(), "functions": scores.functions, "masked": scores.masked}
            | getattr(scores, arm).model_dump()
            for name, scores in self.node_types.items()
            for arm in ("t1", "t0")
        )

    @property
    def title(self) -> str:
        """The model and the data, for the titles of tables."""
        made = self.settings
        partial = "" if made.limit is None else f" (PARTIAL: first {made.limit} functions)"
        return f"{made.model} on {made.data}, {made.config}/{made.split}{partial}"

    def __repr__(self) -> str:
        lines = [
            f"MaskResult: {self.title}",
            f"{self.functions} functions, {self.copies} masked copies; Jaccard similarity, T1 (nodes) and T0 (random):",
        ]
        for name, scores in self.node_types.items():
            cells = ["-" if arm.jaccard is None else f"{arm.jaccard:.3f}" for arm in (scores.t1, scores.t0)]
            lines.append(f"{name:>24}" + "".join(f"{cell:>8}" for cell in cells))
        return "\n".join([*lines, self.signature])

    def to_json(self, data_path: str | None = None) -> str:
        fields = {
            "format": FORMAT,
            "instrument": MASKING,
            "signature": self.signature,
            "node_types": {name: scores.model_dump() for name, scores in self.node_types.items()},
            "functions": self.functions,
            "copies": self.copies,
            "skips": self.skips,
            "dropped": self.dropped,
            "settings": self.settings.model_dump(),
            "run": self.run.model_dump(),
            "versions": self.versions,
            "ledger": self.ledger.digest(),
        }
        if data_path is not None:
            fields["data_path"] = data_path
        return json.dumps(fields, indent=1, allow_nan=False) + "\n"


@checked
def load(path: str | os.PathLike) -> MaskResult:
    """Load the masking result at `path`, recomputed from the ledger beside it.

    Raises LedgerError if one of the two is missing or damaged, or if they differ.
    """
    return MaskResult.load(path)


def _scores(rows: np.ndarray) -> TypeScores:
    """The scores of the rows of one node type."""
    first = rows["copy"] == 0
    return TypeScores(
        functions=int(first.sum()),
        masked=int(rows["masked"][first].sum()),
        failed=int(np.isnan(rows[SIMILARITIES[0]]).sum()),
        t1=_arm(rows, 0),
        t0=_arm(rows, 1),
    )


def _arm(rows: np.ndarray, arm: int) -> Arm:
    """The means over functions of one arm, 0 for T1 and 1 for T0."""

    def values(outcome: np.ndarray) -> np.ndarray:
        return _by_function(rows, outcome)[1 + arm]

    restored, top5, top10 = (100 * float(values(rows[column] / rows["masked"]).mean()) for column in HITS)
    jaccard, sorensen_dice, levenshtein = (_mean(values(rows[name])) for name in SIMILARITIES)
    return Arm(
        jaccard=jaccard,
        sorensen_dice=sorensen_dice,
        levenshtein=levenshtein,
        restored=restored,
        top5=top5,
        top10=top10,
        log_probability=float(values(rows["log_probability"]).mean()),
    )


def _outcome(rows: np.ndarray, name: str) -> np.ndarray:
    return rows[HITS[0]] / rows["masked"] if name == "restored" else rows[name]


def _by_function(rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The functions of rows of one node type, their value in T1, and the mean of those in T0 that are numbers."""
    first = np.flatnonzero(rows["copy"] == 0)
    control = rows["copy"] > 0
    known = control & ~np.isnan(values)
    function = np.cumsum(rows["copy"] == 0) - 1
    counts = np.bincount(function[known], minlength=len(first))
    sums = np.bincount(function[known], weights=values[known], minlength=len(first))
    t0 = np.divide(sums, counts, out=np.full(len(first), np.nan), where=counts > 0)
    return rows["function"][first], values[first], t0


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _check_counts(ledger: MaskingLedger, made: Provenance) -> None:
    """Raise LedgerError unless the ledger holds the copies that its settings say."""
    rows, settings = ledger.rows, made.settings
    t1 = int((rows["copy"] == 0).sum())
    copies = np.tile(np.arange(settings.draws + 1), t1)
    reason = ""
    if list(settings.node_types) != ledger.node_types:
        reason = "its node types are others than its settings say"
    elif not len(rows) or len(copies) != len(rows) or (rows["copy"] != copies).any():
        reason = f"it does not have {settings.draws} controls for every masked copy"
    elif (rows["masked"] != np.repeat(rows["masked"][rows["copy"] == 0], settings.draws + 1)).any() and (
        settings.protocol == "current"
    ):
        reason = "controls mask more or fewer sub-tokens than the copies that they control"
    elif t1 + sum(made.dropped.values()) != made.functions * len(settings.node_types):
        reason = "its functions and node types do not add up"
    elif len(np.unique(rows["function"])) > made.functions:
        reason = "it has more functions than its settings say"
    if reason:
        raise LedgerError(f"the masking ledger is damaged or was altered: {reason}; mask again")
