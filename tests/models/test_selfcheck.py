"""What the self-check catches when a model is loaded."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer, T5Config, T5EncoderModel

from codesyntax_dataset.errors import ModelError
from probing.models import capture
from probing.models.encoder import Encoder
from probing.models.load import load

pytestmark = pytest.mark.slow


def losing(dropped):
    """`capture.probabilities` without the mask, or without T5's position bias."""
    real = capture.probabilities

    def probabilities(module, query, key, mask, positions, scaling, **options):
        if dropped == "mask":
            return real(module, query, key, None, positions, scaling, **options)
        return real(module, query, key, mask, positions, scaling, **{**options, dropped: None})

    return probabilities


def t5(tokenizer):
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = T5Config(**sizes, vocab_size=30522, initializer_factor=1.0)
    return T5EncoderModel(config).eval(), AutoTokenizer.from_pretrained(tokenizer)


@pytest.mark.parametrize("dropped", ["mask", "position_bias"])
def test_a_capture_that_loses_something_is_not_used(dropped, monkeypatch, tiny_model):
    """The model is probed by its eager maps."""
    model = str(tiny_model) if dropped == "mask" else t5(tiny_model)
    assert load(model).path == "captured"
    monkeypatch.setattr(capture, "probabilities", losing(dropped))
    encoder = load(model)
    assert encoder.path == "eager"
    assert encoder.why


def test_padding_that_is_attended_is_refused(monkeypatch, tiny_model):
    real = Encoder.inputs

    def inputs(self, ids):
        tensors = real(self, ids)
        return {**tensors, "attention_mask": torch.ones_like(tensors["attention_mask"])}

    monkeypatch.setattr(Encoder, "inputs", inputs)
    with pytest.raises(ModelError, match="depends on the batch"):
        load(str(tiny_model))
