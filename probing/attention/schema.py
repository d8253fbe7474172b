"""The records of attention probes, in the files of results and in the metadata of their ledgers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import SerializerFunctionWrapHandler, ValidationError, model_serializer, model_validator

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import CONFIGS, variant_of
from codesyntax_metric.topk_uas import RULES, SCORING_VERSION
from probing.attention.ledger import RankLedger
from probing.runs.records import Count, Number, Record, exactly, explain
from probing.runs.saved import SavedFile
from probing.runs.settings import Settings


class Run(Record):
    """How a probe ran. `family`: the architecture in the model's configuration, missing in older runs; `attention`: how
    attention was read, `captured` or `eager`; `attention_why`: the reason if it was not captured; `step`: how far a
    checkpoint is in its training (`probing.models.checkpoints`)."""

    family: str | None = None
    attention: str
    attention_why: str
    device: str
    step: Number | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a step the record is that of before there were steps, so that runs of then are continued."""
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if name != "step" or value is not None}


def at_step(model: str, step: int | None) -> str:
    """The name of a model, for readers, with its step in training if it is a checkpoint."""
    return model if step is None else f"{model} at step {step:,}"


class Provenance(Record):
    """How a ledger was made, from its metadata. `ties`: rule -> number of edges decided by a tie."""

    settings: Settings
    scoring: int
    skips: dict[str, Count]
    ties: Annotated[dict[str, Number], exactly(RULES)]
    run: Run
    versions: dict[str, str]

    @classmethod
    def of(cls, ledger: RankLedger) -> Provenance:
        """Raises LedgerError if the ledger does not say how it was made, or has another version of scoring."""
        made = ledger.settings
        version = made.get("scoring", 1) if isinstance(made, dict) and "settings" in made else SCORING_VERSION
        if version != SCORING_VERSION:
            raise LedgerError(
                f"the ledger's ranks are of scoring version {version}, this is version {SCORING_VERSION}, and "
                "the two do not compare: probe again"
            )
        try:
            return cls.model_validate(made)
        except ValidationError as error:
            raise LedgerError(
                f"the settings in the ledger are not those of a probe ({explain(error, 'what made it')}): probe again"
            ) from error

    def to_json(self) -> dict[str, Any]:
        """The record as read back from a ledger's file."""
        return self.model_dump(mode="json")


class Cell(Record):
    """The score of a relation by one rule and k, in percent, and its attention head."""

    score: float
    layer: int
    head: int


class RelationScores(Record):
    """The scores of a relation by each rule: k -> cell."""

    edges: Count
    in_mean: bool
    first: dict[str, Cell]
    any: dict[str, Cell]
    last: dict[str, Cell]


class ResultFile(SavedFile):
    """The JSON of a result. `ledger`: the digest of its ledger; `data_path`: the folder of its data, relative to it."""

    format: Literal[1, 2] = 1
    instrument: Literal["attention"] = "attention"
    signature: str
    scores: dict[str, dict[str, float | None]]
    relations: dict[str, RelationScores]
    functions: Count
    skips: dict[str, Count]
    ties: dict[str, float]
    settings: Settings
    layers: Count
    heads: Count
    run: Run
    versions: dict[str, str]
    ledger: str
    data_path: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_format_1(cls, fields: Any) -> Any:
        """Convert the first format, which had all settings in one object."""
        if not isinstance(fields, dict) or fields.keys() & {"format", "layers", "heads", "run"}:
            return fields
        if not isinstance(fields.get("settings"), dict):
            return fields
        settings = dict(fields["settings"])
        size = {name: settings.pop(name) for name in ("layers", "heads") if name in settings}
        run = {name: settings.pop(name) for name in Run.model_fields if name in settings}
        return {**fields, **size, "settings": settings, "run": run}


class Signature(NamedTuple):
    """What two numbers must share to compare, and what they were measured on."""

    settings: Settings
    functions: int
    edges: int

    @property
    def parts(self) -> dict[str, str]:
        """Name -> value, the model first."""
        made = self.settings
        parts: dict[str, Any] = {
            "model": f"{made.model}@{made.revision[:12]}",
            "data": f"{made.data}/{made.config}/{made.split}",
            "labels": made.labels,
            "direction": made.direction,
            "pool": "sum-mean",
            "max-length": made.max_length,
            "also-fits": ",".join(made.also_fits) or "-",
            "dtype": made.dtype,
            "functions": self.functions,
            "edges": self.edges,
            "scoring": SCORING_VERSION,
        }
        if made.control is not None:
            parts["control"] = f"{made.control}/{made.seed}"
        if made.config in CONFIGS and (without := variant_of(made.config).never_predicted):
            parts["not-predicted"] = without
        if made.limit is not None:
            parts["partial"] = made.limit
        return {name: str(value) for name, value in parts.items()}

    def __str__(self) -> str:
        return "|".join(["uas", *(f"{name}:{value}" for name, value in self.parts.items())])
