"""The records of masking runs, in the files of results and in the metadata of their ledgers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ValidationError

from codesyntax_dataset.errors import LedgerError
from probing.prediction.ledger import MaskingLedger
from probing.runs.ledger_file import MASKING
from probing.runs.records import Count, Number, Record, Texts, exactly, explain
from probing.runs.saved import SavedFile
from probing.runs.settings import file_name

VERSION = 1
"""Of masking, restoring and comparing: raised whenever the same settings give other numbers."""


DROPPED = NO_NODE, NOTHING_MASKED, TOO_MANY = (
    "no node of the type",
    "no sub-token of its nodes masked",
    "more sub-tokens counted than it has",
)
"""Why nothing is masked for a function and a node type: the second where a rate below 1 draws no node, or nodes hold no
sub-token; the third in the protocol `published` alone, which counts some sub-tokens twice."""


class MaskSettings(Record):
    """Everything that determines a masking run; the defaults of `mask` are those of Velasco et al. (2024)."""

    model: str
    revision: str  # commit on the Hub, or digest of a local model
    data: str  # name@version
    labels: str  # digest of the functions that were read
    config: str
    split: str
    protocol: str  # one of probing.prediction.masking.PROTOCOLS
    node_types: Texts
    rate: float  # share of the nodes that are masked
    control: str  # one of probing.prediction.masking.CONTROLS
    draws: int  # controls of each masked copy
    seed: int
    max_length: int  # sub-tokens, special tokens included, that a function may have
    limit: int | None  # only the first functions of the split: a partial run

    @property
    def name(self) -> str:
        """A file name, different for different settings."""
        return file_name(self, MASKING)


class MaskRun(Record):
    """How the masking ran. `family`: the architecture in the model's configuration; `output_layer`: `masked positions`
    or `all positions`, where it was computed; `parser`: the versions on which trees depend."""

    family: str
    device: str
    output_layer: str
    parser: str


class Provenance(Record):
    """How a masking ledger was made, from its metadata.

    `functions`: how many were read and not skipped. `dropped`: reason -> number of pairs of a function and a node type
    without a masked copy; with the pairs in the ledger, they add up to functions times node types.
    """

    settings: MaskSettings
    version: int
    functions: Count
    skips: dict[str, Count]
    dropped: Annotated[dict[str, Number], exactly(DROPPED)]
    run: MaskRun
    versions: dict[str, str]

    @classmethod
    def of(cls, ledger: MaskingLedger) -> Provenance:
        """Raises LedgerError if the ledger does not say how it was made, or has another version of masking."""
        made = ledger.settings
        version = made.get("version") if isinstance(made, dict) else None
        if version != VERSION:
            raise LedgerError(
                f"the ledger is of masking version {version}, this is version {VERSION}, and the two do not compare: "
                "mask again"
            )
        try:
            return cls.model_validate(made)
        except ValidationError as error:
            raise LedgerError(
                f"the settings in the ledger are not those of a masking run ({explain(error, 'what made it')}): mask "
                "again"
            ) from error

    def to_json(self) -> dict[str, Any]:
        """The record as read back from a ledger's file."""
        return self.model_dump(mode="json")


class Arm(Record):
    """Means over the functions of one arm.

    Similarities from 0 to 1, None if every comparison failed; `restored`, `top5` and `top10`: the share of masked
    sub-tokens of which the true one is the most likely, or among the 5 or 10 most likely, in percent; `log_probability`
    of the true ones, in nats.
    """

    jaccard: float | None
    sorensen_dice: float | None
    levenshtein: float | None
    restored: float
    top5: float
    top10: float
    log_probability: float


class TypeScores(Record):
    """One node type: functions and sub-tokens that were masked for it, T1 (its nodes) and T0 (as many at random).

    `failed`: copies whose trees could not be compared.
    """

    functions: Count
    masked: Count
    failed: Number
    t1: Arm
    t0: Arm


class ResultFile(SavedFile):
    """The JSON of a masking result, with the digest of its `ledger`; `data_path`: the folder of its data, relative to
    it."""

    format: Literal[2]
    instrument: Literal["masking"]
    signature: str
    node_types: dict[str, TypeScores]
    functions: Count
    copies: Count
    skips: dict[str, Count]
    dropped: dict[str, Number]
    settings: MaskSettings
    run: MaskRun
    versions: dict[str, str]
    ledger: str
    data_path: str | None = None


class Signature(NamedTuple):
    """What two numbers must share to compare, and what they were measured on."""

    made: Provenance
    copies: int

    def __str__(self) -> str:
        settings = self.made.settings
        parts: dict[str, Any] = {
            "model": f"{settings.model}@{settings.revision[:12]}",
            "data": f"{settings.data}/{settings.config}/{settings.split}",
            "labels": settings.labels,
            "protocol": settings.protocol,
            "node-types": ",".join(settings.node_types),
            "rate": settings.rate,
            "control": settings.control,
            "draws": settings.draws,
            "seed": settings.seed,
            "max-length": settings.max_length,
            "functions": self.made.functions,
            "copies": self.copies,
            "parser": self.made.run.parser,
            "version": VERSION,
        }
        if settings.limit is not None:
            parts["partial"] = settings.limit
        return "|".join(["mask", *(f"{name}:{value}" for name, value in parts.items())])
