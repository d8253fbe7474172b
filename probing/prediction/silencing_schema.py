"""The records of silencing runs, in the files of results and in the metadata of their ledgers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ValidationError

from codesyntax_dataset.errors import LedgerError
from probing.prediction.silencing_ledger import SilencingLedger
from probing.runs.ledger_file import SILENCING
from probing.runs.records import Count, Number, Record, exactly, explain, listed
from probing.runs.saved import SavedFile
from probing.runs.settings import file_name

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
    revision: str  # commit on the Hub, or digest of a local model
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
    limit: int | None  # only the first functions of the split: a partial run

    @property
    def name(self) -> str:
        """A file name, different for different settings."""
        return file_name(self, SILENCING)


class SilencingRun(Record):
    """How the run went. `family`: the architecture in the model's configuration; `predicts`: `masked` if dependents
    are masked and restored, `next` if a decoder predicts their first tokens; `layers`, and `heads` in each."""

    family: str
    predicts: Literal["masked", "next"]
    layers: Count
    heads: Count
    device: str


class Provenance(Record):
    """How a silencing ledger was made, from its metadata.

    `functions`: how many have a dependent that is asked for; `passes`: forward passes of single functions; `left_out`:
    reason -> edges; `heads`: relation -> its best head.
    """

    settings: SilencingSettings
    version: int
    functions: Count
    passes: Count
    skips: dict[str, Count]
    left_out: Annotated[dict[str, Number], exactly(LEFT_OUT)]
    heads: dict[str, Chosen]
    run: SilencingRun
    versions: dict[str, str]

    @classmethod
    def of(cls, ledger: SilencingLedger) -> Provenance:
        """Raises LedgerError if the ledger does not say how it was made, or has another version of silencing."""
        made = ledger.settings
        version = made.get("version") if isinstance(made, dict) else None
        if version != VERSION:
            raise LedgerError(
                f"the ledger is of silencing version {version}, this is version {VERSION}, and the two do not compare: "
                "run `codesyntax ablate` again"
            )
        try:
            return cls.model_validate(made)
        except ValidationError as error:
            raise LedgerError(
                f"the settings in the ledger are not those of a silencing run ({explain(error, 'what made it')}): run "
                "`codesyntax ablate` again"
            ) from error

    def to_json(self) -> dict[str, Any]:
        """The record as read back from a ledger's file."""
        return self.model_dump(mode="json")


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


class ResultFile(SavedFile):
    """The JSON of a silencing result, with the digest of its `ledger`; `data_path`: the folder of its data, relative to
    it."""

    format: Literal[2]
    instrument: Literal["silencing"]
    signature: str
    relations: dict[str, RelationCosts]
    heads: dict[str, Chosen]
    functions: Count
    passes: Count
    skips: dict[str, Count]
    left_out: dict[str, Number]
    settings: SilencingSettings
    run: SilencingRun
    versions: dict[str, str]
    ledger: str
    data_path: str | None = None


class Signature(NamedTuple):
    """What two numbers must share to compare, and what they were measured on."""

    made: Provenance
    edges: int

    def __str__(self) -> str:
        settings = self.made.settings
        parts: dict[str, Any] = {
            "model": f"{settings.model}@{settings.revision[:12]}",
            "data": f"{settings.data}/{settings.config}/{settings.split}",
            "labels": settings.labels,
            "chosen-on": settings.chosen_on,
            "direction": settings.direction,
            "predicts": self.made.run.predicts,
            "draws": settings.draws,
            "seed": settings.seed,
            "reference": settings.reference,
            "max-length": settings.max_length,
            "functions": self.made.functions,
            "edges": self.edges,
            "version": VERSION,
        }
        if settings.limit is not None:
            parts["partial"] = settings.limit
        return "|".join(["silence", *(f"{name}:{value}" for name, value in parts.items())])
