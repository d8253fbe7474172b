"""Several models one after the other: data read once, one that fails, and what is refused."""

from __future__ import annotations

import shutil

import pytest
from support.commands import run
from support.files import contents

from codesyntax_dataset.errors import ArgumentError, ModelError
from probing import probe, probe_models
from probing.instruments.attention import probe as several
from probing.models.location import trainings


@pytest.fixture
def models(tiny_model, tmp_path, monkeypatch):
    """A folder with the models `one` and `two`, and one that is none."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        shutil.copytree(tiny_model, tmp_path / name)
    (tmp_path / "none").mkdir()
    return tmp_path


@pytest.mark.slow
def test_each_is_as_if_it_were_probed_alone(models, dataset_folder, monkeypatch):
    """On data that are read once for all; a model that fails does not stop the next, and another error does."""
    read, real = [], several.read_functions
    monkeypatch.setattr(
        several, "read_functions", lambda *a, **k: read.append(a[1:3]) or real(*a, **k)
    )
    some = {"limit": 5, "output": models / "results"}
    names = [models / "one", "nobody", "two", "one", str(models / "one")]
    done = list(probe_models(names, dataset_folder, ["python"], ["test", "validation"], **some))
    assert read == [("python", "test"), ("python", "validation")]
    assert [(one.model, one.split, one.ran) for one in done] == [
        (str(models / "one"), "test", True),
        (str(models / "one"), "validation", True),
        ("nobody", "test", True),
        ("nobody", "validation", True),
        ("two", "test", True),
        ("two", "validation", True),
        ("one", "test", False),  # the same model by another path
        ("one", "validation", False),
    ]
    assert all(
        isinstance(one.error, ModelError) == (one.model == "nobody") == (one.result is None)
        for one in done
    )
    assert len(contents(models / "results")) == 8
    probe("two", dataset_folder, limit=5, output=models / "alone")
    assert contents(models / "alone").items() <= contents(models / "results").items()
    monkeypatch.setattr(several, "run", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(probe_models(["one", "two"], dataset_folder, **some))


@pytest.mark.slow
def test_the_command_line_says_at_the_end_what_failed(models, dataset_folder):
    """With status 1; after it is mended, 0."""
    options = ("--data", dataset_folder, "--split test --limit 3 --output results")
    ran = run("probe one ./none two one", *options, status=1)
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("Error: ./none: cannot load the model './none': ")
    assert ran.stderr.count("Error: ") == 1
    assert ran.stderr.count("wrote results/") == 2
    assert ran.stdout.count("published top-k UAS") == 2
    shutil.copytree(models / "two", models / "none", dirs_exist_ok=True)
    assert "Error" not in run("probe one ./none two --shard 1/2", *options).stderr


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        ("", 2, "give a MODEL, or several"),
        ("a b --revision c", 2, "--revision is that of one model: give MODEL@REVISION"),
        ("a b --json", 2, "--json prints one result: give one model and one revision"),
        ("a@1 a@2 --json", 1, "cannot load the model"),
    ],
)
def test_what_cannot_be_meant_is_told_at_once(arguments, status, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in run("probe", arguments, "--data none", status=status).stderr


def test_names_of_models_and_revisions(tmp_path, monkeypatch):
    """A name may hold what else begins a revision."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my model@2").mkdir()
    names = ["user/a@v1", "my model@2", "user/c#3", "user/a@v2", "user/a"]
    assert trainings([*names, "user/a@v1", "u/m@refs/pr/3", "u/m@refs/pr/3", "x@"]) == [
        ("user/a", ["v1", "v2"]),
        ("my model@2", []),
        ("user/c#3", []),
        ("user/a", []),
        ("u/m@refs/pr/3", []),
        ("x@", []),
    ]
    with pytest.raises(
        ArgumentError, match="2 models with revisions, expected one: write NAME@REVISION"
    ):
        list(probe_models(["a", "b"], "none", revisions=["c"]))
    with pytest.raises(ArgumentError, match="^0 models"):
        list(probe_models([], "none"))
