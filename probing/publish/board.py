"""The board: models side by side. `probing.report.board` writes it.

The rules, which the page explains:

- *Verified rows* are runs of whoever makes the board: their numbers are those that came out here,
  whatever is claimed, which stands beside them where it differs. A forgery gains nothing.
- *Claimed rows* follow from the ledgers that were sent, on all functions of the data. They stand in
  a table of their own, at most MOST_CLAIMED of an owner, newest first, and take part in no rank and
  no test.
- *Tables.* Rows share one only if their settings agree in everything but the model (`table_of`).
- *Ranks* are ranges, from a paired test of each two verified models (`ranks_of`): a model ranks below
  those that are significantly better and above those that are significantly worse.

What follows from a ledger is kept in the cache, and so is each finished part of a run: a board that
was interrupted goes on, and gives the same bytes.
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import Paths, checked
from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import CodeSyntaxError, LedgerError, ModelError, SubmissionError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.safe_files import printable
from codesyntax_dataset.twins import COLUMN as TWIN_COLUMN
from probing.evidence.headlines import Headline, Mean, Means
from probing.evidence.submission import Submission, branch_of, headline_of, name_of, scores
from probing.instruments.registry import INSTRUMENTS
from probing.models import cache_dir
from probing.models.location import EMBEDDED_MODELS
from probing.publish import sources as places
from probing.publish.sources import Found, LeftOut
from probing.runs.clusters import CLUSTERS, FUNCTION, REPOSITORY, units_of
from probing.runs.data import read_functions
from probing.runs.experiment import key_of, run_kept
from probing.runs.ledger_file import instrument_of
from probing.runs.records import JsonObject
from probing.runs.repositories import COLUMN as REPOSITORY_COLUMN
from probing.runs.session import Session
from probing.stats import hits_file
from probing.stats.intervals import Estimate, family, ranks_of

logger = logging.getLogger(__name__)

MOST_CLAIMED = 10
"""Claimed rows of one owner, of one instrument on one config: settings could be any."""

_COMMIT = 40  # digits

MeanAndMeasure = tuple[str, Any]
"""The name of a mean, and a measure."""


@dataclass(frozen=True, eq=False)
class BoardRow:
    """A model and what follows from its results.

    `file`: of the submission; `kept`: the file of the cache with the hits; `about`: what is known of
    these, as of `_save`; `means`, `differences`: the scores of the model, and how much more they are
    than those of its rival; `verified`: None for a row that is claimed, else the branch or tag of its
    weights, empty if it is not on the Hub; `claimed`: of a verified row, the scores that were sent;
    `ranks`: the first and the last possible rank.
    """

    file: str
    kept: Path
    about: JsonObject
    means: Mapping[MeanAndMeasure, Estimate]
    differences: Mapping[MeanAndMeasure, Estimate]
    verified: str | None = None
    claimed: Mapping[MeanAndMeasure, Estimate] = field(default_factory=dict)
    ranks: Mapping[MeanAndMeasure, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, file: str, kept: Path, about: JsonObject, **more: Any) -> BoardRow:
        means, differences = {}, {}
        for name, measure, own, difference in about["scores"]:
            cell = name, tuple(measure) if isinstance(measure, list) else measure
            means[cell] = Estimate(*own)
            differences[cell] = Estimate(*difference)
        slim = {name: value for name, value in about.items() if name not in ("scores", "chosen")}
        return cls(file, kept, slim, means, differences, **more)

    @property
    def model(self) -> str:
        return str(self.about["model"])

    @property
    def made(self) -> JsonObject:
        """How the ledger on the split that is scored was made."""
        return self.about["made"]["test"]

    @property
    def revision(self) -> str:
        return str(self.made["settings"]["revision"])

    @property
    def identity(self) -> tuple[str, str, str]:
        """Table, model and revision; the Hub ignores the case of names."""
        return name_of(self.about["table"]), self.model.casefold(), self.revision

    def read(self) -> Means:
        """The means with their hits."""
        tables, about = hits_file.load(self.kept)
        return {name: Mean(hits, about["chosen"][name]) for name, hits in tables.items()}


@dataclass(frozen=True, eq=False)
class BoardTable:
    """Comparable rows, sorted by model: those that this board `verified`, and those that are
    `claimed`."""

    verified: list[BoardRow]
    claimed: list[BoardRow]

    @property
    def rows(self) -> list[BoardRow]:
        return self.verified + self.claimed

    @property
    def shared(self) -> dict[str, str]:
        """What all rows share."""
        return self.rows[0].about["table"]

    @cached_property
    def name(self) -> str:
        return name_of(self.shared)

    @property
    def headline(self) -> Headline:
        return INSTRUMENTS[self.shared["instrument"]].headline


@dataclass
class Board:
    """Tables, by instrument and config, the largest first; and the files left out. Its length is
    the number of rows. `requests`: results repository -> the numbers of its open pull requests."""

    tables: list[BoardTable]
    left_out: list[LeftOut]
    requests: dict[str, list[int]]

    def __len__(self) -> int:
        return sum(len(table.rows) for table in self.tables)


@checked
def read(
    sources: Paths,
    data: Any,
    *,
    verify: bool = False,
    device: str | None = None,
) -> Board:
    """Read submissions; those that cannot stand on a board are left out with the reason.

    Args:
        sources: folders of results, or results repositories on the Hub (`user/results`, or with
            `@revision`).
        data: the location of the dataset, of which the submissions must be.
        verify: run each model here.
        device: where it runs.

    Raises:
        SubmissionError: for an invalid source, and if nothing can stand on the board.
    """
    reader = _Reader(data, device, verify)
    requests = {}
    with ExitStack() as stack:
        for source in sorted({str(source) for source in sources}):
            found, refused = places.opened(source, stack)
            reader.left_out += refused
            if "/" in source and "@" not in source and not Path(source).exists():
                requests[source] = [*places.requests_of(source)]
            reader.add(found)
    tables = _board_tables(reader.rows)
    if not tables:
        reasons = [f"{file} ({reason})" for file, reason in sorted(reader.left_out)]
        reasons += [waiting(repo, number) for repo in requests for number in requests[repo]]
        first = reasons[0] if reasons else "there are no ledgers in " + ", ".join(map(str, sources))
        more = f", and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
        raise SubmissionError(f"nothing can stand on a board: {first}{more}")
    return Board(tables, sorted(reader.left_out), requests)


def waiting(repo: str, number: int) -> str:
    """What to do about an open pull request."""
    return (
        f"pull request {number} of {repo} is open: merge it, or read it as {repo}@refs/pr/{number}"
    )


class _Split(NamedTuple):
    """Of a split of the data: its labels, its functions, and a digest of the labels, the
    repositories and the near copies."""

    labels: str
    functions: int
    digest: str


class _Reader:
    """Reads submissions, and runs them if `verify` asks for that."""

    def __init__(self, data: Any, device: str | None, verify: bool):
        self.data, self.device, self.verify = data, device, verify
        self.folder = cache_dir.place()
        self.rows: list[BoardRow] = []
        self.left_out: list[LeftOut] = []
        self._claimed: Counter[tuple[str, str]] = Counter()
        self._own: dict[tuple, BoardRow | CodeSyntaxError] = {}
        self._whole: dict[str, Any] = {}
        self._split = cache(self._read_split)

    def _read_split(self, config: str, split: str) -> _Split:
        functions = read_functions(self.data, config, split)
        table = functions.table
        alike = [name for name in (REPOSITORY_COLUMN, TWIN_COLUMN) if name in table.column_names]
        digest = cache_dir.key([functions.labels, table.select(alike).to_pydict()])
        return _Split(functions.labels, len(table), digest)

    def add(self, found: list[Found]) -> None:
        """Read what was found, the newest first."""
        for each in sorted(found, key=lambda each: (-each.date, each.called)):
            try:
                self._add(each)
            except CodeSyntaxError as error:
                self.left_out.append(LeftOut(each.called, printable(str(error))))

    def _add(self, found: Found) -> None:
        owner = found.origin.owner
        if not self.verify:
            self._room(owner, found.origin.table)
        claimed = self._claim(found)
        if self.verify and (own := self._run(claimed)):
            for row in self.rows:
                if row.verified is not None and row.identity == own.identity:
                    raise SubmissionError(f"of the same model and settings as {row.file}")
            self.rows.append(own)
            return
        self._claimed[self._room(owner, claimed.identity[0])] += 1
        self.rows.append(claimed)

    def _room(self, owner: str, table: str) -> tuple[str, str]:
        """An owner, with the config and instrument of a table. Raises SubmissionError if no more of
        them are shown as claimed. Local models, and those of the Hub without an owner, have none."""
        room = owner.casefold(), table.rpartition(".")[0]
        if owner and self._claimed[room] >= MOST_CLAIMED:
            raise SubmissionError(f"{MOST_CLAIMED} newer ones of this owner are shown as claimed")
        return room

    # ------------------------------------------------------------------------------ what is claimed

    def _claim(self, found: Found) -> BoardRow:
        """What follows from the ledgers of a submission, which are read once for the same data;
        raises SubmissionError if nothing does."""
        kept = self._place("submission", found.known_by)
        about = hits_file.about_in(kept)
        if about is None or about["data"] != self._digests(about["made"]):
            about = self._follow(found, kept)
        if "refused" in about:
            raise SubmissionError(about["refused"])
        return BoardRow.of(found.called, kept, about)

    def _follow(self, found: Found, kept: Path) -> JsonObject:
        """Keep what follows from the ledgers of a submission, or why nothing does."""
        made: JsonObject = {}
        digests: list[str] = []
        try:
            submission = _read_submission(found)
            made = submission.made
            digests = self._digests(made)
            for split, result in submission.results.items():
                if result.settings.labels != self._split(result.settings.config, split).labels:
                    raise SubmissionError("its labels are not those of the data")
            model = found.origin.model or submission.settings.model
            return self._save(kept, submission, model)
        except (SubmissionError, LedgerError) as error:
            about = {"refused": str(error), "made": made, "data": digests}
            hits_file.save(kept, {}, about)
            return about

    def _digests(self, made: JsonObject) -> list[str]:
        """Those of the data, of the configs and splits of ledgers that were `made` so."""
        return [
            self._split(each["settings"]["config"], split).digest for split, each in made.items()
        ]

    def _place(self, *key: Any) -> Path:
        return self.folder / f"{cache_dir.key(key)}.npz"

    def _save(self, kept: Path, submission: Submission, model: str) -> JsonObject:
        """Keep what follows from the results of a model; return what is known of it but the
        hits."""
        result, headline = submission.result, submission.headline
        of_data = ("config", "direction", "node_types")
        key = repr([result.instrument, *(getattr(result.settings, name, None) for name in of_data)])
        if key not in self._whole:
            self._whole[key] = headline.whole(self.data, result.settings)
        means = headline.means(submission.results, self._whole[key])
        own = scores(means, headline.system)
        over = scores(means, headline.system, headline.rival)
        hits = next(iter(means.values())).hits  # of pairs they are by repository
        units = units_of(hits.over) if result.UNIT == FUNCTION else CLUSTERS[REPOSITORY]
        about = {
            "instrument": result.instrument,
            "model": model,
            "over": units,
            "signature": result.signature,
            "functions": self._split(result.settings.config, result.settings.split).functions,
            "table": submission.table,
            "made": submission.made,
            "data": self._digests(submission.made),
            "chosen": {name: mean.chosen for name, mean in means.items()},
            "scores": [[*cell, own[cell], over[cell]] for cell in own],
        }
        hits_file.save(kept, {name: mean.hits for name, mean in means.items()}, about)
        return about

    # -------------------------------------------------------------------------------- our own runs

    def _run(self, claimed: BoardRow) -> BoardRow | None:
        """The row of a run of the model here, the same for the same model and settings; None if it
        cannot be run. Raises SubmissionError if its weights are of no branch or tag."""
        key = claimed.identity
        if key not in self._own:
            try:
                self._own[key] = self._ran(claimed)
            except CodeSyntaxError as error:
                self._own[key] = error
                logger.warning("%s could not be run: %s", claimed.file, printable(str(error)))
        own = self._own[key]
        if isinstance(own, SubmissionError):
            raise own
        return own if isinstance(own, BoardRow) else None

    def _ran(self, claimed: BoardRow) -> BoardRow:
        branch = ""
        if len(claimed.revision) == _COMMIT:
            branch = branch_of(claimed.model, claimed.revision)
        instrument = INSTRUMENTS[claimed.about["instrument"]]
        made = {
            split: instrument.result.PROVENANCE.model_validate(of_split)
            for split, of_split in claimed.about["made"].items()
        }
        session = self._session(claimed, made["test"].settings)
        experiments = {
            split: instrument.experiment.again(of_split, session, self.data)
            for split, of_split in made.items()
        }
        keys = [key_of(experiment) for experiment in experiments.values()]
        kept = self._place("board", keys, claimed.revision)
        about = hits_file.about_in(kept)
        if None in keys or about is None or about["data"] != self._digests(about["made"]):
            results = {split: run_kept(experiment) for split, experiment in experiments.items()}
            if results["test"].settings.revision != claimed.revision:
                experiments["test"].functions  # noqa: B018 - loads the model
                if not session.is_of(claimed.revision):
                    raise ModelError(f"{claimed.model} has other weights than {claimed.revision}")
            about = self._save(kept, Submission(results), claimed.model)
        return BoardRow.of(claimed.file, kept, about, verified=branch, claimed=claimed.means)

    def _session(self, claimed: BoardRow, settings: Any) -> Session:
        """The model of a repository, an embedded one, or one in the working directory; never from
        where a submission says that it is."""
        name = claimed.model
        if "/" not in name and name not in EMBEDDED_MODELS and not Path(name).is_dir():
            raise ModelError(f"{name} is not in the working directory")
        return Session(
            name,
            revision=claimed.revision if len(claimed.revision) == _COMMIT else None,
            dtype=getattr(settings, "precision", "float32"),
            device=self.device,
            max_length=settings.max_length,
        )


def _read_submission(found: Found) -> Submission:
    """Raises SubmissionError or LedgerError for what no board takes."""
    results: dict[str, Any] = {}
    for file in found.files:
        path = file.get()
        instrument = instrument_of(path)
        headline_of(instrument)
        result = INSTRUMENTS[str(instrument)].result.from_file(path)
        if results.setdefault(result.settings.split, result) is not result:
            raise SubmissionError(f"there are two ledgers of the split {result.settings.split}")
    submission = Submission(results)
    submission.check()
    model = submission.settings.model
    theirs = found.origin.model
    if theirs and "/" in model and model.casefold() != theirs.casefold():
        raise SubmissionError(f"it is of {model}, but lies in the folder of {theirs}")
    return submission


# ----------------------------------------------------------------------------- tables and their ranks


def _board_tables(rows: list[BoardRow]) -> list[BoardTable]:
    """The tables of rows, the largest of a config first."""
    by_table: defaultdict[str, list[BoardRow]] = defaultdict(list)
    for row in rows:
        by_table[row.identity[0]].append(row)
    tables = []
    for of_table in by_table.values():
        of_table.sort(key=lambda row: (row.model.casefold(), row.about["signature"], row.file))
        verified = [row for row in of_table if row.verified is not None]
        claimed = [row for row in of_table if row.verified is None]
        tables.append(BoardTable(_with_ranks(verified), claimed))
    instruments, configs = list(INSTRUMENTS), list(CONFIGS)

    def order(table: BoardTable) -> tuple:
        of_instrument = instruments.index(table.shared["instrument"])
        of_config = configs.index(table.shared["config"])
        return of_instrument, of_config, -len(table.verified), table.name

    return sorted(tables, key=order)


def _with_ranks(rows: list[BoardRow]) -> list[BoardRow]:
    """Verified rows with their ranks, and with p of differences corrected for all of them (Holm)."""
    if not rows:
        return []
    system = INSTRUMENTS[rows[0].about["instrument"]].headline.system
    # what each function or repository adds, in files: models are many
    added: dict[MeanAndMeasure, np.ndarray] = {}
    with temporary_folder(Path(tempfile.gettempdir())) as scratch:
        for number, row in enumerate(rows):
            for name, mean in row.read().items():
                hits = mean.hits.drawn
                cells = product([name], hits.measures)
                for cell, of_cell in zip(cells, hits.contributions(system)):
                    if cell not in added:
                        shape = len(rows), len(of_cell)
                        file = scratch / f"{len(added)}"
                        added[cell] = np.memmap(file, np.float32, "w+", shape=shape)
                    added[cell][number] = of_cell
        places = {cell: ranks_of(added[cell]) for cell in rows[0].means}
    tested = {cell: family([row.differences[cell] for row in rows]) for cell in places}
    return [
        replace(
            row,
            ranks={cell: of_cell[number] for cell, of_cell in places.items()},
            differences={cell: of_cell[number] for cell, of_cell in tested.items()},
        )
        for number, row in enumerate(rows)
    ]
