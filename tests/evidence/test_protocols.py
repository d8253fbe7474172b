"""The two protocols, and comparisons of what two systems hit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.evidence.hits import from_hits

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import RULES, rank_attention
from probing.evidence.protocols import (
    apply,
    choose,
    compare_hits,
    held_out,
    published,
)
from probing.instruments.attention.ledger import RankLedger
from probing.stats.intervals import holm

TEST, ARGS, COMPREHENSION = "If:if->test", "Call:func->args", "comprehension:target->iter"


def ledger_of(rows, heads=1):
    """A ledger of one layer from (function, relation, one rank for each head), the same by all rules."""
    relations = sorted({relation for _, relation, *_ in rows})
    ranks = np.array([row[2:] for row in rows], np.uint8)  # (E, heads)
    zeros = np.zeros(len(rows), np.int32)
    return RankLedger(
        relations=relations,
        function=np.array([row[0] for row in rows], np.int32),
        relation=np.array([relations.index(row[1]) for row in rows], np.int32),
        head=zeros,
        first=zeros + 1,
        last=zeros + 1,
        tokens=zeros + 2,
        ranks=np.tile(ranks.reshape(1, len(rows), 1, heads), (len(RULES), 1, 1, 1)),
        settings={},
    )


def everywhere(hits):
    """The same hits (F, R) by all rules at all k."""
    return np.broadcast_to(hits, (len(RULES), 20, *hits.shape))


def test_a_planted_pattern_comes_back_exactly():
    """In 40 functions of 10 tokens, head 1-2 finds 30 of 40 dependents of one relation and head 0-1 finds 8 of 40 of
    the other, at the second place for the rest; all other heads look elsewhere."""
    found = {TEST: (30, (1, 2)), ARGS: (8, (0, 1))}
    edges = [(TEST, 1, 5, 5), (ARGS, 2, 6, 6)]
    ranks = []
    for function in range(40):
        attention = np.full((2, 3, 10, 10), 0.01)
        attention[..., 9] = 0.5  # where the others look
        for relation, reading, dependent, _ in edges:
            hits, head = found[relation]
            attention[(*head, reading, dependent)] = 0.9 if function < hits else 0.3
        ranks.append(rank_attention(attention, edges))
    planted = ledger_of([(function, name, 0) for function in range(40) for name in found])
    planted.ranks = np.concatenate(ranks, axis=1)
    for chosen in (published(planted), held_out(planted, planted)):
        for column, name in enumerate(chosen.relations):
            hits, head = found[name]
            scores = chosen.hits.scores("model")[:, column].reshape(len(RULES), 20)
            assert scores[:, :2].tolist() == [[100 * hits / 40, 100]] * len(RULES)
            assert (chosen.choice[name][:, :2] == head).all()


def test_held_out_scores_the_head_that_validation_chose():
    """By hand: in validation head 0 hits 2 of 3 and head 1 hits 1; in test head 0 hits 1 of 4 and head 1 hits 3."""
    validation = ledger_of([(0, TEST, 0, 5), (1, TEST, 0, 5), (1, TEST, 5, 0)], heads=2)
    places, ranks = (0, 0, 2, 3), ((0, 0), (5, 0), (5, 0), (5, 5))
    rows = [(place, TEST, *of) for place, of in zip(places, ranks)]
    test = ledger_of([*rows, (3, ARGS, 0, 0)], heads=2)
    held, same = held_out(validation, test), published(test)
    assert choose(validation)[TEST][0, 0].tolist() == [0, 0]
    assert (held.relations, same.relations) == ([TEST], [ARGS, TEST])
    assert held.hits.clusters.tolist() == [0, 2, 3]
    group = held.hits.groups[TEST]
    assert (group.places.tolist(), group.n.tolist()) == ([0, 1, 2], [2, 1, 1])
    for chosen, found in ((held, [1, 0, 0]), (same, [2, 1, 0])):
        assert chosen.hits.groups[TEST].sums["model"][0].tolist() == found
    assert same.hits.groups[ARGS].places.tolist() == [2]
    assert held.hits.mean("model").value[0] == 25.0


@pytest.mark.parametrize("lost, head, worse", [(0, 0, 4), (1, 1, 2), (2, 2, 1)])
def test_the_worst_head_that_could_be_best_if_all_had_been_read(lost, head, worse):
    """Head 0 finds three edges, head 1 two, head 2 one: one unread edge lets head 1 be the best, two also head 2. On
    test they find four, two and one; better heads there are not taken."""
    read = [(0, 0, 0, 9), (1, 0, 0, 9), (2, 0, 9, 0), *[(3, 255, 255, 255)] * lost]
    test = [(0, 0, 0, 0), (1, 0, 9, 9), (2, 0, 0, 9), (3, 0, 9, 9)]
    validation, scored, turned = (
        ledger_of([(place, ARGS, *ranks[::step]) for place, *ranks in rows], heads=3)
        for rows, step in ((read, 1), (test, 1), (test, -1))
    )
    for ledger, best, found in ((scored, head, worse), (turned, 0, 1)):
        known = validation.only(np.array([0, 1, 2]))
        chosen = held_out(known, ledger, validation)
        assert (chosen.choice[ARGS][0, 0].tolist(), chosen.hits.total("model")[0, 0]) == (
            [0, best],
            found,
        )


def test_relations_in_fewer_than_three_functions_are_in_the_mean_of_published_alone():
    rows = [(f, TEST, 0) for f in range(6)] + [(f, ARGS, 255) for f in range(2)]
    same = published(ledger_of(rows)).hits
    for functions in (2, 3):
        held = held_out(ledger_of(rows), ledger_of([*rows, (functions - 1, ARGS, 255)])).hits
        assert held.counted == ([TEST] if functions < 3 else sorted([TEST, ARGS]))
        assert held.mean("model").value[0] == (100 if functions < 3 else 50)
    assert same.mean("model").value[0] == 50
    assert set(held.names) == {TEST, ARGS}


def test_few_functions_are_marked_and_some_relations_do_not_count():
    rows = [(f, TEST, 0) for f in range(6)] + [(f % 5, ARGS, 255) for f in range(19)]
    hits = published(ledger_of([*rows, (0, COMPREHENSION, 255)])).hits
    few = {name: group.few for name, group in hits.groups.items()}
    assert few == {TEST: False, ARGS: True, COMPREHENSION: True}
    assert hits.mean("model").at(0)[:3] == (50, 50, 50)  # of If:if->test and Call:func->args
    scores = hits.each(hits.by_group("model"))
    assert scores[TEST][:3] == (100, pytest.approx(60.97, abs=0.01), 100)
    assert scores[ARGS].value == 0
    assert np.isnan(scores[ARGS][1:3]).all()
    nothing = held_out(ledger_of([(0, ARGS, 0)]), ledger_of([(0, TEST, 0)]))
    assert np.isnan(nothing.hits.mean("model").value[0])


def test_without_edges_there_is_nothing():
    nothing = apply(ledger_of([]), choose(ledger_of([(0, TEST, 0)])))
    assert (nothing.relations, len(nothing.hits.clusters)) == ([], 0)


def test_heads_of_another_model_are_refused():
    with pytest.raises(
        LedgerError, match="head 0-1 was chosen for If:if->test, but the ledger has 1 layers of 1"
    ):
        apply(ledger_of([(0, TEST, 0)]), choose(ledger_of([(0, TEST, 3, 1)], heads=2)))


def test_ledgers_of_two_makings_or_one_split_are_refused():
    validation, test = ledger_of([(0, TEST, 0)]), ledger_of([(0, TEST, 0)])
    validation.settings["settings"] = {"model": "a", "split": "validation", "labels": "1"}
    test.settings["settings"] = {"model": "b", "split": "test", "labels": "2"}
    with pytest.raises(LedgerError, match="chosen with model 'a', but are scored with 'b'"):
        held_out(validation, test)
    test.settings["settings"]["model"] = "a"
    assert held_out(validation, test).hits.total("model").all()
    with pytest.raises(LedgerError, match="both ledgers are of the split test"):
        held_out(test, test)


def test_the_test_of_a_mean_leaves_out_what_does_not_count():
    """Where one relation counts, the mean is that relation, whatever the other one says."""
    rng, names = np.random.default_rng(3), [TEST, COMPREHENSION]
    edges, both = np.full((9, 2), 5), rng.integers(0, 6, (2, 9, 2))
    both = [from_hits(names, edges, everywhere(of)) for of in both]
    found = compare_hits(*both)
    alone = [compare_hits(*(of.only([name]) for of in both)) for name in names]
    mean = found.of_mean("any", 3)
    assert mean == pytest.approx(alone[0].of_mean("any", 3))
    assert mean.value == pytest.approx(found.on(TEST, "any", 3).value)
    # p of relations is corrected for both of them
    raw = np.array([of.on(name, "any", 3).p for of, name in zip(alone, names)])
    corrected = [found.on(name, "any", 3).p for name in names]
    assert raw[0] != raw[1]
    assert corrected == pytest.approx(holm(raw).tolist())


def test_comparisons_by_each_rule_and_k_are_those_of_its_hits_alone():
    """Other hits by each rule and k; a relation that one system alone has is left out."""
    rng, edges = np.random.default_rng(1), np.full((9, 2), 5)
    hits = rng.integers(0, 6, (2, len(RULES), 20, 9, 2))
    found = compare_hits(*map(from_hits, ([ARGS, TEST], [TEST, "x"]), (edges, edges), hits))
    assert found.hits.names == [TEST]
    for rule, k in itertools.product(RULES, (1, 10)):
        # of TEST: (systems, functions, 1)
        both = hits[[0, 1], RULES.index(rule), k - 1, :, [1, 0], None]
        alone = compare_hits(*(from_hits([TEST], edges[:, :1], everywhere(of)) for of in both))
        assert found.of_mean(rule, k).value == pytest.approx(100 * (both[0] - both[1]).sum() / 45)
        assert found.of_mean(rule, k) == pytest.approx(alone.of_mean("any", 7))
        assert found.on(TEST, rule, k) == pytest.approx(alone.on(TEST, "any", 7))


def test_other_functions_or_edges_are_not_compared():
    one = published(ledger_of([(0, TEST, 0), (1, TEST, 0)]))
    with pytest.raises(
        LedgerError, match="scored on 2 functions and the other on 1, with 1 in common"
    ):
        compare_hits(one, published(ledger_of([(0, TEST, 0)])))
    with pytest.raises(LedgerError, match="different edges"):
        compare_hits(one, published(ledger_of([(0, TEST, 0), (1, TEST, 0), (1, TEST, 0)])))
