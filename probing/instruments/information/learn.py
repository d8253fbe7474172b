"""Learn on validation how words, positions and attention tell the dependents of each relation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from probing.instruments.attention.edges import EdgeTable, stacked
from probing.instruments.attention.ranking import EncodedFunction
from probing.instruments.information.choice import ROUGH, Choices, OverFolds, fit, fit_over_folds
from probing.instruments.information.pairs import TRANSFORMS, GatheredPairs, ReadFunction, Surface, listen
from probing.instruments.information.result import LEAST_EDGES, LearnedRelation

if TYPE_CHECKING:
    from probing.models.encoder import Encoder

logger = logging.getLogger(__name__)

FOLDS = 3
CANDIDATES, LEAST_CANDIDATES = 24, 8
"""The most candidates of an edge that are learned from, and the least where memory asks for fewer."""

BYTES = 1 << 29
"""The memory for the attention of all candidates that are learned from."""

OF_WORDS = (2.0, 0.4, 0.08, 0.016, 0.003)
OF_ATTENTION = (20.0, 4.0, 0.8, 0.16, 0.03)
"""Penalties on squared weights, strongest first, of which the one of least loss on unseen folds is taken."""

LEAST_MISSED = 10
"""Where words and positions miss fewer edges of validation, attention is not learned beside them: it could only make
them surer, which costs bits where another repository breaks the rule (1.6 an edge in one of Java, with 270 heads)."""

DRAWN_BY = 0
"""The seed of drawing edges and candidates: the same for all models, so that their results compare."""


def drawn(functions: Sequence[EncodedFunction], most: int) -> tuple[list[ReadFunction], int, int]:
    """The functions with drawn edges, in order, and only these: at most so many of a relation, function by function.

    Functions are taken in random order, the same for all models. Also returns how many edges are left out because the
    dependent begins at its head token, and how many because they are not drawn.
    """
    edges = stacked([function.edges for function in functions])
    order = np.random.default_rng(DRAWN_BY).random(int(edges.function.max()) + 1)[edges.function]
    possible, kept = edges.first != edges.head, np.zeros(len(edges), bool)
    for relation in range(len(edges.relations)):
        of_relation = np.flatnonzero(possible & (edges.relation == relation))
        kept[of_relation[np.argsort(order[of_relation], kind="stable")[:most]]] = True
    return with_edges(functions, kept), int((~possible).sum()), int((possible & ~kept).sum())


def with_edges(functions: Sequence[EncodedFunction], kept: np.ndarray) -> list[ReadFunction]:
    """The functions that keep any of their edges, with these alone. `kept`: which edges of all functions, bool (E,)."""
    read = []
    for function, of_function in zip(functions, np.split(kept, np.cumsum([len(one.edges) for one in functions])[:-1])):
        if of_function.any():
            columns = {name: column[of_function] for name, column in function.edges.columns.items()}
            edges = replace(function.edges, **columns)
            same = function.index, function.ids, function.alignment
            read.append(ReadFunction(*same, edges, function.shuffled_by, function.pool))
    return read


def choice_of(surface: Surface, head: int, first: int = 0) -> Choices:
    """The choice of the token `first` from words and positions, among all tokens but the head token."""
    others = np.arange(len(surface.word)) != head
    codes, values = surface.pairs(head)
    chosen = np.array([first - (first > head)])
    offset = np.zeros(len(others) - 1)
    return Choices(np.zeros(1, np.int64), chosen, codes[:, others], surface.indicators, values[others], offset)


class OfWords(NamedTuple):
    """A relation learned from words and positions.

    `edges` (E,): which of all drawn edges; `function`, `fold` (E,); `choices`: of them, with the sampled candidates,
    and `tokens` (P,), which tokens these are; `weights` (features,); `missed` (E,): edges whose dependent is not the
    likeliest candidate, by weights fitted on other folds.
    """

    edges: np.ndarray
    function: np.ndarray
    fold: np.ndarray
    choices: Choices
    tokens: np.ndarray
    over_folds: OverFolds
    weights: np.ndarray
    missed: np.ndarray

    @property
    def tokens_of(self) -> dict[int, np.ndarray]:
        """Edge -> its sampled candidates."""
        return dict(zip(self.edges.tolist(), np.split(self.tokens, self.choices.begin[1:])))


class Learned(NamedTuple):
    """The parameters learned for a relation.

    Weights of `words` alone; of words and positions in `both`; and, by row, of all heads (layers, 2, H), or of states
    (K + 1, K), alone in `alone`, and beside words and positions in `beside`, where they are 0 if attention does not
    lower the loss on unseen folds (`gains`). `outcome`: what the result says of the learning.
    """

    words: np.ndarray
    both: np.ndarray
    alone: np.ndarray
    beside: np.ndarray
    outcome: LearnedRelation


def folds(groups: np.ndarray) -> np.ndarray | None:
    """The fold of each edge: groups, the largest first, go to the fold with fewest edges; None for one group."""
    names, group, count = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < 2:
        return None
    edges, fold = np.zeros(min(FOLDS, len(names)), np.int64), np.zeros(len(names), np.int64)
    for place in np.argsort(-count, kind="stable"):
        fold[place] = edges.argmin()
        edges[fold[place]] += count[place]
    return fold[group]


def _sampled(whole: Choices, likely: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """The candidates that are kept, (P,), with the offset of each, -inf for the others.

    Of each choice the right one, the likeliest ones until half of them are there, and a random sample of the others,
    of which each stands for as many as were left per drawn one.
    """
    place = np.arange(len(likely))
    likely, drawn = likely.copy(), rng.random(len(likely))
    likely[whole.chosen] = np.inf
    offset = np.full(len(likely), -np.inf)
    order = place[np.lexsort([-likely, whole.choice])]
    rank = place - whole.begin[whole.choice]
    sure = order[rank < most // 2]
    offset[sure] = 0
    drawn[sure] = np.inf
    order = place[np.lexsort([drawn, whole.choice])]
    size = np.bincount(whole.choice)[whole.choice]
    left, wanted = size - most // 2, most - most // 2
    rest = order[(rank < wanted) & (rank < left)]
    offset[rest] = np.log(np.maximum(left / wanted, 1))[rest]
    return offset


def _limited(whole: Choices, offset: np.ndarray) -> Choices:
    kept = np.isfinite(offset)
    return replace(whole, offset=offset).keep(kept, np.ones(len(whole.begin), bool))


def learn_words(
    edges: EdgeTable, surfaces: Mapping[int, Surface], groups: np.ndarray, relation: int, most: int
) -> OfWords | None:
    """A relation from words and positions alone; None where its edges are too few, or of one function."""
    of_relation = np.flatnonzero(edges.relation == relation)
    if len(of_relation) < LEAST_EDGES:
        return None
    of_groups = folds(groups[of_relation])
    fold = folds(edges.function[of_relation]) if of_groups is None else of_groups
    if fold is None:
        return None
    places = [(int(edges.function[e]), int(edges.head[e]), int(edges.first[e])) for e in of_relation]
    whole = Choices.joined([choice_of(surfaces[index], head, first) for index, head, first in places])
    tokens = np.concatenate([np.delete(np.arange(len(surfaces[index].word)), head) for index, head, _ in places])
    rng = np.random.default_rng([DRAWN_BY, relation])
    rough = _limited(whole, _sampled(whole, np.zeros(len(tokens)), most, rng))
    guess = fit(rough, np.ones(whole.features), close=ROUGH)
    offset = _sampled(whole, whole.nats(whole.scores(guess))[1], most, rng)
    choices, open_to_choice = _limited(whole, offset), np.full(whole.features, np.nan)
    over_folds = fit_over_folds(choices, fold, OF_WORDS, open_to_choice)
    missed = np.empty(len(fold), bool)
    for number, weights in enumerate(over_folds.of_folds):
        here = fold == number
        part = whole.take(here)
        scores = part.scores(weights)
        missed[here] = np.maximum.reduceat(scores, part.begin) > scores[part.chosen]
    tokens, weights = tokens[np.isfinite(offset)], over_folds.fit(choices)
    return OfWords(of_relation, edges.function[of_relation], fold, choices, tokens, over_folds, weights, missed)


@dataclass
class Lesson:
    """The attention of the sampled candidates of all drawn edges.

    `kept`: edge -> half precision (candidates, layers, 2, H); `hits`: bool (E, layers, 2, H), whether each attention
    head ranks the dependent first; `forms`: the transforms of which one is chosen.
    """

    words: dict[int, OfWords]
    kept: dict[int, np.ndarray]
    hits: np.ndarray
    forms: Sequence[str] = (*TRANSFORMS,)

    def choices(self, relation: int, transform: str) -> tuple[Choices, Choices]:
        """The choice from attention alone, and from words, positions and attention; their values share memory."""
        of_words = self.words[relation]
        words = of_words.choices
        _, layers, _, heads = self.hits.shape
        values = np.empty((len(words.offset), words.values.shape[1] + layers * 2 * heads), np.float32)
        by_words, by_heads = np.split(values, [words.values.shape[1]], axis=1)
        by_words[:] = words.values
        for edge, rows in zip(of_words.edges.tolist(), np.split(by_heads, words.begin[1:])):
            rows[:] = TRANSFORMS[transform](torch.from_numpy(self.kept[edge]).float()).flatten(1)
        none = np.empty((0, len(values)), np.int64)
        return replace(words, codes=none, indicators=0, values=by_heads), replace(words, values=values)


def attend(
    encoder: Encoder, functions: Sequence[ReadFunction], words: dict[int, OfWords], edges: EdgeTable, bar: tqdm
) -> Lesson:
    """Read the attention of the sampled candidates."""
    tokens = {edge: of for of_words in words.values() for edge, of in of_words.tokens_of.items()}
    place = np.concatenate([np.searchsorted(function.heads, function.edges.head) for function in functions])
    numbers = np.split(np.arange(len(edges)), np.flatnonzero(np.diff(edges.function)) + 1)  # of edges, by function
    mine = {function.index: [e for e in number.tolist() if e in tokens] for function, number in zip(functions, numbers)}
    of_edges = {edge: np.column_stack([np.full(len(of), place[edge]), of]) for edge, of in tokens.items()}
    none = np.empty((0, 2), np.int64)
    asked = {index: np.concatenate([none, *(of_edges[e] for e in of_function)]) for index, of_function in mine.items()}
    heard: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    listen(encoder, functions, bar, partial(GatheredPairs, asked=asked, heard=heard))
    kept: dict[int, np.ndarray] = {}
    for index, of_function in mine.items():
        ends = np.cumsum([len(tokens[e]) for e in of_function])
        kept.update(zip(of_function, np.split(heard[index][0], ends[:-1])))
    first = [heard[index][1][place[number]] for index, number in zip(mine, numbers)]
    return Lesson(words, kept, np.concatenate(first) == edges.first[:, None, None, None])


def choose_transform(lesson: Lesson) -> str:
    """The transform of attention, or layer of states, with the least loss alone on an unseen fold of all relations."""
    losses = dict.fromkeys(lesson.forms, 0.0)
    for relation, of_words in lesson.words.items():
        for name in lesson.forms:
            choices, _ = lesson.choices(relation, name)
            unseen = of_words.fold == 0
            weights = fit(choices.take(~unseen), np.full(choices.features, OF_ATTENTION[2]), close=ROUGH)
            losses[name] += float(choices.take(unseen).losses(weights).mean())
    logger.info("log-loss on an unseen fold, by transform or layer: %s", losses)
    return min(losses, key=lambda name: losses[name])


def gains(less: np.ndarray, function: np.ndarray) -> bool:
    """True if the loss of edges (E,) is lower by more than one standard error over functions (Breiman et al. 1984)."""
    _, place = np.unique(function, return_inverse=True)
    of_functions = np.bincount(place, less - less.mean())
    return bool(less.sum() > np.sqrt((of_functions**2).sum()))


def learn_attention(lesson: Lesson, relation: int, transform: str) -> Learned:
    """A relation from the attention of all heads, alone and beside words and positions."""
    of_words, shape = lesson.words[relation], lesson.hits.shape[1:]
    alone, both = lesson.choices(relation, transform)
    heads, words = alone.features, of_words.over_folds
    of_heads = fit_over_folds(alone, of_words.fold, OF_ATTENTION, np.full(heads, np.nan))
    by_heads = of_heads.fit(alone)
    given = np.concatenate([np.full(len(of_words.weights), words.penalty), np.full(heads, np.nan)])
    start = [np.concatenate([weights, np.zeros(heads)]) for weights in words.of_folds]
    penalty, weights = None, np.concatenate([of_words.weights, np.zeros(heads)])
    if of_words.missed.sum() >= LEAST_MISSED:
        of_both = fit_over_folds(both, of_words.fold, OF_ATTENTION, given, start)
        if gains(words.unseen - of_both.unseen, of_words.function):
            penalty, weights = of_both.penalty, of_both.fit(both)
    hits = lesson.hits[of_words.edges]

    def most_found(edges: np.ndarray) -> tuple[int, int, int]:
        layer, direction, head = np.unravel_index(hits[edges].sum(axis=0).argmax(), shape)
        return int(layer), int(direction), int(head)

    return Learned(
        words=of_words.weights,
        both=weights[:-heads],
        alone=by_heads,
        beside=weights[-heads:],
        outcome=LearnedRelation(
            edges=len(hits),
            missed=int(of_words.missed.sum()),
            best=most_found(np.ones(len(hits), bool)),
            beyond=most_found(of_words.missed),
            penalties=(words.penalty, of_heads.penalty, penalty),
        ),
    )


def learn(
    encoder: Encoder,
    functions: Sequence[ReadFunction],
    surfaces: Mapping[int, Surface],
    repositories: Mapping[int, str],
    bar: tqdm,
    read: Callable[..., Lesson] = attend,
) -> tuple[str, dict[str, Learned]]:
    """The transform of attention, and what is learned of each relation that has edges enough.

    `surfaces`, `repositories`: of each function, by its place in the split; `read`: as of `attend`.
    """
    edges = stacked([function.edges for function in functions])
    groups = np.array([repositories[index] for index in edges.function.tolist()])
    row = len(edges) * 4 * encoder.layers * encoder.heads  # of one candidate of each edge, in half precision
    most = int(np.clip(BYTES // row, LEAST_CANDIDATES, CANDIDATES))
    each = {number: learn_words(edges, surfaces, groups, number, most) for number in range(len(edges.relations))}
    words = {relation: of_words for relation, of_words in each.items() if of_words is not None}
    lesson = read(encoder, functions, words, edges, bar)
    transform = choose_transform(lesson)
    return transform, {edges.relations[relation]: learn_attention(lesson, relation, transform) for relation in words}
