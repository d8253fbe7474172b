"""Saved results: a JSON file and the ledger beside it, from which its numbers follow."""

from __future__ import annotations

import json
import logging
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import ValidationError

from codesyntax_dataset import safe_files
from codesyntax_dataset.atomic import os_errors_as_ledger_errors, write
from codesyntax_dataset.errors import EntryError, LedgerError
from probing.runs.records import Record, explain
from probing.runs.untrusted_json import parse

logger = logging.getLogger(__name__)

FORMAT = 2
"""The format of a result's JSON: changes whenever its fields, or their meanings, change. Format 1 does not state it."""

_LEDGER = ".ledger.parquet"

LARGEST = 16 * 2**20
"""The most bytes of a result's JSON, many times the usual size."""


class SavedFile(Record):
    """The JSON of a saved result."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises LedgerError, with the reason, for a text that is not such a result."""
        try:
            return cls.model_validate(parse(text.encode(), LARGEST))
        except EntryError as error:
            raise LedgerError(str(error)) from error
        except ValidationError as error:
            raise LedgerError(explain(error, "the result")) from error


class SavedResult(ABC):
    """A result that is saved as two files: its JSON, and the ledger that its numbers follow from.

    `file`: the record of its JSON. `data_folder`: the location of the data, if it was a folder; commands look for it
    there again. It is not part of the result's identity.
    """

    file: ClassVar[type[SavedFile]]
    settings: Any
    ledger: Any
    data_folder: Path | None

    @abstractmethod
    def to_json(self, data_path: str | None = None) -> str:
        """The result as JSON, with the digest of its ledger; the same result gives the same text.

        `data_path`: the folder of the data, relative to the file for which the text is.
        """

    @classmethod
    @abstractmethod
    def from_file(cls, ledger: Path) -> Self:
        """Compute the result from the file of a ledger; raises LedgerError if it is none."""

    @classmethod
    @abstractmethod
    def from_ledger(cls, ledger: Any) -> Self:
        """Compute the result from a ledger; raises LedgerError if it does not say how it was made."""

    def difference(self, text: str) -> str | None:
        """How a result in JSON, of any format, differs from this one, except in `data_path`; None if it does not."""
        try:
            theirs, ours = self.file.read(text), self.file.read(self.to_json())
        except LedgerError as error:
            return str(error)
        names = self.file.model_fields.keys() - {"format", "data_path"}
        return next((f"other {name}" for name in sorted(names) if getattr(theirs, name) != getattr(ours, name)), None)

    def paths(self, folder: str | os.PathLike) -> tuple[Path, Path]:
        """The paths of the result and its ledger in `folder`: `<name>.json` and `<name>.ledger.parquet`."""
        result = Path(folder) / f"{self.settings.name}.json"
        return result, ledger_path(result)

    def save(self, path: str | os.PathLike) -> Path:
        """Write the result and its ledger into the folder `path`; return the path of the result's JSON."""
        target, ledger = self.paths(path)
        with os_errors_as_ledger_errors(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        self.ledger.save(ledger)
        data_path = None if self.data_folder is None else seen_from(target.parent, self.data_folder)
        return write(target, self.to_json(data_path))

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Load the result at `path`, recomputed from the ledger beside it.

        Raises LedgerError if one of the two is missing or damaged, or if they differ.
        """
        text = read_text(path)
        result = cls.from_file(ledger_path(path))
        if difference := result.difference(text):
            raise LedgerError(
                f"the numbers of {path} do not follow from its ledger ({difference}): one of the two was altered, or "
                "another version of codesyntax wrote them; `codesyntax score` recomputes them"
            )
        data_path = data_path_of(text)
        result.data_folder = None if data_path is None else Path(path).parent / data_path
        return result

    @classmethod
    def scored(cls, ledger: Path) -> Self:
        """Compute the result from the file of a ledger, which the result beside it, if there is one, must be of.

        Raises LedgerError if it is no ledger, or another one. What else is wrong with the result does not matter.
        """
        result, beside = cls.from_file(ledger), ledger.with_name(ledger.name.removesuffix(_LEDGER) + ".json")
        if ledger.name.endswith(_LEDGER) and beside.exists():
            said = _field(read_text(beside), "ledger")
            if said is not None and said != result.ledger.digest():
                raise LedgerError(
                    f"{ledger} is not the ledger of the result beside it: one of the two is damaged, or of another "
                    f"run. Run the command that wrote them again, or move {beside.name} away to score this ledger alone"
                )
        return result

    @classmethod
    def finished(cls, file: Path, made: dict[str, Any], data_folder: Path | None) -> Self | None:
        """The result of an earlier run with the settings `made`, if it is complete; its data is in `data_folder`."""
        try:
            result = cls.load(file)
        except LedgerError as error:
            if file.exists():
                logger.warning("%s cannot be reused: %s", file, error)
            return None
        result.data_folder = data_folder
        return result if result.ledger.settings == made else None


def read_text(path: str | os.PathLike) -> str:
    """The text of a result's JSON; raises LedgerError if it cannot be read, or has a newer format."""
    try:
        text = safe_files.read(path, LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(
            f"cannot read the result {path}: {error}; expected the JSON that `codesyntax probe` wrote"
        ) from error
    version = _field(text, "format")
    if type(version) is int and version > FORMAT:
        raise LedgerError(
            f"cannot read the result {path}: it is of format {version}, made by a newer codesyntax, and this one reads "
            f"formats up to {FORMAT}: upgrade codesyntax"
        )
    return text


def ledger_path(result: str | os.PathLike) -> Path:
    """The path of a result's ledger, beside its JSON."""
    path = Path(result)
    return path.with_name(path.name.removesuffix(".json") + _LEDGER)


def data_path_of(text: str) -> str | None:
    """The path of the data in a result's JSON, relative to it; None if it has none."""
    path = _field(text, "data_path")
    return path if isinstance(path, str) else None


def _field(text: str, name: str) -> Any:
    """One field of a text that may be a result; None if it is missing."""
    try:
        return json.loads(text)[name]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def seen_from(folder: Path, place: Path) -> str:
    """The path of `place`, relative to `folder` where there is one."""
    try:
        return Path(os.path.relpath(place.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return place.resolve().as_posix()
