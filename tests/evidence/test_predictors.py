"""Predictors of accuracies on minimal pairs: pandas' correlations, every exchange by hand, planted orders, nulls."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas
import pytest

from probing.evidence.mechanism import LEAST, PredictedModel, agreement, orders
from probing.instruments.likelihood.result import LEAST_PAIRS, Accuracy

RELATIONS = [f"{name}:a->b" for name in "ABCDEFG"]


def accuracy(whole: float, place: float = 50.0, pairs: int = LEAST_PAIRS) -> Accuracy:
    return Accuracy(pairs=pairs, repositories=6, ties=0, brackets=50.0, whole=whole, place=place)


def spearman(one, other):
    return pandas.DataFrame({"one": one, "other": other}).corr(method="spearman").iloc[0, 1]


def model(whole, **predictors):
    values = {name: dict(zip(RELATIONS, of)) for name, of in predictors.items()}
    return PredictedModel("m", values, {name: accuracy(one) for name, one in zip(RELATIONS, whole)})


def test_agreement_is_the_mean_of_pandas_correlations_and_p_counts_joint_exchanges():
    rng = np.random.default_rng(5)
    one, other = rng.integers(0, 6, (3, 5)).astype(float), rng.normal(size=(3, 5))

    def mean(columns):
        return np.mean([spearman(row[list(columns)], of) for row, of in zip(one, other)])

    estimate, p = agreement(one, other)
    assert estimate == pytest.approx(mean(range(5)))
    every = [abs(mean(columns)) for columns in permutations(range(5))]
    assert p == pytest.approx(np.mean([value >= abs(estimate) - 1e-9 for value in every]))
    assert np.isnan(agreement(np.ones((3, 5)), other)).all()


def test_p_is_right_where_models_share_the_difficulty_of_relations():
    """Ten models that agree on accuracies and on a predictor, which has nothing to do with them: p below 0.05 in one of
    twenty. Relations exchanged in each model alone would find something in most."""
    rng, found = np.random.default_rng(1), []
    for _ in range(400):
        hard, predicted = rng.normal(size=(2, 6))
        each = [of + rng.normal(0, 0.1, (10, 6)) for of in (predicted, hard)]
        found.append(agreement(*each)[1] < 0.05)
    assert np.mean(found) < 0.08


def test_orders_of_planted_models():
    """Heads order relations, and the cost orders models; the baseline and bits order neither."""
    rng = np.random.default_rng(2)
    difficulty, flat = np.arange(7.0), -np.arange(7.0)
    models = [
        model(
            60 + difficulty + 5 * quality,
            heads=difficulty**2 + rng.normal(0, 0.1),
            baseline=flat,
            bits=rng.normal(size=7),
            cost=flat + quality,
        )
        for quality in range(6)
    ]
    found = {order.predictor: order for order in orders(models) if order.score == "whole"}
    assert {(one.models, one.relations) for one in found.values()} == {(6, 7)}
    heads, cost = found["heads"], found["cost"]
    assert heads.over_relations[0] == pytest.approx(1) and heads.over_relations[1] < 0.01
    assert heads.beyond_baseline[0] == pytest.approx(1 - found["baseline"].over_relations[0])
    assert heads.beyond_baseline[1] < 0.05 < found["bits"].over_relations[1]
    assert cost.over_models[0] == pytest.approx(1) and cost.over_models[1] < 0.02
    assert cost.beyond_baseline == (pytest.approx(0), 1.0)
    assert np.isnan([*found["baseline"].over_models, *found["baseline"].beyond_baseline]).all()


def test_p_is_corrected_over_predictors_and_scores():
    rng = np.random.default_rng(3)
    whole = rng.normal(size=7)
    alone = orders([model(whole, heads=whole)])
    assert [one.score for one in alone] == ["whole", "place"]
    assert alone[0].over_relations == (pytest.approx(1), pytest.approx(2 / 5040))  # all places are equal: one test
    several = orders([model(whole, heads=whole, bits=whole, baseline=whole)])
    assert [one.over_relations[1] for one in several if one.score == "whole"] == pytest.approx(
        [4 / 5040, 2 / 5040, 4 / 5040]
    )
    assert np.isnan(alone[0].over_models).all() and np.isnan(alone[1].over_relations).all()


def test_what_is_left_out():
    """Relations with few pairs, or that a model lacks; a predictor of too few relations; models without a predictor."""
    whole = np.arange(7.0)
    full = model(whole, heads=whole, bits=whole)
    few = full._replace(accuracies={**full.accuracies, RELATIONS[0]: accuracy(0.0, pairs=LEAST_PAIRS - 1)})
    assert {one.relations for one in orders([few])} == {6}
    lacks = full._replace(predictors={"heads": dict.fromkeys(RELATIONS[2:], 1.0)})
    assert {(one.predictor, one.models, one.relations) for one in orders([full, lacks])} == {
        ("heads", 2, 5),
        ("bits", 1, 7),
    }
    short = full._replace(predictors={"heads": dict.fromkeys(RELATIONS[: LEAST - 1], 1.0)})
    assert orders([short]) == [] == orders([])
