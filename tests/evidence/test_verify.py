"""Results are run again: no number that is above what comes out is accepted, and honest ones are."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from support.attacks import ledgers
from support.models.minimal_pairs import pairs_folder, tiny_decoder
from support.models.random_models import byte_model

import probing.instruments.attention.probe
import probing.models.load
from codesyntax_dataset.errors import ArgumentError, LedgerError, ModelError
from probing import ablate, inform, mask, prefer, probe, surprise
from probing.cli import main
from probing.evidence import verify as verification
from probing.evidence.published import numbers_of
from probing.evidence.verify import (
    ACCEPTED,
    REJECTED,
    UNCHECKED,
    Verification,
    compare_numbers,
    most_missed,
    verify,
    verify_each,
)
from probing.instruments.attention import align, ranking
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.instruments.masking.result import MaskResult
from probing.models.location import TINY
from probing.runs.saved import ledger_path

pytestmark = pytest.mark.slow

SOME = 24  # functions: enough for every sabotage to show

named = {"ids": lambda attack: attack.name}


def compared(claimed, again):
    """The numbers of results against those that came out."""
    checked = Verification([])
    compare_numbers(claimed, again, checked)
    return checked


def check_refused(attack, claimed, honest):
    """For the number that it raises."""
    checked = compared(claimed, [honest])
    too_high = [f"{name} {of}" for (name, of), number in checked.numbers.items() if number.too_high]
    assert checked.verdict == REJECTED
    assert any(re.match(attack.stopped_by, name) for name in too_high), too_high


# ------------------------------------------------------------------------------------ forged ledgers


@pytest.fixture(scope="module")
def pair(tiny_model, dataset_folder):
    """The honest results on test and validation."""
    return {
        split: probe(str(tiny_model), dataset_folder, "python", split)
        for split in ("test", "validation")
    }


@pytest.mark.parametrize("attack", ledgers.RANKS, **named)
def test_forged_ranks(attack, pair):
    """Whatever the ranks of either split gain, in hits or by the choice of heads, is above what comes out."""
    forged = ledgers.forged(attack, pair["test"].ledger, pair["validation"].ledger)
    claimed = {split: ProbeResult.from_ledger(of) for split, of in zip(pair, forged)}
    check_refused(attack, claimed, pair)


def check_forged_rows(attack, honest):
    ledger = honest.ledger
    rows = ledgers.forged_rows(attack, ledger.rows)
    forged = type(honest).from_ledger(dataclasses.replace(ledger, rows=rows))
    check_refused(attack, {"test": forged}, {"test": honest})
    assert compared({"test": honest}, [{"test": honest}]).accepted


@pytest.fixture(scope="module")
def masked(tmp_path_factory, dataset_folder):
    """A masking result, its file, and where it is from."""
    folder = tmp_path_factory.mktemp("masked")
    model = byte_model(folder / "model", 600, layers=1)
    types = ["return_statement", "parameters", "while_statement"]
    run = {"node_types": types, "draws": 2, "limit": 40, "max_length": 600}
    result = mask(str(model), dataset_folder, **run, output=folder)
    return result, result.paths(folder)[0], {"model": str(model), "data": str(dataset_folder)}


@pytest.mark.parametrize("attack", ledgers.MASKED, **named)
def test_forged_copies(attack, masked):
    check_forged_rows(attack, masked[0])


@pytest.fixture(scope="module")
def silenced(few_functions):
    return ablate(TINY, few_functions, limit=12, draws=2)


@pytest.mark.parametrize("attack", ledgers.SILENCED, **named)
def test_forged_silencing(attack, silenced):
    check_forged_rows(attack, silenced)


@pytest.mark.long
def test_forged_bits(tiny_model, few_functions):
    """Each row by less than two roundings to three decimals differ."""
    honest = inform(str(tiny_model), few_functions, edges=40)
    for attack in ledgers.BITS:
        check_forged_rows(attack, honest)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Minimal pairs, and a decoder that reads them."""
    folder = tmp_path_factory.mktemp("pairs")
    tiny_decoder(folder / "tiny")
    return {"model": str(folder / "tiny"), "data": str(pairs_folder(folder / "codesyntax"))}


@pytest.mark.parametrize("attack", ledgers.TEXTS[:1], **named)
def test_forged_texts(attack, pairs):
    check_forged_rows(attack, prefer(**pairs))


@pytest.fixture(scope="module")
def functions_to_surprise():
    empty = {"token_start": [], "token_end": [], "relations": []}
    codes = [f"def f{number}(a, b):\n    if a:\n        return b\n" for number in range(12)]
    return datasets.Dataset.from_list(
        [{"id": number, "code": code, **empty} for number, code in enumerate(codes)]
    )


def test_forged_surprisal(pairs, functions_to_surprise):
    types = ["parameters", "return_statement"]
    honest = surprise(pairs["model"], functions_to_surprise, node_types=types)
    check_forged_rows(ledgers.SURPRISING, honest)


def test_a_tenth_of_a_point_is_the_most(pair):
    """Of each number; and of two runs the higher counts."""
    honest = numbers_of(pair)

    def accepts(claimed, *again):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(verification, "numbers_of", lambda *results: next(numbers))
            numbers = iter([*again, claimed])
            return compared(pair, [pair] * len(again)).accepted

    for name in (("published", ("first", 1)), ("held-out", ("last", 20))):
        assert accepts(honest | {name: honest[name] + 0.099}, honest, honest)
        assert not accepts(honest | {name: honest[name] + 0.101}, honest, honest)
        assert accepts(
            honest | {name: honest[name] + 0.199}, honest, honest | {name: honest[name] + 0.05}
        )
        other = ("published", ("any", 3))
        assert accepts(
            honest | {name: honest[name] + 0.149}, honest, honest | {other: honest[other] - 0.05}
        )
    assert not accepts(honest, {})


# -------------------------------------------------------------------------------------- honest runs


@pytest.fixture(scope="module")
def once(tiny_model, dataset_folder, tmp_path_factory):
    """The folder of a run of the tiny model."""
    folder = tmp_path_factory.mktemp("once") / "results"
    probe(str(tiny_model), dataset_folder, "python", limit=SOME, output=folder)
    return folder


@pytest.fixture
def honest(once, tmp_path):
    """A copy of that result of one's own."""
    folder = shutil.copytree(once, tmp_path / "results")
    (file,) = folder.glob("*.json")
    return file


@pytest.fixture
def probed(tiny_model, dataset_folder, tmp_path):
    """A run of the tiny model, as a sabotage may leave it: the path of the result."""

    def run(model=tiny_model, **options):
        result = probe(
            str(model), dataset_folder, "python", limit=SOME, output=tmp_path / "results", **options
        )
        return result.paths(tmp_path / "results")[0]

    return run


def altered(path, change):
    """The result again, with its ledger changed and its numbers computed from the changed ledger."""
    ledger = RankLedger.load(ledger_path(path))
    return ProbeResult.from_ledger(change(ledger)).save(path.parent)


def failed(path, tiny_model, dataset_folder, **options):
    """The names of the checks that did not hold."""
    options = {"model": str(tiny_model), "data": dataset_folder, **options}
    checked = verify(path, **options)
    assert checked.accepted == all(check.passed for check in checked.checks)
    return [check.name for check in checked.checks if not check.passed]


@pytest.mark.parametrize(
    "dtype, batch_tokens",
    [("float32", 64), ("float32", 20000), ("bfloat16", 64), ("float16", 20000)],
)
def test_honest_runs_raise_no_alarm(dtype, batch_tokens, tiny_model, dataset_folder, probed):
    """Other batches, other threads: all accepted."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        path = probed(batch_tokens=batch_tokens, dtype=dtype)
        torch.set_num_threads(1)
        assert failed(path, tiny_model, dataset_folder) == []
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("options", [{"dtype": "float16"}, {"max_length": 150}])
def test_each_result_is_verified_as_it_was_made(
    options, tiny_model, dataset_folder, honest, probed
):
    """Of one model in one command, whatever it is loaded with first."""
    where = {"model": str(tiny_model), "data": dataset_folder}
    for checked in verify_each([honest, probed(**options)], **where):
        assert checked.accepted, checked.checks


# What leaves the ledger wrong, whoever made it so -------------------------------------------------------------------


def heads_swapped(ledger):
    return dataclasses.replace(ledger, ranks=ledger.ranks[..., [1, 0, 2]])


def layers_reversed(ledger):
    return dataclasses.replace(ledger, ranks=ledger.ranks[:, :, ::-1])


def edges_reordered(ledger):
    """Within each function, the second edge before the first."""
    order = np.arange(len(ledger))
    starts = np.flatnonzero(np.diff(ledger.function, prepend=-1))
    order[starts], order[starts + 1] = starts + 1, starts
    return ledger.take(order)


def one_function_less(ledger):
    return ledger.take(ledger.function != ledger.function[-1])


@pytest.mark.parametrize(
    "change, check",
    [
        (heads_swapped, "numbers"),
        (layers_reversed, "numbers"),
        (edges_reordered, "rows"),
        (one_function_less, "rows"),
    ],
)
def test_altered_ledgers(change, check, tiny_model, dataset_folder, honest):
    assert check in failed(altered(honest, change), tiny_model, dataset_folder)


def test_altered_numbers(tiny_model, dataset_folder, honest):
    content = json.loads(honest.read_text())
    content["scores"]["first"]["1"] += 1
    honest.write_text(json.dumps(content, indent=1) + "\n")
    assert failed(honest, tiny_model, dataset_folder) == ["scores"]


def test_another_family(tiny_model, dataset_folder, honest):
    """It stands on boards."""
    ledger = RankLedger.load(ledger_path(honest))
    run = ledger.settings["run"] | {"family": "gpt2"}
    ProbeResult.from_ledger(
        dataclasses.replace(ledger, settings=ledger.settings | {"run": run})
    ).save(honest.parent)
    assert failed(honest, tiny_model, dataset_folder) == ["family"]


def test_stale_labels(tiny_model, dataset_folder, honest):
    """The data has changed since: one edge of one function is gone."""
    rows = datasets.load_dataset(str(dataset_folder), "python", split="test").to_list()
    rows[0]["relations"].pop()
    data = datasets.Dataset.from_list(rows)
    assert "data" in failed(honest, tiny_model, dataset_folder, data=data)


# What makes a run go wrong ------------------------------------------------------------------------------------------


def alignment_shifted(patch):
    real = probing.instruments.attention.probe.align

    def shifted(*arguments, **options):
        first, last = real(*arguments, **options)
        return align.Alignment(
            np.where(first >= 0, first - 1, first), np.where(last >= 0, last - 1, last)
        )

    patch.setattr(probing.instruments.attention.probe, "align", shifted)


def special_tokens_ranked(patch):
    """The first and last code token get the special tokens before and behind them."""
    real = probing.instruments.attention.probe.align

    def with_special(code, start, end, offsets, special, **options):
        first, last = real(code, start, end, offsets, special, **options)
        first[0], last[0] = 0, max(last[0], 0)
        first[-1], last[-1] = max(first[-1], len(special) - 1), len(special) - 1
        return align.Alignment(first, last)

    patch.setattr(probing.instruments.attention.probe, "align", with_special)


def diagonal_kept(patch):
    real = ranking.Plan.__init__

    def init(self, *given):
        real(self, *given)
        self.blocks = [block._replace(own=block.own[..., :0]) for block in self.blocks]

    patch.setattr(ranking.Plan, "__init__", init)


def half_precision(patch):
    """The model runs in bfloat16, but says float32."""
    real = probing.models.load.load

    def halved(*arguments, **options):
        encoder = real(*arguments, **options)
        encoder.model.to(torch.bfloat16)
        return encoder

    patch.setattr(probing.models.load, "load", halved)


@pytest.mark.parametrize(
    "sabotage, too_high",
    [(alignment_shifted, True), (special_tokens_ranked, False), (diagonal_kept, False)],
)
def test_sabotaged_runs(sabotage, too_high, tiny_model, dataset_folder, probed, monkeypatch):
    """What is above what comes out is refused; of what is below, the ranks that differ are told."""
    with monkeypatch.context() as patch:
        sabotage(patch)
        path = probed(batch_tokens=20000)
    checked = verify(path, model=str(tiny_model), data=dataset_folder)
    assert checked.accepted is not too_high
    (again,) = (check.finding for check in checked.checks if check.name == "again")
    assert not again.endswith(" 0 of 24,336 ranks differ"), again


def test_half_precision_that_says_float32(probed, monkeypatch):
    """The self-check refuses it: attention depends on the batch by more than float32 explains."""
    half_precision(monkeypatch)
    with pytest.raises(ModelError, match="depends on the length of the batch"):
        probed(batch_tokens=20000, device="cpu")  # a GPU adds up in float32


def test_another_tokenizer(tiny_model, dataset_folder, probed, tmp_path):
    """The same weights beside a tokenizer that does not lower-case: another model by its digest."""
    other = shutil.copytree(tiny_model, tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((other / "tokenizer_config.json").read_text())
    (other / "tokenizer_config.json").write_text(json.dumps(config | {"do_lower_case": False}))
    path = probed(other)
    assert "model" in failed(path, tiny_model, dataset_folder)


def test_no_result_to_verify(tmp_path):
    with pytest.raises(LedgerError, match="cannot read the result"):
        verify(tmp_path / "none.json")


def answers(*arguments, **options):
    """The command's exit status, and what it prints."""
    outcome = CliRunner().invoke(
        main, ["verify", *map(str, arguments)], catch_exceptions=False, **options
    )
    return outcome.exit_code, outcome.stdout


def test_three_answers_and_three_statuses(
    tiny_model, dataset_folder, honest, tmp_path, monkeypatch
):
    """What is not found is no rejection, and of several files the worst answer counts."""
    there = ("--model", tiny_model, "--data", dataset_folder)
    lying = altered(
        Path(shutil.copytree(honest.parent, tmp_path / "forged"), honest.name), heads_swapped
    )
    status, output = answers(honest, *there)
    assert (status, output.splitlines()[-1]) == (0, "accepted")
    monkeypatch.chdir(tmp_path)  # where neither the model nor the dataset can be found by name
    moved = Path(shutil.copytree(honest.parent, tmp_path / "to/another/place"), honest.name)
    for arguments in (
        (moved, *there[2:]),
        (honest, *there[:2], "--data", tmp_path / "nothing"),
        (honest, "--model", tmp_path / "nothing", *there[2:]),
        (tmp_path / "none.json", *there),
    ):
        status, output = answers(*arguments)
        assert (status, output.splitlines()[-1]) == (3, "COULD NOT BE CHECKED")
    status, output = answers(lying, *there)
    assert (status, output.splitlines()[-1]) == (1, "REJECTED")
    assert answers(honest, tmp_path / "none.json", *there)[0] == 3
    status, output = answers(lying, tmp_path / "none.json", honest, *there)
    assert (
        status,
        [output.count(word) for word in ("REJECTED", "COULD NOT BE CHECKED", "accepted")],
    ) == (1, [1, 1, 1])


def test_a_stray_model_or_dataset_of_the_same_name_is_no_rejection(
    tiny_model, dataset_folder, honest, tmp_path, monkeypatch
):
    """Found under the name in the result, and another one; named with --model it is what the result claims to be of."""
    # far from its model
    path = Path(shutil.copytree(honest.parent, tmp_path / "to/another/place"), honest.name)
    other = shutil.copytree(tiny_model, tmp_path / "tiny")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-6}))
    monkeypatch.chdir(tmp_path)
    assert verify(path, data=str(dataset_folder)).verdict == UNCHECKED
    assert verify(path, data=str(dataset_folder), model="tiny").verdict == REJECTED


@pytest.mark.parametrize("settings", [{"temperature": 0.5}, {"model": None}, {"labels": ...}])
def test_settings_that_are_not_those_of_a_probe(settings, tiny_model, dataset_folder, honest):
    """One too many, one of another type, one missing."""
    ledger = RankLedger.load(ledger_path(honest))
    made = {**ledger.settings["settings"], **settings}
    made = {name: value for name, value in made.items() if value is not ...}
    dataclasses.replace(ledger, settings={**ledger.settings, "settings": made}).save(
        ledger_path(honest)
    )
    with pytest.raises(LedgerError, match="not those of `codesyntax probe`"):
        verify(honest, model=str(tiny_model), data=dataset_folder)
    assert answers(honest, "--model", tiny_model, "--data", dataset_folder)[0] == 3


# --------------------------------------------------------------------- both splits, folders and parts


@pytest.fixture
def both_splits(pair, tmp_path):
    for result in pair.values():
        result.save(tmp_path / "both")
    return tmp_path / "both"


def test_both_splits_are_verified_together(both_splits, tiny_model, dataset_folder):
    """Whichever is named, each once; and numbers that are chosen on one and scored on the other."""
    where = {"model": str(tiny_model), "data": dataset_folder}
    test, validation = sorted(both_splits.glob("*.json"))
    for files in ([validation], [both_splits, test]):
        (checked,) = verify_each(files, **where)
        assert (checked.verdict, checked.files) == (ACCEPTED, [test, validation])
        assert checked.functions == checked.total == 196
    assert {name for name, _ in checked.numbers} == {"published", "held-out", "beyond-offset"}
    assert checked.numbers["held-out", ("first", 1)].above == pytest.approx(0, abs=0.05)
    lying = ledgers.RANKS[0]
    forged = RankLedger.load(ledger_path(validation))
    lying.forge(forged, forged)
    ProbeResult.from_ledger(forged).save(both_splits)
    assert verify(test, **where).verdict == REJECTED


def test_a_folder_without_results_says_what_to_give(tmp_path):
    (error,) = verify_each([tmp_path])
    assert "has no results: expected what" in str(error)


def test_some_functions_stand_in_for_those_that_are_claimed(
    tiny_model, dataset_folder, honest, tmp_path
):
    """Nothing is known of the others, and the verdict says so."""
    where = {"model": str(tiny_model), "data": dataset_folder}
    checked = verify(honest, **where, functions=8, seed=1)
    assert (checked.verdict, checked.functions, checked.total) == (ACCEPTED, 8, SOME)
    *_, hidden, verdict = verification.report_lines(checked)
    assert verdict == "accepted on 8 of 24 functions"
    assert "drawn by seed 1. Of the others, 6 may be forged" in hidden
    for options in ({"functions": 8}, {"seed": 1}):
        with pytest.raises(ArgumentError, match="expected both or neither"):
            verify(honest, **where, **options)

    def one_lie(ledger):
        """All ranks of the first functions are the best."""
        ranks = np.array(ledger.ranks)
        ranks[:, ledger.function < 6] = 0
        return dataclasses.replace(ledger, ranks=ranks)

    forged = altered(honest, one_lie)
    verdicts = {verify(forged, **where, functions=8, seed=seed).verdict for seed in range(2)}
    assert REJECTED in verdicts
    assert verify(forged, **where).verdict == REJECTED


def test_what_a_draw_misses_is_that_of_all_draws():
    """By all sets: of ten functions, three are drawn, and two that are forged are missed with 7/10 * 6/9."""
    rng = np.random.default_rng(0)
    draws = [set(rng.permutation(10)[:3].tolist()) for _ in range(4000)]
    missed = [np.mean([not draw & {*range(forged)} for draw in draws]) for forged in range(8)]
    assert most_missed(10, 3) == max(n for n in range(8) if missed[n] >= 0.05)
    assert most_missed(10, 10) == 0


def test_an_interrupted_run_continues(tiny_model, dataset_folder, honest, tmp_path, monkeypatch):
    """What was run is not run again, and nothing of it is left."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    where = {"model": str(tiny_model), "data": dataset_folder}
    run = probing.instruments.attention.probe.Probing.run
    monkeypatch.setattr(probing.instruments.attention.probe.Probing, "PART", 8)
    ran = []

    def interrupted(self, part, bar):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(len(part))
        return run(self, part, bar)

    with monkeypatch.context() as patch:
        patch.setattr(probing.instruments.attention.probe.Probing, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            verify(honest, **where)
    counted = []

    def count(self, part, bar):
        counted.append(len(part))
        return run(self, part, bar)

    monkeypatch.setattr(probing.instruments.attention.probe.Probing, "run", count)
    assert verify(honest, **where).accepted
    parts = [*ran, *counted]
    assert (len(ran), sum(parts)) == (2, SOME)
    assert verify(honest, **where).accepted
    assert counted == [*parts[2:], *parts]
    assert [*(tmp_path / "cache").iterdir()] == []


# -------------------------------------------------------------------------------- other instruments


def test_an_honest_masking_result(masked):
    _, file, where = masked
    checked = verify(file, **where)
    assert (checked.verdict, checked.functions) == (ACCEPTED, checked.total), checked.checks
    assert {name for name, _ in checked.numbers} == {"T1", "T1 - T0"}


def test_controls_that_are_easier(masked, tmp_path):
    """Spans outside of nodes are other controls, whatever the result says."""
    _, _, where = masked
    run = {"node_types": ["return_statement"], "draws": 1, "limit": 20, "max_length": 600}
    result = mask(where["model"], where["data"], **run, control="spans")
    result.ledger.settings["settings"]["control"] = "sub-tokens"
    forged = MaskResult.from_ledger(result.ledger).save(tmp_path)
    assert verify(forged, **where).verdict == REJECTED


def test_masking_without_its_data_or_with_other_numbers(masked, tmp_path):
    _, honest, where = masked
    moved = tmp_path / "elsewhere" / honest.name
    moved.parent.mkdir()
    for path in honest.parent.glob(f"{honest.stem}*"):
        shutil.copy(path, moved.parent)
    checked = verify(moved, model=where["model"])
    assert checked.verdict == UNCHECKED
    assert "--data" in checked.checks[-1].finding
    moved.write_text(moved.read_text().replace('"functions": ', '"functions": 1', 1))
    assert verify(moved, **where).verdict == REJECTED


@pytest.mark.parametrize("dtype, batch_tokens", [("float32", 1), ("bfloat16", 200)])
def test_honest_pairs_of_other_batches(dtype, batch_tokens, pairs, tmp_path):
    result = prefer(**pairs, dtype=dtype, batch_tokens=batch_tokens)
    checked = verify(result.save(tmp_path), **pairs)
    assert checked.accepted, checked.checks
