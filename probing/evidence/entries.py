"""The entries of results, whatever their instrument."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from codesyntax_dataset.errors import DatasetError, EntryError, LedgerError
from probing.evidence import entry_masked, entry_relations
from probing.evidence.entry import GroupedEntry
from probing.evidence.merge import RESULTS
from probing.runs.data import find_data
from probing.runs.ledger_file import ATTENTION, INFORMATION, MASKING, PREFERENCE, instrument_of
from probing.runs.saved import ledger_path

MAKERS: dict[str, Callable[[Any, Any], GroupedEntry]] = {
    MASKING: entry_masked.of_result,
    INFORMATION: entry_relations.of_information,
    PREFERENCE: entry_relations.of_preference,
}
"""Instrument -> makes the entry of a result, with the location of the dataset. Attention has results of two splits."""


def of_file(file: Path, data: Any = None) -> GroupedEntry:
    """The entry of a result in a file; `data`: the location of the dataset, if not that in the result.

    Raises LedgerError for a damaged result, EntryError for what no board takes, or without the data.
    """
    instrument = instrument_of(ledger_path(file)) or ATTENTION
    if instrument not in MAKERS:
        raise LedgerError(f"{file} is of {instrument}, of which there are no entries: expected {' or '.join(MAKERS)}")
    result = RESULTS[instrument].load(file)
    try:
        return MAKERS[instrument](result, find_data(file, result.settings) if data is None else data)
    except DatasetError as error:
        raise EntryError(f"nobody knows what {result.settings.model} could not read: {error}") from error
