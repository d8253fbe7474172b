"""The result of a silencing run: costs by relation, their signature, and everything needed to check and repeat it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per function, relation and
silenced head, sorted by function (its position in the split), relation and `silenced`: 0 is the whole model, 1 the best
head of the relation, and from 2 on the heads of the same layer that it is compared with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np

from codesyntax_dataset.errors import LedgerError
from probing.runs import ledger_file
from probing.runs.records import Count, Number, Record, exactly, listed
from probing.runs.row_ledger import RowLedger
from probing.runs.saved import Provenance, Result
from probing.runs.settings import Limit, Signature, file_name

WHOLE, BEST, MATCHED = 0, 1, 2
"""What is silenced: nothing, the best head, or one to compare it with, which count on from here."""

DECIMALS = 6
"""Those of log-probabilities, as many as float32 gives."""


class SilencingLedger(RowLedger):
    """N rows of a function, a relation and a silenced head."""

    ROW = np.dtype(
        [
            ("function", "<i4"),
            ("relation", "<i4"),
            ("silenced", "<i4"),
            ("head", "<i4"),  # in the layer of the relation's best head; -1 if none is silenced
            ("edges", "<i4"),  # whose dependents are asked for
            ("sub_tokens", "<i4"),  # of these dependents
            ("length", "<i4"),  # sub-tokens of the function
            ("log_probability", "<f8"),  # of the true sub-tokens, the mean over those asked for, in nats
        ]
    )
    ORDER = ("function", "relation", "silenced")
    NAMED = "relation"
    INSTRUMENT = ledger_file.SILENCING
    COMMAND = "ablate"
    REPEATED = ("function", "relation", "silenced", "head", "edges", "sub_tokens", "length")

    @property
    def relations(self) -> list[str]:
        return self.names

    def __repr__(self) -> str:
        functions = len(np.unique(self.rows["function"]))
        return f"SilencingLedger: {len(self)} predictions in {functions} functions, {len(self.relations)} relations"

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        counts = np.stack([rows[name] for name in ("edges", "sub_tokens", "length")])
        if (counts < 1).any() or (rows["sub_tokens"] > rows["length"]).any():
            raise ValueError("counts that cannot be")
        if ((rows["silenced"] == WHOLE) != (rows["head"] == -1)).any() or (rows["head"] < -1).any():
            raise ValueError("heads that cannot be")
        if not np.isfinite(rows["log_probability"]).all() or (rows["log_probability"] > 0).any():
            raise ValueError("log-probabilities that cannot be")


VERSION = 1
"""Of choosing and silencing heads: raised whenever the same settings give other numbers."""

LEFT_OUT = NO_HEAD, NO_SUB_TOKEN, NOT_AFTER = (
    "no head finds its relation on validation",
    "dependent without sub-tokens",
    "dependent not after its head token",
)
"""Why an edge is not asked for; the last in decoders alone, which predict a dependent from what is before it."""


class Chosen(Record):
    """The best head of a relation on validation, and the other heads of its `layer` that it is compared with.

    `score`: percent of the `edges` that it finds with one guess, rule first; `beyond`: the same of the `hard` ones,
    those not at the best offset of the relation, None without any. Both on the functions of test that were probed.
    """

    layer: Number
    head: Number
    matched: Annotated[tuple[Number, ...], listed]
    edges: Number
    score: float
    hard: Number
    beyond: float | None


class SilencingSettings(Record):
    """Everything that determines a silencing run."""

    model: str
    revision: str  # commit on the Hub, or digests of a local model and its head
    data: str  # name@version
    labels: str  # digest of the labels that were read
    chosen_on: str  # digest of the labels of the split validation
    config: str
    split: str
    direction: str  # of the probe that chose the heads
    draws: int  # the most heads that each best head is compared with
    seed: int  # of these heads
    reference: int  # functions of validation, over whose sub-tokens the output of a head is averaged
    max_length: int  # sub-tokens, special tokens included, that a function may have
    limit: Limit  # only these functions of the split: a partial run

    @property
    def name(self) -> str:
        """A file name, different for different settings."""
        return file_name(self, ledger_file.SILENCING)


class SilencingRun(Record):
    """How the run went."""

    family: str
    """The architecture in the model's configuration."""
    predicts: Literal["masked", "next"]
    """`masked` if dependents are masked and restored, `next` if a decoder predicts their first tokens."""
    layers: Count
    heads: Count
    """In each layer."""
    device: str


class SilencingProvenance(Provenance):
    """How a silencing ledger was made."""

    RUN, WHAT, AGAIN = "a silencing run", "silencing", "run `codesyntax ablate` again"
    VERSION = VERSION

    settings: SilencingSettings
    version: int
    functions: Count
    """How many have a dependent that is asked for."""
    passes: Count
    """Forward passes of single functions."""
    skips: dict[str, Count]
    left_out: Annotated[dict[str, Number], exactly(LEFT_OUT)]
    """Reason -> number of edges that are not asked for."""
    heads: dict[str, Chosen]
    """Relation -> its best head."""
    run: SilencingRun
    versions: dict[str, str]


def signature_of(made: SilencingProvenance, edges: int) -> Signature:
    """The signature of a silencing run that asks for so many edges."""
    settings = made.settings
    return Signature.of(
        "silence",
        settings,
        chosen_on=settings.chosen_on,
        direction=settings.direction,
        predicts=made.run.predicts,
        draws=settings.draws,
        seed=settings.seed,
        reference=settings.reference,
        max_length=settings.max_length,
        functions=made.functions,
        edges=edges,
        version=VERSION,
    )


class RelationCosts(Record):
    """What silencing costs in a relation: means over functions, in nats per sub-token that is asked for.

    `functions`, `edges` and `sub_tokens` that were asked for; `share`: percent of a function's sub-tokens;
    `log_probability`: of the whole model; `cost`: what is lost of it if the best head is silenced; `matched`: the mean
    of the same over the heads that it is compared with; `costlier`: how many of these cost more.
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
    """What silencing costs in the F functions with a relation, in nats per sub-token: `best` (F,), `matched` (F, M)."""

    functions: np.ndarray
    best: np.ndarray
    matched: np.ndarray


class SilencingResult(Result[SilencingLedger]):
    """What the best heads of one language model serve on one split, by relation."""

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
    def from_ledger(cls, ledger: SilencingLedger, data_folder: Path | None = None) -> SilencingResult:
        provenance = SilencingProvenance.of(ledger)
        _check_heads(ledger, provenance)
        whole = ledger.rows[ledger.rows["silenced"] == WHOLE]
        return cls._of(
            ledger,
            data_folder,
            provenance,
            signature_of(provenance, int(whole["edges"].sum())),
            functions=provenance.functions,
            relations={name: _summary(*_costs(ledger, name)) for name in sorted(provenance.heads)},
            heads=provenance.heads,
            passes=provenance.passes,
            left_out=provenance.left_out,
        )

    def costs(self) -> dict[str, Costs]:
        """Relation -> the costs in its functions; a cost is above 0 if the silenced head helps to predict."""
        return {name: _costs(self.ledger, name)[1] for name in self.relations}

    @property
    def title(self) -> str:
        """The model, the data and the direction in which heads look, for the titles of tables."""
        return self._titled(self.settings.model, self.settings.direction)

    def __repr__(self) -> str:
        lines = [
            f"SilencingResult: {self.title}",
            f"{self.functions} functions, {self.passes} forward passes; cost in nats, of the best head and of others:",
        ]
        for name, costs in self.relations.items():
            lines.append(f"{name:>32}{costs.cost:>9.3f}{costs.matched:>9.3f}")
        return "\n".join([*lines, self.signature])


def _costs(ledger: SilencingLedger, relation: str) -> tuple[np.ndarray, Costs]:
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


def _check_heads(ledger: SilencingLedger, made: SilencingProvenance) -> None:
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
