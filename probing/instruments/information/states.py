"""The second rung: hidden states of a layer, of the head token and of a candidate, in a bilinear
form.

States are means over the sub-tokens of a token, in the principal axes of the layer, at most AXES of
them, so that the form has at most this rank. The choice stays log-linear, in the products of two
entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from probing.instruments.attention.edges import EdgeTable
from probing.instruments.information.choice import Choices
from probing.instruments.information.learn import DRAWN_BY, AttentionSample, SurfaceSample, attend
from probing.instruments.information.pairs import ReadFunction
from probing.runs.batches import Batches

if TYPE_CHECKING:
    from probing.models.encoder import Encoder
    from probing.models.loaded import Batch

AXES = 64
TOKENS = 5000
"""The number of tokens, about, whose states tell the principal axes."""

DEPTHS = (0.25, 0.5, 0.75, 1.0)
"""How deep the layers are of which one is chosen on validation; 0 is that of the embeddings, 1 the
last."""


class Axes(NamedTuple):
    """The principal axes of the states of L layers, whose names are `layers`: `mean` (L, D), and
    `scaled` (L, D, K), by which states have the mean square 1."""

    layers: list[str]
    mean: Tensor
    scaled: Tensor

    def project(self, states: Tensor) -> np.ndarray:
        """States (T, L, D) -> half precision (T, L, K); without a state, that of the mean."""
        return (
            torch.einsum("tld,ldk->tlk", states - self.mean, self.scaled)
            .nan_to_num()
            .half()
            .numpy()
        )


def read_states(
    encoder: Encoder,
    functions: Sequence[ReadFunction],
    bar: tqdm,
    on_layer: Callable[[ReadFunction, Tensor], None],
) -> list[int]:
    """Run the model over functions, and call `on_layer` with each and the states of its tokens (T, L,
    D), NaN for those without sub-tokens; the L layers."""
    layers: list[int] = []

    def work(batch: Sequence[ReadFunction], inputs: Batch) -> Tensor:
        every = encoder.states(inputs)
        layers[:] = sorted({round(depth * (len(every) - 1)) for depth in DEPTHS})
        states = torch.stack([every[layer] for layer in layers], dim=2).float()  # (B, S, L, D)
        for function, state in zip(batch, states.cpu()):
            first, last = (torch.from_numpy(end).long() for end in function.alignment)
            ends = torch.nn.functional.pad(state.double().cumsum(0), (0, 0, 0, 0, 1, 0))
            means = (ends[last + 1] - ends[first]) / torch.where(
                first < 0, torch.nan, last - first + 1
            )[:, None, None]
            on_layer(function, means.float())
        return torch.empty(0)

    Batches(encoder).each(sorted(functions, key=lambda function: -len(function.ids)), bar, work)
    return layers


def principal_axes(encoder: Encoder, functions: Sequence[ReadFunction]) -> Axes:
    """The axes of the states of random functions."""
    order = np.random.default_rng(DRAWN_BY).permutation(len(functions))
    before = np.cumsum([0, *(len(functions[number].alignment.first) for number in order)])[:-1]
    some = [functions[number] for number in order[before < TOKENS]]
    heard: list[Tensor] = []
    layers = read_states(
        encoder,
        some,
        tqdm(disable=True),
        lambda function, states: heard.append(states[function.alignment.mapped]),
    )
    states = torch.cat(heard).movedim(1, 0)  # (L, T, D)
    mean = states.mean(dim=1)
    apart = states - mean[:, None]
    # from the least on
    spread, axes = torch.linalg.eigh((apart.mT @ apart / apart.shape[1]).double())
    scaled = axes[..., -AXES:] / spread[:, -AXES:].sum(dim=1).sqrt()[:, None, None]
    return Axes([f"layer {layer}" for layer in layers], mean, scaled.float())


@dataclass(frozen=True)
class StateChoices(Choices):
    """Choices with a bilinear form: its weights (K + 1, K), by row, follow those of the values.

    `heads` (E, K + 1): the head tokens' states, and 1; `states` (P, K): those of the candidates.
    """

    heads: np.ndarray
    states: np.ndarray

    @property
    def features(self) -> int:
        return super().features + self.heads.shape[1] * self.states.shape[1]

    def keep(self, candidates: np.ndarray, choices: np.ndarray) -> Self:
        return replace(
            super().keep(candidates, choices),
            heads=self.heads[choices],
            states=self.states[candidates],
        )

    def of_type(self, dtype: type) -> Self:
        return replace(
            super().of_type(dtype),
            heads=self.heads.astype(dtype, copy=False),
            states=self.states.astype(dtype, copy=False),
        )

    def scores(self, weights: np.ndarray) -> np.ndarray:
        plain = super().features
        form = weights[plain:].reshape(-1, self.states.shape[1]).astype(self.states.dtype)
        asked = (self.heads @ form)[self.choice]
        return super().scores(weights[:plain]) + np.einsum("pk,pk->p", self.states, asked)

    def slope(self, residual: np.ndarray) -> np.ndarray:
        weighted = torch.from_numpy(residual.astype(self.states.dtype))
        states, begin = torch.from_numpy(self.states), torch.from_numpy(self.begin)
        sums = torch.nn.functional.embedding_bag(
            torch.arange(len(states)), states, begin, mode="sum", per_sample_weights=weighted
        )
        return np.concatenate([super().slope(residual), (self.heads.T @ sums.numpy()).ravel()])


class StateSample(AttentionSample):
    """The states of the head token, first, and of the sampled candidates: `gathered`: edge -> half
    precision (, L, K)."""

    def choices(self, relation: int, transform: str) -> Choices:
        """The choice from the states of one layer alone."""
        sample, layer = self.samples[relation], self.forms.index(transform)
        each = [self.gathered[edge][:, layer].astype(np.float32) for edge in sample.edges]
        states = np.concatenate([rows[1:] for rows in each])
        heads = _with_one(np.stack([rows[0] for rows in each]))
        none = {"codes": sample.choices.codes[:0], "indicators": 0, "values": states[:, :0]}
        return StateChoices(**{**vars(replace(sample.choices)), **none}, heads=heads, states=states)


def _with_one(states: np.ndarray) -> np.ndarray:
    return np.concatenate([states, np.ones((len(states), 1), states.dtype)], axis=1)


def attend_states(
    encoder: Encoder,
    functions: Sequence[ReadFunction],
    samples: Mapping[int, SurfaceSample],
    edges: EdgeTable,
    bar: tqdm,
    axes: Axes,
) -> StateSample:
    """Read the states of the sampled candidates, and which tokens the attention heads rank
    first."""
    hits = attend(encoder, functions, {}, edges, bar).hits
    tokens: dict[int, np.ndarray] = {}
    for sample in samples.values():
        tokens |= sample.tokens_of
    rows_of: dict[int, np.ndarray] = {}

    def on_layer(function: ReadFunction, states: Tensor) -> None:
        known = axes.project(states)
        for edge in np.flatnonzero(edges.function == function.index).tolist():
            if edge in tokens:
                rows_of[edge] = known[np.append(edges.head[edge], tokens[edge])]

    read_states(encoder, functions, bar, on_layer)
    return StateSample(samples, rows_of, hits, axes.layers)


def score_states(
    encoder: Encoder,
    functions: Sequence[ReadFunction],
    axes: Axes,
    layer: str,
    forms: np.ndarray,
    asked: Mapping[int, np.ndarray],
) -> dict[int, np.ndarray]:
    """The scores of all tokens by bilinear forms: function -> (M, models, T).

    `forms`: weights (relations, models, (K + 1) * K); `asked`: as of `ScoredPairs`.
    """
    states_of: dict[int, np.ndarray] = {}
    position, axes_of = axes.layers.index(layer), axes.scaled.shape[2]
    each = forms.reshape(*forms.shape[:2], -1, axes_of)

    def on_layer(function: ReadFunction, states: Tensor) -> None:
        known = axes.project(states)[:, position].astype(np.float32)
        relation, head = asked[function.index].T
        heads = _with_one(known)[function.heads[head]]
        states_of[function.index] = np.einsum(
            "mh,mdhk,tk->mdt", heads, each[relation], known, optimize=True
        )

    read_states(encoder, functions, tqdm(disable=True), on_layer)
    return states_of
