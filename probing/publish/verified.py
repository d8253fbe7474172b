"""The board's own checks: that entries are those of their ledgers and of the data, and that the
models give them.

`codesyntax submit` sends ledgers beside entries. Whoever keeps a board makes the entries of these
ledgers again, and runs the functions again that `submit` drew, or others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import (
    CodeSyntaxError,
    DatasetError,
    EntryError,
    LedgerError,
    UnknownName,
)
from probing.evidence.gather import EntryResults, WholeSplits, recomputed, submission_of
from probing.evidence.masked import holding
from probing.evidence.submission import Submission
from probing.evidence.submission_attention import AttentionSubmission
from probing.evidence.submission_masked import MaskedSubmission
from probing.instruments.registry import INSTRUMENTS
from probing.runs.data import read_functions
from probing.runs.ledger_file import MASKING

LEDGERS = "ledgers/"


def ledger_file(digest: str) -> str:
    """The path of a ledger in the repository of a board."""
    return f"{LEDGERS}{digest}.parquet"


class RunAgain(NamedTuple):
    """How many `functions` a board ran again, of how many in `total`, with the weights of which
    branch or tag (`reference`), empty for a model that is not on the Hub."""

    functions: int
    total: int
    reference: str


class Checker:
    """Checks entries against the dataset at `data`; `device`: as of `verify`."""

    def __init__(self, data: Any, device: str | None = None):
        self.data = data
        self._device = device
        self._splits = cache(lambda config, direction: WholeSplits(data, config, direction))
        self._held: dict[Any, dict[str, np.ndarray]] = {}

    def check(self, entry: Submission) -> None:
        """Raise EntryError unless an entry has the labels, functions, edges and baselines of the
        dataset."""
        try:
            if isinstance(entry, AttentionSubmission):
                splits = self._splits(entry.settings.config, entry.settings.direction)
                same_labels = recomputed(entry, splits)
            else:
                assert isinstance(entry, MaskedSubmission)
                same_labels = self._whole(entry)
        except UnknownName:  # it has no such config
            same_labels = False
        if not same_labels:
            raise EntryError("its labels are not those of the data")

    def _whole(self, entry: MaskedSubmission) -> bool:
        settings = entry.settings
        if read_functions(self.data, settings.config, settings.split).labels != settings.labels:
            return False
        key = settings.config, settings.node_types
        if key not in self._held:
            self._held[key] = holding(self.data, settings)
        hits = entry.tables[MASKING]
        for name, places in self._held[key].items():
            theirs = hits.of(name)
            if not np.array_equal(theirs, places):
                raise EntryError(
                    f"{len(theirs)} functions have nodes of {name}, in {self.data} {len(places)} do"
                )
        return True

    def again(self, entry: Submission, ledger: Callable[[str], Path | None]) -> RunAgain:
        """Make an entry again of its ledgers, and run a part of them again; `ledger`: digest -> its
        file, if any.

        Returns what was run again. Raises EntryError if the entry is refuted, LedgerError or
        DatasetError if it cannot be checked.
        """

        with temporary_folder(Path(tempfile.gettempdir())) as folder:
            try:
                read = {}
                for split, digest in entry.digests.items():
                    read[split] = _result_of_ledger(entry, split, digest, ledger(digest))
                files = {split: result.save(folder) for split, result in read.items()}
                remade = submission_of(EntryResults(files, read), self.data)
            except (LedgerError, DatasetError):
                raise
            except CodeSyntaxError as error:
                raise EntryError(f"refuted: {error}") from error
            if other := entry.difference(remade):
                raise EntryError(f"refuted: {other} does not follow from its ledgers")
            return self._run_again([*files.values()])

    def _run_again(self, files: list[Path]) -> RunAgain:
        """Run results again; raises as `again` does."""
        from probing.evidence import verify  # it imports torch, which takes seconds

        together = verify.Verification(files)
        options = {"data": self.data, "device": self._device}
        for verification in verify.verify_each(files, **options):
            if isinstance(verification, LedgerError):
                raise verification
            together.checks += verification.checks
            together.functions += verification.functions
            together.total += verification.total
            together.reference = verification.reference
        if together.verdict == verify.REJECTED:
            raise EntryError(f"refuted: {together.reason}")
        if not together.accepted:
            raise LedgerError(together.reason)
        return RunAgain(together.functions, together.total, together.reference)


def _result_of_ledger(entry: Submission, split: str, digest: str, file: Path | None) -> Any:
    """The result of a ledger; raises EntryError if it is of other settings than the entry."""
    if file is None:
        raise LedgerError(f"the ledger {digest} is missing beside the entry")
    result = INSTRUMENTS[entry.instrument].result.from_file(file)
    if result.ledger.digest() != digest:
        raise LedgerError(f"the ledger {digest} is another one")
    settings = (entry.settings, result.settings)
    theirs, ours = (each.model_dump(mode="json", exclude={"split", "labels"}) for each in settings)
    if theirs != ours or result.settings.split != split:
        raise EntryError(f"the ledger {digest} is of {result.settings.model}, with other settings")
    return result
