"""SyntaxEval: mask the nodes of each type in functions, let a model restore them, and compare the syntax trees.

A job of `probing.runs.runner`. Copies of a function are masked by `masking`, restored by `fill`, put back into text by
`restore`, and compared by `codesyntax_metric.ast_similarity`, all of it in `copies`.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ArgumentError, LedgerError, UnknownName
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import PAPER_LENGTH
from codesyntax_metric.ast_similarity.similarity import parser_version
from probing.models.cache_dir import versions
from probing.prediction import examples
from probing.prediction.copies import Pair, Restoration, Restored, masked_copies
from probing.prediction.ledger import HITS, ROW, SIMILARITIES, MaskingLedger
from probing.prediction.masking import CONTROLS, CURRENT, PUBLISHED, SPANS, SUB_TOKENS, Maskable, Masker
from probing.prediction.result import DROPPED, VERSION, MaskProvenance, MaskResult, MaskRun, MaskSettings
from probing.prediction.row_job import RowJob
from probing.runs import cache
from probing.runs.data import Functions, folder_of, read_functions, rows
from probing.runs.ledger_file import MASKING
from probing.runs.runner import Processes, asked_shard
from probing.runs.runner import run as run_job
from probing.runs.threads import useful_threads

if TYPE_CHECKING:
    from probing.models.masked import MaskedModel

logger = logging.getLogger(__name__)

PART = 8
"""Functions per part of the ledger, the most that an interrupted run loses."""


@checked
def mask(
    model: str | os.PathLike | tuple,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    node_types: Sequence[str] | None = None,
    protocol: str = CURRENT,
    rate: float | int = 1.0,
    control: str = SUB_TOKENS,
    draws: Positive = 20,
    seed: Natural = 0,
    revision: str | None = None,
    device: str | torch.device | None = None,
    batch_tokens: Positive | None = None,
    limit: Positive | None = None,
    max_length: Positive = PAPER_LENGTH,
    output: str | os.PathLike | None = None,
    shard: str | None = None,
) -> MaskResult | None:
    """What a masked language model restores of functions in which the nodes of a type are masked (Velasco et al. 2024).

    For each function and node type, one copy has the outermost nodes of the type masked, T1, and `draws` copies have as
    many random sub-tokens masked, T0. The model restores each, and the tree of the restored text is compared with that
    of the source.

    `model`: a Hub id (at `revision`), a local folder, or a (model, tokenizer) pair, with a masked-LM head. `data`,
    `config`, `split`, `limit`, `max_length`, `batch_tokens`, `output` and `shard`: as of `probing.probe`; labels are
    not used.
    `node_types`: names of the language's tree-sitter grammar, or `["all"]`; by default the eleven of the study, or
    their counterparts. `protocol`: `current`, or `published`, which masks what the study masked. `rate`: the share of a
    function's nodes that is masked, rounded down. `control`: what T0 masks, `sub-tokens` as above, or `spans`, random
    spans of sub-tokens as long as those of the nodes. `seed`: of the controls and of a rate below 1. The model runs in
    float32.

    With an `output`, three worked examples are written beside the result (see `probing.prediction.examples`); after
    shards, by a further call without one.

    The same arguments give the same result for any batches and number of processes. A repeated run is answered from the
    cache (see `probing.runs.cache`), unless the model is a pair. Under `accelerate launch` or `torchrun`, the main
    process returns the result and the others None.

    Raises ArgumentError, ModelError, DatasetError, UnknownName or LedgerError, each with a one-line message.
    """
    processes = Processes()
    share = asked_shard(shard, output, processes)
    functions = read_functions(data, config, split, limit=limit)
    language = language_of(config).name
    chosen = _chosen(language, node_types)
    asked: dict[str, Any] = {
        "node_types": chosen,
        "protocol": protocol,
        "rate": float(rate),
        "control": control,
        "draws": draws,
        "seed": seed,
        "max_length": max_length,
    }
    where: dict[str, Any] = {"revision": revision, "device": str(device) if device else processes.device}
    place = os.fspath(model) if isinstance(model, os.PathLike) else model
    parser = parser_version(language)  # the cache knows no versions of parsers by itself
    slot = None
    if share is None:
        slot = cache.slot(place, functions, **where, also_fits=(), instrument=MASKING, parser=parser, **asked)
    known, result = cache.answered(slot, processes, MaskResult, data, output)
    job = None
    if not known:
        with useful_threads():
            job = prepare(place, functions, **where, **asked)
            job.batch_tokens, job.data_folder = batch_tokens, folder_of(data)
            result = run_job(job, processes, None if output is None else Path(output), share)
        if result is not None and slot is not None:
            slot.save(result.ledger.save, job.settings.revision)
    if result is not None and output is not None:
        loaded = partial(_load, place, **where, max_length=max_length) if job is None else lambda: job.model
        examples.keep(result, functions, Path(output), loaded)
    return result


@dataclass(frozen=True)
class Source:
    """A function to mask: its place in the split, code and sub-tokens `ids` (S,), and how many copies it has."""

    index: int
    code: str
    ids: np.ndarray
    copies: int


@dataclass
class MaskJob(RowJob[Source, MaskingLedger, MaskResult]):
    """A masked language model, and the functions to mask, longest first.

    `batch_tokens`: sub-tokens per batch, padding included; results do not depend on it.
    """

    LEDGER = MaskingLedger
    RESULT = MaskResult

    model: MaskedModel
    masker: Masker
    settings: MaskSettings
    functions: list[Source]
    skips: Counter[str]
    dropped: Counter[str]
    read: int
    batch_tokens: int | None = None
    data_folder: Path | None = None

    @property
    def title(self) -> str:
        return f"masking with {self.settings.model}"

    @property
    def parts(self) -> list[list[Source]]:
        return [self.functions[start : start + PART] for start in range(0, len(self.functions), PART)]

    @property
    def name(self) -> str:
        return self.settings.name

    @cached_property
    def made(self) -> dict[str, Any]:
        return self.provenance.to_json()

    @property
    def names(self) -> list[str]:
        return list(self.settings.node_types)

    @cached_property
    def provenance(self) -> MaskProvenance:
        """The settings of the ledger."""
        run = MaskRun(
            family=self.model.family,
            device=self.model.device.type,
            output_layer="all positions" if self.model.why else "masked positions",
            parser=parser_version(self.masker.language),
        )
        return MaskProvenance(
            settings=self.settings,
            version=VERSION,
            functions=self.read,
            skips=dict(sorted(self.skips.items())),
            dropped={reason: self.dropped[reason] for reason in DROPPED},
            run=run,
            versions=versions(),
        )

    @cached_property
    def _restoration(self) -> Restoration:
        return Restoration(self.model, self.masker, self.batch_tokens)

    def run(self, part: Sequence[Source], bar: tqdm) -> np.ndarray:
        return self.as_found(self.rows(part, bar)[0])

    def rows(self, part: Sequence[Source], bar: tqdm) -> tuple[np.ndarray, np.ndarray]:
        """The rows (N,) of a ledger for some functions, in their order, and the number of unsure positions of each."""
        sources = zip(part, self.masker.read([source.code for source in part]))
        functions = [(function, copies_of(function, source.index, self.settings)[0]) for source, function in sources]
        tables, unsure = [], []
        for source, (_, pairs), restored in zip(part, functions, self._restoration.each(functions, bar)):
            tables.append(_rows(source.index, pairs, restored))
            unsure += [one.filled.unsure for one in restored]
        return np.concatenate(tables), np.array(unsure)

    def shape(self, part: Sequence[Source]) -> tuple[int, ...]:
        return self.shape_of(sum(source.copies for source in part))


def prepare(
    model: str | tuple,
    functions: Functions,
    *,
    node_types: Sequence[str],
    protocol: str,
    rate: float,
    draws: int,
    seed: int,
    max_length: int,
    control: str = SUB_TOKENS,
    revision: str | None = None,
    device: str | torch.device | None = None,
) -> MaskJob:
    """Load the model, and tokenize and parse every function; arguments as of `mask`."""
    if not 0 < rate <= 1:
        raise ArgumentError(f"rate is {rate}, expected a share of the nodes above 0, at most 1")
    if control not in CONTROLS:
        raise UnknownName("control", control, CONTROLS)
    if control == SPANS and protocol == PUBLISHED:
        raise ArgumentError(f"the protocol {PUBLISHED} has the control {SUB_TOKENS}: use another protocol, or that one")
    language = language_of(functions.config).name
    loaded = _load(model, revision=revision, device=device, max_length=max_length)
    masker = Masker(loaded.tokenizer, language, node_types, protocol=protocol)
    settings = MaskSettings(
        model=loaded.name,
        revision=loaded.revision,
        data=functions.name,
        labels=functions.labels,
        config=functions.config,
        split=functions.split,
        protocol=protocol,
        node_types=tuple(masker.node_types),
        rate=rate,
        control=control,
        draws=draws,
        seed=seed,
        max_length=max_length,
        limit=functions.limit,
    )
    sources: list[Source] = []
    skips: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    index, read = -1, 0
    for batch in rows(functions.dataset, functions.limit):
        for function in masker.read([row["code"] for row in batch]):
            index += 1
            if len(function.ids) > loaded.longest:
                skips[f"more than {loaded.longest} sub-tokens"] += 1
                continue
            read += 1
            pairs, without = copies_of(function, index, settings)
            dropped += without
            if pairs:
                copies = sum(len(pair.copies) for pair in pairs)
                sources.append(Source(index, function.code, function.ids, copies))
    if not sources:
        raise LedgerError(
            f"no function of {functions.name}/{functions.config}/{functions.split} has anything to mask of "
            f"{', '.join(node_types)}; functions skipped: {dict(skips) or 'none'}"
        )
    sources.sort(key=lambda source: (-len(source.ids), source.index))
    return MaskJob(loaded, masker, settings, sources, skips, dropped, read)


def _load(model: str | tuple, **given: Any) -> MaskedModel:
    from probing.models.load import load_masked  # transformers takes seconds to import

    return load_masked(model, **given)


def copies_of(function: Maskable, index: int, settings: MaskSettings) -> tuple[list[Pair], Counter[str]]:
    """`masked_copies` of a run with these settings."""
    return masked_copies(
        function,
        index,
        settings.node_types,
        rate=settings.rate,
        control=settings.control,
        draws=settings.draws,
        seed=settings.seed,
    )


def _rows(index: int, pairs: Sequence[Pair], restored: Sequence[Restored]) -> np.ndarray:
    """The rows of the function at a place in the split, from what the model restored in its copies, in order."""
    found = np.zeros(len(restored), ROW)
    found["function"] = index
    places = ((pair.node_type, number, copy) for pair in pairs for number, copy in enumerate(pair.copies))
    for row, (node_type, number, copy), one in zip(found, places, restored):
        row["node_type"], row["copy"], row["seed"] = node_type, number, copy.seed
        row["masked"], row["log_probability"] = len(copy.positions), one.filled.log_probability
        for name, value in zip((*HITS, *SIMILARITIES), (*one.filled.hits, *one.similarity)):
            row[name] = value
    return found


def _chosen(language: str, names: Sequence[str] | None) -> list[str]:
    """The node types of these names; `all` stands for all named ones of the grammar."""
    from codesyntax_dataset.languages import grammar

    if names is not None and not names:
        raise ArgumentError("no node type to mask: name some of the language's grammar, or all")
    if names is not None and list(names) == ["all"]:
        return [name for name in grammar.node_types(language) if name.isidentifier()]
    return grammar.checked_node_types(language, names)
