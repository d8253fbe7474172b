"""Results in files: which are taken as those of an earlier run, and what is told of the others."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesyntax_metric.topk_uas import RULES, SCORING_VERSION
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult

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
def result() -> ProbeResult:
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
    assert found == result and found.data_folder == Path("data")
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
    assert len(caplog.messages) == 1 and "cannot be reused" in caplog.text


def test_a_run_of_other_settings_is_another_run(result, tmp_path, caplog):
    """Nothing is wrong with its file."""
    file = result.save(tmp_path)
    for changed in ({"scoring": 0}, {"ties": dict.fromkeys(RULES, 1)}, {"skips": {"a reason": 1}}):
        assert ProbeResult.finished(file, {**RECORDED, **changed}, None) is None
    assert not caplog.records
