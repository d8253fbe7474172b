"""What a model restores: the reference's predictions and texts, the model's own logits, texts by hand, and refusals."""

from __future__ import annotations

import gzip
import json
import math
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support.models.byte_tokenizer import byte_tokenizer
from support.models.random_models import shaken, sizes
from support.references.plain_masks import fill_masks
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from codesyntax_dataset.errors import ModelError
from probing.instruments.masking.fill import Copy, Filler
from probing.instruments.masking.masking import (
    CURRENT,
    MASKING_PROTOCOLS,
    PUBLISHED,
    Maskable,
    Masker,
)
from probing.instruments.masking.restore import Restorer
from probing.models import masked as masked_module
from probing.models.load import load_restoring
from probing.models.subtokens import encode

BYTES = byte_tokenizer()
SIZES = sizes()
SMALL = {
    "vocab_size": len(BYTES),
    **SIZES,
    "max_position_embeddings": 300,
    "pad_token_id": 2,
    "type_vocab_size": 2,
}
CODES = (
    "def largest(values, default=None):\n    best = default\n    for value in values:\n        best = value\n",
    "def f(x):\n    return -x\n",
    "def g(x):\n    return +x\n",
)


# --- the reference ---


@pytest.fixture(scope="module")
def masked(shared):
    return load_restoring(shared / "data/masked_model")


@pytest.fixture(scope="module")
def copies(shared, masked):
    """A function and a copy of it."""
    reference = json.loads(
        gzip.decompress((shared / "data/syntaxeval/reference.json.gz").read_bytes())
    )
    return [
        (function, copy)
        for function in reference["functions"]
        for case in function["cases"]
        for copy in [case[name] for name in ("t1", "t1_current") if name in case]
        + case.get("t0", [])
        if copy["positions"]
    ]


@pytest.mark.slow
def test_predictions_of_the_reference(masked, copies):
    """Of every tenth copy, in batches, and of every tenth of these alone."""
    copies = copies[::10]
    ids = {
        function["id"]: np.array(masked.tokenizer(function["code"])["input_ids"])
        for function, _ in copies
    }
    asked = [Copy(ids[function["id"]], np.array(copy["positions"])) for function, copy in copies]
    (found,) = Filler(masked).fill([asked])
    certain = 0
    for number, ((_, copy), one, filled) in enumerate(zip(copies, asked, found)):
        if copy["min_margin"] > 1e-4:
            assert filled.predicted.tolist() == copy["predicted_ids"]
            assert filled.hits == copy["restored"]
            if not number % 10:
                assert fill_masks(masked.model, masked.tokenizer, *one) == copy["predicted_ids"]
            certain += 1
    assert len(copies) == 102
    assert certain > 98


@pytest.mark.slow
def test_texts_of_the_reference(masked, copies):
    """As published; and by the protocol `current`, which differs only in keeping special tokens that the source spells."""
    tokenizer, restorer, same = masked.tokenizer, Restorer(masked.tokenizer), 0
    for function, copy in copies[::3]:
        code, positions, predicted = (
            function["code"],
            np.array(copy["positions"]),
            np.array(copy["predicted_ids"]),
        )
        subtokens = next(encode(tokenizer, [code]))
        published, current = (
            Maskable(code, subtokens, tokenizer, {}, protocol) for protocol in (PUBLISHED, CURRENT)
        )
        assert restorer.text(published, positions, predicted) == copy["text"]
        assert restorer.text(current, current.eligible, current.ids[current.eligible]) == code
        specials = {
            *predicted.tolist(),
            *current.ids[1:-1].tolist(),
            *current.ids[positions].tolist(),
        }
        if not specials & {*tokenizer.all_special_ids}:
            assert restorer.text(current, positions, predicted) == copy["text"]
            same += 1
    assert same > 200


# --- the model's own logits ---


def model_of(family, **settings):
    if family not in transformers.CONFIG_MAPPING:
        pytest.skip(f"this transformers does not know {family}")
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[family](**{**SMALL, **settings})
    model = transformers.AutoModelForMaskedLM.from_config(config)
    return shaken(model)


FAMILIES = {
    "albert": {"embedding_size": 16},
    "bert": {},
    "big_bird": {"attention_type": "original_full"},
    "camembert": {},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
    "electra": {"embedding_size": 16},
    "eurobert": {"bos_token_id": 0, "eos_token_id": 1, "mask_token_id": 4},
    "mobilebert": {"embedding_size": 16, "true_hidden_size": 32, "intra_bottleneck_size": 32},
    "modernbert": {
        "global_attn_every_n_layers": 2,
        "local_attention": 8,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "cls_token_id": 0,
        "sep_token_id": 1,
    },
    "mpnet": {},
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 24},
    "roberta": {},
    "roformer": {},
    "xlm": {"emb_dim": 32, "n_layers": 2, "n_heads": 2, "n_words": len(BYTES)},
    "xlm-roberta": {},
}

_KINDS = ("albert", "deberta", "modernbert", "roberta", "xlm")
"""One of each kind of output layer, and of attention."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=[] if family in _KINDS else [pytest.mark.long])
        for family in FAMILIES
    ],
)
def test_what_is_computed_at_masks_alone_is_what_the_model_computes(family):
    """Predictions, hits and log-probabilities of copies in batches, against the logits of each copy alone."""
    model = model_of(family, **FAMILIES[family])
    masked = load_restoring((model, BYTES))
    assert masked.why == ""
    rng = np.random.default_rng(0)
    ids = [np.array(BYTES(code)["input_ids"]) for code in CODES]
    copies = [
        Copy(one, np.sort(rng.choice(len(one), 5 + draw, replace=False)))
        for one in ids
        for draw in range(4)
    ]
    (found,) = Filler(masked).fill([copies])
    for copy, filled in zip(copies, found):
        text = torch.tensor(copy.ids)[None]
        truth = text[0, copy.positions]
        text[0, copy.positions] = BYTES.mask_token_id
        with torch.no_grad():
            chances = (
                model(text, attention_mask=torch.ones_like(text))
                .logits[0, copy.positions]
                .log_softmax(dim=-1)
            )
        true = chances.gather(1, truth[:, None])
        rank = (chances > true).sum(dim=1)
        assert filled.predicted.tolist() == chances.argmax(dim=1).tolist()
        assert filled.hits == int((rank == 0).sum())
        assert filled.log_probability == pytest.approx(true.mean().item(), abs=6e-4)


def test_a_head_that_cannot_be_called_alone_is_computed_everywhere():
    class Stubborn(BertForMaskedLM):
        def forward(self, input_ids, **others):
            assert (input_ids[:, 0] == 0).all() and input_ids.any(), "this head wants the text"
            return super().forward(input_ids=input_ids, **others)

    torch.manual_seed(0)
    stubborn, plain = (
        Stubborn(BertConfig(**SMALL, initializer_range=0.5)),
        BertForMaskedLM(BertConfig(**SMALL)),
    )
    plain.load_state_dict(stubborn.state_dict())
    masked = load_restoring((stubborn, BYTES))
    assert "this head wants the text" in masked.why
    copies = [Copy(np.array(BYTES(code)["input_ids"]), np.array([2, 5, 9])) for code in CODES]
    for ours, theirs in zip(
        *Filler(masked).fill([copies]), *Filler(load_restoring((plain, BYTES))).fill([copies])
    ):
        assert (ours.predicted.tolist(), *ours[1:]) == (theirs.predicted.tolist(), *theirs[1:])


@pytest.mark.slow
def test_batches_change_nothing_and_equal_copies_run_once(monkeypatch):
    masked = load_restoring((model_of("roberta"), BYTES))
    rng = np.random.default_rng(1)
    ids = [np.array(BYTES(code)["input_ids"]) for code in CODES]
    copies = [
        Copy(ids[draw % 3], np.sort(rng.choice(len(ids[draw % 3]), 6, replace=False)))
        for draw in range(60)
    ]
    copies += copies[::2]
    ran = []
    monkeypatch.setattr(
        masked.model.base_model, "forward", counted(masked.model.base_model.forward, ran)
    )
    results = []
    for batch_tokens in (1, 150, None):
        ran.clear()
        filler = Filler(masked, batch_tokens)
        results += filler.fill([copies])
        assert sum(ran) == 60
    for one, *others in zip(*results):
        for other in others:
            assert one.predicted.tolist() == other.predicted.tolist()
            assert one.hits == other.hits
            assert one.log_probability == pytest.approx(other.log_probability, abs=1.1e-3)
    assert Filler(masked).fill([]) == []
    assert Filler(masked).fill([[], []]) == [[], []]


def counted(forward, ran):
    def counting(*arguments, **named):
        ran.append(len(named["input_ids"]))
        return forward(*arguments, **named)

    return counting


def test_of_sub_tokens_that_tie_the_lowest_is_predicted():
    """Two with the same output weights and biases tie everywhere."""
    model = model_of("roberta")
    with torch.no_grad():
        model.lm_head.decoder.bias.fill_(0)
        model.lm_head.decoder.bias[[40, 41]] = 100.0
        model.roberta.embeddings.word_embeddings.weight[40] = (
            model.roberta.embeddings.word_embeddings.weight[41]
        )
    copies = [Copy(np.array(BYTES(code)["input_ids"]), np.array([1, 4])) for code in CODES]
    (found,) = Filler(load_restoring((model, BYTES))).fill([copies])
    assert [filled.predicted.tolist() for filled in found] == [[40, 40]] * 3


def test_the_model_comes_back_as_it_was():
    model = model_of("bert").train()
    masked = load_restoring((model, BYTES))
    Filler(masked).fill([[Copy(np.array(BYTES(CODES[0])["input_ids"]), np.array([1]))]])
    assert all(part.training for part in model.modules())
    assert "forward" not in model.base_model.__dict__


# --- texts by hand ---


def word_pieces():
    """A lower-casing WordPiece of few words."""
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] def f ( x ) : return ##s ##y if foo bar . 1 _ =".split()
    pipeline = Tokenizer(
        models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    )
    pipeline.normalizer = normalizers.BertNormalizer(lowercase=True)
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.decoder = decoders.WordPiece()
    pipeline.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=pipeline, **names)


@pytest.mark.parametrize(
    "code, changes, text",
    [
        ("def F(x):\n\treturn  Foo(X)\n", {}, "def F(x):\n\treturn  Foo(X)\n"),
        ("def F(x):\n\treturn  Foo(X)\n", {2: "f", 8: "bar"}, "def F(x):\n\treturn  bar(X)\n"),
        ("return foos", {2: "bar"}, "return bars"),
        ("return foos", {3: "##y"}, "return fooy"),
        # a word of its own, which would run into the one before
        (
            "return foos",
            {3: "bar"},
            "return foo bar",
        ),
        ("return foos", {3: "("}, "return foo("),
        ("foo(bar", {2: "x"}, "foo x bar"),  # and into the one behind
        ("foo.bar", {2: "x", 3: "bar"}, "foo x bar"),
        ("foo . bar", {2: "x"}, "foo x bar"),
        ("if foo:\n    return 1", {4: "##s"}, "if foo:\n    s 1"),
        ("foo(x)", {3: "[SEP]"}, "foo()"),  # a special token stands for no text
        ("Größe = foo", {2: "("}, "Größe ( foo"),  # unknown text stays
    ],
)
def test_a_tokenizer_without_white_space(code, changes, text):
    tokenizer = word_pieces()
    (function,) = Masker(tokenizer, "python", []).read([code])
    positions = np.array(sorted(changes), np.int64)
    predicted = np.array(
        [tokenizer.convert_tokens_to_ids(changes[place]) for place in sorted(changes)], np.int64
    )
    assert Restorer(tokenizer).text(function, positions, predicted) == text
    check_parts(tokenizer, function, positions, predicted, text)


@pytest.mark.parametrize(
    "code, changes, text",
    [
        ("a = b\n", {3: b"+", 4: b"\n"}, "a +\nb\n"),
        ("a = é\n", {5: b"x"}, "a = x\ufffd\n"),  # one of the two bytes of é
        ("a = é\n", {5: "ü".encode()[:1], 6: "ü".encode()[1:]}, "a = ü\n"),
        ("a = é\n", {5: "é".encode()[:1]}, "a = é\n"),
        ("a  =  b", {2: b"x"}, "ax =  b"),
        ("a  =  b", {3: b"x"}, "a x=  b"),
        ("a = 1 # <mask> x\n", {5: b"2"}, "a = 2 # <mask> x\n"),
    ],
)
def test_bytes_by_hand(code, changes, text):
    (function,) = Masker(BYTES, "python", []).read([code])
    predicted = np.array(
        [BYTES.convert_tokens_to_ids(letter(changes[place])) for place in sorted(changes)]
    )
    assert Restorer(BYTES).text(function, np.array(sorted(changes)), predicted) == text
    check_parts(BYTES, function, np.array(sorted(changes)), predicted, text)


def check_parts(tokenizer, function, positions, predicted, text):
    """They make up the source and the text, and count every masked sub-token once."""
    parts = Restorer(tokenizer).parts(function, positions, predicted)
    assert ["".join(both) for both in zip(*((part.source, part.text) for part in parts))] == [
        function.code,
        text,
    ]
    assert sum(part.masked for part in parts) == len(positions)
    assert sum(part.right for part in parts) == (function.ids[positions] == predicted).sum()


@pytest.mark.parametrize(
    "code, changes, parts",
    [
        ("ab c", {1: b"x", 2: b"b"}, [("ab", "xb", 2, 1), (" c", " c", 0, 0)]),
        ("éa", {1: "é".encode()[:1], 2: b"x"}, [("é", "\ufffdx", 2, 1), ("a", "a", 0, 0)]),
        # no byte spells it alone
        ("abc", {1: "ü".encode()[:1], 2: "ü".encode()[1:]}, [("ab", "ü", 2, 0), ("c", "c", 0, 0)]),
    ],
)
def test_parts_by_hand(code, changes, parts):
    (function,) = Masker(BYTES, "python", []).read([code])
    predicted = np.array(
        [BYTES.convert_tokens_to_ids(letter(changes[place])) for place in sorted(changes)]
    )
    found = Restorer(BYTES).parts(function, np.array(sorted(changes)), predicted)
    assert [tuple(part.model_dump().values()) for part in found] == parts


def letter(byte):
    """The letter that byte-level tokenizers write for a byte: GPT-2's table."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [number for number in range(256) if number not in visible]
    return chr(byte[0]) if byte[0] in visible else chr(256 + others.index(byte[0]))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", MASKING_PROTOCOLS)
def test_nothing_lost_in_the_sample(protocol, dataset_folder):
    """Every function comes back when every sub-token is restored, by `published` if the tokenizer spells everything."""
    import datasets

    codes = datasets.load_dataset(
        "parquet", data_files=str(dataset_folder / "python" / "test*.parquet")
    )["train"]
    for tokenizer in (BYTES, word_pieces()) if protocol == CURRENT else (BYTES,):
        restorer = Restorer(tokenizer)
        for function in Masker(tokenizer, "python", [], protocol=protocol).read(codes["code"][:30]):
            assert (
                restorer.text(function, function.eligible, function.ids[function.eligible])
                == function.code
            )


# --- refusals ---


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked") / "model"
    model_of("bert").save_pretrained(folder)
    BYTES.save_pretrained(folder)
    return folder


def test_the_revision_of_a_folder_has_that_of_its_head(saved):
    assert len(load_restoring(saved).revision) == 64 + 1 + 64


@pytest.mark.parametrize(
    "lost, said",
    [
        (
            "cls.predictions.transform.dense",
            "has no masked-LM head .its weights lack cls.predictions.transform.dense",
        ),
        ("bert.encoder.layer.1.attention", "its weights lack bert.encoder.layer.1.attention"),
    ],
)
def test_missing_weights(saved, tmp_path, lost, said):
    folder = shutil.copytree(saved, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    kept = {name: part for name, part in weights.items() if not name.startswith(lost)}
    assert 0 < len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=said) as error:
        load_restoring(folder)
    assert "\n" not in str(error.value)


def with_mask(token):
    tokenizer = byte_tokenizer()
    tokenizer.mask_token = token
    tokenizer.add_tokens([token or "<s>"])
    return tokenizer


@pytest.mark.parametrize(
    "model, said",
    [
        (
            lambda: (model_of("bert"), with_mask(None)),
            "has no mask token: use a masked language model",
        ),
        (
            lambda: (model_of("bert"), with_mask("<new>")),
            "has no mask token among its 261 embeddings",
        ),
        (
            lambda: (
                transformers.GPT2LMHeadModel(
                    transformers.GPT2Config(vocab_size=261, n_embd=32, n_layer=1, n_head=2)
                ),
                BYTES,
            ),
            "GPT2LMHeadModel restores nothing: it is a decoder without fill-in-the-middle tokens",
        ),
        (
            lambda: (
                transformers.BartForConditionalGeneration(
                    transformers.BartConfig(
                        vocab_size=261,
                        d_model=32,
                        encoder_layers=1,
                        decoder_layers=1,
                        encoder_attention_heads=2,
                        decoder_attention_heads=2,
                        encoder_ffn_dim=32,
                        decoder_ffn_dim=32,
                    )
                ),
                BYTES,
            ),
            "bart. restores spans",
        ),
        # its convolutions see the padding
        (
            lambda: (model_of("convbert", embedding_size=32), BYTES),
            "its predictions depend on the batch, or on chance",
        ),
        (
            lambda: (model_of("bert", is_decoder=True), BYTES),
            "it predicts a mask from the sub-tokens before it only",
        ),
        (lambda: (model_of("bert", vocab_size=100), BYTES), "do the two belong together"),
    ],
)
def test_refusals(model, said):
    with pytest.raises(ModelError, match=said) as error:
        load_restoring(model())
    assert "\n" not in str(error.value)


# --- logits ---


@pytest.mark.parametrize(
    "logits, truth, expected",
    [
        ([1.0, 3.0, 2.0], 1, (1, 1)),
        ([1.0, 3.0, 2.0], 2, (1, 0)),
        ([1.0, 3.0, 3.0], 2, (1, 0)),  # of equal ones the lowest
        ([1.0, 3.0, 3.0], 1, (1, 1)),
        ([torch.nan] * 3, 2, (0, 0)),
    ],
)
def test_the_largest_logits(logits, truth, expected):
    compared = masked_module._compared_logits(torch.tensor([logits]), torch.tensor([truth]))
    predicted, hit, chance = compared[0].tolist()
    assert (predicted, hit) == expected
    plain = math.log(math.exp(logits[truth]) / sum(map(math.exp, logits)))
    assert chance == pytest.approx(plain, abs=1e-5, nan_ok=True)
