"""The command line: what it prints, and what it says to bad input."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import probing
from codesyntax_dataset.errors import ModelError
from probing.cli import main
from probing.cli.group import SECTIONS
from probing.models.location import EMBEDDED

pytestmark = pytest.mark.slow


def run(*arguments):
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], catch_exceptions=False
    )


def refused(result, *words):
    """Exit status 1 and one line that says all of `words`."""
    assert result.exit_code == 1
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("Error: "))
    assert line.startswith("Error: ")
    for word in words:
        assert word in line, line
    assert result.stdout == ""


def left_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_help_imports_nothing_heavy():
    """What makes --help answer at once; the time itself is not a test's to measure."""
    code = (
        "import sys\nfrom probing.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'datasets', 'evaluate', 'numpy', 'pyarrow', 'rich', 'tree_sitter'}\n"
        "print('imported:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Usage:" in done.stdout
    assert done.stdout.endswith("imported: []\n")


def test_every_command_has_help_and_a_place_in_the_readmes(request):
    """In the table of commands by its name, and in a command of one of the guides."""
    root = request.config.rootpath
    docs = root / "probing/docs"
    others = (
        *root.glob("codesyntax_dataset/docs/*.md"),
        root / "README.md",
        root / "CONTRIBUTING.md",
    )
    files = (docs / "commands.md", *docs.glob("*.md"), *others)
    readme, *guides = (file.read_text(encoding="utf-8") for file in files)
    for name, command in main.commands.items():
        assert command.help, name
        assert f"`{name}`" in readme, name
        assert any(f"codesyntax {name}" in text for text in (readme, *guides)), name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.name}"


def test_help_of_a_group_lists_its_commands():
    done = run("push", "--help")
    assert done.exit_code == 0 and "\n  dataset " in done.stdout and "\n  metric " in done.stdout


def test_help_lists_every_command_once_in_its_section():
    lines = run("--help").stdout.splitlines()
    listed = [
        line.split()[0]
        for line in lines
        if line.startswith("  ") and line.split()[0] in main.commands
    ]
    assert sorted(listed) == sorted(main.commands)
    sections = [
        line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")
    ]
    assert sections == ["Options", *SECTIONS]


def test_the_first_habit_works(tiny_model, tmp_path, monkeypatch):
    """Without data, the sample is built, both splits are probed, and the held-out score comes first."""
    monkeypatch.chdir(tmp_path)
    done = run("probe", tiny_model, "--limit", 20)
    assert done.exit_code == 0, done.output
    assert (
        "no --data, and no dataset in the folder codesyntax: building the embedded sample there"
        in done.stderr
    )
    assert (
        tmp_path / "codesyntax/python/test.parquet"
    ).exists() and "/validation: " not in done.stdout
    first, *_ = (line for line in done.stdout.splitlines() if line.strip())
    assert "heads of tiny find" in first and "with one guess" in first
    headline, of_split = (
        done.stdout.index(text) for text in ("all edges, held-out", "published top-k UAS")
    )
    assert headline < of_split
    again = run("probe", tiny_model, "--limit", 20)
    assert "no --data" not in again.stderr and again.stdout == done.stdout


def test_what_ran_before_an_error_is_printed(tiny_model, dataset_folder, monkeypatch):
    """The second of two configs fails."""
    module = importlib.import_module("probing.instruments.attention.probe")
    ran = module.run

    def fail_in_java(experiment, *others):
        if experiment.data.config == "java":
            raise ModelError("no java")
        return ran(experiment, *others)

    monkeypatch.setattr(module, "run", fail_in_java)
    configs = ("--config", "python", "--config", "java")
    done = run("probe", tiny_model, "--data", dataset_folder, *configs, "--limit", 4)
    assert done.exit_code == 1 and "no java" in done.stderr
    assert "/test (PARTIAL" in done.stdout and "published top-k UAS" in done.stdout


def test_data_that_were_named_are_not_built(tiny_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        run("probe", tiny_model, "--data", "codesyntax").exit_code == 1 and left_in(tmp_path) == []
    )


def test_a_folder_of_code_is_measured_at_once(tiny_model, tmp_path, monkeypatch):
    """Its dataset is built, and built again by the next command, which finds the same functions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    for name in ("one", "two"):
        code = f"def {name}(x):\n    if x.a:\n        return x.b({name})\n"
        (tmp_path / "code" / f"{name}.py").write_text(code)
    asked = ("probe", tiny_model, "--data", "code", "--split", "test", "--json")
    first, second = run(*asked), run(*asked)
    assert (
        "code has code, and is no dataset: building one of it in the folder codesyntax-code"
        in first.stderr
    )
    assert first.exit_code == second.exit_code == 0 and first.stdout == second.stdout
    assert json.loads(first.stdout)["settings"]["data"].startswith("codesyntax-code@")
    (tmp_path / "alone").mkdir()
    (tmp_path / "code/one.py").rename(tmp_path / "alone/one.py")
    lacking = run("probe", tiny_model, "--data", "alone", "--split", "validation")
    assert (
        lacking.exit_code == 1
        and "known are test; its source had too few files for it" in lacking.stderr
    )
    sums = (tmp_path / "codesyntax-code/SHA256SUMS").read_bytes()
    edited = run(*asked)
    assert edited.exit_code == 1
    assert "Remove the folder codesyntax-code, or keep it and run" in edited.stderr
    assert (tmp_path / "codesyntax-code/SHA256SUMS").read_bytes() == sums


def test_probe_prints_json_alone(tiny_model, dataset_folder):
    result = run("probe", tiny_model, "--data", dataset_folder, "--limit", 4, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["settings"]["limit"] == 4


def test_probe_prints_a_table_and_score_prints_it_again(tiny_model, dataset_folder, tmp_path):
    probed = run(
        "probe",
        tiny_model,
        "--data",
        dataset_folder,
        "--split",
        "test",
        "--limit",
        4,
        "--output",
        tmp_path,
    )
    (ledger,) = tmp_path.glob("*.parquet")
    assert probed.exit_code == 0
    for words in ("If:if->test", "mean of", "PARTIAL: first 4 functions", "partial:4"):
        assert words in probed.stdout
    assert run("score", ledger).stdout == probed.stdout
    told = json.loads(ledger.with_name(ledger.name.replace(".ledger.parquet", ".json")).read_text())
    for path, place in (
        ("data_path", dataset_folder),
        ("model_path", tiny_model),
    ):  # what no ledger knows
        assert (tmp_path / told.pop(path)).samefile(place)
    assert json.loads(run("score", ledger, "--json").stdout) == told


def test_several_configs_ledgers_and_results_at_once(tiny_model, dataset_folder, tmp_path):
    data = ("--data", dataset_folder)
    probed = run(
        "probe",
        tiny_model,
        *data,
        "--config",
        "java",
        "--config",
        "python",
        "--split",
        "test",
        "--limit",
        3,
        "--output",
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
    for _ in range(2):  # the second time, a glob finds what the first one wrote
        analysed = run("errors", *sorted(tmp_path.glob("*.json")), "--model", tiny_model, *data)
        assert (analysed.exit_code, analysed.stderr.count("wrote ")) == (0, 2)
    assert (
        run("score", *sorted(tmp_path.iterdir())).stdout == probed.stdout
    )  # results, ledgers and error analyses


def test_verify_accepts_and_rejects(tiny_model, dataset_folder, tmp_path):
    run(
        "probe",
        tiny_model,
        "--data",
        dataset_folder,
        "--split",
        "test",
        "--limit",
        4,
        "--output",
        tmp_path,
    )
    (path,) = tmp_path.glob("*.json")
    accepted = run("verify", path, "--model", tiny_model, "--data", dataset_folder)
    assert accepted.exit_code == 0
    assert accepted.stdout.splitlines()[-1] == "accepted"
    path.write_text(path.read_text().replace('"functions": 4', '"functions": 5'))
    rejected = run("verify", path, "--model", tiny_model, "--data", dataset_folder)
    assert rejected.exit_code == 1
    assert rejected.stdout.splitlines()[-1] == "REJECTED"


def test_doctor(tiny_model, tmp_path):
    result = run("doctor", tiny_model)
    assert result.exit_code == 0
    assert "captured rows are the maps" in result.stdout
    refused(run("doctor", tmp_path), "cannot load the model")


# Bad input ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    """A CodeSearchNet v2 folder of one good function, and the file that holds it."""
    file = tmp_path / "csn/python/final/jsonl/test/python_test_0.jsonl.gz"
    file.parent.mkdir(parents=True)
    row = {
        "repo": "a/b",
        "path": "c.py",
        "func_name": "f",
        "code": "def f(x):\n    return x.y\n",
        "url": "u",
    }
    row |= {"language": "python", "partition": "test", "original_string": row["code"]}
    file.write_bytes(gzip.compress(json.dumps(row).encode() + b"\n"))
    return tmp_path / "csn", file


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        (
            "truncated gz",
            lambda content: gzip.compress(content * 200)[:-30],
            ["python_test_0.jsonl.gz"],
        ),
        (
            "no code",
            lambda content: gzip.compress(content.replace(b'"code"', b'"kode"')),
            ["line 1", "code"],
        ),
        (
            "no UTF-8",
            lambda content: gzip.compress(content.replace(b"return", b"ret\xffrn")),
            ["line 1", "UTF-8"],
        ),
        ("no JSON", lambda content: gzip.compress(content + b"{\n"), ["line 2"]),
    ],
)
def test_bad_sources(source, tmp_path, name, damage, words):
    folder, file = source
    output = tmp_path / "out"
    file.write_bytes(damage(gzip.decompress(file.read_bytes())))
    refused(run("build", "--source", folder, "--config", "python", "--output", output), *words)
    assert not [path for path in tmp_path.iterdir() if path.name != "csn"]


def test_unknown_config(source, tmp_path):
    refused(
        run("build", "--source", source[0], "--config", "pyton", "--output", tmp_path / "out"),
        "did you mean 'python'?",
    )


def test_source_that_is_not_there(tmp_path):
    refused(run("build", "--source", tmp_path / "none", "--config", "python"), "does not exist")


def test_probe_with_bad_names(tiny_model, dataset_folder, tmp_path):
    output = tmp_path / "results"
    data = ("--data", dataset_folder, "--output", output)
    refused(
        run("probe", "nobody/no-such-model", *data),
        "nobody/no-such-model",
        "not in the cache, and the Hub cannot be reached",
    )
    refused(
        run("probe", tiny_model, "--data", tmp_path, "--output", output),
        "is not a dataset",
        "codesyntax build",
    )
    refused(run("probe", tiny_model, *data, "--config", "jaba"), "did you mean 'java'?")
    assert not output.exists()


def test_seeds_are_not_negative(tmp_path):
    for command in (
        ("probe", "model", "--control", "redrawn-dependents"),
        ("verify", tmp_path / "result.json"),
    ):
        result = run(*command, "--seed", "-1")
        assert result.exit_code == 2 and "-1 is not in the range x>=0" in result.output


def test_model_without_a_fast_tokenizer(tiny_model, dataset_folder, tmp_path):
    """ByT5's tokenizer works on bytes and has no fast form."""
    from transformers import AutoTokenizer, ByT5Tokenizer, T5Config, T5EncoderModel

    folder = tmp_path / "byt5"
    ByT5Tokenizer().save_pretrained(folder)
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 384}
    T5EncoderModel(T5Config(**sizes)).save_pretrained(folder)
    assert not AutoTokenizer.from_pretrained(folder).is_fast
    refused(run("probe", folder, "--data", dataset_folder), "fast")


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


def test_full_disk(full_disk, tiny_model, dataset_folder):
    refused(
        run("build", "--source", "sample", "--config", "python", "--output", full_disk / "out"),
        "No space left",
    )
    assert left_in(full_disk) == []
    refused(
        run("probe", tiny_model, "--data", dataset_folder, "--output", full_disk / "results"),
        "No space left",
    )
    assert not [name for name in left_in(full_disk) if name.endswith((".json", ".parquet", ".tmp"))]


@pytest.mark.usefixtures("unrendered")
def test_demo_runs(tmp_path, monkeypatch):
    """On a few functions: the whole of it is the README's first command, which CI runs."""
    for name in ("probe_models", "mask"):
        real = getattr(probing, name)
        monkeypatch.setattr(
            probing, name, lambda *which, real=real, **given: real(*which, **given, limit=3)
        )
    result = run("demo", "--output", tmp_path / "demo")
    assert result.exit_code == 0
    finding, *rest = result.stdout.splitlines()
    assert (
        finding.startswith("In python, ")
        and "the attention heads of" in finding
        and EMBEDDED in finding
    )
    assert str((tmp_path / "demo/report/index.html").resolve()) in rest  # on a line of its own
    assert len(rest) < 30
    page = (tmp_path / "demo/report/index.html").read_text("utf-8")
    assert "masked syntax" in page and "control spans" in page
    assert "codesyntax probe microsoft/codebert-base" in result.stdout
    assert (tmp_path / "demo/codesyntax/README.md").exists()
