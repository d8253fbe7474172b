"""Silence attention heads: how likely a language model finds an end of the edges of relations
without some heads.

A masked language model restores the ends of a relation in a function that its heads read from, all
of their sub-tokens masked together; a decoder predicts the first token of each dependent that comes
after its head token. Once the model is whole, once the best head of the relation is silenced (see
`probing.models.encoder`), and once each of the heads of the same layer that it is compared with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.masking.fill import Passes
from probing.instruments.silencing.result import NO_HEAD, NO_SUB_TOKEN, NOT_AFTER, Chosen

if TYPE_CHECKING:
    from probing.models.encoder import AttentionHead, LanguageModel
    from probing.models.loaded import Batch


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


class Predictor(Passes[Pass]):
    """Finds log-probabilities, in batches of one function: nothing is padded, and no result depends
    on the others. `stand_ins`: what silenced heads put out, as of `LanguageModel.stand_ins`."""

    model: LanguageModel

    def __init__(self, model: LanguageModel, stand_ins: Sequence[Tensor]):
        super().__init__(model)
        self.stand_ins = stand_ins

    def batch(self, functions: Sequence[Any], start: int) -> Sequence[Any]:
        batch = super().batch(functions, start)
        return [item for item in batch if item.function == batch[0].function]

    def work(self, batch: Sequence[Pass], inputs: Batch) -> Tensor:
        return self.model.log_probabilities(
            inputs, *self.places(batch), [item.silenced for item in batch], self.stand_ins
        )


def passes_of(function: SilencedFunction, heads: Mapping[str, Chosen], masked: bool) -> list[Pass]:
    """The forward pass of each relation of a function and each silenced head, some of them equal.
    In each, a decoder predicts all that is asked for."""
    everything = np.unique(np.concatenate([targets.positions for targets in function.targets]))
    return [
        Pass(function.index, function.ids, targets.positions if masked else everything, silenced)
        for targets in function.targets
        for silenced in heads[targets.relation].silenced
    ]


def targets_of(
    function: EncodedFunction,
    relations: Sequence[str],
    heads: Mapping[str, Chosen],
    masked: bool,
    of_heads: bool,
    left_out: Counter[str],
) -> list[Targets]:
    """The predictions of each relation in a function: `of_heads`, of head tokens, otherwise of
    dependents; edges of which there is none are counted in `left_out`."""
    first, last = function.alignment
    edges = function.edges
    starts = edges.head if of_heads else edges.first
    ends = edges.last if masked and not of_heads else starts
    targets = []
    for number in np.unique(edges.relation).tolist():
        name, positions, counted = relations[number], [], 0
        for edge in np.flatnonzero(edges.relation == number).tolist():
            tokens = np.arange(starts[edge], ends[edge] + 1)
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
            targets.append(
                Targets(name, np.unique(np.concatenate(positions)).astype(np.int64), counted)
            )
    return targets
