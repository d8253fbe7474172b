"""Submissions: what is published of a model, a file that `submit` sends and boards read from people
whom nobody knows.

A submission, `NAME.hits.parquet`, is a file of hits (`probing.stats.hits_file`): what the model and
its rivals get right, by function and by relation or node type, as tables of `Hits`. Its metadata
are the record below: what was run (settings, versions, digests of ledgers). Nothing in it is
derived: means, intervals, differences and p-values are computed from the tables when somebody asks,
with the functions that reports use.

A submission is checked when it is read: fields, types and ranges, and numbers that no model can
have (`problems`). Whether they are those of the ledgers, whose digests it names, `codesyntax
submit` checks before it sends them, and `codesyntax board --verify` when it reads them. One on
20,000 functions has megabytes, and a board reads many: only the file is kept, and `tables` reads it
again.
"""

from __future__ import annotations

import hashlib
import json
import logging
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.languages import CONFIGS
from probing.instruments.registry import INSTRUMENTS
from probing.models.cache_dir import VERSIONS
from probing.runs.ledger_file import PREFERENCE
from probing.runs.records import PLAIN, Record, exactly, explain, matching, read, shown
from probing.runs.saved import Circumstances
from probing.runs.settings import ControlledSettings, Limit
from probing.stats.hits import Hits
from probing.stats.hits_file import SUFFIX, HitsFile, Layout, save
from probing.stats.intervals import Estimate

logger = logging.getLogger(__name__)

ENTRY_FORMAT = 7
"""Changes whenever the fields of submissions, or their meanings, change."""

LARGEST_ENTRY = 8 * 2**20
"""The most bytes of a submission, as many as of 20,000 functions."""

SMALL = 60_000
"""The most bytes of one on up to 141 functions, as of the sample, which takes less than a
second."""

_BYTES_EACH = 425  # of each function in one on more

Tables = Mapping[str, Hits]

# ------------------------------------------------------------------------------------------- fields


def none(reason: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if value is not None:
            raise ValueError(f"none: {reason}")
        return value

    return BeforeValidator(check)


_NAMES_SHOWN = 10  # names in a message


def one_of(names: Collection[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:  # looked up on each call: a language may be registered later
            few = [*map(shown, names)][:_NAMES_SHOWN]
            further = [f"another of {len(names)}"] if len(names) > _NAMES_SHOWN else []
            raise ValueError(" or ".join(few + further))
        return name

    return AfterValidator(check)


_DATA_NAME = r"\w(?!.*\.\.)[\w.-]{0,95}(/\w[\w.-]{0,95})?"
_PART = r"(?![-.])(?!.*(--|\.\.))[\w.-]{1,96}(?<![-.])"

Whole = Annotated[int, Field(ge=1, le=10**9)]
Plain = Annotated[str, matching(PLAIN + "{1,200}", "plain text")]
Model = Annotated[
    str,
    matching(
        rf"{_PART}(/{_PART})?(?<!\.git)",
        "USER/MODEL or the name of a local model, of letters, digits, and - _ . between them, as the Hub allows it",
    ),
]
Revision = Annotated[
    str,
    matching(
        r"[0-9a-f]{40}|[0-9a-f]{64}(\+[0-9a-f]{64})?",
        "a commit or a SHA-256, in hexadecimal digits",
    ),
]
Data = Annotated[str, matching(_DATA_NAME + r"@[\w.]{1,40}", "NAME@VERSION")]
Labels = Annotated[str, matching("[0-9a-f]{12}", "12 hexadecimal digits")]
Sha256 = Annotated[str, matching("[0-9a-f]{64}", "64 hexadecimal digits")]
Version = Annotated[str, matching(r"\d[\w.+!-]{0,60}", "a version")]
Family = Annotated[str, matching(r"[\w-]{1,60}", "the type of a model")]
Dtype = Annotated[
    str,
    matching(r"(float32|bfloat16|float16)( of [A-Z0-9_]{1,10})?", "float32, bfloat16 or float16"),
]
Device = Annotated[str, matching("[a-z]{1,20}", "the kind of a device")]


class CompleteRun(Record):
    """The settings that submissions of all instruments have: of a complete run of a model on
    `test`."""

    model: Model
    revision: Revision
    data: Data
    labels: Labels
    config: Annotated[str, one_of(CONFIGS)]
    split: Annotated[str, one_of(["test"])]
    max_length: Whole
    limit: Annotated[Limit, none("a partial run is not published")]


class ModelRun(CompleteRun, ControlledSettings):
    """The settings of a complete run of a model itself, and not of a control."""

    dtype: Dtype
    control: Annotated[None, none("a control is not a model")]
    seed: None


class SubmittedRun(Circumstances):
    """The circumstances of a run; instruments add fields."""

    family: Family = "unknown"
    device: Device


class Facts(NamedTuple):
    """What follows from the tables of a submission, and is asked for often.

    `signature`: that of its result; `shared`: the values that all submissions of a table of a board
    share, by name; `scored`: the functions in the numbers.
    """

    signature: str
    shared: dict[str, str]
    scored: int


class Submission(Record):
    """The base of submissions of all instruments: a record beside tables of hits.

    A subclass names its `instrument`, its SYSTEM and what that is compared with, RIVAL, and the
    LAYOUT of its file; adds its fields and what is wrong with them (`problems`); and defines
    `facts`, `means` and `cell`. `load` reads those in INSTRUMENTS.

    `functions`: how many were run and are in the numbers or in `skips`, by reason.
    """

    SYSTEM: ClassVar[str]
    RIVAL: ClassVar[str]
    LAYOUT: ClassVar[Layout]

    format: Literal[7]
    instrument: str
    settings: Any
    run: Circumstances
    functions: Annotated[int, Field(ge=1, le=10**5)]
    skips: dict[Plain, Whole]
    versions: Annotated[dict[str, Version], exactly(VERSIONS)]

    _file: HitsFile = PrivateAttr()
    _facts: Facts = PrivateAttr()
    _numbers: str = PrivateAttr()
    _table: str = PrivateAttr()

    @classmethod
    def of_result(cls, result: Any, tables: Tables, **fields: Any) -> Self:
        """The submission of a result, with these tables and fields.

        Raises EntryError, with the reason, if it is not valid.
        """
        shared = {
            "format": ENTRY_FORMAT,
            "instrument": result.instrument,
            "settings": result.settings.model_dump(mode="json"),
            "run": result.run.model_dump(mode="json", exclude_none=True),
            "functions": result.functions,
            "skips": result.skips,
            "versions": result.versions,
        }
        return cls.read(HitsFile.open(save(tables, cls.LAYOUT, shared | fields)))

    @classmethod
    def check_settings(cls, settings: Record) -> None:
        """Raise EntryError for settings that no board takes, such as those of a control."""
        expected: Any = cls.model_fields["settings"].annotation
        try:
            expected.model_validate(settings.model_dump(mode="json"))
        except ValidationError as error:
            raise EntryError(explain(error, "the settings")) from error

    @classmethod
    def read(cls, file: HitsFile) -> Self:
        """The submission in a file. Raises EntryError, with the reason, if it is not valid."""
        try:
            return cls.model_validate(file.about, context=file)
        except ValidationError as error:
            raise EntryError(explain(error, "the entry")) from error

    @model_validator(mode="after")
    def _checked(self, info: ValidationInfo) -> Self:
        assert isinstance(info.context, HitsFile)
        self._file = info.context
        tables = self.tables
        for wrong, why in self.problems(tables):
            if wrong:
                raise EntryError(why)
        self._facts = self.facts(tables)
        self._numbers = self.digest_of_numbers(tables)
        shared = json.dumps(self._facts.shared)
        self._table = digest_of((hits.named({}) for hits in tables.values()), shared)
        return self

    @abstractmethod
    def problems(self, tables: Tables) -> Iterator[tuple[Any, str]]:
        """Yields what no run of a model can give: whether it stands here, and the reason.

        A problem may rely on those before it not standing here.
        """

    @abstractmethod
    def facts(self, tables: Tables) -> Facts:
        """What follows from the tables."""

    @abstractmethod
    def means(self, tables: Tables) -> Tables:
        """The name of each published mean -> what it is the mean of, the headline's first."""

    @staticmethod
    @abstractmethod
    def cell(mean: str, measure: Any) -> Any:
        """The name of a number on boards."""

    @property
    @abstractmethod
    def digests(self) -> dict[str, str]:
        """Split -> the digest of the ledger on it."""

    @property
    def tables(self) -> Tables:
        """The hits, read again."""
        return {
            name: self.completed(name, hits)
            for name, hits in self._file.tables(self.LAYOUT).items()
        }

    def completed(self, table: str, hits: Hits) -> Hits:
        """A table with the systems that follow from others."""
        return hits

    def digest_of_numbers(self, tables: Tables, text: str = "") -> str:
        """A digest of all that it says of the model, in tables and a text."""
        of_model = {self.SYSTEM: self.SYSTEM}
        return digest_of((hits.named(of_model) for hits in tables.values()), text)

    @property
    def signature(self) -> str:
        """That of its result."""
        return self._facts.signature

    @property
    def shared(self) -> dict[str, str]:
        """The values that all submissions of a table share, by name."""
        return self._facts.shared

    @property
    def scored(self) -> int:
        """The number of functions in the numbers: those that were read, and those that are
        missed."""
        return self._facts.scored

    @property
    def numbers(self) -> str:
        """A digest of all that it says of the model, which another model hardly has."""
        return self._numbers

    @property
    def table(self) -> str:
        """The name of its table: equal for submissions that compare with each other."""
        return f"{self.settings.config}.{self.instrument}.{self._table[:12]}"

    def scores(self, system: str, against: str | None = None) -> dict[Any, Estimate]:
        """The means of a system, or the differences to those of another."""
        return self.estimates(self.means(self.tables), system, against)

    def estimates(
        self, means: Tables, system: str, against: str | None = None
    ) -> dict[Any, Estimate]:
        """The same of some means; without those that have no number."""
        scores = {}
        for name, hits in means.items():
            if hits.counted:
                estimate = hits.mean(system, against)
                for row, measure in enumerate(hits.measures):
                    scores[self.cell(name, measure)] = estimate.at(row)
        return scores

    def difference(self, other: Submission) -> str | None:
        """The table or field in which they differ first."""
        mine = self._parts()
        theirs = other._parts()
        return next((name for name in mine | theirs if mine.get(name) != theirs.get(name)), None)

    def _parts(self) -> dict[str, Any]:
        """The digest of each table, and the value of each field."""
        digests = {name: digest_of([hits]) for name, hits in self.tables.items()}
        return digests | self.model_dump(mode="json")

    @property
    def file_name(self) -> str:
        """A file name of letters, digits and `._-`, unique to the settings."""
        return f"{self.settings.name}{SUFFIX}"

    def to_bytes(self) -> bytes:
        """The file; the same submission gives the same bytes."""
        return self._file.data


def digest_of(tables: Iterable[Hits], text: str = "") -> str:
    """SHA-256 of a text and hits."""
    digest = hashlib.sha256(text.encode())
    for hits in tables:
        for part in hits.content():
            digest.update(part)
    return digest.hexdigest()


def instead_of_board(instrument: str) -> str:
    """What to do with results of an instrument that no board takes."""
    if instrument == PREFERENCE:
        todo = "compare models on minimal pairs with lm-eval, for which `push dataset` adds tasks"
    else:
        todo = "publish the result with its ledger, two files that `codesyntax verify` checks"
    return f"boards take attention and masking, not {instrument}: {todo}"


def load(source: StrPath | bytes) -> Submission:
    """Load a submission from a file or from bytes.

    Raises:
        EntryError: with the reason, if it is not a valid one.
    """
    data = source if isinstance(source, bytes) else read(Path(source), LARGEST_ENTRY)
    if len(data) > LARGEST_ENTRY:
        raise EntryError(f"the file is larger than {LARGEST_ENTRY:,} bytes")
    file = HitsFile.open(data)
    version, instrument, functions = map(file.about.get, ("format", "instrument", "functions"))
    if type(version) is int and version != ENTRY_FORMAT:  # first: other formats have other fields
        todo = (
            "make the entry again from its results"
            if version < ENTRY_FORMAT
            else "upgrade codesyntax"
        )
        raise EntryError(
            f"format is {version}, which another version of codesyntax wrote, expected {ENTRY_FORMAT}: {todo}"
        )
    kinds = {name: known for name, known in INSTRUMENTS.items() if known.submits}
    if not isinstance(instrument, str) or instrument not in INSTRUMENTS:
        expected = " or ".join(map(repr, sorted(kinds)))
        raise EntryError(f"instrument is {shown(instrument)}, expected {expected}")
    if instrument not in kinds:
        raise EntryError(instead_of_board(instrument))
    most = max(SMALL, _BYTES_EACH * functions) if type(functions) is int else SMALL
    if len(data) > most:
        raise EntryError(
            f"the entry has {len(data):,} bytes, expected at most {most:,} for {functions} functions"
        )
    return kinds[instrument].submission.read(file)
