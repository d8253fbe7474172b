"""What commands print in a terminal of 80 columns: whole numbers; and how they end when they are stopped."""

from __future__ import annotations

import errno
import os
import pty
import re
import signal
import sys
import threading

import pytest
from support.commands import run

from probing.cli import main
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.runner import Runner

COLUMNS = 80
JAVA = "probe", "tiny", "--data", "codesyntax", "--config", "java", "--split", "test"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_model, dataset_folder):
    """The dataset, the model and results of it, under short names."""
    from probing import probe

    folder = tmp_path_factory.mktemp("terminal")
    (folder / "codesyntax").symlink_to(dataset_folder)
    (folder / "tiny").symlink_to(tiny_model)
    for split in ("test", "validation"):
        probe(
            folder / "tiny",
            folder / "codesyntax",
            "java",
            split,
            limit=40,
            output=folder / "results",
        )
    return folder


@pytest.fixture
def in_terminal(folder, monkeypatch):
    """Runs a command with a pseudo-terminal for standard output; what it prints, without codes for bold and colours."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("TERM", "xterm")

    def run(*arguments):
        ours, theirs = pty.openpty()
        printed: list[bytes] = []
        reader = threading.Thread(target=read_all, args=(ours, printed))
        reader.start()
        with open(theirs, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            main(arguments, standalone_mode=False)
        reader.join()
        os.close(ours)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(printed).decode()).replace(
            "\r\n", "\n"
        )

    return run


def read_all(descriptor, printed):
    try:
        while block := os.read(descriptor, 1 << 16):
            printed.append(block)
    except OSError as error:  # how Linux says that the other side is closed
        assert error.errno == errno.EIO


def numbers(text):
    return re.findall(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w.])", text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "results/{test}.ledger.parquet"),
        ("baseline", "--data", "codesyntax", "--config", "java"),
        ("stats", "--data", "codesyntax", "--config", "java"),
        ("errors", "results/{test}.json", "--model", "tiny", "--data", "codesyntax"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_number_is_cut_at_80_columns(in_terminal, folder, arguments):
    """Every row is no wider than the terminal, and no cell is cut; what is left out is said, and there with --wide."""
    (test,) = (
        path.name.removesuffix(".json")
        for path in (folder / "results").glob("*.test.*.json")
        if ".errors." not in path.name
    )
    arguments = [argument.format(test=test) for argument in arguments]
    narrow, wide = in_terminal(*arguments), in_terminal(*arguments, "--wide")
    assert "…" not in narrow
    assert "…" not in wide
    assert "(--wide)" in narrow or len(narrow.split()) >= len(wide.split())
    rows = [line for line in narrow.splitlines() if not line.startswith(("uas|", "left out"))]
    assert max(map(len, rows)) <= COLUMNS
    whole = {number for line in wide.splitlines() for number in numbers(line)}
    told = [row for row in rows if row.startswith(" ") and len(numbers(row)) > 1]
    assert len(told) > 15
    assert whole >= {number for row in told for number in numbers(row)}


@pytest.mark.slow
def test_a_comparison_of_labels_is_as_wide_as_the_terminal(in_terminal):
    printed = in_terminal(
        "compare-labels", "--config", "python", "--config", "python_exact", "--quiet"
    )
    assert max(map(len, printed.splitlines())) <= COLUMNS
    total = next(line for line in printed.splitlines() if line.strip().startswith("all relations"))
    assert len(numbers(total)) == 4


@pytest.mark.slow
def test_the_result_of_a_probe_shows_the_score_beside_that_of_an_offset(in_terminal):
    printed = in_terminal(*JAVA, "--limit", "4")
    (heading,) = (
        line for line in printed.splitlines() if "relation " in line and "best head" in line
    )
    assert {"k=1", "k=20", "offset"} <= {*heading.split()}


# Stopped ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, also where the tests run in the background, which ignore it from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "by, parts, status",
    [("SIGINT", 2, 130), ("SIGTERM", 2, 143), ("SIGINT", 0, 130), ("SIGTERM", 0, 143)],
)
@pytest.mark.usefixtures("interruptible")
def test_stopped_by_a_signal(folder, tmp_path, monkeypatch, by, parts, status):
    """It says that the run can go on where parts of it were kept, and only then; otherwise nothing is left."""
    real, runs = Runner.run, []

    def stops(self, *arguments):
        runs.append(self)
        if len(runs) > parts:
            os.kill(os.getpid(), getattr(signal, by))
        return real(self, *arguments)

    monkeypatch.setattr(Runner, "run", stops)
    monkeypatch.setattr(Probing, "PART", 4)
    monkeypatch.chdir(folder)
    done = run(*JAVA, "--limit 12 --output", tmp_path, status=status)
    goes_on = ": run the same command again to continue"
    *progress, last = done.stderr.strip().splitlines()
    assert last == f"Error: interrupted{goes_on if parts else ''}"
    assert all(line.startswith("probe tiny: ") for line in progress)
    assert len(list(tmp_path.rglob("*.parquet"))) == parts
    assert parts or list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_build_that_is_terminated_leaves_nothing(tmp_path, monkeypatch):
    output = tmp_path / "out"
    monkeypatch.setattr(
        "codesyntax_dataset.build._write", lambda *_: os.kill(os.getpid(), signal.SIGTERM)
    )
    done = run("build --source sample --config python --output", output, status=143)
    assert done.stderr == "Error: interrupted\n"
    assert list(tmp_path.iterdir()) == []
