"""Probe a model: in which order things happen."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.errors import LedgerError
from probing import data as probe_data
from probing.align import align
from probing.encoder import PAPER_LENGTH, Encoder, load
from probing.ledger import RankLedger
from probing.ranking import EncodedFunction
from probing.result import ProbeResult, ProbeSettings, writing

PART = 256
"""Functions in a part of the ledger: what an interrupted run loses at most."""

_BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}
_ELEMENTS = {"cpu": 1 << 21, "cuda": 1 << 26}  # weights in flight while a layer is ranked: 8 MB, 256 MB


def probe(
    model: str | tuple,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
    batch_tokens: int | None = None,
    limit: int | None = None,
    output: str | os.PathLike | None = None,
) -> ProbeResult:
    """Top-k UAS of every attention head of a model, by the published protocol (Shen et al. 2022, section 4).

    `model`: a Hub id (at `revision`), a local folder, or a (model, tokenizer) pair. `data`: a folder that `codesyntax build`
    wrote, a dataset id, or a loaded dataset. `dtype`: `float32` or `bfloat16`. `batch_tokens`: sub-tokens in a batch,
    padding included; scores do not depend on it. `limit`: only the first functions of the split; the result says so.
    `output`: a folder for the result and its ledger; there, an interrupted run goes on where it stopped.

    Raises ModelError, DatasetError, UnknownName or LedgerError, each with one line on what came and what to try.
    """
    dataset, data_name = probe_data.load_functions(data, config, split)
    encoder = load(model, revision=revision, dtype=dtype, device=device)
    functions, relations, skips, labels = encode(encoder, dataset, limit)
    settings = ProbeSettings(
        model=encoder.name,
        revision=encoder.revision,
        data=data_name,
        labels=labels,
        config=config,
        split=split,
        dtype=dtype,
        shorter_than=PAPER_LENGTH,
        limit=None if limit is None or limit >= len(dataset) else limit,
    )
    made = {
        "settings": asdict(settings),
        "skips": dict(sorted(skips.items())),
        "run": {"attention": encoder.path, "attention_why": encoder.why, "device": encoder.device.type},
        "versions": _versions(),
    }
    functions.sort(key=lambda function: (-len(function.ids), function.index))  # the largest batch comes first
    parts = [functions[start : start + PART] for start in range(0, len(functions), PART)]
    budget = batch_tokens or _BATCH_TOKENS.get(encoder.device.type, 4096)
    if not parts:
        raise LedgerError(f"no function of {data_name}/{config}/{split} can be scored; skipped: {dict(skips)}")

    def run_part(part: Sequence[EncodedFunction], bar: tqdm) -> RankLedger:
        return _ledger_of(part, _run(encoder, part, budget, bar), relations, made)

    with tqdm(total=len(functions), desc=f"probing {encoder.name}", unit="function", disable=None) as bar:
        if output is None:
            ledgers: Iterable[RankLedger] = [run_part(part, bar) for part in parts]
            return ProbeResult.from_ledger(RankLedger.concatenate(ledgers).sorted())
        folder = Path(output)
        with _held(folder, settings.name):
            kept = folder / f".{settings.name}.parts"
            with writing(kept):
                kept.mkdir(exist_ok=True)
            for number, part in enumerate(parts):
                file = kept / f"{number:05d}.parquet"
                if file.exists():
                    bar.update(len(part))
                else:
                    run_part(part, bar).save(file)
            ledgers = (RankLedger.load(kept / f"{number:05d}.parquet") for number in range(len(parts)))
            result = ProbeResult.from_ledger(RankLedger.concatenate(ledgers).sorted())
            result.save(folder)
            shutil.rmtree(kept)
    return result


def encode(
    encoder: Encoder, dataset, limit: int | None
) -> tuple[list[EncodedFunction], list[str], Counter[str], str]:
    """Tokenize and align every function: those to run, the relations' names, the skips by reason, the labels' digest."""
    functions: list[EncodedFunction] = []
    relations: dict[str, int] = {}
    skips: Counter[str] = Counter()
    digest = probe_data.LabelDigest()
    index = -1
    for rows in probe_data.rows(dataset, limit):
        for row, (ids, offsets, special) in zip(rows, encoder.encode([row["code"] for row in rows])):
            index += 1
            digest.add(row)
            edges = row["relations"]
            if not edges:
                skips["no relations"] += 1
            elif len(ids) > encoder.longest:
                skips[f"more than {encoder.longest} sub-tokens"] += 1
            else:
                start, end = np.asarray(row["token_start"], np.int64), np.asarray(row["token_end"], np.int64)
                names = [relations.setdefault(edge["relation"], len(relations)) for edge in edges]
                columns = np.array([(edge["head"], edge["first"], edge["last"]) for edge in edges], np.int32).T
                functions.append(
                    EncodedFunction(index, ids, align(start, end, offsets, special), np.array(names, np.int32), *columns)
                )
    return functions, list(relations), skips, str(digest)


def batches(functions: Sequence[EncodedFunction], budget: int) -> Iterator[list[EncodedFunction]]:
    """Runs of functions, longest first, that have at most `budget` sub-tokens when padded (or one function)."""
    batch: list[EncodedFunction] = []
    for function in functions:
        if batch and (len(batch) + 1) * len(batch[0].ids) > budget:
            yield batch
            batch = []
        batch.append(function)
    if batch:
        yield batch


def _run(encoder: Encoder, part: Sequence[EncodedFunction], budget: int, bar: tqdm) -> np.ndarray:
    """Ranks of a part's edges, uint8 (rules, edges, layers, heads); a batch's are fetched while the next one runs."""
    elements = _ELEMENTS.get(encoder.device.type, 1 << 21)
    done: list[torch.Tensor] = []
    for batch in batches(part, budget):
        ranks = encoder.ranks(batch, elements).ranks
        done.append(ranks.to("cpu", non_blocking=True))
        bar.update(len(batch))
    if encoder.device.type == "cuda":
        torch.cuda.synchronize(encoder.device)
    return torch.cat(done, dim=1).numpy()


def _ledger_of(
    part: Sequence[EncodedFunction], ranks: np.ndarray, relations: list[str], made: dict[str, Any]
) -> RankLedger:
    edges = [len(function.head) for function in part]
    columns = {
        name: np.concatenate([getattr(function, name) for function in part])
        for name in ("relation", "head", "first", "last")
    }
    return RankLedger(
        relations=relations,
        function=np.repeat(np.array([function.index for function in part], np.int32), edges),
        tokens=np.repeat(np.array([len(function.alignment.first) for function in part], np.int32), edges),
        ranks=ranks,
        settings=made,
        **columns,
    )


def _held(folder: Path, name: str) -> filelock.BaseFileLock:
    """A lock on one run's files in the folder, so that two runs of the same settings do not spoil each other."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / f".{name}.lock", timeout=0)
    try:
        return lock.acquire().lock
    except filelock.Timeout:
        raise LedgerError(f"another run is writing {name} into {folder}: wait for it, or choose another folder") from None


def _versions() -> dict[str, str]:
    names = ("codesyntax", "torch", "transformers", "tokenizers", "datasets", "numpy")
    return {name: importlib.metadata.version(name) for name in names}
