"""Boards take attention and masking: results of other instruments are refused in a line that says what to do instead."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from support.evidence.hits_files import in_parquet
from support.models.minimal_pairs import pairs_folder, tiny_decoder

from codesyntax_dataset.errors import EntryError, LedgerError
from probing import prefer
from probing.evidence import submission
from probing.publish import submit
from probing.publish.export import export
from probing.runs.ledger_file import INFORMATION, PREFERENCE, SILENCING, SURPRISAL

FILES = "publish the result with its ledger, two files that `codesyntax verify` checks"


@pytest.mark.parametrize(
    "instrument, instead",
    [
        (PREFERENCE, "compare models on minimal pairs with lm-eval"),
        (INFORMATION, FILES),
        (SILENCING, FILES),
        (SURPRISAL, FILES),
    ],
)
def test_a_board_says_what_to_do_instead(instrument, instead):
    made = in_parquet(
        pa.table({"n": [1]}),
        json.dumps({"format": submission.ENTRY_FORMAT, "instrument": instrument}),
    )
    with pytest.raises(
        EntryError, match=f"take attention and masking, not {instrument}: {instead}"
    ):
        submission.load(made)


@pytest.mark.slow
def test_submit_and_export_do_too(tmp_path):
    model, data = tiny_decoder(tmp_path / "tiny"), pairs_folder(tmp_path / "codesyntax")
    prefer(model, data, output=tmp_path / "preferred")
    with pytest.raises(
        LedgerError, match="not preference: compare models on minimal pairs with lm-eval"
    ):
        submit._complete([tmp_path / "preferred"], "maker/tiny")
    with pytest.raises(LedgerError, match="not preference: compare models"):
        export([tmp_path / "preferred"], tmp_path / "out")
