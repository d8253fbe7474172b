"""Sabotaged runs are caught, by the self-check at load or by `verify`; honest ones are not."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from support.attacks.ledgers import CHOICES, RANKS, forged
from support.evidence import reprobed

import probing.instruments.attention.probe
import probing.models.load
from codesyntax_dataset.errors import LedgerError, ModelError
from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing import probe
from probing.cli import main
from probing.evidence import reruns
from probing.evidence.gather import Probed, gather
from probing.evidence.protocols import TABLE_MEASURES
from probing.evidence.reruns import means, on_test, on_validation
from probing.evidence.verify import (
    ACCEPTED,
    REJECTED,
    UNCHECKED,
    Influence,
    draw,
    undetected,
    verify,
    verify_each,
)
from probing.instruments.attention import align, ranking
from probing.instruments.attention.edges import stacked
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import ProbeResult
from probing.runs.data import read_functions
from probing.runs.saved import ledger_path
from probing.runs.session import Session

pytestmark = pytest.mark.slow

SOME = 24  # functions: enough for every sabotage to show


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
    options = {"model": str(tiny_model), "data": dataset_folder, "functions": 8, **options}
    verification = verify(path, **options)
    assert verification.accepted == all(check.passed for check in verification.checks)
    return [check.name for check in verification.checks if not check.passed]


@pytest.mark.parametrize(
    "dtype, batch_tokens",
    [("float32", 64), ("float32", 20000), ("bfloat16", 64), ("float16", 20000)],
)
def test_honest_runs_raise_no_alarm(dtype, batch_tokens, tiny_model, dataset_folder, probed):
    """Other batches, other threads, other functions each time: all accepted."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        path = probed(batch_tokens=batch_tokens, dtype=dtype)
        torch.set_num_threads(1)
        assert failed(path, tiny_model, dataset_folder, seed=batch_tokens) == []
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("options", [{"dtype": "float16"}, {"max_length": 150}])
def test_each_result_is_verified_as_it_was_made(
    options, tiny_model, dataset_folder, honest, probed
):
    """Of one model in one command, whatever it is loaded with first."""
    where = {"model": str(tiny_model), "data": dataset_folder}
    for verification in verify_each([honest, probed(**options)], **where, functions=8):
        assert verification.accepted, verification.checks


# What leaves the ledger wrong, whoever made it so -------------------------------------------------------------------


def test_functions_that_were_not_read_raise_no_alarm(tiny_model, dataset_folder, tmp_path):
    """Of both splits some are too long: heads are chosen at worst, and of those that were read some are probed again."""
    paths = []
    for split in ("test", "validation"):
        result = probe(
            str(tiny_model), dataset_folder, "python", split, max_length=150, output=tmp_path
        )
        assert sum(result.skips.values()) > 5
        paths += result.paths(tmp_path)[:1]
    for path in paths:
        found = verify(path, model=str(tiny_model), data=dataset_folder, functions=12)
        assert found.accepted, found.checks
        assert (
            0 < found.functions < found.total
            and len(found.bounds) > 20
            and min(found.bounds.values()) >= 0
        )


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
        (heads_swapped, "ranks"),
        (layers_reversed, "ranks"),
        (edges_reordered, "edges"),
        (one_function_less, "edges"),
    ],
)
def test_altered_ledgers(change, check, tiny_model, dataset_folder, honest):
    assert check in failed(altered(honest, change), tiny_model, dataset_folder)


@pytest.mark.parametrize("column", "function relation head first last tokens".split())
def test_every_column_of_edges_is_compared(column, ledgers):
    """One number of one edge."""
    task, _, honest, validation = ledgers
    values = getattr(honest, column).copy()
    values[7] = (values[7] + 1) % len(honest.relations) if column == "relation" else values[7] + 1
    other = dataclasses.replace(honest, **{column: values})
    assert reprobed.InMemory(task, honest, validation).complete().passed
    assert reprobed.InMemory(task, other, validation).complete().finding.startswith("1 of")


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


# Ranks that no model has given ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ledgers(tiny_model, dataset_folder):
    """Of the whole sample: the task, what probing it again finds, and the ledgers of test and validation."""
    test, validation = (
        Probing(Session(tiny_model), read_functions(dataset_folder, "python", split))
        for split in ("test", "validation")
    )
    found = {
        split: reprobed.bounds(task) for split, task in (("test", test), ("validation", validation))
    }
    ledgers = [
        RankLedger.of(
            stacked([function.edges for function in task.functions]),
            np.concatenate([of[function.index][..., 0] for function in task.functions], axis=1),
            task.made,
        ).sorted()
        for task, of in zip((test, validation), found.values())
    ]
    return test, found["test"], *ledgers


@pytest.fixture(scope="module")
def both(ledgers, dataset_folder, tiny_model):
    """The same for draws of both splits: their tasks and what probing them again finds."""
    test, found, *_ = ledgers
    validation = Probing(
        Session(tiny_model), read_functions(dataset_folder, "python", "validation")
    )
    return (test, found), (validation, reprobed.bounds(validation))


def three_draws(both, pair, honest):
    """Whether each of three draws of both splits accepts a pair of ledgers, of which those that are altered are verified
    first."""
    splits = [
        (reprobed.InMemory(task, ledger, other), found, np.array_equal(ledger.ranks, same.ranks))
        for (task, found), ledger, other, same in zip(both, pair, reversed(pair), honest)
    ]

    def accepted(seed):
        for verifier, found, _ in sorted(splits, key=lambda split: split[-1]):
            with reprobed.recorded(found):
                if not verifier.drawn(seed)[0].passed:
                    return False
        return True

    return [accepted(seed) for seed in range(3)]


def test_functions_of_validation_gain_by_the_heads_that_are_chosen_on_them_alone(ledgers, both):
    """*Published* chooses on test."""
    test, validation = (
        {name.partition(":")[0] for name in reprobed.InMemory(task, *pair).influence().means}
        for (task, _), pair in zip(both, (ledgers[2:], ledgers[:1:-1]))
    )
    assert test == {"published", *validation} > validation > {"held-out"}


def test_relations_in_no_mean_weigh_nothing_in_one(ledgers):
    """Without their edges, the influence on each mean is the same."""
    *_, test, validation = ledgers
    counted = [name not in NOT_IN_MEAN for name in validation.relations]
    without = validation.take(np.array(counted)[validation.relation])
    assert len(without) < len(validation)
    whole, part = (
        on_validation(ledger, ledger, test, means(test, ledger)).means
        for ledger in (validation, without)
    )
    assert whole.keys() == part.keys()
    for name, points in whole.items():
        np.testing.assert_allclose(points, part[name], err_msg=name)


def test_hits_of_functions_are_those_of_plain_loops(ledgers):
    """Of every head, by each rule and k of tables, in each function that has the relation."""
    *_, validation = ledgers
    for number, rule in enumerate(RULES):
        for found in reruns._rows_by_relation(validation, rule):
            of_relation = validation.relation == validation.relations.index(found.relation)
            for place, function in enumerate(found.functions.tolist()):
                ranks = validation.ranks[number, of_relation & (validation.function == function)]
                assert found.edges[place] == len(ranks)
                for hits, k in zip(found.hits, TABLE_KS, strict=True):
                    expected = (ranks < int(k)).sum(axis=0).ravel()
                    assert hits[place].tolist() == expected.tolist()


def test_three_draws_accept_the_honest_pair(ledgers, both):
    assert three_draws(both, ledgers[2:], ledgers[2:]) == [True] * 3


@pytest.fixture(scope="module")
def honest_means(ledgers):
    return reprobed.means(*ledgers[2:])


@pytest.mark.parametrize("attack", CHOICES, ids=lambda attack: attack.name)
def test_heads_that_were_elected_and_hard_edges_that_were_not_found(
    attack, ledgers, both, honest_means
):
    """Of three draws none accepts what gains more than half a point of any mean."""
    pair = forged(attack, *ledgers[2:])
    gain = (reprobed.means(*pair) - honest_means).max()
    assert gain <= 0.5 or three_draws(both, pair, ledgers[2:]) == [False] * 3


@pytest.mark.long
def test_what_a_pass_bounds_holds_in_simulation(ledgers):
    """Of every mean: the most costly forgery that the bound allows, of a draw of 32 functions, is missed about once in 20
    times, and none that gains more is missed more often. Of functions of validation as of test."""
    _, _, test, validation = ledgers
    rng, checked = np.random.default_rng(0), 0
    published = means(test, validation)
    for found in (
        on_test(test, published),
        on_validation(validation, validation, test, published),
    ):
        drawn = np.zeros((2000, len(found.places)), bool)
        one = draw(found, 32, np.random.default_rng(1))
        # of which draws are the same, without bounds
        alike = dataclasses.replace(found, means={}, least=found.largest)
        assert np.array_equal(one.places, draw(alike, 32, np.random.default_rng(1)).places)
        for row in drawn:
            row[np.searchsorted(found.places, draw(alike, 32, rng).places)] = True
        for name, points in found.means.items():
            order = np.argsort(-points / np.maximum(found.largest, 1e-9))
            for more in (1.0, 1.2, 1.5):
                kept = points[order].cumsum() > more * one.bounds[name]
                if kept.any():  # else all functions together do not gain so much
                    missed = ~drawn[:, order[: int(kept.argmax()) + 1]].any(axis=1)
                    assert missed.mean() <= 0.05**more + 0.02, (name, more)
                    checked += 1
    assert checked > 60


@pytest.mark.parametrize("attack", RANKS, ids=lambda attack: attack.name)
def test_forged_ranks(attack, ledgers, honest_means):
    """One draw each. A forgery of a few edges may be missed in one draw, but then it gains next to
    nothing, and another draw finds it."""
    task, found, honest, validation = ledgers
    test, _ = forged(attack, honest, validation)
    assert not np.array_equal(test.ranks, honest.ranks)
    verifier = reprobed.InMemory(task, test, validation)
    with reprobed.recorded(found):
        check, drawn = verifier.drawn(0, functions=64)
        if check.passed:
            assert (reprobed.means(test, validation) - honest_means).max() <= 0.3
            check, drawn = verifier.drawn(1, functions=64)
    assert not check.passed, check.finding
    assert attack.stopped_by in check.finding
    assert 40 <= len(drawn.places) < len(task.functions)


def test_functions_are_drawn_by_what_they_may_have_gained():
    """The probability is 1 - 0.05 ** (points / 0.4), so that functions of 0.4 points together pass once in 20 times."""
    points = np.array([0.0, 0.1, 0.4, 1.0])
    influence = Influence(np.arange(4), {"mean": points}, np.zeros(4))
    rng, times = np.random.default_rng(0), np.zeros(4)
    for _ in range(2000):
        times[draw(influence, None, rng).places] += 1
    np.testing.assert_allclose(times / 2000, [0, 1 - 0.05**0.25, 0.95, 1], atol=0.035)
    assert draw(influence, None, rng).bounds == {"mean": pytest.approx(0.4)}
    assert draw(influence, None, rng, everything=True).bounds == {"mean": 0}
    mean = np.mean([len(draw(influence, 2, rng).places) for _ in range(1000)])
    assert mean == pytest.approx(2, abs=0.14)


@pytest.mark.parametrize("unread, gained", [(0, [1.2, 2.4]), (5, [2.4, 3.0]), (10, [3.0, 3.0])])
def test_what_functions_gain_by_the_choice_of_a_head(unread, gained):
    """By hand: the first head has ten hits more on validation, and three more on test. Functions with two and four edges,
    all of which it hits, move the margin by four and eight; edges that were not read narrow it."""
    edges, hits = np.array([2, 4, 4]), np.array([[2, 0], [4, 0], [4, 0]])
    points = reruns._of_choice(edges, hits, np.array([5, 2]), 0, unread)
    np.testing.assert_allclose(points[:2], gained)


def test_what_passes_undetected_against_every_subset():
    """Of all sets of six functions that are missed with a probability of 5 % or more, none gains more than the bound."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        points, costs = rng.exponential(1, 6), rng.exponential(1.5, 6)
        sets = [np.array(kept, bool) for kept in itertools.product([0, 1], repeat=6)]
        best = max(points[kept].sum() for kept in sets if np.exp(-costs[kept].sum()) >= 0.05)
        bound = undetected(points, costs)
        assert best <= bound + 1e-9
        assert bound <= best + points[np.exp(-costs) >= 0.05].max(initial=0) + 1e-9


def test_ranks_within_what_rounding_explains_that_take_sides(ledgers):
    """In a head whose weights are equal but for rounding every rank is possible; honest ones are not all the best."""
    task, found, honest, _ = ledgers
    equal = {function: of.copy() for function, of in found.items()}
    for of in equal.values():
        of[..., 1, 0, 1:] = 0, 255
    rng = np.random.default_rng(0)
    exchanged = np.flatnonzero(rng.random(len(honest)) < 0.05)
    with reprobed.recorded(equal):
        for claimed, passed in (
            (honest.ranks[:, rng.permutation(exchanged), 1, 0], True),
            (0, False),
        ):
            ledger = dataclasses.replace(honest, ranks=honest.ranks.copy())
            ledger.ranks[:, exchanged, 1, 0] = claimed
            check, _ = reprobed.InMemory(task, ledger, None).drawn(0)
            assert check.passed == passed, check.finding
    assert "favour" in check.finding


def plain_hits(ledger, relation, layer, head):
    """Function -> edges of a relation that a head finds with one guess, by the rule `first`."""
    hits = dict.fromkeys(ledger.function.tolist(), 0)
    for edge in np.flatnonzero(ledger.relation == ledger.relations.index(relation)).tolist():
        hits[int(ledger.function[edge])] += int(ledger.ranks[0, edge, layer, head] == 0)
    return hits


def plain_best(ledger, relation):
    """The head that finds most, of equals the first."""
    heads = [*np.ndindex(ledger.ranks.shape[2:])]
    return max(heads, key=lambda head: sum(plain_hits(ledger, relation, *head).values()))


def test_what_means_gain_by_other_ranks_is_that_of_plain_loops(ledgers):
    _, _, claimed, validation = ledgers
    ranks = claimed.ranks.copy()
    others = np.random.default_rng(0).random(len(claimed)) < 0.3
    ranks[:, others] = np.roll(ranks[:, others], 1, axis=-1)
    again = dataclasses.replace(claimed, ranks=ranks)
    published, held_out, *_ = means(claimed, validation)
    gained = reruns._more_hits(claimed, again, [published, held_out])
    for mean in (published, held_out):
        expected = dict.fromkeys(sorted(set(claimed.function.tolist())), 0.0)
        counted = len(mean.chosen.hits.counted)
        for relation in mean.chosen.hits.counted:
            assert relation not in NOT_IN_MEAN
            edges = int((claimed.relation == claimed.relations.index(relation)).sum())
            for ledger, sign in ((claimed, 1), (again, -1)):
                best = plain_best(ledger if mean is published else validation, relation)
                for function, hits in plain_hits(ledger, relation, *best).items():
                    expected[function] += sign * 100 * hits / edges / counted
        points = gained[f"{mean.protocol}: first, k = 1"]
        np.testing.assert_allclose(points, [*expected.values()], atol=1e-9)
        assert np.count_nonzero(points) > 9


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


@pytest.mark.parametrize("sabotage", [alignment_shifted, special_tokens_ranked, diagonal_kept])
def test_sabotaged_runs(sabotage, tiny_model, dataset_folder, probed, monkeypatch):
    with monkeypatch.context() as patch:
        sabotage(patch)
        path = probed(batch_tokens=20000)
    assert failed(path, tiny_model, dataset_folder) == ["ranks"]


def test_half_precision_that_says_float32(probed, monkeypatch):
    """The self-check refuses it: attention depends on the batch by more than float32 explains."""
    half_precision(monkeypatch)
    with pytest.raises(ModelError, match="depends on the length of the batch"):
        probed(batch_tokens=20000, device="cpu")  # a GPU adds up in float32


def test_another_tokenizer(tiny_model, dataset_folder, probed, tmp_path):
    """The same weights beside a tokenizer that does not lower-case: another model by its digest, and other ranks."""
    other = shutil.copytree(tiny_model, tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((other / "tokenizer_config.json").read_text())
    (other / "tokenizer_config.json").write_text(json.dumps(config | {"do_lower_case": False}))
    path = probed(other)
    assert {"model", "ranks"} <= set(failed(path, tiny_model, dataset_folder))


def test_no_result_to_verify(tmp_path):
    with pytest.raises(LedgerError, match="cannot read the result"):
        verify(tmp_path / "none.json")


def answers(*arguments, **options):
    """The command's exit status, and what it prints."""
    outcome = CliRunner().invoke(
        main, ["verify", *map(str, arguments)], catch_exceptions=False, **options
    )
    assert outcome.stderr == ""
    return outcome.exit_code, outcome.output


def test_three_answers_and_three_statuses(
    tiny_model, dataset_folder, honest, tmp_path, monkeypatch
):
    """What is not found is no rejection, and of several files the worst answer counts."""
    there = ("--model", tiny_model, "--data", dataset_folder, "--functions", 4)
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
    assert verify(path, data=str(dataset_folder), functions=4).verdict == UNCHECKED
    assert verify(path, data=str(dataset_folder), functions=4, model="tiny").verdict == REJECTED


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


def test_all_functions(tiny_model, dataset_folder, honest):
    verification = verify(honest, model=str(tiny_model), data=dataset_folder, everything=True)
    assert (verification.verdict, verification.functions, verification.total) == (
        ACCEPTED,
        SOME,
        SOME,
    )


def test_what_functions_add_is_the_mean(ledgers, dataset_folder):
    """To every published mean, as the report has it: relations that are in no mean add nothing."""
    _, _, test, validation = ledgers
    pair = Probed(ProbeResult.from_ledger(test), ProbeResult.from_ledger(validation), {})
    (evidence,) = gather([pair], dataset_folder)
    for mean in means(test, validation)[:2]:
        hits = evidence.hits[mean.protocol]
        expected = hits.at(TABLE_MEASURES).hits.mean(hits.system).value
        nothing = dataclasses.replace(test, ranks=np.full_like(test.ranks, 255))
        gained = reruns._more_hits(test, nothing, [mean])
        sums = [points.sum() for points in gained.values()]
        np.testing.assert_allclose(sums, expected, atol=1e-3)
