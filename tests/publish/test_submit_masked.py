"""Masking results reach a model's repository and a board, alone or with those of attention, if they are those of a task."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from conftest import cut
from huggingface_hub import HfApi, parse_eval_result_entries
from support.commands import run
from support.files import contents
from support.hub.loopback_hub import LoopbackHub
from support.models.random_models import byte_model

from codesyntax_dataset.errors import CodeSyntaxError, LedgerError
from probing import mask, probe
from probing.instruments.masking.result import MaskingLedger, MaskResult
from probing.publish import board, submit

pytestmark = pytest.mark.slow

DATASET, MODEL, BOARD = "user/codesyntax", "maker/bytes", "lab/results"
WHERE = ("--model", MODEL, "--dataset", DATASET)


@pytest.fixture(scope="module")
def data(dataset_folder, tmp_path_factory):
    """The embedded sample in Python cut to some short functions of each split."""
    folder = shutil.copytree(dataset_folder, tmp_path_factory.mktemp("sorted") / "codesyntax")
    for file in folder.glob("*/*.parquet"):
        table = pq.read_table(file)
        lengths = [len(code) for code in table["code"].to_pylist()]
        pq.write_table(table.take(np.argsort(lengths)[20:23]), file)
    return cut(folder, tmp_path_factory.mktemp("few") / "codesyntax")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return byte_model(tmp_path_factory.mktemp("models") / "bytes", 512, layers=1)


@pytest.fixture(scope="module")
def made(model, data, tmp_path_factory):
    """A masking result, and in another folder the results of an attention probe of the same model."""
    folder = tmp_path_factory.mktemp("results")
    mask(str(model), data, output=folder / "masked")
    for split in ("test", "validation"):
        direction = {"direction": "dependent-to-head"}
        probe(str(model), data, "python", split, **direction, output=folder / "probed")
    return folder


@pytest.fixture
def results(made, tmp_path):
    return shutil.copytree(made / "masked", tmp_path / "results")


@pytest.fixture
def hub(model, data, monkeypatch, tmp_path):
    with LoopbackHub() as hub:
        hub.add(DATASET, contents(data))
        hub.add(MODEL, contents(model), type="model")
        hub.add(BOARD, {})
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", "hf_aTokenThatNobodyMayEverSee")
        yield hub


def result_file(folder):
    (file,) = folder.glob("*.masking.*[0-9a-f].json")  # examples are no results
    return file


def rewritten(folder, change):
    """The result with numbers that follow from an altered ledger."""
    file = result_file(folder)
    old = MaskResult.load(file).ledger
    ledger = MaskingLedger(old.node_types, old.rows.copy(), json.loads(json.dumps(old.settings)))
    change(ledger)
    for path in folder.iterdir():
        path.unlink()
    MaskResult.from_ledger(ledger).save(folder)


def test_from_results_of_both_kinds_to_a_board(hub, made, data):
    """In one command; values worked out from the JSON of the result."""
    ran = run("submit", made / "masked", made / "probed", *WHERE, "--board", BOARD)
    assert ran.stdout.count("/discussions/1") == 2
    told = yaml.safe_load(hub.files(MODEL, "model", "refs/pr/1")[submit.RESULTS_FILE])
    entries = {entry.task_id: entry for entry in parse_eval_result_entries(told)}
    assert list(entries) == ["python-held-out-dependent-to-head", "python-mask-restored"]
    result, entry = json.loads(result_file(made / "masked").read_text()), entries[list(entries)[1]]
    arms = [[of[arm]["restored"] for of in result["node_types"].values()] for arm in ("t1", "t0")]
    t1, t0 = map(np.mean, arms)
    pattern = f"{re.escape(result['signature'])}; T0 (.+), T1 - T0 ([^ ]+)"
    in_notes = map(float, re.match(pattern, entry.notes).groups())
    assert [entry.value, *in_notes] == pytest.approx([t1, t0, t1 - t0], abs=0.0051)
    HfApi().merge_pull_request(BOARD, 1, repo_type="dataset")
    found = board.read([BOARD], str(data))
    assert [table.instrument for table in found.tables] == ["attention", "masking"]
    assert found.left_out == []


def test_without_the_hub(made):
    (request,) = submit.submission([made / "masked"], MODEL, DATASET, dry_run=True)
    assert "python-mask-restored" in request.text()


@pytest.mark.parametrize(
    "changed, reason",
    [
        ({"seed": 1}, "was made with --seed 1, but a task needs --seed 0"),
        ({"max_length": 510}, "--max-length 510, but a task needs --max-length 511"),
        ({"protocol": "published"}, "--protocol published, but a task needs --protocol current"),
        ({"control": "spans"}, "--control spans, but a task needs --control sub-tokens"),
        ({"rate": 0.5}, "--rate 0.5, but a task needs --rate 1.0"),
        ({"limit": 5}, "a partial run is not published"),
        ({"split": "validation"}, "--split validation, but a task needs --split test"),
        (
            {"config": "java_skip_semicolon"},
            "but a task needs --node-types .*enhanced_for_statement",
        ),
    ],
)
def test_other_settings_than_those_of_the_task_are_refused(changed, reason, results):
    rewritten(results, lambda ledger: ledger.settings["settings"].update(changed))
    with pytest.raises(CodeSyntaxError, match=reason):
        submit._complete([results], "user/tiny-code-mlm")


def test_a_model_that_reads_less_than_a_task_has_is_refused(results):
    rewritten(results, lambda ledger: ledger.settings.update(skips={"more than 300 sub-tokens": 1}))
    with pytest.raises(LedgerError, match="lacks the functions of more than 300 sub-tokens"):
        submit._complete([results], "user/tiny-code-mlm")
