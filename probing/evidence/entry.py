"""Entries: what is published about a model, as JSON that submissions send and boards read from untrusted sources.

An entry holds what was run (settings, versions, digests of ledgers) and what came of it, function by function: the hits
of attention heads and of the baselines, or what was restored. Nothing in it is derived. Means, intervals, differences
and p-values are computed when an entry is read (`Entry.scores`), with the functions that reports use.

Whole numbers of functions are text: base64 of zlib of 4 bytes each, little-endian; first the lowest bytes of all.

An entry is checked when it is made: fields, types and ranges, and numbers that no model can have. Whether they are
those of the ledgers, whose digests it names, cannot be checked here; `codesyntax submit` checks it before it sends.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import logging
import os
import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.languages import CONFIGS
from probing.instruments.registry import INSTRUMENTS
from probing.models.cache_dir import VERSIONS
from probing.runs.ledger_file import PREFERENCE
from probing.runs.records import PLAIN, Record, exactly, explain, matching, parse, read, shown
from probing.runs.saved import Circumstances
from probing.runs.settings import ControlledSettings, Limit

logger = logging.getLogger(__name__)

FORMAT = 4
"""Changes whenever the fields of entries, or their meanings, change."""

LARGEST = 8 * 2**20
"""The most bytes of an entry, as many as of 20,000 functions."""

SMALL = 60_000
"""The most bytes of an entry on up to 141 functions, as of the sample, whose scores take less than a second."""

_BYTES_EACH = 425  # of each function in an entry on more
_UNPACKED = 32  # times its size; the sample's unpacks to 14 times as much
_SHORTEST = 100  # characters of packed numbers that take any time

_MOST_NUMBERS = 10**7
"""The most numbers in one list: several times as many as in the largest published config."""

Measure = Hashable
"""The quantity that a number measures: a protocol, rule and k, or the name of an outcome."""


class Interval(NamedTuple):
    """A number with its 95 % interval; no bounds for few functions."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, bounded: Sequence[float] | np.ndarray) -> Interval | None:
        """From number and bounds, which come first, NaN for unknown; None without the number."""
        value, low, high = (None if np.isnan(number) else float(number) for number in bounded[:3])
        return None if value is None else cls(value, low, high)


class Score(NamedTuple):
    """A mean, what it is compared with, and the difference to that with its p-value; None for what there is not.

    In percent; log-probabilities in nats.
    """

    mean: Interval
    reference: Interval | None = None
    difference: Interval | None = None
    p: float | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """The numbers that follow from an entry. `cells`: each measure, the headline first -> its score, None if there is
    none; `shares`: float32 (measures, F), each function's contribution to the mean, by which models are ranked.
    """

    cells: Mapping[Any, Score | None]
    shares: np.ndarray

    @property
    def headline(self) -> float:
        first = next(iter(self.cells.values()))
        return first.mean.value if first else 0.0


# -------------------------------------------------------------------------------------------------------------- fields


def none(reason: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if value is not None:
            raise ValueError(f"none: {reason}")
        return value

    return BeforeValidator(check)


_FEW = 10  # names in a message


def one_of(names: Collection[str]) -> AfterValidator:
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
Plain = Annotated[str, matching(PLAIN + "{1,200}", "plain text")]
Model = Annotated[
    str,
    matching(
        rf"{_PART}(/{_PART})?(?<!\.git)",
        "USER/MODEL or the name of a local model, of letters, digits, and - _ . between them, as the Hub allows it",
    ),
]
Revision = Annotated[
    str, matching(r"[0-9a-f]{40}|[0-9a-f]{64}(\+[0-9a-f]{64})?", "a commit or a SHA-256, in hexadecimal digits")
]
Data = Annotated[str, matching(_NAME + r"@[\w.]{1,40}", "NAME@VERSION")]
Labels = Annotated[str, matching("[0-9a-f]{12}", "12 hexadecimal digits")]
Sha256 = Annotated[str, matching("[0-9a-f]{64}", "64 hexadecimal digits")]
Version = Annotated[str, matching(r"\d[\w.+!-]{0,60}", "a version")]
Family = Annotated[str, matching(r"[\w-]{1,60}", "the type of a model")]
Dtype = Annotated[str, matching(r"(float32|bfloat16)( of [A-Z0-9_]{1,10})?", "float32 or bfloat16")]
Device = Annotated[str, matching("[a-z]{1,20}", "the kind of a device")]


class CompleteRun(Record):
    """The settings that entries of all instruments have: of a complete run of a model on `test`."""

    model: Model
    revision: Revision
    data: Data
    labels: Labels
    config: Annotated[str, one_of(CONFIGS)]
    split: Annotated[str, one_of(["test"])]
    max_length: Number
    limit: Annotated[Limit, none("a partial run is not published")]


class ModelRun(CompleteRun, ControlledSettings):
    """The settings of a complete run of a model itself, and not of a control."""

    dtype: Dtype
    control: Annotated[None, none("a control is not a model")]
    seed: None


class EntryRun(Circumstances):
    """The circumstances of a run; instruments add fields."""

    family: Family = "unknown"
    device: Device


class Verified(Record):
    """The number of functions, `of` so many, that `codesyntax submit` ran again before it sent the entry, as the entry
    claims.
    """

    functions: Number
    of: Number


class Entry(Record):
    """The base of entries of all instruments. A subclass names its `instrument`, adds its fields and what is wrong with
    them (`problems`), and defines `signature`, `shared`, `content` and `scores`; `load` reads those in INSTRUMENTS.

    `functions`: how many were run and are in the numbers or in `skips`, by reason.
    """

    format: Literal[4]
    instrument: str
    settings: Any
    run: Circumstances
    functions: Annotated[int, Field(ge=1, le=10**5)]
    skips: dict[Plain, Number]
    versions: Annotated[dict[str, Version], exactly(VERSIONS)]
    verified: Verified | None = None

    @classmethod
    def made(cls, fields: Mapping[str, Any]) -> Self:
        """An entry with these fields. Raises EntryError, with the reason, if it is not valid."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise EntryError(explain(error, "the entry")) from error

    @classmethod
    def of_result(cls, result: Any, **fields: Any) -> Self:
        """The entry of a result, with its fields and these. Raises EntryError, with the reason, if it is not valid."""
        shared = {
            "format": FORMAT,
            "instrument": result.instrument,
            "settings": result.settings.model_dump(mode="json"),
            "run": result.run.model_dump(exclude_none=True),
            "functions": result.functions,
            "skips": result.skips,
            "versions": result.versions,
        }
        return cls.made(shared | fields)

    @model_validator(mode="after")
    def _checked(self) -> Self:
        for wrong, why in self.problems():
            if wrong:
                raise EntryError(why)
        return self

    def problems(self) -> Iterator[tuple[Any, str]]:
        """Yields what no run of a model can give: whether it stands here, and the reason.

        A problem may rely on those before it not standing here. Raises EntryError for text that holds no numbers.
        """
        if self.verified:
            again, of, (least, most) = self.verified.functions, self.verified.of, self.verifiable
            there = str(most) if least == most else f"{least} to {most}"
            wrong = not (again <= of and least <= of <= most)
            yield wrong, f"verified is {again} of {of} functions, but the entry has {there}"

    @property
    @abstractmethod
    def verifiable(self) -> tuple[int, int]:
        """The least and the most functions that there may have been to run again."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """That of its result."""

    @property
    @abstractmethod
    def shared(self) -> dict[str, str]:
        """The values that all entries of a table share, by name."""

    @abstractmethod
    def content(self) -> Iterable[np.ndarray]:
        """Whole numbers that all entries of a table share, such as the functions and what the baselines hit."""

    @property
    @abstractmethod
    def digests(self) -> dict[str, str]:
        """Split -> the digest of the ledger on it."""

    @abstractmethod
    def numbers(self) -> str:
        """A digest of all that it says of the model, which another model hardly has."""

    def baselines(self) -> str:
        """A digest of what it says of baselines, which follow from the data; empty if it needs none."""
        return ""

    def beside(self, other: Entry) -> Entry:
        """The same with the baselines of another entry of its table."""
        return self

    @abstractmethod
    def scores(self, beside: Scores | None = None) -> Scores:
        """The numbers that follow from it. `beside`: of another entry of its table, which shares the baselines."""

    @property
    def table(self) -> str:
        """The name of its table: equal for entries that compare with each other."""
        digest = digest_of(self.content(), json.dumps(self.shared))
        return f"{self.settings.config}.{self.instrument}.{digest[:12]}"

    @property
    def file_name(self) -> str:
        """A file name of letters, digits and `._-`, unique to the settings."""
        return f"{self.settings.name}.json"

    def to_json(self) -> str:
        """The same entry gives the same text."""
        fields = self.model_dump(mode="json", exclude_unset=True)
        return json.dumps(fields, allow_nan=False, separators=(",", ":")) + "\n"


def digest_of(content: Iterable[np.ndarray], text: str = "") -> str:
    """SHA-256 of a text and whole numbers."""
    digest = hashlib.sha256(text.encode())
    for numbers in content:
        digest.update(repr(numbers.shape).encode() + numbers.astype("<u4").tobytes())
    return digest.hexdigest()


def instead_of_board(instrument: str) -> str:
    """What to do with results of an instrument that no board takes."""
    if instrument == PREFERENCE:
        todo = "compare models on minimal pairs with lm-eval, for which `push dataset` adds tasks"
    else:
        todo = "publish the result with its ledger, two files that `codesyntax verify` checks"
    return f"boards take attention and masking, not {instrument}: {todo}"


def for_boards(make: Callable[[], Entry]) -> Entry | None:
    """The entry that `make` returns; None of what no board takes, such as a control or a partial run."""
    try:
        return make()
    except EntryError as error:
        logger.info("no entry for boards: %s", error)
        return None


def load(source: str | os.PathLike[str] | bytes) -> Entry:
    """Load an entry from a file or from bytes. Raises EntryError, with the reason, if it is not a valid entry."""
    data = source if isinstance(source, bytes) else read(Path(source), LARGEST)
    fields = parse(data, LARGEST)
    version, instrument = (fields.get(name) if isinstance(fields, dict) else None for name in ("format", "instrument"))
    if type(version) is int and version != FORMAT:  # first: other formats have other fields
        todo = "make the entry again from its results" if version < FORMAT else "upgrade codesyntax"
        raise EntryError(f"format is {version}, which another version of codesyntax wrote, expected {FORMAT}: {todo}")
    if not isinstance(instrument, str):
        return Entry.made(fields)  # says what is wrong
    kinds = {name: known for name, known in INSTRUMENTS.items() if known.enters}
    if instrument in INSTRUMENTS.keys() - kinds.keys():
        raise EntryError(instead_of_board(instrument))
    if instrument not in kinds:
        raise EntryError(f"instrument is {shown(instrument)}, expected {' or '.join(map(repr, sorted(kinds)))}")
    _check_size(data, fields)
    entry: Entry = kinds[instrument].entry.made(fields)
    return entry


def most_bytes(functions: int) -> int:
    """The most bytes of an entry on so many functions."""
    return max(SMALL, _BYTES_EACH * functions)


def _check_size(data: bytes, fields: dict[str, Any]) -> None:
    """Raise EntryError if an entry has more bytes than its functions take, or unpacks to more numbers than those."""
    functions = fields.get("functions")
    most = most_bytes(functions) if type(functions) is int else SMALL
    if len(data) > most:
        raise EntryError(f"the entry has {len(data):,} bytes, expected at most {most:,} for {functions} functions")
    numbers, left = [fields], _UNPACKED * len(data)
    while numbers:
        value = numbers.pop()
        if isinstance(value, dict):
            numbers += value.values()
        elif isinstance(value, str) and len(value) > _SHORTEST:
            with contextlib.suppress(ValueError, zlib.error):  # no packed numbers
                left -= len(zlib.decompressobj().decompress(base64.b64decode(value), left + 1))
            if left < 0:
                raise EntryError(f"its numbers unpack to more than {_UNPACKED} times its {len(data):,} bytes")


def packed(numbers: np.ndarray) -> str:
    """Numbers from 0 to 2 ** 32 - 1, of any shape, in C order."""
    lowest_first = np.ascontiguousarray(numbers, "<u4").reshape(-1, 1).view(np.uint8).T
    compressor = zlib.compressobj(9, memLevel=9, strategy=zlib.Z_FILTERED)  # of small numbers, 4 % shorter
    return base64.b64encode(compressor.compress(lowest_first.tobytes()) + compressor.flush()).decode()


def unpacked(value: str, at: str, count: int) -> np.ndarray:
    """Exactly `count` numbers, uint32; raises EntryError for any other text."""
    try:
        reading = zlib.decompressobj()
        if count > _MOST_NUMBERS:
            raise ValueError(f"more than {_MOST_NUMBERS:,} numbers")
        data = reading.decompress(base64.b64decode(value, validate=True), 4 * count + 1)
        if len(data) != 4 * count or not reading.eof:
            raise ValueError(f"not {count:,} numbers")
    except (ValueError, zlib.error) as error:
        raise EntryError(f"{at} is {shown(value)}, expected packed numbers: {error}") from error
    return np.frombuffer(data, np.uint8).reshape(4, -1).T.copy().view("<u4").reshape(-1)


def same_numbers(one: Any, other: Any) -> bool:
    """True if two JSON values are equal; packed numbers may be packed in another way."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_numbers(one[name], other[name]) for name in one)
    if isinstance(one, str) and isinstance(other, str) and one != other:
        try:
            return zlib.decompress(base64.b64decode(one)) == zlib.decompress(base64.b64decode(other))
        except (ValueError, zlib.error):
            return False
    return bool(one == other)
