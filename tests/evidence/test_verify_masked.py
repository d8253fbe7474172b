"""Verification of masking results: honest runs pass, and the smallest forgeries do not."""

from __future__ import annotations

import itertools
import shutil

import numpy as np
import pytest
from support.attacks import ledgers
from support.attacks.attack import Attack
from support.evidence.reprobed import check_refused, rerun_once
from support.models.random_models import byte_model
from support.models.twins import twins

from probing import mask
from probing.evidence.verify import ACCEPTED, REJECTED, UNCHECKED, verify
from probing.instruments.masking.result import ROW, SIMILARITIES, MaskResult

pytestmark = pytest.mark.slow

LONGEST = 600


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return byte_model(tmp_path_factory.mktemp("models") / "masked", LONGEST, layers=1)


@pytest.fixture(scope="module")
def honest(model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    types = ["return_statement", "parameters", "while_statement"]
    run = {"node_types": types, "draws": 2, "limit": 40, "max_length": LONGEST}
    return mask(str(model), dataset_folder, **run, output=folder).paths(folder)[0]


@pytest.fixture(scope="module")
def against_spans(model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spans")
    run = {"node_types": ["return_statement"], "draws": 1, "limit": 20, "max_length": LONGEST}
    return mask(str(model), dataset_folder, **run, control="spans", output=folder).paths(folder)[0]


@pytest.fixture
def where(model, dataset_folder):
    return {"model": str(model), "data": str(dataset_folder)}


def test_an_honest_result_is_accepted(honest, where):
    verification = verify(honest, **where, functions=5, seed=0)
    assert verification.verdict == ACCEPTED, verification.checks
    assert 1 <= verification.functions < verification.total
    means = itertools.product((*SIMILARITIES, "restored"), ("T1", "T1 - T0"))
    assert verification.bounds.keys() == {f"{outcome}: {name}" for outcome, name in means}
    assert verify(honest, **where, everything=True).functions == verification.total


@pytest.fixture(scope="module")
def rerun(honest, model, dataset_folder):
    return rerun_once(MaskResult.load(honest), dataset_folder, str(model))


def other_positions(rows):
    rows["seed"][1] += 1


def another_filler(rows):
    rows["letter_jaccard"][rows["copy"] == 0] *= 0.5


ALTERED = [
    Attack(forge.__name__, forge, ledgers.ROWS) for forge in (other_positions, another_filler)
]


@pytest.mark.parametrize("attack", [*ledgers.MASKED, *ALTERED], ids=lambda attack: attack.name)
def test_forged_rows(attack, rerun):
    check_refused(rerun, attack)


@pytest.mark.parametrize("column", sorted(set(ROW.names) - {"function", "node_type", "copy"}))
def test_each_column_is_compared(column, rerun):
    """One number of one row, by the least that is more than rounding; whole numbers by one."""
    rows = rerun.result.ledger.rows.copy()
    row = int(np.flatnonzero((rows["copy"] == 0) & (rows["hits_1"] > 0))[0])
    step = {"log_probability": -0.002}.get(column, -1 if rows[column].dtype.kind in "iu" else -1e-6)
    copies = 3 if column == "masked" else 1  # a ledger whose controls mask others is none
    rows[column][row : row + copies] += step
    check, _ = rerun.again(rows, 0, everything=True)
    assert (check.passed, f"{copies} of {len(rows)} rows" in check.finding) == (False, True), check


def test_what_near_ties_gain_is_bounded(rerun, monkeypatch):
    """One function is unsure: its similarities may be others, if that gains little; those of others may not."""
    honest, run = rerun.result.ledger.rows, rerun.experiment.rows
    row = int(np.flatnonzero((honest["copy"] == 0) & (honest["jaccard"] < 0.9))[0])

    def unsure(part, bar):
        ledger, counts = run(part, bar)
        return ledger, counts + (ledger.rows["function"] == honest["function"][row])

    def found(row, similarity):
        rows = honest.copy()
        for name in SIMILARITIES:
            rows[name][row] = similarity
        return rerun.again(rows, 0, everything=True)[0]

    lower = honest["jaccard"][row] - 0.1
    other = int(np.flatnonzero(honest["function"] != honest["function"][row])[0])
    assert not found(row, lower).passed
    monkeypatch.setattr(rerun.experiment, "rows", unsure)
    assert found(row, lower).passed and not found(other, 0.0).passed
    check = found(row, 1.0)
    assert (check.passed, "differences favour" in check.finding) == (False, True), check


@pytest.mark.parametrize("further, passed", [(0, True), (1, None)])
def test_one_prediction_in_twenty_may_be_unsure(further, passed, rerun, monkeypatch):
    rows, run = rerun.result.ledger.rows, rerun.experiment.rows
    most = rows["masked"].sum() // 20

    def unsure(part, bar):
        ledger, _ = run(part, bar)
        return ledger, (most + further) * (ledger.rows["seed"] == rows["seed"][0])

    monkeypatch.setattr(rerun.experiment, "rows", unsure)
    assert rerun.again(rows, 0, everything=True)[0].passed is passed


def test_each_sub_token_twice_in_the_vocabulary(model, dataset_folder, tmp_path):
    """All predictions are near ties, which rounding decides: nothing is accepted, and nobody is accused."""
    doubled = twins(model, tmp_path / "twins", every=1)
    types = ["parameters"]
    result = mask(doubled, dataset_folder, node_types=types, limit=8, draws=1, max_length=LONGEST)
    verification = verify(result.save(tmp_path), model=doubled, data=str(dataset_folder))
    assert verification.verdict == UNCHECKED
    assert "of their predictions are near ties" in verification.reason


def test_a_result_with_spans_as_controls(against_spans, where, tmp_path):
    """Accepted as what it is, and rejected as the easier comparison."""
    assert verify(against_spans, **where, everything=True).verdict == ACCEPTED
    result = MaskResult.load(against_spans)
    result.ledger.settings["settings"]["control"] = "sub-tokens"
    made = MaskResult.from_ledger(result.ledger)
    made.save(tmp_path)
    assert verify(made.paths(tmp_path)[0], **where, everything=True).verdict == REJECTED


def test_a_result_without_its_data_or_with_other_numbers(
    honest, where, model, dataset_folder, tmp_path
):
    moved = tmp_path / "elsewhere" / honest.name
    moved.parent.mkdir()
    for path in honest.parent.glob(f"{honest.stem}*"):
        shutil.copy(path, moved.parent)
    verification = verify(moved, model=str(model))
    assert verification.verdict == UNCHECKED
    assert "--data" in verification.checks[-1].finding
    moved.write_text(moved.read_text().replace('"functions": ', '"functions": 1', 1))
    assert verify(moved, **where).verdict == REJECTED
