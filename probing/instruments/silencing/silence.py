"""Silence attention heads: how likely a language model finds an end of the edges of relations
without some heads.

A masked language model restores the ends of a relation in a function that its heads read from, all
of their sub-tokens masked together; a decoder predicts the first token of each dependent that comes
after its head token. Once the model is whole, once the best head of the relation is silenced
(see `probing.models.language_model`), and once each head of its layer that it is compared with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.masking.fill import Copy
from probing.instruments.silencing.result import NO_HEAD, NO_SUB_TOKEN, NOT_AFTER, Chosen
from probing.runs.batches import Batches

if TYPE_CHECKING:
    from probing.models.language_model import AttentionHead, LanguageModel
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


class Without(NamedTuple):
    """A text, its sub-tokens `ids` (S,), without some heads."""

    ids: np.ndarray
    silenced: tuple[AttentionHead, ...]


class Predictor(Batches):
    """Finds log-probabilities, in batches of sets of heads that are silenced in the same text:
    nothing is padded, and no result depends on other texts.

    `stand_ins`: what silenced heads put out, as of `LanguageModel.stand_ins`.
    """

    model: LanguageModel

    def __init__(self, model: LanguageModel, stand_ins: Sequence[Tensor]):
        super().__init__(model)
        self.stand_ins = stand_ins

    def inputs(self, batch: Sequence[Without]) -> Batch:
        return self.model.inputs([batch[0].ids])

    def find(
        self, texts: Sequence[Copy], silenced: Sequence[Sequence[AttentionHead]]
    ) -> list[np.ndarray]:
        """The log-probabilities at the positions of each text without each set of heads (sets, M);
        what texts share with the first one at the beginning is read once, if they are a decoder's."""
        sets = [tuple(sorted(heads)) for heads in silenced]
        distinct = sorted({*sets})  # neighbours share most
        passes = [Without(texts[0].ids, heads) for heads in distinct]
        log_probabilities = torch.cat(
            self.each(passes, tqdm(disable=True), partial(self._work, texts))
        )
        numbers = [distinct.index(heads) for heads in sets]
        ends = np.cumsum([len(text.positions) for text in texts])[:-1]
        return np.split(log_probabilities.numpy()[numbers], ends, axis=1)

    def _work(self, texts: Sequence[Copy], batch: Sequence[Without], _: Batch) -> Tensor:
        sets = [each.silenced for each in batch]
        return self.model.log_probabilities(texts, sets, self.stand_ins)


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
