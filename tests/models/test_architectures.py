"""Every family of models comes out right, is probed by its eager maps, or is refused; none is silently wrong.

Tiny models with random weights, compared with the maps that the model itself reports (never with our self-check), and
their ranks with those that the metric computes from these maps.
"""

from __future__ import annotations

import pickle
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from support.labels.edge_tables import edge_table
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from tqdm import tqdm
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedTokenizerFast

from codesyntax_dataset.errors import ModelError
from codesyntax_metric.topk_uas import (
    DEPENDENT_TO_HEAD,
    HEAD_TO_DEPENDENT,
    WORST_RANK,
    rank_attention,
)
from probing.instruments.attention.align import align
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.probe import probe
from probing.instruments.attention.runner import Runner
from probing.models import capture
from probing.models.encoder import Encoder
from probing.models.load import doctor
from probing.models.loaded import FailedCheck, Loaded
from probing.models.selfcheck import examine_lengths, self_check

pytestmark = pytest.mark.slow

POSITIONS = 256
WINDOW = 8  # of models with sliding windows, far shorter than the functions
FUNCTIONS = (
    "def largest(values, default=None):\n    best = default\n    for value in values:\n"
    "        if best is None or value > best:\n            best = value\n    return best\n",
    "public int size() { return this.items == null ? 0 : this.items.length; }",
    "def f(x):\n    return -x  # größer\n",
)

_SMALL = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GROUPED = {**_SMALL, "num_key_value_heads": 2}
_WINDOWED = {**_GROUPED, "head_dim": 8, "sliding_window": WINDOW}
_EXPERTS = {
    **_GROUPED,
    "head_dim": 8,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
_HALVES = {
    "vocab_size": 400,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_T5 = {
    "vocab_size": 400,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "num_heads": 4,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
}
_GPT2 = {"vocab_size": 400, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": POSITIONS}
_LATENT = {
    **_EXPERTS,
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "head_dim": 4,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 4,
    "v_head_dim": 8,
}


class Family(NamedTuple):
    """A row of the table.

    `longest`: sub-tokens that a text may have, None without a limit of its own; `hard`: whether the model itself fails
    beyond that; `scale`: what the random weights are multiplied by, so that attention is not uniform; `why`: refused.
    """

    model: str
    path: str
    settings: dict[str, Any]
    longest: int | None = POSITIONS
    hard: bool = False
    causal: bool = False
    scale: float = 8.0
    why: str = ""


def _rows(path, models, settings, **others):
    return [Family(model, path, settings, **others) for model in models.split()]


FAMILIES = [
    # encoders
    *_rows("captured", "bert albert", _SMALL, hard=True),  # of albert, layers share their weights
    # RoBERTa's children count positions from behind the padding index, here 0
    Family("roberta", "captured", _SMALL, POSITIONS - 1, hard=True),
    Family(
        "modernbert",
        "captured",
        {**_GROUPED, "local_attention": WINDOW, "global_attn_every_n_layers": 2},
    ),
    Family("esm", "captured", {**_SMALL, "position_embedding_type": "rotary", "mask_token_id": 3}),
    Family(
        "distilbert",
        "captured",
        {
            "vocab_size": 400,
            "dim": 32,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 48,
            "max_position_embeddings": POSITIONS,
        },
        hard=True,
    ),
    Family(
        "deberta-v2",
        "eager",
        {
            **_SMALL,
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
        },
    ),
    Family("mpnet", "eager", {**_SMALL, "pad_token_id": 1}, POSITIONS - 2, True),
    Family(
        "xlnet",
        "eager",
        {"vocab_size": 400, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
        None,
        scale=30.0,
    ),
    # the encoders of encoder-decoders
    Family("bart", "captured", _HALVES, hard=True),
    *_rows("captured", "t5 umt5", _T5, longest=None, scale=2.0),
    Family("bigbird_pegasus", "eager", _HALVES, hard=True),
    Family("fsmt", "eager", {**_HALVES, "src_vocab_size": 400, "tgt_vocab_size": 400}),
    # decoders
    *_rows("captured", "gpt2 gpt_bigcode", _GPT2, hard=True, causal=True),
    *_rows("captured", "llama phi3 granite", _GROUPED, causal=True),
    *_rows("captured", "mistral gemma3_text", _WINDOWED, causal=True),
    Family(
        "qwen2",
        "captured",
        {**_WINDOWED, "use_sliding_window": True, "max_window_layers": 1},
        causal=True,
    ),
    Family(
        "gemma2", "captured", {**_WINDOWED, "attn_logit_softcapping": 1.0}, causal=True, scale=16.0
    ),
    Family("mixtral", "captured", _EXPERTS, causal=True),
    Family("gpt_oss", "captured", {**_EXPERTS, "sliding_window": WINDOW}, causal=True),
    # its maps leave out what goes to its sinks
    Family("granite_swa", "eager", _WINDOWED, causal=True),
    # with layers that have no attention, which are not counted
    Family(
        "lfm2", "captured", {**_GROUPED, "layer_types": ["conv", "full_attention"]}, causal=True
    ),
    Family(
        "qwen3_next",
        "captured",
        {
            **_EXPERTS,
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
        },
        causal=True,
    ),
    Family("deepseek_v3", "captured", _LATENT, causal=True),
    Family("gptj", "eager", {**_GPT2, "rotary_dim": 4}, hard=True, causal=True),
    Family(
        "gpt_neo",
        "eager",
        {
            **_SMALL,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": WINDOW,
        },
        hard=True,
        causal=True,
        scale=4.0,
    ),
    Family(
        "bloom",
        "eager",
        {"vocab_size": 400, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        None,
        causal=True,
    ),
    # refused
    Family("longformer", "refused", {**_SMALL, "attention_window": 4}, why="not between all pairs"),
    Family("convbert", "refused", _SMALL, why="depends on the batch"),
    Family(
        "mamba",
        "refused",
        {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2},
        why="not between all pairs",
    ),
    Family("bros", "refused", _SMALL, why="does not run on sub-tokens alone"),
    Family("clip", "refused", {}, why="does not run on sub-tokens alone"),
]
"""One family of each kind: what is particular to others is their code in transformers, which no change of ours touches."""


@pytest.fixture(scope="module")
def tokenizer():
    """A byte-level tokenizer like that of RoBERTa, trained on next to nothing."""
    pipeline = Tokenizer(models.BPE())
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pipeline.decoder = decoders.ByteLevel()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(special.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    pipeline.train_from_iterator(FUNCTIONS * 2, trainer)
    pipeline.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=pipeline, **special)


def build(family):
    if family.model not in CONFIG_MAPPING:
        pytest.skip(f"this transformers does not know {family.model}")
    torch.manual_seed(0)
    config = CONFIG_MAPPING[family.model](**family.settings)
    model = AutoModel.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(family.scale)
            else:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


def attributes(model):
    """What each part of a model has: the objects that are its parts, buffers and hooks, and its own attributes."""
    held = "_modules", "_buffers", "_forward_hooks"
    return {
        name: [
            sorted(vars(part)),
            *({key: id(of) for key, of in vars(part)[kind].items()} for kind in held),
        ]
        for name, part in model.named_modules()
    }


def encode(encoder):
    """The functions with regular expressions' tokens and thirty random edges each."""
    chance = np.random.default_rng(0)
    functions = []
    for index, (text, (ids, offsets, special)) in enumerate(
        zip(FUNCTIONS, encoder.encode(FUNCTIONS))
    ):
        tokens = np.array([match.span() for match in re.finditer(r"\w+|[^\w\s]", text)])
        head = chance.integers(0, len(tokens), 30)
        first = chance.integers(0, len(tokens), 30)
        last = np.minimum(first + chance.integers(0, 4, 30), len(tokens) - 1)
        alignment = align(text, tokens[:, 0], tokens[:, 1], offsets, special)
        edges = edge_table(len(tokens), list(zip(head, first, last)), index)
        functions.append(EncodedFunction(index, ids, alignment, edges))
    return functions


def word_level(encoder, index, maps):
    """The attention between one function's tokens (layers, heads, T, T): sums over columns, means over rows."""
    text = FUNCTIONS[index]
    _, offsets, special = next(encoder.encode([text]))
    pieces = []
    for match in re.finditer(r"\w+|[^\w\s]", text):
        inside = (offsets[:, 0] < match.end()) & (offsets[:, 1] > match.start()) & ~special
        pieces.append(np.flatnonzero(inside))
    attention = np.stack([layer[index].double().numpy() for layer in maps])  # (L, H, S, S)
    columns = np.stack([attention[..., piece].sum(axis=-1) for piece in pieces], axis=-1)
    return np.stack([columns[..., piece, :].mean(axis=-2) for piece in pieces], axis=-2)


def assert_ranked(encoder, functions, maps):
    """The ranks of functions are those that the metric computes from `maps`, of the functions in this order."""
    direction = DEPENDENT_TO_HEAD if encoder.causal else HEAD_TO_DEPENDENT
    ranks = Runner(encoder, direction, None).run(functions, tqdm(disable=True))
    expected = []
    for place, function in enumerate(functions):
        edges = [
            ("", *edge)
            for edge in zip(function.edges.head, function.edges.first, function.edges.last)
        ]
        own = [layer[place : place + 1].expand(len(FUNCTIONS), -1, -1, -1) for layer in maps]
        expected.append(rank_attention(word_level(encoder, function.index, own), edges, direction))
    expected = np.concatenate(expected, axis=1)
    assert ranks.shape == expected.shape
    # weights that are all but equal may change places when rounded otherwise
    assert (np.abs(ranks.astype(int) - expected) > 1).mean() <= 0.001
    assert (ranks != expected).mean() <= 0.01
    assert (ranks < WORST_RANK).mean() > 0.9


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model)
def test_family(family, tokenizer):
    model = build(family)
    if family.path == "refused":
        with pytest.raises(ModelError, match=family.why):
            self_check(Encoder(Loaded(model, tokenizer, family.model, "")))
        return
    before = attributes(model)
    encoder = self_check(Encoder(Loaded(model, tokenizer, family.model, "")))
    assert attributes(model) == before
    assert pickle.dumps(model)
    assert (encoder.path, encoder.causal) == (family.path, family.causal), encoder.why
    # beyond its window, if it says that it has one
    longest = 72 if {"local_attention", "sliding_window"} & family.settings.keys() else 24
    assert any(f"up to {longest} sub-tokens" in check.measured for check in encoder.checks)
    functions = encode(encoder)
    functions.sort(key=lambda function: -len(function.ids))
    inputs = encoder.inputs([function.ids for function in functions])
    text = inputs["attention_mask"].bool()
    assert not text.all()
    with torch.no_grad():
        maps = encoder.model(**inputs, output_attentions=True).attentions
    assert (encoder.layers, encoder.heads) == (len(maps), maps[0].shape[1])

    # if every sub-token attended to all others alike, a comparison would show little
    for layer in maps:
        row = layer[0, :, len(functions[0].ids) - 1]
        assert row.max(dim=-1).values.mean() > 1.5 / len(functions[0].ids)

    if family.path == "captured":
        captured = []
        with capture.listen(lambda rows: captured.append(rows(slice(None), None))):
            encoder.run(inputs, capture.ATTENTION_NAME)
        assert len(captured) == len(maps)
        for ours, theirs in zip(captured, maps):
            assert (ours - theirs).abs()[text[:, None].expand(ours.shape[:3])].max() <= 1e-5

    assert_ranked(encoder, functions, maps)
    assert encoder.longest == (family.longest or 511)
    examine_lengths(encoder, np.resize(functions[0].ids, encoder.longest), functions[-1].ids)
    run(encoder, encoder.longest)
    if family.hard:
        with pytest.raises((IndexError, RuntimeError)):
            run(encoder, encoder.longest + 1)
    else:
        run(encoder, encoder.longest + 1)


def test_scaled_positions_of_a_model_in_training_stay_as_they_are(tokenizer):
    """longrope sets its frequencies by the length of each text, and a long text sets them for all that follow."""
    factors = {"long_factor": [4.0] * 4, "short_factor": [1.0] * 4}
    (llama,) = (family for family in FAMILIES if family.model == "llama")
    model = build(
        llama._replace(
            settings=llama.settings
            | {"rope_parameters": {"rope_type": "longrope", **_SCALED, **factors}}
        )
    )
    before = attributes(model)
    encoder = Encoder(Loaded(model, tokenizer, "llama", ""))
    encoder.run(encoder.inputs([np.arange(5, 5 + 3 * WINDOW)]), "eager", output_attentions=True)
    assert attributes(model) == before
    model.train()(input_ids=torch.arange(5, 15)[None])[0].sum().backward()


_LONG = 40 * WINDOW
_SCALED = {"rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": WINDOW}


@pytest.mark.parametrize(
    "name, settings",
    [
        *((name, {}) for name in ("mistral", "gemma2", "gpt_oss")),
        ("llama", {"rope_parameters": {"rope_type": "yarn", **_SCALED}}),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", **_SCALED}}),
    ],
    ids=lambda value: (
        value
        if isinstance(value, str)
        else value.get("rope_parameters", {}).get("rope_type", "window")
    ),
)
def test_rows_of_long_texts_in_blocks_are_those_of_the_maps(name, settings, tokenizer, monkeypatch):
    """Far beyond the window, and the positions before they are scaled; also where our own code computes the output."""
    family = next(family for family in FAMILIES if family.model == name)
    family = family._replace(
        settings={**family.settings, "max_position_embeddings": _LONG, **settings}
    )
    monkeypatch.setattr(
        capture, "_MOST_WEIGHTS", 3 * family.settings["num_attention_heads"] * _LONG
    )
    encoder = self_check(Encoder(Loaded(build(family), tokenizer, name, "", max_length=_LONG)))
    assert (encoder.path, encoder.longest) == ("captured", _LONG)
    inputs = encoder.inputs([np.random.default_rng(3).integers(5, 400, _LONG)])
    with torch.no_grad():
        expected = encoder.model(**inputs, output_attentions=True)
    heard = []

    def listener(rows):
        blocks = [torch.arange(start, min(start + 7, _LONG)) for start in range(0, _LONG, 7)]
        parts = [rows(slice(0, 1), block[None], int(block[-1]) + 1) for block in blocks]
        heard.append(
            torch.cat(
                [torch.nn.functional.pad(part, (0, _LONG - part.shape[3])) for part in parts], dim=2
            )
        )

    with capture.listen(listener):
        found = encoder.run(inputs, capture.ATTENTION_NAME)
    assert len(heard) == encoder.layers
    for ours, theirs in zip(heard, expected.attentions):
        assert (ours - theirs).abs().max() <= 1e-5
    assert (found.last_hidden_state - expected.last_hidden_state).abs().max() <= 1e-4
    windowed = [(maps.tril(-WINDOW) > 0).sum() == 0 for maps in expected.attentions]
    assert any(windowed) == (not settings)


def run(encoder, length):
    encoder.run(encoder.inputs([np.full(length, 9, np.int32)]), "eager")


_ORIGINAL = {"original_max_position_embeddings": 100}
_LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0] * 4,
    "long_factor": [4.0, 8, 16, 32],
}
_BY_LENGTH = {
    "phi3": (
        {**_GROUPED, **_ORIGINAL, "rope_parameters": {**_LONGROPE, **_ORIGINAL}},
        "weights differ by",
    ),
    "bigbird_pegasus": (
        {**_HALVES, "block_size": 16, "num_random_blocks": 1},
        "attention maps of the shape",
    ),
}


@pytest.mark.parametrize(
    "dtype",
    ["float32", *(pytest.param(half, marks=pytest.mark.long) for half in ("bfloat16", "float16"))],
)
@pytest.mark.parametrize("name", _BY_LENGTH)
def test_attention_that_changes_with_the_length_of_a_batch(name, dtype, tokenizer):
    """longrope beyond its original length (100), block-sparse attention beyond (5 + 2 * 1) * 16 sub-tokens: refused if
    a run's functions lie on both sides, and probed if they do not."""
    family = next(family for family in FAMILIES if family.model == name)
    settings, found = _BY_LENGTH[name]
    model = build(family._replace(settings=settings)).to(getattr(torch, dtype))
    encoder = self_check(Encoder(Loaded(model, tokenizer, name, "", dtype)))
    # though it has read short texts
    assert getattr(encoder.model, "attention_type", "block_sparse") == "block_sparse"
    ids = np.random.default_rng(0).integers(5, 300, 150).astype(np.int32)
    examine_lengths(encoder, ids[:90], ids[:20])
    assert encoder.checks[-1].passed
    assert encoder.checks[-1].name.startswith("batches of 20 to 90")
    with pytest.raises(FailedCheck, match=f"lower --max-length.*{found}"):
        examine_lengths(encoder, ids, ids[:20])
    assert not encoder.checks[-1].passed


@pytest.mark.parametrize(
    "model, part",
    [
        ("bert", "mask"),
        ("mistral", "mask"),
        ("modernbert", "mask"),
        ("gpt2", "causal"),
        ("granite", "scaling"),
        ("t5", "bias"),
        ("umt5", "bias"),
        ("gemma2", "softcap"),
        ("gpt_oss", "sinks"),
    ],
)
def test_a_part_left_out_is_noticed(model, part, tokenizer, monkeypatch):
    """The self-check would see if our attention function forgot something that this family needs."""
    family = next(family for family in FAMILIES if family.model == model)
    whole = capture.probabilities
    monkeypatch.setattr(
        capture, "probabilities", lambda *rows, **parts: whole(*rows, **{**parts, part: None})
    )
    try:
        encoder = self_check(Encoder(Loaded(build(family), tokenizer, model, "")))
    except FailedCheck as refusal:  # rows that sum to less than 1 without a reason that we know
        assert "rows sum to 1" in str(refusal)
    else:
        assert encoder.path == "eager"
        assert "captured rows" in encoder.why


def test_layers_without_attention_are_not_counted(tokenizer, dataset_folder):
    """Qwen3-Next has attention in each fourth layer: its layer 3 is layer 0 of results."""
    family = next(family for family in FAMILIES if family.model == "qwen3_next")
    kinds = [*["linear_attention"] * 3, "full_attention"] * 2
    sizes = {"num_hidden_layers": 8, "layer_types": kinds}
    pair = build(family._replace(settings={**family.settings, **sizes})), tokenizer
    assert "2 layers of 4 attention heads" in doctor(pair).summary
    assert probe(pair, dataset_folder, "python", limit=4).layers == 2
