"""One checkpoint has one identity, however it is loaded."""

from __future__ import annotations

import shutil

import pytest
import torch
from support.models.random_models import sizes
from transformers import (
    CONFIG_MAPPING,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from probing import probe
from probing.evidence.verify import verify
from probing.models.identity import digest_of
from probing.models.load import load, load_language_model, load_restoring
from probing.models.location import TINY, embedded_model
from probing.runs.settings import short

pytestmark = pytest.mark.slow

FAMILIES = {
    "bert": (sizes(heads=4), AutoModelForMaskedLM),
    "t5": (
        {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
        AutoModelForSeq2SeqLM,
    ),
}
"""Family -> its configuration, and the class with the head of its pre-training, which its checkpoints have."""


def saved(family, folder, seed=0):
    """A checkpoint with the head of its pre-training, and no pooler."""
    sizes, pretraining = FAMILIES[family]
    tokenizer = AutoTokenizer.from_pretrained(embedded_model(TINY))
    torch.manual_seed(seed)
    made = pretraining.from_config(
        CONFIG_MAPPING[family](**sizes, vocab_size=len(tokenizer), pad_token_id=0)
    )
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def ways(family, folder):
    """Five ways to load a checkpoint -> the revision of each."""
    pretraining, revisions = FAMILIES[family][1], {"a folder": load(str(folder)).revision}
    for name, auto, size in (("shards", pretraining, "20KB"), ("no head", AutoModel, "1GB")):
        ignored = shutil.ignore_patterns("*.safetensors")
        other = shutil.copytree(folder, folder.parent / name, ignore=ignored)
        auto.from_pretrained(folder).save_pretrained(other, max_shard_size=size)
        assert (len(list(other.glob("*.safetensors"))) > 2) == (name == "shards")
        revisions[name] = load(str(other)).revision
    for auto in (AutoModel, AutoModelForSequenceClassification):
        pair = auto.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        revisions[f"a pair of {auto.__name__}"] = load(pair).revision
    return revisions


@pytest.mark.parametrize("family", FAMILIES)
def test_one_digest(family, tmp_path):
    """Where a checkpoint has no pooler, one is drawn anew for each pair."""
    folder = saved(family, tmp_path / "model")
    found = ways(family, folder)
    assert len(found) == 5 and len(set(found.values())) == 1, found
    assert load(str(saved(family, tmp_path / "other", seed=1))).revision not in found.values()


def test_a_head_is_a_further_part_of_the_identity(tmp_path):
    """Of what restores masks, or predicts with silenced heads; for attention the encoder is all."""
    folder = saved("bert", tmp_path / "model")
    model = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder, masked, silenced = (
        load(str(folder)),
        load_restoring(str(folder)),
        load_language_model(str(folder), max_length=99),
    )
    assert masked.revision == load_restoring((model, tokenizer)).revision == silenced.with_head
    assert masked.revision.startswith(f"{encoder.revision}+")
    assert silenced.revision == encoder.revision
    with torch.no_grad():
        model.cls.predictions.bias[7] += 1
    other = load_restoring((model, tokenizer)).revision
    assert other != masked.revision
    assert other.partition("+")[0] == encoder.revision
    assert short(other) == f"{other[:12]}+{other[65:77]}"


def test_what_attention_depends_on_is_in_the_identity(tmp_path):
    """Every weight of the body, by its name; the configuration; the tokenizer. Labels of classes are not."""
    folder = saved("bert", tmp_path / "model")
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    whole = digest_of(model, tokenizer)
    for name, weight in model.named_parameters():
        before = weight.detach().clone()
        with torch.no_grad():
            weight.view(-1)[0] += 1
            assert (digest_of(model, tokenizer) == whole) == name.startswith("pooler."), name
            weight.copy_(before)
    # which tokenizers remember
    tokenizer(["def f", "def"], padding=True, truncation=True, max_length=20)
    assert digest_of(model, tokenizer) == whole
    query, key = (
        model.encoder.layer[0].attention.self.query,
        model.encoder.layer[0].attention.self.key,
    )
    query.weight, key.weight = key.weight, query.weight
    assert digest_of(model, tokenizer) != whole
    query.weight, key.weight = key.weight, query.weight
    model.config.num_labels = 7
    assert digest_of(model, tokenizer) == whole
    model.config.num_attention_heads = 2
    assert digest_of(model, tokenizer) != whole
    model.config.num_attention_heads = 4
    tokenizer.add_tokens(["entirely_new"])
    assert digest_of(model, tokenizer) != whole


def test_a_result_of_a_pair_is_verified_with_the_folder(dataset_folder, tmp_path):
    folder = saved("bert", tmp_path / "model")
    pair = (
        AutoModelForTokenClassification.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    result = probe(pair, dataset_folder, limit=6, output=tmp_path / "results")
    (file,) = (tmp_path / "results").glob("*.json")
    assert verify(file, model=folder, data=dataset_folder).accepted
    assert result.settings.revision == load(str(folder)).revision
