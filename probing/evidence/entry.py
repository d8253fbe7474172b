"""Entries, the published form of evidence: the JSON that submissions send and boards read from untrusted sources.

`Evidence.entry()` makes an entry on attention, `entry_masked.make` one on masked syntax, and `codesyntax submit` adds
how much of it was run again. `load` reads one and rejects everything that the file itself can contradict: fields, types
and ranges, and numbers that do not follow from each other or that no model can produce. Whether they follow from the
ledgers, whose digests an entry names, cannot be checked here; `codesyntax submit` checks it before it sends.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from codesyntax_dataset.errors import EntryError
from probing.evidence import entry_functions, entry_masked
from probing.evidence.entry_checks import check_scores
from probing.evidence.schema import FORMAT, MASKING_FORMAT, Entry, MaskEntry
from probing.runs.ledger_file import MASKING
from probing.runs.records import explain
from probing.runs.untrusted_json import parse, read

LARGEST = 8 * 2**20
"""The most bytes of an entry, several times the usual size."""


class Named(Protocol):
    """The settings of a run."""

    @property
    def name(self) -> str: ...


def to_json(entry: Entry | MaskEntry | dict[str, Any]) -> str:
    """The same entry gives the same text."""
    fields = entry.model_dump(mode="json", exclude_unset=True) if isinstance(entry, (Entry, MaskEntry)) else entry
    return json.dumps(fields, allow_nan=False, separators=(",", ":")) + "\n"


def file_name(settings: Named) -> str:
    """A file name of letters, digits and `._-`, unique to the settings."""
    return f"{settings.name}.json"


def load(source: str | os.PathLike[str] | bytes) -> Entry | MaskEntry:
    """Load an entry from a file or from bytes. Raises EntryError, with the reason, if it is not a valid entry."""
    fields = parse(source if isinstance(source, bytes) else read(Path(source), LARGEST), LARGEST)
    masking = isinstance(fields, dict) and fields.get("instrument") == MASKING
    _check_format(fields, MASKING_FORMAT if masking else FORMAT)
    try:
        entry = (MaskEntry if masking else Entry).model_validate(fields)
    except ValidationError as error:
        raise EntryError(explain(error, "the entry")) from error
    if isinstance(entry, MaskEntry):
        entry_masked.check(entry)
        return entry
    _check_signatures(entry)
    _check_verified(entry)
    check_scores(entry)
    entry_functions.check(entry)
    return entry


def _check_format(fields: Any, expected: int) -> None:
    """Reject another format first, with that reason: such an entry has other fields, or other scores."""
    version = fields.get("format") if isinstance(fields, dict) else None
    if type(version) is int and version != expected:
        told = f"format is {version}, which another version of codesyntax wrote, expected {expected}: "
        raise EntryError(
            told + ("make the entry again from its results" if version < expected else "upgrade codesyntax")
        )


def _check_signatures(entry: Entry) -> None:
    told = {"signature": entry.signature, "chosen_on.signature": entry.chosen_on.signature}
    for (at, text), follows in zip(told.items(), map(str, entry.signatures)):
        if text != follows:
            raise EntryError(f"{at} does not follow from the settings: expected {follows}")


def _check_verified(entry: Entry) -> None:
    """Check how many functions of both splits `codesyntax submit` probed again, if it did."""
    of, verified = entry.functions + entry.chosen_on.functions, entry.verified
    if verified and (verified.of != of or verified.functions > of):
        raise EntryError(f"verified is {verified.functions} of {verified.of} functions, but the entry has {of}")
