"""Tasks of lm-eval: what they say, and, where lm-eval is installed, its number beside ours."""

from __future__ import annotations

import ast
import importlib.util
import json
import os

import pytest
import yaml
from conftest import ROOT
from jinja2 import Environment
from support.commands import python
from support.hub.loopback_hub import LoopbackHub
from support.models.minimal_pairs import LONGEST, PAIRS, pairs_folder, tiny_decoder

from probing import prefer
from probing.publish.push import lm_eval_files, lm_eval_tasks

REPO, TASK = "user/codesyntax", "codesyntax_python_pairs"


def test_tasks():
    """One for each config of pairs with a split `test`, from the fields of which lm-eval makes requests."""
    there = [
        "README.md",
        "python/test.parquet",
        "python_pairs/test.parquet",
        "java_pairs/validation.parquet",
    ]
    ((path, text),) = lm_eval_tasks(REPO, there).items()
    task = yaml.safe_load(text)
    assert path == f"lm_eval/{TASK}.yaml"
    assert path in lm_eval_files()
    assert task["task"] == TASK
    assert (task["dataset_path"], task["dataset_name"], task["test_split"]) == (
        REPO,
        "python_pairs",
        "test",
    )
    assert (task["output_type"], task["doc_to_text"], task["target_delimiter"]) == (
        "multiple_choice",
        "",
        "",
    )
    assert task["metric_list"] == [
        {"metric": "acc", "aggregation": "mean", "higher_is_better": True}
    ]
    choices = Environment(keep_trailing_newline=True).from_string(task["doc_to_choice"])
    hostile = {"good": "'\"\\ {{ é \u2028\t\n", "bad": '"""\r\n\x00{% raw %}'}
    # a template must give back the very texts, the good one at the index of the target
    for row in (
        *PAIRS,
        hostile,
    ):
        assert ast.literal_eval(choices.render(row)) == [row["good"], row["bad"]]
    assert task["doc_to_target"] == 0


EVALUATE = """
import json, sys
import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

folder, model, task, batch_size, max_length = sys.argv[1:]
found = lm_eval.simple_evaluate(
    HFLM(model, device="cpu", dtype="float32", batch_size=int(batch_size), max_length=int(max_length)),
    tasks=[task],
    task_manager=TaskManager(include_path=folder, include_defaults=False),
    bootstrap_iters=0,
    log_samples=True,
)
samples = sorted(found["samples"][task], key=lambda sample: sample["doc_id"])
scores = [[score for score, _ in sample["filtered_resps"]] for sample in samples]
print(json.dumps([found["results"][task]["acc,none"], scores]))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None,
    reason="lm-eval is not installed: pip install lm_eval",
)
@pytest.mark.parametrize("batch_size", [1, 7])
def test_lm_eval_finds_our_number(batch_size, tmp_path):
    """By the task as it is on a Hub, with a tiny decoder."""
    data, model = pairs_folder(tmp_path / "codesyntax"), tiny_decoder(tmp_path / "tiny")
    there = {
        path.relative_to(data).as_posix(): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file()
    }
    for path, text in lm_eval_tasks(REPO, there).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text)
    with LoopbackHub() as hub:
        hub.add(REPO, there)
        variables = {
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_OFFLINE": "0",
            "HF_ENDPOINT": hub.url,
        }
        given = [tmp_path / "lm_eval", model, TASK, batch_size, LONGEST]
        done = python(EVALUATE, *given, cwd=ROOT, env=os.environ | variables)
    accuracy, scores = json.loads(done.stdout.splitlines()[-1])
    ours = prefer(model, data)
    assert 100 * accuracy == ours.accuracy.plain
    assert ours.accuracy.ties == 0
    assert 0 < accuracy < 1
    rows = ours.ledger.rows
    assert [score for both in scores for score in both] == pytest.approx(
        [score for row in rows for score in (row["good_whole"], row["bad_whole"])], abs=1e-3
    )
