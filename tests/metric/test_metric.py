"""The metric: ranks, counts and scores against a plain loop, by hand, and through every door of `evaluate`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import codesyntax_metric
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_metric import topk_uas
from codesyntax_metric.topk_uas import (
    NOT_IN_MEAN,
    RULES,
    RankCounts,
    rank_attention,
    score,
)

pytestmark = pytest.mark.usefixtures("evaluate")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "codesyntax_metric"
IN, OUT = "If:if->test", "Slice:lower->upper"  # a relation in the mean, and one outside


# A plain loop, written from the rules in the first lines of topk_uas.py: one edge, one attention head, one k at a time.


def predictions(attention, layer, head, reader):
    """The tokens that `reader` attends to, best first; only tokens with sub-tokens predict or are predicted."""
    tokens = range(len(attention[0][0]))
    mapped = [
        any(heads[t][other] or heads[other][t] for heads in chain(*attention) for other in tokens)
        for t in tokens
    ]
    weights = list(attention[layer][head][reader])
    weights[reader] = 0
    return (
        sorted((t for t in tokens if mapped[t]), key=lambda t: (-weights[t], t))
        if mapped[reader]
        else []
    )


def span(edge, rule):
    _, _, first, last = edge
    return {"first": [first], "any": list(range(first, last + 1)), "last": [last]}[rule]


def plain_score(functions, ks, rule):
    """What `compute` returns under "scores" and "relations", for functions of (attention as nested lists, edges)."""
    layers, heads = len(functions[0][0]), len(functions[0][0][0])
    relations = {}
    for name in {edge[0] for _, edges in functions for edge in edges}:
        count = sum(edge[0] == name for _, edges in functions for edge in edges)
        relations[name] = {"edges": count, "in_mean": name not in NOT_IN_MEAN}
        for k in ks:
            best = None
            for layer in range(layers):
                for head in range(heads):
                    hits = 0
                    for attention, edges in functions:
                        for edge in edges:
                            if edge[0] == name:
                                within = predictions(attention, layer, head, edge[1])[:k]
                                hits += any(token in within for token in span(edge, rule))
                    if best is None or hits > best[0]:
                        best = (hits, layer, head)
            relations[name][str(k)] = {
                "score": 100 * best[0] / count,
                "layer": best[1],
                "head": best[2],
            }
    means = {}
    for k in ks:
        values = [entry[str(k)]["score"] for entry in relations.values() if entry["in_mean"]]
        means[str(k)] = pytest.approx(sum(values) / len(values)) if values else None
    return {"scores": means, "relations": relations}


def plain_ranks(attention, edges, rule, direction=topk_uas.HEAD_TO_DEPENDENT):
    """The compact form of one rule, (edges, layers, heads) as nested lists: for the best of the reading tokens."""

    def rank(edge, layer, head):
        readers, wanted = [edge[1]], span(edge, rule)
        if direction != topk_uas.HEAD_TO_DEPENDENT:
            readers, wanted = wanted, readers
        orders = [predictions(attention, layer, head, reader) for reader in readers]
        found = [order.index(token) for order in orders for token in wanted if token in order]
        return min(found, default=255)

    shape = range(len(attention)), range(len(attention[0]))
    return [
        [[rank(edge, layer, head) for head in shape[1]] for layer in shape[0]] for edge in edges
    ]


FORMS = {
    "lists": lambda attention, edges: attention,
    "float32": lambda attention, edges: np.array(attention, np.float32),
    "float16": lambda attention, edges: np.array(attention, np.float16),
    "uint8": lambda attention, edges: (4 * np.array(attention)).astype(np.uint8),
    "torch": lambda attention, edges: torch.tensor(attention, requires_grad=True),
    "as a model gives it": lambda attention, edges: tuple(
        torch.tensor([layer], dtype=torch.bfloat16, requires_grad=True) for layer in attention
    ),
    "bfloat16": lambda attention, edges: torch.tensor(attention, dtype=torch.bfloat16),
    "list of tensors": lambda attention, edges: [torch.tensor(layer) for layer in attention],
    "ranks": lambda attention, edges: {
        rule: np.array(plain_ranks(attention, edges, rule), np.int64).reshape(
            len(edges), len(attention), len(attention[0])
        )
        for rule in RULES
    },
    "torch ranks": lambda attention, edges: {
        rule: torch.tensor(ranks) for rule, ranks in FORMS["ranks"](attention, edges).items()
    },
}
"""What users may pass for the same attention; its weights, quarters, are exact in every type."""


@st.composite
def functions(draw, count=st.integers(1, 4)):
    """Functions of one model: attention of few different weights, with tokens that have no sub-tokens, and edges."""
    layers, heads = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    result = []
    for _ in range(draw(count)):
        tokens = draw(st.integers(1, 6))
        token = st.integers(0, tokens - 1)
        size = layers * heads * tokens * tokens
        weights = draw(
            st.lists(st.sampled_from([0, 0.25, 0.25, 0.5, 1]), min_size=size, max_size=size)
        )
        attention = np.array(weights, float).reshape(layers, heads, tokens, tokens)
        lost = draw(st.lists(token, max_size=2))
        attention[..., lost] = attention[..., lost, :] = 0
        relation = st.sampled_from([IN, "children:parent->child", OUT])
        drawn = draw(st.lists(st.tuples(relation, token, token, token), max_size=5))
        result.append(
            (
                attention.tolist(),
                [(name, head, min(ends), max(ends)) for name, head, *ends in drawn],
            )
        )
    return result


def as_mapping(edge):
    return dict(zip(("relation", "head", "first", "last"), edge))


def computed(functions, form="lists", **options):
    metric = codesyntax_metric.load()
    for attention, edges in functions:
        reference = [*map(as_mapping, edges)] if form == "torch" else edges
        assert metric.add(prediction=FORMS[form](attention, edges), reference=reference) is None
    return metric.compute(**options)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=7, deadline=None)
@given(functions=functions(), rule=st.sampled_from(RULES))
def test_equals_plain_loop(form, functions, rule):
    plain = plain_score(functions, [1, 2, 3, 20], rule)
    result = computed(functions, form, k=[1, 2, 3, 20], rule=rule)
    assert {part: result[part] for part in plain} == plain
    assert result["functions"] == len(functions)


@pytest.mark.slow
@pytest.mark.parametrize("direction", topk_uas.DIRECTIONS)
@settings(max_examples=75, deadline=None)
@given(functions=functions(count=st.just(1)))
def test_ranks_equal_plain_loop(direction, functions):
    ((attention, edges),) = functions
    ranks = rank_attention(attention, edges, direction)
    assert ranks.dtype == np.uint8
    assert ranks.shape == (
        3,
        len(edges),
        len(attention),
        len(attention[0]),
    )
    assert [part.tolist() for part in ranks] == [
        plain_ranks(attention, edges, rule, direction) for rule in RULES
    ]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(functions())
def test_hard_leaves_out_the_edges_at_some_offsets(functions):
    """The score of the edges that are left, in both forms; the signature says that it is of these alone."""
    hard = {IN: [1], OUT: [-1, 2]}

    def left(edges):
        return [edge for edge in edges if edge[2] - edge[1] not in hard.get(edge[0], [])]

    if not any(left(edges) for _, edges in functions):
        return
    expected = plain_score(
        [(attention, left(edges)) for attention, edges in functions], [1, 2], "first"
    )
    ranks = [dict(zip(RULES, rank_attention(attention, edges))) for attention, edges in functions]
    for predictions in ([attention for attention, _ in functions], ranks):
        metric = codesyntax_metric.load()
        result = metric.compute(
            predictions=predictions,
            references=[edges for _, edges in functions],
            hard=hard,
            k=[1, 2],
            rule="first",
        )
        assert result["relations"] == expected["relations"]
        assert re.search(r"\|hard:[0-9a-f]{12}\|", result["signature"])


def test_hard_is_one_for_all_functions():
    attention, edges = np.full((1, 1, 3, 3), 0.5), [(IN, 0, 1, 1), (IN, 0, 2, 2)]
    metric = codesyntax_metric.load()
    metric.add(prediction=attention, reference=edges, hard={IN: [1]})
    with pytest.raises(CodeSyntaxError, match="other offsets in `hard`"):
        metric.add(prediction=attention, reference=edges)
    with pytest.raises(CodeSyntaxError, match="give it to add or add_batch"):
        metric.compute(hard={IN: [1]})
    for wrong in ([1], {IN: 1}, {IN: ["1"]}):
        with pytest.raises(CodeSyntaxError, match="expected relation -> offsets"):
            metric.add(prediction=attention, reference=edges, hard=wrong)
    result = metric.compute(k=[1])
    assert (result["relations"][IN]["edges"], result["functions"]) == (1, 1)
    metric.add(prediction=attention, reference=edges)
    assert metric.compute(k=[1])["relations"][IN]["edges"] == 2


# By hand


def test_four_tokens_by_hand():
    """`if x : y`, tokens 0 to 3. Best first, itself with weight 0 and equal weights by index, `if` attends
    in head 0 to x 0.3, y 0.2, colon 0.1, if 0 and in head 1 to y 0.5, x 0.2, colon 0.2, if 0.
    """
    attention = np.zeros((1, 2, 4, 4))
    attention[0, 0, 0] = [0.4, 0.3, 0.1, 0.2]
    attention[0, 1, 0] = [0.1, 0.2, 0.2, 0.5]
    edges = [("If:if->test", 0, 1, 1), ("If:if->body", 0, 2, 3)]
    #                        first: colon  any: colon or y  last: y
    # ranks of the test           x: 0, 1           0, 1      0, 1
    # ranks of the body              2, 2           1, 0      1, 0
    ranks = rank_attention(attention, edges)[:, :, 0]
    assert ranks.tolist() == [[[0, 1], [2, 2]], [[0, 1], [1, 0]], [[0, 1], [1, 0]]]
    metric = codesyntax_metric.load()
    metric.add(prediction=attention, reference=edges)
    none, all_of_them = ({"score": score, "layer": 0, "head": 0} for score in (0.0, 100.0))
    assert metric.compute(k=[3, 1, 3], rule="first") == {
        "scores": {"1": 50.0, "3": 100.0},
        "relations": {
            "If:if->body": {"edges": 1, "in_mean": True, "1": none, "3": all_of_them},
            "If:if->test": {"edges": 1, "in_mean": True, "1": all_of_them, "3": all_of_them},
        },
        "functions": 1,
        "signature": "uas|rule:first|k:1,3|heads:1x2|functions:1|edges:2|scoring:2",
    }
    metric.add(prediction=attention, reference=edges)
    by_last = metric.compute(k=[1], rule="last")
    assert by_last["scores"] == {"1": 100.0}
    assert by_last["relations"]["If:if->body"]["1"] == {"score": 100.0, "layer": 0, "head": 1}


def ranked(ranks, relations, rule="first", ks=(1, 3, 10)):
    """Scores from hand-written ranks (edges, layers, heads), the same for every rule."""
    counts = RankCounts(*np.shape(ranks)[1:])
    counts.add(relations, np.broadcast_to(np.array(ranks, np.uint8), (3, *np.shape(ranks))))
    return score(counts, ks, rule)


def test_each_k_chooses_its_own_head():
    # of two edges, head 0 finds one at once and the other tenth; head 1 finds both as second
    entry = ranked([[[0, 1]], [[9, 1]]], [IN, IN])["relations"][IN]
    assert entry["1"] == {"score": 50.0, "layer": 0, "head": 0}
    assert entry["3"] == {"score": 100.0, "layer": 0, "head": 1}
    assert entry["10"] == {"score": 100.0, "layer": 0, "head": 0}  # both heads: the lower


def test_equal_heads_go_by_lower_layer_then_lower_head():
    for ranks, layer, head in (([[5, 0], [0, 0]], 0, 1), ([[5, 5], [0, 0]], 1, 0)):
        best = ranked([ranks], [IN])["relations"][IN]["1"]
        assert (best["layer"], best["head"]) == (layer, head)


def test_relations_outside_the_mean_are_scored_only():
    both = ranked([[[0]], [[2]]], [IN, OUT])
    assert both["scores"] == {"1": 100.0, "3": 100.0, "10": 100.0}
    outside = both["relations"][OUT]
    assert (outside["edges"], outside["in_mean"]) == (1, False)
    assert [outside[k]["score"] for k in ("1", "3", "10")] == [0, 100, 100]
    assert ranked([[[0]]], [OUT])["scores"] == {"1": None, "3": None, "10": None}


def test_a_function_without_edges_counts_and_scores_nothing():
    result = computed([([[[[1.0]]]], [])])
    assert (result["scores"], result["relations"]) == (
        {"1": None, "3": None, "10": None, "20": None},
        {},
    )
    assert result["functions"] == 1


def test_a_token_without_sub_tokens_takes_no_place_and_is_a_counted_miss():
    # tokens 0 to 3; token 1 has none; token 0 attends to 3 only, so that 2 comes second and 1 never
    attention = np.zeros((1, 1, 4, 4))
    attention[0, 0, 0, 3] = attention[0, 0, 2, 2] = 1
    edges = [(IN, 0, 2, 2), (IN, 0, 1, 1), (IN, 1, 3, 3), (IN, 0, 1, 2)]
    # the order is 3, 0, 2 (0 and 2 weigh nothing): token 2 has rank 2
    assert rank_attention(attention, edges)[..., 0, 0].tolist() == [
        [2, 255, 255, 255],
        [2, 255, 255, 2],
        [2, 255, 255, 2],
    ]
    result = computed([(attention.tolist(), edges)], k=[2, 3])["relations"][IN]
    assert result["edges"] == 4
    assert result["2"]["score"] == 0
    assert result["3"]["score"] == 25


def test_ranks_saturate_behind_the_largest_k():
    attention = np.zeros((1, 1, 300, 300))
    attention[0, 0, 0] = np.arange(300, 0, -1)  # token t has rank t - 1
    edges = [(IN, 0, 255, 255), (IN, 0, 256, 256), (IN, 0, 299, 299)]
    assert rank_attention(attention, edges)[0, :, 0, 0].tolist() == [254, 255, 255]
    entry = computed([(attention, edges)], "float32", k=[254, 255])["relations"][IN]
    assert [entry[k]["score"] for k in ("254", "255")] == [0, pytest.approx(100 / 3)]


def test_weights_that_differ_beyond_single_precision_are_no_tie():
    near = [0, 0.5, np.nextafter(0.5, 1), 0]
    attention = np.zeros((1, 1, 4, 4))
    attention[0, 0, 0] = near
    attention[0, 0, 3, 3] = 1
    for given_as in (attention, torch.from_numpy(attention), attention.tolist()):
        assert rank_attention(given_as, [(IN, 0, 2, 2)])[0].item() == 0


def test_counts_merge_in_any_grouping():
    rng = np.random.default_rng(0)
    names = np.array([IN, OUT, IN, "Call:func->args", OUT])
    ranks = rng.integers(0, 256, (3, len(names), 2, 2), np.uint8)

    def counts(first, last):
        part = RankCounts(2, 2)
        part.add(names[first:last], ranks[:, first:last])
        part.functions = 1
        return part

    whole = counts(0, 5)
    for orders in ([(0, 0), (0, 2), (2, 5)], [(2, 5), (0, 2), (0, 0)]):
        merged, *others = (counts(*order) for order in orders)
        for other in others:
            merged.merge(other)
        assert (merged.functions, merged.counts.keys()) == (3, whole.counts.keys())
        assert all((merged.counts[name] == whole.counts[name]).all() for name in whole.counts)


# Published figures


@pytest.mark.parametrize(
    "language, table, size", [("python", "table9", 34), ("java", "table11", 38)]
)
def test_relations_in_the_mean_are_those_of_the_published_tables(shared, language, table, size):
    published = json.loads((shared / "paper" / "codesyntax_published.json").read_text())
    (rows,) = [rows for name, rows in published.items() if name.startswith(table + "_")]
    labelled = {
        name for name, counts in published["table8_counts"].items() if counts[language] is not None
    }
    in_mean = labelled - NOT_IN_MEAN
    assert in_mean == {row["relation"] for row in rows}
    assert len(in_mean) == size
    assert in_mean == set(LANGUAGES[language].relation_names) - NOT_IN_MEAN
    kinds = [
        (language, variant) for language in LANGUAGES.values() for variant in language.variants
    ]
    assert NOT_IN_MEAN <= {
        relation.name for language, variant in kinds for relation in language.relations_of(variant)
    }


# Memory, state, errors


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_functions(monkeypatch):
    map_size = 4 * 4 * 40 * 40 * 8
    file_sizes = []

    def peak(count):
        rng = np.random.default_rng(0)
        metric = codesyntax_metric.load()
        monkeypatch.setattr(
            metric, "_compute", lambda **rows: {"size": os.path.getsize(metric.file_paths[0])}
        )
        tracemalloc.start()
        try:
            for _ in range(count):
                metric.add(
                    prediction=rng.random((4, 4, 40, 40)),
                    reference=[(IN, 0, 1, 3), (IN, 4, 20, 30)],
                )
            assert metric.cache_file_name is None  # nothing has gone to Arrow yet
            file_sizes.append(metric.compute()["size"])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # what is loaded or cached at first use
    assert peak(200) < peak(20) + map_size / 2
    # what goes through Arrow, less than a single map
    assert file_sizes[1] == file_sizes[2] < map_size


def test_compute_resets():
    metric = codesyntax_metric.load()
    for relation in (IN, OUT):
        metric.add(prediction=GOOD, reference=[(relation, 0, 1, 1)])
        assert metric.compute()["relations"].keys() == {relation}
        with pytest.raises(CodeSyntaxError, match="nothing to score: call add"):
            metric.compute()


GOOD = np.full((1, 2, 3, 3), 0.25)
EDGE = (IN, 0, 1, 2)
RANKS = {rule: np.zeros((1, 1, 2), np.uint8) for rule in RULES}


def with_weight(value):
    attention = GOOD.copy()
    attention[0, 1, 2, 0] = value
    return attention


BAD_FUNCTIONS = {
    "no prediction": (None, [EDGE], "NoneType and list"),
    "no reference": (GOOD, None, "ndarray and NoneType"),
    "reference is a number": (GOOD, 7, "ndarray and int"),
    "three axes": (
        GOOD[0],
        [EDGE],
        r"shape \(2, 3, 3\), expected \(layers, heads, tokens, tokens\)",
    ),
    "not square": (GOOD[..., :2], [EDGE], r"shape \(1, 2, 3, 2\), expected"),
    "no heads": (GOOD[:, :0], [EDGE], r"shape \(1, 0, 3, 3\), expected"),
    "no tokens": (GOOD[..., :0, :0], [], r"shape \(1, 2, 0, 0\), expected"),
    "ragged": (
        [[[[0.5, 0.5], [1.0]]]],
        [EDGE],
        "attention is not an array .*nested list of equal lengths",
    ),
    "layers of several shapes": (
        [torch.ones(2, 3, 3).bfloat16(), [1.0]],
        [EDGE],
        "attention is not an array .*one numpy array",
    ),
    "a batch of two": (
        [torch.ones(2, 2, 3, 3)],
        [EDGE],
        r"shape \(1, 2, 2, 3, 3\), \(layers, functions, .* add the 2 functions of the batch one by one",
    ),
    "text": ("attention", [EDGE], r"shape \(\), expected"),
    "negative": (with_weight(-0.1), [EDGE], "weights that are not finite numbers of at least 0"),
    "not a number": (with_weight(np.nan), [EDGE], "weights that are not finite numbers"),
    "infinite": (
        torch.from_numpy(with_weight(np.inf)),
        [EDGE],
        "weights that are not finite numbers",
    ),
    "truth values": (GOOD > 0, [EDGE], "type bool"),
    "other model": (np.ones((1, 3, 3, 3)), [EDGE], "the same model"),
    "other layers": (np.ones((2, 2, 3, 3)), [], "the same model"),
    "head outside": (
        GOOD,
        [EDGE, (IN, 3, 1, 2)],
        r"edge 1 \(If:if->test\) is 3 -> 1..2, expected .* tokens below 3",
    ),
    "last outside": (GOOD, [(IN, 0, 1, 3)], r"edge 0 .* is 0 -> 1..3, .* same function\?"),
    "negative head": (GOOD, [(IN, -1, 1, 2)], "edge 0 .* is -1 -> 1..2, expected 0 <= head"),
    "span turned round": (GOOD, [(IN, 0, 2, 1)], "is 0 -> 2..1, expected .* first <= last"),
    "edge too short": (
        GOOD,
        [(IN, 0, 1)],
        r"edge 0 is \('If.*', 0, 1\), expected \(relation, head, first, last\)",
    ),
    "edge without a key": (
        GOOD,
        [{"relation": IN, "head": 0, "first": 1}],
        "edge 0 is {.*}, expected .* these keys",
    ),
    "one edge, no list": (GOOD, as_mapping(EDGE), "edge 0 is 'relation', expected"),
    "fraction": (GOOD, [(IN, 0, 1.5, 2)], "edge 0 is .*1.5.* three whole numbers"),
    "digits": (GOOD, [(IN, "0", 1, 2)], "edge 0 is .* three whole numbers"),
    "relation by number": (
        GOOD,
        [(5, 0, 1, 2)],
        r"edge 0 is \(5, 0, 1, 2\), expected .* the relation's name",
    ),
    "rank keys": (
        {"first": RANKS["first"]},
        [EDGE],
        r"the keys \['first'\], expected first, any, last",
    ),
    "rank shape": (
        {rule: np.zeros((1, 2), int) for rule in RULES},
        [EDGE],
        r"shape \(1, 2\) .* expected \(edges, lay",
    ),
    "rank shapes differ": (
        RANKS | {"any": np.zeros((1, 1, 3), int)},
        [EDGE],
        "ranks are not arrays of one shape",
    ),
    "ranks for other edges": (
        RANKS,
        [EDGE, EDGE],
        r"ranks have the shape \(3, 1, 1, 2\), expected \(3, 2, 1, 2\)",
    ),
    "ranks of another model": (
        {rule: np.zeros((1, 2, 2), int) for rule in RULES},
        [EDGE],
        "the same model",
    ),
    "rank fractions": (
        {rule: np.zeros((1, 1, 2)) for rule in RULES},
        [EDGE],
        "type float64, .* whole numbers",
    ),
    "rank too large": (
        RANKS | {"last": np.full((1, 1, 2), 256)},
        [EDGE],
        "ranks go from 0 to 256, expected 0 to 255",
    ),
    "rank negative": (
        RANKS | {"any": np.full((1, 1, 2), -1)},
        [EDGE],
        "ranks go from -1 to 0, expected 0 to 255",
    ),
    "edge of ranks": (RANKS, [(IN, 0, 2, 1)], "edge 0 .* is 0 -> 2..1, expected"),
}


@pytest.mark.parametrize("case", BAD_FUNCTIONS)
def test_a_function_that_does_not_fit_is_refused_and_changes_nothing(case):
    prediction, reference, message = BAD_FUNCTIONS[case]
    good = (np.arange(18.0).reshape(1, 2, 3, 3), [EDGE])
    metric = codesyntax_metric.load()
    metric.add(prediction=good[0], reference=good[1])
    with pytest.raises(CodeSyntaxError, match=message):
        metric.add(prediction=prediction, reference=reference)
    # the good one of this batch is not added either
    with pytest.raises(CodeSyntaxError, match=message):
        metric.add_batch(predictions=[good[0], prediction], references=[good[1], reference])
    assert metric.compute() == computed([good], "float32")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"k": [0]}, r"k is \[0\], expected a whole number from 1 to 255, or a list of them"),
        ({"k": [1, 256]}, r"k is \[1, 256\], expected"),
        ({"k": []}, r"k is \[\], expected"),
        ({"k": 0}, "k is 0, expected a whole number"),
        ({"k": "10"}, "k is '10', expected a whole number"),
        ({"k": [1, "3"]}, "k is .*expected a whole number"),
        ({"k": [1.0]}, r"k is \[1.0\], expected"),
        ({"rule": "best"}, "rule is 'best', expected one of first, any, last"),
        ({"predictions": [GOOD]}, "as many predictions as references, got 1 and NoneType"),
        (
            {"predictions": [GOOD], "references": []},
            "as many predictions as references, got 1 and 0",
        ),
        (
            {"predictions": iter([GOOD]), "references": [[EDGE]]},
            "predictions as references, got list_iterator and 1",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_and_lose_nothing(options, message):
    metric = codesyntax_metric.load()
    metric.add(prediction=GOOD, reference=[EDGE])
    with pytest.raises(CodeSyntaxError, match=message):
        metric.compute(**options)
    assert metric.compute() == computed([(GOOD, [EDGE])], "float32")


def test_unknown_direction_is_refused():
    with pytest.raises(CodeSyntaxError, match="direction is 'down', expected one of"):
        rank_attention(GOOD, [EDGE], "down")


def test_counts_of_another_shape_are_refused():
    counts = RankCounts(1, 2)
    with pytest.raises(CodeSyntaxError, match=r"\(3, 1, 2, 2\), expected \(3, 1, 1, 2\)"):
        counts.add([IN], np.zeros((3, 1, 2, 2), np.uint8))
    with pytest.raises(CodeSyntaxError, match="counts of 2 layers x 2 heads do not add to 1 x 2"):
        counts.merge(RankCounts(2, 2))
    assert counts.counts == {}
    assert counts.functions == 0


# Loading and processes, each in a process of its own: an empty HF_HOME is read when `evaluate` is imported.

WITHOUT = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
"""
MISSING = [
    *("transformers", "scipy"),  # evaluate imports them where it can: seconds, for nothing here
    *("codesyntax_dataset", "codesyntax_metric", "probing"),
]


def start(code, home, cwd, arguments):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["HF_HOME"] = str(home)
    program = WITHOUT.replace("{names}", repr(MISSING)) + code
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def output(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()]


LOAD = """
import evaluate, json
for name in sys.argv[1:]:
    metric = evaluate.load(name)
    edges = [("If:if->test", 0, 1, 1), ("Slice:lower->upper", 0, 2, 2)]
    metric.add(prediction=[[[[0, 1, 0], [1, 0, 0], [0, 0, 1]]]], reference=edges)
    print(json.dumps([type(metric).__module__, metric.compute()]))
    try:
        metric.add(prediction=[[[[0, -1], [0, 0]]]], reference=[])
    except ValueError as error:
        print(json.dumps(str(error)))
"""
HAND = {  # token 0 attends to 1, then to 0 and 2 by index
    "scores": {"1": 100.0, "3": 100.0, "10": 100.0, "20": 100.0},
    "functions": 1,
    "signature": "uas|rule:first|k:1,3,10,20|heads:1x1|functions:1|edges:2|scoring:2",
}


@pytest.mark.slow
def test_evaluate_loads_it_where_our_packages_are_missing(tmp_path):
    """As on the Hub, of the two scripts and nothing else of ours: by name, and by the paths of the folder and of the script."""
    folder = tmp_path / "codesyntax_metric"
    folder.mkdir()
    for file in ("codesyntax_metric.py", "topk_uas.py"):
        shutil.copy(FOLDER / file, folder)
    names = "codesyntax_metric", folder, folder / "codesyntax_metric.py"
    printed = output(start(LOAD, tmp_path / "home", tmp_path, names))
    assert len(printed) == 3 * 2
    for (module, result), error in zip(printed[::2], printed[1::2]):
        assert module.startswith("evaluate_modules.metrics.codesyntax_metric.")  # the copy
        assert result.items() >= HAND.items()
        assert "weights that are not finite numbers" in error


def of_two_processes(metric, added, shares, cache, **options):
    """What each computes of its own share; both are in this one, with the same locks and files."""

    def computed_by(process):
        own = metric.load(
            num_process=2,
            process_id=process,
            experiment_id="shared",
            cache_dir=str(cache),
            timeout=30,
        )
        for (prediction, reference), share in zip(added, shares):
            if share == process:
                own.add(prediction=prediction, reference=reference)
        return own.compute(**options)

    with ThreadPoolExecutor() as pool:
        return [pool.submit(computed_by, process) for process in (0, 1)]


@pytest.mark.parametrize("shares", [(0, 1, 0), (0, 0, 0), (1, 1, 1)])
def test_two_processes_give_the_answer_of_one(shares, tmp_path):
    """Also where one of them has no function, and of a function without edges."""
    rng = np.random.default_rng(5)
    functions = [
        (rng.random((2, 3, 4, 4)), [(IN, 0, 1, 2), (OUT, 3, 1, 1)]),
        (rng.random((2, 3, 6, 6)), [(IN, 5, 0, 3)]),
        (np.ones((2, 3, 2, 2)), []),
    ]
    options = {"k": [1, 2, 20], "rule": "any"}
    first, second = of_two_processes(codesyntax_metric, functions, shares, tmp_path, **options)
    assert second.result() is None
    assert first.result() == computed(functions, **options)
    assert not list(tmp_path.rglob("*.arrow"))


@pytest.mark.parametrize(
    "metric, said",
    [
        (codesyntax_metric, "nothing to score: no process added a function"),
        (codesyntax_metric.ast_similarity, "nothing to compare: no process added a pair"),
    ],
)
def test_two_processes_with_nothing_say_so(metric, said, tmp_path):
    first, second = of_two_processes(metric, [], [], tmp_path)
    assert second.result() is None
    with pytest.raises(CodeSyntaxError, match=said):
        first.result()
