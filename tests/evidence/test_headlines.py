"""What a model could not read counts as missed, and chooses no better heads."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import cut
from support.attacks import hostile_tokenizers
from transformers import AutoModel, AutoTokenizer

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ModelError, SubmissionError
from codesyntax_metric.topk_uas import RULES
from probing import mask, prefer, probe
from probing.evidence.beyond import beyond_offsets
from probing.evidence.headlines import ATTENTION, MASKING, PAIRS, completed
from probing.evidence.protocols import MODEL
from probing.evidence.submission import scores
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.masking.result import MaskResult
from probing.models.location import TINY, TINY_DECODER
from probing.stats.hits import Hits

# ----------------------------------------------------------------------------------- by hand

ARGS = "Call:func->args"

READ = [(0, 0, 9), (0, 0, 9), (0, 9, 0)]
"""The ranks of three heads for the hard edge of each function of validation that was read: head 0 finds them all, head 1
two, head 2 one. An edge that was not read lets head 1 be as good."""

SCORED = [(0, 0, 0), (0, 9, 9), (0, 0, 9)]
"""For the hard edges of test: head 0 finds three, head 1 two."""


def ledger_of(hard):
    """Three edges at distance 1, which the best offset finds, and one hard edge in each function, the k-th k + 2 tokens
    away, so that no offset finds two of them."""
    distances = [1, 1, 1, *range(2, 2 + len(hard))]
    functions = [100, 100, 100, *range(len(hard))]
    ranks = np.array([(0, 0, 0)] * 3 + hard, np.uint8)
    zeros = np.zeros(len(distances), np.int32)
    dependents = np.array(distances, np.int32)
    return RankLedger(
        relations=[ARGS],
        function=np.array(functions, np.int32),
        relation=zeros,
        head=zeros,
        first=dependents,
        last=dependents,
        tokens=dependents + 1,
        ranks=np.tile(ranks.reshape(1, len(ranks), 1, 3), (len(RULES), 1, 1, 1)),
        settings={},
    )


@pytest.mark.parametrize("unread, head", [(0, 0), (1, 1)])
def test_beyond_offsets_the_worst_head_that_could_be_best_counts(unread, head):
    edges = ledger_of(READ + [(255, 255, 255)] * unread)
    read = edges.only(np.array([100, *range(len(READ))]))
    hard = beyond_offsets(read, ledger_of(SCORED), edges)
    assert hard.chosen.choice[ARGS][0, 0].tolist() == [0, head]


def test_a_relation_of_which_nothing_was_read_has_the_worst_head():
    edges = ledger_of(READ)
    other = dataclasses.replace(
        edges, relations=["If:if->test"], function=edges.function + 200, head=edges.head
    )
    both = dataclasses.replace(
        edges,
        relations=[ARGS, "If:if->test"],
        ranks=np.concatenate([edges.ranks, other.ranks], axis=1),
        **{
            name: np.concatenate(
                [getattr(edges, name), getattr(other, name) + (name == "relation")]
            )
            for name in edges.columns
        },
    )
    hard = beyond_offsets(both.only(edges.function), both, both)
    assert hard.chosen.choice["If:if->test"][0, 0].tolist() == [0, 2]  # finds one of three


def test_what_is_lacking_has_no_hits():
    whole = Hits.of_rows(
        np.array([1, 2, 2, 5]), ["a", "a", "b", "b"], {"rival": np.ones((1, 4), int)}, ["x"]
    )
    read = Hits.of_rows(np.array([2, 2]), ["a", "b"], {"model": np.ones((1, 2), int)}, ["x"])
    hits = completed(read, whole, ("model",))
    assert hits.groups["a"].sums["model"].tolist() == [[0, 1]]
    assert hits.groups["b"].sums["model"].tolist() == [[1, 0]]
    assert hits.scores("rival").tolist() == [[100, 100]]
    nothing = completed(None, whole, ("model",), -20)
    assert nothing.groups["a"].sums["model"].tolist() == [[-20, -20]]


# --------------------------------------------------------------------------- tokenizers that read less


@pytest.fixture(scope="module")
def data(dataset_folder, tmp_path_factory):
    return cut(
        dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=12, validation=10
    )


@pytest.fixture(scope="module")
def probed(tiny_model, data):
    """The results of the tiny model with a tokenizer that is changed."""
    weights = AutoModel.from_pretrained(tiny_model, attn_implementation="eager")

    def run(change):
        tokenizer = hostile_tokenizers.changed(AutoTokenizer.from_pretrained(tiny_model), change)
        return {
            split: probe((weights, tokenizer), str(data), "python", split)
            for split in ("test", "validation")
        }

    return run


@pytest.fixture(scope="module")
def honest(probed):
    return probed(lambda tokenizer: None)


@pytest.fixture(scope="module")
def whole(honest, data):
    return ATTENTION.whole(str(data), honest["test"].settings)


@pytest.fixture(scope="module")
def changes(honest, data):
    codes = pq.read_table(data / "python/test.parquet")["code"].to_pylist()
    return hostile_tokenizers.of(honest["test"].ledger, honest["validation"].ledger, codes)


def means_of(results, whole):
    return scores(ATTENTION.means(results, whole), MODEL)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["skips functions with while", "skips the hardest function"])
def test_what_is_skipped_raises_no_number(name, probed, honest, whole, changes):
    """Although it was picked to raise the first number."""
    made = probed(changes[name])
    assert sum(result.functions for result in made.values()) < 22
    skipping, reading = means_of(made, whole), means_of(honest, whole)
    for protocol in ("held-out", "beyond-offset"):
        assert (
            skipping[protocol, ("first", 1)].value <= reading[protocol, ("first", 1)].value + 1e-9
        )
        assert skipping[protocol, ("first", 1)].n == reading[protocol, ("first", 1)].n


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pads to 512", "cuts at 64"])
def test_what_nobody_asked_a_tokenizer_for_changes_nothing(name, probed, honest, whole, changes):
    changed, unchanged = means_of(probed(changes[name]), whole), means_of(honest, whole)
    assert changed.keys() == unchanged.keys()
    for cell, estimate in unchanged.items():
        assert changed[cell][:3] == estimate[:3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["merges lines", "pads between words", "drops brackets"])
def test_offsets_that_cannot_be_right(name, probed, changes):
    with pytest.raises(ModelError, match="its tokenizer"):
        probed(changes[name])


# -------------------------------------------------------------------------------------- other things


@pytest.mark.slow
@pytest.mark.parametrize("column", "function relation head first last tokens".split())
def test_edges_that_are_not_of_the_data(column, honest, whole):
    """One number of one edge."""
    ledger = honest["test"].ledger
    values = getattr(ledger, column).copy()
    values[7] = (values[7] + 1) % len(ledger.relations) if column == "relation" else values[7] + 1
    other = type(honest["test"]).from_ledger(dataclasses.replace(ledger, **{column: values}))
    with pytest.raises(SubmissionError, match="the edges on test are not those of the data"):
        ATTENTION.means({**honest, "test": other}, whole)


@pytest.mark.slow
def test_functions_without_nodes_of_a_type_cannot_restore_them(fewer_functions):
    result = mask(TINY, fewer_functions, node_types=["while_statement", "parameters"], draws=1)
    held = MASKING.whole(str(fewer_functions), result.settings)
    means = MASKING.means({"test": result}, held)
    assert means["restored"].hits.groups["parameters"].total == len(held.of("parameters"))
    assert means["restored"].hits.over.unit == "function"  # of which near copies are one
    rows = result.ledger.rows.copy()
    kind = result.ledger.node_types.index("while_statement")
    without = np.setdiff1d(held.of("parameters"), held.of("while_statement"))[0]
    chosen = (rows["node_type"] == kind) & (rows["function"] == held.of("while_statement")[0])
    rows["function"][chosen] = without
    order = np.lexsort([rows[name] for name in ("copy", "node_type", "function")])
    forged = MaskResult.from_ledger(dataclasses.replace(result.ledger, rows=rows[order]))
    with pytest.raises(SubmissionError, match="while_statement was masked in functions that have"):
        MASKING.means({"test": forged}, held)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Minimal pairs of Ruby, with the location of the data."""
    folder = tmp_path_factory.mktemp("pairs") / "codesyntax"
    build("sample", ["ruby_pairs"], folder)
    return prefer(TINY_DECODER, folder, "ruby_pairs"), str(folder)


@pytest.mark.slow
def test_pairs_that_are_not_of_the_data(pairs):
    """The surface rival stands beside the model, over the same pairs."""
    result, data = pairs
    of_data = PAIRS.whole(data, result.settings)
    means = PAIRS.means({"test": result}, of_data)
    assert scores(means, PAIRS.system)["whole", "whole"].value == pytest.approx(result.mean.whole)
    assert scores(means, PAIRS.rival)["whole", "whole"].value == pytest.approx(result.mean.surface)
    for altered in (of_data[1:], [*of_data[:-1], ("other", "repository")]):
        with pytest.raises(SubmissionError, match="the pairs are not those of the data"):
            PAIRS.means({"test": result}, altered)
