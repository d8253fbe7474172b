"""Decoders that fill holes: their prompts by hand, a plain loop that writes, and masking runs from end to end."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
import transformers
from support.models.byte_tokenizer import byte_tokenizer
from support.models.random_models import byte_model, shaken, sizes
from support.references.plain_masks import mask_positions

from codesyntax_dataset.errors import ArgumentError, ModelError
from probing import mask
from probing.evidence.masked import comparable_masked
from probing.evidence.verify import verify
from probing.instruments.masking.fill import Copy, Filler
from probing.instruments.masking.masking import INFILLING, Masker
from probing.instruments.masking.restore import Restorer
from probing.instruments.masking.result import SIMILARITIES, MaskResult
from probing.models.load import load_restoring
from probing.models.masked import InfillingModel, convention_of

STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
CODES = (
    "def largest(values, default=None):\n    best = default\n    for value in values:\n        best = value\n",
    "def f(x):\n    if x:\n        return -x\n",
)
FAMILIES = {
    "llama": {},
    "starcoder2": {"sliding_window": 300, "num_key_value_heads": 1},
    "gpt_bigcode": {},
}


def tokenizer_with(tokens, special=True):
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(list(tokens), special_tokens=special)
    return tokenizer


def decoder(family="llama", tokens=STARCODER):
    """A decoder of random weights, and a tokenizer that reads bytes and has these tokens."""
    tokenizer = tokenizer_with(tokens)
    positions = {
        "max_position_embeddings": 600,
        "vocab_size": 300,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[family](**sizes(), **positions, **FAMILIES[family])
    model = transformers.AutoModelForCausalLM.from_config(config)
    return shaken(model), tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "infilling"
    for part in decoder():
        part.save_pretrained(folder)
    return folder


def holes(loaded):
    """Holes of 1 to 20 sub-tokens, some with another beside them, of both functions."""
    rng, copies = np.random.default_rng(0), []
    for ids, _, special in loaded.encode(CODES):
        inner = np.flatnonzero(~special)
        for length in (1, 2, 3, 5, 8, 12, 20):
            start = int(rng.integers(len(inner) - length - 2))
            copies.append(
                Copy(
                    ids, inner[np.r_[start : start + length, [-1] * (length % 3 == 0)].astype(int)]
                )
            )
    return copies


# --- conventions ---


@pytest.mark.parametrize(
    "model, text, stops",
    [
        (
            "StarCoder2",
            "<fim_prefix>a =<fim_suffix>\n<fim_middle> bc",
            {"<file_sep>", "<repo_name>", "<fim_pad>"},
        ),
        ("Granite", "<fim_prefix>a =<fim_suffix>\n<fim_middle> bc", {"<fim_pad>"}),
        (
            "Qwen2.5-Coder",
            "<|fim_prefix|>a =<|fim_suffix|>\n<|fim_middle|> bc",
            {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"},
        ),
        ("CodeGemma", "<|fim_prefix|>a =<|fim_suffix|>\n<|fim_middle|> bc", {"<|file_separator|>"}),
        ("DeepSeek-Coder", "<｜fim▁begin｜>a =<｜fim▁hole｜>\n<｜fim▁end｜> bc", set()),
        ("Code Llama", "▁<PRE>a =▁<SUF>\n▁<MID> bc", {"▁<EOT>"}),
    ],
)
@pytest.mark.parametrize("special", [True, False])
def test_the_prompt_of_each_convention(model, text, stops, special, monkeypatch):
    """Before it stands what the tokenizer puts there, and nothing behind it; its own tokens end what is written."""
    head, _, rest = text.partition("a =")
    middle, _, end = rest.partition("\n")
    marks = (head, middle, end.removesuffix(" bc"))
    monkeypatch.setattr(InfillingModel, "examine", lambda self: self)
    weights, _ = decoder()
    tokenizer = tokenizer_with((*marks, *sorted(stops)), special)
    assert model in convention_of(tokenizer).models
    assert "arXiv:" in convention_of(tokenizer).source
    loaded = load_restoring((weights, tokenizer))
    (ids, _, _), *_ = loaded.encode(["a = bc\n"])
    ((found, positions),) = loaded.texts(ids, np.array([4, 5, 6]))
    assert tokenizer.decode(found, spaces_between_special_tokens=False) == "<s>" + text
    assert positions.tolist() == [len(found) - 3, len(found) - 2, len(found) - 1]
    assert {*marks, *stops, "</s>"} <= {*tokenizer.convert_ids_to_tokens(loaded._stops)}
    assert not {*"abc"} & {*tokenizer.convert_ids_to_tokens(loaded._stops)}


@pytest.mark.slow
def test_each_run_of_neighbours_is_a_hole_beside_the_others():
    loaded = load_restoring(decoder())
    (ids, _, _), *_ = loaded.encode(["abcdef"])
    found = [loaded.tokenizer.decode(text) for text, _ in loaded.texts(ids, np.array([1, 3, 4, 6]))]
    marked = [
        "<s><fim_prefix>{}<fim_suffix>{}<fim_middle>{}".format(*parts)
        for parts in (("", "bcdef", "a"), ("ab", "ef", "cd"), ("abcde", "", "f"))
    ]
    assert found == marked


@pytest.mark.parametrize("lost", STARCODER)
def test_a_decoder_without_these_tokens_is_refused(lost):
    with pytest.raises(ModelError, match="a decoder without fill-in-the-middle") as error:
        load_restoring(decoder(tokens=tuple(token for token in STARCODER if token != lost)))
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_prompt_needs_three_positions_more():
    assert load_restoring(decoder(), max_length=599).longest == 597
    assert load_restoring(decoder(), max_length=590).longest == 590


# --- what is written ---


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_what_a_plain_loop_writes(family):
    """Of as many sub-tokens, ended by a stop; the probability is that after the true sub-tokens."""
    loaded = load_restoring(decoder(family))
    # so that an untrained model stops, too
    loaded._stops = np.union1d(loaded._stops, np.arange(5, 30))
    copies, seen = holes(loaded), {"stopped": 0, "at its bound": 0, "of several": 0}

    def logits_of(text):
        with torch.no_grad():
            return loaded.model(torch.tensor([text])).logits[0].double()

    for copy, filled in zip(copies, *Filler(loaded).fill([copies])):
        expected, chances, ranks = [], [], []
        for text, positions in loaded.texts(*copy):
            written = text[: positions[0]].tolist()
            for _ in positions:
                following = int(logits_of(written)[-1].argmax())
                if following in loaded._stops:
                    break
                written.append(following)
            left = len(text) - len(written)
            seen["stopped" if left else "at its bound"] += 1
            seen["of several"] += len(positions) > 1
            expected += written[positions[0] :] + [loaded._nothing] * left
            logits = logits_of(text.tolist())
            for place in positions:
                chances.append(logits[place - 1].log_softmax(-1)[text[place]].item())
                ranks.append(int((logits[place - 1] > logits[place - 1][text[place]]).sum()))
        assert filled.predicted.tolist() == expected
        assert filled.log_probability == pytest.approx(np.mean(chances), abs=6e-4)  # three decimals
        assert filled.hits == ranks.count(0)
    assert min(seen.values()) > 3, seen


def planted(inputs, rows, columns, truth, *, right):
    """`ScoringModel.compared` of a model that writes what stood there, or `~` everywhere."""
    said = truth if right else torch.full_like(truth, byte_tokenizer().convert_tokens_to_ids("~"))
    return torch.stack([said, said == truth, -1.0 - 2 * (said != truth), 0 * truth], dim=1).double()


def writing(tokenizer, written):
    """`generate` of a model that writes these tokens behind any prompt, up to the bound."""

    def generate(prompt, max_new_tokens, **_):
        ids = torch.tensor(tokenizer.convert_tokens_to_ids([*written]))[:max_new_tokens]
        return torch.cat([prompt[0], ids])[None]

    return generate


@pytest.mark.slow
@pytest.mark.parametrize(
    "code, positions, written, text",
    [
        ("def f(ab):\n    x = cd\n", [5, 7, 8, 16, 20, 21], "~" * 9, "def ~(~~):\n    ~ = ~~\n"),
        ("a = bcdefgh\n", range(5, 12), ["~", "</s>"], "a = ~~\n"),  # a stop is the end of a hole
    ],
)
def test_what_is_written_replaces_the_hole_alone(code, positions, written, text, monkeypatch):
    loaded = load_restoring(decoder())
    monkeypatch.setattr(loaded, "compared", partial(planted, right=False))
    monkeypatch.setattr(loaded.model, "generate", writing(loaded.tokenizer, written))
    (function,) = Masker(loaded.tokenizer, "python", [], protocol=INFILLING).read([code])
    ((filled,),) = Filler(loaded).fill([[Copy(function.ids, np.array(positions))]])
    restored = Restorer(loaded.tokenizer).text(function, np.array(positions), filled.predicted)
    assert restored == text
    assert filled.hits == 0


# --- a masking run ---

RUN = {
    "node_types": ["parameters", "return_statement"],
    "draws": 2,
    "limit": 3,
    "max_length": 500,
}


@pytest.mark.slow
def test_a_decoder_has_fewer_controls(folder, dataset_folder):
    result = mask(folder, dataset_folder, **RUN | {"draws": None})
    assert result.settings.draws == 2


@pytest.mark.slow
def test_the_result_says_that_it_was_infilled(folder, dataset_folder, tmp_path):
    """It stands beside no result of a masked language model, and comes out again."""
    for model in (byte_model(tmp_path / "masked", 700), folder):
        mask(model, dataset_folder, **RUN, output=tmp_path / "results")
    groups = comparable_masked(sorted((tmp_path / "results").glob("*[0-9a-f].json")))
    assert [len(group) for group in groups] == [1, 1]
    (infilled,) = (tmp_path / "results").glob("infilling*[0-9a-f].json")
    result = MaskResult.load(infilled)
    assert result.settings.protocol == INFILLING
    assert "|protocol:infilling|" in result.signature
    assert verify(infilled, model=folder, data=dataset_folder).accepted


@pytest.mark.slow
def test_batches_change_rounding_alone(folder, dataset_folder):
    ours, theirs = (
        mask(folder, dataset_folder, **RUN, batch_tokens=tokens).ledger.rows for tokens in (1, None)
    )
    apart = np.abs(ours["log_probability"] - theirs["log_probability"])
    assert apart.max() < 1.1e-3
    assert (ours["hits_1"] != theirs["hits_1"]).mean() < 0.01


@pytest.mark.slow
def test_a_model_that_writes_what_stood_there_scores_1(folder, dataset_folder, monkeypatch):
    monkeypatch.setattr(InfillingModel, "compared", lambda _, *given: planted(*given, right=True))
    monkeypatch.setattr(InfillingModel, "examine", lambda self: self)
    result = mask(load_pair(folder), dataset_folder, **RUN)
    assert all((result.ledger.rows[name] == 1).all() for name in SIMILARITIES)
    assert {
        arm.restored for scores in result.node_types.values() for arm in (scores.t1, scores.t0)
    } == {100.0}


def load_pair(folder):
    return (
        transformers.AutoModelForCausalLM.from_pretrained(folder).eval(),
        transformers.AutoTokenizer.from_pretrained(folder),
    )


@pytest.mark.slow
def test_protocols_of_another_kind_of_model_are_refused(folder, dataset_folder, tmp_path):
    with pytest.raises(
        ArgumentError,
        match="protocol is 'published', but infilling is a decoder",
    ):
        mask(folder, dataset_folder, **RUN, protocol="published")
    masked = byte_model(tmp_path / "masked", 700)
    with pytest.raises(ArgumentError, match="protocol is 'infilling', but masked is a masked"):
        mask(masked, dataset_folder, **RUN, protocol="infilling")
    without = tokenizer_with(STARCODER)
    without.mask_token = None
    assert mask_positions(
        "def f(): pass", without, "parameters", protocol="infilling"
    ).tolist() == [6, 7]
