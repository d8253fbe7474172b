"""The context baseline: what it sees, what it learns, and what it must not see."""

from __future__ import annotations

from dataclasses import replace

import datasets
import numpy as np
import pytest

from codesyntax_metric.topk_uas import DIRECTIONS
from probing.evidence.baselines import KINDS, LISTED, better, pick, rank_ledger, read_edges
from probing.evidence.context import _FEW, Surroundings, View, _features, context
from probing.instruments.information.surface import WordClasses

HEAD_FIRST, DEPENDENT_FIRST = DIRECTIONS
FIRST, ANY, LAST = 0, 1, 2


def row(code, *edges):
    """The tokens are what stands between blanks and line breaks."""
    words = code.split()
    starts, place = [], 0
    for word in words:
        place = code.index(word, place)
        starts.append(place)
        place += len(word)
    return {
        "id": len(code),
        "code": code,
        "token_start": starts,
        "token_end": [start + len(word) for start, word in zip(starts, words)],
        "relations": [dict(zip(("relation", "head", "first", "last"), edge)) for edge in edges],
    }


def read(*rows):
    return read_edges(datasets.Dataset.from_list(list(rows)), "python", "test")


def test_a_view_by_hand():
    """A line in brackets has its own indentation; a bracket is as deep as what it opens."""
    view = View.joined([View.of([row("if f (\n  x )\n : y"), row("z )")]), View.of([row("\tz")])])
    assert view.words == ["if", "f", "(", "x", ")", ":", "y", "z"]
    assert view.word.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 4, 7]
    assert view.function.tolist() == [0] * 7 + [1, 1, 2]
    assert view.depth.tolist() == [0, 0, 1, 1, 0, 0, 0, 0, -1, 0]
    assert view.indent.tolist() == [0, 0, 0, 2, 2, 1, 1, 0, 0, 4]
    assert view.begins.tolist() == [bool(int(begins)) for begins in "1001010101"[:7] + "101"]


def test_the_least_depth_and_equal_tokens_between_two():
    view = View.of([row("a ) b ( ( a , a , a")])
    seen = Surroundings(view, WordClasses([row("a ) b (")]))
    depth = view.depth.tolist()
    for low in range(len(depth)):
        for high in range(low, len(depth)):
            assert seen.least_depth(np.array([low]), np.array([high])) == min(depth[low : high + 1])
    low, high = np.array([0, 0, 5]), np.array([9, 7, 9])
    between = seen.same.between(seen.here[high], low, high)
    assert between.tolist() == [2, 1, 1]
    assert _FEW == 3


def test_tokens_that_differ_in_what_is_seen_have_other_features():
    """Two names of the same surroundings, of other words, have the same."""
    view = View.of([row("f ( a , x )"), row("f ( a , y )"), row("f ( a ; y )")])
    seen = Surroundings(view, WordClasses([row("f ( a , ) ;")]))
    reader = np.array([0, 6, 12])
    one, same, other = _features(seen, reader, reader + 4).T.tolist()
    assert one == same != other


def taught():
    """Functions in which a call's argument stands behind its bracket, at several distances."""
    calls = ["f (", "f g (", "f g h ("]
    return [
        row(f"{call} {name} ) {end}", ("r", 0, len(call.split()), len(call.split()) + 1))
        for name in ("a", "b")
        for end in ("", "; f", "f ;")
        for call in calls
    ]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_it_finds_what_no_offset_does(direction):
    """What stands behind a bracket, up to which it is 1 to 3 tokens; on the way it learned 2 and 3 only."""
    validation, test = read(*taught()), read(row("k f g h i ( z ) f", ("r", 0, 6, 7)))
    ranks = context(validation, test, direction).every
    assert ranks.test[FIRST].tolist() == [0]
    assert ranks.test[ANY].tolist() == [0]
    assert ranks.test[LAST].max() <= 1
    assert (ranks.validation[FIRST] == 0).all()
    assert rank_ledger(test, pick(validation)).ranks[0, 0, 0, 0] > 0


def test_beyond_offsets_it_passes_over_the_best_one():
    """Of a call with two arguments mostly the first one is asked for, so the other comes next; without it, it is first."""
    code = "f ( a , b )"
    validation = read(*[row(code, ("r", 0, 2, 2))] * 6, *[row(code, ("r", 0, 4, 4))] * 2)
    test = read(row(code, ("r", 0, 4, 4)))
    found = context(validation, test, HEAD_FIRST)
    assert (found.every.test[FIRST], found.beyond.test[FIRST]) == (1, 0)
    assert np.array_equal(found.every.test[LAST], found.beyond.test[LAST])


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_it_never_sees_an_edge_of_test(dataset_folder, direction):
    """Whatever the other edges of test are, and where they lead, an edge has the same rank; and one that is asked
    twice has it twice."""
    validation, test = (
        read_edges(dataset_folder, "python", split, np.arange(8))
        for split in ("validation", "test")
    )
    expected = context(validation, test, direction)
    rng = np.random.default_rng(0)
    kept = rng.random(len(test)) < 0.3
    target = "first" if direction == HEAD_FIRST else "head"
    moved = replace(
        test,
        **{
            target: np.where(kept, getattr(test, target), (getattr(test, target) * 7) % test.tokens)
        },
    )
    moved.last = np.where(kept, test.last, np.maximum(test.last, moved.first))
    moved.relation = np.where(kept, test.relation, rng.permutation(test.relation)).astype(np.int32)
    found = context(validation, moved, direction)
    for before, after in zip(expected, found):
        assert np.array_equal(before.test[:, kept], after.test[:, kept])
        assert np.array_equal(before.validation, after.validation)
    alone = context(validation, test.take(kept), direction)
    assert np.array_equal(alone.every.test, expected.every.test[:, kept])


def test_its_ranks_on_validation_are_learned_on_other_functions():
    """In each of two functions a relation leads elsewhere: what is learned on the one misses in the other."""
    odd = row("f ( a ) ; b", ("r", 0, 2, 2), ("r", 0, 2, 2))
    even = row("f ( a ) ; b", ("r", 0, 5, 5), ("r", 0, 5, 5))
    validation = read(even, odd)
    ranks = context(validation, validation, HEAD_FIRST).every
    assert (ranks.validation[FIRST] > 0).all()


def test_another_kind_is_taken_where_it_finds_more_by_a_standard_error():
    """Of 16 edges a context that finds 12 is kept beside an offset that finds all, and one that finds 11 is not."""
    rows = [row("f ( a )", ("r", 0, 2, 2))] * 16
    edges = read(*rows)
    picks = pick(edges)
    for found, kind in ((12, "context"), (11, "offset")):
        ranks = np.where(np.arange(16) < found, 0, 255).astype(np.uint8)
        chosen = better(rank_ledger(edges, picks, np.tile(ranks, (3, 1))))["r"][0, :, 1]
        assert {KINDS[kind] for kind in chosen.tolist()} == {kind}
    assert LISTED == ("offset", "keyword")


def test_from_the_dependent_a_relation_of_one_edge_learns_from_others():
    """What the others lead to is further than in its one edge, and its word stands nearer behind."""
    validation = read(*taught(), row("f ; f ( a )", ("rare", 2, 4, 4)))
    test = read(row("f g h ( a ) ; f", ("rare", 0, 4, 4)))
    assert context(validation, test, DEPENDENT_FIRST).every.test[FIRST].tolist() == [0]
