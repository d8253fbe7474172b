"""Tiny models of two families, and all that runs on a device: capture and ranking, masking, silencing heads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from support.labels.edge_tables import edge_table
from support.models.byte_tokenizer import byte_tokenizer
from support.models.random_models import shaken
from tqdm import tqdm

from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, DIRECTIONS, RULES
from probing.instruments.attention.align import align
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ranking import BatchRanker, FirstChoices
from probing.instruments.attention.runner import Runner
from probing.instruments.masking.fill import Copy, Filler
from probing.instruments.silencing.silence import Predictor
from probing.models.encoder import Encoder
from probing.models.language_model import LanguageModel
from probing.models.loaded import Loaded
from probing.models.masked import MaskedModel
from probing.models.selfcheck import self_check

BYTES = byte_tokenizer()
CODES = (
    "def largest(values, default=None):\n    best = default\n    for value in values:\n        best = value\n",
    "public int size() { return this.items == null ? 0 : this.items.length; }",
    "def f(x):\n    return -x\n",
    "def g(x):\n    return +x\n",
)
HEADS = 4

_SMALL = {
    "vocab_size": len(BYTES),
    "hidden_size": 32,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "max_position_embeddings": 300,
    "pad_token_id": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
}

FAMILIES: dict[str, tuple[Any, dict[str, int]]] = {
    "bert": (transformers.AutoModelForMaskedLM, {}),
    "gpt2": (
        transformers.AutoModelForCausalLM,
        {"n_embd": 32, "n_head": HEADS, "n_positions": 300},
    ),
}
"""Architectures with the class of their head, and their sizes beside the common ones."""


class Prepared(NamedTuple):
    """A model of a family in the forms in which it runs; `masked` is None for a decoder."""

    encoder: Encoder
    masked: MaskedModel | None
    language: LanguageModel


def prepare(family: str, layers: int = 2) -> Prepared:
    """A model of a family with random weights, checked."""
    torch.manual_seed(0)
    kind, sizes = FAMILIES[family]
    depth = dict.fromkeys(("num_hidden_layers", "n_layer"), layers)
    config = transformers.CONFIG_MAPPING[family](**{**_SMALL, **sizes, **depth})
    model = shaken(kind.from_config(config, attn_implementation="eager"))
    loaded = Loaded(model, BYTES, family, "")
    encoder = self_check(Encoder(loaded))
    masked = MaskedModel(loaded).examine() if family == "bert" else None
    language = LanguageModel(loaded, family == "bert")
    self_check(language)
    return Prepared(encoder, masked, language.examine())


def jobs(prepared: Prepared) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What runs on a device, by name."""
    encoder, masked, language = prepared
    functions = encoded(encoder)
    chance = np.random.default_rng(0)
    picked = chance.integers(0, 2, (len(RULES), 1, 2))
    listeners = {
        "ranks": BatchRanker,
        "first choices": partial(FirstChoices, picked=picked),
    }
    for direction in [DEPENDENT_TO_HEAD] if encoder.causal else DIRECTIONS:
        for name, listener in listeners.items():
            runner = Runner(encoder, direction, 200)
            yield (
                f"{name}, {direction}",
                partial(runner.run, functions, tqdm(disable=True), listener),
            )
    ids = [function.ids for function in functions]
    places = [np.arange(2, len(one) - 1, 5) for one in ids]
    if masked is not None:
        yield (
            "masking",
            partial(Filler(masked, 200).fill, [[Copy(one, at) for one, at in zip(ids, places)]]),
        )
    heads = [(), ((0, 1),), ((language.layers - 1, HEADS - 1),)]
    yield "means of heads", partial(language.stand_ins, ids)
    stand_ins = language.stand_ins(ids)
    texts = [Copy(one, np.arange(1, len(one))) for one in ids]
    yield "silencing", partial(Predictor(language, stand_ins).find, texts, heads)


def encoded(encoder: Encoder) -> list[EncodedFunction]:
    """The functions with regular expressions' tokens and thirty random edges each, longest first."""
    chance = np.random.default_rng(0)
    functions = []
    for index, (code, (ids, offsets, special)) in enumerate(zip(CODES, encoder.encode(CODES))):
        tokens = np.array([match.span() for match in re.finditer(r"\w+|[^\w\s]", code)])
        head, first = chance.integers(0, len(tokens), (2, 30))
        last = np.minimum(first + chance.integers(0, 4, 30), len(tokens) - 1)
        alignment = align(code, tokens[:, 0], tokens[:, 1], offsets, special)
        edges = edge_table(len(tokens), list(zip(head, first, last)), index)
        functions.append(EncodedFunction(index, ids, alignment, edges))
    return sorted(functions, key=lambda function: -len(function.ids))
