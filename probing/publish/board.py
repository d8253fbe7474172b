"""The board: a comparison of published entries. `probing.report.board` writes it.

The rules, which the page explains:

- *Tables.* Entries share a table only if their settings agree in everything but the model
  (`Submission.shared`), and they have the same functions, edges or nodes (`Submission.table`).
  Nothing is ranked across tables.
- *Ranks* are ranges, from a paired test of each two models on these functions (`ranks`). A model
  ranks below those that are significantly better and above those that are significantly worse; it
  is tied with the others. Baselines and the paper's models have no rank.
- *Claimed and verified.* What entries say is claimed, until this board has run a part of it again
  (`verified.Checker`).
- *Conflicts.* Of several entries for one model and revision in a table, verified ones count,
  otherwise all; where their numbers differ, all are shown, with a remark. So nobody replaces the
  entry of another.
- *Remarks* stand at entries with the ledger or the numbers of another model.
- *Baselines* follow from the data: entries with others are left out.

The same entries give the same bytes, regardless of their order.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import Paths, checked
from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import DatasetError, EntryError, LedgerError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.safe_files import printable
from probing.evidence.submission import LARGEST_ENTRY, Submission, Tables, load
from probing.publish.verified import Checker, RunAgain, ledger_file
from probing.stats.hits_file import SUFFIX
from probing.stats.intervals import Estimate, ranks

logger = logging.getLogger(__name__)

LARGEST_LEDGER = 2 * 2**30
"""The most bytes of a ledger that a board verifies."""

CONFLICT = "in conflict with another entry"


class LeftOut(NamedTuple):
    """A file that is not a row of the board, and the reason."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class BoardRow:
    """An entry, a submission that was read, and what follows from it.

    `means`, `differences`: measure, the headline first -> the score of the model, and how much more
    it is than that of its rival; `shares`: float32 (measures, F), each function's contribution to a
    mean, by which models are ranked; `verified`: what this board ran again; None: its numbers are
    claimed; `remarks`: what a reader should know before believing them.
    """

    file: str
    entry: Submission
    means: Mapping[Any, Estimate]
    differences: Mapping[Any, Estimate]
    shares: np.ndarray
    verified: RunAgain | None = None
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: str, entry: Submission, verified: RunAgain | None = None) -> BoardRow:
        means = entry.means(entry.tables)
        return cls(
            file,
            entry,
            entry.estimates(means, entry.SYSTEM),
            entry.estimates(means, entry.SYSTEM, entry.RIVAL),
            _function_shares(means, entry.SYSTEM),
            verified,
        )

    @property
    def model(self) -> str:
        return str(self.entry.settings.model)

    @property
    def revision(self) -> str:
        return str(self.entry.settings.revision)

    @property
    def identity(self) -> tuple[str, str]:
        """Model and revision; the Hub ignores the case of names."""
        return self.model.casefold(), self.revision

    def remarked(self, remarks: Iterable[str]) -> BoardRow:
        return replace(self, remarks=(*self.remarks, *remarks))


@dataclass(frozen=True, eq=False)
class BoardTable:
    """Comparable rows, sorted by model. `ranks`: of each row, its measures -> the first and the
    last possible rank."""

    name: str
    rows: list[BoardRow]
    ranks: list[dict[Any, tuple[int, int]]]

    @property
    def instrument(self) -> str:
        return self.rows[0].entry.instrument

    @property
    def settings(self) -> Any:
        """The settings of the first row; all rows agree in those that are not of the model."""
        return self.rows[0].entry.settings

    @property
    def shared(self) -> dict[str, str]:
        return self.rows[0].entry.shared


@dataclass
class Board:
    """Tables, by instrument and config, the largest first; and the files left out. Its length is
    the number of rows."""

    tables: list[BoardTable]
    left_out: list[LeftOut]

    def __len__(self) -> int:
        return sum(len(table.rows) for table in self.tables)

    def of(self, instrument: str) -> list[BoardTable]:
        """The tables of an instrument."""
        return [table for table in self.tables if table.instrument == instrument]


@checked
def read(
    sources: Paths,
    data: Any,
    *,
    verify: bool = False,
    device: str | None = None,
) -> Board:
    """Read entries; files that fail a check are left out with the reason.

    Args:
        sources: folders, or results repositories on the Hub (`user/results`, or with `@revision`),
        of which the files
            of hits in the folder `entries` are read if there is one, otherwise all.
        data: the location of the dataset, from which functions and baselines of entries must
            follow.
        verify: make entries again of the ledgers beside them, in the folder `ledgers`, and run a
            part of these again.
        device: as of `probing.verify`.

    Raises:
        EntryError: for an invalid source, one without such files; and if every file was left out.
    """
    read_entries = _Entries(Checker(data, device), verify)
    for source in sorted({str(source) for source in sources}):
        with _opened_source(source) as opened:
            read_entries.add(source, opened)
    tables, duplicates = group(read_entries.rows)
    rows = [row for table in tables for row in table.rows]
    left_out = sorted(read_entries.left_out + duplicates)
    if not rows:
        (file, reason), *others = left_out
        more = f", and {len(others):,} more files" if others else ""
        raise EntryError(f"no entry can stand on a board: left out {file} ({reason}){more}")
    return Board(tables, left_out)


@dataclass
class _Entries:
    """What was read of the sources of a board.

    `checker`: checks entries against the dataset; `verify`: whether it runs them again.
    """

    checker: Checker
    verify: bool
    rows: list[BoardRow] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def add(self, source: str, opened: _Source) -> None:
        """Read the files of a source; raises EntryError if it has nothing to read."""
        self.left_out += opened.refused
        entries = opened.folder / "entries"
        within = opened.folder if entries.is_symlink() or not entries.is_dir() else entries
        # earlier entries were JSON, and are told as such
        paths = sorted([*within.rglob(f"*{SUFFIX}"), *within.rglob("*.json")])
        if not paths and not opened.refused:
            raise EntryError(
                f"{source} has no file *{SUFFIX}: expected a folder that `codesyntax export` "
                "writes, or a results repository that `codesyntax submit --board` contributes to"
            )
        for path in paths:
            name = printable(f"{opened.called}/{path.relative_to(opened.folder).as_posix()}")
            try:
                self.rows.append(self._read_row(path, name, opened))
            except EntryError as error:
                reason = str(error).replace(str(path), path.name)
                self.left_out.append(LeftOut(name, printable(reason)))

    def _read_row(self, path: Path, name: str, opened: _Source) -> BoardRow:
        """Read an entry and check it; raises EntryError for one that is not valid, or refuted."""
        entry = load(path)
        self.checker.check(entry)
        verified = None
        if self.verify:
            try:
                verified = self.checker.again(entry, opened.ledger)
            except (LedgerError, DatasetError) as error:
                logger.warning("%s could not be checked: %s", name, printable(str(error)))
        return BoardRow.of(name, entry, verified)


class _Source(NamedTuple):
    """The folder with the entries of a source, its name, files that were not downloaded, and digest
    -> the file of the ledger, if there is one."""

    folder: Path
    called: str
    refused: list[LeftOut]
    ledger: Callable[[str], Path | None]


@contextlib.contextmanager
def _opened_source(source: str) -> Iterator[_Source]:
    path = Path(source)
    if os.path.isdir(path):

        def beside(digest: str) -> Path | None:
            file = path / ledger_file(digest)
            return file if file.is_file() else None

        yield _Source(path, path.resolve().name, [], beside)
    elif re.fullmatch(r"[\w.-]+/[\w.-]+(@.+)?", source) and not (
        path.name == "entries" or path.parent.exists()
    ):
        with temporary_folder(Path(tempfile.gettempdir())) as folder:
            yield _downloaded(source, folder)
    else:
        raise EntryError(
            f"no folder {source}: expected a folder of entries, which `codesyntax export` writes, or a "
            "results repository on the Hub, user/results"
        )


def _downloaded(source: str, folder: Path) -> _Source:
    """The entries of a results repository at one commit; ledgers are downloaded when they are asked
    for."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    from codesyntax_dataset.network import limit_waiting
    from probing.publish.client import check_repo, plain_errors

    repo, _, revision = source.partition("@")
    check_repo(repo)
    limit_waiting()
    api = HfApi()
    with plain_errors(repo):
        commit = str(api.dataset_info(repo, revision=revision or None).sha)
        tree = api.list_repo_tree(repo, repo_type="dataset", revision=commit, recursive=True)
        sizes = {item.path: item.size for item in tree if isinstance(item, RepoFile)}

    def download(name: str) -> Path:
        with plain_errors(repo):
            file = api.hf_hub_download(
                repo, name, repo_type="dataset", revision=commit, local_dir=folder
            )
        return Path(file)

    def ledger(digest: str) -> Path | None:
        name = ledger_file(digest)
        return download(name) if sizes.get(name, math.inf) <= LARGEST_LEDGER else None

    files = [name for name in sizes if name.endswith(SUFFIX)]
    inside = [name for name in files if name.startswith("entries/")]
    refused = []
    for name in sorted(inside or files):
        if reason := _refused(name, sizes[name]):
            refused.append(LeftOut(printable(f"{source}/{name}"), reason))
        else:
            download(name)
    return _Source(folder, source, refused, ledger)


def _refused(name: str, size: int) -> str | None:
    """Why a file of a repository is not downloaded."""
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith("/") or not re.fullmatch(r"[\w./ -]+", name, re.ASCII):
        return "not a plain file name: expected letters, digits, and - _ . within the folder"
    if size > LARGEST_ENTRY:
        return f"the file is larger than {LARGEST_ENTRY:,} bytes"
    return None


# ----------------------------------------------------------------------------- rows and their ranks


def _function_shares(means: Tables, system: str) -> np.ndarray:
    """What each function contributes to the means, in their order: float32 (measures, F)."""
    functions = max((hits.clusters for hits in means.values()), key=len)
    parts = []
    for hits in means.values():
        if hits.counted:
            added = np.zeros((len(hits.measures), len(functions)), np.float32)
            added[:, np.searchsorted(functions, hits.clusters)] = hits.contributions(system)
            parts.append(added)
    return np.concatenate(parts)


def group(rows: Iterable[BoardRow]) -> tuple[list[BoardTable], list[LeftOut]]:
    """The tables of `rows`, the largest of a config first; and the rows that stand in none.

    Of several entries for one model and revision in a table, those that this board verified count,
    otherwise all; where their numbers differ, all stand there, with a remark.
    """
    by_table = defaultdict(list)
    for row in suspicious(list(rows)):
        by_table[row.entry.table].append(row)
    tables = []
    left_out: list[LeftOut] = []
    for name, of_table in by_table.items():
        by_model = defaultdict(list)
        for row in sorted(of_table, key=lambda row: row.file):
            by_model[row.identity].append(row)
        shown = []
        for of_model in by_model.values():
            shown += _rows_shown(of_model, left_out)
        shown.sort(key=lambda row: (row.model.casefold(), row.entry.signature, row.file))
        tables.append(BoardTable(name, shown, _ranks_of(shown)))
    configs = list(CONFIGS)
    tables.sort(
        key=lambda table: (
            table.instrument,
            configs.index(table.settings.config),
            -len(table.rows),
            table.name,
        )
    )
    return tables, left_out


def _rows_shown(rows: list[BoardRow], left_out: list[LeftOut]) -> list[BoardRow]:
    """Those rows of one model and revision that a table shows."""
    verified = [row for row in rows if row.verified]
    for row in rows:
        if verified and not row.verified:
            why = f"the same model and revision as {verified[0].file}, which this board verified"
            left_out.append(LeftOut(row.file, why))
    numbers: dict[str, BoardRow] = {}
    for row in verified or rows:
        first = numbers.setdefault(row.entry.numbers, row)
        if first is not row:
            why = f"the same model, revision and numbers as {first.file}"
            left_out.append(LeftOut(row.file, why))
    if len(numbers) == 1:
        return [*numbers.values()]
    return [row.remarked([CONFLICT]) for row in numbers.values()]


def suspicious(rows: list[BoardRow]) -> list[BoardRow]:
    """The same rows; those that may be of another model than they say have remarks."""
    models: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    signs = []
    for row in rows:
        of_row = [("the ledger", digest) for digest in row.entry.digests.values()]
        of_row.append(("the numbers", row.entry.table + row.entry.numbers))
        signs.append(of_row)
        for sign in of_row:
            models[sign].add(row.model.casefold())
    remarked = []
    for row, of_row in zip(rows, signs):
        others: defaultdict[str, set[str]] = defaultdict(set)
        for sign in of_row:
            others[sign[0]] |= models[sign] - {row.model.casefold()}
        remarks = [
            f"{what} of {_first_names(sorted(names))}" for what, names in others.items() if names
        ]
        remarked.append(row.remarked(remarks))
    return remarked


def _first_names(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{names[0]} and {len(names) - 1} more"


def _ranks_of(rows: list[BoardRow]) -> list[dict[Any, tuple[int, int]]]:
    measures = list(rows[0].means)
    ranked = [ranks(np.stack(shares)) for shares in zip(*(row.shares for row in rows))]
    return [dict(zip(measures, of_row)) for of_row in zip(*ranked)]
