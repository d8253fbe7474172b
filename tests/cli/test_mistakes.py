"""A table of mistakes on the command line: what it says, in one line and in our words, and that nothing is lost or left."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.commands import run

import probing
from codesyntax_dataset.errors import LedgerError
from probing.cli import main


class Mistake(NamedTuple):
    """`words`: of what is said; `needs_a_model`: whether a loaded model tells it, or a library that takes seconds to import."""

    line: str
    status: int
    words: str
    needs_a_model: bool


def mistakes():
    _, table = Path(__file__).with_name("mistakes.txt").read_text("utf-8").split("\n\n")
    for line, words in re.findall(r"^(.*)\n    (.*)\n", table, re.MULTILINE):
        yield Mistake(
            line.removeprefix("- "),
            2 if words.startswith("usage: ") else 1,
            words.removeprefix("usage: "),
            line.startswith("- "),
        )


MISTAKES = {mistake.line: mistake for mistake in mistakes()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_model, dataset_folder):
    """Where the mistakes are made: a model, a dataset, a result, one with other numbers than its ledger, and odd files."""
    from probing import probe

    folder = tmp_path_factory.mktemp("mistakes")
    shutil.copytree(tiny_model, folder / "tiny")
    shutil.copytree(dataset_folder, folder / "data")
    (folder / "empty").mkdir()
    (folder / "file.txt").write_text("what somebody wrote\n")
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "empty.py").write_text("def f():\n    pass\n")
    (folder / "code.py").write_text("def f(x):\n    return x.y\n")
    (folder / "long.py").write_text("def f(x):\n" + "    x.y\n" * 200)
    (folder / "two.java").write_text("int f(A a) { return a.b(); } int g() { return 1; }")
    shutil.copytree(tiny_model, folder / "other")
    for model in ("tiny", "other"):
        for split in ("test", "validation"):
            probe(folder / model, folder / "data", split=split, limit=1, output=folder / "both")
    result = probe(folder / "tiny", folder / "data", limit=2, output=folder / "results")
    written, ledger = result.paths(folder / "results")
    altered = json.loads(written.read_text())
    altered["scores"]["first"]["1"] = 99.0
    (folder / "altered").mkdir()
    (folder / "altered/result.json").write_text(json.dumps(altered, indent=1) + "\n")
    shutil.copyfile(ledger, folder / "altered/result.ledger.parquet")
    (folder / "alone").mkdir()
    shutil.copyfile(written, folder / "alone/result.json")
    pq.write_table(pa.table({"a": [1]}), folder / "masked.parquet")
    (folder / "code").mkdir()
    shutil.copyfile(folder / "two.java", folder / "code/Two.java")
    return folder


def contents(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def before(folder):
    return contents(folder)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake(folder, before, monkeypatch, line):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, line.split())
    _, status, words, _ = MISTAKES[line]
    assert done.exit_code == status, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    *usage, said = done.stderr.strip().splitlines()
    assert said.startswith("Error: ")
    assert words in said
    says_steps = line.startswith("report ") or "building" in usage[0] if usage else True
    assert says_steps or (status == 2 and usage[0].startswith("Usage: "))
    assert done.stdout == ""
    assert contents(folder) == before


def test_a_folder_whose_name_breaks_a_line(folder, tmp_path):
    shutil.copytree(folder / "tiny", tmp_path / "tiny\nmodel")
    done = run("doctor", tmp_path / "tiny\nmodel", status=1)
    assert "has characters that no table can show: rename the folder" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_verify_takes_a_folder(folder):
    """One without results is not checked, which is no rejection."""
    done = run("verify", folder / "both", "--data", folder / "none", status=3)
    assert done.stdout.count("COULD NOT BE CHECKED") == 2  # two models, each on both splits
    assert run("verify", folder / "empty", status=3).stdout.endswith("COULD NOT BE CHECKED\n")


@pytest.mark.slow
def test_errors_about_a_result_in_memory_name_no_temporary_folder(folder):
    (file,) = (folder / "results").glob("*.json")
    result = probing.load(file)
    with pytest.raises(LedgerError, match="no counterpart on the split validation") as error:
        probing.scores(result)
    assert str(error.value).startswith(f"{file.name} has no counterpart")


@pytest.mark.slow
def test_score_takes_a_folder_or_a_result_as_report_does(folder):
    results = folder / "results"
    (ledger,) = results.glob("*.parquet")
    (result,) = results.glob("*.json")
    printed = run("score", ledger).stdout
    assert "mean of" in printed
    altered = folder / "altered/result.json"  # its numbers are not printed, but those of its ledger
    # a ledger given twice is scored once
    for given in ([results], [result], [altered], [result, ledger, results]):
        assert run("score", *given).stdout == printed
