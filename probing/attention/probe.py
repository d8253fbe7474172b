"""The attention probe: prepare a model and its functions, and run the job that ranks dependents."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import LedgerError, ModelError
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import PAPER_LENGTH, RANDOM_WEIGHTS, SHUFFLED_ATTENTION
from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, DIRECTIONS, HEAD_TO_DEPENDENT, RULES, SCORING_VERSION
from probing.attention.align import OffsetsError, align
from probing.attention.edges import EdgeTable, stacked
from probing.attention.ledger import RankLedger
from probing.attention.ranking import BatchListener, BatchRanker, EncodedFunction
from probing.attention.result import ProbeProvenance, ProbeResult, ProbeRun, at_step
from probing.models.cache_dir import versions
from probing.models.checkpoints import Checkpoint, step_of
from probing.models.location import no_panic
from probing.runs import cache
from probing.runs.batches import Batches, out_of_memory
from probing.runs.data import Functions, folder_of, read_functions, rows
from probing.runs.runner import Processes, asked_shard
from probing.runs.runner import run as run_job
from probing.runs.settings import Settings
from probing.runs.threads import useful_threads

if TYPE_CHECKING:
    from probing.models.encoder import Encoder

logger = logging.getLogger(__name__)

PART = 64
"""Functions per part of the ledger, the most that an interrupted run loses."""


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
    shard: str | None = None,
) -> ProbeResult | None:
    """Top-k UAS of every attention head of a model, by the published protocol (Shen et al. 2022, section 4).

    `model`: a Hub id or a folder of checkpoints (at `revision`), a local folder, or a (model, tokenizer) pair. `data`:
    a folder that `codesyntax build` wrote, a dataset id, or a loaded dataset. `dtype`: `float32` or `bfloat16`, as text
    or torch dtype. `batch_tokens`: sub-tokens per batch, padding included; scores do not depend on it. `limit`: probe
    only the first functions of the split, which the result says. `direction`: `head-to-dependent`, as published for
    code, or `dependent-to-head`, as published for natural language and the only one for models that cannot see later
    tokens; by default that of the language, if the model supports it. `max_length`: the most sub-tokens, special tokens
    included, of a function, 511 in the paper. `also_fits`: other models that a function must fit, so that scores
    compare. `control`: `random-weights`, `shuffled-attention` or `redrawn-dependents`, drawn with `seed`: the model
    without what it learned, with its attention on other tokens, or on edges to other tokens (see
    `probing.runs.controls`), which the result says. `output`: a folder for the result and its ledger, in which an
    interrupted run continues where it stopped. `shard`: such as `2/7`, to run only the second of seven shards of the
    functions and write it to `output` for `probing.merge`; the result is then None.

    A repeated probe is answered from the cache (see `probing.runs.cache`), unless the model is a pair.

    Under `accelerate launch` or `torchrun` the processes share the work; the main process returns the same result as a
    single process would, the others return None.

    Raises ArgumentError, ModelError, DatasetError, UnknownName or LedgerError, each with a one-line message.
    """
    functions = read_functions(data, config, split, limit=limit, control=control, seed=seed)
    return probe_functions(
        model,
        functions,
        data,
        Checkpoint(revision, step_of(revision)),
        dtype=dtype,
        device=device,
        batch_tokens=batch_tokens,
        direction=direction,
        max_length=max_length,
        also_fits=also_fits,
        output=output,
        shard=shard,
    ).result


class Finished(NamedTuple):
    """The result of a probe, None where there is none, and whether the model ran for it: not if an earlier run did."""

    result: ProbeResult | None
    ran: bool


def probe_functions(
    model: str | os.PathLike | tuple,
    functions: Functions,
    data: Any,
    checkpoint: Checkpoint,
    *,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    batch_tokens: int | None = None,
    direction: str | None = None,
    max_length: int = PAPER_LENGTH,
    also_fits: Sequence[str] = (),
    output: str | os.PathLike | None = None,
    shard: str | None = None,
) -> Finished:
    """A probe of functions that were read from `data`; arguments and errors as of `probe`."""
    processes = Processes()
    share = asked_shard(shard, output, processes)
    asked: dict[str, Any] = {
        **checkpoint._asdict(),
        "dtype": str(dtype).removeprefix("torch."),
        "device": str(device) if device else processes.device,
        "direction": direction,
        "max_length": max_length,
        "also_fits": also_fits,
    }
    place = os.fspath(model) if isinstance(model, os.PathLike) else model
    slot = None if share else cache.slot(place, functions, **asked)
    known, result = cache.answered(slot, processes, ProbeResult, data, output)
    if known:
        return Finished(result, False)
    with useful_threads():
        job = prepare(place, functions, **asked)
        job.batch_tokens, job.data_folder = batch_tokens, folder_of(data)
        logger.info(
            "%s on %s: %s attention, %d functions of %d to %d sub-tokens to probe, skipped: %s",
            *(job.encoder.name, job.encoder.device, job.encoder.path, len(job.functions)),
            *(len(job.functions[-1].ids), len(job.functions[0].ids), dict(job.skips) or "none"),
        )
        result = run_job(job, processes, None if output is None else Path(output), share)
    if result is not None and slot is not None:
        slot.save(result.ledger.save, job.settings.revision)
    return Finished(result, job.ran)


@dataclass
class RankJob:
    """An encoder, the functions to probe, longest first, and everything that determines their ranks.

    A `runner.Job` whose tables are rank ledgers. `batch_tokens`: sub-tokens per batch, padding included; ranks do not
    depend on it. `data_folder`: the folder of the data, if it is in one. `step`: that of a checkpoint. `ran`: whether
    any part was run, and not read.
    """

    encoder: Encoder
    settings: Settings
    functions: list[EncodedFunction]
    relations: list[str]
    skips: Counter[str]
    batch_tokens: int | None = None
    data_folder: Path | None = None
    step: int | None = None
    ran: bool = False

    @property
    def title(self) -> str:
        return f"probing {at_step(self.settings.model, self.step)}"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def parts(self) -> list[list[EncodedFunction]]:
        return [self.functions[start : start + PART] for start in range(0, len(self.functions), PART)]

    @cached_property
    def provenance(self) -> ProbeProvenance:
        """The settings of the ledger."""
        run = ProbeRun(
            family=self.encoder.family,
            attention=self.encoder.path,
            attention_why=self.encoder.why,
            device=self.encoder.device.type,
            step=self.step,
        )
        tied = sum(function.tied(self.settings.direction).sum(axis=1) for function in self.functions)
        return ProbeProvenance(
            settings=self.settings,
            scoring=SCORING_VERSION,
            skips=dict(sorted(self.skips.items())),
            ties=dict(zip(RULES, tied.tolist())),
            run=run,
            versions=versions(),
        )

    @cached_property
    def made(self) -> dict[str, Any]:
        return self.provenance.to_json()

    @cached_property
    def _runner(self) -> Runner:
        return Runner(self.encoder, self.settings.direction, self.batch_tokens)

    def run(self, part: Sequence[EncodedFunction], bar: tqdm) -> np.ndarray:
        self.ran = True
        return self._runner.run(part, bar)

    def shape(self, part: Sequence[EncodedFunction]) -> tuple[int, ...]:
        edges = sum(len(function.edges) for function in part)
        return len(RULES), edges, self.encoder.layers, self.encoder.heads

    def table(self, part: Sequence[EncodedFunction], found: np.ndarray) -> RankLedger:
        return RankLedger.of(stacked([function.edges for function in part]), found, self.made)

    def found(self, table: RankLedger) -> np.ndarray:
        return np.asarray(table.ranks)

    def load(self, file: Path) -> RankLedger:
        return RankLedger.load(file)

    def result(self, tables: Sequence[RankLedger]) -> ProbeResult:
        return ProbeResult.from_ledger(RankLedger.concatenate(tables), self.data_folder)

    def finished(self, folder: Path) -> ProbeResult | None:
        return ProbeResult.finished(folder / f"{self.name}.json", self.made, self.data_folder)

    def save(self, result: ProbeResult, folder: Path) -> None:
        result.save(folder)


def prepare(
    model: str | tuple,
    functions: Functions,
    *,
    revision: str | None = None,
    step: int | None = None,
    dtype: str = "float32",
    device: str | torch.device | None = None,
    direction: str | None = None,
    max_length: int = PAPER_LENGTH,
    also_fits: Sequence[str] = (),
) -> RankJob:
    """Load the model, tokenize and align every function; arguments as of `probe`; `step`: that of a checkpoint."""
    from probing.models.load import load, load_tokenizer  # transformers takes seconds to import
    from probing.models.selfcheck import examine_lengths
    from probing.models.subtokens import check_language

    if direction not in (None, *DIRECTIONS):
        raise ModelError(f"direction is {direction!r}, expected one of {', '.join(DIRECTIONS)}")
    control, seed = functions.control, functions.seed
    fresh = seed if control == RANDOM_WEIGHTS else None
    shuffled_by = seed if control == SHUFFLED_ATTENTION else None
    others = {name: load_tokenizer(name, max_length=max_length) for name in also_fits}
    encoder = load(model, revision=revision, dtype=dtype, device=device, max_length=max_length, random_weights=fresh)
    language = language_of(functions.config).name
    for name, tokenizer in [(encoder.name, encoder.tokenizer), *((name, one) for name, (one, _) in others.items())]:
        check_language(tokenizer, name, language)
    if encoder.causal and direction == HEAD_TO_DEPENDENT:
        raise ModelError(
            f"{encoder.name} cannot see later tokens, such as nearly all dependents: it scores 0 in the direction "
            f"{HEAD_TO_DEPENDENT}; use {DEPENDENT_TO_HEAD}"
        )
    encoded, relations, skips = encode_functions(encoder, functions, others, shuffled_by)
    if not encoded:
        raise LedgerError(
            f"no function of {functions.name}/{functions.config}/{functions.split} can be scored; "
            f"skipped: {dict(skips)}"
        )
    encoded.sort(key=lambda function: (-len(function.ids), function.index))
    try:
        examine_lengths(encoder, encoded[0].ids, encoded[-1].ids)
    except RuntimeError as error:
        if not out_of_memory(error):  # if a batch of the two does not fit in memory, no batch will mix them
            raise
    settings = Settings(
        model=encoder.name,
        revision=encoder.revision,
        data=functions.name,
        labels=functions.labels,
        config=functions.config,
        split=functions.split,
        direction=direction or default_direction(encoder, functions.config),
        dtype=encoder.precision,
        max_length=max_length,
        also_fits=tuple(sorted(also_fits)),
        limit=functions.limit,
        control=control,
        seed=None if control is None else seed,
    )
    return RankJob(encoder, settings, encoded, relations, skips, step=step)


def encode_functions(
    encoder: Encoder, functions: Functions, others: Mapping[str, tuple] = {}, shuffled_by: int | None = None
) -> tuple[list[EncodedFunction], list[str], Counter[str]]:
    """The functions that a model reads, in order; the relations of their edges; {reason: number of skipped ones}.

    `others`: name -> tokenizer and most sub-tokens of other models that must read them; `shuffled_by`: as in
    EncodedFunction.
    """
    never_predicted = variant_of(functions.config).never_predicted
    encoded: list[EncodedFunction] = []
    relations: list[str] = []
    skips: Counter[str] = Counter()
    index = -1
    for batch in rows(functions.dataset, functions.limit):
        texts = [row["code"] for row in batch]
        too_long = _too_long(texts, others)
        for row, longer_than, (ids, offsets, special) in zip(batch, too_long, encoder.encode(texts)):
            index += 1
            if not row["relations"]:
                skips["no relations"] += 1
            elif len(ids) > encoder.longest:
                skips[f"more than {encoder.longest} sub-tokens"] += 1
            elif longer_than:
                skips[f"too long for {longer_than}"] += 1
            else:
                start, end = np.asarray(row["token_start"], np.int64), np.asarray(row["token_end"], np.int64)
                try:
                    alignment = align(row["code"], start, end, offsets, special, exact=encoder.exact_offsets)
                except OffsetsError:  # only of this function, for example because it quotes a special token
                    skips["offsets of sub-tokens run backwards"] += 1
                    continue
                alignment = alignment.without(never_predicted, row["code"], start, end)
                table = EdgeTable.from_rows([(index, row)], relations)
                encoded.append(EncodedFunction(index, ids, alignment, table, shuffled_by))
    return encoded, relations, skips


def default_direction(encoder: Encoder, config: str) -> str:
    """That of the language of `config`, or the only one that the model supports."""
    return DEPENDENT_TO_HEAD if encoder.causal else language_of(config).direction


def prepare_again(settings: Settings, *, model: Any, data: Any, device: str | torch.device | None) -> RankJob:
    """The job of an earlier run, with the same data, and its model or the given one."""
    functions = read_functions(
        data,
        settings.config,
        settings.split,
        limit=settings.limit,
        control=settings.control,
        seed=settings.seed or 0,
    )
    return prepare(
        model or settings.model,
        functions,
        revision=None if model else settings.revision,
        dtype=settings.precision,
        device=device,
        direction=settings.direction,
        max_length=settings.max_length,
        also_fits=settings.also_fits,
    )


def _too_long(texts: Sequence[str], others: Mapping[str, tuple]) -> list[str]:
    """For each text, the first of the other models for which it is too long, or an empty string."""
    models = [""] * len(texts)
    for name, (tokenizer, longest) in others.items():
        with no_panic():
            encoded = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        for place, ids in enumerate(encoded):
            if len(ids) > longest:
                models[place] = models[place] or name
    return models


class Runner(Batches):
    """Batches of functions whose edges are ranked in one direction."""

    def __init__(self, encoder: Encoder, direction: str, batch_tokens: int | None):
        super().__init__(encoder, batch_tokens)
        self.encoder, self.direction = encoder, direction

    def run(
        self,
        functions: Sequence[EncodedFunction],
        bar: tqdm,
        listener: Callable[..., BatchListener] = BatchRanker,
    ) -> np.ndarray:
        """The output of `listener` for the functions' edges: by default ranks (rules, edges, layers, heads)."""
        encoder = self.encoder

        def listen(batch: Sequence[EncodedFunction], inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
            length = inputs["input_ids"].shape[1]
            listening = listener(
                batch, encoder.layers, encoder.heads, length, encoder.device, self.elements, self.direction
            )
            encoder.forward(inputs, listening)
            return listening.found

        return torch.cat(self.each(functions, bar, listen), dim=1).numpy()
