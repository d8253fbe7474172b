"""The log-linear choice against a plain loop and another optimizer, on relations of the sample."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from scipy import optimize, special

from probing.instruments.information import learn
from probing.instruments.information.choice import Choices, fit, fit_over_folds
from probing.instruments.information.learn import _limited, _sampled, choice_of
from probing.instruments.information.surface import SETS, Surface, WordClasses

RELATIONS = [
    "If:if->test",
    "BinOp:left->right",
    "Compare:left->comparator",
    "For:for->body",
    "BoolOp:value->value",
]


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


def dense(one):
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
@pytest.mark.parametrize("name", RELATIONS[:2])
def test_the_fit_is_that_of_a_plain_loop(choices, name):
    one, penalty = choices[name].prefix(*SETS["positions"]), 0.5
    centre = np.random.default_rng(3).normal(size=one.features) / 5
    blocks = dense(one)

    def loss(weights):
        away = weights - centre
        total, slope = penalty * away @ away / 2, penalty * away
        for block in blocks:
            scores = block @ weights
            total += special.logsumexp(scores) - scores[0]
            slope = slope + special.softmax(scores) @ block - block[0]
        return total, slope

    start = np.zeros(one.features)
    theirs = optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "ftol": 0, "maxiter": 5000}
    ).x
    ours = fit(one, penalty, centre)
    assert np.abs(ours - theirs).max() < 1e-4
    plain = [special.logsumexp(block @ theirs) - (block @ theirs)[0] for block in blocks]
    assert np.abs(one.losses(ours) - plain).mean() / np.log(2) < 1e-5
    assert abs(one.losses(ours).mean() - np.mean(plain)) / np.log(2) < 1e-6


def test_the_gradient_is_the_slope(choices):
    one, rng = choices[RELATIONS[1]], np.random.default_rng(1)
    weights, centre, penalty = rng.normal(size=one.features), rng.random(one.features), 0.7
    slope = one.penalized(weights, penalty, centre)[1]
    for place in [*rng.integers(one.features, size=20), *range(one.features - 3, one.features)]:
        step = np.zeros(one.features)
        step[place] = 1e-5
        above, below = (
            one.penalized(weights + sign * step, penalty, centre)[0] for sign in (1, -1)
        )
        assert (above - below) / 2e-5 == pytest.approx(slope[place], abs=1e-7)


@pytest.mark.slow
def test_sampled_candidates_stand_for_the_others(choices, monkeypatch):
    """The sum over candidates is that of all, on average over samples, and the likeliest ones and the right one stay."""
    monkeypatch.setattr(learn, "CANDIDATES", 12)
    one, rng = choices[RELATIONS[0]].prefix(*SETS["positions"]), np.random.default_rng(2)
    weights = rng.normal(size=one.features) / 3
    scores = one.scores(weights)
    whole = np.add.reduceat(np.exp(scores), one.begin)
    likely = one.nats(scores)[1]
    sums = []
    for _ in range(400):
        few = _limited(one, _sampled(one, likely, rng))
        assert np.diff(few.begin, append=len(few.offset)).max() == 12
        sums.append(np.add.reduceat(np.exp(few.scores(weights)), few.begin))
        assert np.allclose(few.scores(weights)[few.chosen], scores[one.chosen])
    assert np.mean(sums, axis=0) == pytest.approx(whole, rel=0.05)


def test_every_candidate_is_kept_where_there_are_few(choices, monkeypatch):
    monkeypatch.setattr(learn, "CANDIDATES", 10**4)
    one = choices[RELATIONS[0]]
    offset = _sampled(one, one.nats(np.zeros(len(one.offset)))[1], np.random.default_rng(0))
    assert (offset == 0).all()


@pytest.mark.slow
def test_penalties_fall_until_the_loss_of_an_unseen_fold_rises(choices):
    one = choices[RELATIONS[1]].prefix(*SETS["positions"])
    fold, centre = np.arange(len(one.begin)) % 3, np.zeros(one.features)
    penalties = (30.0, 3.0, 0.3, 0.003)
    chosen = fit_over_folds(one, fold, penalties, [centre] * 3)
    parts = [(one.take(fold != number), one.take(fold == number)) for number in range(3)]
    losses = np.array(
        [
            [unseen.losses(fit(seen, penalty, centre)).sum() for seen, unseen in parts]
            for penalty in penalties
        ]
    )
    rises = (np.diff(losses, axis=0) > 0).any(axis=1)
    best = int(np.append(rises, True).argmax())
    assert chosen.penalty == penalties[best]
    assert 0 < best < 3
    assert np.bincount(fold, chosen.unseen) == pytest.approx(losses[best], rel=2e-3)
    assert chosen.fit(one, centre) == pytest.approx(fit(one, chosen.penalty, centre), abs=1e-4)


def test_without_choices_weights_are_the_centre(choices):
    one = choices[RELATIONS[0]]
    centre = np.random.default_rng(0).random(one.features)
    assert (fit(one.take(np.zeros(len(one.begin), bool)), 1.0, centre) == centre).all()
