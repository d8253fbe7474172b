"""Verification of masking results: honest runs pass, and the smallest forgeries do not."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from support.models.byte_tokenizer import byte_model

from probing import mask
from probing.cli import main
from probing.evidence.verify import ACCEPTED, REJECTED, UNCHECKED, verify
from probing.instruments.masking.result import MaskingLedger, MaskResult

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

LONGEST = 600


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return byte_model(tmp_path_factory.mktemp("models") / "masked", LONGEST, layers=1)


@pytest.fixture(scope="module")
def honest(model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    types = ["return_statement", "parameters", "while_statement"]
    run = {"node_types": types, "draws": 2, "limit": 100, "max_length": LONGEST}
    return mask(str(model), dataset_folder, **run, output=folder).paths(folder)[0]


@pytest.fixture(scope="module")
def against_spans(model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spans")
    run = {"node_types": ["return_statement"], "draws": 1, "limit": 20, "max_length": LONGEST}
    return mask(str(model), dataset_folder, **run, control="spans", output=folder).paths(folder)[0]


@pytest.fixture
def where(model, dataset_folder):
    return {"model": str(model), "data": str(dataset_folder)}


def forged(honest, folder, alter):
    """A result whose numbers follow from an altered ledger."""
    result = MaskResult.load(honest)
    ledger = MaskingLedger(result.ledger.node_types, result.ledger.rows.copy(), result.ledger.settings)
    alter(ledger.rows)
    made = MaskResult.from_ledger(ledger)
    made.save(folder)
    return made.paths(folder)[0]


def test_an_honest_result_is_accepted(honest, where):
    verification = verify(honest, **where, functions=5, seed=0)
    assert verification.verdict == ACCEPTED, verification.checks
    assert 1 <= verification.functions < verification.of
    assert verify(honest, **where, everything=True).functions == verification.of
    everything = [str(path) for path in honest.parent.glob("*.json")]  # examples are no results
    assert len(everything) == 2
    printed = CliRunner().invoke(main, ["verify", *everything, "--model", where["model"], "--data", where["data"]])
    assert (printed.exit_code, printed.stdout.splitlines()[-1]) == (0, ACCEPTED)


def one_copy(rows):
    """The copy of T1 that loses most becomes perfect."""
    first = np.flatnonzero(rows["copy"] == 0)
    row = first[rows["jaccard"][first].argmin()]
    for name in ("jaccard", "sorensen_dice", "levenshtein"):
        rows[name][row] = 1


def one_hit(rows):
    row = np.flatnonzero(rows["hits_1"] < rows["hits_5"])[0]
    rows["hits_1"][row] += 1


def other_positions(rows):
    rows["seed"][1] += 1


def likelier(rows):
    rows["log_probability"][rows["copy"] == 0] *= 0.99


def controls_of_another_function(rows):
    rows["jaccard"][rows["copy"] == 1] = rows["jaccard"][rows["copy"] == 1][::-1].copy()


@pytest.mark.parametrize("alter", [one_copy, one_hit, other_positions, likelier, controls_of_another_function])
def test_forgeries_are_rejected(honest, where, tmp_path, alter):
    file = forged(honest, tmp_path, alter)
    verification = verify(file, **where, everything=True)
    assert verification.verdict == REJECTED
    assert [check.name for check in verification.checks if not check.passed] == ["copies again"]


def test_a_result_with_spans_as_controls(against_spans, where, tmp_path):
    """Accepted as what it is, and rejected as the easier comparison."""
    assert verify(against_spans, **where, everything=True).verdict == ACCEPTED
    result = MaskResult.load(against_spans)
    result.ledger.settings["settings"]["control"] = "sub-tokens"
    made = MaskResult.from_ledger(result.ledger)
    made.save(tmp_path)
    assert verify(made.paths(tmp_path)[0], **where, everything=True).verdict == REJECTED


def test_what_rounding_explains_on_one_side_only(honest, where, tmp_path):
    """Every log-probability a thousandth higher, where T1 is masked."""

    def shift(rows):
        first = rows["copy"] == 0
        rows["log_probability"][first] = np.round(rows["log_probability"][first] + 0.001, 3)

    verification = verify(forged(honest, tmp_path, shift), **where, everything=True)
    assert verification.verdict == REJECTED
    assert "favour higher log_probability in T1 by" in verification.checks[-1].found


def test_a_result_without_its_data_or_with_other_numbers(honest, where, model, dataset_folder, tmp_path):
    moved = tmp_path / "elsewhere" / honest.name
    moved.parent.mkdir()
    for path in honest.parent.glob(f"{honest.stem}*"):
        shutil.copy(path, moved.parent)
    verification = verify(moved, model=str(model))
    assert verification.verdict == UNCHECKED
    assert "--data" in verification.checks[-1].found
    moved.write_text(moved.read_text().replace('"functions": ', '"functions": 1', 1))
    assert verify(moved, **where).verdict == REJECTED
