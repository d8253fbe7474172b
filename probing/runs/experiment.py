"""Experiments: what an instrument asks of a model, and the one way to run them.

A run is taken from the cache, or from an output folder, or made in parts: shared among processes,
saved as they finish, resumed after an interruption.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import filelock
import numpy as np
from tqdm import tqdm

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import os_errors_as_ledger_errors
from codesyntax_dataset.errors import ArgumentError, LedgerError
from probing.models import cache_dir
from probing.models.cache_dir import versions
from probing.models.device import default_device
from probing.runs.data import Functions, read_functions
from probing.runs.in_advance import in_advance
from probing.runs.ledger_file import Shard, load_shard, save_shard, without
from probing.runs.processes import Processes
from probing.runs.progress import progress
from probing.runs.records import JsonObject
from probing.runs.saved import Result, check_result_file, paths_from
from probing.runs.session import Session, name_and_contents
from probing.runs.settings import ControlledSettings

logger = logging.getLogger(__name__)

_AS_LONG = 3000
"""Sub-tokens of a text whose attention takes as long as all else, in a model of usual size."""

CONTINUES = "interrupted: run the same command again to continue"

F = TypeVar("F", bound="MeasuredFunction")
R = TypeVar("R", bound=Result)
T = TypeVar("T")


class Tokenized(Protocol):
    """A function as the model reads it: `ids` (sub-tokens,), special tokens included."""

    @property
    def ids(self) -> np.ndarray: ...


class MeasuredFunction(Tokenized, Protocol):
    """What is measured: a function as the model reads it, and its place in the split."""

    @property
    def index(self) -> int: ...


class Prepared(NamedTuple, Generic[F]):
    """The origin of the ledger to come, and the functions to measure, longest first."""

    provenance: Any
    functions: list[F]


ANY_BATCHES = "numbers are the same in any batches, but for near ties"

NO_SETTING = "no setting"
"""In the metadata of a field of an experiment: why it is no setting. No number depends on it, or the
key of a run has it otherwise."""


@dataclass
class Experiment(ABC, Generic[F, R]):
    """One instrument, on one model and the functions of one split.

    Every field is a setting of the result, and in the key of its run in the cache, unless its
    metadata say why it is NO_SETTING. RESULT: what it gives; PART: functions per part of the ledger, the most that an
    interrupted run loses. `ran`: whether any part was run, and not read.
    """

    RESULT: ClassVar[type[Result]]
    PART: ClassVar[int] = 8

    session: Session = field(metadata={NO_SETTING: "the key has all of it that counts"})
    data: Functions = field(metadata={NO_SETTING: "the key has its name, part, control and labels"})
    ran: bool = field(default=False, init=False, metadata={NO_SETTING: "how a run went"})

    @classmethod
    def asked_fields(cls) -> list[str]:
        """The names of the fields that are settings."""
        return [each.name for each in fields(cls) if NO_SETTING not in each.metadata]

    @property
    def learned_from(self) -> Mapping[str, str | None]:
        """The settings that say what is read beside `data`: name -> digest, such as of the labels of
        validation."""
        return {}

    @property
    def asked(self) -> Mapping[str, Any]:
        """Everything but the model and the data on which the ledger depends, as JSON: the cache
        finds a run by it, and its settings have it."""
        own = {name: getattr(self, name) for name in self.asked_fields()}
        return {**own, **self.learned_from}

    @abstractmethod
    def prepare(self) -> Prepared[F]:
        """Load the model, and read every function; raises LedgerError if there is nothing to
        measure."""

    @abstractmethod
    def run(self, part: Sequence[F], bar: tqdm) -> Any:
        """The ledger of some functions; updates the bar by each finished one."""

    @classmethod
    def again(cls, provenance: Any, session: Session, data: Any) -> Self:
        """The experiment of a ledger that was `provenance` so, on data at this location."""
        settings = provenance.settings
        controlled = isinstance(settings, ControlledSettings)
        control, seed = (settings.control, settings.seed or 0) if controlled else (None, 0)
        functions = read_functions(
            data, settings.config, settings.split, limit=settings.limit, control=control, seed=seed
        )
        return cls(
            session, functions, **{name: getattr(settings, name) for name in cls.asked_fields()}
        )

    def prepared(
        self,
        model: Any,
        readable: Sequence[F],
        skips: Counter[str],
        lacks: str,
        **fields: Any,
    ) -> Prepared[F]:
        """What `prepare` returns, with a loaded model; raises LedgerError if no function is
        `readable`: none that `lacks`. `fields`: as of `described`."""
        if not readable:
            raise self.empty(lacks, skips)
        longest_first = sorted(readable, key=lambda function: (-len(function.ids), function.index))
        return Prepared(self.described(model, skips, **fields), longest_first)

    def empty(self, lacks: str, skips: Mapping[str, int]) -> LedgerError:
        data = self.data
        return LedgerError(
            f"no {self.RESULT.UNIT} of {data.name}/{data.config}/{data.split} {lacks}; skipped: "
            f"{dict(skips) or 'none'}"
        )

    def described(
        self,
        model: Any,
        skips: Mapping[str, int],
        *,
        settings: Mapping[str, Any] = {},
        run: Mapping[str, Any] = {},
        **more: Any,
    ) -> Any:
        """The provenance of the ledger, with a loaded model.

        `settings`, `run`, `more`: the fields of the settings, of the circumstances and of the
        provenance that other instruments do not have, except those `asked`.
        """
        data = self.data
        provenance = self.RESULT.PROVENANCE
        kind: Any = provenance.model_fields["settings"].annotation
        known = {
            "model": model.name,
            "revision": model.revision,
            "data": data.name,
            "labels": data.labels,
            "config": data.config,
            "split": data.split,
            "limit": data.limit,
            "max_length": self.session.max_length,
            **self.asked,
            **settings,
        }
        if issubclass(kind, ControlledSettings):
            seed = None if data.control is None else data.seed
            known |= {"dtype": model.precision, "control": data.control, "seed": seed}
        shared = {
            "settings": known,
            provenance.VERSIONED: provenance.VERSION,
            "skips": dict(sorted((+Counter(skips)).items())),
            "run": {
                "family": model.family,
                "device": model.device.type,
                **run,
            },
            "versions": versions(),
        }
        return provenance.model_validate({**shared, **more})

    def ledger(self, names: Sequence[str], cells: Sequence[Any]) -> Any:
        """The ledger of numbered rows, in order; `names` and `cells`: of its groups and rows."""
        kind = self.RESULT.LEDGER
        return kind(list(names), np.array(cells, kind.ROW), self.made).sorted()

    @cached_property
    def _prepared(self) -> Prepared[F]:
        return self.prepare()

    @cached_property
    def functions(self) -> list[F]:
        return self._prepared.functions

    @cached_property
    def provenance(self) -> Any:
        return self._prepared.provenance

    @property
    def origin(self) -> Any:
        """The provenance, but for what the ledger COUNTS."""
        return self.provenance

    @property
    def settings(self) -> Any:
        return self.origin.settings

    @cached_property
    def made(self) -> JsonObject:
        """The settings of the ledger, but for what it COUNTS."""
        return self.origin.model_dump(mode="json")

    def examine(self) -> None:
        """Load the model, which may be refused: before anything is written."""
        self.functions  # noqa: B018

    @cached_property
    def parts(self) -> Sequence[Sequence[Any]]:
        """What is read, run and kept at a time, the same for all who share a run."""
        return [
            self.functions[start : start + self.PART]
            for start in range(0, len(self.functions), self.PART)
        ]

    def costs(self, part: Sequence[Any]) -> np.ndarray:
        """How long each function of a part takes beside others, longest first."""
        return cost(np.array([len(function.ids) for function in part]))

    def only(self, places: np.ndarray) -> None:
        """Measure the functions at these places in the split alone."""
        chosen = {*places.tolist()}
        self.functions = [each for each in self.functions if each.index in chosen]

    def read(self, part: Sequence[Any]) -> tuple[Sequence[F], JsonObject]:
        """The functions to measure in a part, and what the ledger COUNTS of it."""
        return part, {}


def cost(sub_tokens: np.ndarray) -> np.ndarray:
    """How long texts of so many sub-tokens take beside others: as long, and attention also by their
    squares."""
    return sub_tokens * (1 + sub_tokens / _AS_LONG)


def run(
    experiment: Experiment[F, R], output: StrPath | None = None, shard: str | None = None
) -> R | None:
    """The result of an experiment in the main process, None in the others.

    With an `output`, finished parts are kept in a hidden folder there until the result is saved,
    and another run of the same experiment continues where this one stopped. With a `shard`, only
    its parts are run, and written to one file in `output`, from which, with those of the other
    shards, `probing.instruments.merge` makes the result; None is returned.

    Raises ArgumentError for a shard that cannot be, and LedgerError if the folder cannot be written
    to, or another run of the experiment is writing to it.
    """
    processes = experiment.session.processes
    folder = None if output is None else Path(output)
    share = checked_shard(shard, folder, processes)
    slot = None if share else _slot(experiment)
    result: Any = None
    if slot and processes.main:
        result = slot.load(partial(experiment.RESULT.from_file, data_folder=experiment.data.folder))
    if processes.share(result is not None):
        if result is not None and folder is not None:
            result.of_model_at(experiment.session.place).save(folder)
        return result
    from probing.runs.threads import useful_threads  # torch takes seconds to import

    with useful_threads():
        experiment.examine()
        if folder is None:
            result = _whole_result(experiment, None)
        elif share is not None:
            _run_shard(experiment, share, folder)
        else:
            result = _run_in(experiment, folder)
    if result is not None and slot is not None:
        slot.save(result.ledger.save, experiment.session.contents)
    return result


def run_again(experiment: Experiment[F, R]) -> R:
    """The result of an experiment, run whatever the cache has of it, in one process.

    Finished parts are kept there until all are, and after an interruption another call continues.
    """
    from probing.runs.threads import useful_threads  # torch takes seconds to import

    slot = _slot(experiment)
    with useful_threads():
        if slot is None:
            return _whole_result(experiment, None)
        drawn = [function.index for function in experiment.functions]
        batches = getattr(experiment, "batch_tokens", None)
        name = cache_dir.key([slot.key, batches, drawn])
        with _parts_in(cache_dir.private(slot.folder), name, experiment.session.processes) as parts:
            return _whole_result(experiment, parts)


def run_kept(experiment: Experiment[F, R]) -> R:
    """The result of an experiment, from the cache or as of `run_again`, and then kept there."""
    slot = _slot(experiment)
    if slot is None:
        return run_again(experiment)
    known: Any = slot.load(partial(experiment.RESULT.from_file, data_folder=experiment.data.folder))
    if known is not None:
        return known
    result: Any = run_again(experiment)
    slot.save(result.ledger.save, experiment.session.contents)
    return result


def key_of(experiment: Experiment) -> str | None:
    """A digest of all that an experiment depends on, by which the cache finds it; None if it keeps
    nothing of it."""
    slot = _slot(experiment)
    return slot and slot.key


def checked_shard(shard: str | None, output: Path | None, processes: Processes) -> Shard | None:
    """The shard of this name, if one is asked for; raises ArgumentError for a text that names none,
    and where there can be none."""
    if shard is None:
        return None
    if output is None:
        raise ArgumentError(
            f"shard is {shard!r} without an output: give the folder to which the shard is written"
        )
    if processes.count > 1:
        raise ArgumentError(
            f"shard is {shard!r} for {processes.count} processes that share the work: start each shard as one process, "
            "or leave the shard out"
        )
    return Shard.parse(shard)


class Slot(NamedTuple):
    """The place of one run's file in the cache: `<key>-<SHA-256 of the file>.parquet` in `folder`,
    if it exists.

    `contents`: of the model, before it was loaded.
    """

    folder: Path
    key: str
    contents: str

    def load(self, read: Callable[[Path], T]) -> T | None:
        """The result of `read` on the saved file; None if there is none, or only damaged ones."""
        return cache_dir.kept(self.folder, self.key, ".parquet", read)

    def save(self, write: Callable[[Path], None], contents: str) -> None:
        """Keep the file that `write` writes, unless the model has other `contents` now; failing to
        do so is not an error."""
        if contents != self.contents:
            return
        cache_dir.keep(self.folder, self.key, ".parquet", write)


def _slot(experiment: Experiment) -> Slot | None:
    """The place in the cache for this very run; None if none is kept, or the model is in memory and
    may run any code.

    A run is found by a digest of all that its ranks depend on: the commit of the model, or the
    files of a local one; the labels; all settings; the type of the device; the versions of the
    libraries; and our code. Nothing is loaded or tokenized.
    Raises ModelError for a model that does not exist.
    """
    session, data, cache = experiment.session, experiment.data, cache_dir.folder()
    if cache is None or not isinstance(session.model, str):
        return None
    named = name_and_contents(session.model, session.revision)
    made_of = {
        "model": named,
        "data": [data.name, data.config, data.split, data.labels, str(data.limit)],
        "control": data.control and [data.control, data.seed],
        "device": (session.device or default_device()).partition(":")[0],
        "session": [session.step, session.dtype, session.max_length],
        "instrument": experiment.RESULT.LEDGER.INSTRUMENT,
        "asked": experiment.asked,
    }
    return Slot(cache, cache_dir.key(made_of), named[1])


def _run_in(experiment: Experiment, output: Path) -> Any:
    """The result, saved in a folder, where an earlier run may have left it or parts of it."""
    processes = experiment.session.processes
    data_folder = experiment.data.folder
    file = output / f"{experiment.settings.name}.json"
    result = None
    check_result_file(file)
    with _parts_in(output, experiment.settings.name, processes) as folder:
        if processes.main:
            result = experiment.RESULT.finished(file, experiment.made, data_folder)
        if not processes.share(result is not None):
            result = _whole_result(experiment, folder)
        if result is not None:
            result.of_model_at(experiment.session.place).save(output)
        processes.wait()
    return result


def _whole_result(experiment: Experiment, folder: Path | None) -> Any:
    """The result in the main process, of the parts that all processes run, each saved in
    `folder`."""
    processes = experiment.session.processes
    count = len(experiment.parts)
    ledgers = _ledgers(experiment, range(processes.rank, count, processes.count), folder)
    if not processes.main:
        for ledger in ledgers.values():
            processes.send(ledger)
        return None
    for number in range(count):
        if number not in ledgers:
            received = processes.receive(number % processes.count)
            ledgers[number] = _kept(experiment, folder, (number, received))[1]
    ordered = [ledgers.pop(number) for number in range(count)]
    whole = experiment.RESULT.LEDGER.concatenate(ordered)
    if not len(whole):
        raise experiment.empty("can be scored", whole.settings["skips"])
    return experiment.RESULT.from_ledger(whole, experiment.data.folder)


def _run_shard(experiment: Experiment, shard: Shard, output: Path) -> None:
    """Run the parts of a shard, and write them as one file; a run of few parts has no more shards
    than parts."""
    parts = len(experiment.parts)
    if shard.number > parts:
        logger.warning(
            "%d parts for %d shards: the %d. has nothing to run, and no file",
            parts,
            shard.total,
            shard.number,
        )
        return
    shard = Shard(shard.number, min(shard.total, parts))
    name = f"{experiment.settings.name}.{shard}"
    file = output / f"{name}.parquet"
    with _parts_in(output, name, experiment.session.processes) as folder:
        if _load(experiment, file, shard) is None:
            whole = experiment.RESULT.LEDGER.concatenate(
                _ledgers(experiment, shard.parts(parts), folder).values()
            )
            save_shard(
                whole,
                shard,
                parts,
                file,
                paths_from(output, experiment.data.folder, experiment.session.place),
            )


def _ledgers(experiment: Experiment, numbers: range, folder: Path | None) -> dict[int, Any]:
    """The ledgers of some parts, by number: those in `folder`, and the others, which are saved
    there. While a part runs, the next one is read, and the last one saved."""
    parts, kind = experiment.parts, experiment.RESULT.LEDGER
    ledgers = {}
    for number in numbers:
        file = folder and _part_file(folder, number)
        ledger = file and _load(experiment, file, Shard(number + 1, len(parts)))
        if ledger is not None:
            ledgers[number] = ledger
    left = [number for number in numbers if number not in ledgers]
    experiment.ran = bool(left)
    with progress(
        total=sum(len(parts[number]) for number in numbers),
        initial=sum(len(parts[number]) for number in ledgers),
        desc=f"{kind.COMMAND} {experiment.settings.model}",
        unit=experiment.RESULT.UNIT,
        main=experiment.session.processes.main,
        costs=np.concatenate([[], *(experiment.costs(parts[number]) for number in left)]),
    ) as bar:

        def made() -> Iterator[tuple[int, Any]]:
            read = in_advance(lambda number: experiment.read(parts[number]), left)
            for number, (functions, counts) in zip(left, read):
                ledger = experiment.run(functions, bar)
                bar.update(len(parts[number]) - len(functions))
                yield number, replace(ledger, settings={**ledger.settings, **counts})

        ledgers.update(in_advance(partial(_kept, experiment, folder), made()))
    return ledgers


def _kept(
    experiment: Experiment, folder: Path | None, numbered: tuple[int, Any]
) -> tuple[int, Any]:
    """The number of a part, and its ledger, saved in `folder`."""
    number, ledger = numbered
    if folder is not None:
        file, count = _part_file(folder, number), len(experiment.parts)
        save_shard(ledger, Shard(number + 1, count), count, file)
        ledger = replace(type(ledger).open(file), settings=ledger.settings)
    return number, ledger


def _part_file(folder: Path, number: int) -> Path:
    return folder / f"{number:05d}.parquet"


def _load(experiment: Experiment, file: Path, shard: Shard) -> Any:
    """The ledger of a shard that an earlier run of the experiment wrote; None if it is missing,
    damaged or another."""
    kind = experiment.RESULT.LEDGER
    if not file.exists():
        return None
    try:
        ledger, record = load_shard(file, kind.open)
    except LedgerError as error:
        logger.warning("running its functions again: %s", error)
        return None
    same = without(ledger.settings, kind.COUNTS) == without(experiment.made, kind.COUNTS)
    asked = shard, len(experiment.parts)
    return ledger if same and (record.shard, record.parts) == asked else None


@contextlib.contextmanager
def _parts_in(output: Path, name: str, processes: Processes) -> Iterator[Path]:
    """Yield the hidden folder of a run of this name, which only this run uses, removed when the run
    is finished.

    An interrupted run says that it can be continued, if it can, and else removes it, too. Raises
    LedgerError if another process uses the folder, or it cannot be made.
    """
    folder = output / f".{name}.parts"
    lock = filelock.FileLock(folder / f"lock.{processes.rank}", timeout=0)
    with os_errors_as_ledger_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise LedgerError(
                f"another run of the same settings is writing to {output}: wait for it, or choose another folder"
            ) from None
    try:
        yield folder
        if processes.main:
            shutil.rmtree(folder)
    except KeyboardInterrupt as stop:
        if any(folder.glob("*.parquet")):
            stop.args = (CONTINUES,)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        lock.release()
