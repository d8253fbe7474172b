"""The command line: what it prints, and what it says to bad input."""

from __future__ import annotations

import importlib
import json
import os
import subprocess

import pytest
from support.commands import python, run
from support.evidence.masked import masked

import probing
from codesyntax_dataset.errors import ModelError
from probing.models.location import EMBEDDED


def refused(*arguments, words):
    """Exit status 1 and one line that says all of `words`."""
    result = run(*arguments, status=1)
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("Error: "))
    for word in words:
        assert word in line, line
    assert result.stdout == ""


def left_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    """What makes --help answer at once; the time itself is not a test's to measure."""
    code = (
        "import sys\nfrom probing.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'datasets', 'evaluate', 'numpy', 'pyarrow', 'rich'}\n"
        "print('imported:', [name for name in sys.modules if name in heavy or name.startswith('tree_sitter')])"
    )
    done = python(code)
    assert "Usage:" in done.stdout
    assert done.stdout.endswith("imported: []\n")


@pytest.mark.slow
def test_results_are_scored_and_compared_without_what_takes_long_to_import(evidence, tmp_path):
    """What makes both quick; the time itself is not a test's to measure."""
    masked().save(tmp_path)
    for result in (evidence.probed.test, evidence.probed.validation):
        result.save(tmp_path)
    code = (
        "import sys\nfrom probing.cli import main\n"
        "folder = sys.argv[1]\n"
        "for words in (['score', folder], ['compare', folder, folder]):\n"
        "    main(words, standalone_mode=False)\n"
        "heavy = {'torch', 'transformers', 'datasets', 'pandas', 'matplotlib', 'jinja2', 'pyarrow.compute', "
        "'huggingface_hub.hf_api', 'huggingface_hub.file_download'}\n"
        "print('imported:', sorted(heavy & set(sys.modules)))"
    )
    done = python(code, tmp_path)
    assert "T1" in done.stdout
    assert "Difference" in done.stdout
    assert done.stdout.endswith("imported: []\n")


@pytest.mark.slow
@pytest.mark.usefixtures("smaller")
def test_the_first_habit_works(tiny_model, tmp_path, monkeypatch):
    """Without data, the sample is built, both splits are probed, and the held-out score comes first: in at most two
    sentences, ten rows, and a line each on what is left out, on the published score and on what is next."""
    monkeypatch.chdir(tmp_path)
    done = run("probe", tiny_model, "--limit 20")
    assert (
        "no --data, and no dataset in the folder codesyntax: building the embedded sample there"
        in done.stderr
    )
    assert (tmp_path / "codesyntax/python/test.parquet").exists()
    assert "/validation: " not in done.stdout
    first, title, *table = done.stdout.splitlines()
    assert first.startswith("With one guess, the attention heads of tiny find ")
    assert first.count(". ") == 1
    assert "what the chosen head of each relation finds" in title
    assert sum("->" in line for line in table) == 10
    for told in (
        " rows: --wide prints all, and",
        "By the paper's protocol (published) it is ",
        "uas|model:tiny@",
    ):
        assert [told in line for line in table].count(True) == 1
    assert "next: the same with --output FOLDER, and `codesyntax report FOLDER`" in done.stderr
    again = run("probe", tiny_model, "--limit 20")
    assert "no --data" not in again.stderr
    assert again.stdout == done.stdout


@pytest.mark.slow
def test_what_ran_before_an_error_is_printed(tiny_model, dataset_folder, monkeypatch):
    """The second of two configs fails."""
    module = importlib.import_module("probing.instruments.attention.probe")
    ran = module.run

    def fail_in_java(experiment, *others):
        if experiment.data.config == "java":
            raise ModelError("no java")
        return ran(experiment, *others)

    monkeypatch.setattr(module, "run", fail_in_java)
    configs = "--config python --config java"
    done = run("probe", tiny_model, "--data", dataset_folder, configs, "--limit 4", status=1)
    assert "no java" in done.stderr
    assert "/test (PARTIAL" in done.stdout
    assert "published top-k UAS" in done.stdout


@pytest.mark.slow
def test_a_folder_of_code_is_measured_at_once(tiny_model, tmp_path, monkeypatch):
    """Its dataset is built, and built again by the next command, which finds the same functions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    for name in ("one", "two"):
        code = f"def {name}(x):\n    if x.a:\n        return x.b({name})\n"
        (tmp_path / "code" / f"{name}.py").write_text(code)
    asked = ("probe", tiny_model, "--data code --json")
    first, second = run(*asked), run(*asked)
    assert (
        "code has code, and is no dataset: building one of it in the folder codesyntax-code"
        in first.stderr
    )
    assert first.stdout == second.stdout
    settings = json.loads(first.stdout)["settings"]
    assert settings["data"].startswith("codesyntax-code@")
    assert settings["split"] == "test"
    (tmp_path / "alone").mkdir()
    (tmp_path / "code/one.py").rename(tmp_path / "alone/one.py")
    one_split = run("probe", tiny_model, "--data alone")
    assert "codesyntax-alone has the split test alone: heads are chosen on" in one_split.stderr
    assert "1 function: too few for a claim, or to compare models" in one_split.stdout
    assert "held-out" not in one_split.stdout
    lacking = run("probe", tiny_model, "--data alone --split validation", status=1)
    assert "known are test; its source had too few files for it" in lacking.stderr
    sums = (tmp_path / "codesyntax-code/SHA256SUMS").read_bytes()
    edited = run(*asked, status=1)
    assert "Remove the folder codesyntax-code, or keep it and run" in edited.stderr
    assert (tmp_path / "codesyntax-code/SHA256SUMS").read_bytes() == sums


@pytest.mark.slow
def test_probe_prints_a_table_and_score_prints_it_again(tiny_model, dataset_folder, tmp_path):
    probed = run(
        "probe",
        tiny_model,
        "--data",
        dataset_folder,
        "--wide --split test --limit 4 --output",
        tmp_path,
    )
    (ledger,) = tmp_path.glob("*.parquet")
    for words in ("If:if->test", "mean of", "PARTIAL: first 4 functions", "partial:4"):
        assert words in probed.stdout
    assert run("score", ledger).stdout == probed.stdout
    told = json.loads(ledger.with_name(ledger.name.replace(".ledger.parquet", ".json")).read_text())
    # what no ledger knows
    for path, place in (
        ("data_path", dataset_folder),
        ("model_path", tiny_model),
    ):
        assert (tmp_path / told.pop(path)).samefile(place)
    assert json.loads(run("score", ledger, "--json").stdout) == told


@pytest.mark.slow
def test_several_configs_ledgers_and_results_at_once(tiny_model, dataset_folder, tmp_path):
    data = ("--data", dataset_folder)
    probed = run(
        "probe",
        tiny_model,
        *data,
        "--wide --config java --config python --split test --limit 3 --output",
        tmp_path,
        "-q",
    )
    ledgers, results = sorted(tmp_path.glob("*.parquet")), sorted(tmp_path.glob("*.json"))
    assert [probed.stdout.count(f", {config}/test (PARTIAL") for config in ("java", "python")] == [
        1,
        1,
    ]
    assert (len(ledgers), len(results), probed.stderr) == (2, 2, "")
    assert run("score", *ledgers).stdout == probed.stdout
    for result in results:
        assert "wrote " in run("errors", result, "--model", tiny_model, *data).stderr
    # results, ledgers and error analyses
    assert run("score", *sorted(tmp_path.iterdir())).stdout == probed.stdout


# Bad input ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def full_disk(tmp_path):
    """A file system of its own that holds 16 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.name != "posix"
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], capture_output=True
        ).returncode
    ):
        pytest.skip("mounting a small file system needs root")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_full_disk(full_disk, tiny_model, dataset_folder):
    full = ["No space left"]
    refused("build --source sample --config python --output", full_disk / "out", words=full)
    assert left_in(full_disk) == []
    output = full_disk / "results"
    refused("probe", tiny_model, "--data", dataset_folder, "--output", output, words=full)
    assert not [name for name in left_in(full_disk) if name.endswith((".json", ".parquet", ".tmp"))]


@pytest.mark.slow
@pytest.mark.usefixtures("smaller", "unrendered")
def test_demo_runs(tmp_path, monkeypatch):
    """On a few functions: the whole of it is the README's first command, which CI runs."""
    for name in ("probe_models", "mask"):
        real = getattr(probing, name)
        monkeypatch.setattr(
            probing, name, lambda *which, real=real, **given: real(*which, **given, limit=3)
        )
    result = run("demo --output", tmp_path / "demo")
    finding, *rest = result.stdout.splitlines()
    assert finding.startswith(
        "On 3 functions, too few for a claim, with one guess, the attention heads of"
    )
    assert EMBEDDED in finding
    assert str((tmp_path / "demo/report/index.html").resolve()) in rest  # on a line of its own
    assert len(rest) < 30
    page = (tmp_path / "demo/report/index.html").read_text("utf-8")
    assert "Masked syntax" in page
    assert "control spans" in page
    assert "codesyntax probe microsoft/codebert-base" in result.stdout
    assert (tmp_path / "demo/codesyntax/README.md").exists()
