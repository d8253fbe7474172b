"""Silence attention heads: how likely a language model finds the dependents of relations without one of its heads.

A job of `probing.runs.runner`. A masked language model restores the dependents of a relation in a function, all of
their sub-tokens masked together; a decoder predicts the first token of each dependent that comes after its head token.
Once the model is whole, once the best head of the relation is silenced (see `probing.models.silencing`), and once each
of the heads of the same layer that it is compared with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.errors import LedgerError
from probing.attention.probe import encode_functions
from probing.attention.ranking import EncodedFunction
from probing.models.cache_dir import versions
from probing.prediction.copies import Finished
from probing.prediction.fill import places_of
from probing.prediction.row_job import RowJob
from probing.prediction.silencing_result import (
    DECIMALS,
    LEFT_OUT,
    NO_HEAD,
    NO_SUB_TOKEN,
    NOT_AFTER,
    VERSION,
    Chosen,
    SilencingLedger,
    SilencingProvenance,
    SilencingResult,
    SilencingRun,
    SilencingSettings,
)
from probing.runs.batches import Batches
from probing.runs.data import Functions

if TYPE_CHECKING:
    from probing.models.silencing import AttentionHead, LanguageModel

PART = 8
"""Functions per part of the ledger, the most that an interrupted run loses."""

REFERENCE = 256
"""The most functions of validation over which the output of a head is averaged: the first that the model reads."""


class Asked(NamedTuple):
    """What is asked for of a relation in a function: the sub-tokens at `positions` (M,), of so many `edges`."""

    relation: str
    positions: np.ndarray
    edges: int


@dataclass(frozen=True)
class Source:
    """A function in which something is asked for: its place in the split, and its sub-tokens `ids` (S,)."""

    index: int
    ids: np.ndarray
    asked: list[Asked]


class Pass(NamedTuple):
    """A forward pass over a function: sub-tokens `ids` (S,), the `positions` (M,) to predict, and what is silenced."""

    function: int
    ids: np.ndarray
    positions: np.ndarray
    silenced: AttentionHead | None


@dataclass
class SilencingJob(RowJob[Source, SilencingLedger, SilencingResult]):
    """A language model, the functions to ask, longest first, and those over which it averages the outputs of heads,
    `reference`: (S,) each, when it first runs."""

    LEDGER = SilencingLedger
    RESULT = SilencingResult

    model: LanguageModel
    provenance: SilencingProvenance
    functions: list[Source]
    reference: list[np.ndarray]
    data_folder: Path | None = None

    @property
    def title(self) -> str:
        return f"silencing heads of {self.provenance.settings.model}"

    @property
    def name(self) -> str:
        return self.provenance.settings.name

    @cached_property
    def made(self) -> dict[str, Any]:
        return self.provenance.to_json()

    @property
    def names(self) -> list[str]:
        return list(self.provenance.heads)

    @property
    def parts(self) -> list[list[Source]]:
        return [self.functions[start : start + PART] for start in range(0, len(self.functions), PART)]

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.model)

    def run(self, part: Sequence[Source], bar: tqdm) -> np.ndarray:
        if not self.model.means:
            self.model.learn_means(self.reference)
        heads, masked = self.provenance.heads, self.model.mask is not None
        passes = [passes_of(source, heads, masked) for source in part]
        found = iter(self._predictor.predict([one for of in passes for one in of.values()], passes, bar))
        tables = []
        for source, of in zip(part, passes):
            predicted = {key: (one.positions, next(found)) for key, one in of.items()}
            tables.append(_rows(source, predicted, heads, self.names, masked))
        return self.as_found(np.concatenate(tables))

    def shape(self, part: Sequence[Source]) -> tuple[int, ...]:
        heads = self.provenance.heads
        return self.shape_of(sum(2 + len(heads[asked.relation].matched) for source in part for asked in source.asked))


class Predictor(Batches):
    """Runs passes in batches, each of one function, so that nothing is padded and no result depends on the others."""

    def __init__(self, model: LanguageModel):
        super().__init__(model)
        self.model = model

    def predict(self, passes: Sequence[Pass], by_function: Sequence[Mapping], bar: tqdm) -> list[np.ndarray]:
        """The log-probabilities (M,) of each pass, in order; the bar counts functions."""
        counted = Finished(bar, [len(of) for of in by_function])
        found = torch.cat(self.each(passes, counted, self._log_probabilities)).numpy()
        return np.split(found, np.cumsum([len(one.positions) for one in passes])[:-1])

    def batch(self, functions: Sequence[Any], start: int) -> Sequence[Any]:
        batch = super().batch(functions, start)
        return [one for one in batch if one.function == batch[0].function]

    def _log_probabilities(self, batch: Sequence[Pass], inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        places = places_of(batch, self.model.device)
        return self.model.log_probabilities(inputs, *places, [one.silenced for one in batch])


def passes_of(source: Source, heads: Mapping[str, Chosen], masked: bool) -> dict[tuple, Pass]:
    """The forward passes of a function, each once, by `_key`. In each, a decoder predicts all that is asked for."""
    passes: dict[tuple, Pass] = {}
    everything = np.unique(np.concatenate([asked.positions for asked in source.asked]))
    for asked in source.asked:
        positions = asked.positions if masked else everything
        for silenced in silenced_for(heads[asked.relation]):
            key = _key(asked, silenced, masked)
            passes.setdefault(key, Pass(source.index, source.ids, positions, silenced))
    return passes


def silenced_for(chosen: Chosen) -> list[AttentionHead | None]:
    """What is silenced for a relation, in the order of the ledger's column `silenced`."""
    return [None, *((chosen.layer, head) for head in (chosen.head, *chosen.matched))]


def _key(asked: Asked, silenced: AttentionHead | None, masked: bool) -> tuple:
    return asked.positions.tobytes() if masked else b"", silenced


def _rows(
    source: Source,
    predicted: Mapping[tuple, tuple[np.ndarray, np.ndarray]],
    heads: Mapping[str, Chosen],
    relations: list[str],
    masked: bool,
) -> np.ndarray:
    """The rows of a function, from the positions and log-probabilities of each of its passes."""
    cells = []
    for asked in source.asked:
        for number, silenced in enumerate(silenced_for(heads[asked.relation])):
            positions, log_probabilities = predicted[_key(asked, silenced, masked)]
            mean = log_probabilities[np.searchsorted(positions, asked.positions)].mean()
            counts = asked.edges, len(asked.positions), len(source.ids)
            head = -1 if silenced is None else silenced[1]
            places = source.index, relations.index(asked.relation), number, head
            cells.append((*places, *counts, round(float(mean), DECIMALS)))
    return np.array(cells, SilencingLedger.ROW)


def prepare(
    model: LanguageModel,
    functions: Functions,
    reference: Functions,
    heads: Mapping[str, Chosen],
    *,
    direction: str,
    draws: int,
    seed: int,
    max_length: int,
) -> SilencingJob:
    """Tokenize and align every function, and those of `reference`, the split validation.

    `heads`: the best head of each relation, by name; `direction`, `draws`, `seed`: as they were chosen. Raises
    LedgerError if nothing can be asked for.
    """
    means_of = [one.ids for one in encode_functions(model, reference)[0][:REFERENCE]]
    encoded, relations, skips = encode_functions(model, functions)
    left_out = Counter(dict.fromkeys(LEFT_OUT, 0))
    masked = model.mask is not None
    sources = [
        Source(function.index, function.ids, asked)
        for function in encoded
        if (asked := _asked(function, relations, heads, masked, left_out))
    ]
    if not sources:
        raise LedgerError(
            f"no function of {functions.name}/{functions.config}/{functions.split} has a dependent to predict: skipped "
            f"{dict(skips) or 'none'}, edges left out {dict(left_out)}"
        )
    sources.sort(key=lambda source: (-len(source.ids), source.index))
    settings = SilencingSettings(
        model=model.name,
        revision=model.revision,
        data=functions.name,
        labels=functions.labels,
        chosen_on=reference.labels,
        config=functions.config,
        split=functions.split,
        direction=direction,
        draws=draws,
        seed=seed,
        reference=len(means_of),
        max_length=max_length,
        limit=functions.limit,
    )
    asked_of = {asked.relation for source in sources for asked in source.asked}
    provenance = SilencingProvenance(
        settings=settings,
        version=VERSION,
        functions=len(sources),
        passes=len(means_of) + sum(len(passes_of(source, heads, masked)) for source in sources),
        skips=dict(sorted(skips.items())),
        left_out={reason: left_out[reason] for reason in LEFT_OUT},
        heads={name: heads[name] for name in sorted(asked_of)},
        run=SilencingRun(
            family=model.family,
            predicts="masked" if masked else "next",
            layers=model.layers,
            heads=model.heads,
            device=model.device.type,
        ),
        versions=versions(),
    )
    return SilencingJob(model, provenance, sources, means_of)


def _asked(
    function: EncodedFunction,
    relations: Sequence[str],
    heads: Mapping[str, Chosen],
    masked: bool,
    left_out: Counter[str],
) -> list[Asked]:
    """What is asked for of each relation in a function; edges that cannot be are counted in `left_out`."""
    first, last = function.alignment
    edges = function.edges
    asked = []
    for number in np.unique(edges.relation).tolist():
        name, positions, counted = relations[number], [], 0
        for edge in np.flatnonzero(edges.relation == number).tolist():
            start = int(edges.first[edge])
            tokens = np.arange(start, (int(edges.last[edge]) if masked else start) + 1)
            tokens = tokens[first[tokens] >= 0]
            if name not in heads:
                left_out[NO_HEAD] += 1
            elif not len(tokens):
                left_out[NO_SUB_TOKEN] += 1
            elif not masked and first[tokens[0]] <= last[edges.head[edge]]:
                left_out[NOT_AFTER] += 1
            else:
                counted += 1
                positions += [np.arange(first[token], last[token] + 1) for token in tokens.tolist()]
        if counted:
            asked.append(Asked(name, np.unique(np.concatenate(positions)).astype(np.int64), counted))
    return asked
