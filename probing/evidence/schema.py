"""The record of an entry, the published form of evidence: its fields, their types and ranges."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, FailFast, Field

from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import DIRECTIONS
from probing.attention.result import signature_of
from probing.models.cache_dir import VERSIONS
from probing.prediction import result as prediction
from probing.prediction.masking import CONTROLS, PROTOCOLS
from probing.runs import records
from probing.runs.records import Record, exactly, listed, matching
from probing.runs.settings import Settings, Signature
from probing.runs.untrusted_json import PLAIN, shown

FORMAT = 2
"""Changes whenever the fields of entries on attention, or their meanings, change."""

MASKING_FORMAT = 1
"""The same of entries on masked syntax."""

UNCOMPARED = FAILED, UNSHARED = (
    "no comparison of trees succeeded in one of the arms",
    "not in the results that it was compared with",
)
"""Why a function and a node type that were masked are not in an entry."""


def _none(reason: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if value is not None:
            raise ValueError(f"none: {reason}")
        return value

    return BeforeValidator(check)


_FEW = 10  # names in a message


def _one_of(names: Collection[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:  # looked up on each call: a language may be registered later
            few = [*map(shown, names)][:_FEW]
            further = [f"another of {len(names)}"] if len(names) > _FEW else []
            raise ValueError(" or ".join(few + further))
        return name

    return AfterValidator(check)


_NAME = r"\w(?!.*\.\.)[\w.-]{0,95}(/\w[\w.-]{0,95})?"
_PART = r"(?![-.])(?!.*(--|\.\.))[\w.-]{1,96}(?<![-.])"

Number = Annotated[int, Field(ge=1, le=10**9)]
Size = Annotated[int, Field(ge=1, le=1000)]
Plain = Annotated[str, matching(PLAIN + "{1,200}", "plain text")]
Model = Annotated[
    str,
    matching(
        rf"{_PART}(/{_PART})?(?<!\.git)",
        "USER/MODEL or the name of a local model, of letters, digits, and - _ . between them, as the Hub allows it",
    ),
]
Revision = Annotated[str, matching("[0-9a-f]{40}|[0-9a-f]{64}", "a commit or a SHA-256, in hexadecimal digits")]
Data = Annotated[str, matching(_NAME + r"@[\w.]{1,40}", "NAME@VERSION")]
Labels = Annotated[str, matching("[0-9a-f]{12}", "12 hexadecimal digits")]
Sha256 = Annotated[str, matching("[0-9a-f]{64}", "64 hexadecimal digits")]
Version = Annotated[str, matching(r"\d[\w.+!-]{0,60}", "a version")]
Family = Annotated[str, matching(r"[\w-]{1,60}", "the type of a model")]
Device = Annotated[str, matching("[a-z]{1,20}", "the kind of a device")]
NodeType = Annotated[str, matching(PLAIN + "{1,60}", "the name of a node type")]


class EntrySettings(Settings):
    """The settings of a complete run of a model on `test`, the size of the model, and how the probe ran."""

    model: Model
    revision: Revision
    data: Data
    labels: Labels
    config: Annotated[str, _one_of(CONFIGS)]
    split: Literal["test"]
    direction: Annotated[str, _one_of(DIRECTIONS)]
    dtype: Literal["float32", "bfloat16"]
    max_length: Number
    also_fits: Annotated[tuple[Model, ...], FailFast(), listed]
    limit: Annotated[None, _none("a partial run is not published")]
    control: Annotated[None, _none("a control is no model")]
    seed: None
    layers: Size
    heads: Size
    family: Family = "unknown"
    attention: Literal["captured", "eager"]
    attention_why: Annotated[str, matching(PLAIN + "{0,1000}", "plain text")]
    device: Device
    step: records.Number | None = None

    @property
    def probed(self) -> Settings:
        """The settings alone."""
        return Settings.model_validate({name: getattr(self, name) for name in Settings.model_fields})


class ChosenOn(Record):
    """The probe of the split `validation`, on which the held-out protocol chooses its heads."""

    signature: str
    labels: Labels
    functions: Number
    edges: Number


class Digests(Record):
    """SHA-256 of the ledgers' files."""

    test: Sha256
    validation: Sha256


class Verified(Record):
    """How many functions of both splits, `of` so many, were probed again before the entry was sent."""

    functions: Number
    of: Number


class Entry(Record):
    """What is published about a model on one config; `Evidence.entry` says what the numbers are.

    `entry_checks` and `entry_functions` check the numbers in `protocols`, `baselines`, `differences`, `same_relations`,
    `beyond_offset` and `by_function`, field by field and against each other.
    """

    format: Literal[2]
    signature: str
    settings: EntrySettings
    functions: Number
    edges: Number
    skips: dict[Plain, Number]
    chosen_on: ChosenOn
    protocols: dict[str, Any]
    baselines: dict[str, Any]
    differences: dict[str, Any]
    same_relations: dict[str, Any]
    beyond_offset: dict[str, Any] | None = None  # entries of before have none
    by_function: dict[str, Any]
    ledgers: Digests
    versions: Annotated[dict[str, Version], exactly(VERSIONS)]
    verified: Verified | None = None

    @property
    def signatures(self) -> tuple[Signature, Signature]:
        """Those of the probes of `test` and of `validation`, as they follow from the settings."""
        test = self.settings.probed
        validation = test.model_copy(update={"split": "validation", "labels": self.chosen_on.labels})
        return (
            signature_of(test, self.functions, self.edges),
            signature_of(validation, self.chosen_on.functions, self.chosen_on.edges),
        )


class MaskEntrySettings(prediction.MaskSettings):
    """The settings of a complete masking run on `test`."""

    model: Model
    revision: Revision
    data: Data
    labels: Labels
    config: Annotated[str, _one_of(CONFIGS)]
    split: Literal["test"]
    protocol: Annotated[str, _one_of(PROTOCOLS)]
    node_types: Annotated[tuple[NodeType, ...], FailFast(), listed, Field(min_length=1, max_length=1000)]
    rate: Annotated[float, Field(gt=0, le=1)]
    control: Annotated[str, _one_of(CONTROLS)]
    draws: Annotated[int, Field(ge=1, le=10**4)]
    seed: Annotated[int, Field(ge=0, le=2**63)]
    max_length: Number
    limit: Annotated[None, _none("a partial run is not published")]


class MaskEntryRun(prediction.MaskRun):
    """How the masking ran."""

    family: Family
    device: Device
    output_layer: Literal["masked positions", "all positions"]
    parser: Plain


class MaskEntry(Record):
    """What is published about a masked language model on one config; `entry_masked` says what the numbers are, and
    checks `scores`, `node_types` and `by_function`.

    `functions`, `copies`, `skips` and `dropped` are of all that was run; `uncompared` counts what was, but is not in
    the numbers. `ledger`: the digest of its content.
    """

    format: Literal[1]
    instrument: Literal["masking"]
    signature: str
    settings: MaskEntrySettings
    run: MaskEntryRun
    functions: Annotated[int, Field(ge=1, le=10**5)]
    copies: Number
    skips: dict[Plain, Number]
    dropped: Annotated[dict[str, records.Number], exactly(prediction.DROPPED)]
    uncompared: Annotated[dict[str, records.Number], exactly(UNCOMPARED)]
    scores: dict[str, Any]
    node_types: dict[str, Any]
    by_function: dict[str, Any]
    ledger: Sha256
    versions: Annotated[dict[str, Version], exactly(VERSIONS)]
    verified: Verified | None = None

    @property
    def made(self) -> prediction.MaskProvenance:
        """How its ledger was made, as it follows from the entry."""
        return prediction.MaskProvenance(
            settings=self.settings,
            version=prediction.VERSION,
            functions=self.functions,
            skips=self.skips,
            dropped=self.dropped,
            run=self.run,
            versions=self.versions,
        )
