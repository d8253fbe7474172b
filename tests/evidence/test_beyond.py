"""The beyond-offset score: what is planted comes back, and every number equals a plain computation."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from support.references.plain_beyond import plain_beyond

from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.baselines import read_edges
from probing.evidence.beyond import beyond_offsets, rivals_beyond
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import best_offsets, is_hard


@pytest.fixture(scope="module")
def edges(dataset_folder):
    """Split -> edges of the sample's functions in Python."""
    return {split: read_edges(dataset_folder, "python", split) for split in ("validation", "test")}


def planted(edges, rank):
    """The ledger of one head with the rank of each edge, the same by all rules."""
    ranks = np.broadcast_to(
        rank.astype(np.uint8)[None, :, None, None], (len(RULES), len(edges), 1, 1)
    )
    return RankLedger.of(edges, ranks.copy(), {})


@pytest.mark.slow
def test_a_plain_computation_from_the_ledgers_agrees(evidence):
    """Score, edges and relations left out, from the rows of both ledgers, edge by edge."""
    ledgers = evidence.probed.validation.ledger, evidence.probed.test.ledger
    found, plain = beyond_offsets(*ledgers), plain_beyond(*ledgers, (1, 20))
    assert {name: found.offsets[name] for name in plain.offsets} == plain.offsets
    relations = found.chosen.relations
    assert not set(relations) & set(plain.unchosen)
    assert relations == sorted({name for name, _ in plain.scores if plain.hard[name] >= 30})
    by_relation = found.chosen.hits.scores("model")
    for (name, k), score in plain.scores.items():
        if name in relations:
            column = relations.index(name)
            assert by_relation[k - 1, column] == pytest.approx(score, abs=1e-9)
    counted = [name for name in relations if name not in NOT_IN_MEAN]
    assert found.chosen.hits.counted == counted
    assert len(counted) > 2
    for k in (1, 20):
        mean = np.mean([plain.scores[name, k] for name in counted])
        assert found.chosen.hits.mean("model").value[k - 1] == pytest.approx(mean, abs=1e-9)
    hard = {name: group.total for name, group in found.chosen.hits.groups.items()}
    assert hard == {name: plain.hard[name] for name in relations}


def test_of_equal_offsets_the_nearer_and_of_these_the_one_forward():
    for distances, best in (([-2, 2, 9, 1, 1], 1), ([9, -2, 2], 2), ([9, 9, 2, -3, -3], -3)):
        head = np.full(len(distances), 5, np.int32)
        zeros = head * 0
        table = EdgeTable(["r"], zeros, zeros, head, head + distances, head, head)
        assert best_offsets(table) == {"r": best}


def test_rivals_use_their_guesses(edges):
    """By the rule first no list has the avoided offset; the further ones are the most frequent of the hard edges."""
    offsets = best_offsets(edges["validation"])
    found = rivals_beyond(edges["validation"], edges["test"])
    validation, test = edges["validation"], edges["test"]
    for name, avoided in offsets.items():
        number = validation.relations.index(name)
        distance = (validation.first - validation.head)[validation.relation == number]
        left = Counter(distance[distance != avoided].tolist())
        if not left or name not in found["offset"].relations:
            continue
        further = min(left, key=lambda one: (-left[one], abs(one)))
        of_relation = test.relation == test.relations.index(name)
        away = (test.first - test.head)[of_relation]
        hits = found["offset"].hits.groups[name].sums["offset"][0].sum()
        assert hits == (away[away != avoided] == further).sum(), name


def test_without_hard_edges_there_is_no_score(edges):
    """Where every dependent follows its head, as an offset says."""
    head = np.arange(4, dtype=np.int32)
    table = EdgeTable(["r"], head, head * 0, head, head + 1, head + 1, head + 9)
    ledgers = [planted(table, head), planted(table, head)]
    assert beyond_offsets(*ledgers) is None


@pytest.mark.parametrize(
    "functions, hard, counts", [(6, 5, True), (6, 4, False), (5, 9, False), (6, 1, False)]
)
def test_a_relation_counts_if_it_has_thirty_hard_edges_in_six_functions(functions, hard, counts):
    """So many functions with so many hard edges each, at distance 5, and one more at distance 1. All edges are found."""
    of_one = np.array([1] * (hard + 1) + [5] * hard, np.int32)
    distance, function = np.tile(of_one, functions), np.repeat(np.arange(functions), len(of_one))
    zeros = np.zeros(len(distance), np.int32)
    table = EdgeTable(["r"], function.astype(np.int32), zeros, zeros, distance, distance, zeros + 9)
    found = beyond_offsets(*[planted(table, zeros)] * 2)
    chosen = found.chosen
    assert (chosen.hits.counted == chosen.relations == ["r"]) == counts
    assert not counts or chosen.hits.mean("model").value[0] == 100


@pytest.mark.parametrize("easy", ["validation", "test"])
def test_without_hard_edges_in_one_split_there_are_no_rivals(edges, easy):
    kept = ~is_hard(edges[easy], best_offsets(edges["validation"]))
    columns = {name: column[kept] for name, column in edges[easy].columns.items()}
    fewer = dataclasses.replace(edges[easy], **columns, begin=edges[easy].begin[kept])
    assert rivals_beyond(**edges | {easy: fewer}) == {}
