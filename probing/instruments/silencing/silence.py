"""Silence attention heads: how likely a language model finds an end of the edges of relations
without some heads.

A masked language model restores the ends of a relation in a function that its heads read from, all
of their sub-tokens masked together; a decoder predicts the first token of each dependent that comes
after its head token. Once the model is whole, once the best head of the relation is silenced (see
`probing.models.encoder`), and once each of the heads of the same layer that it is compared with;
then the same with several heads together.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.probe import Probing, default_direction
from probing.instruments.masking.fill import Passes, key_of
from probing.instruments.silencing import result as results
from probing.instruments.silencing.result import (
    Chosen,
    SilencingLedger,
    SilencingProvenance,
    SilencingResult,
)
from probing.runs.experiment import Experiment, Prepared

if TYPE_CHECKING:
    from probing.models.encoder import AttentionHead, LanguageModel

logger = logging.getLogger(__name__)

REFERENCE = 256
"""The most functions of validation over which the output of a head is averaged: the first that the
model reads."""


class Targets(NamedTuple):
    """The predictions of a relation in a function: the sub-tokens at `positions` (M,), of so many
    `edges`."""

    relation: str
    positions: np.ndarray
    edges: int


@dataclass(frozen=True)
class SilencedFunction:
    """A function with something to predict: its place in the split, and its sub-tokens `ids`
    (S,)."""

    index: int
    ids: np.ndarray
    targets: list[Targets]


class Pass(NamedTuple):
    """A forward pass over a function: sub-tokens `ids` (S,), the `positions` (M,) to predict, and
    what is silenced."""

    function: int
    ids: np.ndarray
    positions: np.ndarray
    silenced: Sequence[AttentionHead]


@dataclass
class Silencing(Experiment[SilencedFunction, SilencingResult]):
    """Silences the best head of each relation, and heads to compare it with.

    `validation` and `probing`: in the same session, the probes of the split validation and of the
    same functions, which read the functions of both; `choose`: makes the best head of each
    relation, in the main process. `draws`, `seed` and `tell`: as of
    `probing.instruments.silencing.ablate.ablate`.
    """

    RESULT = SilencingResult
    SETTING_FIELDS = ("draws", "seed", "restored")

    validation: Probing
    probing: Probing
    choose: Callable[[Silencing], Mapping[str, Chosen] | None]
    draws: int
    seed: int
    restored: str = results.READING_END
    tell: Callable[[str], object] = logger.info

    @property
    def asked(self) -> Mapping[str, object]:
        return {
            **super().asked,
            "chosen_on": self.validation.data.labels,
            "direction": self.probing.direction,
        }

    @cached_property
    def model(self) -> LanguageModel:
        return self.session.language_model()

    @cached_property
    def reference(self) -> list[np.ndarray]:
        """The functions (S,) over which the outputs of heads are averaged."""
        return [function.ids for function in self.validation.encoded.functions[:REFERENCE]]

    @cached_property
    def heads(self) -> Mapping[str, Chosen]:
        """The best head of each relation."""
        return self.session.processes.share(self.choose(self))

    def prepare(self) -> Prepared[SilencedFunction]:
        model = self.model  # it may be refused, before anything is probed
        heads = self.heads
        encoded, relations, skips = self.probing.encoded
        left_out = Counter(dict.fromkeys(results.LEFT_OUT, 0))
        masked = model.mask is not None
        direction = self.probing.direction or default_direction(model, self.data.config)
        restored = (
            self.restored if masked and direction == HEAD_TO_DEPENDENT else results.DEPENDENTS
        )
        functions = [
            SilencedFunction(function.index, function.ids, targets)
            for function in encoded
            if (targets := _targets(function, relations, heads, masked, restored, left_out))
        ]
        names = {targets.relation for function in functions for targets in function.targets}
        passes = sum(
            len({*map(key_of, passes_of(function, heads, masked))}) for function in functions
        )
        settings = {
            "revision": model.with_head,
            "weights": model.weights,
            "begin": model.begin,
            "chosen_on": self.validation.data.labels,
            "direction": direction,
            "restored": restored,
            "reference": len(self.reference),
        }
        prepared = self.prepared(
            model,
            functions,
            skips,
            f"has a dependent to predict, edges left out {dict(left_out)}",
            settings=settings,
            run={
                "predicts": "masked" if masked else "next",
                "layers": model.layers,
                "heads": model.heads,
            },
            functions=len(functions),
            passes=len(self.reference) + passes,
            left_out=left_out,
            heads={name: heads[name] for name in sorted(names)},
        )
        if self.session.processes.main:
            self.tell(_cost(prepared.provenance))
        return prepared

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.model)

    def run(self, part: Sequence[SilencedFunction], bar: tqdm) -> SilencingLedger:
        if not self.model.means:
            self.model.learn_means(self.reference)
        heads, masked = self.provenance.heads, self.model.mask is not None
        passes = [passes_of(function, heads, masked) for function in part]
        names, cells = list(heads), []
        for function, each, predictions in zip(part, passes, self._predictor.find(passes, bar)):
            asked = [
                (targets, number)
                for targets in function.targets
                for number in range(len(heads[targets.relation].silenced))
            ]
            for (targets, number), item, log_probabilities in zip(asked, each, predictions):
                mean = log_probabilities[np.searchsorted(item.positions, targets.positions)].mean()
                key = function.index, names.index(targets.relation), number, len(item.silenced)
                counts = targets.edges, len(targets.positions), len(function.ids)
                cells.append((*key, *counts, round(float(mean), results.LOSS_DECIMALS)))
        return SilencingLedger(names, np.array(cells, SilencingLedger.ROW), self.made).sorted()


def _cost(provenance: SilencingProvenance) -> str:
    """The cost of a run in words, before it begins."""
    reference, silenced = (
        provenance.settings.reference,
        max(len(head.silenced) for head in provenance.heads.values()),
    )
    return (
        f"{provenance.passes:,} forward passes of single functions: {reference} for the mean outputs of heads, and "
        f"{provenance.passes - reference:,} over {provenance.functions:,} functions, for {len(provenance.heads)} "
        f"relations and up to {silenced - 1} sets of silenced heads of each"
    )


class Predictor(Passes[Pass]):
    """Finds log-probabilities, in batches of one function: nothing is padded, and no result depends
    on the others."""

    model: LanguageModel

    def batch(self, functions: Sequence[Any], start: int) -> Sequence[Any]:
        batch = super().batch(functions, start)
        return [item for item in batch if item.function == batch[0].function]

    def work(self, batch: Sequence[Pass], inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return self.model.log_probabilities(
            inputs, *self.places(batch), [item.silenced for item in batch]
        )


def passes_of(function: SilencedFunction, heads: Mapping[str, Chosen], masked: bool) -> list[Pass]:
    """The forward pass of each relation of a function and each set of silenced heads, some of them
    equal. In each, a decoder predicts all that is asked for."""
    everything = np.unique(np.concatenate([targets.positions for targets in function.targets]))
    return [
        Pass(function.index, function.ids, targets.positions if masked else everything, silenced)
        for targets in function.targets
        for silenced in heads[targets.relation].silenced
    ]


def _targets(
    function: EncodedFunction,
    relations: Sequence[str],
    heads: Mapping[str, Chosen],
    masked: bool,
    restored: str,
    left_out: Counter[str],
) -> list[Targets]:
    """The predictions of each relation in a function; edges that it cannot are counted in
    `left_out`."""
    first, last = function.alignment
    edges = function.edges
    targets = []
    for number in np.unique(edges.relation).tolist():
        name, positions, counted = relations[number], [], 0
        for edge in np.flatnonzero(edges.relation == number).tolist():
            start = int((edges.head if restored == results.READING_END else edges.first)[edge])
            end = int(edges.last[edge]) if masked and restored == results.DEPENDENTS else start
            tokens = np.arange(start, end + 1)
            tokens = tokens[first[tokens] >= 0]
            if name not in heads:
                left_out[results.NO_HEAD] += 1
            elif not len(tokens):
                left_out[results.NO_SUB_TOKEN] += 1
            elif not masked and first[tokens[0]] <= last[edges.head[edge]]:
                left_out[results.NOT_AFTER] += 1
            else:
                counted += 1
                positions += [np.arange(first[token], last[token] + 1) for token in tokens.tolist()]
        if counted:
            targets.append(
                Targets(name, np.unique(np.concatenate(positions)).astype(np.int64), counted)
            )
    return targets
