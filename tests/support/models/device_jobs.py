"""Tiny models of five families, and all that runs on a device: capture and ranking, masking, silencing heads.

A model is made and self-checked on the CPU; the jobs run where its weights are then put.
"""

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
from tqdm import tqdm

from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, DIRECTIONS, RULES
from probing.instruments.attention.align import align
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ranking import BatchRanker, FirstChoices, RankBounds
from probing.instruments.attention.runner import Runner
from probing.instruments.masking.fill import Copy, Filler
from probing.instruments.silencing.silence import Pass, Predictor
from probing.models.encoder import Encoder, LanguageModel
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

MASKED = {
    "bert": _SMALL,
    # probed by its eager maps
    "deberta-v2": {
        **_SMALL,
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
    },
}
DECODERS = {
    "gpt2": {**_SMALL, "n_embd": 32, "n_head": HEADS, "n_positions": 300},
    "gpt_oss": {
        **_SMALL,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "sliding_window": 8,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
}
ENCODERS = {
    "t5": {
        **_SMALL,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_heads": HEADS,
        "decoder_start_token_id": 0,
    },
}


class Prepared(NamedTuple):
    """A model of a family in the forms in which it runs; None for one that the family has not."""

    encoder: Encoder
    masked: MaskedModel | None
    language: LanguageModel | None

    def put(self, place: Callable[[torch.nn.Module], None], device: torch.device) -> None:
        """Put the weights onto a device with `place`, and let all jobs run there."""
        place(self.encoder.model if self.masked is None and self.language is None else self._whole)
        for one in (self.encoder, self.masked, self.language):
            if one is not None:
                one.device = device

    @property
    def _whole(self) -> torch.nn.Module:
        return self.masked.model if self.masked is not None else self.language.scoring.model


def prepare(family: str, layers: int = 2) -> Prepared:
    """A model of a family with random weights, checked on the CPU."""
    torch.manual_seed(0)
    settings = {**MASKED, **DECODERS, **ENCODERS}[family]
    depth = dict.fromkeys(
        ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "num_decoder_layers"), layers
    )
    config = transformers.CONFIG_MAPPING[family](**{**settings, **depth})
    kinds = (
        transformers.AutoModelForMaskedLM,
        transformers.AutoModelForCausalLM,
        transformers.AutoModel,
    )
    kind = kinds[0 if family in MASKED else 1 if family in DECODERS else 2]
    # one of the ways of transformers to compute experts that neither asks a driver nor waits
    experts = {"experts_implementation": "batched_mm"} if "num_local_experts" in settings else {}
    model = kind.from_config(config, attn_implementation="eager", **experts).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    loaded = Loaded(model, BYTES, family, "")
    encoder = self_check(Encoder(loaded))
    masked = MaskedModel(loaded).examine() if family in MASKED else None
    if family in ENCODERS or encoder.why:
        return Prepared(encoder, masked, None)
    language = LanguageModel(loaded, family in MASKED)
    self_check(language)
    return Prepared(encoder, masked, language.examine())


def jobs(prepared: Prepared) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What runs on a device, by name. Each gives numbers of the host."""
    encoder, masked, language = prepared
    functions = encoded(encoder)
    chance = np.random.default_rng(0)
    picked = np.stack(
        [chance.integers(0, most, (len(RULES), 1)) for most in (encoder.layers, encoder.heads)],
        axis=-1,
    )
    listeners = {
        "ranks": BatchRanker,
        "bounds": partial(RankBounds, slack=1e-5),
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
    if language is not None:
        heads = [(), ((0, 1),), ((language.layers - 1, HEADS - 1),)]
        passes = [
            [Pass(number, *one, head) for head in heads]
            for number, one in enumerate(zip(ids, places))
        ]
        yield "means of heads", partial(means, language, ids)
        yield "silencing", lambda: Predictor(language).find(passes, tqdm(disable=True))


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
        functions.append(
            EncodedFunction(index, ids, alignment, edges, shuffled_by=3 if index == 2 else None)
        )
    return sorted(functions, key=lambda function: -len(function.ids))


def means(language: LanguageModel, ids: list[np.ndarray]) -> list[torch.Tensor]:
    language.learn_means(ids)
    return language.means
