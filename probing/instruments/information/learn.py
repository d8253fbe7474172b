"""Learn on validation how words, positions and attention tell the dependents of each relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tqdm import tqdm

from probing.instruments.attention.edges import EdgeTable, stacked
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.information.choice import ROUGH, Choices, fit, fit_over_folds, out_of_fold
from probing.instruments.information.pairs import GatheredPairs, ReadFunction, listen
from probing.instruments.information.result import LEAST_EDGES, LearnedRelation
from probing.instruments.information.surface import INDICATORS, SETS, Surface

if TYPE_CHECKING:
    from probing.models.encoder import Encoder

FOLDS = 3

_NONE = np.empty(0, np.int64)

CANDIDATES = 24
"""The most candidates of an edge that are learned from: the same for all models, or the rival would
depend on them."""

SURFACE_PENALTIES = (50.0, 10.0, 2.0, 0.4, 0.08, 0.016, 0.003)
ATTENTION_PENALTIES = (20.0, 4.0, 0.8, 0.16, 0.03)
"""Penalties on squared weights, strongest first, of which the one of least loss on unseen folds is
taken."""

SHARED_PENALTY = 2.0
"""That of the weights that all relations share."""

LEAST_MISSED = 10
"""Where words and positions miss fewer edges of validation, attention is not learned beside them:
it could only make them surer, which costs bits where another repository breaks the rule (1.6 an
edge in one of Java, with 270 heads)."""

DRAWN_BY = 0
"""The seed of drawing edges and candidates: the same for all models, so that their results
compare."""


def drawn(functions: Sequence[EncodedFunction], most: int) -> tuple[list[ReadFunction], int, int]:
    """The functions with drawn edges, in order, and only these: at most so many of a relation,
    function by function.

    Functions are taken in random order, the same for all models. Also returns how many edges are
    left out because the dependent begins at its head token, and how many because they are not
    drawn.
    """
    edges = stacked([function.edges for function in functions])
    order = np.random.default_rng(DRAWN_BY).random(int(edges.function.max()) + 1)[edges.function]
    possible = edges.first != edges.head
    chosen = np.zeros(len(edges), bool)
    for relation in range(len(edges.relations)):
        of_relation = np.flatnonzero(possible & (edges.relation == relation))
        chosen[of_relation[np.argsort(order[of_relation], kind="stable")[:most]]] = True
    ends = np.cumsum([len(function.edges) for function in functions])
    some = with_edges(functions, np.split(chosen, ends[:-1]))
    return some, int((~possible).sum()), int((possible & ~chosen).sum())


def with_edges(
    functions: Sequence[EncodedFunction], chosen: Sequence[np.ndarray]
) -> list[ReadFunction]:
    """The functions that keep any of their edges, with these alone. `chosen`: which edges of each
    function, bool (E,)."""
    read = []
    for function, of_function in zip(functions, chosen):
        if of_function.any():
            columns = {name: column[of_function] for name, column in function.edges.columns.items()}
            edges = replace(function.edges, **columns)
            read.append(ReadFunction(function.index, function.ids, function.alignment, edges))
    return read


def choice_of(surface: Surface, head: int, first: int = 0) -> Choices:
    """The choice of the token `first` from words and positions, among all tokens but the head
    token."""
    others = np.arange(len(surface.word)) != head
    codes, values = surface.pairs(head)
    chosen = np.array([first - (first > head)])
    offset = np.zeros(len(others) - 1)
    return Choices(
        np.zeros(1, np.int64), chosen, codes[:, others], INDICATORS, values[others], offset
    )


class SurfaceSample(NamedTuple):
    """The choices of a relation from what needs no model.

    `edges` (E,): which of all drawn edges; `function`, `fold` (E,); `choices`: of them, with the
    sampled candidates, and `tokens` (P,), which tokens these are.
    """

    edges: np.ndarray
    function: np.ndarray
    fold: np.ndarray
    choices: Choices
    tokens: np.ndarray

    @property
    def tokens_of(self) -> dict[int, np.ndarray]:
        """Edge -> its sampled candidates."""
        return dict(zip(self.edges.tolist(), np.split(self.tokens, self.choices.begin[1:])))


@dataclass(frozen=True)
class SurfaceFit:
    """A relation learned from its sample without a model.

    `features`: the richest of `SETS` that it uses; `penalty`: of that set; `of_folds`, and
    `weights` of all edges, each (features,); `unseen` (E,): losses by the weights fitted without
    the edge's fold.
    """

    sample: SurfaceSample
    features: str
    penalty: float
    of_folds: list[np.ndarray]
    weights: np.ndarray
    unseen: np.ndarray

    @cached_property
    def scores(self) -> np.ndarray:
        """Those of the candidates (P,), by the weights fitted without the edge's fold."""
        choices = self.sample.choices
        return out_of_fold(
            self.sample.fold[choices.choice], [choices.scores(weights) for weights in self.of_folds]
        )

    @property
    def missed(self) -> np.ndarray:
        """The edges (E,) whose dependent does not have the highest of `scores`."""
        choices = self.sample.choices
        return np.maximum.reduceat(self.scores, choices.begin) > self.scores[choices.chosen]


class Learned(NamedTuple):
    """The parameters learned for a relation.

    Weights of the `surface` baseline; and of all heads, by layer, direction and number, alone in
    `alone`, and beside the scores of the baseline in `beside`, where they are 0 if attention does
    not lower the loss on unseen folds (`gains_enough`). `outcome`: what the result says of the learning.
    """

    surface: np.ndarray
    alone: np.ndarray
    beside: np.ndarray
    outcome: LearnedRelation


def folds(groups: np.ndarray) -> np.ndarray | None:
    """The fold of each edge: groups, the largest first, go to the fold with fewest edges; None for
    one group."""
    names, group, count = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < 2:
        return None
    edges = np.zeros(min(FOLDS, len(names)), np.int64)
    fold = np.zeros(len(names), np.int64)
    for largest in np.argsort(-count, kind="stable"):
        fold[largest] = edges.argmin()
        edges[fold[largest]] += count[largest]
    return fold[group]


def _sampled(whole: Choices, likely: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The candidates that are kept, (P,), with the offset of each, -inf for the others.

    Of each choice the right one, the likeliest ones until half of them are there, and a random
    sample of the others, of which each stands for as many as were left per drawn one.
    """
    positions = np.arange(len(likely))
    likely, drawn = likely.copy(), rng.random(len(likely))
    likely[whole.chosen] = np.inf
    offset = np.full(len(likely), -np.inf)
    order = positions[np.lexsort([-likely, whole.choice])]
    rank = positions - whole.begin[whole.choice]
    sure = order[rank < CANDIDATES // 2]
    offset[sure] = 0
    drawn[sure] = np.inf
    order = positions[np.lexsort([drawn, whole.choice])]
    size = np.bincount(whole.choice)[whole.choice]
    left = size - CANDIDATES // 2
    wanted = CANDIDATES - CANDIDATES // 2
    rest = order[(rank < wanted) & (rank < left)]
    offset[rest] = np.log(np.maximum(left / wanted, 1))[rest]
    return offset


def _limited(whole: Choices, offset: np.ndarray) -> Choices:
    finite = np.isfinite(offset)
    return replace(whole, offset=offset).keep(finite, np.ones(len(whole.begin), bool))


def sample_relation(
    edges: EdgeTable, surfaces: Mapping[int, Surface], fold: np.ndarray, relation: int
) -> SurfaceSample | None:
    """The choices of a relation; None where its edges are too few, or of one function. `fold`: of
    all edges."""
    of_relation = np.flatnonzero(edges.relation == relation)
    if len(of_relation) < LEAST_EDGES:
        return None
    function = edges.function[of_relation]
    of_fold = fold[of_relation]
    by_function = folds(function)
    if by_function is None:
        return None
    if len(np.unique(of_fold)) == 1:
        of_fold = by_function
    places = [
        (int(edges.function[e]), int(edges.head[e]), int(edges.first[e])) for e in of_relation
    ]
    whole = Choices.joined(
        [choice_of(surfaces[index], head, first) for index, head, first in places]
    )
    tokens = np.concatenate(
        [np.delete(np.arange(len(surfaces[index].word)), head) for index, head, _ in places]
    )
    rng = np.random.default_rng([DRAWN_BY, relation])
    plain = whole.prefix(*SETS["positions"])
    rough = _limited(plain, _sampled(plain, np.zeros(len(tokens)), rng))
    guess = fit(rough, 1.0, np.zeros(plain.features), close=ROUGH)
    offset = _sampled(whole, plain.nats(plain.scores(guess))[1], rng)
    return SurfaceSample(
        of_relation, function, of_fold, _limited(whole, offset), tokens[np.isfinite(offset)]
    )


def learn_surface(samples: Mapping[int, SurfaceSample]) -> dict[int, SurfaceFit]:
    """Each relation from what needs no model, by nested sets of features.

    First by the smallest set, with weights near 0; then by each set, with weights near those that
    all relations share. The last of these that `gains_enough` over the one before is averaged with the
    first: what a set gains on a few repositories may not hold in others.
    """
    first = _fit_all(samples, "positions", None)
    richest = dict(first)
    for features in SETS:
        for relation, fitted in _fit_all(
            samples, features, shared_weights(samples, features)
        ).items():
            if gains_enough(richest[relation].unseen - fitted.unseen, fitted.sample.function):
                richest[relation] = fitted
    return {relation: _averaged(first[relation], fitted) for relation, fitted in richest.items()}


def _fit_all(
    samples: Mapping[int, SurfaceSample], features: str, shared: list[np.ndarray] | None
) -> dict[int, SurfaceFit]:
    """Fits by one set of features, with weights near the `shared` ones, of each fold and of all;
    None: near 0."""
    fits = {}
    for relation, sample in samples.items():
        choices = sample.choices.prefix(*SETS[features])
        *centres, centre = shared or [np.zeros(choices.features)] * (FOLDS + 1)
        chosen = fit_over_folds(choices, sample.fold, SURFACE_PENALTIES, centres)
        of_folds = [_padded(weights, choices.indicators) for weights in chosen.of_folds]
        weights = _padded(chosen.fit(choices, centre), choices.indicators)
        fits[relation] = SurfaceFit(
            sample, features, chosen.penalty, of_folds, weights, chosen.unseen
        )
    return fits


def shared_weights(samples: Mapping[int, SurfaceSample], features: str) -> list[np.ndarray]:
    """The weights that all relations share, fitted without each fold, and on all."""
    choices = Choices.joined(
        [sample.choices.prefix(*SETS[features]) for sample in samples.values()]
    )
    choices = choices.of_type(np.float32)
    fold = np.concatenate([sample.fold for sample in samples.values()])
    start = fit(choices, SHARED_PENALTY, np.zeros(choices.features), close=ROUGH)
    seen = [choices.take(fold != number) for number in range(FOLDS)]
    none = np.zeros(choices.features)
    return [*(fit(part, SHARED_PENALTY, none, start, ROUGH) for part in seen), start]


def _padded(weights: np.ndarray, indicators: int) -> np.ndarray:
    """Weights with zeros for the indicators of larger sets."""
    return np.insert(weights, [indicators] * (INDICATORS - indicators), 0)


def _averaged(plain: SurfaceFit, richest: SurfaceFit) -> SurfaceFit:
    """The fit whose weights are the means of two."""
    of_folds = [(of_plain + other) / 2 for of_plain, other in zip(plain.of_folds, richest.of_folds)]
    weights = (plain.weights + richest.weights) / 2
    losses = out_of_fold(
        plain.sample.fold, [plain.sample.choices.losses(part) for part in of_folds]
    )
    return replace(richest, of_folds=of_folds, weights=weights, unseen=losses)


@dataclass
class AttentionSample:
    """The attention of the sampled candidates of all drawn edges.

    `gathered`: edge -> half precision (candidates, layers, 2, H); `hits`: bool (E, layers, 2, H),
    whether each attention head ranks the dependent first.
    """

    gathered: dict[int, np.ndarray]
    hits: np.ndarray

    def choices(self, sample: SurfaceSample) -> Choices:
        """The choice from attention alone."""
        candidates = len(sample.tokens)
        values = np.empty((candidates, *self.hits.shape[1:]), np.float32)
        for edge, rows in zip(sample.edges.tolist(), np.split(values, sample.choices.begin[1:])):
            rows[:] = self.gathered[edge]
        none = np.empty((0, candidates), np.int64)
        return replace(
            sample.choices, codes=none, indicators=0, values=values.reshape(candidates, -1)
        )


def attend(
    encoder: Encoder,
    functions: Sequence[ReadFunction],
    samples: Mapping[int, SurfaceSample],
    edges: EdgeTable,
    bar: tqdm,
) -> AttentionSample:
    """Read the attention of the sampled candidates."""
    tokens: dict[int, np.ndarray] = {}
    for sample in samples.values():
        tokens |= sample.tokens_of
    asked = {}
    edges_of = {}
    numbers = np.split(np.arange(len(edges)), np.flatnonzero(np.diff(edges.function)) + 1)
    for function, of_function in zip(functions, numbers):
        chosen = [edge for edge in of_function.tolist() if edge in tokens]
        candidates = [tokens[edge] for edge in chosen]
        heads = np.searchsorted(function.heads, edges.head[chosen])
        pairs = np.repeat(heads, [*map(len, candidates)]), np.concatenate([_NONE, *candidates])
        edges_of[function.index] = chosen
        asked[function.index] = np.column_stack(pairs)
    heard: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    listen(encoder, functions, bar, partial(GatheredPairs, asked=asked, answers=heard))
    gathered: dict[int, np.ndarray] = {}
    first = []
    for function in functions:
        weights, by_head = heard[function.index]
        chosen = edges_of[function.index]
        ends = np.cumsum([len(tokens[edge]) for edge in chosen])
        gathered.update(zip(chosen, np.split(weights, ends[:-1])))
        first.append(by_head[np.searchsorted(function.heads, function.edges.head)])
    return AttentionSample(gathered, np.concatenate(first) == edges.first[:, None, None, None])


def gains_enough(less: np.ndarray, function: np.ndarray) -> bool:
    """True if the loss of edges (E,) is lower by more than one standard error over functions
    (Breiman et al. 1984)."""
    _, function_numbers = np.unique(function, return_inverse=True)
    of_functions = np.bincount(function_numbers, less - less.mean())
    return bool(less.sum() > np.sqrt((of_functions**2).sum()))


def learn_attention(attention: AttentionSample, surface: SurfaceFit) -> Learned:
    """A relation from the attention of all heads, alone and beside the surface baseline.

    Beside it, the scores of the baseline stand as they are, so that what is gained is gained by
    attention.
    """
    sample = surface.sample
    alone = attention.choices(sample)
    none = np.zeros(alone.features)
    centres = [none] * FOLDS
    of_heads = fit_over_folds(alone, sample.fold, ATTENTION_PENALTIES, centres)
    penalty = None
    beside = none
    if surface.missed.sum() >= LEAST_MISSED:
        both = replace(alone, offset=surface.scores)
        of_both = fit_over_folds(both, sample.fold, ATTENTION_PENALTIES, centres)
        if gains_enough(surface.unseen - of_both.unseen, sample.function):
            penalty = of_both.penalty
            beside = of_both.fit(both, none)
    hits = attention.hits[sample.edges].sum(axis=0)
    layer, direction, head = np.unravel_index(hits.argmax(), hits.shape)
    return Learned(
        surface=surface.weights,
        alone=of_heads.fit(alone, none),
        beside=beside,
        outcome=LearnedRelation(
            edges=len(sample.edges),
            missed=int(surface.missed.sum()),
            features=surface.features,
            best=(int(layer), int(direction), int(head)),
            penalties=(surface.penalty, of_heads.penalty, penalty),
        ),
    )


def learn(
    encoder: Encoder,
    functions: Sequence[ReadFunction],
    surfaces: Mapping[int, Surface],
    repositories: Sequence[str],
    bar: tqdm,
    rival: Callable[[Mapping[int, SurfaceSample]], dict[int, SurfaceFit]] = learn_surface,
) -> dict[str, Learned]:
    """What is learned of each relation that has edges enough.

    `surfaces`: of each function, by its place in the split; `repositories`: of all functions there;
    `rival`: learns from what needs no model.
    """
    edges = stacked([function.edges for function in functions])
    fold = folds(np.array(repositories)[edges.function])
    if fold is None:  # one repository
        fold = folds(edges.function)
    if fold is None:
        return {}
    each = {
        number: sample_relation(edges, surfaces, fold, number)
        for number in range(len(edges.relations))
    }
    samples = {relation: sample for relation, sample in each.items() if sample is not None}
    if not samples:
        return {}
    fits = rival(samples)
    attention = attend(encoder, functions, samples, edges, bar)
    return {
        edges.relations[relation]: learn_attention(attention, fitted)
        for relation, fitted in fits.items()
    }
