"""Evaluating a model while it trains, and the callback that logs it."""

from __future__ import annotations

import copy
import functools
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT
from support.models.random_models import sizes
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    EarlyStoppingCallback,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
)

import probing
from codesyntax_dataset.errors import ArgumentError, ModelError, UnknownName
from probing.evidence import training
from probing.evidence.beyond import beyond_offsets
from probing.evidence.protocols import held_out
from probing.instruments.attention.result import WIDEST
from probing.instruments.likelihood.result import stratum_weights
from probing.models.load import load_restoring, load_scoring
from probing.models.loaded import warn_once
from probing.report.results import parts


def named(*names):
    """Numbers with their standard errors."""
    return {f"syntax/{name}{end}" for name in names for end in ("", "_stderr")}


OF_HEADS = named("held_out", "best_baseline", "beyond_offset") | {"syntax/heads_functions"}
OF_BITS = named("bits_per_byte", "bits_per_byte_matched", "bits_per_byte_grams")
OF_DECODERS = OF_BITS | named("preference") | {"syntax/bits_functions", "syntax/pairs"}


@pytest.fixture(scope="module")
def decoder():
    """The embedded decoder and its tokenizer."""
    loaded = load_scoring("tiny-code-lm", dtype="float32")
    return loaded.model, loaded.tokenizer


def untrained(tokenizer, seed=0, **more):
    """A decoder in training mode, whose dropout draws at each step."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer), attention_dropout=0.1, initializer_range=0.3, **(sizes() | more)
    )
    return LlamaForCausalLM(config).train()


# -------------------------------------------------------------------------------------- the numbers


@pytest.mark.long
def test_of_all_functions_they_are_what_other_commands_find(tiny_model, dataset_folder):
    model, tokenizer = (of.from_pretrained(tiny_model) for of in (AutoModel, AutoTokenizer))
    numbers = probing.evaluate(model, tokenizer, tokens=10**7)
    splits = [
        probing.probe((model, tokenizer), dataset_folder, split=split).ledger
        for split in ("validation", "test")
    ]
    rule = probing.baseline(dataset_folder).hits["held-out"]["combined"]
    assert set(numbers) == OF_HEADS
    heads = held_out(*splits).hits.mean("model")
    assert numbers["syntax/held_out"] == pytest.approx(heads.value[0])
    # an interval is at least as wide as that of a normal distribution
    error = numbers["syntax/held_out_stderr"]
    assert 1.9 * error < (heads.high[0] - heads.low[0]) / 2 < 2.6 * error
    assert numbers["syntax/best_baseline"] == pytest.approx(rule.hits.mean("combined").value[0])
    hard = beyond_offsets(*splits).chosen.hits.mean("model").value[0]
    assert numbers["syntax/beyond_offset"] == pytest.approx(hard)
    assert numbers["syntax/heads_functions"] == len(np.unique(splits[1].function))


@pytest.mark.slow
def test_of_decoders_they_have_what_is_likely(decoder):
    numbers = probing.evaluate(*decoder, functions=12)
    data = Path(training._sample("python").name, "codesyntax")  # which it reads
    assert OF_DECODERS <= set(numbers) <= OF_DECODERS | OF_HEADS
    assert (numbers["syntax/bits_functions"], numbers["syntax/pairs"]) == (12, 12)
    pairs = probing.prefer(decoder, data, sample=12)
    assert numbers["syntax/preference"] == pairs.accuracy.whole
    weights, right = stratum_weights(pairs.ledger.rows), pairs.ledger.preferred()[:, 0]
    drawn = np.random.default_rng(0).integers(0, 12, (4000, 12))  # a bootstrap
    means = (weights[drawn] * right[drawn]).sum(1) / weights[drawn].sum(1)
    assert numbers["syntax/preference_stderr"] == pytest.approx(100 * means.std(), rel=0.15)


@pytest.mark.slow
def test_pairs_that_are_too_long_are_not_missed(decoder):
    """Of the same weights with fewer positions, the numbers are of the pairs and functions that it reads."""
    model, tokenizer = decoder
    config = copy.deepcopy(model.config)
    config.max_position_embeddings = 150
    fewer = LlamaForCausalLM(config).eval()
    fewer.load_state_dict(model.state_dict())
    numbers = probing.evaluate(fewer, tokenizer, functions=12)
    data = Path(training._sample("python").name, "codesyntax")
    ledger = probing.prefer(decoder, data, sample=12).ledger
    rows = ledger.rows
    read = rows[["good_whole_tokens", "bad_whole_tokens"]].tolist()
    short = np.array([max(lengths) < 150 for lengths in read])
    assert 0 < short.sum() < 12
    assert numbers["syntax/pairs"] == short.sum()
    expected = np.average(ledger.preferred()[short, 0], weights=stratum_weights(rows[short]))
    assert numbers["syntax/preference"] == pytest.approx(100 * expected)
    assert 0 < numbers["syntax/bits_functions"] < 12 > numbers["syntax/heads_functions"] > 0
    fewer.config.max_position_embeddings = 70
    numbers = probing.evaluate(fewer, tokenizer, numbers=("pairs", "bits"))
    assert not {"syntax/pairs", "syntax/preference"} & numbers.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds", [("bits", "heads", "pairs"), ("bits", "masks", "heads")], ids=["decoder", "masked"]
)
def test_a_call_forwards_at_most_so_many_sub_tokens(kinds, decoder):
    """Those that the model itself is given, of one kind and of all."""
    model, tokenizer = copy.deepcopy(decoder[0]), decoder[1]
    if "masks" in kinds:
        loaded = load_restoring("tiny-code-mlm")
        model, tokenizer = loaded.model, loaded.tokenizer
    forwarded = []
    own = model.base_model.forward

    @functools.wraps(own)
    def forward(input_ids=None, attention_mask=None, **options):
        forwarded.append(int(attention_mask.sum()))
        return own(input_ids=input_ids, attention_mask=attention_mask, **options)

    model.base_model.forward = forward
    for numbers in ([kinds[0]], [kinds[1]], [kinds[2]], None):
        forwarded.clear()
        probing.evaluate(model, tokenizer, tokens=10_000, numbers=numbers)
        assert 2500 < sum(forwarded) <= 10_000


@pytest.mark.slow
def test_what_cannot_be_asked_says_so(decoder):
    model, tokenizer = decoder
    with pytest.raises(ArgumentError, match="tokens is 2,001: too few"):
        probing.evaluate(model, tokenizer, tokens=2001)
    for kinds in ((), ("masks",), ("bits", "depth")):
        with pytest.raises(ArgumentError, match="expected some of bits, heads, pairs"):
            probing.evaluate(model, tokenizer, numbers=kinds)


@pytest.mark.slow
def test_a_model_in_half_precision_is_read_in_float32_by_a_core(decoder):
    half = copy.deepcopy(decoder[0]).half()
    numbers = probing.evaluate(half, decoder[1], functions=4)
    expected = probing.evaluate(copy.deepcopy(half).float(), decoder[1], functions=4)
    assert numbers == expected
    assert half.dtype == torch.float16


@pytest.mark.slow
def test_bits_of_masked_models_are_under_another_name(decoder):
    """They see what is behind, too, and do not compare with those of decoders."""
    loaded = load_restoring("tiny-code-mlm")
    numbers = probing.evaluate(loaded.model, loaded.tokenizer, functions=3, numbers=["bits"])
    names = {name.replace("bits_per", "pseudo_bits_per") for name in OF_BITS}
    assert set(numbers) == names | {"syntax/bits_functions"}
    of_decoder = probing.evaluate(*decoder, functions=3, numbers=["bits"])
    assert set(of_decoder) == OF_BITS | {"syntax/bits_functions"}


@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.float32, marks=pytest.mark.long), torch.bfloat16]
)
@pytest.mark.slow
def test_of_masked_models_in_each_precision_they_have_what_is_restored(dtype):
    loaded = load_restoring("tiny-code-mlm")
    numbers = probing.evaluate(
        loaded.model.to(dtype), loaded.tokenizer, functions=1, numbers=["masks"]
    )
    assert set(numbers) == {"syntax/restored", "syntax/masks_functions"}  # no error of one function
    data = Path(training._sample("python").name, "codesyntax")
    restored = probing.mask("tiny-code-mlm", data, draws=1, sample=1).node_types.values()
    expected = np.mean([scores.t1.restored for scores in restored])
    assert numbers["syntax/restored"] == pytest.approx(expected, abs=4)
    assert loaded.model.dtype == dtype


@pytest.mark.slow
def test_a_model_that_finds_nothing_says_why(decoder, dataset_folder, caplog):
    """Weights that are equal choose the token of most sub-tokens."""
    tokenizer = decoder[1]
    model = untrained(tokenizer).eval()
    for layer in model.model.layers:
        torch.nn.init.zeros_(layer.self_attn.q_proj.weight)
    warn_once.cache_clear()
    for _ in range(2):
        numbers = probing.evaluate(model, tokenizer, functions=3, numbers=["heads"])
        assert numbers["syntax/held_out"] == 0
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("syntax/held_out is 0.0 %: weights that are all but equal")
    result = probing.probe((model, tokenizer), dataset_folder, limit=3)
    assert WIDEST in parts(result)
    assert WIDEST not in parts(probing.probe(decoder, dataset_folder, limit=3))


@pytest.mark.slow
def test_other_languages(decoder):
    assert "syntax/held_out" in probing.evaluate(*decoder, language="go", functions=3)
    with pytest.raises(UnknownName, match="language of code is 'english'|english"):
        probing.evaluate(*decoder, language="english")
    with pytest.raises(ModelError, match="the model is a str, expected a transformers model"):
        probing.evaluate("tiny-code-lm", decoder[1])


# ----------------------------------------------------------------------------- everything as it was


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float16, marks=pytest.mark.long)]
)
@pytest.mark.slow
def test_a_model_in_training_stays_as_it_is(decoder, dtype, capfd):
    """But for what `test_encoder.py` sees of a pair in memory: its weights, hooks and attention."""
    tokenizer = decoder[1]
    model = untrained(tokenizer).to(dtype)
    model.model.layers[1].eval()
    ids = torch.arange(20)[None]
    model(input_ids=ids, labels=ids).loss.backward()

    def everything():
        drawn = torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
        settings = torch.is_grad_enabled(), torch.get_float32_matmul_precision()
        gradients = [part.grad.tolist() for part in model.parameters()]
        return gradients, [part.training for part in model.modules()], drawn, settings

    before = everything()
    first, second = (probing.evaluate(model, tokenizer, functions=4) for _ in range(2))
    assert first == second
    assert everything() == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_mixed_precision_is_that_of_training_alone(decoder):
    expected = probing.evaluate(*decoder, functions=4)
    model = decoder[0]
    own = model.forward

    def forward(*arguments, **options):
        with torch.autocast("cpu", torch.bfloat16):
            return own(*arguments, **options)

    model.forward = forward
    try:
        with torch.autocast("cpu", torch.bfloat16):
            assert probing.evaluate(*decoder, functions=4) == expected
        assert model.forward is forward
    finally:
        del model.forward


# ---------------------------------------------------------------------------------------- a Trainer


def trained(tokenizer, folder, every=None, steps=4, resume=None, callbacks=None, **options):
    """A Trainer that has trained, with the callback if `every` says when."""
    rows = np.random.default_rng(0).integers(5, len(tokenizer), (32, 16))
    arguments = {
        "max_steps": steps,
        "logging_steps": 1,
        "per_device_train_batch_size": 2,
        "report_to": "none",
    }
    arguments = TrainingArguments(
        str(folder), **{**arguments, "use_cpu": True, "disable_tqdm": True, **options}
    )
    data = [{"input_ids": row, "labels": row} for row in rows.tolist()]
    sets = {"train_dataset": data, "eval_dataset": data[:2], "callbacks": callbacks}
    trainer = Trainer(untrained(tokenizer), arguments, **sets)
    if every is not None:
        trainer.add_callback(probing.SyntaxCallback(trainer, tokenizer, every=every, functions=3))
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def logged(trainer, name="syntax/bits_per_byte"):
    """The steps at which a number is in the history."""
    return [entry["step"] for entry in trainer.state.log_history if name in entry]


@pytest.mark.slow
def test_a_training_is_the_same_with_the_callback(decoder, tmp_path):
    tokenizer, options = decoder[1], {"bf16": True, "gradient_accumulation_steps": 2}
    alone, watched = (
        trained(tokenizer, tmp_path, **options),
        trained(tokenizer, tmp_path, 2, **options),
    )
    losses = [
        [entry["loss"] for entry in of.state.log_history if "loss" in entry]
        for of in (alone, watched)
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 4
    for one, other in zip(alone.model.parameters(), watched.model.parameters()):
        assert torch.equal(one, other)
    assert logged(watched) == [0, 2, 4]
    assert logged(alone) == []
    assert logged(watched, "syntax/preference") == []  # which does not order checkpoints


@pytest.mark.slow
def test_a_checkpoint_has_the_numbers_of_the_log(decoder, tmp_path):
    trainer = trained(decoder[1], tmp_path, "save", save_steps=2)
    assert logged(trainer) == [2, 4]
    for step in (2, 4):
        state = json.loads((tmp_path / f"checkpoint-{step}/trainer_state.json").read_text())
        assert [
            entry["step"] for entry in state["log_history"] if "syntax/bits_per_byte" in entry
        ] == [*range(2, step + 1, 2)]
    for entry in trainer.state.log_history:
        if "syntax/bits_per_byte" in entry:
            checkpoint = tmp_path / f"checkpoint-{entry['step']}"
            model = AutoModelForCausalLM.from_pretrained(checkpoint)
            numbers = probing.evaluate(model, decoder[1], functions=3, numbers=["bits"])
            assert numbers.items() <= entry.items()


@pytest.mark.parametrize("every", ["save", 2])
@pytest.mark.slow
def test_a_training_that_is_resumed_has_each_step_once(every, decoder, tmp_path):
    options = {"save_steps": 2, "resume": tmp_path / "checkpoint-2"}
    whole = trained(decoder[1], tmp_path, every, save_steps=2)
    again = trained(decoder[1], tmp_path, every, **options)
    first = [0] * (every == 2)
    assert logged(whole) == logged(again) == [*first, 2, 4]


@pytest.mark.slow
def test_at_each_evaluation(decoder, tmp_path):
    trainer = trained(decoder[1], tmp_path, "evaluation", eval_strategy="steps", eval_steps=3)
    assert logged(trainer) == [3, 4] == logged(trainer, "eval_loss")  # it evaluates at the end, too


BEST = {
    "eval_strategy": "steps",
    "eval_steps": 2,
    "save_steps": 2,
    "load_best_model_at_end": True,
    "metric_for_best_model": "syntax/bits_per_byte",
    "greater_is_better": False,
}


@pytest.mark.parametrize("every", ["evaluation", 4])
@pytest.mark.slow
def test_the_best_model_may_be_that_of_a_number(every, decoder, tmp_path):
    trainer = trained(decoder[1], tmp_path, every, learning_rate=1e-2, **BEST)
    history = trainer.state.log_history
    numbers = {
        of["step"]: of["syntax/bits_per_byte"] for of in history if "syntax/bits_per_byte" in of
    }
    best = min((2, 4), key=numbers.get)
    assert trainer.state.best_metric == numbers[best]
    assert trainer.state.best_global_step == best
    assert logged(trainer) == ([2, 4] if every == "evaluation" else [0, 2, 4])


@pytest.mark.slow
def test_a_training_may_be_stopped_by_a_number(decoder, tmp_path):
    """It does not learn, and so does not get better."""
    options = BEST | {"learning_rate": 0.0, "callbacks": [EarlyStoppingCallback(1)]}
    assert trained(decoder[1], tmp_path, "evaluation", steps=8, **options).state.global_step == 4


@pytest.mark.slow
def test_a_failure_does_not_end_a_training_that_chooses_by_a_number(decoder, tmp_path, monkeypatch):
    monkeypatch.setattr("probing.evidence.training.evaluate", lambda *_, **__: 1 / 0)
    assert trained(decoder[1], tmp_path, "evaluation", **BEST).state.global_step == 4


def test_a_failure_is_said_once_and_ends_nothing(decoder, tmp_path, monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("out of\nmemory")

    monkeypatch.setattr("probing.evidence.training.evaluate", fail)
    trainer = trained(decoder[1], tmp_path, 1)
    assert trainer.state.global_step == 4
    assert logged(trainer) == []
    messages = [
        record.getMessage()
        for record in caplog.records
        if record.name == "probing.evidence.training"
    ]
    assert messages == ["syntax is not evaluated any more: RuntimeError: out of memory"]


def test_what_a_callback_cannot_be(decoder, tmp_path):
    trainer = Trainer(
        untrained(decoder[1]), TrainingArguments(str(tmp_path), use_cpu=True, report_to="none")
    )
    for every in (0, -1, "epoch"):
        with pytest.raises(
            ArgumentError, match="expected a number of steps, 'evaluation' or 'save'"
        ):
            probing.SyntaxCallback(trainer, decoder[1], every=every)
    with pytest.raises(ArgumentError, match="no tokenizer"):
        probing.SyntaxCallback(trainer)
    for name, wrong in {"every": 1.5, "functions": 0, "trainer": trainer.model}.items():
        with pytest.raises(ArgumentError, match=f"^{name} is "):
            probing.SyntaxCallback(**{"trainer": trainer, "tokenizer": decoder[1], name: wrong})
    with pytest.raises(ArgumentError, match="the tokenizer is a str, expected that of the model"):
        probing.SyntaxCallback(trainer, "gpt2")
    with pytest.raises(UnknownName, match="'pyhton'.*python"):
        probing.SyntaxCallback(trainer, decoder[1], language="pyhton")


TWO = """
import sys, torch
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}, {here!r}]
from probing.models.load import described_model
from test_training import logged, trained
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
folder, tokenizer = Path({folder!r}), described_model("tiny-code-lm", None).tokenizer
runs = [trained(tokenizer, folder, every, ddp_backend="gloo") for every in (None, 2)]
same = all(torch.equal(one, other) for one, other in zip(*(run.model.parameters() for run in runs)))
losses = [[entry["loss"] for entry in run.state.log_history if "loss" in entry] for run in runs]
(folder / f"{{rank}}").write_text(f"{{same}} {{losses[0] == losses[1]}} {{logged(runs[1])}}")
"""


@pytest.mark.long
def test_of_two_processes_one_evaluates(tmp_path):
    script = tmp_path / "two.py"
    places = {
        "root": str(ROOT),
        "tests": str(ROOT / "tests"),
        "here": str(ROOT / "tests" / "evidence"),
    }
    script.write_text(TWO.format(**places, folder=str(tmp_path)))
    options = "-m torch.distributed.run --nproc-per-node 2 --standalone".split()
    command = [sys.executable, *options, str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert [(tmp_path / rank).read_text() for rank in "01"] == [
        "True True [0, 2, 4]",
        "True True [0, 2, 4]",
    ]
