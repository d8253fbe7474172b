"""The board: a comparison of published entries. `probing.report.board` writes it.

An entry is the output of `Evidence.entry()` for one model on one config, or of `entry_masked.make`, of which
`board_masked` makes tables by the same rules. The rules, which the page explains:

- *Tables.* Entries share a table only if their signatures agree in everything but the model, and they were scored and
  chosen on the same functions. `also-fits` says how functions were selected; their positions, edges and all scores of
  the baselines show that they are the same. Nothing is ranked across tables.
- *Ranks* are ranges, from a paired test of each two models on these functions (`ranks`). A model ranks below those that
  are significantly better and above those that are significantly worse; it is tied with the others. Baselines and the
  paper's models have no rank.
- *Duplicates.* Of several entries for one model and revision in a table, the one with the lowest held-out score at
  k = 1 by the rule `first` is kept, so that repeating a run to get a higher number is pointless.

The same entries give the same bytes, regardless of their order.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import temporary_folder, write
from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import (
    BASELINES,
    BEST_BASELINE,
    BEYOND_OFFSET,
    HELD_OUT,
    PROTOCOLS,
    PUBLISHED,
    TABLE_KS,
)
from codesyntax_dataset.safe_files import printable
from codesyntax_metric.topk_uas import RULES
from probing.evidence.entry import LARGEST, load
from probing.evidence.entry_functions import CELLS, unpack
from probing.evidence.schema import Entry, EntrySettings, MaskEntry
from probing.evidence.selection import SAME_RELATIONS
from probing.publish import board_masked
from probing.publish.board_masked import MaskedRow, MaskedTable
from probing.publish.tables import LeftOut, by_table, ranks

BEST_FIRST = (BEST_BASELINE, *BASELINES[:-1])
"""As in entries, in the order of the page; `combined` is the best one (Shen et al. 2022, section 4)."""

SHOWN = [*CELLS, *((mean, rule, k) for mean in (SAME_RELATIONS, BEYOND_OFFSET) for rule in RULES for k in TABLE_KS)]
"""The means that a board shows, always listed in this order."""

_LONGEST = 1800  # seconds to read a repository
_MOST_ITEMS = 100_000  # files of a repository that are looked at

MOST_FILES = 2000
MOST_BYTES = 2 * 10**9
"""The most JSON files that a board reads, and their most bytes in total."""


class Cell(NamedTuple):
    """A score in percent with its 95 % interval, and its difference to the combined baseline; None if unknown."""

    score: float
    low: float | None = None
    high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None


class Found(NamedTuple):
    """The score of a relation in percent with its 95 % interval (None for few functions), and its attention head."""

    score: float
    low: float | None
    high: float | None
    layer: int
    head: int


@dataclass(frozen=True)
class Row:
    """The part of an entry that a board shows.

    `shared`: the values that all rows of its table share, by name. `cells`: one for each of SHOWN; `baselines`: name ->
    the same for a baseline. `relations`: name -> edges, functions, whether these are few, whether it is in the mean.
    `found`: name -> for each of CELLS the score of the model's head, None without a head; `combined`: name -> the same
    for the combined baseline. `functions`: a digest of the functions with their edges, also the hard ones, and of the
    baseline's hits; `shares`: float32 (SHOWN, F), each function's contribution to a score. `verified`: how many
    functions were probed again before it was sent, and of how many.
    """

    file: str
    signature: str
    settings: EntrySettings
    skips: dict[str, int]
    ledgers: dict[str, str]
    versions: dict[str, str]
    shared: dict[str, str]
    cells: list[Cell | None]
    baselines: dict[str, list[Cell | None]]
    relations: dict[str, tuple[int, int, bool, bool]]
    found: dict[str, list[Found | None]]
    combined: dict[str, list[float | None]]
    functions: str
    shares: np.ndarray = field(compare=False, repr=False)
    verified: tuple[int, int] | None

    @property
    def key(self) -> str:
        """Equal for rows of one table: a digest of what they share, the edges and every score of the baselines."""
        same = [
            self.shared,
            self.functions,
            sorted(self.relations.items()),
            [
                [cell and [_rounded(value) for value in cell[:3]] for cell in self.baselines[name]]
                for name in BEST_FIRST
            ],
            [[score if score is None else _rounded(score) for score in self.combined[name]] for name in self.relations],
        ]
        return hashlib.sha256(json.dumps(same).encode()).hexdigest()[:12]

    @property
    def model(self) -> str:
        return self.settings.model

    @property
    def family(self) -> str:
        """The architecture (`model_type` in its configuration), if the probe recorded it."""
        return self.settings.family


@dataclass(frozen=True)
class Table:
    """Comparable rows. `ranks`: for each row and each of SHOWN, the first and the last possible rank, or None."""

    name: str
    rows: list[Row]
    ranks: list[list[tuple[int, int] | None]]

    @property
    def settings(self) -> EntrySettings:
        """The settings of the first row; those in `shared` are equal for all rows."""
        return self.rows[0].settings

    @property
    def shared(self) -> dict[str, str]:
        return self.rows[0].shared

    @property
    def means(self) -> tuple[str, ...]:
        """The means to show: both protocols, SAME_RELATIONS between them if *held-out* lacks relations, and any
        BEYOND_OFFSET."""
        first = self.rows[0]
        lacks = any(first.relations[name][-1] and found[0] is None for name, found in first.found.items())
        both = (HELD_OUT, SAME_RELATIONS, PUBLISHED) if lacks else PROTOCOLS
        has_hard = first.cells[SHOWN.index((BEYOND_OFFSET, RULES[0], TABLE_KS[0]))] is not None
        return (*both, BEYOND_OFFSET) if has_hard else both


@dataclass
class Board:
    """Tables, the largest of a config first, and the files left out. Its length is the number of rows.

    `masked`: the tables on masked syntax.
    """

    tables: list[Table]
    left_out: list[LeftOut]
    masked: list[MaskedTable] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(table.rows) for table in self.tables) + sum(len(table.rows) for table in self.masked)


@checked
def read(sources: Sequence[str | os.PathLike]) -> Board:
    """Read the entries of `sources`: folders, or results repositories on the Hub (`user/results`, or with `@revision`).

    Reads the JSON files in the folder `entries` if there is one, otherwise all. Files that fail a check are left out
    with the reason. Raises EntryError for an invalid source, one without JSON files, or one with too much to read.
    """
    rows: list[Row] = []
    masked: list[MaskedRow] = []
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
                    entry = load(path)
                except EntryError as error:
                    left_out.append(LeftOut(name, printable(str(error).replace(str(path), path.name))))
                    continue
                if isinstance(entry, MaskEntry):
                    masked.append(board_masked.row(name, entry))
                else:
                    rows.append(_row(name, entry))
    tables, twice = group(rows)
    masked_tables, masked_twice = board_masked.group(masked)
    return Board(tables, sorted(left_out + twice + masked_twice), masked_tables)


def group(rows: Iterable[Row]) -> tuple[list[Table], list[LeftOut]]:
    """The tables of `rows`, and the duplicates."""
    by_key, twice = by_table(rows, lowest_score_first)
    configs = list(CONFIGS)
    tables = []
    for key, kept in by_key.items():
        name = f"{kept[0].settings.config}.{kept[0].settings.direction}.{key}"
        ranked = [ranks(np.stack([row.shares[place] for row in kept])) for place in range(len(SHOWN))]
        row_ranks = [
            [rank if cell else None for cell, rank in zip(row.cells, row_ranks)]
            for row, row_ranks in zip(kept, zip(*ranked))
        ]
        tables.append(Table(name, kept, row_ranks))
    tables.sort(key=lambda table: (configs.index(table.settings.config), -len(table.rows), table.name))
    return tables, twice


def _row(file: str, entry: Entry) -> Row:
    """The row of a valid entry."""
    scored_on, chosen_on = (signature.parts for signature in entry.signatures)
    shared = {name: value for name, value in scored_on.items() if name not in ("model", "also-fits")}
    shared |= {f"{name} chosen on": chosen_on[name] for name in ("labels", "functions", "edges")}
    shared["functions of the split"] = str(entry.functions + sum(entry.skips.values()))
    of_protocol = {protocol: entry.protocols[protocol]["relations"] for protocol in PROTOCOLS}
    baseline = {protocol: entry.baselines[protocol]["combined"]["relations"] for protocol in PROTOCOLS}
    alike, nothing = entry.same_relations, {rule: dict.fromkeys(TABLE_KS) for rule in RULES}
    hard = entry.beyond_offset or {"scores": nothing, "combined": nothing, "differences": nothing}
    scores = {
        **{protocol: entry.protocols[protocol]["scores"] for protocol in PROTOCOLS},
        SAME_RELATIONS: alike["scores"],
        BEYOND_OFFSET: hard["scores"],
    }
    differences = {
        **entry.differences,
        SAME_RELATIONS: alike["differences"],
        BEYOND_OFFSET: hard["differences"],
    }
    baselines = {
        **{protocol: {name: of["scores"] for name, of in entry.baselines[protocol].items()} for protocol in PROTOCOLS},
        SAME_RELATIONS: alike["baselines"],
        BEYOND_OFFSET: {**dict.fromkeys(BEST_FIRST, nothing), BEST_BASELINE: hard["combined"]},
    }
    by_function = unpack(entry)
    same = [by_function.places, by_function.edges, by_function.hard]
    same += [by_function.hits[protocol]["combined"] for protocol in (*PROTOCOLS, BEYOND_OFFSET)]
    named = json.dumps(by_function.relations[BEYOND_OFFSET]).encode()
    relations = {
        name: (of["edges"], of["functions"], of["few_functions"], of["in_mean"])
        for name, of in sorted(of_protocol["published"].items())
    }
    return Row(
        file=file,
        signature=entry.signature,
        settings=entry.settings,
        skips=entry.skips,
        ledgers=entry.ledgers.model_dump(),
        versions=entry.versions,
        shared=shared,
        cells=[_cell(scores[mean][rule][k], differences[mean][rule].get(k)) for mean, rule, k in SHOWN],
        baselines={name: [_cell(baselines[mean][name][rule][k]) for mean, rule, k in SHOWN] for name in BEST_FIRST},
        relations=relations,
        found={
            name: [_found(of_protocol[protocol], name, rule, k) for protocol, rule, k in CELLS] for name in relations
        },
        combined={
            name: [
                baseline[protocol][name][rule][k] if name in baseline[protocol] else None for protocol, rule, k in CELLS
            ]
            for name in relations
        },
        functions=hashlib.sha256(b"".join([named, *(numbers.astype("<u4").tobytes() for numbers in same)])).hexdigest(),
        shares=np.concatenate(
            [
                by_function.shares(mean).reshape(-1, entry.functions)
                for mean in (*PROTOCOLS, SAME_RELATIONS, BEYOND_OFFSET)
            ]
        ).astype(np.float32),
        verified=(entry.verified.functions, entry.verified.of) if entry.verified else None,
    )


def _cell(score: list[float] | None, difference: dict[str, Any] | None = None) -> Cell | None:
    if score is None:
        return None
    value, low, high = score
    if difference is None:
        return Cell(value, low, high)
    less, less_low, less_high = difference["difference"]
    return Cell(value, low, high, less, less_low, less_high, difference["p"])


def _found(relations: dict[str, Any], name: str, rule: str, k: str) -> Found | None:
    if name not in relations:
        return None
    chosen = relations[name][rule][k]
    score, low, high = chosen["score"]
    return Found(score, low, high, chosen["layer"], chosen["head"])


def _rounded(score: float | None) -> float | None:
    """Round so that 50.0 and 50, and 0.0 and -0.0, are equal: JSON distinguishes them, but tools may convert them."""
    return None if score is None else round(float(score), 4) + 0.0


def lowest_score_first(row: Row) -> tuple[float, str]:
    """The sort key for rows of the same model, of which the first is kept."""
    cell = row.cells[0]
    return (0.0 if cell is None else cell.score), row.file


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
