"""The attention between a head token and its candidates, as a listener hears it.

Of each layer, the word-level weights from a head token to each token and back are there while the
listener hears it, and are then gone: no map is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ranking import BatchListener
from probing.instruments.attention.runner import Runner

if TYPE_CHECKING:
    from probing.models.capture import Rows
    from probing.models.encoder import Encoder


def spread(weights: Tensor) -> Tensor:
    """Attention weights on a scale from 0 to about 1 on which small ones lie apart, too."""
    return torch.log1p(1000 * weights) / 7


class ReadFunction(EncodedFunction):
    """A function all of whose tokens read, with some of its edges."""

    def readers(self, direction: str) -> np.ndarray:
        return np.flatnonzero(self.alignment.mapped)

    @cached_property
    def heads(self) -> np.ndarray:
        """The distinct head tokens of its edges, ascending."""
        return np.unique(self.edges.head)


class PairListener(BatchListener):
    """Hears, layer by layer, the attention between the head tokens of a function and all its
    tokens.

    `asked`: function -> what is asked about it, integers (n, 2); `answers`: function -> the two
    arrays that answer.
    """

    SKIPS_UNSEEN = False

    functions: Sequence[ReadFunction]

    def __init__(
        self,
        functions: Sequence[ReadFunction],
        *arguments: Any,
        asked: Mapping[int, np.ndarray],
        answers: dict[int, tuple[np.ndarray, np.ndarray]],
    ):
        super().__init__(functions, *arguments)
        self.functions, self.asked, self.answers = functions, asked, answers

    def __call__(self, rows: Rows) -> None:
        for group, plan in self.groups:
            functions = self.functions[group]
            heard = [
                torch.zeros(
                    len(function.heads), 2, plan.heads, len(plan.token), device=plan.token.device
                )
                for function in functions
            ]
            for block, weights in plan.pooled(partial(rows, group)):
                by_function = weights.clamp_(min=0).unflatten(0, (len(functions), -1))
                for function, pairs, readers, read in zip(
                    functions, heard, block.readers, by_function
                ):
                    answered = np.flatnonzero(np.isin(function.heads, readers))
                    pairs[answered, 0] = read[np.searchsorted(readers, function.heads[answered])]
                    pairs[:, 1, :, readers] = read[: len(readers), :, function.heads].permute(
                        2, 1, 0
                    )
            for function, pairs in zip(functions, heard):
                self.on_pairs(function, spread(pairs[..., : len(function.alignment.first)]))
        self.layer += 1

    def on_pairs(self, function: ReadFunction, pairs: Tensor) -> None:
        """Process `self.layer` of a function: `spread` weights (heads tokens, 2, H, T), from the
        head token, then to it; 0 for tokens without sub-tokens, and for itself."""
        raise NotImplementedError


class GatheredPairs(PairListener):
    """Keeps the weights of chosen candidates, and the token that each attention head ranks first
    for each head token.

    `asked`: function -> the place among its head tokens, and the token, of each of P candidates;
    `answers`: function -> weights, half precision (P, layers, 2, H), and first tokens, int16 (head
    tokens, layers, 2, H).
    """

    def on_pairs(self, function: ReadFunction, pairs: Tensor) -> None:
        row, token = self.asked[function.index].T
        if self.layer == 0:
            shape = self.layers, *pairs.shape[1:3]
            weights = np.empty((len(row), *shape), np.float16)
            self.answers[function.index] = weights, np.empty((len(pairs), *shape), np.int16)
        weights, first = self.answers[function.index]
        weights[:, self.layer] = pairs[row, :, :, token].cpu().numpy()
        first[:, self.layer] = pairs.argmax(dim=-1).cpu().numpy()


class Scorers(NamedTuple):
    """The scorers of candidates by attention: `weights` float32 (relations, models, layers, 2, H)
    of `spread` weights, and `best` (relations, 3), an attention head's layer, direction and number.
    """

    weights: np.ndarray
    best: np.ndarray


class ScoredPairs(PairListener):
    """Adds up the scores of all candidates by the attention of all heads.

    `asked`: function -> the relation, and the place among its head tokens, of each of M choices;
    `answers`: function -> scores (M, models, T), and weights by the best heads (M, T).
    """

    def __init__(self, *arguments: Any, scorers: Scorers, **asked: Any):
        super().__init__(*arguments, **asked)
        self.best = scorers.best
        self.weights = torch.from_numpy(scorers.weights).to(self.found.device)

    def on_pairs(self, function: ReadFunction, pairs: Tensor) -> None:
        relation, row = self.asked[function.index].T
        if self.layer == 0:
            shape = len(row), self.weights.shape[1], pairs.shape[-1]
            by_head = np.zeros((len(row), pairs.shape[-1]), np.float32)
            self.answers[function.index] = np.zeros(shape), by_head
        scores, by_head = self.answers[function.index]
        weights = self.weights[relation, :, self.layer].flatten(2)  # (M, models, 2 * H)
        read = pairs.flatten(1, 2)[row]  # (M, 2 * H, T)
        scores += torch.bmm(weights, read).cpu().numpy()
        layer, direction, head = self.best[relation].T  # each (M,)
        here = layer == self.layer
        by_head[here] = pairs[row[here], direction[here], head[here]].cpu().numpy()


def listen(
    encoder: Encoder,
    functions: Sequence[ReadFunction],
    bar: tqdm,
    listener: Callable[..., PairListener],
) -> None:
    """Run the model over functions, in batches, to each of which a new `listener` listens."""
    longest_first = sorted(functions, key=lambda function: -len(function.ids))
    Runner(encoder, HEAD_TO_DEPENDENT).heard(longest_first, bar, listener)
