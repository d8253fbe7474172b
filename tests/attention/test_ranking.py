"""Ranking on the device and in numpy, against a plain loop."""

from __future__ import annotations

from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from support.labels.edge_tables import edge_table

from codesyntax_metric.topk_uas import (
    DEPENDENT_TO_HEAD,
    DIRECTIONS,
    HEAD_TO_DEPENDENT,
    RULES,
    rank_attention,
)
from probing.instruments.attention import ranking
from probing.instruments.attention.align import Alignment
from probing.instruments.attention.attended import ChoicesByKind
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ranking import (
    BatchListener,
    BatchRanker,
    FirstChoices,
    Plan,
    _group_by_size,
)
from probing.models.capture import rows_of


def plain_ranks(attention, edges, direction):
    """(rules, edges, layers, heads), by sorting tokens as the rules in topk_uas.py say."""
    layers, heads, tokens, _ = attention.shape
    mapped = [attention[:, :, t].any() or attention[:, :, :, t].any() for t in range(tokens)]

    def rank(layer, head, reader, wanted):
        if not mapped[reader] or not mapped[wanted]:
            return 255
        weights = [0 if t == reader else attention[layer, head, reader, t] for t in range(tokens)]
        order = sorted((t for t in range(tokens) if mapped[t]), key=lambda t: (-weights[t], t))
        return min(255, order.index(wanted))

    ranks = np.zeros((len(RULES), len(edges), layers, heads), int)
    for e, (_, head_token, first, last) in enumerate(edges):
        for layer in range(layers):
            for head in range(heads):
                span = range(first, last + 1)
                if direction == HEAD_TO_DEPENDENT:
                    found = [rank(layer, head, head_token, t) for t in span]
                else:
                    found = [rank(layer, head, t, head_token) for t in span]
                ranks[:, e, layer, head] = found[0], min(found), found[-1]
    return ranks


def random_function(rng, index, layers, heads):
    """A function with shared and missing sub-tokens and many ties; weights and counts are powers of two, so sums are exact."""
    tokens = int(rng.integers(2, 14))
    first, last, next_sub = [], [], 1  # sub-token 0 is special
    for _ in range(tokens):
        if rng.random() < 0.2:
            first.append(-1), last.append(-1)
            continue
        begin = next_sub - (next_sub > 1 and rng.random() < 0.2)
        next_sub = begin + int(rng.choice([1, 2, 4]))
        first.append(begin), last.append(next_sub - 1)
    subs = next_sub + 1  # the last one is special
    maps = rng.choice([0.0, 0.25, 0.5, 1.0], size=(layers, heads, subs, subs)).astype(np.float32)
    count = int(rng.integers(0, 9))
    head, begin = rng.integers(0, tokens, (2, count)).astype(np.int32)
    end = np.array([rng.integers(f, tokens) for f in begin], np.int32)
    alignment = Alignment(np.array(first, np.int32), np.array(last, np.int32))
    table = edge_table(tokens, list(zip(head, begin, end)), index)
    function = EncodedFunction(index, np.zeros(subs, np.int32), alignment, table)
    member = np.array(
        [[b <= s <= e and b >= 0 for s in range(subs)] for b, e in zip(first, last)], np.float32
    )
    mean = member / np.maximum(member.sum(axis=1, keepdims=True), 1)
    words = mean @ maps @ member.T  # (layers, heads, tokens, tokens)
    # seen by plain_ranks as having sub-tokens
    words[:, :, range(tokens), range(tokens)] += alignment.mapped * 0.125
    edges = [("relation", int(h), int(b), int(e)) for h, b, e in zip(head, begin, end)]
    return function, maps, words, edges


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
# one function and one edge at a time, or all at once
@pytest.mark.parametrize("elements", [1, 1 << 20])
@pytest.mark.parametrize("averages", [False, True])
def test_batch_ranker_like_a_plain_loop(direction, elements, averages):
    """With averages, of heads again by weights over the number of a token's sub-tokens."""
    rng = np.random.default_rng(7)
    layers, heads = 2, 3
    for _ in range(15):
        functions, maps, words, edges = zip(
            *(random_function(rng, i, layers, heads) for i in range(rng.integers(1, 5)))
        )
        length = max(len(function.ids) for function in functions)
        batch = torch.zeros(layers, len(functions), heads, length, length)
        for place, one in enumerate(maps):
            batch[:, place, :, : one.shape[2], : one.shape[3]] = torch.from_numpy(one)
        ranker = BatchRanker(
            functions,
            layers,
            heads,
            length,
            torch.device("cpu"),
            elements,
            direction,
            averages=averages,
        )
        for layer in batch:
            ranker(rows_of(layer))
        if averages:
            sizes = [one.alignment.last - one.alignment.first + 1 for one in functions]
            words = [
                np.concatenate([of_one, of_one / np.maximum(size, 1)], axis=1)
                for of_one, size in zip(words, sizes)
            ]
        expected = np.concatenate(
            [plain_ranks(w, e, direction) for w, e in zip(words, edges)], axis=1
        )
        np.testing.assert_array_equal(ranker.found.numpy(), expected)
        numpy_ranks = [rank_attention(w, e, direction) for w, e in zip(words, edges)]
        np.testing.assert_array_equal(np.concatenate(numpy_ranks, axis=1), expected)


@pytest.mark.parametrize(
    "direction, edges_at_once",
    [(HEAD_TO_DEPENDENT, [3, 3, 3, 2, 3, 3, 1, 1]), (DEPENDENT_TO_HEAD, [3, 3, 2])],
)
def test_no_more_weights_at_once_than_allowed(monkeypatch, direction, edges_at_once):
    """Rows of four tokens by two heads have eight weights. Of 24, those of three edges: of the 11 different ones by the first
    token, and of the four with several tokens again by all and by the last. Or of the eight different pairs of a token of a
    dependent and a head token: six in the rows of the first three tokens, which are read at once, and two in the last."""
    seen, real = [], Plan._rank_of
    monkeypatch.setattr(
        Plan,
        "_rank_of",
        lambda plan, rows, *rest, **named: (
            seen.append(len(rows)) or real(plan, rows, *rest, **named)
        ),
    )
    single = [
        (head, token, token)
        for head, token in ((0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3), (2, 0))
    ]
    several = [(0, 1, 2), (0, 2, 3), (1, 2, 3), (2, 0, 1)]
    place = np.arange(4, dtype=np.int32)
    edges = edge_table(4, [*single, *several, single[0]])  # the last has the ranks of the first
    edges = edges if direction == HEAD_TO_DEPENDENT else edge_table(4, [*single, *several])
    function = EncodedFunction(0, place, Alignment(place, place), edges)
    ranker = BatchRanker([function] * 2, 1, 2, 4, torch.device("cpu"), 24, direction)
    ranker(rows_of(torch.rand(2, 2, 4, 4)))
    assert [group for group, _ in ranker.groups] == [slice(0, 1), slice(1, 2)]
    assert seen == 2 * edges_at_once
    # it keeps nothing by itself
    assert BatchListener([function], 1, 2, 4, torch.device("cpu"), 24).found.numel() == 0


@pytest.mark.parametrize("least", [1, 30])
@pytest.mark.slow
@pytest.mark.parametrize(
    "direction, kind",
    [
        (HEAD_TO_DEPENDENT, "both ways"),
        (DEPENDENT_TO_HEAD, "causal"),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in [
                (DEPENDENT_TO_HEAD, "both ways"),
                (HEAD_TO_DEPENDENT, "causal"),
            ]
        ),
    ],
)
def test_any_budget_gives_the_same_bytes(direction, kind, least, monkeypatch):
    """Of a function read in blocks, down to single rows of a token with many sub-tokens, which has no later ones."""
    monkeypatch.setattr(ranking, "_LEAST_ROWS", least)
    rng = np.random.default_rng(11)
    heads, causal = 3, kind == "causal"
    whole = torch.device("cpu"), 1 << 30, direction
    for number in range(6):
        function, *_ = random_function(rng, number, 1, heads)
        length = len(function.ids)
        scores = torch.from_numpy(
            rng.normal(scale=9, size=(1, heads, length, length)).astype(np.float32)
        )
        maps = (
            scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
            if causal
            else scores
        )
        maps = maps.softmax(dim=-1)
        picked = np.stack([np.zeros((3, 1), int), rng.integers(0, heads, (3, 1))], axis=-1)
        for listener in (BatchRanker, partial(FirstChoices, picked=picked)):
            expected = listener([function], 1, heads, length, *whole)
            expected(rows_of(maps))
            for elements in (1, heads * length, 2 * heads * length, 100, 300):
                found = listener(
                    [function], 1, heads, length, whole[0], elements, direction, causal
                )
                rows = Mock(side_effect=rows_of(maps))
                found(rows)
                assert found.found.numpy().tobytes() == expected.found.numpy().tobytes()
                sizes = [
                    heads * asked.args[1].shape[1] * asked.args[2] for asked in rows.call_args_list
                ]
                fewest = least * length if elements > 1 else length
                assert max(sizes, default=0) <= max(elements, heads * fewest)
                assert elements > 1 or all(
                    asked.args[1].shape[1] == 1 for asked in rows.call_args_list
                )


def test_functions_are_read_together_as_far_as_their_rows_fit():
    """By hand, of functions with so many rows: each takes as many as the longest of its group, and at least one."""

    def groups(rows, most_rows):
        first = np.zeros(1, np.int32)
        functions = [
            EncodedFunction(0, first, Alignment(first, first + many - 1), edge_table(1, []))
            for many in rows
        ]
        found = _group_by_size(functions, [np.arange(1)] * len(rows), most_rows)
        return [rows[group] for group in found]

    assert groups([2, 3, 1, 4, 0, 0], 6) == [[2, 3], [1], [4], [0, 0]]
    assert groups([0, 0, 0], 1) == [[0], [0], [0]]
    assert groups([1, 1, 1, 9, 1, 1], 3) == [[1, 1, 1], [9], [1, 1]]
    assert groups([9, 9], 6) == [[9], [9]]


def test_kinds_of_attended_tokens_are_counted_alike_for_functions_that_are_read_together():
    rng = np.random.default_rng(3)
    functions, maps, *_ = zip(*(random_function(rng, index, 1, 2) for index in range(6)))
    kinds = {one.index: rng.integers(0, 3, len(one.alignment.first)) for one in functions}
    picked = np.zeros((len(RULES), 1, 2), int)

    def counted(chosen, elements):
        length = max(len(functions[index].ids) for index in chosen)
        batch = torch.zeros(len(chosen), 2, length, length)
        for place, index in enumerate(chosen):
            size = maps[index].shape[2]
            batch[place, :, :size, :size] = torch.from_numpy(maps[index][0])
        asked = [functions[index] for index in chosen]
        listener = ChoicesByKind(
            asked, 1, 2, length, torch.device("cpu"), elements, picked=picked, kinds=kinds, number=3
        )
        listener(rows_of(batch))
        return len(listener.groups), listener.attended.numpy()

    groups, together = counted(range(6), 1 << 20)
    assert groups < 6
    assert together.sum() > 10
    assert (together == sum(counted([index], 1 << 20)[1] for index in range(6))).all()
