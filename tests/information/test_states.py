"""What is learned of planted hidden states, and the bilinear form beside products that are written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.simulations.planted_attention import RELATION, informing, noise
from tqdm import tqdm

from codesyntax_dataset.errors import ArgumentError, ModelError
from probing import inform
from probing.instruments.attention.probe import Probing
from probing.instruments.information.choice import Choices, fit, fit_over_folds
from probing.instruments.information.learn import drawn
from probing.instruments.information.states import AXES, StateChoices, principal_axes, read_states
from probing.report.information import InformedModel
from probing.runs.data import read_functions
from probing.runs.experiment import run
from probing.runs.session import Session

pytestmark = [pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def planted(monkeypatch):
    """Run an experiment on states without attention that tells anything."""
    monkeypatch.setattr("probing.models.selfcheck.examine_lengths", lambda *_: None)
    monkeypatch.setattr("probing.runs.experiment._slot", lambda _: None)

    def found(states, functions=100):
        attention = noise(2, 3)
        result = run(informing(attention, functions=functions, tokens=9, edges=6, states=states))
        return result, result.relations[RELATION], InformedModel("", result).adds[RELATION]

    return found


TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(9, 9)))[0]
"""What a dependent's state has of its head token's."""


def pointing(among: int):
    """States of five layers, of which the fourth has a name of each token and, turned, those of its head tokens; beside
    the dependent, `among` - 1 other tokens have the latter, too."""

    def states(tokens, edges, rng):
        every = rng.normal(size=(5, tokens, 18))
        every[3] = 0
        every[3, :, :9] = np.linalg.qr(rng.normal(size=(9, tokens)))[0]
        for head, first in edges:
            others = np.setdiff1d(np.arange(tokens), [head, first])
            every[3, [first, *rng.choice(others, among - 1, replace=False)], 9:] += (
                every[3, head, :9] @ TURN
            )
        return every

    return states


@pytest.mark.slow
def test_states_that_a_bilinear_form_reads_add_what_is_open(planted):
    """Of 8 candidates 3 bits, all of which the fourth layer tells."""
    result, relation, adds = planted(pointing(among=1))
    assert relation.words.bits == pytest.approx(3, abs=0.1) and result.run.transform == "layer 3"
    assert adds.value > 2.8 and relation.attention.uas > 97 and relation.both.uas > 97
    assert (
        relation.best < 25
        and result.signature.endswith("|of:states")
        and result.title.endswith(", states")
    )


@pytest.mark.long
def test_states_that_tell_a_part_add_its_entropy(planted):
    """Two of 8 candidates are left: 2 bits are added."""
    _, relation, adds = planted(pointing(among=2), functions=150)
    assert adds.value == pytest.approx(2, abs=0.3) and relation.attention.uas == pytest.approx(
        50, abs=7
    )


@pytest.mark.long
def test_states_that_tell_nothing_add_nothing(planted):
    _, relation, adds = planted(lambda tokens, edges, rng: rng.normal(size=(5, tokens, 18)))
    assert adds.low <= 0 <= adds.high and abs(adds.value) < 0.02
    assert relation.attention.bits > 2.9


@pytest.fixture
def choices():
    """Choices of 2 to 9 candidates with a bilinear form, and the same with its products as values."""
    rng, ends = np.random.default_rng(3), np.random.default_rng(4).integers(2, 10, 90).cumsum()
    begin, codes, values = (
        np.append(0, ends[:-1]),
        rng.integers(4, size=(2, ends[-1])),
        rng.normal(size=(ends[-1], 2)),
    )
    heads, states = rng.normal(size=(90, 4)), rng.normal(size=(ends[-1], 3))
    given = begin, begin + rng.integers(ends - begin), codes, 4
    offset = rng.normal(size=ends[-1])
    products = (
        np.repeat(heads, np.diff(begin, append=ends[-1]), axis=0)[:, :, None] * states[:, None]
    ).reshape(-1, 12)
    plain = Choices(*given, np.hstack([values, products]), offset)
    return StateChoices(*given, values, offset, heads, states), plain


def test_the_form_is_that_of_products(choices):
    """Scores, slopes, fits, and folds, of which the parts are taken."""
    ours, plain = choices
    weights = np.random.default_rng(6).normal(size=18)
    assert ours.features == plain.features == 18
    assert ours.scores(weights) == pytest.approx(plain.scores(weights))
    centre = np.linspace(0.5, 2, 18)
    for one, other in zip(
        ours.penalized(weights, 0.5, centre), plain.penalized(weights, 0.5, centre)
    ):
        assert one == pytest.approx(other)
    assert fit(ours, 0.5, centre) == pytest.approx(fit(plain, 0.5, centre), abs=1e-5)
    one, other = (
        fit_over_folds(of, np.arange(90) % 3, (30.0, 3.0, 0.3), [centre] * 3) for of in choices
    )
    assert one.penalty == other.penalty and one.unseen == pytest.approx(other.unseen, abs=1e-3)
    assert one.fit(ours, centre) == pytest.approx(other.fit(plain, centre), abs=1e-4)


@pytest.mark.slow
def test_states_are_means_over_sub_tokens(tiny_model, dataset_folder):
    """And axes are those of a singular value decomposition."""
    probing = Probing(
        Session(tiny_model), read_functions(dataset_folder, "python", "test", limit=12)
    )
    functions, heard = drawn(probing.encoded.functions, 40)[0], {}
    layers = read_states(
        probing.encoder,
        functions,
        tqdm(disable=True),
        lambda function, states: heard.update({function.index: states}),
    )
    for function in functions:
        every = probing.encoder.states(probing.encoder.inputs([function.ids]))
        assert layers == sorted({round(part * (len(every) - 1) / 4) for part in (1, 2, 3, 4)})
        for token, (first, last) in enumerate(zip(*function.alignment)):
            plain = torch.stack([every[layer][0, first : last + 1].mean(0) for layer in layers])
            assert torch.allclose(heard[function.index][token], plain, atol=1e-5, equal_nan=True)
    axes = principal_axes(probing.encoder, functions)
    states = np.concatenate(
        [heard[function.index][function.alignment.mapped] for function in functions]
    )[:, 0]
    left, sizes, _ = np.linalg.svd(states - states.mean(0), full_matrices=False)
    ours = np.concatenate([axes.project(heard[f.index])[f.alignment.mapped] for f in functions])[
        :, 0
    ].astype(float)
    scale = np.sqrt(len(states) / (sizes[:AXES] ** 2).sum())
    assert np.abs(ours[:, ::-1]) == pytest.approx(np.abs(left * sizes)[:, :AXES] * scale, abs=5e-3)
    assert (ours**2).sum(axis=1).mean() == pytest.approx(1, abs=0.01)


def test_what_has_no_states_is_refused(tiny_model, dataset_folder, monkeypatch):
    with pytest.raises(
        ArgumentError, match="shuffled-attention, which leaves hidden states as they are"
    ):
        inform(tiny_model, dataset_folder, states=True, control="shuffled-attention")
    encoder = Session(tiny_model).encoder()
    inputs = encoder.inputs([np.array([5, 6, 7])])
    for given in ({}, {"hidden_states": (torch.zeros(1, 2, 4),)}):
        monkeypatch.setattr(encoder, "run", lambda *_, output=given, **__: output)
        with pytest.raises(ModelError, match="hidden states of each sub-token"):
            encoder.states(inputs)
