"""The result of a silencing run: costs by relation, their signature, and everything needed to check and repeat it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from codesyntax_dataset.errors import LedgerError
from probing.prediction.silencing_ledger import BEST, MATCHED, WHOLE, SilencingLedger
from probing.prediction.silencing_schema import (
    Chosen,
    Provenance,
    RelationCosts,
    ResultFile,
    Signature,
    SilencingRun,
    SilencingSettings,
)
from probing.runs.ledger_file import SILENCING
from probing.runs.saved import FORMAT, SavedResult


class Costs(NamedTuple):
    """What silencing costs in the F functions with a relation, in nats per sub-token: `best` (F,), `matched` (F, M)."""

    functions: np.ndarray
    best: np.ndarray
    matched: np.ndarray


@dataclass(repr=False)
class SilencingResult(SavedResult):
    """What the best heads of one language model serve on one split, by relation.

    `relations`: {relation: RelationCosts}; `heads`: {relation: Chosen}. `functions`: how many
    have a dependent that is asked for; `passes`: forward passes of single functions; `skips`: {reason: number of
    skipped functions}; `left_out`: {reason: number of edges}. `data_folder`: as in `ProbeResult`.
    """

    file: ClassVar = ResultFile

    signature: str
    relations: dict[str, RelationCosts]
    heads: dict[str, Chosen]
    functions: int
    passes: int
    skips: dict[str, int]
    left_out: dict[str, int]
    settings: SilencingSettings
    run: SilencingRun
    versions: dict[str, str]
    ledger: SilencingLedger
    data_folder: Path | None = field(default=None, compare=False)

    @classmethod
    def from_file(cls, ledger: Path) -> SilencingResult:
        return cls.from_ledger(SilencingLedger.load(ledger))

    @classmethod
    def from_ledger(cls, ledger: SilencingLedger) -> SilencingResult:
        """Compute the result from a ledger.

        Raises LedgerError if the ledger does not say how it was made, or does not hold what it says.
        """
        made = Provenance.of(ledger)
        _check_heads(ledger, made)
        whole = ledger.rows[ledger.rows["silenced"] == WHOLE]
        return cls(
            signature=str(Signature(made, int(whole["edges"].sum()))),
            relations={name: _summary(*_of(ledger, name)) for name in sorted(made.heads)},
            heads=made.heads,
            functions=made.functions,
            passes=made.passes,
            skips=made.skips,
            left_out=made.left_out,
            settings=made.settings,
            run=made.run,
            versions=made.versions,
            ledger=ledger,
        )

    def costs(self) -> dict[str, Costs]:
        """Relation -> the costs in its functions; a cost is above 0 if the silenced head helps to predict."""
        return {name: _of(self.ledger, name)[1] for name in self.relations}

    @property
    def title(self) -> str:
        """The model, the data and the direction in which heads look, for the titles of tables."""
        made = self.settings
        partial = "" if made.limit is None else f" (PARTIAL: first {made.limit} functions)"
        return f"{made.model} on {made.data}, {made.config}/{made.split}, {made.direction}{partial}"

    def __repr__(self) -> str:
        lines = [
            f"SilencingResult: {self.title}",
            f"{self.functions} functions, {self.passes} forward passes; cost in nats, of the best head and of others:",
        ]
        for name, costs in self.relations.items():
            lines.append(f"{name:>32}{costs.cost:>9.3f}{costs.matched:>9.3f}")
        return "\n".join([*lines, self.signature])

    def to_json(self, data_path: str | None = None) -> str:
        fields = {
            "format": FORMAT,
            "instrument": SILENCING,
            "signature": self.signature,
            "relations": {name: costs.model_dump() for name, costs in self.relations.items()},
            "heads": {name: head.model_dump(mode="json") for name, head in self.heads.items()},
            "functions": self.functions,
            "passes": self.passes,
            "skips": self.skips,
            "left_out": self.left_out,
            "settings": self.settings.model_dump(),
            "run": self.run.model_dump(),
            "versions": self.versions,
            "ledger": self.ledger.digest(),
        }
        if data_path is not None:
            fields["data_path"] = data_path
        return json.dumps(fields, indent=1, allow_nan=False) + "\n"


def _of(ledger: SilencingLedger, relation: str) -> tuple[np.ndarray, Costs]:
    """The rows of a relation in which nothing is silenced, and the costs in its functions."""
    rows = ledger.rows[ledger.rows["relation"] == ledger.relations.index(relation)]
    whole = rows[rows["silenced"] == WHOLE]
    lost = whole["log_probability"][:, None] - rows["log_probability"].reshape(len(whole), -1)
    return whole, Costs(whole["function"], lost[:, BEST], lost[:, MATCHED:])


def _summary(whole: np.ndarray, costs: Costs) -> RelationCosts:
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


def _check_heads(ledger: SilencingLedger, made: Provenance) -> None:
    """Raise LedgerError unless every function and relation has the rows of the heads that the settings say."""
    rows, reason = ledger.rows, ""
    if sorted(made.heads) != sorted(ledger.relations) or len(np.unique(rows["relation"])) != len(made.heads):
        reason = "its relations are others than its settings say"
    else:
        blocks = [made.heads[ledger.relations[number]] for number in rows["relation"][rows["silenced"] == WHOLE]]
        heads = [(-1, chosen.head, *chosen.matched) for chosen in blocks]
        numbers = [number for block in heads for number in range(len(block))]
        if [head for block in heads for head in block] != rows["head"].tolist() or numbers != rows["silenced"].tolist():
            reason = "its heads are others than its settings say"
        elif len(np.unique(rows["function"])) != made.functions:
            reason = "it has more or fewer functions than its settings say"
    if reason:
        raise LedgerError(f"the silencing ledger is damaged or was altered: {reason}; run `codesyntax ablate` again")
