"""Probe several models, or the checkpoints of one, one after the other, on functions that are read once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ArgumentError, CodeSyntaxError
from codesyntax_dataset.protocol import ATTENTION, PAPER_LENGTH, SUM
from probing.attention.probe import Probing
from probing.attention.result import ProbeResult
from probing.models.location import checkpoints, trainings
from probing.runs.data import read_functions
from probing.runs.experiment import run
from probing.runs.session import Session
from probing.runs.settings import limit_of


class Done(NamedTuple):
    """One probe of several: of a model, as NAME@REVISION, on a config and a split.

    `result`: None if there is an `error`, and where `probe` returns None; `ran`: whether the model ran, and the result
    is not that of an earlier run.
    """

    model: str
    config: str
    split: str
    result: ProbeResult | None
    ran: bool
    error: CodeSyntaxError | None


@checked
def probe_models(
    models: Sequence[str | os.PathLike],
    data: Any,
    configs: Sequence[str] = ("python",),
    splits: Sequence[str] = ("test",),
    *,
    revisions: Sequence[str] = (),
    limit: Positive | None = None,
    sample: Positive | None = None,
    control: str | None = None,
    seed: Natural = 0,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    max_length: Positive = PAPER_LENGTH,
    weights: str = ATTENTION,
    pool: str = SUM,
    output: str | os.PathLike | None = None,
    shard: str | None = None,
    **asked: Any,
) -> Iterator[Done]:
    """Probe each model on each config and split, one after the other, and yield the outcomes; data are read once.

    `models`: as of `probe`, each once; `NAME@REVISION` is a model at a revision, and several revisions of one model are
    checkpoints of a training, as is a folder that holds only checkpoints (`probing.models.location.checkpoints`).
    `revisions`: those of a single model. All other arguments are those of `probe`, and so is each result; with an
    `output`, a repeated call continues where the last one stopped.

    A model that fails with one of our errors does not stop the others. Raises what `probe` raises for the data, and
    ArgumentError if there is no model, or if there are revisions of several.
    """
    if not models or (revisions and len(models) > 1):
        raise ArgumentError(
            f"{len(models)} models" + (" with revisions, expected one: write NAME@REVISION" if models else "")
        )
    reads = [
        read_functions(data, config, split, limit=limit_of(limit, sample, seed), control=control, seed=seed)
        for config in dict.fromkeys(configs)
        for split in dict.fromkeys(splits)
    ]
    for model, named in trainings([os.fspath(model) for model in models]):
        try:
            revised = checkpoints(model, revisions or named)
        except CodeSyntaxError as error:
            for functions in reads:
                yield Done(model, functions.config, functions.split, None, False, error)
            continue
        for revision, step in revised:
            session = Session(
                model,
                revision=revision,
                step=step,
                dtype=dtype,
                device=device,
                max_length=max_length,
                weights=weights,
                pool=pool,
            )
            name = model if revision is None else f"{model}@{revision}"
            for functions in reads:
                experiment = Probing(session, functions, **asked)
                result = failure = None
                try:
                    result = run(experiment, output, shard)
                except CodeSyntaxError as error:
                    failure = error
                ran = experiment.ran or failure is not None
                yield Done(name, functions.config, functions.split, result, ran, failure)


@checked
def probe_training(
    model: str | os.PathLike, data: Any, config: str = "python", split: str = "test", **given: Any
) -> Iterator[ProbeResult | None]:
    """Yield the result of each checkpoint of a training run, one after the other, on functions that are read once.

    `revisions`: the checkpoints: branches, tags or commits of a model on the Hub, or the names of folders in a local
    one; without any, those of a folder that holds only checkpoints, or the model itself. All other arguments are those
    of `probe`, and so is each result; a report draws its scores over the steps. Raises what `probe` raises, and
    ModelError for a revision that does not exist before anything is probed.
    """
    for done in probe_models([model], data, [config], [split], **given):
        if done.error is not None:
            raise done.error
        yield done.result
