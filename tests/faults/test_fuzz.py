"""Random inputs, and what they found before.

CODESYNTAX_FUZZ=2000 pytest -n 2 tests/faults/test_fuzz.py -k random_inputs

tries so many inputs of each kind, other ones each time."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import fuzz
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from support.cpu_time import within

from codesyntax_dataset import annotate, corpus
from codesyntax_dataset.errors import (
    DatasetError,
    LedgerError,
    ModelError,
    ParseError,
    SubmissionError,
)
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.metadata import sha256sums
from codesyntax_dataset.schema import Skips
from probing.instruments.attention import errors
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.masking.result import MaskingLedger
from probing.models.load import described_model
from probing.runs.data import FUNCTION_COLUMNS
from probing.runs.records import exactly, explain, parse

SMALL = Path(__file__).resolve().parents[1] / "data/small"


EXAMPLES = os.environ.get("CODESYNTAX_FUZZ")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", fuzz.TARGETS)
@settings(
    max_examples=int(EXAMPLES or 3),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=[*HealthCheck],
)
@given(data=st.data())
def test_random_inputs_are_read_or_refused(target, data):
    fuzz.TARGETS[target](data.draw, target)


def test_json_is_parsed_up_to_its_most_bytes():
    assert parse(b"[1, 2, 34]", 10) == [1, 2, 34]
    with pytest.raises(SubmissionError, match="the file is larger than 10 bytes"):
        parse(b"[1, 2, 345]", 10)


HIDDEN = {  # errors that tree-sitter reports of a node, but of none of its parts
    "a call behind a signature": ("python", 'ifier(name)return"".o()'),
    "generics in backquotes": ("go", "``<``<``<``<``<``<``>``>``>``>``"),
}


@pytest.mark.parametrize("language, code", HIDDEN.values(), ids=HIDDEN)
def test_an_error_that_no_part_of_the_tree_has(language, code):
    with pytest.raises(ParseError):
        annotate(code, language, "exact")


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "metadata", [b'{"info": 7}', DEEP, b'{"info": {"features": {"a": {"_type": "X"}}}}']
)
def test_damaged_metadata_of_a_dataset_are_not_read(metadata, tmp_path):
    folder = shutil.copytree(SMALL / "zoo", tmp_path / "zoo")
    file = folder / "python/test.parquet"
    pq.write_table(pq.read_table(file).replace_schema_metadata({b"huggingface": metadata}), file)
    (folder / "SHA256SUMS").write_text(sha256sums(folder))
    plain, _ = read_split(SMALL / "zoo", "python", "test", FUNCTION_COLUMNS)
    assert read_split(folder, "python", "test", FUNCTION_COLUMNS)[0] == plain


def test_text_that_is_no_utf8_is_refused(tmp_path):
    folder = shutil.copytree(SMALL / "zoo", tmp_path / "zoo")
    file = folder / "python/test.parquet"
    table = pq.read_table(file)
    texts = table["code"].combine_chunks().cast(pa.binary()).to_pylist()
    spoiled = pa.array([b"\xff" + texts[0], *texts[1:]], pa.binary())
    code = pa.Array.from_buffers(pa.string(), len(texts), spoiled.buffers())
    pq.write_table(table.set_column(table.schema.get_field_index("code"), "code", code), file)
    (folder / "SHA256SUMS").write_text(sha256sums(folder))
    with pytest.raises(DatasetError, match=r"test.parquet cannot be read .*UTF8"):
        read_split(folder, "python", "test", FUNCTION_COLUMNS)


def test_an_error_analysis_nested_too_deeply_is_refused(tmp_path):
    (tmp_path / "a.errors.json").write_bytes(DEEP)
    with pytest.raises(LedgerError, match="is not an error analysis"):
        errors.load(tmp_path / "a.errors.json")


@pytest.mark.slow
def test_a_long_chain_of_words_takes_no_square_of_its_length(tmp_path):
    words = 60_000  # seven seconds once
    (tmp_path / "x.txt").write_text("".join(f"w {number}-x\n" for number in range(words)))
    with within(2):
        (sentence,) = corpus.read(str(tmp_path / "x.txt"), "ud", Skips())
    assert len(sentence.annotation.edges) == words - 1


def test_a_masking_ledger_of_many_names_takes_no_square_of_their_number(tmp_path):
    rows = np.zeros(30_000, MaskingLedger.ROW)
    rows["function"] = rows[MaskingLedger.GROUP_COLUMN] = np.arange(len(rows))
    MaskingLedger([f"n{number}" for number in range(len(rows))], rows, {}).save(
        tmp_path / "a.ledger.parquet"
    )
    with within(1), suppress(LedgerError):  # three seconds once
        MaskingLedger.load(tmp_path / "a.ledger.parquet")


def test_a_name_that_is_half_of_a_character_is_explained():
    kind = TypeAdapter(Annotated[dict[str, int], exactly(["a"])])
    with pytest.raises(ValidationError) as wrong:
        kind.validate_python({"a": 1, "\udfff": 2})
    assert explain(wrong.value, "the file") == "the file has an unknown field '\\udfff'"


def test_a_tokenizer_whose_limit_is_no_number_is_refused(tmp_path):
    folder = shutil.copytree(SMALL / "mouse", tmp_path / "mouse")
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "BertTokenizerFast", "model_max_length": [1]}'
    )
    with pytest.raises(ModelError, match="model_max_length is a list, no number"):
        described_model(str(folder), None)


def test_a_damaged_ledger_is_refused_in_one_line(tmp_path):
    data = bytearray((SMALL / "results/mouse.python.test.c22e27d8.ledger.parquet").read_bytes())
    size = int.from_bytes(data[-8:-4], "little")
    data[-8 - size : -8] = b"\xff" * size  # the footer, which says what is where
    (tmp_path / "a.ledger.parquet").write_bytes(data)
    with pytest.raises(LedgerError, match="a damaged one") as refused:
        RankLedger.load(tmp_path / "a.ledger.parquet")
    assert "\n" not in str(refused.value)
