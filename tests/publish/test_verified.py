"""From `submit` to `board --verify` on the loopback Hub: honest, lying and spoofing submitters, and what stands there."""

from __future__ import annotations

import os
import re
import shutil
import signal

import pytest
from conftest import cut
from support.attacks.results import halved, recomputed
from support.commands import run
from support.evidence.models import with_settings
from support.files import contents, csv_rows
from support.hub.loopback_hub import LoopbackHub
from support.processes import changing, codesyntax, ended, start

from codesyntax_dataset.errors import SubmissionError
from probing import probe
from probing.evidence.submission import submissions_in
from probing.instruments.attention.probe import Probing
from probing.publish.board import read
from probing.publish.submit import _files_of

pytestmark = pytest.mark.slow

DATASET, MODEL, OTHER, BOARD = "user/codesyntax", "maker/tiny", "liar/other", "lab/results"


@pytest.fixture(scope="module")
def data(dataset_folder, tmp_path_factory):
    return cut(dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=8, validation=5)


@pytest.fixture
def hub(tiny_model, data, monkeypatch, tmp_path):
    """Two models, and weights of a pull request."""
    weights = contents(tiny_model)
    with LoopbackHub() as hub:
        hub.add(DATASET, contents(data))
        hub.add(BOARD, {})
        hub.add(MODEL, weights, type="model")
        hub.add(OTHER, weights | {"note.txt": b"another commit"}, type="model")
        request = {"revision": "refs/pr/1", "type": "model"}
        hub.add(MODEL, weights | {"note.txt": b"other weights"}, **request)
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", "hf_aTokenThatNobodyMayEverSee")
        monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "kept"))
        yield hub


def probed(model, data, folder):
    for split in ("test", "validation"):
        probe(model, str(data), "python", split, output=folder)
    return folder


def sent_by_hand(folder, model):
    """What `submit` would send to a board, without its checks."""
    (submission,) = submissions_in([folder])
    files = _files_of(submission, f"submissions/{model}/{submission.name}")
    return {
        name: content.encode() if isinstance(content, str) else content
        for name, content in files.items()
    }


def test_a_board_shows_what_came_out(hub, data, tmp_path):
    """Of a model as it is, of one whose ranks are made up, and of one in a pull request."""
    honest = probed(MODEL, data, tmp_path / "honest")
    lie = probed(OTHER, data, tmp_path / "lie")
    recomputed(lie, halved)
    request = probed(f"{MODEL}@refs/pr/1", data, tmp_path / "request")
    recomputed(request, lambda ledger: with_settings(ledger, model=MODEL))
    files = sent_by_hand(honest, MODEL) | sent_by_hand(lie, OTHER) | sent_by_hand(request, MODEL)
    hub.add(BOARD, files)
    done = run("board", BOARD, "--data", data, "--verify --output", tmp_path / "board")
    assert done.stderr.splitlines()[-1] == "verified: 2, claimed: 0, tables: 1, left out: 1"
    assert re.search(
        r"left out lab/results/submissions/maker/.* is on no branch or tag", done.stderr
    )
    tables = [file for file in (tmp_path / "board/tables").iterdir() if file.stem != "left-out"]
    assert len(tables) == 1
    rows = {
        row["name"]: row for row in csv_rows(tables[0]) if (row["rule"], row["k"]) == ("first", "1")
    }
    numbers = [name for name in rows[MODEL] if "score" in name or "rank" in name]
    assert [rows[MODEL][name] for name in numbers] == [rows[OTHER][name] for name in numbers]
    assert (rows[MODEL]["claimed"], rows[MODEL]["branch"]) == ("", "main")
    assert re.match(r"held-out \d", rows[OTHER]["claimed"])


def test_an_open_pull_request_is_told(hub, data, tmp_path):
    """Right after `submit`, on an empty board, and beside others."""
    folder = probed(MODEL, data, tmp_path / "honest")
    submit = ("submit", folder, "--model", MODEL, "--dataset", DATASET, "--board", BOARD)
    assert "/discussions/1" in run(*submit).stdout
    told = "pull request 1 of lab/results is open: merge it, or read it as lab/results@refs/pr/1"
    with pytest.raises(SubmissionError, match=told):
        read([BOARD], str(data))
    (table,) = read([f"{BOARD}@refs/pr/1"], str(data)).tables
    assert [row.model for row in table.claimed] == [MODEL]
    hub.add(BOARD, sent_by_hand(folder, MODEL))
    assert told in run("board", BOARD, "--data", data, "--output", tmp_path / "board").stderr


def test_a_local_model_is_run_from_its_repository(hub, tiny_model, data, tmp_path):
    """Its results have the digest of its weights, which those in the repository have, too; others have not."""
    folder = probed(str(tiny_model), data, tmp_path / "local")
    hub.add(BOARD, sent_by_hand(folder, MODEL))
    (table,) = read([BOARD], str(data), verify=True).tables
    assert [row.model for row in table.verified] == [MODEL]
    recomputed(folder, lambda ledger: with_settings(ledger, revision="0" * 64))
    hub.add(BOARD, sent_by_hand(folder, MODEL))
    (table,) = read([BOARD], str(data), verify=True).tables
    assert (table.verified, [row.model for row in table.claimed]) == ([], [MODEL])


def test_a_submission_in_the_folder_of_another_is_left_out(hub, data, tmp_path):
    folder = probed(MODEL, data, tmp_path / "honest")
    hub.add(BOARD, sent_by_hand(folder, OTHER))
    with pytest.raises(
        SubmissionError, match="is of maker/tiny, but lies in the folder of liar/oth"
    ):
        read([BOARD], str(data))


def test_what_is_known_is_not_downloaded_again(hub, data, tmp_path, monkeypatch):
    """Nor run again; and a run that was interrupted goes on, to the same numbers."""
    hub.add(BOARD, sent_by_hand(probed(MODEL, data, tmp_path / "honest"), MODEL))
    for file in (tmp_path / "kept").glob("*"):
        file.unlink()
    monkeypatch.setattr(Probing, "PART", 4)
    run_real, ran = Probing.run, []

    def interrupted(self, part, bar):
        if len(ran) == 3:
            ran.append(None)
            raise KeyboardInterrupt
        ran.append(len(part))
        return run_real(self, part, bar)

    monkeypatch.setattr(Probing, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read([BOARD], str(data), verify=True)
    (table,) = read([BOARD], str(data), verify=True).tables
    done = sum(filter(None, ran))
    assert done == 8 + 5  # functions of test and validation, each once
    before = len(hub.requests)
    (again,) = read([BOARD], str(data), verify=True).tables
    assert not any("/resolve/" in request for request in hub.requests[before:])
    assert sum(filter(None, ran)) == done
    for cell, mean in table.verified[0].means.items():
        assert again.verified[0].means[cell][:3] == mean[:3]


@pytest.mark.long
def test_a_board_that_is_killed_goes_on_to_the_same_bytes(hub, data, tmp_path, monkeypatch):
    """Before five of its changes to files, from the first download to the last page."""
    monkeypatch.setattr(Probing, "PART", 2)
    hub.add(BOARD, sent_by_hand(probed(MODEL, data, tmp_path / "honest"), MODEL))
    log, output, counted = tmp_path / "log", tmp_path / "board", tmp_path / "count"
    work = codesyntax(["board", BOARD, "--data", str(data), "--verify", "--output", str(output)])

    def made(act):
        return ended(start(work, log, prepare=lambda: changing(act)))

    def forgotten():
        for folder in (tmp_path / "kept", tmp_path / "cache", output):
            shutil.rmtree(folder, ignore_errors=True)

    forgotten()
    with counted.open("wb", buffering=0) as file:
        assert made(lambda _: file.write(b".")) == 0, log.read_text()
    usual = contents(output)
    for share in (0.05, 0.3, 0.5, 0.7, 0.95):
        at = round(share * counted.stat().st_size)
        forgotten()
        killed = made(lambda count, at=at: count == at and os.kill(os.getpid(), signal.SIGKILL))
        assert killed == -signal.SIGKILL
        assert made(lambda _: None) == 0, log.read_text()
        assert contents(output) == usual


def test_no_place_of_this_computer_is_sent(data, tiny_model, tmp_path):
    files = sent_by_hand(probed(str(tiny_model), data, tmp_path / "local"), MODEL)
    for content in files.values():
        assert bytes(tmp_path) not in content
        assert b"model_path" not in content
