"""The board: a comparison of published entries. `probing.report.board` writes it.

The rules, which the page explains:

- *Tables.* Entries share a table only if their settings agree in everything but the model (`Entry.shared`), and they
  have the same functions, edges and baselines (`Entry.content`). Nothing is ranked across tables.
- *Ranks* are ranges, from a paired test of each two models on these functions (`tables.ranks`). A model ranks below
  those that are significantly better and above those that are significantly worse; it is tied with the others.
  Baselines and the paper's models have no rank.
- *Duplicates.* Of several entries for one model and revision in a table, the one with the lowest headline is kept, so
  that repeating a run to get a higher number is pointless.

The same entries give the same bytes, regardless of their order.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import temporary_folder, write
from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.safe_files import printable
from probing.evidence.entry import LARGEST, Entry, load
from probing.evidence.entry_attention import AttentionEntry
from probing.evidence.entry_masked import MaskedEntry
from probing.evidence.statistics_cache import caching
from probing.publish.tables import BoardTable, LeftOut, group, rows_of

INSTRUMENTS: tuple[type[Entry], ...] = (AttentionEntry, MaskedEntry)
"""Whose entries are read: `load` knows an instrument once its class is imported."""

_LONGEST = 1800  # seconds to read a repository
_MOST_ITEMS = 100_000  # files of a repository that are looked at

MOST_FILES = 2000
MOST_BYTES = 2 * 10**9
"""The most JSON files that a board reads, and their most bytes in total."""


@dataclass
class Board:
    """Tables, by instrument and config, the largest first; and the files left out. Its length is the number of rows."""

    tables: list[BoardTable]
    left_out: list[LeftOut]

    def __len__(self) -> int:
        return sum(len(table.rows) for table in self.tables)

    def of(self, instrument: str) -> list[BoardTable]:
        """The tables of an instrument."""
        return [table for table in self.tables if table.instrument == instrument]


@checked
def read(sources: Sequence[str | os.PathLike]) -> Board:
    """Read the entries of `sources`: folders, or results repositories on the Hub (`user/results`, or with `@revision`).

    Reads the JSON files in the folder `entries` if there is one, otherwise all. Files that fail a check are left out
    with the reason. Raises EntryError for an invalid source, one without JSON files, or one with too much to read.
    """
    entries: list[tuple[str, Entry]] = []
    left_out: list[LeftOut] = []
    files = of_bytes = 0
    for source in sorted({str(source) for source in sources}):
        with _opened(source) as (folder, called, refused):
            left_out += refused
            try:
                paths = list(_paths(folder))
                size = sum(min(path.lstat().st_size, LARGEST) for path in paths)  # no more is read of one file
            except OSError as error:
                raise EntryError(f"{source} cannot be read: {error}") from error
            if not paths and not refused:
                raise EntryError(
                    f"{source} has no JSON file: expected the folder `entries` that `codesyntax report` writes, or a "
                    "results repository that `codesyntax submit --board` contributes to"
                )
            files += len(paths)
            of_bytes += size
            _check_amount(source, files, of_bytes)
            for path in paths:
                name = printable(f"{called}/{path.relative_to(folder).as_posix()}")
                try:
                    entries.append((name, load(path)))
                except EntryError as error:
                    left_out.append(LeftOut(name, printable(str(error).replace(str(path), path.name))))
    with caching():
        tables, duplicates = group(rows_of(entries))
    return Board(tables, sorted(left_out + duplicates))


@contextlib.contextmanager
def _opened(source: str) -> Iterator[tuple[Path, str, list[LeftOut]]]:
    """The folder with the entries of `source`, its name, and files that were not downloaded."""
    path = Path(source)
    if os.path.isdir(path):
        yield path, path.resolve().name, []
    elif re.fullmatch(r"[\w.-]+/[\w.-]+(@.+)?", source) and not os.path.exists(path):
        with temporary_folder(Path(tempfile.gettempdir())) as folder:
            yield folder, source, _download(source, folder)
    else:
        raise EntryError(
            f"{source} is neither a folder nor a results repository on the Hub: expected a folder of entries, such as "
            "report/entries, or user/results"
        )


def _download(source: str, folder: Path) -> list[LeftOut]:
    """Download the JSON files of a results repository at one commit; return those that are refused."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    from codesyntax_dataset.network import limit_waiting, within
    from probing.publish.client import check_repo, fetch, plain_errors

    repo, _, revision = source.partition("@")
    check_repo(repo)
    limit_waiting()
    with plain_errors(repo), within(_LONGEST):
        commit = str(HfApi().dataset_info(repo, revision=revision or None).sha)
        tree = HfApi().list_repo_tree(repo, repo_type="dataset", revision=commit, recursive=True)
        items = islice(tree, _MOST_ITEMS)
        found = {item.path: item.size for item in items if isinstance(item, RepoFile) and item.path.endswith(".json")}
        if any(name.startswith("entries/") for name in found):
            found = {name: size for name, size in found.items() if name.startswith("entries/")}
        refused = {name: reason for name, size in found.items() if (reason := _refused(name, size))}
        wanted = sorted(found.keys() - refused.keys())
        _check_amount(source, len(wanted), sum(found[name] for name in wanted))
        for name in wanted:
            write(folder / name, fetch(repo, name, commit, found[name]))
    return [LeftOut(printable(f"{source}/{name}"), reason) for name, reason in refused.items()]


def _refused(name: str, size: int) -> str | None:
    """Why a file of a repository is not downloaded."""
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith("/") or not re.fullmatch(r"[\w./ -]+", name, re.ASCII):
        return "not a plain file name: expected letters, digits, and - _ . within the folder"
    return f"the file is larger than {LARGEST:,} bytes" if size > LARGEST else None


def _paths(folder: Path) -> Iterator[Path]:
    """Yield the JSON files of a folder, and links to other folders, by name. Hidden ones are ignored.

    Raises OSError for a folder that cannot be read.
    """
    entries = folder / "entries"
    if entries.is_dir() and not entries.is_symlink():
        folder = entries
    for root, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        for name in sorted([*links, *(name for name in files if name.endswith(".json") and not name.startswith("."))]):
            yield Path(root, name)


def _raise(error: OSError) -> None:
    raise error


def _check_amount(source: str, files: int, size: int) -> None:
    if files > MOST_FILES or size > MOST_BYTES:
        raise EntryError(
            f"too much to read with {source}: {files:,} files of {size:,} bytes together, expected at most "
            f"{MOST_FILES:,} files and {MOST_BYTES:,} bytes; make a board of some of them"
        )
