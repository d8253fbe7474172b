"""Results in files: which are taken as those of an earlier run, and what is told of the others."""

from __future__ import annotations

import copy
import dataclasses
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import RULES, SCORING_VERSION
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.instruments.information.result import InformationLedger
from probing.instruments.likelihood.result import PreferenceLedger, SurprisalLedger
from probing.runs.saved import check_result_file, found_at, path_from

RECORDED: dict[str, Any] = {
    "settings": {
        "model": "user/model",
        "revision": "0" * 40,
        "data": "codesyntax@1.0.0",
        "labels": "0" * 12,
        "config": "python",
        "split": "test",
        "max_length": 511,
        "limit": None,
        "dtype": "float32",
        "direction": "head-to-dependent",
    },
    "scoring": SCORING_VERSION,
    "skips": {},
    "ties": dict.fromkeys(RULES, 0),
    "run": {"device": "cpu", "attention": "captured", "attention_why": ""},
    "versions": {},
}


@pytest.fixture
def result():
    """Of one edge in each of three functions, which the only head finds."""
    places = np.arange(3, dtype=np.int32)
    ledger = RankLedger(
        relations=["If:if->test"],
        function=places,
        relation=0 * places,
        head=0 * places,
        first=0 * places + 1,
        last=0 * places + 1,
        tokens=0 * places + 9,
        ranks=np.zeros((len(RULES), 3, 1, 1), np.uint8),
        settings=copy.deepcopy(RECORDED),
    )
    return ProbeResult.from_ledger(ledger)


# Earlier runs --------------------------------------------------------------------------------------------------------


def test_a_finished_run_is_found_with_the_place_of_its_data(result, tmp_path, caplog):
    file = result.save(tmp_path)
    found = ProbeResult.finished(file, RECORDED, Path("data"))
    assert found == result
    assert found.data_folder == Path("data")
    assert not caplog.records


def test_where_nothing_was_run_nothing_is_told(tmp_path, caplog):
    assert ProbeResult.finished(tmp_path / "none.json", RECORDED, None) is None
    assert not caplog.records


@pytest.mark.parametrize("damaged", ["{", '{"format": 2}', ""])
def test_a_damaged_file_of_an_earlier_run_is_told(damaged, result, tmp_path, caplog):
    file = result.save(tmp_path)
    file.write_text(damaged)
    assert ProbeResult.finished(file, RECORDED, None) is None
    assert [(record.levelname, record.name) for record in caplog.records] == [
        ("WARNING", "probing.runs.saved")
    ]
    assert caplog.messages[0].startswith(f"{file} cannot be reused: ")


def test_a_result_without_its_ledger_is_told(result, tmp_path, caplog):
    file = result.save(tmp_path)
    result.paths(tmp_path)[1].unlink()
    assert ProbeResult.finished(file, RECORDED, None) is None
    assert len(caplog.messages) == 1
    assert "cannot be reused" in caplog.text


def test_a_run_of_other_settings_is_another_run(result, tmp_path, caplog):
    """Nothing is wrong with its file."""
    file = result.save(tmp_path)
    for changed in ({"scoring": 0}, {"versions": {"torch": "0"}}):
        assert ProbeResult.finished(file, {**RECORDED, **changed}, None) is None
    assert not caplog.records


# Ledgers and the results beside them ---------------------------------------------------------------------------------


@pytest.fixture
def another(result):
    """Of the same settings, in which the head finds one edge less."""
    ranks = np.array(result.ledger.ranks)
    ranks[:, 0] = 9
    return ProbeResult.from_ledger(dataclasses.replace(result.ledger, ranks=ranks))


def test_a_ledger_is_scored_alone_or_beside_its_own_result(result, another, tmp_path):
    """A result that does not say of which ledger it is may be of this one, whatever else is wrong with it."""
    file = result.save(tmp_path)
    _, ledger = result.paths(tmp_path)
    assert ProbeResult.scored(ledger) == result
    for text in ('{"format": 2}', "{", ""):
        file.write_text(text)
        assert ProbeResult.scored(ledger) == result
    file.unlink()
    assert ProbeResult.scored(ledger) == result
    file.write_text(another.to_json())
    with pytest.raises(LedgerError, match="is not the ledger of the result beside it"):
        ProbeResult.scored(ledger)


def test_beside_a_ledger_of_another_name_there_is_no_result(result, another, tmp_path):
    result.ledger.save(tmp_path / "ledger.parquet")
    (tmp_path / "ledger.parquet.json").write_text(another.to_json())
    assert ProbeResult.scored(tmp_path / "ledger.parquet") == result


@pytest.mark.parametrize("version", [None, SCORING_VERSION - 1, SCORING_VERSION + 1])
def test_a_ledger_of_another_version_is_refused(version, result):
    """An older or a newer one; the first version said nothing of itself."""
    settings = {name: value for name, value in RECORDED.items() if name != "scoring"}
    if version is not None:
        settings["scoring"] = version
    told = f"scoring {version or 1}; this is scoring {SCORING_VERSION}, and the two do not compare"
    with pytest.raises(LedgerError, match=told):
        ProbeResult.from_ledger(dataclasses.replace(result.ledger, settings=settings))


@pytest.mark.parametrize(
    "changed, title",
    [
        ({}, "user/model on codesyntax@1.0.0, python/test"),
        ({"limit": 3}, "user/model on codesyntax@1.0.0, python/test (PARTIAL: first 3 functions)"),
        (
            {"control": "random-weights", "seed": 7},
            "user/model on codesyntax@1.0.0, python/test, random-weights 7",
        ),
    ],
)
def test_a_title_says_what_was_measured_instead(changed, title, result):
    settings = {**RECORDED, "settings": RECORDED["settings"] | changed}
    of = ProbeResult.from_ledger(dataclasses.replace(result.ledger, settings=settings))
    assert of.title == title


def test_a_difference_is_told_by_its_field(result, another):
    """Paths may differ: the same result may lie elsewhere. The first of several fields is told."""

    def difference(**changed):
        return result.difference(json.dumps({**json.loads(result.to_json()), **changed}))

    assert difference() is difference(data_path="a", model_path="b") is None
    assert difference(functions=4) == "other functions"
    assert difference(versions={"torch": "0"}, functions=4) == "other functions"
    assert result.difference(another.to_json()) == "other ledger"
    assert difference(more=1) == "the result has an unknown field 'more'"


SURPRISALS = "bits grams frequency place control_bits control_grams control_frequency control_place"


@pytest.mark.parametrize(
    "ledger, names, least, most",
    [
        (InformationLedger, "words_bits attention_bits both_bits", 0, np.inf),
        (PreferenceLedger, "surface", -1, 2),
        (PreferenceLedger, "read", 0, 1),
        (PreferenceLedger, "good_place_tokens bad_place_tokens", 0, np.inf),
        (PreferenceLedger, "good_whole good_place bad_whole bad_place", -np.inf, 0),
        (SurprisalLedger, "role", 0, 2),
        (SurprisalLedger, SURPRISALS, 0, 10**6),
    ],
)
def test_numbers_beyond_their_bounds_are_refused(ledger, names, least, most):
    for name in names.split():
        for value in {least, most, least - 1, most + 1} - {np.inf, -np.inf}:
            rows = np.zeros(1, ledger.ROW)
            rows[name] = value
            refused = pytest.raises(ValueError, match=f"^{name} that cannot be")
            with nullcontext() if least <= value <= most else refused:
                super(ledger, ledger).check(rows)


# Places --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "folder, place, path",
    [
        ("disk/results", "disk/models/one", "../models/one"),
        ("disk/results", "disk", ".."),
        ("disk/results", "home/models/one", "~/models/one"),
        ("home/results", "home/models/one", "~/models/one"),
        ("home", "home/models/one", "~/models/one"),
        ("home/study/results", "home/study/models/one", "../models/one"),
        ("home/study/results", "home/study", ".."),
        ("home/study", "home/study/models/one", "models/one"),
        ("home/results", "disk/models/one", "../../disk/models/one"),
    ],
)
def test_a_place_is_told_from_the_folder_or_from_the_home_and_found(
    folder, place, path, tmp_path, monkeypatch
):
    """From the home of the user if the two share no folder below it, as a study may move as a whole."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in (folder, place):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    assert path_from(tmp_path / folder, tmp_path / place) == path
    found = found_at(tmp_path / folder, path)
    assert found is not None
    assert found.samefile(tmp_path / place)


@pytest.mark.parametrize("path", [None, "", 0, 3, True, ["a"], {"a": 1}])
def test_what_is_no_path_has_no_place(path, tmp_path):
    assert found_at(tmp_path, path) is None


def test_another_users_home_is_no_place(tmp_path):
    assert found_at(tmp_path, "~root/models") == tmp_path / "~root/models"


@pytest.mark.parametrize("text", ["", '{\n"format": 2', '{\n "format": 2,\n "instrument": 3}'])
def test_a_result_replaces_a_result(text, tmp_path):
    (tmp_path / "file.json").write_text(text)
    check_result_file(tmp_path / "file.json")
    check_result_file(tmp_path / "none.json")


@pytest.mark.parametrize("text", ["my notes", '{"format": 2}', '\n{\n"format": 2', " ", "{"])
def test_a_result_replaces_nothing_else(text, tmp_path):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(LedgerError, match="is not a result, and would be replaced by one"):
        check_result_file(tmp_path / "file.json")


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(LedgerError, match="cannot be replaced by a result"):
        check_result_file(tmp_path)
