"""Results: the records of JSON files, each computed from the ledger that is saved beside it."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
from pydantic import Field, PrivateAttr, ValidationError

from codesyntax_dataset import safe_files
from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import os_errors_as_ledger_errors, write
from codesyntax_dataset.errors import CodeSyntaxError, LedgerError, SubmissionError
from probing.runs.clusters import FUNCTION, Clusters, reading
from probing.runs.ledger_file import without
from probing.runs.records import Count, JsonObject, Record, explain, parse
from probing.runs.settings import RunSettings, Signature, extent

logger = logging.getLogger(__name__)

RESULT_FORMAT = 2
"""The format of a result's JSON: changes whenever its fields, or their meanings, change."""

_LEDGER = ".ledger.parquet"

_PATH_FIELDS = {"data_path", "model_path"}

LARGEST_RESULT = 16 * 2**20
"""The most bytes of a result's JSON, many times the usual size."""


class Ledger(Protocol):
    """The measurements, row by row; every number of a result follows from it. `settings`: how it
    was made, as JSON."""

    settings: JsonObject
    over: Clusters | None

    @property
    def INSTRUMENT(self) -> str: ...

    @property
    def COMMAND(self) -> str: ...

    @property
    def COUNTS(self) -> tuple[str, ...]: ...

    @property
    def function(self) -> np.ndarray: ...

    @classmethod
    def open(cls, path: StrPath) -> Self:
        """Raises LedgerError for a file that is not such a ledger, or is damaged."""

    def save(self, path: StrPath) -> None: ...

    def digest(self) -> str: ...


L = TypeVar("L", bound=Ledger)

Measured = tuple[dict[str, int], dict[str, Any]]
"""The counts that are parts of a signature, and the fields of a result that its provenance does not
have."""


class Circumstances(Record):
    """How a run went; instruments add fields."""

    family: str | None = None
    """The architecture in the model's configuration."""
    device: str


class Provenance(Record):
    """The origin of a ledger, from its metadata; instruments add fields.

    VERSION: of the instrument, in the field VERSIONED, raised whenever the same settings give other
    numbers; SIGNATURE_FIELDS: the kind of its signature, and the order of the parts that follow
    those of all runs; settings that it does not name follow.
    """

    VERSION: ClassVar[int]
    VERSIONED: ClassVar[str] = "version"
    SIGNATURE_FIELDS: ClassVar[tuple[str, Sequence[str]]]

    settings: Any
    """Everything that determines the ledger."""
    skips: dict[str, Count]
    """Reason -> number of skipped functions."""
    run: Circumstances
    """How the run went."""
    versions: dict[str, str]
    """The packages on which numbers may depend."""

    @classmethod
    def of(cls, ledger: Ledger) -> Self:
        """Raises LedgerError if the ledger does not say how it was made, or is of another
        version."""
        recorded = ledger.settings
        again = f"run `codesyntax {ledger.COMMAND}` again"
        whole = isinstance(recorded, dict) and "settings" in recorded
        if whole and (version := recorded.get(cls.VERSIONED, 1)) != cls.VERSION:
            raise LedgerError(
                f"the ledger is of {ledger.INSTRUMENT}, {cls.VERSIONED} {version}; this is {cls.VERSIONED} "
                f"{cls.VERSION}, and the two do not compare: {again}"
            )
        try:
            return cls.model_validate(recorded)
        except ValidationError as error:
            raise LedgerError(
                f"the settings in the ledger are not those of `codesyntax {ledger.COMMAND}` "
                f"({explain(error, 'what made it')}): {again}"
            ) from error

    @classmethod
    def signature_of(cls, settings: RunSettings, values: Mapping[str, Any]) -> Signature:
        """The signature of a run with these settings. `values`: those of the parts that are no
        settings."""
        kind, parts = cls.SIGNATURE_FIELDS
        of_settings = settings.signature_fields()
        known = {**of_settings, cls.VERSIONED: cls.VERSION, **values}
        names = dict.fromkeys([*parts, *of_settings])
        return Signature.of(kind, settings, **{name: known[name] for name in names})

    def signature(self, **counts: int) -> Signature:
        """The signature of the ledger, of which some counts are parts."""
        return self.signature_of(self.settings, {**dict(self.run), **dict(self), **counts})


class Result(Record, Generic[L]):
    """The measurements of an instrument on one split: the record of its JSON, computed from the
    `ledger` beside it.

    UNIT: what is measured. `data_folder`, `model_place`: the locations of the data and the model,
    if these were local; commands look for them there again. They are not part of the result's
    identity.
    """

    UNIT: ClassVar[str] = "function"
    LEDGER: ClassVar[type[Any]]
    PROVENANCE: ClassVar[type[Provenance]]

    format: Literal[RESULT_FORMAT]  # type: ignore[valid-type]
    instrument: str
    signature: str
    """Everything that two numbers must share to compare, and their data."""
    settings: Any
    """Everything that determines the ledger."""
    run: Circumstances
    """How the run went."""
    versions: dict[str, str]
    """The packages on which numbers may depend."""
    functions: Count
    skips: dict[str, Count]
    """Reason -> number of skipped functions."""
    ledger_digest: str | None = Field(None, alias="ledger")
    """In files."""
    data_path: str | None = None
    """In files: the folder of the data, relative to the file."""
    model_path: str | None = None
    """In files: the folder or file of the model, relative to the file or, with `~`, to the user's
    home."""

    _ledger: L | None = PrivateAttr(None)
    _data_folder: Path | None = PrivateAttr(None)
    _model_place: Path | None = PrivateAttr(None)

    @property
    def ledger(self) -> L:
        assert self._ledger is not None, "a record that was read without its ledger"
        return self._ledger

    @property
    def data_folder(self) -> Path | None:
        return self._data_folder

    def of_model_at(self, path: Path | None) -> Self:
        """The same result, with the location of its model."""
        self._model_place = path
        return self

    @classmethod
    def from_ledger(cls, ledger: L, data_folder: Path | None = None) -> Self:
        """Compute the result from a ledger.

        Raises LedgerError if the ledger does not say how it was made, or does not hold what it
        says.
        """
        provenance = cls.PROVENANCE.of(ledger)
        counts, numbers = cls.measured(ledger, provenance)
        shared = {name: value for name, value in provenance if name in cls.model_fields}
        fields = {
            "format": RESULT_FORMAT,
            "instrument": cls.LEDGER.INSTRUMENT,
            "signature": str(provenance.signature(**counts)),
            **shared,
            **numbers,
        }
        result = cls(**fields)
        result._ledger = ledger
        result._data_folder = data_folder
        return result

    @classmethod
    @abstractmethod
    def measured(cls, ledger: L, provenance: Any) -> Measured:
        """What follows from the ledger; raises LedgerError as `from_ledger`."""

    @classmethod
    def from_file(cls, ledger: Path, data_folder: Path | None = None) -> Self:
        """Compute the result from the file of a ledger; raises LedgerError if it is none."""
        return cls.from_ledger(cls.LEDGER.open(ledger), data_folder)

    @classmethod
    def read(cls, text: str) -> Self:
        """The record in a result's JSON, without its ledger; raises LedgerError, with the reason,
        if there is none."""
        try:
            return cls.model_validate(parse(text.encode(), LARGEST_RESULT))
        except SubmissionError as error:
            raise LedgerError(str(error)) from error
        except ValidationError as error:
            raise LedgerError(explain(error, "the result")) from error

    def to_json(self, folder: Path | None = None) -> str:
        """The result as JSON, with the digest of its ledger; the same result gives the same text.

        `folder`: that of the file for which the text is, which then has the paths of data and
        model.
        """
        fields = self._fields()
        if folder is not None:
            fields |= paths_from(folder, self.data_folder, self._model_place)
        return json.dumps(fields, indent=1, allow_nan=False) + "\n"

    def _fields(self) -> JsonObject:
        return {
            **self.model_dump(mode="json", by_alias=True, exclude=_PATH_FIELDS),
            "ledger": self.ledger.digest(),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._fields() == other._fields()

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.title}\n{self.signature}"

    @property
    def title(self) -> str:
        """The model, what was measured instead of it, and the data, for the titles of tables."""
        controls = self.settings.deviations
        return self._title_with(f"{control} {self.settings.seed}" for control in controls)

    def _title_with(self, more: Iterable[str]) -> str:
        settings = self.settings
        data = ", ".join([settings.data, f"{settings.config}/{settings.split}", *more])
        part = extent(settings.limit, f"{self.UNIT}s")
        partial = f" (PARTIAL: {part})" if part else ""
        return f"{self.model} on {data}{partial}"

    @property
    def model(self) -> str:
        """The name of the model, for readers."""
        return self.settings.model

    def difference(self, text: str) -> str | None:
        """The difference between a result in JSON and this one, except in its places; None if it
        does not."""
        computed = self._fields()
        written = _object(text)
        try:
            self.read(text)
        except LedgerError as error:
            return str(error)
        names = sorted((computed.keys() | written.keys()) - _PATH_FIELDS)
        different = [name for name in names if computed.get(name) != written.get(name)]
        return f"other {different[0]}" if different else None

    def paths(self, folder: StrPath) -> tuple[Path, Path]:
        """The paths of the result and its ledger in `folder`: `<name>.json` and
        `<name>.ledger.parquet`."""
        result = Path(folder) / f"{self.settings.name}.json"
        return result, ledger_path(result)

    def save(self, path: StrPath) -> Path:
        """Write the result and its ledger into the folder `path`; return the path of the result's
        JSON."""
        target, ledger = self.paths(path)
        with os_errors_as_ledger_errors(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        self.ledger.save(ledger)
        return write(target, self.to_json(target.parent))

    @classmethod
    def load(cls, path: StrPath) -> Self:
        """Load the result at `path`, recomputed from the ledger beside it.

        Raises LedgerError if one of the two is missing or damaged, or if they differ.
        """
        text = read_text(path)
        folder = Path(path).parent
        result = cls.from_file(ledger_path(path), found_at(folder, field_of(text, "data_path")))
        result.of_model_at(found_at(folder, field_of(text, "model_path")))
        if difference := result.difference(text):
            raise LedgerError(
                f"the numbers of {path} do not follow from its ledger ({difference}): one of the two was altered, or "
                "another version of codesyntax wrote them; `codesyntax score` recomputes them"
            )
        return result._clustered(Path(path))

    @classmethod
    def scored(cls, ledger: Path) -> Self:
        """Compute the result from the file of a ledger, which the result beside it, if there is
        one, must be of.

        Raises LedgerError if it is not a ledger, or another one. What else is wrong with the result
        does not matter.
        """
        result = cls.from_file(ledger)
        file = result_path(ledger)
        if ledger.name.endswith(_LEDGER) and file.exists():
            digest = field_of(read_text(file), "ledger")
            if digest is not None and digest != result.ledger.digest():
                raise LedgerError(
                    f"{ledger} is not the ledger of the result beside it: one of the two is damaged, or of another "
                    f"run. Run the command that wrote them again, or move {file.name} away to score this ledger alone"
                )
        return result._clustered(file)

    def _clustered(self, file: Path) -> Self:
        """The same, with the clusters that `probing.runs.clusters` asks for."""
        read = reading.get()
        if read is not None and self.UNIT == FUNCTION:
            self.ledger.over = read(file, self.settings, self.ledger.function)
        return self

    @classmethod
    def load_each(cls, files: Iterable[Path]) -> list[Self]:
        """The results in files, each run once; raises LedgerError as `load` does, and for two files
        of a run with other numbers."""
        runs: dict[Any, tuple[Path, Any]] = {}
        for file in files:
            result: Any = cls.load(file)
            known, same = runs.setdefault(result.settings, (file, result))
            if same.ledger.rows.tobytes() != result.ledger.rows.tobytes():
                raise LedgerError(
                    f"{file} and {known} are two runs of the same job, but their numbers differ: give only one"
                )
        return [result for _, result in runs.values()]

    @classmethod
    def finished(cls, file: Path, settings: JsonObject, data_folder: Path | None) -> Self | None:
        """The result of an earlier run with the settings `settings`, but for what the ledger COUNTS,
        if it is complete; its data is in `data_folder`."""
        try:
            result = cls.load(file)
        except LedgerError as error:
            if file.exists():
                logger.warning("%s cannot be reused: %s", file, error)
            return None
        result._data_folder = data_folder
        counts = cls.LEDGER.COUNTS
        same = without(result.ledger.settings, counts) == without(settings, counts)
        return result if same else None


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder for results in memory, which is gone afterwards: errors name the files in it alone."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield folder
        except CodeSyntaxError as error:
            error.args = (str(error).replace(f"{folder}{os.sep}", ""),)
            raise


def check_result_file(file: Path) -> None:
    """Raise LedgerError if a result would replace a file that is none."""
    try:
        with safe_files.opened(file) as there:
            beginning = there.read(64)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"{file} cannot be replaced by a result: {error}; move it away"
        ) from error
    if beginning and not beginning.replace(b" ", b"").startswith(b'{\n"format":'):
        raise LedgerError(
            f"{file} is not a result, and would be replaced by one: move it away, or name another folder"
        )


def read_text(path: StrPath) -> str:
    """The text of a result's JSON; raises LedgerError if it cannot be read, or has a newer
    format."""
    try:
        text = safe_files.read(path, LARGEST_RESULT).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(
            f"cannot read the result {path}: {getattr(error, 'strerror', error)}; expected the JSON that "
            "`codesyntax probe --output` wrote"
        ) from error
    version = field_of(text, "format")
    if type(version) is int and version > RESULT_FORMAT:
        raise LedgerError(
            f"cannot read the result {path}: it is of format {version}, made by a newer codesyntax, and this one reads "
            f"format {RESULT_FORMAT}: upgrade codesyntax"
        )
    return text


def ledger_path(result: StrPath) -> Path:
    """The path of a result's ledger, beside its JSON."""
    path = Path(result)
    return path.with_name(path.name.removesuffix(".json") + _LEDGER)


def result_path(ledger: StrPath) -> Path:
    """The path of the JSON of the result whose ledger this is."""
    path = Path(ledger)
    return path.with_name(path.name.removesuffix(_LEDGER) + ".json")


def field_of(text: str, name: str) -> Any:
    """One field of a text that may be a result; None if it is missing."""
    return _object(text).get(name)


@lru_cache(maxsize=1)  # several fields of one text
def _object(text: str) -> JsonObject:
    """The object in a text of JSON; empty if there is none."""
    try:
        fields = parse(text.encode(), LARGEST_RESULT)
    except SubmissionError:
        return {}
    return fields if isinstance(fields, dict) else {}


def relative_path(folder: Path, path: Path) -> str:
    """The path of `path`, relative to `folder` where there is one."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def paths_from(folder: Path, data: Path | None, model: Path | None) -> dict[str, str]:
    """Where local data and a local model are, for a file in `folder`."""
    paths = {} if data is None else {"data_path": relative_path(folder, data)}
    return paths if model is None else {**paths, "model_path": path_from(folder, model)}


def path_from(folder: Path, path: Path) -> str:
    """The path of `path`, from `folder`; from the user's home, `~/...`, if both share no folder
    below it."""
    home = Path.home().resolve()
    folder = folder.resolve()
    path = path.resolve()
    below_home = {path, *path.parents} - {home, *home.parents}
    if path.is_relative_to(home) and below_home.isdisjoint((folder, *folder.parents)):
        return f"~/{path.relative_to(home).as_posix()}"
    return relative_path(folder, path)


def found_at(folder: Path, path: object) -> Path | None:
    """The place of a path that `paths_from` made for a file in `folder`; None for what is no
    path."""
    if not path or not isinstance(path, str):
        return None
    return Path(os.path.expanduser(path)) if path.startswith("~/") else folder / path
