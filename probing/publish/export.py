"""Export results as entries, the files of hits that boards read."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from codesyntax_dataset import atomic
from codesyntax_dataset.arguments import Paths, StrPath, checked
from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.owned_folder import check_owned
from probing.evidence.gather import results_for_entries, submission_of
from probing.evidence.submission import Submission

logger = logging.getLogger(__name__)

_PARQUET = "PAR1"


@checked
def export(
    results: Paths,
    output: StrPath,
    *,
    data: Any = None,
) -> list[Path]:
    """Write the entry of each result, `NAME.hits.parquet`.

    Args:
        results: files or folders of `probe`, for test and validation, and of `mask`.
        output: the folder to write to.
        data: the dataset, if not the one in the results.

    Returns:
        The files.

    Raises:
        LedgerError: for damaged results, those of other instruments, and a foreign file where one
        would be written.
        EntryError: for partial results and those of controls, if there are no others; otherwise
        these are left out with a warning.
    """
    files = {Path(output) / entry.file_name: entry.to_bytes() for entry in read(results, data)}
    for file in files:
        check_owned(file.parent, "export", (file.name, _PARQUET), only=[file.name])
    return [atomic.write(file, content) for file, content in files.items()]


def read(results: Paths, data: Any = None) -> list[Submission]:
    """The entries of results."""
    entries = []
    refused = {}
    for result in results_for_entries(results):
        try:
            entries.append(submission_of(result, data))
        except EntryError as error:
            refused[result.files["test"]] = error
    if refused and not entries:
        raise next(iter(refused.values()))
    for file, reason in refused.items():
        logger.warning("left out %s: %s", file, reason)
    return entries
