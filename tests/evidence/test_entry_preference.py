"""Entries on minimal pairs: the numbers of reports from halves of pairs by repository, submitted, ranked and verified."""

from __future__ import annotations

import csv
import json

import datasets
import pytest
from huggingface_hub import HfApi
from support.hub.loopback_hub import LoopbackHub
from support.models.minimal_pairs import PAIRS, pairs_folder, tiny_decoder

from codesyntax_dataset.errors import EntryError
from probing import prefer
from probing.evidence import entry
from probing.evidence import gather as entries
from probing.evidence.effect import preferred
from probing.evidence.entry import packed, unpacked
from probing.instruments.likelihood.result import SCORES, PreferenceResult
from probing.publish import board, submit
from probing.publish.export import export
from probing.report.board import save as save_board
from probing.report.report import report
from probing.runs.ledger_file import PREFERENCE

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

DATASET, MODEL, BOARD = "user/codesyntax", "maker/tiny", "lab/results"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_decoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return pairs_folder(tmp_path_factory.mktemp("data") / "codesyntax")


@pytest.fixture(scope="module")
def folder(model, data, tmp_path_factory):
    place = tmp_path_factory.mktemp("preferred")
    prefer(model, data, output=place)
    return place


@pytest.fixture(scope="module")
def result(folder):
    return PreferenceResult.load(next(folder.glob("*.json")))


@pytest.fixture(scope="module")
def honest(folder, data):
    return json.loads(entries.of_file(next(folder.glob("*.json")), data).to_json())


def loaded(made):
    return entry.load(json.dumps(made).encode())


def numbers(made, name):
    text = made[name] if name == "edges" else made["sums"][name]
    return unpacked(text, name, len(made["relations"]) * made["functions"]).copy()


def test_an_entry_has_the_numbers_of_the_result(result, honest):
    scores, found = loaded(honest).scores(), preferred(result)
    assert loaded(honest).signature == result.signature
    assert scores.headline == pytest.approx(result.mean.whole) and honest["functions"] == 8
    for at, name in enumerate(SCORES):
        assert scores.cells[name].mean == pytest.approx(tuple(found.mean[at]))
        for phenomenon, of in scores.groups.items():
            assert of.counted == result.phenomena[phenomenon].pairs
            assert of.cells[name].mean == pytest.approx(tuple(found.groups["phenomena"][phenomenon][at]))


def test_what_no_model_can_have_is_refused(honest):
    more = json.loads(json.dumps(honest))
    more["sums"]["place"] = packed(numbers(honest, "place") + 99)
    with pytest.raises(EntryError, match="place counts more pairs than there are"):
        loaded(more)
    with pytest.raises(EntryError, match="a control is not a model"):
        loaded({**honest, "settings": {**honest["settings"], "control": "random-weights"}})
    with pytest.raises(EntryError, match="verified is 61 of 61 functions, but the entry has 1 to 60"):
        loaded({**honest, "verified": {"functions": 61, "of": 61}})
    assert loaded({**honest, "verified": {"functions": 60, "of": 60}}).verified.of == len(PAIRS)


def test_models_share_a_table(honest, folder, data, tmp_path):
    """One that is wrong about every pair stands below."""
    worse = json.loads(json.dumps(honest))
    worse["settings"] |= {"model": "user/worse", "revision": "1" * 40}
    worse["sums"] = {name: packed(0 * numbers(honest, name)) for name in SCORES}
    worse["ledger"] = "2" * 64
    better = json.loads(json.dumps(worse))
    better["settings"] |= {"model": "user/better", "revision": "3" * 40}
    better["sums"] = {name: packed(2 * numbers(honest, "edges")) for name in SCORES}
    for name, made in (("worse", worse), ("better", better)):
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    (table,) = board.read([tmp_path], data).of(PREFERENCE)
    assert {row.model: (row.scores.headline, ranks["whole"]) for row, ranks in zip(table.rows, table.ranks)} == {
        "user/better": (100.0, (1, 1)),
        "user/worse": (0.0, (2, 2)),
    }
    page = save_board(board.read([tmp_path]), tmp_path / "board").read_text()
    assert "Minimal pairs." in page and "8 repositories" in page
    report([folder], tmp_path / "report", data)
    (file,) = (tmp_path / "report/entries").iterdir()
    assert json.loads(file.read_text()) == honest
    (exported,) = export([folder], tmp_path / "out")
    with exported.open(newline="") as opened:
        rows = {row["number"]: row for row in csv.DictReader(opened)}
    assert float(rows["preference.whole"]["mean"]) == loaded(honest).scores().headline


def test_from_submit_to_a_board_that_verifies(model, data, monkeypatch, tmp_path):
    files = {path.relative_to(data).as_posix(): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    with LoopbackHub() as hub:
        hub.add(DATASET, {**files, "eval.yaml": b"tasks: []\n"})
        hub.add(MODEL, {path.name: path.read_bytes() for path in model.iterdir()}, type="model")
        hub.add(BOARD, {})
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", "hf_aTokenThatNobodyMayEverSee")
        prefer(MODEL, str(data), output=tmp_path / "preferred")
        (request,) = submit.submission([tmp_path / "preferred"], MODEL, DATASET, board=BOARD)
        request.open()
        HfApi().merge_pull_request(BOARD, 1, repo_type="dataset")
        there = hub.files(BOARD)
        (name,) = (path for path in there if path.startswith("entries/"))
        lie = json.loads(there[name])
        lie["sums"]["whole"] = packed(2 * numbers(lie, "edges"))
        hub.add(BOARD, {**there, "entries/lie.json": json.dumps(lie).encode()})
        found = board.read([BOARD], data, verify=True)
        (row,) = found.tables[0].rows
        assert row.verified[1] == len(PAIRS) and row.file.endswith(name) and found.from_data == {row.table}
        (left,) = found.left_out
        assert left.file.endswith("lie.json") and "sums does not follow from its ledgers" in left.reason
        more = json.loads(there[name])
        more["edges"] = packed(numbers(more, "edges") + 1)
        hub.add(BOARD, {**there, "entries/more.json": json.dumps(more).encode()})
        assert "where there are fewer" in board.read([BOARD], data).left_out[0].reason
        others = [{**row, "repo": "one/other"} for row in PAIRS]
        other = pairs_folder(tmp_path / "codesyntax", datasets.Dataset.from_list(others))
        assert not board.read([BOARD], other).from_data
