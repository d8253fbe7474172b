"""The context baseline: tokens ranked by what surrounds them and the token that reads.

It has no model and no syntax tree. Of a function it sees a `View`: words, lines, indentation and
round, square and curly brackets. A word is a class: one of the most frequent of the functions of
validation, or else only a name, a number, a text or a mark. Of labels it sees the edges of
validation alone; those of `test` are looked up in its rankings, and change none.

A candidate has the features of `_features`. Their weights are fitted for each relation as a
log-linear choice among the tokens of a function (`probing.instruments.information.choice`) on at
most MOST_EDGES edges, once for the first tokens of dependents and once for their last. In the
direction dependent-to-head, in which the head of a token depends less on the relation, they are
drawn towards weights that all relations have in common, the more the fewer edges there are.
Candidates are tokens whose class, or that of the token before them, a target of the relation on validation
has. Of equal scores the nearer token comes first.

In the direction head-to-dependent, `any` is the best rank of a token of the dependent, by the
weights of first tokens. In dependent-to-head, the head token is looked for from the first token,
from the last one, and, as `any`, from the better of the two; the tokens between them are not tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES, WORST_RANK
from probing.instruments.attention.edges import EdgeTable, runs
from probing.instruments.attention.offsets import Offsets, best_offsets
from probing.instruments.information.choice import Choices, fit
from probing.instruments.information.surface import CLASSES, NO_WORD, WordClasses, hashed
from probing.runs.data import Row, words_of

MOST_EDGES = 200
"""Of a relation, drawn, that weights are fitted on."""

CONTEXT_FOLDS = 2
"""Parts of validation: what is chosen there is chosen by ranks that were learned on the others."""

_PENALTY = 0.1  # on squared weights; 0.02 and 0.2 find as much to within a point
_CLOSE = 4e-3  # the slope at which a fit ends
_BUCKETS = 4096  # of each feature
_WEIGHTS = 15 * _BUCKETS
_MOST_COMMON = 60  # edges of each relation that common weights are fitted on
_COMMON_PENALTY = 1.0
_WORTH = 10  # edges of a relation that say as much as what is common
_NEARER = 1e-9  # a token more between lowers a score by so much
_NEAR, _FAR, _FEW, _LINES, _DEPTHS = 24, 11, 3, 6, 3  # up to which numbers are told apart
_CHUNK = 1 << 16  # tokens at a time
_DEEPEST = 1 << 10

Pairs = tuple[np.ndarray, np.ndarray]
"""Rows, and beside each the place of a token: (P,) each."""


@dataclass(frozen=True, eq=False)
class View:
    """What is seen of the T tokens of functions: for each its word, an index into `words`, its
    function, depth of brackets, columns of indentation, and whether it begins a line: (T,) each."""

    words: list[str]
    word: np.ndarray
    function: np.ndarray
    depth: np.ndarray
    indent: np.ndarray
    begins: np.ndarray

    @classmethod
    def of(cls, rows: Iterable[Row]) -> View:
        numbers: dict[str, int] = {}
        word: list[int] = []
        sizes: list[int] = []
        indents = [np.empty(0, np.int64)]
        begins = [np.empty(0, bool)]
        for row in rows:
            words = words_of(row)
            sizes.append(len(words))
            word += [numbers.setdefault(word, len(numbers)) for word in words]
            lines = row["code"].expandtabs(4).split("\n")
            ends = np.cumsum([len(line) + 1 for line in row["code"].split("\n")])
            line = np.searchsorted(ends, row["token_start"], side="right")
            of_line = np.array([len(line) - len(line.lstrip()) for line in lines])
            indents.append(of_line[line])
            begins.append(np.diff(line, prepend=-1) != 0)
        every = list(numbers)
        opened = np.array([(word in {*"([{"}) - (word in {*")]}"}) for word in every], np.int64)
        function = np.repeat(np.arange(len(sizes)), sizes)
        number = np.array(word, np.int64)
        depth = opened[number].cumsum()
        before = np.concatenate([[0], depth])[np.cumsum([0, *sizes[:-1]])]
        return cls(
            words=every,
            word=number,
            function=function,
            depth=depth - before[function],
            indent=np.concatenate(indents),
            begins=np.concatenate(begins),
        )

    @classmethod
    def joined(cls, parts: Sequence[View]) -> View:
        """The tokens of views one after the other."""
        words = list(dict.fromkeys(word for part in parts for word in part.words))
        numbers = {word: number for number, word in enumerate(words)}
        of_part = [np.array([numbers[word] for word in part.words], np.int64) for part in parts]
        word = [number[part.word] for number, part in zip(of_part, parts)]
        functions = np.cumsum([0, *(part.function.max(initial=-1) + 1 for part in parts)])
        function = [part.function + begin for part, begin in zip(parts, functions)]
        others = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("depth", "indent", "begins")
        }
        return cls(words, np.concatenate(word), np.concatenate(function), **others)


@dataclass(eq=False)
class SeenEdges(EdgeTable):
    """E edges, and a `view` of the tokens of their functions, one function after the other.

    `begin`: (E,), the first token of the edge's function there.
    """

    begin: np.ndarray
    view: View

    def take(self, some: np.ndarray) -> Self:
        """Some of the edges, by a mask (E,) or by places, with the tokens of all functions, where
        they are looked for."""
        columns = {name: column[some] for name, column in self.columns.items()}
        return replace(self, **columns, begin=self.begin[some])


class Surroundings:
    """A view by word classes: what features are made of.

    Of each token, (T,): its class `here`, those of the tokens at its `back` and `ahead` and of the
    `first` token of its line, and the number of its `line` among all.
    """

    def __init__(self, view: View, classes: WordClasses):
        self.view = view
        self.here = here = classes.of(view.words)[view.word]
        self.back = self._neighbour(-1)
        self.ahead = self._neighbour(1)
        places = np.arange(len(here))
        self.first = here[np.maximum.accumulate(np.where(view.begins, places, 0))]
        self.line = view.begins.cumsum()
        starts = np.flatnonzero(view.begins)
        commas = np.flatnonzero(np.array([word == "," for word in view.words], bool)[view.word])
        self.same = _Places(here, places)
        self.same_back = _Places(self.back, places)
        self.commas = _Places(view.depth[commas] + _DEEPEST, commas)
        self.starts = _Places(view.indent[starts], starts)
        self.firsts = _Places(here[starts], starts)

    def _neighbour(self, step: int) -> np.ndarray:
        """The class of the token so many tokens further in the same function."""
        function = self.view.function
        place = np.arange(len(function)) + step
        inside = np.clip(place, 0, len(function) - 1)
        same = (place == inside) & (function[inside] == function)
        return np.where(same, self.here[inside], NO_WORD)

    @cached_property
    def _least(self) -> np.ndarray:
        """The least depth of 1, 2, 4 ... tokens from each on: (powers, T)."""
        table = [self.view.depth]
        longest = np.bincount(self.view.function).max(initial=1)
        while (step := 1 << len(table) - 1) < longest:
            further = table[-1].copy()
            np.minimum(table[-1][:-step], table[-1][step:], out=further[: len(further) - step])
            table.append(further)
        return np.stack(table)

    def least_depth(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """That of the tokens from `low` to `high`."""
        power = np.frexp(high - low + 1)[1] - 1
        return np.minimum(self._least[power, low], self._least[power, high - (1 << power) + 1])


class _Places:
    """The places of tokens that have a key each, to count those of one key between two tokens."""

    def __init__(self, keys: np.ndarray, places: np.ndarray):
        self.tokens = 1 << 40
        self.order = np.sort(keys * self.tokens + places)

    def between(self, keys: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Their number, up to _FEW."""
        start = keys * self.tokens
        before = np.searchsorted(self.order, start + low, side="right")
        return np.minimum(np.searchsorted(self.order, start + high) - before, _FEW)


def _features(seen: Surroundings, reader: np.ndarray, token: np.ndarray) -> np.ndarray:
    """The features of tokens, each seen by a reading token: a number of each feature, (F, P)."""
    view, here, back, ahead, first = seen.view, seen.here, seen.back, seen.ahead, seen.first
    low = np.minimum(reader, token)
    high = np.maximum(reader, token)
    after = token > reader
    distance = token - reader
    far = _NEAR + 1 + np.minimum(np.log2(np.abs(distance)), _FAR).astype(np.int64)
    apart = np.where(np.abs(distance) <= _NEAR, np.abs(distance), far) * 2 + after
    level = view.depth[reader]
    inside = np.clip(view.depth[token] - level, -_DEPTHS, _DEPTHS)
    least = np.clip(seen.least_depth(low, high) - level, -_DEPTHS, 0)
    lines = np.clip(seen.line[token] - seen.line[reader], -_LINES, _LINES)
    indent = np.sign(view.indent[token] - view.indent[reader])
    begins = view.begins[token]
    same = seen.same.between(here[token], low, high)
    same_back = seen.same_back.between(back[token], low, high)
    outer = seen.commas.between(level + _DEEPEST, low, high)
    starts = seen.starts.between(view.indent[reader], low, high)
    firsts = seen.firsts.between(first[token], low, high)
    of_token, before, behind = here[token], back[token], ahead[token]
    of_reader = here[reader]
    crossed: list[tuple[np.ndarray, ...]] = [
        (apart,),
        (of_token,),
        (before,),
        (behind,),
        (inside, least),
        (lines, indent, begins),
        (before, same_back, after),
        (of_token, same, after),
        (of_reader, of_token),
        (apart, of_token),
        (outer, after, least),
        (starts, after, begins, indent),
        (firsts, first[token], after),
        (same, least, inside, of_token),
        (same_back, least, inside, before),
    ]
    numbers = np.empty((len(crossed), len(token)), np.int32)
    for feature, parts in enumerate(crossed):
        numbers[feature] = feature * _BUCKETS + hashed(_BUCKETS, feature, *parts)
    return numbers


class _Asked(NamedTuple):
    """Questions, (E,) each: the token that `reads`, the tokens from `low` to `high` of which any may
    be found, and the tokens of the function, from `begin` on so many `tokens`."""

    reads: np.ndarray
    low: np.ndarray
    high: np.ndarray
    begin: np.ndarray
    tokens: np.ndarray

    def take(self, some: np.ndarray | slice) -> _Asked:
        return _Asked(*(column[some] for column in self))


def _asked(edges: SeenEdges, direction: str) -> tuple[_Asked, _Asked, _Asked]:
    """Edges as questions by the rules first, any and last; in the direction dependent-to-head, that
    of `any` is that of the first token."""
    head, first, last = (edges.begin + end for end in (edges.head, edges.first, edges.last))
    ends = [(head, first, first), (head, first, last), (head, last, last)]
    if direction != HEAD_TO_DEPENDENT:
        ends = [(first, head, head), (first, head, head), (last, head, head)]
    at_first, at_any, at_last = (_Asked(*of_rule, edges.begin, edges.tokens) for of_rule in ends)
    return at_first, at_any, at_last


class _Ranker(NamedTuple):
    """What is learned of a relation: which classes of tokens, and of those before them, are
    candidates, bool (CLASSES,), and the weights of all features."""

    here: np.ndarray
    back: np.ndarray
    weights: np.ndarray

    @classmethod
    def learned(cls, seen: Surroundings, asked: _Asked, common: np.ndarray) -> _Ranker:
        """From questions, each with one token to find, and the weights that are `common` to
        relations, which say less the more questions there are."""
        centre = common * (_WORTH / (_WORTH + len(asked.reads)))
        return cls(*_classes(seen, asked), _fitted(seen, [asked], _PENALTY, centre))

    def ranks(
        self, seen: Surroundings, questions: Sequence[_Asked], avoided: int | None
    ) -> np.ndarray:
        """The rank of the best token that each finds, for several questions of the same reading
        tokens; and for the first of them without the tokens at the distance `avoided`: (questions +
        1, E)."""
        first = questions[0]
        ranks = np.full((len(questions) + 1, len(first.reads)), WORST_RANK, np.int64)
        ends = np.searchsorted(first.tokens.cumsum(), np.arange(_CHUNK, first.tokens.sum(), _CHUNK))
        for part in np.split(np.arange(len(first.reads)), np.unique(ends)):
            edge, token = _candidates(seen, first.take(part), self.here, self.back)
            distance = token - first.reads[part][edge]
            scores = -_NEARER * np.abs(distance)
            for feature in _features(seen, first.reads[part][edge], token):
                scores += self.weights[feature]
            for number, asked in enumerate(questions):
                some = asked.take(part)
                ranks[number, part] = _rank(edge, token, scores, some)
            kept = distance != avoided
            ranks[-1, part] = _rank(edge[kept], token[kept], scores[kept], first.take(part))
        return np.minimum(ranks, WORST_RANK)


def _classes(seen: Surroundings, asked: _Asked) -> tuple[np.ndarray, np.ndarray]:
    """The classes of the tokens that are to be found, and of those before them."""
    here, back = np.zeros((2, CLASSES), bool)
    here[seen.here[asked.low]] = True
    back[seen.back[asked.low]] = True
    return here, back


def _fitted(
    seen: Surroundings, relations: Sequence[_Asked], penalty: float, centre: np.ndarray
) -> np.ndarray:
    """The weights by which the questions of some relations are answered best; those of features
    that no candidate has are those of `centre`."""
    first, right, features = [], [], []
    size = 0
    for asked in relations:
        edge, token = _candidates(seen, asked, *_classes(seen, asked))
        first.append(size + np.searchsorted(edge, np.arange(len(asked.reads))))
        right.append(size + np.flatnonzero(token == asked.low[edge]))
        features.append(_features(seen, asked.reads[edge], token))
        size += len(edge)
    every = np.concatenate(features, axis=1)
    known = np.flatnonzero(np.bincount(every.ravel(), minlength=_WEIGHTS))
    number = np.zeros(_WEIGHTS, np.int64)
    number[known] = np.arange(len(known))
    choices = Choices(
        begin=np.concatenate(first),
        chosen=np.concatenate(right),
        codes=number[every],
        indicators=len(known),
        values=np.empty((size, 0)),
        offset=np.zeros(size),
    )
    weights = centre.copy()
    weights[known] = fit(choices, penalty, centre[known], close=_CLOSE)
    return weights


def _rank(edge: np.ndarray, token: np.ndarray, scores: np.ndarray, asked: _Asked) -> np.ndarray:
    """How many tokens score more than the best one that is looked for: (E,); WORST_RANK if none of
    these is a candidate."""
    best = np.full(len(asked.reads), -np.inf)
    wanted = (asked.low[edge] <= token) & (token <= asked.high[edge])
    np.maximum.at(best, edge[wanted], scores[wanted])
    ahead = np.bincount(edge[scores > best[edge]], minlength=len(best))
    return np.where(np.isfinite(best), ahead, WORST_RANK)


def _candidates(seen: Surroundings, asked: _Asked, here: np.ndarray, back: np.ndarray) -> Pairs:
    """The tokens of each function but the reading one that are of known classes."""
    edge, token = runs(asked.begin, asked.begin + asked.tokens)
    kept = (here[seen.here[token]] | back[seen.back[token]]) & (token != asked.reads[edge])
    return edge[kept], token[kept]


_Rankers = Mapping[str, tuple[_Ranker, _Ranker]]
"""Relation -> what is learned of it from first tokens of dependents, and from last ones."""


class ContextRanks(NamedTuple):
    """Ranks of edges, uint8 (rules, E): of those of validation, learned on functions of the other
    folds, and of those of test."""

    validation: np.ndarray
    test: np.ndarray


class Context(NamedTuple):
    """The ranks of the context baseline, in `every` order, and where the rule `first` passes over
    the best offset of its relation, `beyond`."""

    every: ContextRanks
    beyond: ContextRanks


def context(validation: SeenEdges, test: SeenEdges, direction: str) -> Context:
    """The context baseline: learned on the edges of validation."""
    counts = np.bincount(validation.view.word, minlength=len(validation.view.words)).tolist()
    classes = WordClasses.counted(dict(zip(validation.view.words, counts)))
    seen = Surroundings(validation.view, classes)
    offsets = best_offsets(validation)
    of_folds = np.full((2, len(RULES), len(validation)), WORST_RANK, np.uint8)
    for fold in range(CONTEXT_FOLDS):
        inside = validation.function % CONTEXT_FOLDS == fold
        rankers = _learned(seen, validation.take(~inside), direction)
        of_folds[..., inside] = _ranked(seen, rankers, validation.take(inside), direction, offsets)
    rankers = _learned(seen, validation, direction)
    of_test = _ranked(Surroundings(test.view, classes), rankers, test, direction, offsets)
    return Context(*map(ContextRanks, of_folds, of_test))


def _learned(seen: Surroundings, edges: SeenEdges, direction: str) -> _Rankers:
    """From all relations, of each from as many edges as are drawn."""
    drawn = np.random.default_rng(0).random(len(edges))
    possible = (edges.head != edges.first) & (edges.head != edges.last)
    first: dict[str, _Asked] = {}
    last: dict[str, _Asked] = {}
    for number, name in enumerate(edges.relations):
        chosen = np.flatnonzero(possible & (edges.relation == number))
        chosen = np.sort(chosen[np.argsort(drawn[chosen])[:MOST_EDGES]])
        if len(chosen):
            some = edges.take(chosen)
            first[name], _, at_last = _asked(some, direction)
            if not np.array_equal(some.first, some.last):
                last[name] = at_last
    of_first = _rankers(seen, first, direction)
    of_last = of_first | _rankers(seen, last, direction)
    return {name: (ranker, of_last[name]) for name, ranker in of_first.items()}


def _rankers(seen: Surroundings, asked: Mapping[str, _Asked], direction: str) -> dict[str, _Ranker]:
    """What is learned of each relation, from its questions."""
    common = np.zeros(_WEIGHTS)
    if direction != HEAD_TO_DEPENDENT and asked:
        few = [questions.take(slice(_MOST_COMMON)) for questions in asked.values()]
        common = _fitted(seen, few, _COMMON_PENALTY, common)
    return {name: _Ranker.learned(seen, questions, common) for name, questions in asked.items()}


def _ranked(
    seen: Surroundings, rankers: _Rankers, edges: SeenEdges, direction: str, offsets: Offsets
) -> np.ndarray:
    """The ranks of edges by each rule, in every order and beyond offsets: uint8 (2, rules, E)."""
    ranks = np.full((2, len(RULES), len(edges)), WORST_RANK, np.uint8)
    sign = 1 if direction == HEAD_TO_DEPENDENT else -1
    for number, name in enumerate(edges.relations):
        some = np.flatnonzero(edges.relation == number)
        if name not in rankers or not len(some):
            continue
        of_first, of_last = rankers[name]
        first, any_token, last = _asked(edges.take(some), direction)
        avoided = sign * offsets[name]
        at_first, at_any, at_first_beyond = of_first.ranks(seen, [first, any_token], avoided)
        at_last, _ = of_last.ranks(seen, [last], None)
        if direction != HEAD_TO_DEPENDENT:
            at_any = np.minimum(at_any, at_last)
        ranks[0, :, some] = np.stack([at_first, at_any, at_last], axis=1)
        ranks[1, :, some] = np.stack([at_first_beyond, at_any, at_last], axis=1)
    return ranks
