"""The token in front of what a decoder reads, where its tokenizer puts none there."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from datasets import load_dataset
from support.models.byte_tokenizer import byte_tokenizer
from support.models.random_models import sizes
from tokenizers import processors
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

from probing import load, probe
from probing.evidence.verify import verify
from probing.models import subtokens
from probing.models.load import load as load_encoder
from probing.report.findings import read_findings

LONGEST = 400


def reading(front, **names):
    """A tokenizer of bytes that puts `front` before a text, with some tokens named otherwise."""
    tokenizer = byte_tokenizer()
    template = processors.TemplateProcessing(
        single=f"{front} $A".strip(), special_tokens=[("<s>", 0)]
    )
    tokenizer.backend_tokenizer.post_processor = template
    for name, token in names.items():
        setattr(tokenizer, name, token)
    return tokenizer


@pytest.fixture(scope="module")
def decoder():
    torch.manual_seed(0)
    size = len(byte_tokenizer())
    config = LlamaConfig(
        vocab_size=size, max_position_embeddings=LONGEST, initializer_range=0.3, **sizes()
    )
    return LlamaModel(config)


@pytest.mark.slow
def test_a_decoder_reads_after_a_token_as_with_a_tokenizer_that_puts_it_there(
    decoder, fewer_functions
):
    bare, fronted = (
        probe((decoder, reading(front)), fewer_functions, max_length=LONGEST)
        for front in ("", "<s>")
    )
    assert np.array_equal(bare.ledger.ranks, fronted.ledger.ranks)
    assert len(bare.ledger) > 100
    assert (bare.settings.begin, fronted.settings.begin) == (0, None)
    assert "|begin:0" in bare.signature
    assert "begin" not in fronted.signature
    assert (bare.functions, bare.skips) == (fronted.functions, fronted.skips)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names, begin",
    [
        ({"bos_token": None}, 1),  # the end of text, where there is no beginning
        ({"bos_token": None, "eos_token": None}, None),
        ({"bos_token": "<new>"}, None),  # which has no embedding
    ],
)
def test_what_stands_in_front(names, begin, decoder):
    tokenizer = reading("", **names)
    tokenizer.add_tokens([name for name in names.values() if name])
    assert load_encoder((decoder, tokenizer)).begin == begin


@pytest.mark.slow
def test_nothing_stands_in_front_of_an_encoder():
    config = BertConfig(
        vocab_size=len(byte_tokenizer()), max_position_embeddings=LONGEST, **sizes()
    )
    assert load_encoder((BertModel(config), reading(""))).begin is None


@pytest.mark.slow
def test_the_token_in_front_counts_as_a_sub_token_of_a_function(decoder, fewer_functions):
    codes = load_dataset("parquet", data_files=str(fewer_functions / "python/test.parquet"))[
        "train"
    ]["code"]
    # sub-tokens are bytes
    longest = max(length for length in map(len, map(str.encode, codes)) if length < LONGEST)
    fewer, all_functions = (
        probe((decoder, reading("")), fewer_functions, max_length=most).functions
        for most in (longest, longest + 1)
    )
    assert all_functions > fewer


@pytest.fixture(scope="module")
def before_and_now(decoder, fewer_functions, tmp_path_factory):
    """Results on both splits of a model that read with nothing in front, and that reads after a token."""
    folder = tmp_path_factory.mktemp("study")
    decoder.save_pretrained(folder / "model")
    reading("").save_pretrained(folder / "model")

    def both():
        for split in ("test", "validation"):
            given = {"max_length": LONGEST, "limit": 5, "output": folder / "results"}
            probe(folder / "model", fewer_functions, split=split, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subtokens, "begin_token", lambda tokenizer: None)
        both()
    both()
    return sorted((folder / "results").glob("*.json"))


@pytest.mark.slow
def test_results_of_before_are_not_accepted_and_have_their_own_name(before_and_now):
    assert len(before_and_now) == 4
    begins = set()
    for file in before_and_now:
        begin = json.loads(file.read_text())["settings"].get("begin")
        assert verify(file).accepted == (begin == 0)
        begins.add(begin)
    assert begins == {None, 0}
    (findings,) = read_findings(before_and_now)
    assert sorted(model.name for model in findings.models) == [
        "model, begin 0",
        "model, begin None",
    ]


@pytest.mark.slow
def test_another_token_than_that_of_the_model_is_not_accepted(before_and_now):
    results = [load(file) for file in before_and_now]
    (honest, *_) = (result for result in results if result.settings.begin is not None)
    ledger = honest.ledger
    ledger.settings["settings"]["begin"] = 1
    folder = before_and_now[0].parents[1]
    lying = type(honest).from_ledger(ledger, honest.data_folder).of_model_at(folder / "model")
    checks = verify(lying.save(folder / "lying")).checks
    (said,) = [check for check in checks if not check.passed]
    assert said.name == "settings"
    assert "1" in str(said)
    assert "0" in str(said)
