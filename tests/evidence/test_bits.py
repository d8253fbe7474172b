"""Bits per byte: the same text costs the same under any tokenizer."""

import copy
import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

import probing
from codesyntax_dataset.pairs.code import Code
from probing.evidence.bits import bits_and_bytes, closing_and_matched, closing_tokens, paid
from probing.instruments.likelihood.likelihood import TokenizedFunction
from probing.models.load import load_scoring
from probing.models.masked import ScoredText

TEXT = "def f(é, b):\n    return é(b, 1)\n"
TOKENS = [
    "def",
    " f",
    "(",
    "é",
    ",",
    " b",
    ")",
    ":",
    "\n    return",
    " é",
    "(",
    "b",
    ",",
    " 1",
    ")",
]
"""The units: tokens with the white space before them."""


def function_of(ends, like=None):
    """The text as a function whose sub-tokens end at these characters."""
    code = Code(TEXT, "python")
    tokens = len(code.tokens)
    like = np.zeros((tokens, 3)) if like is None else like
    places = np.arange(len(ends))
    text = ScoredText(np.zeros(len(ends)), places, places + 1)
    return TokenizedFunction(
        0, code, text, np.zeros(tokens, int), np.zeros(tokens, int), np.array(ends), like
    )


def test_units_have_their_white_space_and_their_bytes():
    ends = np.cumsum([len(token) for token in TOKENS])
    nats = np.arange(1.0, len(TOKENS) + 1)
    units = bits_and_bytes(function_of(ends), -nats)
    assert units[:, 1].tolist() == [len(token.encode()) for token in TOKENS]
    np.testing.assert_allclose(units[:, 0], nats / np.log(2))
    # one that is in two units is shared by bytes: here "): " of one byte each
    joined = np.delete(ends, 6)
    paid = np.append(np.delete(nats, 6)[:6], [9.0, *nats[8:]])
    assert bits_and_bytes(function_of(joined), -paid)[6:8, 0] == pytest.approx(4.5 / np.log(2))
    # and one that nothing predicts is not paid
    first = bits_and_bytes(function_of(ends), -nats[1:])
    assert first[0, 0] == 0
    assert first[1, 0] == pytest.approx(2 / np.log(2))


def test_sub_tokens_of_one_character_are_paid_together():
    ends = [*range(1, 7), 7, 7, *range(8, len(TEXT) + 1)]  # the bytes of é, at 7
    units = bits_and_bytes(function_of(ends), -np.ones(len(ends)) * np.log(2))
    assert units[3].tolist() == [2, 2]
    assert units[:, 0].sum() == sum(len(token) for token in TOKENS) + 1


def test_controls_have_as_many_bytes_and_close_nothing():
    like = np.zeros((len(TOKENS), 3))
    like[:, 2] = np.arange(len(TOKENS)) / len(TOKENS)
    function = function_of(np.arange(1, len(TEXT) + 1), like)
    size = np.array([len(token.encode()) for token in TOKENS])
    matched = closing_and_matched(function, size, ["parameters", "argument_list"])
    # ")" at 6 and 14; alike are one byte long, and at most a quarter of the function away
    assert matched.tolist() == [[6, 7], [14, 12]]
    function.like[:, 1] = 3.0 * np.arange(len(TOKENS))  # of other frequencies
    assert not len(closing_and_matched(function, size, ["parameters", "argument_list"]))


@pytest.mark.parametrize(
    "most, positions, closed", [(3, [6, 11, 12], [6, 14]), (2, [6], [6]), (0, [], [])]
)
def test_a_masked_model_pays_for_the_sub_tokens_of_some_closing_tokens(most, positions, closed):
    """As in a text of which all is scored. `):` and `, 1` are a sub-token each."""
    like = np.zeros((len(TOKENS), 3))
    like[:, 2] = np.arange(len(TOKENS)) / len(TOKENS)
    ends = np.delete(np.cumsum([len(token) for token in TOKENS]), [6, 12])
    function, scores = function_of(ends, like), -np.arange(1.0, len(TOKENS) - 1)
    asked = [*closing_tokens([function], ["parameters", "argument_list"], most)]
    assert [position for of in asked for position in of.text.positions] == positions
    for of in asked:
        sums = paid(asked, [scores[positions]])
        expected = bits_and_bytes(function, scores)[closed].sum(axis=0)
        assert of.pairs[:, 0].tolist() == closed
        np.testing.assert_allclose(sums["closing"][0], expected)


@pytest.mark.slow
def test_two_tokenizers_over_one_model_pay_the_same():
    """The ids of the other are mapped to those of the model, in whose rows its embeddings are."""
    loaded = load_scoring("tiny-code-lm", dtype="float32")
    model, tokenizer = loaded.model, loaded.tokenizer
    order = np.random.default_rng(0).permutation(len(tokenizer))
    rules = tokenizer.backend_tokenizer
    vocabulary = {token: int(order[number]) for token, number in rules.get_vocab().items()}
    state = json.loads(rules.to_str())
    state["model"]["vocab"] = {token: vocabulary[token] for token in state["model"]["vocab"]}
    for added in state["added_tokens"]:
        added["id"] = vocabulary[added["content"]]
    mapped = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)),
        **{
            name: token
            for name, token in tokenizer.special_tokens_map.items()
            if isinstance(token, str)
        },
    )
    other = copy.deepcopy(model)
    weights = other.get_input_embeddings().weight
    with torch.no_grad():
        for rows in {id(of): of for of in (weights, other.get_output_embeddings().weight)}.values():
            rows[order] = rows[: len(order)].clone()
    numbers, same = (
        probing.evaluate(*pair, functions=8, numbers=["bits"])
        for pair in ((model, tokenizer), (other, mapped))
    )
    assert same == pytest.approx(numbers, rel=1e-3)
