"""Whether what is measured inside a model predicts what it does: heads, bits and silencing beside minimal pairs.

Of each relation a model has what its best head finds, what attention adds to words and positions, what silencing the
best head costs, and how often the model prefers the valid text of pairs about the same syntax. The rank correlation
(Spearman 1904) of a predictor with the accuracy is made in two ways, each a mean of correlations: over relations within
a model, which says whether it prefers best where its heads find most, and over models within a relation, such as the
checkpoints of a training. Models share the difficulty of a relation, and relations the quality of a model: p therefore
exchanges relations in all models together, or models in all relations together. The best baseline is a predictor, too,
that has no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from probing.evidence.mechanism import LEAST, orders_of, ranks_of
from probing.evidence.statistics import PERMUTATIONS, holm, paired_test
from probing.prediction.preference_result import LEAST_PAIRS, SCORES, Accuracy

BASELINE = "baseline"

PREDICTORS = ("heads", BASELINE, "bits", "cost")


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
    for at, *of in zip(tested, within, across):
        found[at] = found[at]._replace(over_relations=of[0], over_models=of[1])
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
    ranks, others = _ranked(one), _ranked(other)
    terms = ranks.T @ others / len(one)  # (P, P): what the columns add if the second stands where the first did
    if not terms.any():
        return np.nan, np.nan
    estimate = float(np.trace(terms))
    exchanged = terms[orders_of(len(terms)), np.arange(len(terms))].sum(axis=1)
    return estimate, float((np.abs(exchanged) >= abs(estimate) - 1e-9).mean())


def _difference(one: np.ndarray, baseline: np.ndarray, accuracy: np.ndarray) -> tuple[float, float]:
    """How much higher the agreement of one is than the baseline's; p exchanges the two within relations."""
    terms = ((_ranked(one) - _ranked(baseline)) * _ranked(accuracy)).mean(axis=0)
    return float(terms.sum()), float(paired_test(terms, PERMUTATIONS, 0))


def _ranked(values: np.ndarray) -> np.ndarray:
    return np.array([ranks_of(row) for row in values])
