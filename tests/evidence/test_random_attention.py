"""Random attention: every order of the other tokens is as likely as any, for all that one row seeks together."""

from __future__ import annotations

import functools
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from codesyntax_metric.topk_uas import DIRECTIONS, HEAD_TO_DEPENDENT
from probing.evidence import random_attention as module
from probing.evidence.baselines import Edges
from probing.evidence.random_attention import GUESSES, random_attention
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
        keyword=np.full(begin, -1),
        left_out=never,
        language="java",
        settings={},
    )


@functools.cache
def by_every_order(case, direction):
    """Ranks (rules, edges) of every order of the other tokens in each row that is read -> how likely they are."""
    tokens, edges, left_out = CASES[case]
    readers = sorted(
        {head for head, *_ in edges}
        if direction == HEAD_TO_DEPENDENT
        else {token for _, first, last in edges for token in range(first, last + 1)}
    )
    likely = Counter({(): 1.0})  # the ranks of each row, row by row
    for reader in readers:
        others = [token for token in range(tokens) if token != reader and token not in left_out]
        of_row = Counter()
        for order in permutations(others):
            rank = {token: place for place, token in enumerate([*order, reader])}
            of_row[
                tuple(
                    255 if reader in left_out else rank.get(token, 255) for token in range(tokens)
                )
            ] += 1
        total = of_row.total()
        likely = Counter(
            {(*one, row): p * n / total for one, p in likely.items() for row, n in of_row.items()}
        )
    found = Counter()
    for rows, p in likely.items():
        rank = dict(zip(readers, rows))
        if direction == HEAD_TO_DEPENDENT:
            of_edges = [
                [rank[head][token] for token in range(first, last + 1)]
                for head, first, last in edges
            ]
        else:
            of_edges = [
                [rank[token][head] for token in range(first, last + 1)]
                for head, first, last in edges
            ]
        found[tuple((of[0], min(of), of[-1]) for of in of_edges)] += p
    return found


CASES = {
    "spans and tokens of one row": (5, [(1, 2, 4), (1, 3, 3), (1, 0, 0)], ()),
    "a span around its head": (5, [(2, 1, 3), (2, 2, 2)], ()),
    "a span that begins at its head": (4, [(1, 1, 3)], ()),
    "never predicted": (5, [(0, 2, 3), (0, 3, 3), (0, 4, 4)], (3,)),
    "a reader that is never predicted": (5, [(0, 2, 3), (1, 2, 2)], (0,)),
    "never predicted on both sides": (5, [(2, 3, 3), (2, 1, 1)], (1, 3)),
    "two rows": (4, [(0, 1, 1), (3, 1, 2)], ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("few", [0, module._FEW])
@pytest.mark.parametrize("case", CASES)
def test_all_ranks_of_a_function_are_as_likely_as_by_every_order(case, few, direction, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    tokens, edges, left_out = CASES[case]
    heads = 4_000
    ranks = random_attention(edges_of((tokens, edges), left_out=left_out), direction, heads).ranks[
        :, :, 0
    ]
    found = Counter(tuple(map(tuple, of_head)) for of_head in ranks.transpose(2, 1, 0).tolist())
    expected = by_every_order(case, direction)
    assert found.keys() <= expected.keys()
    for outcome, p in expected.items():
        assert abs(found[outcome] / heads - p) < 5 * np.sqrt(p * (1 - p) / heads) + 1e-12


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_the_expected_score_is_the_mean_over_every_order(case, direction):
    tokens, edges, left_out = CASES[case]
    scores = module.by_relation(edges_of((tokens, edges), left_out=left_out), direction)
    hits = np.zeros((3, 20))  # by rule and k, of all edges
    for outcome, p in by_every_order(case, direction).items():
        for ranks in outcome:
            hits += p * np.array([[rank < k for k in range(1, 21)] for rank in ranks])
    assert scores["If:if->test"] == pytest.approx(100 * hits.flatten() / len(edges))


@pytest.mark.parametrize("few", [0, module._FEW])
def test_tokens_behind_the_last_guess_are_worst(few, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    ranks = np.asarray(
        random_attention(edges_of((101, [(0, 1, 1), (0, 7, 7)])), heads=20_000).ranks
    )[0, :, 0]
    assert set(np.unique(ranks)) == {*range(GUESSES), 255}
    assert np.abs((ranks < GUESSES).mean(axis=1) - GUESSES / 100).max() < 0.015
    assert (ranks[0] == ranks[1])[ranks[0] < 255].sum() == 0  # one place is not taken by two tokens


def test_ranks_are_the_same_whatever_is_read_at_once():
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
    heads_apart = whole[0, :, 0]
    assert not np.array_equal(heads_apart[:, 0], heads_apart[:, 1])
