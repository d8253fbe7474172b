"""Two models compared: against plain loops over their ranks, and from the other side."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.commands import run

from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing import compare, load, probe
from probing.evidence.compared import _is_named, _name_of
from probing.evidence.gather import find
from probing.runs.saved import ledger_path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tiny_model, dataset_folder, tmp_path_factory):
    """Of two models that read the same functions but one: the other one may read less."""
    folder = tmp_path_factory.mktemp("results")
    runs = {"one": {}, "other": {"max_length": 150}, "random": {"control": "random-weights"}}
    for split in ("test", "validation"):
        for name, options in runs.items():
            where = str(tiny_model), dataset_folder, "python", split
            probe(*where, limit=25, output=folder / name, **options)
    return folder


def hits(folder, split, functions):
    """Relation -> for each edge, the heads that find it: (edges, layers, heads), by the rule first."""
    (file,) = folder.glob(f"*.{split}.*.json")
    ledger = load(file).ledger
    kept = np.isin(ledger.function, functions)
    ranks = np.concatenate([ranks for _, ranks in ledger.parts()], axis=1)[0]
    return {
        name: ranks[kept & (ledger.relation == number)] == 0
        for number, name in enumerate(ledger.relations)
        if (kept & (ledger.relation == number)).any()
    }


def functions_with(folder, functions):
    """Relation -> in how many functions of test it is."""
    (file,) = folder.glob("*.test.*.json")
    ledger = load(file).ledger
    kept = np.isin(ledger.function, functions)
    return {
        name: len(np.unique(ledger.function[kept & (ledger.relation == number)]))
        for number, name in enumerate(ledger.relations)
    }


def functions_of(folder, split):
    (file,) = folder.glob(f"*.{split}.*.json")
    return set(load(file).ledger.function.tolist())


def test_scores_and_differences_are_those_of_plain_loops(results):
    (compared,) = compare(results / "one", results / "random")
    common = {split: list(functions_of(results / "one", split)) for split in ("test", "validation")}
    for place, side in enumerate(("one", "random")):
        scored, chosen_on = (hits(results / side, split, common[split]) for split in common)
        found = {}
        for name in sorted(set(chosen_on) & set(scored)):
            totals = chosen_on[name].sum(axis=0)
            best = np.unravel_index(totals.argmax(), totals.shape)
            found[name] = 100 * scored[name][:, *best].mean()
        often = functions_with(results / side, common["test"])
        assert compared.difference.hits.names == [*found]
        assert compared.relations[place] == pytest.approx([*found.values()])
        in_mean = [
            score for name, score in found.items() if name not in NOT_IN_MEAN and often[name] >= 3
        ]
        assert min(often.values()) < 3
        assert compared.means[place] == pytest.approx(np.mean(in_mean))
    mean, by_relation = compared.difference.mean, compared.difference.by_relation
    assert mean.value[0] == pytest.approx(compared.means[0] - compared.means[1])
    assert by_relation.value[0] == pytest.approx(compared.relations[0] - compared.relations[1])
    assert compared.functions == len(common["test"])
    (reversed_,) = compare(results / "random", results / "one")
    assert reversed_.difference.mean.value == pytest.approx(-mean.value)
    assert reversed_.difference.mean.p == pytest.approx(mean.p)


def test_only_functions_of_both_count(results):
    (compared,) = compare(results / "one", results / "other")
    common = functions_of(results / "other", "test")
    assert compared.functions == len(common) < len(functions_of(results / "one", "test"))
    assert not compared.difference.mean.value.any()  # the same model twice
    assert compared.names[0] != compared.names[1]  # which the files tell apart
    assert all(".test." in name for name in compared.names)


def test_the_ledgers_of_others_in_the_folder_are_not_read(results, tmp_path):
    """But that of the model's own validation is."""
    for name in ("one", "random"):
        shutil.copytree(results / name, tmp_path, dirs_exist_ok=True)
    (other,) = tmp_path.glob("*random-weights*.validation.*.parquet")
    (own,) = {*tmp_path.glob("*.validation.*.parquet")} - {other}
    (test,) = {*tmp_path.glob("*.test.*.json")} - {*tmp_path.glob("*random-weights*")}
    other.write_bytes(b"damaged")
    (probed,) = find([test])
    assert ledger_path(probed.files["validation"]) == own
    own.write_bytes(b"damaged")
    with pytest.raises(LedgerError, match=own.name):
        find([test])


def test_in_the_terminal_and_what_is_refused(results):
    done = run("compare", results / "one", results / "other")
    assert re.search(r"mean of \d+ relations .* 0\.0 \[0\.0, 0\.0; p 1\.000\]", done.output)
    with pytest.raises(UnknownName, match="known are tiny"):
        compare("tinny", results / "one", [results / "one"])
    on = r"codesyntax@[\d.]+/python/test \(head-to-dependent\)"
    with pytest.raises(LedgerError, match=f"several results on {on}, .*/one/tiny.* and .*/other/"):
        compare("tiny", results / "one", [results / "one", results / "other"])
    with pytest.raises(UnknownName):
        compare("nothing", results / "one")


@pytest.mark.parametrize(
    "side, named",
    [("tiny", True), ("tiny/step-128", True), ("run/tiny/step-000128", True)]
    + [("step-128", True), ("checkpoint-128", True), ("step-256", False), ("other", False)]
    + [("tiny/step-000256", False), ("other/step-000128", False), ("tiny/other", False)],
)
def test_a_checkpoint_is_named_by_its_step_or_its_folder(side, named):
    probed = SimpleNamespace(
        settings=SimpleNamespace(model="tiny"), test=SimpleNamespace(run=SimpleNamespace(step=128))
    )
    assert _is_named(probed, Path(side)) is named


@pytest.mark.parametrize("step, name", [(None, "tiny"), (128, "tiny/step-128")])
def test_names_that_are_told_are_understood(step, name):
    run = SimpleNamespace(run=SimpleNamespace(step=step))
    probed = SimpleNamespace(settings=SimpleNamespace(model="tiny"), test=run)
    assert _name_of(probed) == name
    assert _is_named(probed, Path(name))
    assert not _is_named(probed, Path("other"))
