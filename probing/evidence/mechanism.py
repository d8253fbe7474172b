"""Mechanism beside outcome: whether what is measured inside a model goes with what it does, in rank correlations.

- `beside`: what the best heads of a model find of a syntax, and what masking this syntax costs it. A node type and the
  relations of the same syntax (`Language.syntax`) are a pair. The rank correlation over pairs (Spearman 1904) says
  whether the heads' held-out scores and the losses of masking come in the same order. Both sides are restricted to the
  functions that both have. The claim is about syntax, so that the unit of intervals and tests is the pair, whatever the
  number of functions.
- `orders`: heads, bits and silencing beside minimal pairs. Of each relation a model has what its best head finds, what
  attention adds to words and positions, what silencing the best head costs, and how often the model prefers the valid
  text of pairs about the same syntax. The rank correlation of a predictor with the accuracy is made in two ways, each a
  mean of correlations: over relations within a model, which says whether it prefers best where its heads find most, and
  over models within a relation, such as the checkpoints of a training. Models share the difficulty of a relation, and
  relations the quality of a model: p therefore exchanges relations in all models together, or models in all relations
  together.

A few pairs or relations may come in one order for many reasons, such as how frequent or how local a syntax is; the same
correlation with the scores of the best baseline, which has no model, therefore stands beside each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pandas
from scipy.special import ndtri

from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT
from probing.evidence.gather import Evidence
from probing.evidence.masked import MaskedType
from probing.evidence.uncertainty import mean_of
from probing.instruments.likelihood.result import LEAST_PAIRS, SCORES, Accuracy
from probing.instruments.masking.result import MaskSettings
from probing.runs.data import find_data, label_digest, load_functions
from probing.runs.settings import Settings
from probing.stats.statistics import FEW_FUNCTIONS, PERMUTATIONS, holm, paired_test

SIMILARITY = "jaccard"
"""The similarity of trees whose effect is compared."""

LEAST = 5
"""Pairs, relations or models from which a correlation is computed."""

BASELINE = "baseline"

PREDICTORS = ("heads", BASELINE, "bits", "cost")

_ALL_ORDERS = 8
"""Pairs whose orders are all counted."""


class OneGuess(NamedTuple):
    """Hits of one guess, held-out, rule first, in F functions, of R relations.

    `functions` (F,): places in the split, ascending; `edges`, and those that the best `heads` and the best `baseline`
    find: (F, R).
    """

    relations: list[str]
    functions: np.ndarray
    edges: np.ndarray
    heads: np.ndarray
    baseline: np.ndarray


class MatchedPair(NamedTuple):
    """A node type and those of its relations that have a held-out score, on the functions that both sides have.

    `heads`, `baseline`: the mean of the relations' scores, in percent; `effect`: the mean of T1 - T0; `restored`: in
    T1, in percent. `probed`, `masked`: the number of functions with an edge, and with a node.
    """

    node_type: str
    relations: list[str]
    probed: int
    masked: int
    heads: float
    baseline: float
    effect: float
    restored: float

    @property
    def few_functions(self) -> bool:
        """True if it is in no correlation, because a side is in fewer than FEW_FUNCTIONS functions."""
        return min(self.probed, self.masked) < FEW_FUNCTIONS


class Correlation(NamedTuple):
    """A rank correlation, its 95 % interval and two-sided p; NaN where all numbers of a side are equal."""

    estimate: float
    low: float
    high: float
    p: float


class Correlations(NamedTuple):
    """Rank correlations of an outcome with the scores of the best heads (p corrected, Holm, over outcomes) and of the
    best baseline, and the difference of the two, which has no interval."""

    heads: Correlation
    baseline: Correlation
    difference: Correlation


class Mechanism(NamedTuple):
    """The pairs of a model, those that masking costs most first.

    `functions`: that both sides have; `only_probed`, `only_masked`: that one of them has. `correlations`: `effect` and
    `restored` -> over the pairs that are not in few functions; empty if these are fewer than LEAST.
    """

    functions: int
    only_probed: int
    only_masked: int
    pairs: list[MatchedPair]
    correlations: dict[str, Correlations]

    @property
    def counted(self) -> list[MatchedPair]:
        """Those over which the correlations are."""
        return [pair for pair in self.pairs if not pair.few_functions]


def one_guess(evidence: Evidence) -> OneGuess:
    """Hits of the heads of a model and of the best baseline, both chosen on validation."""
    heads = evidence.outcomes[HELD_OUT]
    baseline = evidence.splits.baselines.outcomes[HELD_OUT][BEST_BASELINE].only(heads.relations)
    hits = (side.one_guess.hits[0, 0] for side in (heads, baseline))
    return OneGuess(heads.relations, heads.functions, heads.edges, *hits)


def unlike(probed: Settings, file: Any, masked: MaskSettings, data: Any = None) -> str:
    """Why a probe and a masking run did not read the same functions; empty if they did.

    `file`: the result of the probe; `data`: the location of the dataset, if not the one in that result. One of the two
    may be of the first functions only. Raises DataNotFound if it is, and the data are not found.
    """
    if probed.data != masked.data:
        return f"attention was probed on {probed.data}, and the masked functions are of {masked.data}"
    labels = probed.labels
    if probed.limit != masked.limit:
        place = find_data(file, probed) if data is None else data
        labels = label_digest(load_functions(place, masked.config, masked.split)[0], masked.limit)
    if labels != masked.labels:
        return f"the functions that were probed have the labels {labels}, and those that were masked {masked.labels}"
    return ""


def beside(guessed: OneGuess, node_types: Mapping[str, MaskedType], syntax: Mapping[str, Sequence[str]]) -> Mechanism:
    """Hits of a model's heads beside the cost of masking. `syntax`: node type -> relations of the same."""
    masked = reduce(np.union1d, (one.places for one in node_types.values()), np.array([], int))
    functions = np.intersect1d(guessed.functions, masked)
    compared = (
        _pair(guessed, node_types[name], functions, name, syntax[name]) for name in syntax if name in node_types
    )
    pairs = [pair for pair in compared if pair]
    kept = [pair for pair in pairs if not pair.few_functions]
    return Mechanism(
        functions=len(functions),
        only_probed=len(guessed.functions) - len(functions),
        only_masked=len(masked) - len(functions),
        pairs=sorted(pairs, key=lambda pair: (pair.effect, pair.node_type)),
        correlations=correlations_of(kept) if len(kept) >= LEAST else {},
    )


def _pair(
    guessed: OneGuess, one: MaskedType, functions: np.ndarray, name: str, same: Sequence[str]
) -> MatchedPair | None:
    """A node type and its relations in these functions; None if these have no such edge, or no such node."""
    probed, shared = np.isin(guessed.functions, functions), np.isin(one.places, functions)
    present = [relation for relation in same if relation in guessed.relations]
    columns = [guessed.relations.index(relation) for relation in present]
    columns = [column for column in columns if guessed.edges[probed, column].any()]
    if not (columns and shared.any()):
        return None
    edges, heads, baseline = (part[probed][:, columns] for part in (guessed.edges, guessed.heads, guessed.baseline))
    scores = [float(mean_of(hits.sum(axis=0), edges.sum(axis=0))) for hits in (heads, baseline)]
    t1, t0 = one.arms[SIMILARITY][:, shared]
    restored = 100 * one.arms["restored"][0, shared]
    return MatchedPair(
        node_type=name,
        relations=[guessed.relations[column] for column in columns],
        probed=int(edges.any(axis=1).sum()),
        masked=int(shared.sum()),
        heads=scores[0],
        baseline=scores[1],
        effect=float((t1 - t0).mean()),
        restored=float(restored.mean()),
    )


def correlations_of(pairs: Sequence[MatchedPair]) -> dict[str, Correlations]:
    """Outcome -> the correlations over these pairs."""
    heads, baseline = (np.array([getattr(pair, side) for pair in pairs]) for side in ("heads", "baseline"))
    correlations = {}
    for outcome in ("effect", "restored"):
        loss = np.array([getattr(pair, outcome) for pair in pairs])
        of_heads, of_baseline = correlate(heads, loss), correlate(baseline, loss)
        difference, p = _difference(heads[None], baseline[None], loss[None])
        if np.isnan([of_heads.estimate, of_baseline.estimate]).any():
            difference = p = np.nan
        correlations[outcome] = Correlations(of_heads, of_baseline, Correlation(difference, np.nan, np.nan, p))
    corrected = holm(np.array([np.nan_to_num(of.heads.p, nan=1.0) for of in correlations.values()])).tolist()
    return {
        outcome: of._replace(heads=of.heads._replace(p=p)) for (outcome, of), p in zip(correlations.items(), corrected)
    }


def correlate(one: np.ndarray, other: np.ndarray) -> Correlation:
    """Spearman's rank correlation of two (P,), with what independent pairs say of it; NaN if all numbers of one are
    equal.

    p counts the orders of the pairs, all of them or PERMUTATIONS at random, that correlate as much. The interval is
    that of Bonett and Wright (2000, Psychometrika 65); where the ranks agree, that of the next lower correlation.
    """
    estimate, p = agreement(one[None], other[None])
    if np.isnan(estimate):
        return Correlation(*[np.nan] * 4)
    size = len(one)
    most = 1 - 12 / (size**3 - size)
    inner = float(np.clip(estimate, -most, most))
    away = ndtri(0.975) * np.sqrt((1 + inner**2 / 2) / (size - 3))
    low, high = (float(np.tanh(np.arctanh(inner) + side * away)) for side in (-1, 1))
    return Correlation(estimate, min(low, estimate), max(high, estimate), p)


@cache
def orders_of(size: int) -> np.ndarray:
    """Orders of so many things, all of them or the first and PERMUTATIONS at random: int (n, size).

    Making them takes twenty times as long as what is counted over them.
    """
    if size <= _ALL_ORDERS:
        return np.array(list(permutations(range(size))))
    rng = np.random.default_rng(0)
    return np.array([range(size), *(rng.permutation(size) for _ in range(PERMUTATIONS))])


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Ranks (n, P), less their mean, of length 1, or all 0 if they are equal; equal numbers share their mean rank."""
    ranks = pandas.DataFrame(values.round(9)).rank(axis=1).to_numpy()  # the last digits depend on the order of sums
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    return ranks / np.where(length > 0, length, 1)


class PredictedModel(NamedTuple):
    """One model: each of PREDICTORS that was measured -> relation -> value, and relation -> accuracy on its pairs."""

    title: str
    predictors: Mapping[str, Mapping[str, float]]
    accuracies: Mapping[str, Accuracy]


class Order(NamedTuple):
    """The order of a predictor beside that of one of SCORES, in so many models and relations that have both.

    `over_relations`, `over_models`: the mean rank correlation and its p, corrected (Holm) over predictors and scores;
    NaN for fewer than LEAST relations or models, or where all are equal. `beyond_baseline`: how much higher the first
    is than that of the best baseline in the same models and relations, and its p.
    """

    predictor: str
    score: str
    models: int
    relations: int
    over_relations: tuple[float, float]
    beyond_baseline: tuple[float, float]
    over_models: tuple[float, float]


def orders(models: Sequence[PredictedModel]) -> list[Order]:
    """Those of all predictors and scores that enough relations have."""
    found = [order for name in PREDICTORS for score in SCORES if (order := _order(models, name, score)) is not None]
    tested = [at for at, order in enumerate(found) if order.predictor != BASELINE]
    within = _corrected([found[at].over_relations for at in tested])
    across = _corrected([found[at].over_models for at in tested])
    for at, over_relations, over_models in zip(tested, within, across):
        found[at] = found[at]._replace(over_relations=over_relations, over_models=over_models)
    return found


def _corrected(tests: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same estimates with p corrected (Holm) over the tests that there are."""
    there = [at for at, (_, p) in enumerate(tests) if not np.isnan(p)]
    corrected = dict(zip(there, holm(np.array([tests[at][1] for at in there])).tolist()))
    return [(estimate, corrected.get(at, p)) for at, (estimate, p) in enumerate(tests)]


def _order(models: Sequence[PredictedModel], predictor: str, score: str) -> Order | None:
    models = [one for one in models if one.predictors.get(predictor)]
    each = [
        {name for name, of in one.accuracies.items() if of.pairs >= LEAST_PAIRS}.intersection(
            one.predictors[predictor], one.predictors.get(BASELINE, one.predictors[predictor])
        )
        for one in models
    ]
    names = sorted(set.intersection(*each)) if each else []
    if len(names) < LEAST:
        return None

    def table(by: str) -> np.ndarray:
        return np.array([[one.predictors[by][name] for name in names] for one in models])

    values = table(predictor)
    accuracy = np.array([[getattr(one.accuracies[name], score) for name in names] for one in models])
    beyond = np.nan, np.nan
    if predictor != BASELINE and all(BASELINE in one.predictors for one in models):
        beyond = _difference(values, table(BASELINE), accuracy)
    return Order(
        predictor,
        score,
        len(models),
        len(names),
        agreement(values, accuracy),
        beyond,
        agreement(values.T, accuracy.T) if len(models) >= LEAST else (np.nan, np.nan),
    )


def agreement(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The rank correlation of two (n, P) over P, the mean over n, and its two-sided p by exchanging the P columns of
    one, in all n together; NaN where all numbers of a side are equal in each."""
    ranks, others = ranks_of(one), ranks_of(other)
    terms = ranks.T @ others / len(one)  # (P, P): what the columns add if the second stands where the first did
    if not terms.any():
        return np.nan, np.nan
    estimate = float(np.trace(terms))
    exchanged = terms[orders_of(len(terms)), np.arange(len(terms))].sum(axis=1)
    return estimate, float((np.abs(exchanged) >= abs(estimate) - 1e-9).mean())


def _difference(one: np.ndarray, baseline: np.ndarray, accuracy: np.ndarray) -> tuple[float, float]:
    """How much higher the agreement of one is than the baseline's; p exchanges the two within relations."""
    terms = ((ranks_of(one) - ranks_of(baseline)) * ranks_of(accuracy)).mean(axis=0)
    return float(terms.sum()), float(paired_test(terms, PERMUTATIONS, 0))
