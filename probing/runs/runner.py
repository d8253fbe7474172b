"""Run a job in parts: shared among processes, saved as they finish, resumed after an interruption."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import filelock
import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.atomic import writing
from codesyntax_dataset.errors import LedgerError
from probing.runs.progress import progress

CONTINUES = "interrupted: the same command continues where this run stopped"


class Table(Protocol):
    """The output of a job for some functions, with the job's settings; for the attention probe a `RankLedger`."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def save(self, path: str | os.PathLike) -> None: ...


F = TypeVar("F")
T = TypeVar("T", bound=Table)
R = TypeVar("R")


class Job(Protocol[F, T, R]):
    """Work on functions `F` that makes a table `T` from each part of them, and a result `R` from all tables.

    `title`: the text of the progress bar; `name`: a file name that two different jobs never share; `made`: the settings
    of its tables, which determine their content.
    """

    @property
    def title(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def made(self) -> dict[str, Any]: ...

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


def run(job: Job[F, T, R], processes: Processes, output: Path | None) -> R | None:
    """The result of a job in the main process, None in the others.

    With an `output`, finished parts are kept in a hidden folder there until the result is saved, and another run of the
    same job continues where this one stopped. Raises LedgerError if the folder cannot be written to, or another run of
    the job is writing to it.
    """
    if output is None:
        return _run_parts(job, processes, None)
    kept = output / f".{job.name}.parts"
    with writing(kept):
        kept.mkdir(parents=True, exist_ok=True)
    with _telling_what_is_kept(kept), _only_run_in(kept, processes):
        result = job.finished(output) if processes.main else None
        if not processes.agree(result is not None):
            result = _run_parts(job, processes, kept)
        if result is not None:
            job.save(result, output)
        processes.wait()
        if processes.main:
            shutil.rmtree(kept)
    return result


class Processes:
    """The processes of one run under `accelerate launch` or `torchrun`, or a single process otherwise."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0
        self.device: str | None = None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            from accelerate import PartialState

            self._state = PartialState(cpu=not torch.cuda.is_available())
            self.count, self.rank = self._state.num_processes, self._state.process_index
            self.device = str(self._state.device)

    @property
    def main(self) -> bool:
        return self.rank == 0

    def wait(self) -> None:
        if self.count > 1:
            self._state.wait_for_everyone()

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
    tables: dict[int, T] = {}
    total = sum(len(parts[number]) for number in mine)
    with progress(total=total, desc=job.title, unit="function", main=processes.main) as bar:
        for number in mine:
            file = kept / f"{number:05d}.parquet" if kept else None
            table = job.load(file) if file and file.exists() else None
            if table is not None and table.settings == job.made:
                bar.update(len(parts[number]))
            else:
                table = job.table(parts[number], job.run(parts[number], bar))
                if file:
                    table.save(file)
            tables[number] = table
    if not processes.main:
        for number in mine:
            processes.send(job.found(tables[number]))
        return None
    for number, part in enumerate(parts):
        if number not in tables:
            tables[number] = job.table(part, processes.receive(job.shape(part), number % processes.count))
    return job.result([tables.pop(number) for number in range(len(parts))])


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
