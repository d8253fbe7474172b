"""Entries, the published form of evidence: the JSON that submissions send and boards read from untrusted sources.

`Evidence.entry()` makes an entry, and `codesyntax submit` adds how much of it was probed again. `load` reads one and
rejects everything that the file itself can contradict: fields, types and ranges, and numbers that do not follow from
each other or that no attention heads can produce. Whether they follow from the ledgers, whose digests an entry names,
cannot be checked here; `codesyntax submit` checks it before it sends.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import DIRECTIONS
from probing.attention.schema import Signature
from probing.evidence import entry_functions
from probing.evidence.entry_checks import check_scores
from probing.models.kept import VERSIONS
from probing.runs.settings import Settings
from probing.runs.untrusted_json import (
    PLAIN,
    counts,
    expect,
    list_of,
    mapping,
    one_of,
    parse,
    read,
    record,
    text,
    whole,
)

FORMAT = 2
"""Changes whenever the fields of entries, or their meanings, change."""

LARGEST = 8 * 2**20
"""The most bytes of an entry, several times the usual size."""


def to_json(entry: dict[str, Any]) -> str:
    """The same entry gives the same text."""
    return json.dumps(entry, allow_nan=False, separators=(",", ":")) + "\n"


def file_name(entry: dict[str, Any]) -> str:
    """A file name of letters, digits and `._-`, unique to the settings of the entry."""
    return f"{_settings_of(entry).name}.json"


def load(source: str | os.PathLike[str] | bytes) -> dict[str, Any]:
    """Load an entry from a file or from bytes. Raises EntryError, with the reason, if it is not a valid entry."""
    entry = parse(source if isinstance(source, bytes) else read(Path(source), LARGEST), LARGEST)
    _check_format(entry)
    _FIELDS(entry, "")
    _check_signatures(entry)
    _check_verified(entry)
    check_scores(entry)
    entry_functions.check(entry)
    return entry


_NAME = r"\w(?!.*\.\.)[\w.-]{0,95}(/\w[\w.-]{0,95})?"
_PART = r"(?![-.])(?!.*(--|\.\.))[\w.-]{1,96}(?<![-.])"
_MODEL = text(
    rf"{_PART}(/{_PART})?(?<!\.git)",
    "USER/MODEL or the name of a local model, of letters, digits, and - _ . between them, as the Hub allows it",
)
_LABELS = text("[0-9a-f]{12}", "12 hexadecimal digits")
_SHA256 = text("[0-9a-f]{64}", "64 hexadecimal digits")
_SIGNATURE = text(PLAIN + "+", "a signature")
_VERSION = text(r"\d[\w.+!-]{0,60}", "a version")


def _config(value: Any, at: str) -> None:
    one_of(CONFIGS)(value, at)  # looked up on each call: a language may be registered later


_SETTINGS = record(
    {
        "model": _MODEL,
        "revision": text("[0-9a-f]{40}|[0-9a-f]{64}", "a commit or a SHA-256, in hexadecimal digits"),
        "data": text(_NAME + r"@[\w.]{1,40}", "NAME@VERSION"),
        "labels": _LABELS,
        "config": _config,
        "split": one_of(["test"]),
        "direction": one_of(DIRECTIONS),
        "dtype": one_of(["float32", "bfloat16"]),
        "max_length": whole(1),
        "also_fits": list_of(_MODEL),
        "limit": lambda value, at: expect(value is None, value, at, "none: a partial run is not published"),
        "control": lambda value, at: expect(value is None, value, at, "none: a control is no model"),
        "seed": one_of([None]),
        "layers": whole(1, 1000),
        "heads": whole(1, 1000),
        "attention": one_of(["captured", "eager"]),
        "attention_why": text(PLAIN + "{0,1000}", "plain text"),
        "device": text("[a-z]{1,20}", "the kind of a device"),
    },
    family=text(r"[\w-]{1,60}", "the type of a model"),
)
_FIELDS = record(
    {
        "format": one_of([FORMAT]),
        "settings": _SETTINGS,
        "signature": _SIGNATURE,
        "functions": whole(1),
        "edges": whole(1),
        "skips": counts,
        "chosen_on": record({"signature": _SIGNATURE, "labels": _LABELS, "functions": whole(1), "edges": whole(1)}),
        "protocols": mapping,
        "baselines": mapping,
        "differences": mapping,
        "same_relations": mapping,
        "by_function": mapping,
        "ledgers": record({"test": _SHA256, "validation": _SHA256}),
        "versions": record(dict.fromkeys(VERSIONS, _VERSION)),
    },
    verified=record({"functions": whole(1), "of": whole(1)}),
)


def _check_format(entry: Any) -> None:
    """Reject an older format first, with that reason: such an entry lacks fields and has other scores."""
    if isinstance(entry, dict) and type(entry.get("format")) is int and entry["format"] < FORMAT:
        raise EntryError(
            f"format is {entry['format']}, which another version of codesyntax wrote, expected {FORMAT}: make the "
            "entry again from its results"
        )


def _check_signatures(entry: dict[str, Any]) -> None:
    made, chosen_on = _settings_of(entry), entry["chosen_on"]
    of_validation = made.model_copy(update={"split": "validation", "labels": chosen_on["labels"]})
    for at, of, settings in (("signature", entry, made), ("chosen_on.signature", chosen_on, of_validation)):
        follows = str(Signature(settings, of["functions"], of["edges"]))
        if of["signature"] != follows:
            raise EntryError(f"{at} does not follow from the settings: expected {follows}")


def _check_verified(entry: dict[str, Any]) -> None:
    """Check how many functions of both splits `codesyntax submit` probed again, if it did."""
    of = entry["functions"] + entry["chosen_on"]["functions"]
    verified = entry.get("verified", {"functions": 1, "of": of})
    if verified["of"] != of or verified["functions"] > of:
        raise EntryError(f"verified is {verified['functions']} of {verified['of']} functions, but the entry has {of}")


def _settings_of(entry: dict[str, Any]) -> Settings:
    return Settings.model_validate({name: entry["settings"][name] for name in Settings.model_fields})
