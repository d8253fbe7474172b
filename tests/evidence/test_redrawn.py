"""Choice as part of the error: against plain loops over draws, and what is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codesyntax_metric.topk_uas import RULES
from probing.evidence.protocols import HELD_OUT, choose, held_out, in_mean
from probing.evidence.redrawn import REDRAWS, Redrawn, drawn_again
from probing.instruments.attention.ledger import RankLedger
from probing.runs.clusters import Clusters

HEADS = 5
RELATIONS = ["a", "b"]


def drawn(seed, functions):
    """Ranks of some edges in each function, of which heads differ in how many they find."""
    rng = np.random.default_rng(seed)
    function = np.sort(rng.integers(0, functions, 4 * functions)).astype(np.int32)
    zeros = np.zeros(len(function), np.int32)
    ranks = rng.integers(0, 3, (len(RULES), len(function), 1, HEADS)).astype(np.uint8)
    return RankLedger(
        relations=RELATIONS,
        function=function,
        relation=rng.integers(0, 2, len(function)).astype(np.int32),
        head=zeros,
        first=zeros + 1,
        last=zeros + 1,
        tokens=zeros + 2,
        ranks=ranks,
        settings={},
    )


def test_means_of_draws_are_those_of_plain_loops():
    validation, test = drawn(0, 50), drawn(1, 60)
    clusters = drawn_again(validation).clusters
    redrawn = Redrawn(validation, test, clusters, lambda found: found.argmax(axis=1))
    measures = [("first", 1), ("any", 2)]
    means = redrawn.mean(RELATIONS, measures)
    assert means.shape == (REDRAWS, 2)
    for number in (0, 7):
        for column, (rule, k) in enumerate(measures):
            scores = []
            for relation in range(2):
                hits = [0.0] * HEADS
                for edge in np.flatnonzero(validation.relation == relation):
                    weight = redrawn._weights[number, clusters[edge]]
                    for head in range(HEADS):
                        rank = validation.ranks[RULES.index(rule), edge, 0, head]
                        hits[head] += weight * (rank < k)
                best = hits.index(max(hits))
                scored = test.ranks[RULES.index(rule), test.relation == relation, 0, best] < k
                scores.append(100 * scored.mean())
            assert means[number, column] == pytest.approx(np.mean(scores))


def test_functions_are_drawn_or_repositories_or_neither():
    some, enough = drawn(0, 39), drawn(0, 60)
    assert drawn_again(some) is None
    assert drawn_again(enough).units == "functions"
    for repositories, units in ((6, "repositories"), (5, "functions")):
        of = replace(enough, over=Clusters("repository", np.arange(60) % repositories))
        assert drawn_again(of).units == units
    of_six = Clusters("repository", np.arange(39) % 6)
    assert drawn_again(replace(some, over=of_six)).units == "repositories"


def test_near_copies_are_drawn_together():
    enough = drawn(0, 80)
    drawn_twins = drawn_again(replace(enough, over=Clusters("function", np.arange(80) // 2)))
    assert drawn_twins.units == "functions"
    assert drawn_twins.clusters.tolist() == (enough.function // 2).tolist()
    assert drawn_again(replace(enough, over=Clusters("function", np.arange(80) // 3))) is None


def test_an_interval_is_as_much_wider_as_the_draws_vary():
    test = drawn(1, 60)
    chosen = held_out(drawn(0, 50), test).at([("first", 1)])
    means = chosen.hits.redrawn["model"](chosen.hits.counted, chosen.hits.measures)
    alone = replace(chosen.hits, redrawn={}).mean("model").at(0)
    both = chosen.hits.mean("model").at(0)
    assert both.value == alone.value
    widths = [of.high - of.low for of in (alone, both)]
    half = widths[0] / 2 / 2.003  # t of some 50 degrees
    expected = np.sqrt(half**2 + means.var(ddof=1))
    assert widths[1] / widths[0] == pytest.approx(expected / half, rel=0.05)
    assert means.std() > 0.5
    assert in_mean("a", 3, HELD_OUT)
    assert len(choose(test)) == 2


def test_what_no_other_choice_changes_is_as_certain_as_before():
    validation = drawn(0, 50)
    validation.ranks[..., 2] = 0
    chosen = held_out(validation, drawn(1, 60)).at([("first", 1)])
    alone = replace(chosen.hits, redrawn={}).mean("model").at(0)
    assert chosen.hits.mean("model").at(0)[:3] == alone[:3]


def test_a_difference_varies_with_both_choices_of_the_same_draw():
    """A system less itself does not vary."""
    chosen = held_out(drawn(0, 50), drawn(1, 60)).hits
    both = chosen.named({"model": "first"}).join(chosen.named({"model": "second"}))
    assert set(both.redrawn) == {"first", "second"}
    assert (both._choice_variance("first", "second") == 0).all()
    assert both._choice_variance("first", None)[0] > 0
