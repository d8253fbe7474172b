"""The board: models side by side. `probing.report.board` writes it.

The rules, which the page explains:

- *Verified rows* are runs of whoever makes the board: their numbers are those that came out here,
  whatever is claimed, which stands beside them where it differs. A forgery gains nothing.
- *Claimed rows* follow from the ledgers that were sent, on all functions of the data. They stand in
  a table of their own, at most MOST_CLAIMED of an owner, newest first, and take part in no rank and
  no test.
- *Tables.* Rows share one only if their settings agree in everything but the model (`table_of`).
- *Ranks* are ranges, from a paired test of each two verified models (`ranks`): a model ranks below
  those that are significantly better and above those that are significantly worse.

What follows from a ledger is kept in the cache, and so is each finished part of a run: a board that
was interrupted goes on, and gives the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from codesyntax_dataset.arguments import Paths, checked
from codesyntax_dataset.errors import (
    CodeSyntaxError,
    DatasetError,
    HubError,
    LedgerError,
    ModelError,
    SubmissionError,
    UnknownName,
)
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.safe_files import printable
from probing.evidence.headlines import Headline, Mean, Means
from probing.evidence.submission import (
    check_settings,
    check_splits,
    headline_of,
    name_of,
    scores,
    table_of,
)
from probing.instruments.registry import INSTRUMENTS
from probing.models import cache_dir
from probing.models.location import EMBEDDED_MODELS, reference_of
from probing.publish import sources as places
from probing.publish.sources import Found, LeftOut
from probing.runs.data import read_functions
from probing.runs.experiment import key_of, run_kept
from probing.runs.ledger_file import instrument_of
from probing.runs.records import JsonObject
from probing.runs.session import Session
from probing.stats import hits_file
from probing.stats.intervals import Estimate, family, ranks_of

logger = logging.getLogger(__name__)

MOST_CLAIMED = 10
"""Claimed rows of one owner in one table."""

_COMMIT = 40  # digits

MeanAndMeasure = tuple[str, Any]
"""The name of a mean, and a measure."""


@dataclass(frozen=True, eq=False)
class BoardRow:
    """A model and what follows from its results.

    `file`: of the submission; `about`: what was run, as of `about_of`; `kept`: the file with the
    hits; `means`, `differences`: the scores of the model, and how much more they are than those of
    its rival; `verified`: None for a row that is claimed, else the branch or tag of its weights,
    empty if it is not on the Hub; `claimed`: of a verified row, the scores that were sent; `ranks`:
    the first and the last possible rank.
    """

    file: str
    about: JsonObject
    kept: Path
    means: Mapping[MeanAndMeasure, Estimate]
    differences: Mapping[MeanAndMeasure, Estimate]
    verified: str | None = None
    claimed: Mapping[MeanAndMeasure, Estimate] = field(default_factory=dict)
    ranks: Mapping[MeanAndMeasure, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, file: str, kept: Path, **more: Any) -> BoardRow:
        means, about = load(kept)
        headline = INSTRUMENTS[about["instrument"]].headline
        own = scores(means, headline.system)
        over = scores(means, headline.system, headline.rival)
        return cls(file, about, kept, own, over, **more)

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
    def identity(self) -> tuple[str, str]:
        """Model and revision; the Hub ignores the case of names."""
        return self.model.casefold(), self.revision

    @property
    def table(self) -> str:
        return json.dumps(self.about["shared"], sort_keys=True)

    @property
    def hits(self) -> Means:
        """The means with their hits, read again."""
        return load(self.kept)[0]


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
        return self.rows[0].about["shared"]

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


def load(kept: Path) -> tuple[Means, JsonObject]:
    """The means in a file of the cache, and what they are about."""
    tables, about = hits_file.load(kept)
    return {name: Mean(hits, about["chosen"][name]) for name, hits in tables.items()}, about


def about_of(results: Mapping[str, Any], model: str, means: Means) -> JsonObject:
    """What is known of results but their numbers: `made`: split -> how its ledger was made."""
    result = results["test"]
    return {
        "instrument": result.instrument,
        "model": model,
        "signature": result.signature,
        "functions": result.functions,
        "shared": table_of(result.instrument, result.PROVENANCE.of(result.ledger)),
        "made": {split: dict(of_split.ledger.settings) for split, of_split in results.items()},
        "chosen": {name: mean.chosen for name, mean in means.items()},
    }


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
    tables = [*_board_tables(reader.rows)]
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


class _Refuted(SubmissionError):
    """A submission that is no claim to show, since the Hub's own word is against it."""


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
        self._labels = cache(lambda config, split: read_functions(data, config, split).labels)

    def _labels_of(self, made: JsonObject) -> list[str]:
        """The labels of the data, of the configs and splits of ledgers that were `made` so."""
        return [self._labels(each["settings"]["config"], split) for split, each in made.items()]

    def add(self, found: list[Found]) -> None:
        """Read what was found, the newest first."""
        for one in sorted(found, key=lambda one: (-one.date, one.called)):
            try:
                self._add(one)
            except (SubmissionError, LedgerError, HubError, DatasetError, UnknownName) as error:
                self.left_out.append(LeftOut(one.called, printable(str(error))))

    def _add(self, found: Found) -> None:
        of_owner = found.owner.casefold(), found.table
        full = self._claimed[of_owner] >= MOST_CLAIMED
        if full and not self.verify:
            raise SubmissionError(f"{MOST_CLAIMED} newer ones of this owner are shown as claimed")
        row = BoardRow.of(found.called, self._kept_file(found))
        if self.verify and (own := self._run(row)):
            if any(other is own for other in self.rows):
                raise SubmissionError(f"of the same model and settings as {own.file}")
            self.rows.append(own)
            return
        if full:
            raise SubmissionError(f"{MOST_CLAIMED} newer ones of this owner are shown as claimed")
        self._claimed[of_owner] += 1
        self.rows.append(row)

    # ------------------------------------------------------------------------------ what is claimed

    def _kept_file(self, found: Found) -> Path:
        """The file with what follows from the ledgers of a submission, which are read once for data
        of the same labels; raises SubmissionError if nothing does."""
        file = self.folder / f"{cache_dir.key(['submission', found.known_by])}.npz"
        about = _about_in(file)
        if about is None or about["labels"] != self._labels_of(about["made"]):
            means, about = self._follows(found)
            hits_file.save(file, {name: mean.hits for name, mean in means.items()}, about)
        if "refused" in about:
            raise SubmissionError(about["refused"])
        return file

    def _follows(self, found: Found) -> tuple[Means, JsonObject]:
        """What follows from the ledgers of a submission, or why nothing does."""
        means: Means = {}
        about: JsonObject = {"made": {}}
        try:
            results = _checked_results(found)
            model = found.model or results["test"].settings.model
            about = about_of(results, model, means)
            theirs = [made["settings"]["labels"] for made in about["made"].values()]
            if theirs != self._labels_of(about["made"]):
                raise SubmissionError("its labels are not those of the data")
            headline = INSTRUMENTS[results["test"].instrument].headline
            means = headline.means(results, self._things(results["test"]))
            about = about_of(results, model, means)
        except (SubmissionError, LedgerError) as error:
            about["refused"] = str(error)
        return means, about | {"labels": self._labels_of(about["made"])}

    def _things(self, result: Any) -> Any:
        """What there is to find in the data, for results of such settings."""
        settings = result.settings
        of_data = ("config", "direction", "node_types")
        key = repr([result.instrument, *(getattr(settings, name, None) for name in of_data)])
        if key not in self._whole:
            headline = INSTRUMENTS[result.instrument].headline
            self._whole[key] = headline.whole(self.data, settings)
        return self._whole[key]

    # -------------------------------------------------------------------------------- our own runs

    def _run(self, claimed: BoardRow) -> BoardRow | None:
        """The row of a run of the model here, the same for the same model and settings; None if it
        cannot be run. Raises _Refuted if its weights are of no branch or tag."""
        key = claimed.table, claimed.identity
        if key not in self._own:
            try:
                self._own[key] = self._ran(claimed)
            except CodeSyntaxError as error:
                self._own[key] = error
                logger.warning("%s could not be run: %s", claimed.file, printable(str(error)))
        own = self._own[key]
        if isinstance(own, _Refuted):
            raise own
        return own if isinstance(own, BoardRow) else None

    def _ran(self, claimed: BoardRow) -> BoardRow:
        instrument = INSTRUMENTS[claimed.about["instrument"]]
        reference = _reference(claimed)
        experiments: dict[str, Any] = {}
        for split, of_split in claimed.about["made"].items():
            provenance = instrument.result.PROVENANCE.model_validate(of_split)
            if not experiments:
                session = self._session(claimed, provenance.settings)
            experiments[split] = instrument.experiment.again(provenance, session, self.data)
        keys = [key_of(experiment) for experiment in experiments.values()]
        file = self.folder / f"{cache_dir.key(['board', keys, claimed.revision])}.npz"
        if None in keys or _about_in(file) is None:
            results = {split: run_kept(experiment) for split, experiment in experiments.items()}
            if results["test"].settings.revision != claimed.revision:
                experiments["test"].functions  # noqa: B018 - loads the model
                if not session.is_of(claimed.revision):
                    raise ModelError(f"{claimed.model} has other weights than {claimed.revision}")
            means = instrument.headline.means(results, self._things(results["test"]))
            about = about_of(results, claimed.model, means)
            hits_file.save(file, {name: mean.hits for name, mean in means.items()}, about)
        return BoardRow.of(claimed.file, file, verified=reference, claimed=claimed.means)

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


def _reference(row: BoardRow) -> str:
    """The branch or tag with the weights of a row; empty for those that are no commit."""
    if len(row.revision) != _COMMIT:
        return ""
    try:
        reference = reference_of(row.model, row.revision)
    except Exception as error:  # which one depends on the HTTP client of huggingface_hub
        reason = " ".join(str(error).split())[:200]
        raise HubError(
            f"the Hub does not say which branch of {row.model} has it: {reason}"
        ) from error
    if reference is None:
        raise _Refuted(
            f"{row.revision} is on no branch or tag of {row.model}, as of a pull request"
        )
    return reference


def _about_in(file: Path) -> JsonObject | None:
    """What a file of the cache is about; None if it is missing or damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, BadZipFile):
        return hits_file.load(file)[1]
    return None


def _checked_results(found: Found) -> dict[str, Any]:
    """Split -> result; raises SubmissionError or LedgerError if they are no submission."""
    results: dict[str, Any] = {}
    for get in found.ledgers.values():
        path = get()
        name = instrument_of(path)
        headline = headline_of(name)
        result = INSTRUMENTS[str(name)].result.from_file(path)
        check_settings(result.settings)
        results[result.settings.split] = result
    check_splits(results, headline)
    model = results["test"].settings.model
    if found.model and model.rpartition("/")[0] and model.casefold() != found.model.casefold():
        raise SubmissionError(f"it is of {model}, but lies in the folder of {found.model}")
    return results


# ----------------------------------------------------------------------------- tables and their ranks


def _board_tables(rows: list[BoardRow]) -> Iterator[BoardTable]:
    """The tables of rows, the largest of a config first."""
    by_table: defaultdict[str, list[BoardRow]] = defaultdict(list)
    for row in rows:
        by_table[row.table].append(row)
    tables = []
    for of_table in by_table.values():
        of_table.sort(key=lambda row: (row.model.casefold(), row.about["signature"], row.file))
        verified = [row for row in of_table if row.verified is not None]
        claimed = [row for row in of_table if row.verified is None]
        tables.append(BoardTable(_with_ranks(verified), claimed))
    configs = list(CONFIGS)
    order = {
        table.name: (table.shared["instrument"], configs.index(table.shared["config"]))
        for table in tables
    }
    yield from sorted(
        tables, key=lambda table: (*order[table.name], -len(table.verified), table.name)
    )


def _with_ranks(rows: list[BoardRow]) -> list[BoardRow]:
    """Verified rows with their ranks, and with p of differences corrected for all of them (Holm)."""
    if not rows:
        return []
    added: defaultdict[MeanAndMeasure, list[np.ndarray]] = defaultdict(list)
    for row in rows:
        system = INSTRUMENTS[row.about["instrument"]].headline.system
        for name, mean in row.hits.items():
            for measure, of_measure in zip(mean.hits.measures, mean.hits.contributions(system)):
                added[name, measure].append(of_measure.astype(np.float32))
    ranked: list[dict[MeanAndMeasure, tuple[int, int]]] = [{} for _ in rows]
    tested: list[dict[MeanAndMeasure, Estimate]] = [{} for _ in rows]
    for cell in rows[0].means:
        for place, of_row in zip(ranks_of(np.stack(added[cell])), ranked):
            of_row[cell] = place
        for difference, of_tested in zip(family([row.differences[cell] for row in rows]), tested):
            of_tested[cell] = difference
    return [
        replace(row, ranks=of_row, differences=of_tested)
        for row, of_row, of_tested in zip(rows, ranked, tested)
    ]
