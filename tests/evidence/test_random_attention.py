"""Random attention: every order of the other tokens of a row is as likely as any."""

from __future__ import annotations

import functools
from itertools import permutations

import numpy as np
import pytest

from codesyntax_metric.topk_uas import DIRECTIONS, HEAD_TO_DEPENDENT
from probing.evidence.baselines import Edges
from probing.evidence.random_attention import GUESSES, expected_by_relation, random_attention
from probing.instruments.attention.ledger import EDGES_AT_ONCE


def edges_of(*functions, left_out=()):
    """Functions of (tokens, edges), each edge (head, first, last); `left_out`: places among all tokens."""
    rows, begin = [], 0
    for number, (tokens, edges) in enumerate(functions):
        rows += [(number, 0, head, first, last, tokens, begin) for head, first, last in edges]
        begin += tokens
    names = ("function", "relation", "head", "first", "last", "tokens", "begin")
    columns = dict(zip(names, np.array(rows, np.int64).T))
    never = np.isin(np.arange(begin), left_out)
    return Edges(
        ["If:if->test"],
        **columns,
        view=None,
        keyword=np.full(begin, -1),
        left_out=never,
        language="java",
        settings={},
    )


def by_every_order(tokens, left_out, readers, sought):
    """How often k guesses find any of the tokens sought, over every order in the row of each reader: (k,)."""
    missed = np.ones(20)
    for reader in readers:
        others = [token for token in range(tokens) if token != reader and token not in left_out]
        orders = list(permutations(others))
        hits = np.zeros(20)
        for order in orders:
            ranked = [] if reader in left_out else [*order, reader]
            places = [ranked.index(token) for token in sought if token in ranked]
            hits[min(places, default=20) :] += 1
        missed *= 1 - hits / len(orders)
    return 1 - missed


@functools.cache
def expected_hits(case, direction):
    """How often each edge is hit: (rules, edges, k)."""
    tokens, edges, left_out = CASES[case]
    of_edges = []
    for head, first, last in edges:
        ends = [(first,), range(first, last + 1), (last,)]
        of_edges.append(
            [
                by_every_order(tokens, left_out, (head,), dependent)
                if direction == HEAD_TO_DEPENDENT
                else by_every_order(tokens, left_out, dependent, (head,))
                for dependent in ends
            ]
        )
    return np.array(of_edges).swapaxes(0, 1)


CASES = {
    "spans and tokens of one row": (5, [(1, 2, 4), (1, 3, 3), (1, 0, 0)], ()),
    "a span around its head": (5, [(2, 1, 3), (2, 2, 2)], ()),
    "a span that begins at its head": (4, [(1, 1, 3)], ()),
    "never predicted": (5, [(0, 2, 3), (0, 3, 3), (0, 4, 4)], (3,)),
    "a reader that is never predicted": (5, [(0, 2, 3), (1, 2, 2)], (0,)),
    "never predicted on both sides": (5, [(2, 3, 3), (2, 1, 1)], (1, 3)),
    "two rows": (4, [(0, 1, 1), (3, 1, 2)], ()),
}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES)
def test_edges_are_hit_as_often_as_over_every_order(case, direction):
    """By the expected score, and by the ranks that are drawn."""
    tokens, edges, left_out = CASES[case]
    table = edges_of((tokens, edges), left_out=left_out)
    expected = expected_hits(case, direction)
    scores = expected_by_relation(table, direction)["If:if->test"]
    assert scores == pytest.approx(100 * expected.mean(axis=1).flatten())
    heads = 4_000
    ranks = random_attention(table, direction, heads).ranks[:, :, 0, :, None]
    drawn = (ranks < np.arange(1, 21)).mean(axis=2)
    assert (abs(drawn - expected) <= 5 * np.sqrt(expected * (1 - expected) / heads) + 1e-9).all()


def test_tokens_behind_the_last_guess_are_worst():
    ranks = np.asarray(
        random_attention(edges_of((101, [(0, 1, 1), (0, 7, 7)])), heads=20_000).ranks
    )[0, :, 0]
    assert set(np.unique(ranks)) == {*range(GUESSES), 255}
    assert np.abs((ranks < GUESSES).mean(axis=1) - GUESSES / 100).max() < 0.015


def test_ranks_are_the_same_whatever_is_read_at_once(monkeypatch):
    functions = [
        (30, [(0, 1, 4), (0, 9, 9), (3, 2, 2)]),
        (40, [(5, 6, 6)]),
        (25, [(1, 2, 8), (2, 3, 3)]),
    ] * 900
    ledger = random_attention(edges_of(*functions), heads=3, seed=4)
    whole = np.asarray(ledger.ranks)
    for at_once in (1, 7, 1000, EDGES_AT_ONCE):
        parts = [(part, ranks.copy()) for part, ranks in ledger.parts(at_once)]
        assert [part.stop - part.start for part, _ in parts[:-1]] == [at_once] * (len(parts) - 1)
        assert np.array_equal(np.concatenate([ranks for _, ranks in parts], axis=1), whole)
    assert not np.array_equal(whole, random_attention(edges_of(*functions), heads=3, seed=5).ranks)
    monkeypatch.setattr("probing.evidence.random_attention._MOST_IN_MEMORY", 0)
    drawn_again = random_attention(edges_of(*functions), heads=3, seed=4)
    assert not isinstance(drawn_again.ranks, np.ndarray)
    assert np.array_equal(drawn_again.ranks, whole)
    assert drawn_again.digest() == ledger.digest()
    heads_apart = whole[0, :, 0]
    assert not np.array_equal(heads_apart[:, 0], heads_apart[:, 1])
