"""The self-check in each precision: a fault of our attention function is seen whatever the size of scores, and a right
one passes whatever the number of layers."""

import pytest
import torch
from support.models.random_models import sizes
from transformers import AutoTokenizer, BertConfig, BertModel, Gemma2Config, Gemma2Model

from probing.models import capture
from probing.models.encoder import Encoder
from probing.models.loaded import Loaded
from probing.models.selfcheck import self_check

pytestmark = pytest.mark.slow

PRECISIONS = ("float32", "bfloat16", "float16")
WINDOW = 8


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    return AutoTokenizer.from_pretrained(tiny_model)


def encoder_of(kind, config, score, precision, tokenizer, layers=2):
    """An encoder whose attention has scores of at most `score`, and has it in some layer."""
    torch.manual_seed(0)
    config = config(vocab_size=len(tokenizer), **sizes(heads=2, hidden=64, layers=layers))
    model = kind._from_config(config, attn_implementation="eager").eval()
    encoder = Encoder(Loaded(model, tokenizer, "it", "", precision))
    queries = [
        part
        for name, part in model.named_modules()
        if name.rpartition(".")[2] in ("q_proj", "query")
    ]
    with torch.no_grad():
        for query in queries:
            query.weight *= score / largest_score(encoder)
    model.to(getattr(torch, precision))
    return encoder


def largest_score(encoder):
    """Of the longer text of the self-check."""
    scores, whole = [], capture.probabilities

    def measured(query, key, *rows, scaling, **parts):
        scores.append(scaling * (query[:1] @ key.transpose(2, 3)).abs().max().item())
        return whole(query, key, *rows, scaling=scaling, **parts)

    texts, _ = encoder.examined_texts(24)
    with (
        pytest.MonkeyPatch.context() as patch,
        capture.listen(lambda rows: rows(slice(None), None)),
    ):
        patch.setattr(capture, "probabilities", measured)
        encoder.run(encoder.inputs(texts[1:2]), capture.ATTENTION_NAME)
    return max(scores)


def bert(**options):
    return BertConfig(**options)


def gemma(**options):
    return Gemma2Config(
        **options,
        num_key_value_heads=2,
        head_dim=32,
        sliding_window=WINDOW,
        attn_logit_softcapping=2.0,
    )


def another_scale(whole):
    return lambda *rows, scaling, **parts: whole(*rows, scaling=1.02 * scaling, **parts)


def no_mask(whole):
    return lambda *rows, **parts: whole(*rows, **{**parts, "mask": None, "causal": False})


def no_softcap(whole):
    return lambda *rows, **parts: whole(*rows, **{**parts, "softcap": None})


def another_window(whole):
    """One sub-token more is seen."""

    def changed(*rows, mask, **parts):
        return whole(*rows, mask=mask | mask.roll(-1, dims=3).tril(), **parts)

    return changed


def keys_of_another_layer(whole):
    heard = []

    def changed(query, key, *rows, **parts):
        heard.append(key)
        return whole(query, heard[max(0, len(heard) - 2)], *rows, **parts)

    return changed


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("score", [0.3, 3, 50])
@pytest.mark.parametrize(
    "fault, kind, config",
    [
        (another_scale, BertModel, bert),
        (no_mask, BertModel, bert),
        (keys_of_another_layer, BertModel, bert),
        (no_softcap, Gemma2Model, gemma),
        (another_window, Gemma2Model, gemma),
    ],
)
def test_a_fault_is_seen(fault, kind, config, score, precision, tokenizer, monkeypatch):
    encoder = encoder_of(kind, config, score, precision, tokenizer)
    monkeypatch.setattr(capture, "probabilities", fault(capture.probabilities))
    assert self_check(encoder).path == "eager"
    assert "captured rows are the maps" in encoder.why


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("score", [0.3, 50])
def test_a_deep_model_passes(score, precision, tokenizer):
    encoder = encoder_of(BertModel, bert, score, precision, tokenizer, layers=32)
    assert self_check(encoder).path == "captured", encoder.why
