"""The attention probe: prepare a model and its functions, and rank dependents, for one model,
several, or the checkpoints of one.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, StrPath, checked
from codesyntax_dataset.errors import ArgumentError, CodeSyntaxError, ModelError
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import RANDOM_WEIGHTS
from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, DIRECTIONS, HEAD_TO_DEPENDENT, RULES
from probing.instruments.attention.align import OffsetsError, align
from probing.instruments.attention.edges import EdgeTable, stacked
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeProvenance, ProbeResult
from probing.models.location import ModelSource, checkpoints, trainings
from probing.runs.data import read_functions, rows
from probing.runs.experiment import ANY_BATCHES, NO_SETTING, Experiment, Prepared, cost, run
from probing.runs.records import JsonObject
from probing.runs.session import Session
from probing.runs.settings import EITHER, Limit

if TYPE_CHECKING:
    import torch

    from probing.instruments.attention.runner import Runner
    from probing.models.encoder import Encoder

logger = logging.getLogger(__name__)

_USUAL_CODE = 500
"""Bytes of a function of usual length."""

_CODE_OF_A_SUB_TOKEN = 3.5
"""The bytes of its code."""

_ON_GPU = 64
"""How much larger parts are there, as its batches are: eight batches."""


@checked
def probe(
    model: ModelSource | Session,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    revision: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    batch_tokens: Positive | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    direction: str | None = None,
    max_length: Positive | None = None,
    control: str | None = None,
    seed: Natural = 0,
    output: StrPath | None = None,
    shard: str | None = None,
) -> ProbeResult | None:
    """Top-k UAS of every attention head of a model, by the published protocol (Shen et al. 2022,
    section 4).

    A repeated run is answered from the cache (see `probing.models.cache_dir`), unless the model is
    a pair.

    Under `accelerate launch` or `torchrun` the processes share the work; the main process returns
    the result of a single one, the others None.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair; or a `probing.Session`, which loads it once for several calls.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: the labels, such as `python`, `java` or `python_exact`.
        split: the split that is scored, `test` or `validation`.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        dtype: precision of the model: `float32`, by default, `bfloat16` or `float16`, as text or
            torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        batch_tokens: sub-tokens in a batch, padding included; scores do not depend on it.
        limit: only the first so many functions of the split; the result says so.
        sample: only so many functions, drawn by `seed`, of controls by 0: the same ones for every
            model.
        direction: `head-to-dependent`, as published for code, or `dependent-to-head`, as published
            for natural language and the only one of models that cannot see later tokens; by default
            that of the language, if the model supports it.
        max_length: the most sub-tokens of a function, special tokens included: by default 511, as
            in the paper. Longer ones are skipped and counted.
        control: what is probed instead, drawn by `seed`, which the result says: `random-weights`,
            the model without what it learned, or the model on other edges, `redrawn-dependents` or
            `control-task` (see `probing.runs.data`).
        seed: of `sample` and `control`.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the functions, and write it to
            `output` for `probing.merge`.

    Returns:
        The scores, in percent, and the `ledger` of ranks they follow from; None with a `shard`, and
        in other processes than the main one.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a model that cannot be loaded, or does not fit.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> result = probing.probe("tiny-code-lm", "codesyntax", limit=4)
        >>> result.functions, result.layers, result.heads, result.settings.direction
        (4, 4, 4, 'dependent-to-head')
        >>> result.scores["first"][1] <= result.scores["first"][3] <= 100
        True
    """
    functions = read_functions(
        data, config, split, limit=limit, sample=sample, control=control, seed=seed
    )
    session = Session.of(
        model, revision=revision, dtype=dtype, device=device, max_length=max_length
    )
    return run(Probing(session, functions, direction, batch_tokens), output, shard)


@dataclass
class Probing(Experiment[EncodedFunction, ProbeResult]):
    """Ranks dependents by the attention of every head; arguments as of `probe`."""

    RESULT = ProbeResult
    PART = 64  # on a GPU, _ON_GPU times as many; of usual length, by the bytes of their code

    direction: str | None = None
    batch_tokens: int | None = field(default=None, metadata={NO_SETTING: ANY_BATCHES})

    @cached_property
    def encoder(self) -> Encoder:
        """The model, after checking that it can be probed in this language and direction."""
        from probing.models.subtokens import check_language

        if self.direction not in (None, *DIRECTIONS):
            raise ModelError(
                f"direction is {self.direction!r}, expected one of {', '.join(DIRECTIONS)}"
            )
        encoder = self.session.encoder(
            self.data.seed if self.data.control == RANDOM_WEIGHTS else None
        )
        check_language(encoder.tokenizer, encoder.name, language_of(self.data.config).name)
        if encoder.causal and self.direction == HEAD_TO_DEPENDENT:
            raise ModelError(
                f"{encoder.name} cannot see later tokens, and nearly all dependents are later tokens: it scores 0 in "
                f"the direction {HEAD_TO_DEPENDENT}; use {DEPENDENT_TO_HEAD}"
            )
        return encoder

    @property
    def averages(self) -> bool:
        """Whether each head counts twice, as of EITHER."""
        return self.data.control == RANDOM_WEIGHTS

    @property
    def heads(self) -> int:
        return self.encoder.heads * (1 + self.averages)

    @cached_property
    def encoded(self) -> Encoded:
        """The functions of the split, tokenized and aligned."""
        return self._encoded(self.data.limit)

    def _encoded(self, chosen: Limit | np.ndarray) -> Encoded:
        """A part of the split, or the functions at some places in it."""
        data = self.data
        encoder = self.encoder
        never_predicted = variant_of(data.config).never_predicted
        encoded = []
        relations: list[str] = []
        skips: Counter[str] = Counter()
        for batch in rows(data.table, chosen):
            texts = [row["code"] for row in batch]
            for row, (ids, offsets, special) in zip(batch, encoder.encode(texts)):
                if not row["relations"]:
                    skips["no relations"] += 1
                elif len(ids) > encoder.longest:
                    skips[f"more than {encoder.longest} sub-tokens"] += 1
                else:
                    start = np.asarray(row["token_start"], np.int64)
                    end = np.asarray(row["token_end"], np.int64)
                    try:
                        alignment = align(
                            row["code"], start, end, offsets, special, exact=encoder.exact_offsets
                        )
                    # only of this function, for example because it quotes a special token
                    except OffsetsError:
                        skips["offsets of sub-tokens run backwards"] += 1
                        continue
                    alignment = alignment.without(never_predicted, row["code"], start, end)
                    table = EdgeTable.from_rows([(row["index"], row)], relations)
                    encoded.append(EncodedFunction(row["index"], ids, alignment, table))
        return Encoded(encoded, relations, skips)

    @cached_property
    def origin(self) -> ProbeProvenance:
        encoder = self.encoder
        direction = self.direction or default_direction(encoder, self.data.config)
        pool = {"pool": EITHER} if self.averages else {}
        return self.described(
            encoder,
            {},
            settings={"direction": direction, "begin": encoder.begin} | pool,
            run={
                "attention": encoder.path,
                "attention_why": encoder.why,
                "step": self.session.step,
            },
            ties=dict.fromkeys(RULES, 0),
        )

    def prepare(self) -> Prepared[EncodedFunction]:
        functions, counts = self._counted(self.encoded)
        if not functions:
            raise self.empty("can be scored", counts["skips"])
        self._examine_lengths(functions[0].ids, functions[-1].ids)
        return Prepared(self.origin.model_copy(update=counts), functions)

    def _counted(self, encoded: Encoded) -> tuple[list[EncodedFunction], JsonObject]:
        """Functions, longest first, and what the ledger COUNTS of them."""
        functions = sorted(
            encoded.functions, key=lambda function: (-len(function.ids), function.index)
        )
        direction = self.settings.direction
        tied = sum(
            (function.decided_by_tie(direction).sum(axis=1) for function in functions),
            np.zeros(len(RULES), int),
        )
        skips = dict(sorted(encoded.skips.items()))
        return functions, {"skips": skips, "ties": dict(zip(RULES, tied.tolist()))}

    def examine(self) -> None:
        """Also examines the lengths that functions may have, by those of the longest and the
        shortest code."""
        places = np.concatenate(self.parts)
        sizes = self.data.code_sizes[places]
        extremes = [places[[number]] for number in (sizes.argmax(), sizes.argmin())]
        longest, shortest = (
            next(self.encoder.encode([row["code"]]))[0][: self.encoder.longest]
            for place in extremes
            for batch in rows(self.data.table, place)
            for row in batch
        )
        self._examine_lengths(longest, shortest)
        logger.info(
            "%s on %s: %s attention, %d functions to read",
            self.encoder.name,
            self.encoder.device,
            self.encoder.path,
            len(places),
        )

    def _examine_lengths(self, longest: np.ndarray, shortest: np.ndarray) -> None:
        """Let no batch of these lengths, or between them, be one whose attention depends on it."""
        from probing.models.selfcheck import examine_lengths
        from probing.runs.batches import out_of_memory

        try:
            examine_lengths(self.encoder, longest, shortest)
        except RuntimeError as error:
            # if a batch of the two does not fit in memory, no batch will mix them
            if not out_of_memory(error):
                raise

    @cached_property
    def parts(self) -> Sequence[Any]:
        """Places of functions in the split, in order."""
        return self._in_parts(self.data.places)

    def _in_parts(self, places: np.ndarray) -> list[np.ndarray]:
        on_gpu = self.encoder.device.type == "cuda"
        size = self.PART * _USUAL_CODE * (_ON_GPU if on_gpu else 1)
        ends = self.data.code_sizes[places].cumsum()
        return np.split(places, 1 + np.flatnonzero(np.diff(ends // size)))

    def costs(self, part: Any) -> np.ndarray:
        sizes = np.sort(self.data.code_sizes[part])[::-1] / _CODE_OF_A_SUB_TOKEN
        return cost(np.minimum(sizes, self.encoder.longest))

    def only(self, places: np.ndarray) -> None:
        super().only(places)
        self.parts = self._in_parts(places)

    def read(self, part: Any) -> tuple[list[EncodedFunction], JsonObject]:
        return self._counted(self._encoded(part))

    @cached_property
    def _runner(self) -> Runner:
        from probing.instruments.attention.runner import Runner  # torch takes seconds to import

        return Runner(self.encoder, self.settings.direction, self.batch_tokens, self.averages)

    def run(self, part: Sequence[EncodedFunction], bar: tqdm) -> RankLedger:
        edges = stacked([EdgeTable.from_rows([]), *(function.edges for function in part)])
        if not part:
            shape = len(RULES), 0, self.encoder.layers, self.heads
            return RankLedger.of(edges, np.empty(shape, np.uint8), self.made)
        self._examine_lengths(part[0].ids, part[-1].ids)
        return RankLedger.of(edges, self._runner.run(part, bar), self.made).sorted()


class Encoded(NamedTuple):
    """The functions that a model reads, in order; the relations of their edges; {reason: number of
    skipped ones}."""

    functions: list[EncodedFunction]
    relations: list[str]
    skips: Counter[str]


def default_direction(encoder: Encoder, config: str) -> str:
    """That of the language of `config`, or the only one that the model supports."""
    return DEPENDENT_TO_HEAD if encoder.causal else language_of(config).direction


class Done(NamedTuple):
    """One probe of several: of a model, as NAME@REVISION, on a config and a split.

    `result`: None if there is an `error`, and where `probe` returns None; `ran`: whether the model
    ran, and the result is not that of an earlier run.
    """

    model: str
    config: str
    split: str
    result: ProbeResult | None
    ran: bool
    error: CodeSyntaxError | None


@checked
def probe_models(
    models: Sequence[StrPath],
    data: Any,
    configs: Sequence[str] = ("python",),
    splits: Sequence[str] = ("test",),
    *,
    revisions: Sequence[str] = (),
    limit: Positive | None = None,
    sample: Positive | None = None,
    control: str | None = None,
    seed: Natural = 0,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    max_length: Positive | None = None,
    output: StrPath | None = None,
    shard: str | None = None,
    **asked: Any,
) -> Iterator[Done]:
    """Probe each model on each config and split, one after the other; data are read once.

    A model that fails with one of our errors does not stop the others. With an `output`, a repeated
    call continues where the last one stopped.

    Args:
        models: Hub ids, folders or names of embedded models, each once; `NAME@REVISION` is a model
            at a revision, and several revisions of one model are checkpoints of a training, as is a
            folder that holds only checkpoints (`probing.models.location.checkpoints`).
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        configs: the labels, such as `python` and `java`.
        splits: the splits that are scored, of `test` and `validation`.
        revisions: those of a single model.
        limit: only the first so many functions of the split; the result says so.
        sample: only so many functions, drawn by `seed`, of controls by 0: the same ones for every
            model.
        control: what is probed instead, such as `random-weights`; see `probing.probe`.
        seed: of `sample` and `control`.
        dtype: precision of the model: `float32`, by default, `bfloat16` or `float16`, as text or
            torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        max_length: the most sub-tokens of a function, special tokens included: by default 511, as
            in the paper. Longer ones are skipped and counted.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the functions, and write it to
            `output` for `probing.merge`.
        **asked: `batch_tokens` and `direction`, as `probing.probe` takes them.

    Yields:
        One outcome for each model, config and split: `result`, a `ProbeResult`, or `error`, and
        whether the model `ran`.

    Raises:
        ArgumentError: no model, or revisions of several.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.

    Examples:
        >>> import probing
        >>> models = ["tiny-code-lm", "tiny-code-mlm"]
        >>> for done in probing.probe_models(models, "codesyntax", limit=2):
        ...     print(done.model, done.result.settings.direction)
        tiny-code-lm dependent-to-head
        tiny-code-mlm head-to-dependent
    """
    if not models or (revisions and len(models) > 1):
        raise ArgumentError(
            f"{len(models)} models"
            + (" with revisions, expected one: write NAME@REVISION" if models else "")
        )
    reads = [
        read_functions(data, config, split, limit=limit, sample=sample, control=control, seed=seed)
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
    model: StrPath, data: Any, config: str = "python", split: str = "test", **options: Any
) -> Iterator[ProbeResult | None]:
    """Probe each checkpoint of a training run, one after the other, on functions that are read
    once.

    A report draws the scores over the steps.

    Args:
        model: a Hub id, or a folder of checkpoints.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: the labels, such as `python`, `java` or `python_exact`.
        split: the split that is scored, `test` or `validation`.
        **options: `revisions`, the checkpoints: branches, tags or commits of a model on the Hub, or
            the names of folders in a local one; without any, those of a folder that holds only
            checkpoints, or the model itself. All others are those of `probing.probe`.

    Yields:
        The result of each checkpoint, in the order of the steps; None where `probing.probe` returns
        None.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a revision that does not exist, before anything is probed; or a model that
            cannot be loaded.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> for result in probing.probe_training("tiny-code-lm", "codesyntax", limit=2):
        ...     print(result.model)
        tiny-code-lm
    """
    for done in probe_models([model], data, [config], [split], **options):
        if done.error is not None:
            raise done.error
        yield done.result
