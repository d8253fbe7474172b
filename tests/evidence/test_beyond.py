"""The beyond-offset score: what is planted comes back, and every number equals a plain computation."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from support.references.plain_beyond import plain_beyond

from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.baselines import pick, read_edges
from probing.evidence.beyond import beyond, rivals
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


def of_splits(edges, rank_of):
    return [planted(edges[split], rank_of(edges[split])) for split in ("validation", "test")]


@pytest.mark.slow
def test_offsets_find_nothing_and_knowledge_everything(edges):
    """A head that copies the best offset of each relation, and one that knows the edges."""
    offsets = best_offsets(edges["validation"])
    ledgers = of_splits(edges, lambda some: np.where(is_hard(some, offsets), 255, 0))
    copies = beyond(*ledgers)
    assert copies.mean.value[:20].tolist() == [0] * 20
    knows = beyond(*of_splits(edges, lambda some: np.zeros(len(some))))
    assert np.array(knows.mean[:3])[:, :20].tolist() == [[100] * 20] * 3
    assert copies.in_mean == knows.in_mean
    others = rivals(edges["validation"], edges["test"])
    # without those of few edges
    assert others.of("offset", copies.chosen).relations == copies.chosen.relations
    assert set(others.hits["offset"].relations) > {*copies.chosen.relations}


@pytest.mark.slow
def test_a_plain_computation_from_the_ledgers_agrees(evidence):
    """Score, edges and relations left out, from the rows of both ledgers, edge by edge."""
    ledgers = evidence.probed.validation.ledger, evidence.probed.test.ledger
    found, plain = beyond(*ledgers), plain_beyond(*ledgers, (1, 20))
    assert {name: found.offsets[name] for name in plain.offsets} == plain.offsets
    assert sorted(found.chosen.unchosen) == plain.unchosen
    relations = found.chosen.relations
    assert relations == sorted({name for name, _ in plain.scores if plain.hard[name] >= 30})
    by_relation = found.chosen.hits.scores("model")
    for (name, k), score in plain.scores.items():
        if name in relations:
            column = relations.index(name)
            assert by_relation[k - 1, column] == pytest.approx(score, abs=1e-9)
    counted = [name for name in relations if name not in NOT_IN_MEAN]
    assert found.in_mean == counted and len(counted) > 2
    for k in (1, 20):
        mean = np.mean([plain.scores[name, k] for name in counted])
        assert found.mean.value[k - 1] == pytest.approx(mean, abs=1e-9)
    hard = {name: group.total for name, group in found.chosen.hits.groups.items()}
    assert hard == {name: plain.hard[name] for name in relations}


def test_best_offsets_are_those_of_the_offset_baseline(edges):
    """As long as it gains anything: greedy choice and frequency are the same where an edge has one distance."""
    baseline = pick(edges["validation"])
    for name, offset in best_offsets(edges["validation"]).items():
        assert [offset] == baseline.names("offset", "first", name)[:1]


def test_of_equal_offsets_the_nearer_and_of_these_the_one_forward():
    for distances, best in (([-2, 2, 9, 1, 1], 1), ([9, -2, 2], 2), ([9, 9, 2, -3, -3], -3)):
        head = np.full(len(distances), 5, np.int32)
        zeros = head * 0
        table = EdgeTable(["r"], zeros, zeros, head, head + distances, head, head)
        assert best_offsets(table) == {"r": best}


def test_rivals_use_their_guesses(edges):
    """By the rule first no list has the avoided offset; the further ones are the most frequent of the hard edges."""
    offsets = best_offsets(edges["validation"])
    found = rivals(edges["validation"], edges["test"])
    validation, test = edges["validation"], edges["test"]
    for name, avoided in offsets.items():
        number = validation.relations.index(name)
        distance = (validation.first - validation.head)[validation.relation == number]
        left = Counter(distance[distance != avoided].tolist())
        if not left or name not in found.hits["offset"].relations:
            continue
        further = min(left, key=lambda one: (-left[one], abs(one)))
        of_relation = test.relation == test.relations.index(name)
        away = (test.first - test.head)[of_relation]
        hits = found.hits["offset"].hits.groups[name].sums["offset"][0].sum()
        assert hits == (away[away != avoided] == further).sum(), name


def test_without_hard_edges_there_is_no_score(edges):
    """Where every dependent follows its head, as an offset says."""
    head = np.arange(4, dtype=np.int32)
    table = EdgeTable(["r"], head, head * 0, head, head + 1, head + 1, head + 9)
    ledgers = [planted(table, head), planted(table, head)]
    assert beyond(*ledgers) is None


def test_a_relation_counts_if_it_has_thirty_hard_edges_in_six_functions():
    """r, s, t and u have 6, 6, 5 and 6 hard edges at distance 5 in each of 5, 6, 6 and 1 functions. All edges are found
    but those of s."""
    functions, each = {"r": 6, "s": 6, "t": 5, "u": 6}, {"r": 5, "s": 4, "t": 9, "u": 1}
    relation = np.repeat(
        np.arange(4), [functions[name] * (2 * each[name] + 1) for name in "rstu"]
    ).astype(np.int32)
    function = np.concatenate(
        [np.repeat(np.arange(functions[name]), 2 * each[name] + 1) for name in "rstu"]
    )
    distance = np.concatenate(
        [np.tile([1] * (each[name] + 1) + [5] * each[name], functions[name]) for name in "rstu"]
    )
    function, distance = function.astype(np.int32), distance.astype(np.int32)
    head = np.zeros(len(relation), np.int32)
    table = EdgeTable(["r", "s", "t", "u"], function, relation, head, distance, distance, head + 9)
    rank = np.where(relation == 1, 200, 0)
    found = beyond(planted(table, rank), planted(table, rank))
    assert found.in_mean == found.chosen.relations == ["r"] and found.mean.value[0] == 100


def test_without_hard_edges_in_one_split_there_are_no_rivals(edges):
    offsets, easy = best_offsets(edges["validation"]), {}
    for split, some in edges.items():
        kept = ~is_hard(some, offsets)
        columns = {name: column[kept] for name, column in some.columns.items()}
        easy[split] = dataclasses.replace(some, **columns, begin=some.begin[kept])
    assert rivals(edges["validation"], easy["test"]) is None
    assert rivals(easy["validation"], edges["test"]) is None
