"""The log-linear choice against a plain loop and another optimizer, on relations of the sample."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from scipy import optimize, special

from probing.instruments.information.choice import Choices, fit, fit_over_folds
from probing.instruments.information.learn import _limited, _sampled, choice_of
from probing.instruments.information.pairs import Surface, WordClasses

RELATIONS = ["If:if->test", "BinOp:left->right", "Compare:left->comparator", "For:for->body", "BoolOp:value->value"]


@pytest.fixture(scope="module")
def choices(dataset_folder):
    """Relation -> the choices of its first 40 edges on validation, with three columns of random values."""
    rows = list(Dataset.from_parquet(str(dataset_folder / "python" / "validation.parquet")))
    classes, rng = WordClasses(rows), np.random.default_rng(0)
    found: dict[str, list[Choices]] = {name: [] for name in RELATIONS}
    for row in rows:
        surface = Surface.of(row, classes)
        for edge in row["relations"]:
            if len(found.get(edge["relation"], "a" * 40)) < 40:
                found[edge["relation"]].append(choice_of(surface, edge["head"], edge["first"]))
    joined = {name: Choices.joined(parts) for name, parts in found.items()}
    for one in joined.values():
        object.__setattr__(one, "values", np.hstack([one.values, rng.random((len(one.offset), 3))]))
    return joined


def dense(one: Choices) -> list[np.ndarray]:
    """The features of each choice, the right candidate first."""
    blocks = []
    ends = [*one.begin[1:], len(one.offset)]
    for begin, end, right in zip(one.begin, ends, one.chosen):
        block = np.zeros((end - begin, one.features))
        for row, place in enumerate([right, *(p for p in range(begin, end) if p != right)]):
            for code in one.codes[:, place]:
                block[row, code] += 1
            block[row, one.indicators :] = one.values[place]
        blocks.append(block)
    return blocks


@pytest.mark.slow
@pytest.mark.parametrize("name", RELATIONS)
def test_the_fit_is_that_of_a_plain_loop(choices, name):
    one, penalty = choices[name], np.full(choices[name].features, 0.5)
    blocks = dense(one)

    def loss(weights):
        total, slope = penalty @ weights**2 / 2, penalty * weights
        for block in blocks:
            scores = block @ weights
            total += special.logsumexp(scores) - scores[0]
            slope = slope + special.softmax(scores) @ block - block[0]
        return total, slope

    start = np.zeros(one.features)
    theirs = optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000}).x
    ours = fit(one, penalty)
    assert np.abs(ours - theirs).max() < 1e-4
    plain = [special.logsumexp(block @ theirs) - (block @ theirs)[0] for block in blocks]
    assert np.abs(one.losses(ours) - plain).mean() / np.log(2) < 1e-5
    assert abs(one.losses(ours).mean() - np.mean(plain)) / np.log(2) < 1e-6


def test_the_gradient_is_the_slope(choices):
    one, rng = choices[RELATIONS[1]], np.random.default_rng(1)
    weights, penalty = rng.normal(size=one.features), rng.random(one.features)
    slope = one.penalized(weights, penalty)[1]
    for place in [*rng.integers(one.features, size=20), *range(one.features - 3, one.features)]:
        step = np.zeros(one.features)
        step[place] = 1e-5
        above, below = (one.penalized(weights + sign * step, penalty)[0] for sign in (1, -1))
        assert (above - below) / 2e-5 == pytest.approx(slope[place], abs=1e-7)


def test_sampled_candidates_stand_for_the_others(choices):
    """The sum over candidates is that of all, on average over samples, and the likeliest ones and the right one stay."""
    one, rng = choices[RELATIONS[0]], np.random.default_rng(2)
    weights = rng.normal(size=one.features) / 3
    scores = one.scores(weights)
    whole = np.add.reduceat(np.exp(scores), one.begin)
    likely = one.nats(scores)[1]
    sums = []
    for _ in range(400):
        few = _limited(one, _sampled(one, likely, 12, rng))
        assert np.diff(few.begin, append=len(few.offset)).max() == 12
        sums.append(np.add.reduceat(np.exp(few.scores(weights)), few.begin))
        assert np.allclose(few.scores(weights)[few.chosen], scores[one.chosen])
    assert np.mean(sums, axis=0) == pytest.approx(whole, rel=0.05)


def test_every_candidate_is_kept_where_there_are_few(choices):
    one = choices[RELATIONS[0]]
    offset = _sampled(one, one.nats(np.zeros(len(one.offset)))[1], 10**4, np.random.default_rng(0))
    assert (offset == 0).all()


def test_the_penalty_is_that_of_least_loss_on_unseen_folds(choices):
    one = choices[RELATIONS[1]]
    fold = np.arange(len(one.begin)) % 3
    penalties, free = (30.0, 3.0, 0.3, 0.003), np.full(one.features, np.nan)
    found = fit_over_folds(one, fold, penalties, free)
    losses = []
    for penalty in penalties:
        each = np.full(one.features, penalty)
        parts = [(one.take(fold != number), one.take(fold == number)) for number in range(3)]
        losses.append(sum(unseen.losses(fit(seen, each)).sum() for seen, unseen in parts))
    assert found.penalty == penalties[int(np.argmin(losses))]
    assert found.unseen.sum() == pytest.approx(min(losses), rel=1e-3)
    assert found.fit(one) == pytest.approx(fit(one, np.full(one.features, found.penalty)), abs=1e-4)
