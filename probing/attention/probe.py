"""Probe a model: prepare, run in batches and parts, resume, and merge into a result."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.atomic import writing
from codesyntax_dataset.errors import LedgerError, ModelError
from codesyntax_dataset.languages import variant_of
from codesyntax_dataset.protocol import PAPER_LENGTH, RANDOM_WEIGHTS, SHUFFLED_ATTENTION
from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, DIRECTIONS, HEAD_TO_DEPENDENT, RULES, SCORING_VERSION
from probing.attention.align import OffsetsError, align
from probing.attention.edges import EdgeTable, stacked
from probing.attention.ledger import RankLedger
from probing.attention.ranking import BatchListener, BatchRanker, EncodedFunction
from probing.attention.result import ProbeResult
from probing.attention.result import load as load_result
from probing.attention.schema import Provenance, Run
from probing.models.kept import versions
from probing.runs import cache
from probing.runs.controls import labels_of
from probing.runs.data import folder_of, label_digest, load_functions, rows
from probing.runs.progress import progress
from probing.runs.settings import Settings
from probing.runs.threads import useful_threads

if TYPE_CHECKING:
    from probing.models.encoder import Encoder

logger = logging.getLogger(__name__)

PART = 64
"""Functions per part of the ledger, the most that an interrupted run loses."""

MOST_PADDING = 0.1
"""The most padding in a batch, relative to its sub-tokens."""

_BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}
_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 26}  # weights in memory while a layer is ranked: 2 MB, 256 MB


@checked
def probe(
    model: str | os.PathLike | tuple,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    batch_tokens: Positive | None = None,
    limit: Positive | None = None,
    direction: str | None = None,
    max_length: Positive = PAPER_LENGTH,
    also_fits: Sequence[str] = (),
    control: str | None = None,
    seed: Natural = 0,
    output: str | os.PathLike | None = None,
) -> ProbeResult | None:
    """Top-k UAS of every attention head of a model, by the published protocol (Shen et al. 2022, section 4).

    `model`: a Hub id (at `revision`), a local folder, or a (model, tokenizer) pair. `data`: a folder that `codesyntax
    build` wrote, a dataset id, or a loaded dataset. `dtype`: `float32` or `bfloat16`, as text or torch dtype.
    `batch_tokens`: sub-tokens per batch, padding included; scores do not depend on it. `limit`: probe only the first
    functions of the split, which the result says. `direction`: `head-to-dependent`, as published, or
    `dependent-to-head`, the only one for models that cannot see later tokens; by default the first that the model
    supports. `max_length`: the most sub-tokens, special tokens included, of a function, 511 in the paper. `also_fits`:
    other models that a function must fit, so that scores compare. `control`: `random-weights`, `shuffled-attention` or
    `redrawn-dependents`, drawn with `seed`: the model without what it learned, with its attention on other tokens, or
    on edges to other tokens (see `probing.runs.controls`), which the result says. `output`: a folder for the result and
    its ledger, in which an interrupted run continues where it stopped.

    A repeated probe is answered from the cache (see `probing.runs.cache`), unless the model is a pair.

    Under `accelerate launch` or `torchrun` the processes share the work; the main process returns the same result as a
    single process would, the others return None.

    Raises ArgumentError, ModelError, DatasetError, UnknownName or LedgerError, each with a one-line message.
    """
    processes = _Processes()
    asked = {
        "model": os.fspath(model) if isinstance(model, os.PathLike) else model,
        "data": data,
        "config": config,
        "split": split,
        "revision": revision,
        "dtype": str(dtype).removeprefix("torch."),
        "device": str(device) if device else processes.device,
        "limit": limit,
        "direction": direction,
        "max_length": max_length,
        "also_fits": also_fits,
        "control": control,
        "seed": seed,
    }
    slot = cache.slot(**asked)
    ledger = slot.load(RankLedger.load) if slot and processes.main else None
    if processes.agree(ledger is not None):
        logger.info("the cache %s has the ledger of this very probe", slot.folder if slot else "of the main process")
        result = ProbeResult.from_ledger(ledger) if ledger else None
        if result is not None:
            result.data_folder = folder_of(data)
            if output is not None:
                result.save(output)
        return result
    with useful_threads():
        task = prepare(**asked)
        logger.info(
            "%s on %s: %s attention, %d functions of %d to %d sub-tokens to probe, skipped: %s",
            *(task.encoder.name, task.encoder.device, task.encoder.path, len(task.functions)),
            *(len(task.functions[-1].ids), len(task.functions[0].ids), dict(task.skips) or "none"),
        )
        result = _run(task, batch_tokens, processes, output, folder_of(data))
    if result is not None and slot is not None:
        slot.save(result.ledger.save, result.settings.revision, result.settings.labels)
    return result


def _run(
    task: Task,
    batch_tokens: int | None,
    processes: _Processes,
    output: str | os.PathLike | None,
    data_folder: Path | None,
) -> ProbeResult | None:
    """Run the task and, with an `output`, keep finished parts there until all are done."""
    made = task.made()
    parts = task.parts()
    runner = Runner(task.encoder, task.settings.direction, batch_tokens)
    if output is None:
        result = _run_parts(task, parts, made, runner, processes, None)
        if result is not None:
            result.data_folder = data_folder
        return result
    folder = Path(output)
    name = task.settings.name
    kept = folder / f".{name}.parts"
    with writing(kept):
        kept.mkdir(parents=True, exist_ok=True)
    with _telling_what_is_kept(kept), _only_run_in(kept, processes):
        result = _finished(folder / f"{name}.json", made) if processes.main else None
        if not processes.agree(result is not None):
            result = _run_parts(task, parts, made, runner, processes, kept)
        if result is not None:
            result.data_folder = data_folder
            result.save(folder)
        processes.wait()
        if processes.main:
            shutil.rmtree(kept)
    return result


@contextlib.contextmanager
def _telling_what_is_kept(kept: Path) -> Iterator[None]:
    """Let an interrupted run say that it can be continued, if it can, and remove everything else."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if any(kept.glob("*.parquet")):
            stop.args = ("interrupted: the same command continues where this run stopped",)
        else:
            shutil.rmtree(kept, ignore_errors=True)
        raise


@dataclass
class Task:
    """An encoder, the functions to probe, longest first, and everything that determines their ranks."""

    encoder: Encoder
    settings: Settings
    functions: list[EncodedFunction]
    relations: list[str]
    skips: Counter[str]

    def parts(self) -> list[list[EncodedFunction]]:
        return [self.functions[start : start + PART] for start in range(0, len(self.functions), PART)]

    def made(self) -> Provenance:
        """The settings of the ledger."""
        run = Run(
            family=self.encoder.family,
            attention=self.encoder.path,
            attention_why=self.encoder.why,
            device=self.encoder.device.type,
        )
        tied = sum(function.tied(self.settings.direction).sum(axis=1) for function in self.functions)
        return Provenance(
            settings=self.settings,
            scoring=SCORING_VERSION,
            skips=dict(sorted(self.skips.items())),
            ties=dict(zip(RULES, tied.tolist())),
            run=run,
            versions=versions(),
        )

    def ledger(self, part: Sequence[EncodedFunction], ranks: np.ndarray, made: Provenance) -> RankLedger:
        """The ledger of some of the functions: their edges in order, with `ranks` (rules, edges, layers, heads)."""
        return RankLedger.of(stacked([function.edges for function in part]), ranks, made.to_json())


def prepare(
    model: str | tuple,
    data: Any,
    config: str,
    split: str,
    *,
    revision: str | None,
    dtype: str,
    device: str | torch.device | None,
    limit: int | None,
    direction: str | None,
    max_length: int,
    also_fits: Sequence[str],
    control: str | None,
    seed: int | None,
) -> Task:
    """Load the data and the model, tokenize and align every function; arguments as of `probe`."""
    from probing.models.encoder import (
        load,
        load_tokenizer,
    )  # transformers takes seconds to import, and the cache needs none
    from probing.models.selfcheck import examine_lengths

    if direction not in (None, *DIRECTIONS):
        raise ModelError(f"direction is {direction!r}, expected one of {', '.join(DIRECTIONS)}")
    dataset, data_name = load_functions(data, config, split)
    variant = variant_of(config)
    dataset = labels_of(dataset, control, seed)
    fresh = seed if control == RANDOM_WEIGHTS else None
    shuffled_by = seed if control == SHUFFLED_ATTENTION else None
    others = {name: load_tokenizer(name, max_length=max_length) for name in also_fits}
    encoder = load(model, revision=revision, dtype=dtype, device=device, max_length=max_length, random_weights=fresh)
    if encoder.causal and direction == HEAD_TO_DEPENDENT:
        raise ModelError(
            f"{encoder.name} cannot see later tokens, such as nearly all dependents: it scores 0 in the direction "
            f"{HEAD_TO_DEPENDENT}; use {DEPENDENT_TO_HEAD}"
        )
    functions: list[EncodedFunction] = []
    relations: list[str] = []
    skips: Counter[str] = Counter()
    index = -1
    for batch in rows(dataset, limit):
        texts = [row["code"] for row in batch]
        too_long = _too_long(texts, others)
        for row, longer_than, (ids, offsets, special) in zip(batch, too_long, encoder.encode(texts)):
            index += 1
            edges = row["relations"]
            if not edges:
                skips["no relations"] += 1
            elif len(ids) > encoder.longest:
                skips[f"more than {encoder.longest} sub-tokens"] += 1
            elif longer_than:
                skips[f"too long for {longer_than}"] += 1
            else:
                start, end = np.asarray(row["token_start"], np.int64), np.asarray(row["token_end"], np.int64)
                try:
                    alignment = align(row["code"], start, end, offsets, special)
                except OffsetsError:  # only of this function, for example because it quotes a special token
                    skips["offsets of sub-tokens run backwards"] += 1
                    continue
                alignment = alignment.without(variant.never_predicted, row["code"], start, end)
                table = EdgeTable.from_rows([(index, row)], relations)
                functions.append(EncodedFunction(index, ids, alignment, table, shuffled_by))
    if not functions:
        raise LedgerError(f"no function of {data_name}/{config}/{split} can be scored; skipped: {dict(skips)}")
    functions.sort(key=lambda function: (-len(function.ids), function.index))
    try:
        examine_lengths(encoder, functions[0].ids, functions[-1].ids)
    except RuntimeError as error:
        if not _out_of_memory(error):  # if a batch of the two does not fit in memory, no batch will mix them
            raise
    settings = Settings(
        model=encoder.name,
        revision=encoder.revision,
        data=data_name,
        labels=label_digest(dataset, limit),
        config=config,
        split=split,
        direction=direction or (DEPENDENT_TO_HEAD if encoder.causal else HEAD_TO_DEPENDENT),
        dtype=dtype,
        max_length=max_length,
        also_fits=tuple(sorted(also_fits)),
        limit=None if limit is None or limit >= len(dataset) else limit,
        control=control,
        seed=None if control is None else seed,
    )
    return Task(encoder, settings, functions, relations, skips)


def prepare_again(settings: Settings, *, model: Any, data: Any, device: str | torch.device | None) -> Task:
    """The task of an earlier run, with the same data, and its model or the given one."""
    return prepare(
        model or settings.model,
        data,
        settings.config,
        settings.split,
        revision=None if model else settings.revision,
        dtype=settings.dtype,
        device=device,
        limit=settings.limit,
        direction=settings.direction,
        max_length=settings.max_length,
        also_fits=settings.also_fits,
        control=settings.control,
        seed=settings.seed,
    )


def _too_long(texts: Sequence[str], others: dict[str, tuple]) -> list[str]:
    """For each text, the first of the other models for which it is too long, or an empty string."""
    models = [""] * len(texts)
    for name, (tokenizer, longest) in others.items():
        for place, ids in enumerate(tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]):
            if len(ids) > longest:
                models[place] = models[place] or name
    return models


class Runner:
    """Runs functions through the encoder, longest first, in batches of a token budget, lowered if memory runs out."""

    def __init__(self, encoder: Encoder, direction: str, batch_tokens: int | None):
        kind = encoder.device.type
        self.encoder, self.direction = encoder, direction
        self.budget = batch_tokens or _BATCH_TOKENS.get(kind, _BATCH_TOKENS["cpu"])
        self.elements = _ELEMENTS.get(kind, _ELEMENTS["cpu"])

    def run(
        self,
        functions: Sequence[EncodedFunction],
        bar: tqdm,
        listener: Callable[..., BatchListener] = BatchRanker,
    ) -> np.ndarray:
        """The output of `listener` for the functions' edges: by default ranks (rules, edges, layers, heads)."""
        encoder, done, start = self.encoder, [], 0
        while start < len(functions):
            batch = self.batch(functions, start)
            inputs = encoder.inputs([function.ids for function in batch])
            length = inputs["input_ids"].shape[1]
            try:
                listening = listener(
                    batch, encoder.layers, encoder.heads, length, encoder.device, self.elements, self.direction
                )
                encoder.forward(inputs, listening)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                self._shrink(len(batch), length)
                continue
            done.append(self._fetch(listening.found))
            start += len(batch)
            bar.update(len(batch))
        _release_memory(encoder.device)
        if encoder.device.type == "cuda":
            torch.cuda.synchronize(encoder.device)
        return torch.cat(done, dim=1).numpy()

    def batch(self, functions: Sequence[EncodedFunction], start: int) -> Sequence[EncodedFunction]:
        """The next functions, at least one, that fit the budget and MOST_PADDING when padded to the first."""
        longest, real, end = len(functions[start].ids), 0, start
        for function in functions[start : start + max(1, self.budget // longest)]:
            real += len(function.ids)
            if (end + 1 - start) * longest > (1 + MOST_PADDING) * real:
                break
            end += 1
        return functions[start:end]

    def _shrink(self, functions: int, length: int) -> None:
        if self.encoder.device.type == "cuda":
            torch.cuda.empty_cache()
        if functions > 1:
            self.budget = functions // 2 * length
        elif self.elements > 1:
            self.elements = 1  # rows of one function at a time, which cannot be reduced further
        else:
            raise ModelError(
                f"out of memory for one function of {length} sub-tokens on {self.encoder.device}: lower --max-length, "
                "or use a larger device"
            )

    @staticmethod
    def _fetch(found: torch.Tensor) -> torch.Tensor:
        """Copy the output to the CPU; on CUDA, while the next batch runs."""
        if found.device.type != "cuda":
            return found.cpu()
        return torch.empty(found.shape, dtype=found.dtype, pin_memory=True).copy_(found, non_blocking=True)


def _release_memory(device: torch.device) -> None:
    """Return freed memory to the system: batches have different sizes, and glibc would keep memory for all of them.

    Called after a part, not after each batch: allocating the memory again takes 6 % of the time.
    """
    if device.type == "cpu" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def _out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class _Processes:
    """The processes of one run under `accelerate launch` or `torchrun`, or a single process otherwise."""

    def __init__(self) -> None:
        self.count, self.rank, self.device = 1, 0, None
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

    def send(self, ranks: np.ndarray) -> None:
        torch.distributed.send(torch.from_numpy(np.ascontiguousarray(ranks)).to(self.device), dst=0)

    def receive(self, shape: tuple[int, ...], source: int) -> np.ndarray:
        ranks = torch.empty(shape, dtype=torch.uint8, device=self.device)
        torch.distributed.recv(ranks, src=source)
        return ranks.cpu().numpy()


def _run_parts(
    task: Task,
    parts: Sequence[Sequence[EncodedFunction]],
    made: Provenance,
    runner: Runner,
    processes: _Processes,
    kept: Path | None,
) -> ProbeResult | None:
    """Run this process's parts, saving each in the folder `kept`; the main process collects all and scores them."""
    mine = range(processes.rank, len(parts), processes.count)
    ledgers: dict[int, RankLedger] = {}
    total = sum(len(parts[number]) for number in mine)
    with progress(total=total, desc=f"probing {task.settings.model}", unit="function", main=processes.main) as bar:
        for number in mine:
            file = kept / f"{number:05d}.parquet" if kept else None
            ledger = _kept(file, made)
            if ledger is None:
                ledger = task.ledger(parts[number], runner.run(parts[number], bar), made)
                if file:
                    ledger.save(file)
            else:
                bar.update(len(parts[number]))
            ledgers[number] = ledger
    if not processes.main:
        for number in mine:
            processes.send(ledgers[number].ranks)
        return None
    for number, part in enumerate(parts):
        if number not in ledgers:
            edges = sum(len(function.edges) for function in part)
            shape = (len(RULES), edges, task.encoder.layers, task.encoder.heads)
            ledgers[number] = task.ledger(part, processes.receive(shape, number % processes.count), made)
    merged = RankLedger.concatenate([ledgers.pop(number) for number in range(len(parts))])
    return ProbeResult.from_ledger(merged.sorted())


def _finished(file: Path, made: Provenance) -> ProbeResult | None:
    """The result of an earlier run with the same settings, if it exists and agrees with its ledger."""
    try:
        result = load_result(file)
    except LedgerError as error:
        if file.exists():
            logger.warning("%s cannot be reused: %s", file, error)
        return None
    return result if result.ledger.settings == made.to_json() else None


def _kept(file: Path | None, made: Provenance) -> RankLedger | None:
    """A part of the ledger from an earlier run with the same settings, if it exists."""
    if file is None or not file.exists():
        return None
    ledger = RankLedger.load(file)
    return ledger if ledger.settings == made.to_json() else None


def _only_run_in(kept: Path, processes: _Processes) -> contextlib.AbstractContextManager[filelock.BaseFileLock]:
    """Lock a run's parts, so that two runs with the same settings do not interfere; released with the block."""
    lock = filelock.FileLock(kept / f"lock.{processes.rank}", timeout=0)
    try:
        return lock.acquire()  # entering the lock itself would acquire it once more
    except filelock.Timeout:
        raise LedgerError(
            f"another run of the same settings is writing to {kept.parent}: wait for it, or choose another folder"
        ) from None
