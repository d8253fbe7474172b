"""The token in front of what a decoder reads, where its tokenizer puts none there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from datasets import load_dataset
from support.models.byte_tokenizer import byte_tokenizer
from tokenizers import processors
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

from probing import probe

LONGEST = 400
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


def reading(front, **names):
    """A tokenizer of bytes that puts `front` before a text, with some tokens named otherwise."""
    tokenizer = byte_tokenizer()
    template = processors.TemplateProcessing(single=f"{front} $A".strip(), special_tokens=[("<s>", 0)])
    tokenizer.backend_tokenizer.post_processor = template
    for name, token in names.items():
        setattr(tokenizer, name, token)
    return tokenizer


@pytest.fixture(scope="module")
def decoder():
    torch.manual_seed(0)
    size = len(byte_tokenizer())
    config = LlamaConfig(vocab_size=size, max_position_embeddings=LONGEST, initializer_range=0.3, **SIZES)
    return LlamaModel(config)


def test_a_decoder_reads_after_a_token_as_with_a_tokenizer_that_puts_it_there(decoder, dataset_folder):
    bare, fronted = (probe((decoder, reading(front)), dataset_folder, max_length=LONGEST) for front in ("", "<s>"))
    assert np.array_equal(bare.ledger.ranks, fronted.ledger.ranks) and len(bare.ledger) > 100
    assert (bare.settings.begin, fronted.settings.begin) == (0, None)
    assert "|begin:0" in bare.signature and "begin" not in fronted.signature
    assert (bare.functions, bare.skips) == (fronted.functions, fronted.skips)


def test_without_a_beginning_of_text_the_end_of_text_stands_in_front(decoder, dataset_folder):
    result = probe((decoder, reading("", bos_token=None)), dataset_folder, max_length=LONGEST)
    assert result.settings.begin == 1


def test_without_either_nothing_stands_in_front(decoder, dataset_folder):
    tokenizer = reading("", bos_token=None, eos_token=None)
    result = probe((decoder, tokenizer), dataset_folder, max_length=LONGEST)
    assert result.settings.begin is None


def test_a_token_without_an_embedding_does_not_stand_in_front(decoder, dataset_folder):
    tokenizer = reading("")
    tokenizer.add_special_tokens({"bos_token": "<new>"})
    assert tokenizer.bos_token_id == decoder.config.vocab_size
    assert probe((decoder, tokenizer), dataset_folder, max_length=LONGEST).settings.begin is None


def test_an_encoder_reads_what_its_tokenizer_gives(dataset_folder):
    config = BertConfig(vocab_size=len(byte_tokenizer()), max_position_embeddings=LONGEST, **SIZES)
    result = probe((BertModel(config), reading("")), dataset_folder, max_length=LONGEST)
    assert result.settings.begin is None and "begin" not in result.signature


def test_functions_that_must_fit_a_decoder_fit_it_with_the_token_in_front(decoder, dataset_folder, tmp_path):
    decoder.save_pretrained(tmp_path)
    reading("").save_pretrained(tmp_path)
    codes = load_dataset("parquet", data_files=str(dataset_folder / "python/test.parquet"))["train"]["code"]
    longest = max(length for length in map(len, map(str.encode, codes)) if length < LONGEST)  # sub-tokens are bytes
    read = []
    for most in (longest, longest + 1):
        own = probe(str(tmp_path), dataset_folder, max_length=most)
        other = probe("tiny-code-lm", dataset_folder, also_fits=[str(tmp_path)], max_length=most)
        assert np.array_equal(np.unique(other.ledger.function), np.unique(own.ledger.function))
        read.append(own.functions)
    assert read[1] > read[0]
