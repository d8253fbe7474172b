"""Forged rows: each is refused by what it says; honest rows beside them are accepted.

Entries are made in test_submission.py and test_verified.py, ranks and choices in test_verify.py, masked rows in
test_verify_masked.py, results in test_submit.py.
"""

from __future__ import annotations

import functools
import re
import shutil

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from conftest import cut
from support.attacks import ledgers
from support.evidence.reprobed import check_refused, rerun_once
from support.models.minimal_pairs import pairs_folder, tiny_decoder
from transformers import AutoModelForCausalLM, AutoTokenizer

from probing import ablate, inform, prefer, surprise
from probing.evidence import reruns
from probing.evidence.verify import ACCEPTED, REJECTED, verify
from probing.models.location import TINY

named = {"ids": lambda attack: attack.name}


# ------------------------------------------------------------------- rows of silencing, information


@pytest.fixture(scope="module")
def silenced(few_functions):
    return rerun_once(ablate(TINY, few_functions, limit=12, draws=2), few_functions, TINY)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ledgers.SILENCED, **named)
def test_silenced_rows(attack, silenced):
    check_refused(silenced, attack)


LEARNED = ("Call:func->args", "Attribute:value->attr", "If:if->test")


@pytest.mark.slow
def test_bits_on_one_side(tiny_model, dataset_folder, tmp_path):
    """Within rounding in each row, and none of it for words and positions; of three relations."""
    source = shutil.copytree(dataset_folder, tmp_path / "source")
    for file in source.glob("python/*.parquet"):
        table = pq.read_table(file)
        number = table.schema.get_field_index("relations")
        field = table.schema.field(number)
        kept = [
            [edge for edge in edges if edge["relation"] in LEARNED]
            for edges in table["relations"].to_pylist()
        ]
        pq.write_table(table.set_column(number, field, pa.array(kept, field.type)), file)
    data = cut(source, tmp_path / "codesyntax", test=40, validation=30)
    result = inform(str(tiny_model), data, edges=40)
    rerun = rerun_once(result, data, str(tiny_model))
    for attack in ledgers.BITS:
        check_refused(rerun, attack)


# -------------------------------------------------------------------------------- log-probabilities


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return pairs_folder(tmp_path_factory.mktemp("data") / "codesyntax")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A decoder, and the same with logits so flat that a text's log-probability hardly depends on it."""
    folder = tmp_path_factory.mktemp("models")
    tiny_decoder(folder / "tiny")
    model = AutoModelForCausalLM.from_pretrained(folder / "tiny")
    with torch.no_grad():
        model.lm_head.weight *= 0.001
    model.save_pretrained(folder / "flat")
    AutoTokenizer.from_pretrained(folder / "tiny").save_pretrained(folder / "flat")
    return folder


def verdicts(result, folder, where, attack=None):
    """What `verify` says of a result with other rows, with two seeds; and what it found last."""
    ledger = result.ledger
    rows = ledger.rows if attack is None else ledgers.forged_rows(attack, ledger.rows)
    made = type(result).from_ledger(type(ledger)(ledger.names, rows, ledger.settings))
    file = made.save(folder)
    found = [verify(file, seed=seed, **where) for seed in range(2)]
    return {verification.verdict for verification in found}, found[-1].checks[-1].finding


@pytest.fixture(scope="module")
def preferred(models, pairs, tmp_path_factory):
    """An honest result of each precision, where it is from, and its verdicts."""

    @functools.cache
    def run(dtype):
        model = models / {"bfloat16": "tiny", "float32": "flat"}[dtype]
        where = {"model": str(model), "data": str(pairs)}
        result = prefer(model, pairs, dtype=dtype, batch_tokens=300)
        verdict, _ = verdicts(result, tmp_path_factory.mktemp("honest"), where)
        return result, where, verdict

    return run


@pytest.mark.slow
@pytest.mark.parametrize("attack", ledgers.TEXTS, **named)
def test_texts_that_are_claimed_to_be_likelier(attack, preferred, tmp_path):
    result, where, honest = preferred("bfloat16" if "bfloat16" in attack.name else "float32")
    assert honest == {ACCEPTED}
    verdict, finding = verdicts(result, tmp_path, where, attack)
    assert verdict == {REJECTED} and re.search(attack.stopped_by, finding), finding


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype, batch_tokens",
    [
        ("float32", 1),
        ("bfloat16", 200),
        pytest.param("float32", 2000, marks=pytest.mark.long),
        pytest.param("bfloat16", 1, marks=pytest.mark.long),
    ],
)
def test_honest_pairs_of_other_batches(dtype, batch_tokens, models, pairs, tmp_path):
    result = prefer(models / "tiny", pairs, dtype=dtype, batch_tokens=batch_tokens)
    where = {"model": str(models / "tiny"), "data": str(pairs)}
    assert verdicts(result, tmp_path, where)[0] == {ACCEPTED}


@pytest.fixture(scope="module")
def surprised(models):
    """Of a precision: a result, and where it is from."""
    empty = {"token_start": [], "token_end": [], "relations": []}
    codes = [f"def f{number}(a, b):\n    if a:\n        return b\n" for number in range(12)]
    data = datasets.Dataset.from_list(
        [{"id": number, "code": code, **empty} for number, code in enumerate(codes)]
    )
    where = {"model": str(models / "tiny"), "data": data}
    types = ["parameters", "return_statement"]
    return lambda dtype: (surprise(**where, dtype=dtype, node_types=types), where)


@pytest.mark.slow
def test_nodes_that_are_claimed_to_be_foreseen(surprised, tmp_path):
    """In bfloat16, whose tolerance is measured."""
    result, where = surprised("bfloat16")
    added = reruns.SurprisalVerifier.published(reruns.SurprisalVerifier, result.ledger)
    assert {name.rpartition(": ")[2] for name in added} == {"bits", "over 5-grams"}
    assert verdicts(result, tmp_path / "honest", where)[0] == {ACCEPTED}
    verdict, finding = verdicts(result, tmp_path / "forged", where, ledgers.SURPRISING)
    assert verdict == {REJECTED} and re.search(ledgers.SURPRISING.stopped_by, finding)


@pytest.mark.slow
def test_each_number_of_a_text_is_compared(preferred, surprised):
    """By 0.02 nats or bits, and by the last digit of what no model is asked for."""
    for result, where in (preferred("float32")[:2], surprised("float32")):
        rerun, honest = rerun_once(result, **where), result.ledger.rows
        for column in (name for name in honest.dtype.names if honest[name].dtype.kind == "f"):
            most = 2e-6 if re.match("(control_)?(grams|frequency|place)", column) else 0.02
            for share in (0.9, 1.1):
                rows = honest.copy()
                rows[column][0] -= share * most
                finding = rerun.again(rows, 0, everything=True)[0].finding
                assert ("by more than rounding" in finding) is (share > 1), column
