"""Run a job in parts: shared among processes, saved as they finish, resumed after an interruption."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import filelock
import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.atomic import os_errors_as_ledger_errors
from codesyntax_dataset.errors import ArgumentError, LedgerError
from probing.runs import shards
from probing.runs.progress import progress
from probing.runs.saved import seen_from
from probing.runs.shards import Shard, Table

logger = logging.getLogger(__name__)

CONTINUES = "interrupted: the same command continues where this run stopped"

F = TypeVar("F")
T = TypeVar("T", bound=Table)
R = TypeVar("R")


class Job(Protocol[F, T, R]):
    """Work on functions `F` that makes a table `T` from each part of them, and a result `R` from all tables.

    `title`: the text of the progress bar; `name`: a file name that two different jobs never share; `made`: the settings
    of its tables, which determine their content; `data_folder`: the folder of the data, if it is in one.
    """

    @property
    def title(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def made(self) -> dict[str, Any]: ...

    @property
    def data_folder(self) -> Path | None: ...

    @property
    def parts(self) -> Sequence[Sequence[F]]:
        """The functions in parts; a part is saved as soon as it is finished."""

    def run(self, part: Sequence[F], bar: tqdm) -> np.ndarray:
        """The output for a part: uint8, of the part's `shape`. Updates the bar by each finished function."""

    def shape(self, part: Sequence[F]) -> tuple[int, ...]: ...

    def table(self, part: Sequence[F], found: np.ndarray) -> T: ...

    def found(self, table: T) -> np.ndarray:
        """The output that the table was made from."""

    def load(self, file: Path) -> T:
        """A saved table; raises LedgerError if it is damaged."""

    def result(self, tables: Sequence[T]) -> R: ...

    def finished(self, folder: Path) -> R | None:
        """The result of an earlier run of the same job in a folder, if it exists and is complete."""

    def save(self, result: R, folder: Path) -> None: ...


def run(job: Job[F, T, R], processes: Processes, output: Path | None, shard: Shard | None = None) -> R | None:
    """The result of a job in the main process, None in the others.

    With an `output`, finished parts are kept in a hidden folder there until the result is saved, and another run of the
    same job continues where this one stopped. With a `shard`, only its parts are run, and written to one file in
    `output`, from which, with those of the other shards, `probing.evidence.merge` makes the result; None is returned.

    Raises LedgerError if the folder cannot be written to, or another run of the job is writing to it.
    """
    if output is None:
        return _run_parts(job, processes, None)
    if shard is not None:
        _run_shard(job, shard, processes, output)
        return None
    with _kept_in(output, job.name, processes) as kept:
        result = job.finished(output) if processes.main else None
        if not processes.agree(result is not None):
            result = _run_parts(job, processes, kept)
        if result is not None:
            job.save(result, output)
        processes.wait()
    return result


def asked_shard(shard: str | None, output: str | os.PathLike | None, processes: Processes) -> Shard | None:
    """The shard of this name, if one is asked for; raises ArgumentError for a text that names none, and where there can
    be none."""
    if shard is None:
        return None
    if output is None:
        raise ArgumentError(f"shard is {shard!r} without an output: give the folder to which the shard is written")
    if processes.count > 1:
        raise ArgumentError(
            f"shard is {shard!r} for {processes.count} processes that share the work: start each shard as one process, "
            "or leave the shard out"
        )
    return Shard.parse(shard)


class Processes:
    """The processes of one run under `accelerate launch` or `torchrun`, or a single process otherwise."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0
        self.device: str | None = None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            cuda = torch.cuda.is_available()
            self.device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if cuda else "cpu"
            if cuda:
                torch.cuda.set_device(self.device)  # that of collectives
            if not torch.distributed.is_initialized():
                torch.distributed.init_process_group("nccl" if cuda else "gloo")
            self.count, self.rank = torch.distributed.get_world_size(), torch.distributed.get_rank()

    @property
    def main(self) -> bool:
        return self.rank == 0

    def wait(self) -> None:
        if self.count > 1:
            torch.distributed.barrier()

    def agree(self, value: bool) -> bool:
        """The value of the main process, on all processes."""
        if self.count == 1:
            return value
        said = torch.tensor([value], device=self.device)
        torch.distributed.broadcast(said, src=0)
        return bool(said.item())

    def share(self, value: Any) -> Any:
        """The value of the main process, on all processes."""
        if self.count == 1:
            return value
        said = [value]
        torch.distributed.broadcast_object_list(said, src=0, device=torch.device(self.device or "cpu"))
        return said[0]

    def send(self, found: np.ndarray) -> None:
        torch.distributed.send(torch.from_numpy(np.ascontiguousarray(found)).to(self.device), dst=0)

    def receive(self, shape: tuple[int, ...], source: int) -> np.ndarray:
        found = torch.empty(shape, dtype=torch.uint8, device=self.device)
        torch.distributed.recv(found, src=source)
        return found.cpu().numpy()


def _run_parts(job: Job[F, T, R], processes: Processes, kept: Path | None) -> R | None:
    """Run this process's parts, saving each in the folder `kept`; the main process collects all."""
    parts = job.parts
    mine = range(processes.rank, len(parts), processes.count)
    tables = _tables(job, mine, kept, processes)
    if not processes.main:
        for number in mine:
            processes.send(job.found(tables[number]))
        return None
    for number, part in enumerate(parts):
        if number not in tables:
            tables[number] = job.table(part, processes.receive(job.shape(part), number % processes.count))
    return job.result([tables.pop(number) for number in range(len(parts))])


def _run_shard(job: Job[F, T, R], shard: Shard, processes: Processes, output: Path) -> None:
    """Run the parts of a shard, and write them as one file; a run of few parts has no more shards than parts."""
    parts = len(job.parts)
    if shard.number > parts:
        logger.warning("%d parts for %d shards: the %d. has nothing to run, and no file", parts, shard.of, shard.number)
        return
    shard = Shard(shard.number, min(shard.of, parts))
    file = output / f"{job.name}.{shard}.parquet"
    with _kept_in(output, f"{job.name}.{shard}", processes) as kept:
        if _load(job, file, shard) is None:
            tables = _tables(job, shard.parts(parts), kept, processes)
            whole = type(next(iter(tables.values()))).concatenate(tables.values())
            data_path = None if job.data_folder is None else seen_from(output, job.data_folder)
            shards.save(whole, shard, parts, file, data_path)


def _tables(job: Job[F, T, R], mine: range, kept: Path | None, processes: Processes) -> dict[int, T]:
    """The tables of some parts, by their numbers: those in the folder `kept`, and the others, which are saved there."""
    parts = job.parts
    tables: dict[int, T] = {}
    total = sum(len(parts[number]) for number in mine)
    with progress(total=total, desc=job.title, unit="function", main=processes.main) as bar:
        for number in mine:
            file, shard = kept and kept / f"{number:05d}.parquet", Shard(number + 1, len(parts))
            table = _load(job, file, shard) if file else None
            if table is not None:
                bar.update(len(parts[number]))
            else:
                table = job.table(parts[number], job.run(parts[number], bar))
                if file:
                    shards.save(table, shard, len(parts), file)
            tables[number] = table
    return tables


def _load(job: Job[F, T, R], file: Path, shard: Shard) -> T | None:
    """The table of a shard that an earlier run of the same job wrote; None if it is missing, damaged or another."""
    if not file.exists():
        return None
    try:
        table, record = shards.load(file, job.load)
    except LedgerError as error:
        logger.warning("its functions are run again: %s", error)
        return None
    return table if (record.shard, record.parts, table.settings) == (shard, len(job.parts), job.made) else None


@contextlib.contextmanager
def _kept_in(output: Path, name: str, processes: Processes) -> Iterator[Path]:
    """Yield the hidden folder of a run of this name, which only this run uses, removed when the run is finished."""
    kept = output / f".{name}.parts"
    with os_errors_as_ledger_errors(kept):
        kept.mkdir(parents=True, exist_ok=True)
    with _telling_what_is_kept(kept), _only_run_in(kept, processes):
        yield kept
        if processes.main:
            shutil.rmtree(kept)


@contextlib.contextmanager
def _telling_what_is_kept(kept: Path) -> Iterator[None]:
    """Let an interrupted run say that it can be continued, if it can, and remove everything else."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if any(kept.glob("*.parquet")):
            stop.args = (CONTINUES,)
        else:
            shutil.rmtree(kept, ignore_errors=True)
        raise


@contextlib.contextmanager
def _only_run_in(kept: Path, processes: Processes) -> Iterator[None]:
    """Lock this process's share of a run until the block ends, so that two runs of the same job do not interfere."""
    with os_errors_as_ledger_errors(kept):
        try:
            lock = filelock.FileLock(kept / f"lock.{processes.rank}", timeout=0).acquire().lock
        except filelock.Timeout:
            raise LedgerError(
                f"another run of the same settings is writing to {kept.parent}: wait for it, or choose another folder"
            ) from None
    try:
        yield
    finally:
        lock.release()
