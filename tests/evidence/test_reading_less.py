"""No tokenizer raises a submitted number: what it skips, splits or pads counts in the whole split."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from conftest import cut
from support.attacks import hostile_tokenizers
from support.evidence.entries import entry_of
from transformers import AutoModel, AutoTokenizer

from codesyntax_dataset.errors import ModelError
from probing import probe
from probing.evidence.gather import find, gather

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(dataset_folder, tmp_path_factory):
    return cut(
        dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=12, validation=10
    )


@pytest.fixture(scope="module")
def probed(tiny_model, data, tmp_path_factory):
    """The evidence on the tiny model with a tokenizer that is changed."""
    weights = AutoModel.from_pretrained(tiny_model, attn_implementation="eager")

    def run(change):
        tokenizer = hostile_tokenizers.changed(AutoTokenizer.from_pretrained(tiny_model), change)
        folder = tmp_path_factory.mktemp("results")
        for split in ("test", "validation"):
            probe((weights, tokenizer), str(data), "python", split, output=folder)
        return gather(find([folder]), data)[0]

    return run


@pytest.fixture(scope="module")
def honest(probed):
    return probed(lambda tokenizer: None)


@pytest.fixture(scope="module")
def before(honest):
    return entry_of(honest)


@pytest.fixture(scope="module")
def changes(honest, data):
    codes = pq.read_table(data / "python/test.parquet")["code"].to_pylist()
    return hostile_tokenizers.of(honest.probed.test.ledger, honest.probed.validation.ledger, codes)


SUBMITTED = [("held-out", "first", "1"), ("beyond-offset", "first", "1")]


@pytest.mark.parametrize("name", ["skips functions with while", "skips the hardest function"])
def test_what_is_skipped_raises_no_number(name, probed, before, changes):
    """Although it was picked to raise the first number."""
    made = entry_of(probed(changes[name]))
    read, of = (
        made.functions + made.chosen_on.functions,
        before.functions + before.chosen_on.functions,
    )
    assert read < of and made.scored == before.scored and made.table == before.table
    scores, best = made.scores("model"), before.scores("model")
    for cell in SUBMITTED:
        assert scores[cell].value <= best[cell].value + 1e-9


@pytest.mark.parametrize("name", ["pads to 512", "cuts at 64", "splits into characters"])
def test_other_tokenizers_are_scored_on_the_same_edges(name, probed, before, changes):
    made = entry_of(probed(changes[name]))
    assert made.table == before.table
    if name in ("pads to 512", "cuts at 64"):  # which nobody asked for
        assert made.numbers == before.numbers


@pytest.mark.parametrize("name", ["merges lines", "pads between words", "drops brackets"])
def test_offsets_that_cannot_be_right(name, probed, changes):
    with pytest.raises(ModelError, match="its tokenizer"):
        probed(changes[name])
