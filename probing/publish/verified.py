"""The board's own checks: that entries are those of their ledgers and of the data, and that the models give them.

`codesyntax submit` sends ledgers beside entries. Whoever keeps a board makes the entries of these ledgers again, and
runs the functions again that `submit` drew, or others.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, EntryError, LedgerError, UnknownName
from codesyntax_dataset.protocol import DIRECTIONS
from probing.evidence.baselines import Edges
from probing.evidence.checks import REJECTED, Verification
from probing.evidence.entry import Entry, same_numbers
from probing.evidence.entry_attention import AttentionEntry
from probing.evidence.entry_masked import MaskedEntry
from probing.evidence.entry_relations import InformationEntry, PreferenceEntry, RelationEntry
from probing.evidence.gather import MAKERS, Probed, WholeSplits, entry_of, recomputed
from probing.evidence.masked import holding
from probing.instruments.merge import RESULTS
from probing.runs.data import read_functions


def ledger_file(digest: str) -> str:
    """The path of a ledger in the repository of a board."""
    return f"ledgers/{digest}.parquet"


class Checker:
    """Checks entries against the dataset at `data`; `device` and `seed`: as of `verify`."""

    def __init__(self, data: Any, device: str | None = None, seed: int | None = None):
        self.data, self._device, self._seed = data, device, seed
        self._splits = cache(lambda config, direction: WholeSplits(data, config, direction))
        self._held: dict[tuple[str, tuple[str, ...]], dict[str, np.ndarray]] = {}

    def from_data(self, entry: Entry) -> bool:
        """True if an entry is of these labels; raises EntryError if it has not their functions, edges or baselines."""
        try:
            if isinstance(entry, AttentionEntry):
                return recomputed(entry, self._splits(entry.settings.config, entry.settings.direction))
            if isinstance(entry, InformationEntry):
                return _drawn_from(entry, self._splits(entry.settings.config, DIRECTIONS[0]).edges)
            if isinstance(entry, PreferenceEntry):
                return _read_from(entry, self.data)
            assert isinstance(entry, MaskedEntry)
            return self._whole(entry)
        except UnknownName:  # it has no such config
            return False

    def _whole(self, entry: MaskedEntry) -> bool:
        settings = entry.settings
        if read_functions(self.data, settings.config, settings.split).labels != settings.labels:
            return False
        key = settings.config, settings.node_types
        if key not in self._held:
            self._held[key] = holding(self.data, settings)
        pairs = entry.pairs()
        for name, places in self._held[key].items():
            known = name in pairs.node_types
            theirs = pairs.places[pairs.node_type == pairs.node_types.index(name)] if known else np.empty(0, np.int64)
            if not np.array_equal(theirs, places):
                raise EntryError(f"{len(theirs)} functions have nodes of {name}, in {self.data} {len(places)} do")
        return True

    def again(self, entry: Entry, ledger: Callable[[str], Path | None]) -> tuple[int, int]:
        """Make an entry again of its ledgers, and run a part of them again; `ledger`: digest -> its file, if any.

        Returns how many functions were run again, and of how many. Raises EntryError if the entry is refuted,
        LedgerError or DatasetError if it cannot be checked.
        """
        from probing.evidence.verify import verify_each  # it imports torch, which takes seconds

        with temporary_folder(Path(tempfile.gettempdir())) as folder:
            try:
                read = {split: _read(entry, split, digest, ledger(digest)) for split, digest in entry.digests.items()}
                files = {split: result.save(folder) for split, result in read.items()}
                remade = entry_of_results(read, files, self.data)
            except (LedgerError, DatasetError):
                raise
            except CodeSyntaxError as error:
                raise EntryError(f"refuted: {error}") from error
            theirs, ours = (of.model_dump(mode="json", exclude={"verified"}) for of in (entry, remade))
            if other := [name for name in theirs if not same_numbers(theirs[name], ours[name])]:
                raise EntryError(f"refuted: {other[0]} does not follow from its ledgers")
            found = []
            for verification in verify_each([*files.values()], data=self.data, device=self._device, seed=self._seed):
                if isinstance(verification, LedgerError):
                    raise verification
                found.append(verification)
        together = Verification([check for one in found for check in one.checks])
        if together.verdict == REJECTED:
            raise EntryError(f"refuted: {together.reason}")
        if not together.accepted:
            raise LedgerError(together.reason)
        return sum(one.functions for one in found), sum(one.of for one in found)


def entry_of_results(read: Mapping[str, Any], files: dict[str, Path], data: Any) -> Entry:
    """The entry of the results of a run, by split, in their files; `data`: the dataset. Raises EntryError for what no
    board takes."""
    test = read["test"]
    if maker := MAKERS.get(test.ledger.INSTRUMENT):
        return maker(test, data)
    return entry_of(Probed(test, read["validation"], files), data)


def _drawn_from(entry: InformationEntry, edges: Mapping[str, Edges]) -> bool:
    """True if an entry is of the labels of these splits; raises EntryError if so, but they have fewer edges."""
    settings, test = entry.settings, edges["test"]
    labels = {split: of.settings.labels for split, of in edges.items()}
    if labels != {"test": settings.labels, "validation": settings.learned_on}:
        return False
    relations = [test.relations[at] for at in test.relation.tolist()]
    _check_counts(entry, Counter(zip(test.function.tolist(), relations)))
    return True


def _read_from(entry: PreferenceEntry, data: Any) -> bool:
    """True if an entry is of these pairs; raises EntryError if so, but a repository has fewer of a phenomenon."""
    read = read_functions(data, entry.settings.config, entry.settings.split)
    if read.labels != entry.settings.labels:
        return False
    names = read.dataset["repo"][:]
    repository = {name: number for number, name in enumerate(dict.fromkeys(names))}
    _check_counts(entry, Counter(zip((repository[name] for name in names), read.dataset["phenomenon"][:])))
    return True


def _check_counts(entry: RelationEntry, there: Mapping[tuple[int, str], int]) -> None:
    """Raise EntryError if an entry has more in a group than there is, by place and name of the group."""
    places, counts, _ = entry.measured()
    for at, name in enumerate(entry.relations):
        for place, number in zip(places.tolist(), counts[:, at].tolist()):
            if number > there[place, name]:
                raise EntryError(f"{number} {entry.COUNTED} of {name} are counted at {place}, where there are fewer")


def _read(entry: Entry, split: str, digest: str, file: Path | None) -> Any:
    """The result of a ledger; raises EntryError if it is of other settings than the entry."""
    if file is None:
        raise LedgerError(f"the ledger {digest} is missing beside the entry")
    result = RESULTS[entry.instrument].from_file(file)
    if result.ledger.digest() != digest:
        raise LedgerError(f"the ledger {digest} is another one")
    theirs, ours = (of.model_dump(mode="json", exclude={"split", "labels"}) for of in (entry.settings, result.settings))
    if theirs != ours or result.settings.split != split:
        raise EntryError(f"the ledger {digest} is of {result.settings.model}, with other settings")
    return result
