"""Rows that were shifted by what rounding may explain: refused in both precisions, while honest ones are accepted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.attacks.third_round import ACCEPTED_ONCE, one_side, some_texts_likelier, texts_likelier
from support.models.minimal_pairs import pairs_folder, tiny_decoder

from probing import inform, prefer
from probing.evidence.verify import ACCEPTED, REJECTED, verify
from probing.instruments.information.result import InformationLedger, InformationResult
from probing.instruments.likelihood.result import PreferenceLedger, PreferenceResult

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return pairs_folder(tmp_path_factory.mktemp("data") / "codesyntax")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A decoder, and the same with logits so flat that a text's log-probability hardly depends on it."""
    folder = tmp_path_factory.mktemp("models")
    tiny_decoder(folder / "tiny")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder / "tiny")
    with torch.no_grad():
        model.lm_head.weight *= 0.001
    model.save_pretrained(folder / "flat")
    AutoTokenizer.from_pretrained(folder / "tiny").save_pretrained(folder / "flat")
    return folder


def verdict(result, ledger, change, folder, **where):
    """What `verify` says of a result with other rows, with three seeds; and what it found last."""
    rows = result.ledger.rows.copy()
    change(rows)
    made = type(result).from_ledger(ledger(result.ledger.names, rows, result.ledger.settings))
    made.save(folder)
    found = [verify(made.paths(folder)[0], seed=seed, **where) for seed in range(3)]
    return {verification.verdict for verification in found}, found[-1].checks[-1].found


def unchanged(rows: np.ndarray) -> None:
    pass


@pytest.mark.parametrize(
    ("model", "dtype", "change"),
    [
        ("tiny", "bfloat16", texts_likelier(7.2)),
        ("tiny", "bfloat16", texts_likelier(0.02)),
        ("tiny", "bfloat16", some_texts_likelier(0.5, 2)),
        ("flat", "float32", texts_likelier(0.0195)),
        ("flat", "float32", some_texts_likelier(0.0195, 4)),
    ],
)
def test_texts_that_are_claimed_to_be_likelier(model, dtype, change, models, data, tmp_path):
    where = {"model": str(models / model), "data": str(data)}
    result = prefer(models / model, data, dtype=dtype, batch_tokens=300, output=tmp_path)
    assert isinstance(result, PreferenceResult)
    assert verdict(result, PreferenceLedger, unchanged, tmp_path / "honest", **where)[0] == {ACCEPTED}
    assert verdict(result, PreferenceLedger, change, tmp_path / "forged", **where)[0] == {REJECTED}


@pytest.mark.parametrize("batch_tokens", [1, 200, 2000])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_honest_pairs_of_other_batches(dtype, batch_tokens, models, data, tmp_path):
    result = prefer(models / "tiny", data, dtype=dtype, batch_tokens=batch_tokens, output=tmp_path)
    where = {"model": str(models / "tiny"), "data": str(data)}
    assert verdict(result, PreferenceLedger, unchanged, tmp_path / "honest", **where)[0] == {ACCEPTED}


def test_bits_on_one_side(tiny_model, few_functions, tmp_path):
    """Within rounding in each row, and none of it for words and positions."""
    result = inform(str(tiny_model), few_functions, edges=40, output=tmp_path)
    assert isinstance(result, InformationResult)
    where = {"model": str(tiny_model), "data": str(few_functions)}
    change = one_side("both_bits", -0.00145, 6)

    def lower(rows: np.ndarray) -> None:
        change(rows)
        rows["both_bits"] = np.maximum(rows["both_bits"], 0)

    found, why = verdict(result, InformationLedger, lower, tmp_path / "forged", **where)
    assert found == {REJECTED} and "favour lower both_bits by" in why


def test_the_ten_are_told_with_what_stops_them():
    assert len(ACCEPTED_ONCE) == 10 and len({attack.name for attack in ACCEPTED_ONCE}) == 10
