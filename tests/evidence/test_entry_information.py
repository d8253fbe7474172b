"""Entries on usable information: the numbers of reports from a few whole numbers a function, and what no model can have."""

from __future__ import annotations

import csv
import json

import pytest
from conftest import cut
from huggingface_hub import HfApi
from support.hub.loopback_hub import LoopbackHub

import probing
from codesyntax_dataset.errors import EntryError, LedgerError
from probing.evidence import entry
from probing.evidence import gather as entries
from probing.evidence.effect import usable
from probing.evidence.entry import packed, unpacked
from probing.instruments.information.result import InformationResult
from probing.publish import board, submit
from probing.publish.board import OTHER_BASELINES
from probing.publish.export import export
from probing.report.board import save as save_board
from probing.report.report import report
from probing.runs.ledger_file import INFORMATION

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

DATASET, MODEL, BOARD = "user/codesyntax", "maker/tiny", "lab/results"


@pytest.fixture(scope="module")
def data(dataset_folder, tmp_path_factory):
    return cut(dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=25, validation=25)


@pytest.fixture(scope="module")
def folder(tiny_model, data, tmp_path_factory):
    place = tmp_path_factory.mktemp("informed")
    probing.inform(str(tiny_model), data, edges=40, output=place)
    return place


@pytest.fixture(scope="module")
def result(folder):
    return InformationResult.load(next(folder.glob("*.json")))


@pytest.fixture(scope="module")
def honest(folder, data):
    return json.loads(entries.of_file(next(folder.glob("*.json")), data).to_json())


def loaded(made):
    return entry.load(json.dumps(made).encode())


def test_an_entry_has_the_numbers_of_the_result(result, honest):
    scores, found = loaded(honest).scores(), usable(result)
    assert json.loads(loaded(honest).to_json()) == honest and loaded(honest).signature == result.signature
    assert result.mean.relations > 2 and scores.groups.keys() == result.relations.keys()
    expected = {
        "adds": result.mean.adds,
        "best": result.mean.best,
        "attention": result.mean.attention.uas,
        "both": result.mean.both.uas,
        "words": result.mean.words.uas,
        "open": result.mean.words.bits,
    }
    for name, score in scores.cells.items():
        assert score.mean.value == pytest.approx(expected[name], abs=1e-6)
        assert score.mean == pytest.approx(tuple(found.mean[name]), abs=1e-6)
        shares = scores.shares[list(scores.cells).index(name)]
        assert shares.sum() == pytest.approx(expected[name], abs=1e-3) and len(shares) == result.functions
    for name, of in scores.groups.items():
        ours = result.relations[name]
        assert (of.functions, of.counted) == (ours.functions, ours.edges)
        assert of.cells["adds"].mean.value == pytest.approx(ours.adds, abs=1e-6)
        assert of.cells["both"].mean.value == pytest.approx(ours.both.uas, abs=1e-6)


def changed(made, change, name):
    """A copy in which the first of the packed numbers of `name` that is not 0 is another."""
    made = json.loads(json.dumps(made))
    place = made["sums"] if name in made["sums"] else made
    numbers = unpacked(place[name], name, made["functions"] if name == "places" else _size(made)).copy()
    first = numbers.nonzero()[0][0]
    numbers[first] = change(int(numbers[first]))
    place[name] = packed(numbers)
    return made


@pytest.mark.parametrize(
    "name, change, reason",
    [
        ("both", lambda number: number + 1000, "both counts more edges than there are"),
        ("best", lambda number: number + 1000, "best counts more edges than there are"),
        ("both_bits", lambda number: 0, "both is too sure for so few edges that it finds"),
        ("places", lambda number: 10**6, "not in order"),
        ("edges", lambda number: number + 1000, "words is too sure"),
    ],
)
def test_what_no_model_can_have_is_refused(honest, name, change, reason):
    made = changed(honest, change, name)
    if name == "both_bits":  # of all functions, as in some nothing is missed
        made["sums"][name] = packed(0 * unpacked(honest["sums"][name], name, _size(honest)))
    with pytest.raises(EntryError, match=reason):
        loaded(made)


@pytest.mark.parametrize("sums", [{}, {"mine": ""}])
def test_other_sums_are_refused(honest, sums):
    with pytest.raises(EntryError, match="expected best, attention, words, both, words_bits, both_bits"):
        loaded({**honest, "sums": sums})


def _size(made):
    return len(made["relations"]) * made["functions"]


@pytest.mark.parametrize(
    "setting, value, reason",
    [
        ("control", "random-weights", "a control is not a model"),
        ("limit", "first 3", "a partial run is not published"),
        ("weights", "norm", "settings.weights is 'norm', expected 'attention'"),
        ("pool", "max", "settings.pool is 'max', expected 'sum'"),
        ("states", True, "settings.states is True, expected False"),
    ],
)
def test_controls_and_partial_runs_have_no_entry(honest, setting, value, reason):
    with pytest.raises(EntryError, match=reason):
        loaded({**honest, "settings": {**honest["settings"], setting: value}})


def test_models_share_a_table_and_its_words(honest, tmp_path):
    """One that finds fewer edges stands below; words and positions are those of most entries, whatever one claims."""
    worse = json.loads(json.dumps(honest))
    worse["settings"] |= {"model": "user/worse", "revision": "1" * 40}
    size = _size(honest)
    worse["sums"]["attention"] = packed(0 * unpacked(honest["sums"]["attention"], "", size))
    bits = {name: unpacked(honest["sums"][f"{name}_bits"], "", size) for name in ("words", "both")}
    worse["sums"]["both_bits"] = packed(bits["both"] + 10_000 * unpacked(honest["edges"], "", size))
    worse["ledger"] = "2" * 64
    third = json.loads(json.dumps(worse))
    third["settings"] |= {"model": "user/third", "revision": "3" * 40}
    third["sums"]["words_bits"] = packed(bits["words"] + 20_000 * unpacked(honest["edges"], "", size))
    third["ledger"] = "4" * 64
    for name, made in (("good", honest), ("worse", worse), ("third", third)):
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    found = board.read([tmp_path])
    (table,) = found.of(INFORMATION)
    rows = {row.model: (row, ranks) for row, ranks in zip(table.rows, table.ranks)}
    assert rows["tiny"][1]["adds"] == (1, 1) and rows["user/worse"][1]["adds"] == (2, 3)
    adds = {model: row.scores.cells["adds"].mean.value for model, (row, _) in rows.items()}
    assert adds["user/worse"] == pytest.approx(adds["tiny"] - 1, abs=1e-6)
    assert adds["user/third"] == pytest.approx(adds["user/worse"], abs=1e-6)
    assert OTHER_BASELINES in rows["user/third"][0].remarks and OTHER_BASELINES not in rows["user/worse"][0].remarks
    page = save_board(found, tmp_path / "board").read_text()
    assert "bits that attention adds" in page and "Usable information." in page
    with open(tmp_path / "board/information.csv", newline="") as file:
        told = {row["model"]: row for row in csv.DictReader(file) if row["outcome"] == "adds" and not row["relation"]}
    assert float(told["tiny"]["score"]) == pytest.approx(adds["tiny"], abs=1e-3)
    assert (told["tiny"]["first rank"], told["user/worse"]["last rank"]) == ("1", "3")


@pytest.mark.usefixtures("unrendered")
def test_reports_and_exports_have_it(folder, data, honest, tmp_path):
    report([folder], tmp_path / "report", data)
    (file,) = (tmp_path / "report/entries").iterdir()
    assert json.loads(file.read_text()) == honest
    (table,) = export([folder], tmp_path / "out")
    with table.open(newline="") as opened:
        rows = {row["number"]: row for row in csv.DictReader(opened)}
    assert float(rows["information.adds"]["mean"]) == loaded(honest).scores().cells["adds"].mean.value
    assert rows["information.adds"]["unit"] == "bits"


def test_results_of_attention_need_two_splits(evidence):
    with pytest.raises(LedgerError, match="is of attention, of which there are no entries: expected masking or inform"):
        entries.of_file(evidence.probed.files["test"])


def test_from_submit_to_a_board_that_verifies(tiny_model, data, monkeypatch, tmp_path):
    files = {path.relative_to(data).as_posix(): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    with LoopbackHub() as hub:
        hub.add(DATASET, files)
        hub.add(MODEL, {path.name: path.read_bytes() for path in tiny_model.iterdir()}, type="model")
        hub.add(BOARD, {})
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", "hf_aTokenThatNobodyMayEverSee")
        probing.inform(MODEL, str(data), edges=40, output=tmp_path / "informed")
        (request,) = submit.submission([tmp_path / "informed"], MODEL, DATASET, board=BOARD)
        request.open()
        HfApi().merge_pull_request(BOARD, 1, repo_type="dataset")
        there = hub.files(BOARD)
        (name,) = (path for path in there if path.startswith("entries/"))
        lie = changed(json.loads(there[name]), lambda bits: bits + 30_000, "words_bits")
        hub.add(BOARD, {**there, "entries/lie.json": json.dumps(lie).encode()})
        found = board.read([BOARD], data, verify=True)
        (row,) = found.tables[0].rows
        assert row.verified and row.file.endswith(name) and found.from_data == {row.table}
        (left,) = found.left_out
        assert left.file.endswith("lie.json") and "sums does not follow from its ledgers" in left.reason
        more = changed(json.loads(there[name]), lambda edges: edges + 1000, "edges")
        for choice in ("words_bits", "both_bits"):  # as unsure as so many edges ask for
            more = changed(more, lambda bits: bits + 10**8, choice)
        hub.add(BOARD, {**there, "entries/more.json": json.dumps(more).encode()})
        assert "where there are fewer" in board.read([BOARD], data).left_out[0].reason
