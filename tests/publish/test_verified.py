"""From `submit` to `board --verify` on the loopback Hub, with honest, lying and spoofing submitters."""

from __future__ import annotations

import copy
import re

import pytest
from conftest import cut
from support.attacks.entries import SUBMITTED
from support.attacks.results import halved, recomputed, with_settings
from support.commands import run
from support.evidence.entries import entry_of
from support.evidence.hits_files import opened, written
from support.files import contents, csv_rows
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset.errors import DatasetError, EntryError, LedgerError
from probing import probe
from probing.evidence import submission
from probing.evidence.gather import find, gather
from probing.evidence.verify import Criterion, Verification
from probing.publish import verified
from probing.publish.board import read
from probing.publish.verified import Checker, ledger_file
from probing.runs.saved import ledger_path

pytestmark = pytest.mark.slow

DATASET, MODEL, OTHER, BOARD = "user/codesyntax", "maker/tiny", "liar/other", "lab/results"


def ledgers_of(evidence):
    """The files of both ledgers by their digests."""
    both = zip((evidence.probed.test, evidence.probed.validation), evidence.probed.files.values())
    return {result.ledger.digest(): ledger_path(file) for result, file in both}


def by_hand(folder, data):
    """What `submit` would send to a board, without its checks."""
    (evidence,) = gather(find([folder]), data)
    sent = entry_of(evidence, data)
    files = {f"entries/{sent.file_name}": sent.to_bytes()}
    ledgers = ledgers_of(evidence).items()
    return files | {ledger_file(digest): file.read_bytes() for digest, file in ledgers}


def test_a_board_verifies_the_honest_and_refutes_others(
    tiny_model, dataset_folder, monkeypatch, tmp_path_factory, tmp_path
):
    """Of a model as it is, of one whose ranks are made up, and of one in a pull request."""
    data = cut(dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=8, validation=5)
    weights = contents(tiny_model)
    with LoopbackHub() as hub:
        hub.add(DATASET, contents(data))
        hub.add(MODEL, weights, type="model")
        hub.add(OTHER, weights | {"note.txt": b"another commit"}, type="model")
        request = {"revision": "refs/pr/1", "type": "model"}
        hub.add(MODEL, weights | {"note.txt": b"other weights"}, **request)
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", "hf_aTokenThatNobodyMayEverSee")
        for model in (MODEL, OTHER, f"{MODEL}@refs/pr/1"):
            for split in ("test", "validation"):
                probe(model, str(data), "python", split, output=tmp_path / model)
        of_request = tmp_path / f"{MODEL}@refs/pr/1"
        recomputed(of_request, with_settings(model=MODEL))
        recomputed(tmp_path / OTHER, halved, ["test"])
        honest, lie, request = (
            by_hand(folder, data) for folder in (tmp_path / MODEL, tmp_path / OTHER, of_request)
        )
        hub.add(BOARD, honest | lie | request)
        done = run("board", BOARD, "--data", data, "--verify --output", tmp_path / "board")
    for files, reason in (
        (lie, "refuted: numbers: .*above what came out"),
        (request, "refuted: revision: .*on no branch or tag of maker/tiny"),
    ):
        assert re.search(f"left out .*{re.escape(next(iter(files)))}: {reason}", done.stderr)
    tables = (tmp_path / "board" / "tables").iterdir()
    (file,) = (file for file in tables if file.stem != "left-out")
    shown = {row["verified"] for row in csv_rows(file) if row["name"] == MODEL}
    assert shown == {"13 of 13, main"}


@pytest.fixture(scope="module")
def submitted(tiny_model, few_functions, tmp_path_factory):
    """An honest entry of a model that could not read some functions, what checks it, and its ledgers by digest."""
    folder = tmp_path_factory.mktemp("submitted")
    for split in ("test", "validation"):
        probe(str(tiny_model), few_functions, "python", split, max_length=200, output=folder)
    made = gather(find([folder]), few_functions)[0]
    honest = opened(entry_of(made, few_functions).to_bytes())
    return honest, Checker(str(few_functions)), ledgers_of(made).get


ACCEPTED = [Verification([Criterion("ranks", True, "")])] * 2


@pytest.fixture(scope="module", autouse=True)
def remade_once():
    """What follows from the same results is worked out once."""
    remade, real = {}, verified.submission_of

    def submission_of(results, data):
        key = tuple(result.ledger.digest() for result in results.read.values())
        if key not in remade:
            remade[key] = real(results, data)
        return remade[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verified, "submission_of", submission_of)
        yield


def test_the_honest_entry_is_that_of_its_ledgers(submitted, monkeypatch):
    monkeypatch.setattr("probing.evidence.verify.verify_each", lambda *_, **__: ACCEPTED)
    assert len(submitted[0]["unread"]) > 2 and submitted[0]["tables"]["beyond-offset"]
    assert checked(submitted, lambda fields: None) == ""


def checked(submitted, change):
    """What a board does with an entry: the reason why it is not verified, empty if it is."""
    honest, checker, ledger = submitted
    fields = copy.deepcopy(honest)
    change(fields)
    try:
        made = submission.load(written(fields))
        checker.check(made)
        assert checker.again(made, ledger) == (0, 0, "")
    except (EntryError, LedgerError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("attack", SUBMITTED, ids=lambda attack: attack.name)
def test_entries_that_are_not_those_of_their_ledgers(attack, submitted, monkeypatch):
    """None is verified, whatever the models would give again."""
    monkeypatch.setattr("probing.evidence.verify.verify_each", lambda *_, **__: ACCEPTED)
    reason = checked(submitted, attack.forge)
    assert reason and re.search(attack.stopped_by, reason), reason


def test_whoever_replaces_a_ledger_refutes_nobody(submitted):
    """A file with the content of another one under its digest: the entry stays claimed."""
    honest, checker, ledger = submitted
    entry = submission.load(written(honest))
    exchanged = dict(zip(entry.digests.values(), [*entry.digests.values()][::-1]))
    with pytest.raises(LedgerError, match="is another one"):
        checker.again(entry, lambda digest: ledger(exchanged[digest]))
    with pytest.raises(LedgerError, match="is missing beside the entry"):
        checker.again(entry, lambda digest: None)


def test_data_that_is_not_there_is_no_reason_to_believe(python_entry, tmp_path):
    with pytest.raises(DatasetError):
        read([python_entry], tmp_path / "nothing")


def test_entries_of_other_data_are_left_out(python_entry, dataset_folder):
    """Of the whole sample, whose labels are others."""
    with pytest.raises(
        EntryError, match=r"one.hits.parquet \(its labels are not those of the data"
    ):
        read([python_entry], dataset_folder)


@pytest.fixture
def python_entry(evidence, tmp_path):
    (tmp_path / "entries").mkdir()
    (tmp_path / "entries" / "one.hits.parquet").write_bytes(entry_of(evidence).to_bytes())
    return tmp_path
