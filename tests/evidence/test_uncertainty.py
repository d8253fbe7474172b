"""Sums by relation against dense tables: the same counts, intervals and p-values."""

from __future__ import annotations

import numpy as np
import pytest
from support.evidence.hits import from_hits
from support.references.plain_uncertainty import plain_mean, plain_p

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import RULES
from probing.evidence import uncertainty
from probing.evidence.selection import Found, exchanged, resampled
from probing.evidence.uncertainty import compare, compare_means, degrees_of, estimate
from probing.stats.statistics import signs

FUNCTIONS, KS = 60, 4


def tables(seed, most=5):
    """Edges (F, R) of relations that are in many, some or few functions, and hits (rules, k, F, R) that grow with k."""
    rng = np.random.default_rng(seed)
    present = rng.random((FUNCTIONS, 4)) < [1, 0.5, 0.2, 0.1]
    edges = (present * rng.integers(1, most, present.shape)).astype(np.int32)
    edges[0] = most  # every relation has edges
    hits = np.sort(rng.integers(0, edges + 1, (len(RULES), KS, *edges.shape)), axis=1)
    hits[1, :, :, 0] = hits[0, :, :, 0]  # as of a relation whose dependents are single tokens
    return [f"r{number}" for number in range(4)], edges, hits


@pytest.mark.parametrize("seed", range(3))
def test_outcomes_keep_every_hit_and_each_column_once(seed):
    names, edges, hits = tables(seed)
    outcomes = from_hits(names, edges, hits)
    assert np.array_equal(outcomes.hits, hits) and np.array_equal(outcomes.total, hits.sum(axis=2))
    for found, of_relation in zip(outcomes.found, np.moveaxis(hits, -1, 0)):
        assert len(found.columns) == len(np.unique(of_relation.reshape(-1, FUNCTIONS), axis=0))
    some = outcomes.only(["r3", "r1"]).at(["last"], [2, 4])
    assert np.array_equal(some.hits, hits[2:, [1, 3]][..., [1, 3]])


def test_sums_over_drawn_and_exchanged_functions_are_those_of_the_dense_table():
    names, edges, hits = tables(0)
    found = from_hits(names, edges, hits).found
    weight = np.random.default_rng(3).multinomial(FUNCTIONS, np.full(FUNCTIONS, 1 / FUNCTIONS), 50)
    drawn_edges, drawn = resampled(found, FUNCTIONS, 50, 3)
    assert np.array_equal(drawn_edges, weight @ edges)
    dense = weight @ hits.reshape(-1, FUNCTIONS, 4)  # (rules * k, B, R)
    assert np.array_equal(drawn, dense.swapaxes(0, 1))
    sums = [np.hstack(parts) for parts in zip(*exchanged(found, FUNCTIONS, 1100, 3))]  # more than one part
    sign = np.vstack(list(signs(FUNCTIONS, 1100, 3)))
    for one, of_relation, of_columns in zip(found, np.moveaxis(hits, -1, 0), sums):
        assert np.array_equal(of_columns[one.which], of_relation @ sign.T)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_and_p_are_those_of_a_plain_computation(seed, monkeypatch):
    names, edges, hits = tables(seed)
    _, _, others = tables(seed)
    others[..., 1:] = np.sort(np.random.default_rng(seed + 9).integers(0, edges + 1, hits.shape), axis=1)[..., 1:]
    one, other = (from_hits(names, edges, found) for found in (hits, others))
    plain = plain_mean(hits, edges, 200, 0, degrees_of(edges))
    monkeypatch.setattr(uncertainty, "RESAMPLES", 200)
    monkeypatch.setattr(uncertainty, "PERMUTATIONS", 300)
    np.testing.assert_allclose(estimate(one).mean, plain, rtol=1e-12)
    compared, gained = compare(one, other), hits - others
    for rule, k in np.ndindex(hits.shape[:2]):
        assert compared.p[rule, k].tolist() == plain_p(gained[rule, k], edges > 0, 300, 0).tolist()
        share = (gained[rule, k] / edges.sum(axis=0)).sum(axis=1, keepdims=True)
        assert compared.p_mean[rule, k] == pytest.approx(plain_p(share, share == share, 300, 0)[0], abs=1e-12)


def test_columns_of_a_relation_are_told_apart_by_all_their_counts():
    counts = np.zeros((1, 3, 5), np.int16)
    counts[0, 1, 4] = 256  # as bytes, the order of the digits decides
    counts[0, 2, 4] = 1
    found = Found.of(np.arange(5), np.full(5, 300), counts)
    assert len(found.columns) == 3 and np.array_equal(found.counts, counts)


def test_means_of_pairs_are_compared_as_each_pair_is(monkeypatch):
    monkeypatch.setattr(uncertainty, "PERMUTATIONS", 300)
    names, edges, _ = tables(0)
    several = [from_hits(names, edges, tables(0)[2]) for _ in range(2)]
    rng = np.random.default_rng(7)
    several += [
        from_hits(names, edges, np.sort(rng.integers(0, edges + 1, (len(RULES), KS, *edges.shape)), axis=1))
        for _ in range(2)
    ]
    pairs = [(0, 1), (0, 2), (3, 1), (2, 3)]
    for (one, other), found in zip(pairs, compare_means(several, pairs)):
        expected = compare(several[one], several[other])
        assert np.array_equal(found.mean, expected.difference.mean)
        np.testing.assert_allclose(found.p, expected.p_mean, rtol=1e-12)
    with pytest.raises(LedgerError, match="or on different edges"):
        compare_means([several[0], from_hits(names, edges + 1, several[0].hits)], [(0, 1)])
