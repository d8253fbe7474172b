"""After a probe of a model in a folder, every command finds it again, from any working directory."""

from __future__ import annotations

import json
import shutil

import pytest
from support.commands import run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study(tiny_model, dataset_folder, tmp_path_factory):
    """Models, data and results in one folder, made from inside it, one result of each model also as shards."""
    folder = tmp_path_factory.mktemp("study")
    for name in ("models/one", "models/two"):
        shutil.copytree(tiny_model, folder / name)
    shutil.copytree(dataset_folder, folder / "codesyntax")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        splits = "--split test --split validation"
        run("probe models/one models/two", splits, "--limit 5 --output results -q")
        for shard in ("1/2", "2/2"):
            run("probe models/one --split test --limit 99 --output shards --shard", shard)
    return folder


@pytest.fixture
def elsewhere(study, tmp_path, monkeypatch):
    """A copy of the study, and another working directory."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return shutil.copytree(study, tmp_path / "moved")


def results(folder):
    return sorted(
        path for path in (folder / "results").glob("*.test.*.json") if ".errors." not in path.name
    )


@pytest.mark.usefixtures("unrendered")
def test_every_command_finds_the_model_and_none_publishes_its_place(elsewhere, tmp_path):
    tests = results(elsewhere)
    written = [json.loads(path.read_text()) for path in tests]
    assert [result["model_path"] for result in written] == ["../models/one", "../models/two"]
    assert {result["data_path"] for result in written} == {"../codesyntax"}
    run("score", *(elsewhere / "results").glob("*.parquet"))
    run("errors", tests[0])
    run("verify", *tests, "--functions 2 --seed 0")
    run("merge", elsewhere / "shards")
    run("report", elsewhere / "results")
    for file in (tmp_path / "work/report").rglob("*.*"):
        content = file.read_bytes()
        assert b"model_path" not in content and str(elsewhere).encode() not in content, file
    (merged,) = (elsewhere / "shards").glob("*.json")
    assert "accepted on 2 of 99" in run("verify", merged, "--functions 2 --seed 0").stdout


def test_one_model_that_is_gone_does_not_end_verify(elsewhere):
    shutil.rmtree(elsewhere / "models/one")
    tests = results(elsewhere)
    (said,) = run("errors", tests[0], status=1).stderr.splitlines()
    assert said.startswith("Error: ")
    assert "the model one of " in said
    assert said.endswith("give its location with --model")
    said = run("verify", *tests, "--functions 2 --seed 0", status=3).stdout
    assert "give its location with --model" in said
    assert "accepted" in said
    run("errors", tests[0], "--model", elsewhere / "models/two")  # the same weights


def test_a_model_in_the_home_of_the_user(tiny_model, dataset_folder, tmp_path, monkeypatch):
    """Results that lie elsewhere may move alone."""
    home = tmp_path / "home"
    shutil.copytree(tiny_model, home / "models/tiny")
    monkeypatch.setenv("HOME", str(home))
    made = tmp_path / "disk/results"
    model = home / "models/tiny"
    run("probe", model, "--data", dataset_folder, "--split test --limit 9 --output", made)
    (file,) = made.rename(tmp_path / "results").glob("*.json")
    assert json.loads(file.read_text())["model_path"] == "~/models/tiny"
    run("verify", file, "--data", dataset_folder, "--functions 2 --seed 0")
