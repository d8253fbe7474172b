"""From `submit` to `board --verify` on the loopback Hub, with honest, lying and spoofing submitters."""

from __future__ import annotations

import copy
import csv
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import cut
from huggingface_hub import HfApi
from support.attacks.entries import PROTOCOLS, SUBMITTED, nothing_hit, settings
from support.attacks.results import halved, recomputed, with_settings
from support.evidence.entries import of_model, other_model, settled
from support.evidence.hits_files import opened, written
from support.hub.loopback_hub import LoopbackHub, contents

from codesyntax_dataset.errors import DatasetError, EntryError, LedgerError
from probing import probe
from probing.cli import main
from probing.evidence import submission
from probing.evidence.gather import find, gather
from probing.evidence.verify import Criterion, Verification
from probing.publish import submit, verified
from probing.publish.board import read
from probing.publish.verified import Checker, ledger_file
from probing.runs.saved import ledger_path

pytestmark = pytest.mark.slow

DATASET, MODEL, OTHER, BOARD = "user/codesyntax", "maker/tiny", "liar/other", "lab/results"


def by_hand(folder: Path, data: Path) -> dict[str, bytes]:
    """What `submit` would send to a board, without its checks."""
    made = gather(find([folder]), data)[0]
    sent = made.submission()
    files = {f"entries/{sent.file_name}": sent.to_bytes()}
    both = zip((made.probed.test, made.probed.validation), made.probed.files.values())
    return files | {
        ledger_file(result.ledger.digest()): ledger_path(file).read_bytes() for result, file in both
    }


def test_the_journey_from_submit_to_a_verified_board(
    tiny_model, dataset_folder, monkeypatch, tmp_path_factory, tmp_path
):
    data = cut(dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=8, validation=5)
    with LoopbackHub() as hub:
        hub.add(DATASET, contents(data))
        hub.add(MODEL, contents(tiny_model), type="model")
        hub.add(OTHER, {**contents(tiny_model), "note.txt": b"another commit"}, type="model")
        hub.add(BOARD, {})
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", "hf_aTokenThatNobodyMayEverSee")
        hub.add(
            MODEL,
            {**contents(tiny_model), "note.txt": b"other weights"},
            revision="refs/pr/1",
            type="model",
        )
        for model, folder in (
            (MODEL, "honest"),
            (OTHER, "lying"),
            (f"{MODEL}@refs/pr/1", "request"),
        ):
            for split in ("test", "validation"):
                probe(model, str(data), "python", split, output=tmp_path / folder)
        recomputed(tmp_path / "request", with_settings(model=MODEL))
        for request in submit.submission([tmp_path / "honest"], MODEL, DATASET, board=BOARD):
            request.open()
        HfApi().merge_pull_request(BOARD, 1, repo_type="dataset")
        honest = hub.files(BOARD)
        (name,) = (path for path in honest if path.startswith("entries/"))
        assert sum(path.startswith("ledgers/") for path in honest) == 2
        recomputed(tmp_path / "lying", halved, ["test"])
        entry = opened(honest[name])
        spoofed = {**settled(entry, "maker/t1ny"), "ledgers": entry["ledgers"]}
        made = gather(find([tmp_path / "honest"]), data)[0]
        lower = opened(other_model(made, MODEL, -0.9).submission().to_bytes())
        settings(lower, model="MAKER/Tiny")
        request = by_hand(tmp_path / "request", data)
        files = {**honest, **by_hand(tmp_path / "lying", data), **request}
        files |= {
            f"entries/{at}.hits.parquet": written(of)
            for at, of in (("spoof", spoofed), ("low", lower))
        }
        hub.add(BOARD, files)

        command = [
            "board",
            BOARD,
            "--data",
            str(data),
            "--verify",
            "--output",
            str(tmp_path / "board"),
        ]
        done = CliRunner().invoke(main, command, catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
        left = {
            line.split(": ")[0].rsplit("/", 1)[1]: line
            for line in done.stderr.splitlines()
            if "left out " in line[:9]
        }
        assert "refuted: the ledger" in left.pop("spoof.hits.parquet")
        assert "which this board verified" in left.pop("low.hits.parquet")
        (of_request,) = (path.rpartition("/")[2] for path in request if path.startswith("entries/"))
        assert "refuted: revision: " in left[
            of_request
        ] and "on no branch or tag of maker/tiny" in left.pop(of_request)
        (lie,) = left.values()
        assert "refuted: ranks:" in lie and "differ by more than rounding" in lie
        (table,) = (tmp_path / "board" / "tables").glob("python*.csv")
        with table.open(newline="") as file:
            shown = {(row["name"], row["verified"]) for row in csv.DictReader(file)}
        assert {name for name in shown if name[1]} == {(MODEL, "13 of 13, main")}


@pytest.fixture(scope="module")
def submitted(tiny_model, few_functions, tmp_path_factory):
    """An honest entry of a model that could not read some functions, what checks it, and its ledgers by digest."""
    folder = tmp_path_factory.mktemp("submitted")
    for split in ("test", "validation"):
        probe(str(tiny_model), few_functions, "python", split, max_length=200, output=folder)
    made = gather(find([folder]), few_functions)[0]
    both = zip((made.probed.test, made.probed.validation), made.probed.files.values())
    ledgers = {result.ledger.digest(): ledger_path(file) for result, file in both}
    return opened(made.submission().to_bytes()), Checker(str(few_functions)), ledgers.get


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


def test_baselines_come_from_the_data(evidence, python_entry, few_functions):
    """An entry whose baselines find nothing is left out."""
    forged = of_model(evidence, "user/winner", 0.1)
    for protocol in PROTOCOLS:
        nothing_hit(forged, protocol, "offset", "keyword")
    (python_entry / "entries" / "winner.hits.parquet").write_bytes(written(forged))
    found = read([python_entry], few_functions)
    assert [len(table.rows) for table in found.tables] == [1]
    assert [reason for _, reason in found.left_out] == ["its baselines differ from the data's"]


@pytest.fixture
def python_entry(evidence, tmp_path):
    (tmp_path / "entries").mkdir()
    (tmp_path / "entries" / "one.hits.parquet").write_bytes(evidence.submission().to_bytes())
    return tmp_path
