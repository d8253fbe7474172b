"""Toy language models with weights set by hand: one head copies the sub-token at offset 2, which the output needs.

Hidden states hold a sub-token, a position and what was copied, one-hot each. Of four heads in one layer, COPIER attends by
position alone and puts the sub-token that it sees into the output; the others attend to everything alike and put out 0.
`planted` attends by content instead, with one head of four among noise.
"""

from __future__ import annotations

import math
from string import ascii_lowercase, ascii_uppercase

import numpy as np
import torch
from support.models.byte_tokenizer import byte_tokenizer
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

BYTES = byte_tokenizer()
WORDS, PLACES, HEADS, COPIER = len(BYTES), 64, 4, 1
WIDTH = HEADS * WORDS
FOCUS, GAIN = 6.0, 5.0  # of the copier's attention, and of what it copied in the logits

_SUB_TOKEN, _PLACE, _COPIED = (
    slice(0, WORDS),
    WORDS + np.arange(PLACES),
    slice(WORDS + PLACES, 2 * WORDS + PLACES),
)
_OWN = slice(COPIER * WORDS, (COPIER + 1) * WORDS)  # what the copier puts out, among the heads


def _set(weight: torch.Tensor, rows, columns, value: float) -> None:
    weight[rows, columns] = value


@torch.no_grad()
def masked_copier() -> BertForMaskedLM:
    """Row i attends to i + 2: restores a mask where the text repeats itself after two sub-tokens."""
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        intermediate_size=4,
        max_position_embeddings=PLACES,
        hidden_act="linear",
        tie_word_embeddings=False,
    )
    model = BertForMaskedLM(config)
    for parameter in model.parameters():
        parameter.zero_()
    body, head = model.bert, model.cls.predictions
    (layer,) = body.encoder.layer
    body.embeddings.LayerNorm = layer.attention.output.LayerNorm = torch.nn.Identity()
    layer.output.LayerNorm = head.transform.LayerNorm = torch.nn.Identity()
    _set(body.embeddings.word_embeddings.weight, range(WORDS), range(WORDS), 1.0)
    _set(body.embeddings.position_embeddings.weight, range(PLACES), _PLACE, 1.0)
    own, attention = np.arange(WORDS) + _OWN.start, layer.attention.self
    _set(attention.query.weight, own[2:PLACES], _PLACE[:-2], FOCUS * math.sqrt(WORDS))
    _set(attention.key.weight, own[:PLACES], _PLACE, 1.0)
    _set(attention.value.weight, own, range(WORDS), 1.0)
    _set(layer.attention.output.dense.weight, np.arange(WORDS) + _COPIED.start, own, 1.0)
    _set(head.transform.dense.weight, range(WIDTH), range(WIDTH), 1.0)
    _set(head.decoder.weight, range(WORDS), np.arange(WORDS) + _COPIED.start, GAIN)
    return model.eval()


@torch.no_grad()
def next_copier() -> GPT2LMHeadModel:
    """Row i attends to i - 1: predicts the next sub-token as the one at offset 2 before it."""
    config = GPT2Config(
        vocab_size=WORDS,
        n_embd=WIDTH,
        n_layer=1,
        n_head=HEADS,
        n_positions=PLACES,
        n_inner=4,
        tie_word_embeddings=False,
    )
    model = GPT2LMHeadModel(config)
    for parameter in model.parameters():
        parameter.zero_()
    body = model.transformer
    (layer,) = body.h
    layer.ln_1 = layer.ln_2 = body.ln_f = torch.nn.Identity()
    _set(body.wte.weight, range(WORDS), range(WORDS), 1.0)
    _set(body.wpe.weight, range(PLACES), _PLACE, 1.0)
    own, attention = np.arange(WORDS) + _OWN.start, layer.attn
    _set(attention.c_attn.weight, _PLACE[1:], own[: PLACES - 1], FOCUS * math.sqrt(WORDS))
    _set(attention.c_attn.weight, _PLACE, WIDTH + own[:PLACES], 1.0)
    _set(attention.c_attn.weight, range(WORDS), 2 * WIDTH + own, 1.0)
    _set(attention.c_proj.weight, own, np.arange(WORDS) + _COPIED.start, 1.0)
    _set(model.lm_head.weight, range(WORDS), np.arange(WORDS) + _COPIED.start, GAIN)
    return model.eval()


CAPITALS, SMALL = (
    BYTES.convert_tokens_to_ids(list(letters)) for letters in (ascii_uppercase, ascii_lowercase)
)


@torch.no_grad()
def planted(
    causal: bool, copier: int, seed: int, noise: float = 0.1
) -> BertForMaskedLM | GPT2LMHeadModel:
    """Every row of the head `copier` attends to capital letters, wherever they are, and puts out the small ones.

    The four heads get random weights beside, with so many standard deviations, and all put into the output.
    """
    rng, own = torch.Generator().manual_seed(seed), np.arange(copier * WORDS, (copier + 1) * WORDS)
    if causal:
        model = next_copier()
        (layer,) = model.transformer.h
        weight, bias, out = (
            layer.attn.c_attn.weight,
            layer.attn.c_attn.bias,
            layer.attn.c_proj.weight,
        )
    else:
        model = masked_copier()
        (layer,) = model.bert.encoder.layer
        attention = layer.attention.self
        parts = attention.query, attention.key, attention.value
        weight, bias = (
            torch.cat([part.weight.T for part in parts], 1),
            torch.cat([part.bias for part in parts]),
        )
        out = layer.attention.output.dense.weight.T
    weight.copy_(noise * torch.randn(weight.shape, generator=rng))
    bias[own[0]] = FOCUS * math.sqrt(WORDS)  # what each row looks for
    weight[CAPITALS, WIDTH + own[0]] += 1
    weight[CAPITALS, 2 * WIDTH + own[SMALL]] += 1
    for head in range(HEADS):
        _set(out, head * WORDS + np.arange(WORDS), np.arange(WORDS) + _COPIED.start, 1.0)
    if not causal:
        for place, part in enumerate(parts):
            part.weight.copy_(weight[:, place * WIDTH : (place + 1) * WIDTH].T)
            part.bias.copy_(bias[place * WIDTH : (place + 1) * WIDTH])
    return model


def copied(ids: list[int], row: int, causal: bool) -> np.ndarray:
    """What the copier puts out in a row: the share of its attention on each sub-token (WORDS,), in plain Python."""
    target = row - 1 if causal else row + 2
    seen = range(row + 1) if causal else range(len(ids))
    weights = [math.exp(FOCUS) if place == target else 1.0 for place in seen]
    shares = np.zeros(WORDS)
    for place, weight in zip(seen, weights):
        shares[ids[place]] += weight / sum(weights)
    return shares


def log_probability(output: np.ndarray, truth: int) -> float:
    """Of a sub-token, where the copier puts out `output`."""
    return GAIN * output[truth] - math.log(sum(math.exp(GAIN * value) for value in output))
