"""The two protocols, intervals and paired tests."""

from __future__ import annotations

import itertools
from statistics import NormalDist
from unittest.mock import patch

import numpy as np
import pytest
from support.evidence.hits import from_hits
from support.simulations.interval_coverage import coverage, predictors

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import RULES, rank_attention, score
from probing.evidence import uncertainty
from probing.evidence.selection import apply, choose, held_out, published
from probing.evidence.uncertainty import _sum, compare, estimate, summary
from probing.instruments.attention.ledger import RankLedger
from probing.stats.statistics import bca, holm, skew_corrected

TEST, ARGS, COMPREHENSION = "If:if->test", "Call:func->args", "comprehension:target->iter"
NORMAL = NormalDist()


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


def outcomes_of(hits, edges, relations=None):
    """Outcomes of (rules, k, F, R) hits on (F, R) edges, whoever made them."""
    relations = relations or [f"r{number}" for number in range(edges.shape[1])]
    return from_hits(relations, edges, hits)


def everywhere(hits):
    """The same hits (F, R) by all rules at all k."""
    return np.broadcast_to(hits, (len(RULES), 20, *hits.shape))


def test_a_planted_pattern_comes_back_exactly():
    """In 40 functions of 10 tokens, head 1-2 finds 30 of 40 dependents of one relation and head 0-1 finds 8 of 40 of
    the other, at the second place for the rest; all other heads look elsewhere."""
    found = {TEST: (30, (1, 2)), ARGS: (8, (0, 1))}
    parts = []
    for function in range(40):
        attention = np.full((2, 3, 10, 10), 0.01)
        attention[..., 9] = 0.5  # where the others look
        edges = []
        for place, (relation, (hits, (layer, head))) in enumerate(found.items()):
            reading, dependent = 1 + place, 5 + place
            attention[layer, head, reading, dependent] = 0.9 if function < hits else 0.3
            edges.append((relation, reading, dependent, dependent))
        columns = np.array([edge[1:] for edge in edges], np.int32).T
        parts.append(
            RankLedger(
                list(found), np.full(2, function, np.int32), np.arange(2, dtype=np.int32), *columns,
                tokens=np.full(2, 10, np.int32), ranks=rank_attention(attention, edges), settings={},
            )
        )  # fmt: skip
    planted = RankLedger.concatenate(parts)
    for outcomes in (published(planted), held_out(planted, planted)):
        result = summary(outcomes, estimate(outcomes))["relations"]
        for relation, (hits, (layer, head)) in found.items():
            for rule in RULES:
                one, two = result[relation][rule]["1"], result[relation][rule]["2"]
                assert (one["score"][0], one["layer"], one["head"]) == (100 * hits / 40, layer, head)
                assert (two["score"][0], two["layer"], two["head"]) == (100.0, layer, head)


def test_published_is_the_metrics_own_score():
    rng = np.random.default_rng(0)
    places = [(f, relation) for f in range(9) for relation in (TEST, ARGS) for _ in range(f % 3 + 1)]
    ledger = ledger_of([(*place, 0, 0, 0, 0, 0) for place in places], heads=5)
    ledger.ranks = rng.integers(0, 30, ledger.ranks.shape).astype(np.uint8)  # other ranks by each rule
    outcomes = published(ledger)
    found = summary(outcomes, estimate(outcomes))
    for rule in RULES:
        expected = score(ledger.counts(), range(1, 21), rule)
        for k in map(str, range(1, 21)):
            assert found["scores"][rule][k][0] == pytest.approx(expected["scores"][k])
            for relation in (TEST, ARGS):
                mine, theirs = found["relations"][relation][rule][k], expected["relations"][relation][k]
                assert (mine["score"][0], mine["layer"], mine["head"]) == pytest.approx(tuple(theirs.values()))


def test_held_out_scores_the_head_that_validation_chose():
    """By hand: in validation head 0 hits 2 of 3 and head 1 hits 1; in test head 0 hits 1 of 4 and head 1 hits 3."""
    validation = ledger_of([(0, TEST, 0, 5), (1, TEST, 0, 5), (1, TEST, 5, 0)], heads=2)
    test = ledger_of([(0, TEST, 0, 0), (0, TEST, 5, 0), (2, TEST, 5, 0), (3, TEST, 5, 5), (3, ARGS, 0, 0)], heads=2)
    held = held_out(validation, test)
    assert choose(validation)[TEST][0, 0].tolist() == [0, 0]
    assert held.relations == [TEST]
    assert held.unchosen == {ARGS: 1}
    assert held.functions.tolist() == [0, 2, 3]
    assert held.edges.tolist() == [[2], [1], [1]]
    assert held.hits[0, 0].tolist() == [[1], [0], [0]]
    same = published(test)
    assert same.relations == [ARGS, TEST] and same.edges.tolist() == [[0, 2], [0, 1], [1, 1]]
    assert same.hits[0, 0, :, same.relations.index(TEST)].tolist() == [2, 1, 0]
    found = summary(held, estimate(held))
    assert found["scores"]["first"]["1"][0] == 25.0
    assert found["relations"][TEST]["functions"] == 3


def test_the_choice_does_not_depend_on_what_is_scored():
    validation, one = ledger_of([(0, TEST, 3, 1)], heads=2), ledger_of([(0, TEST, 0, 9)], heads=2)
    other = ledger_of([(0, TEST, 9, 0)], heads=2)
    for scored in (one, other):
        assert np.array_equal(held_out(validation, scored).choice[TEST], choose(validation)[TEST])


def test_the_worst_head_that_could_be_best_if_all_had_been_read():
    """Head 0 finds three edges, head 1 two, head 2 one: one unread edge lets head 1 be the best, two also head 2. On
    test they find four, two and one; better heads there are not taken."""
    read = [(0, ARGS, 0, 0, 9), (1, ARGS, 0, 0, 9), (2, ARGS, 0, 9, 0)]
    test = [(0, ARGS, 0, 0, 0), (1, ARGS, 0, 9, 9), (2, ARGS, 0, 0, 9), (3, ARGS, 0, 9, 9)]
    for lost, head, worse, better in [(0, 0, 4, 1), (1, 1, 2, 1), (2, 2, 1, 1)]:
        validation = ledger_of([*read, *[(3, ARGS, 255, 255, 255)] * lost], heads=3)
        unread = [3] if lost else []
        chosen = held_out(validation, ledger_of(test, heads=3), unread)
        assert chosen.choice[ARGS][0, 0].tolist() == [0, head] and chosen.total[0, 0, 0] == worse
        turned = held_out(validation, ledger_of([(*row[:2], *row[:1:-1]) for row in test], heads=3), unread)
        assert turned.choice[ARGS][0, 0].tolist() == [0, 0] and turned.total[0, 0, 0] == better


@pytest.mark.slow
def test_who_reads_less_chooses_no_better():
    """Of random heads, for any functions that are skipped; chosen on what is left, the heads are often better."""
    rng, better = np.random.default_rng(0), 0
    for _ in range(40):
        rows = [(place, name, *rng.integers(3, size=4)) for place in range(5) for name in (TEST, ARGS, ARGS)]
        honest, test = (ledger_of(of, heads=4) for of in (rows, [(*row[:2], *rng.integers(3, size=4)) for row in rows]))
        whole = held_out(honest, test).total
        for skipped in itertools.combinations(range(5), 2):
            left = ledger_of([(*row[:2], *([255] * 4)) if row[0] in skipped else row for row in rows], heads=4)
            assert (held_out(left, test, skipped).total <= whole).all()
            better += (held_out(left, test).total > whole).any()
    assert better > 100


def test_few_functions_are_marked_and_some_relations_do_not_count():
    rows = [(f, TEST, 0) for f in range(6)] + [(f % 5, ARGS, 255) for f in range(19)] + [(0, COMPREHENSION, 255)]
    ledger = ledger_of(rows)
    outcomes = published(ledger)
    found = summary(outcomes, estimate(outcomes))
    assert {name: entry["few_functions"] for name, entry in found["relations"].items()} == {
        TEST: False, ARGS: True, COMPREHENSION: True
    }  # fmt: skip
    assert found["scores"]["first"]["1"] == [50.0, 50.0, 50.0]  # of If:if->test and Call:func->args
    assert found["relations"][TEST]["first"]["1"]["score"] == [100.0, pytest.approx(60.97, abs=0.01), 100.0]
    assert found["relations"][ARGS]["first"]["1"]["score"] == [0.0, None, None]
    nothing = held_out(ledger_of([(0, ARGS, 0)]), ledger_of([(0, TEST, 0)]))
    assert summary(nothing, estimate(nothing))["scores"]["first"]["1"] is None


def test_without_edges_there_is_nothing():
    nothing = apply(ledger_of([]), choose(ledger_of([(0, TEST, 0)])))
    assert (nothing.relations, nothing.edges.shape, nothing.unchosen) == ([], (0, 0), {})


def test_heads_of_another_model_are_refused():
    with pytest.raises(LedgerError, match="head 0-1 was chosen for If:if->test, but the ledger has 1 layers of 1"):
        apply(ledger_of([(0, TEST, 0)]), choose(ledger_of([(0, TEST, 3, 1)], heads=2)))


def test_ledgers_of_two_makings_or_one_split_are_refused():
    validation, test = ledger_of([(0, TEST, 0)]), ledger_of([(0, TEST, 0)])
    validation.settings["settings"] = {"model": "a", "split": "validation", "labels": "1"}
    test.settings["settings"] = {"model": "b", "split": "test", "labels": "2"}
    with pytest.raises(LedgerError, match="chosen with model 'a', but are scored with 'b'"):
        held_out(validation, test)
    test.settings["settings"]["model"] = "a"
    assert held_out(validation, test).hits.all()
    with pytest.raises(LedgerError, match="both ledgers are of the split test"):
        held_out(test, test)


def simulated(rng, functions, truth, edges_per_function, twins=1):
    """Edges (F, R) and, for each of `twins` predictors, hits (rules, k, F, R): each rule and k a simulation of its own,
    in which a function has an accuracy of its own that is `truth` on average."""
    edges = rng.poisson(edges_per_function, (functions, len(truth)))
    own = rng.beta(4 * truth, 4 * (1 - truth), (len(RULES), 20, functions, len(truth)))
    return edges, [rng.binomial(edges, own) for _ in range(twins)]


def test_intervals_hold_the_known_accuracy_in_95_of_100_simulations():
    """540 simulated models with 6 relations of known accuracy, 150 functions each."""
    rng = np.random.default_rng(0)
    truth, per_function = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.6]), np.array([3, 2, 4, 1, 2, 0.5])
    relations, means = [], []
    for _ in range(9):
        edges, (hits,) = simulated(rng, 150, truth, per_function)
        found = estimate(outcomes_of(hits, edges))
        relations.append((found.relations[1] <= 100 * truth) & (100 * truth <= found.relations[2]))
        means.append((found.mean[1] <= 100 * truth.mean()) & (100 * truth.mean() <= found.mean[2]))
    assert 0.93 <= np.mean(relations) <= 0.97
    assert 0.93 <= np.mean(means) <= 0.97


def test_the_interval_of_a_mean_holds_where_few_functions_have_a_relation():
    """One relation is in all of 120 functions, two are in 7 each: the mean rests on these. Each function has an accuracy of
    its own, 0.4 on average, so that its edges are hit alike."""
    rng = np.random.default_rng(0)
    edges = np.full((120, 3), 3)
    edges[7:, 1], edges[:, 2], edges[7:14, 2] = 0, 0, 3
    held = []
    for _ in range(10):
        own = rng.beta(1.6, 2.4, (len(RULES), 20, 120, 1))
        mean = estimate(outcomes_of(rng.binomial(edges, own), edges)).mean
        held.append((mean[1] <= 40) & (40 <= mean[2]))
    assert 0.94 <= np.mean(held) <= 0.97


def student(level, degrees):
    """The quantile of Student's t: sqrt(degrees) * tan(u), where u has a density proportional to cos(u) ** (degrees - 1)."""
    u = np.linspace(-np.pi / 2, np.pi / 2, 200_001)[1:-1]
    below = np.cumsum(np.cos(u) ** (degrees - 1))
    return np.sqrt(degrees) * np.tan(np.interp(level, below / below[-1], u))


def plain_bca(score, resampled, left_out, quantile=NORMAL.inv_cdf):
    """The bounds as Efron (1987) words them, of one score; `quantile`: of the distribution that the levels are of."""
    resampled, left_out = ([value for value in values if value == value] for values in (resampled, left_out))
    below = sum((value < score) + 0.5 * (value == score) for value in resampled) / len(resampled)
    bias = NORMAL.inv_cdf(min(max(below, 0.5 / len(resampled)), 1 - 0.5 / len(resampled)))
    away = [np.mean(left_out) - value for value in left_out]
    spread = sum(value**2 for value in away)
    skew = sum(value**3 for value in away) / (6 * spread**1.5) if spread else 0
    tails = [bias + quantile(tail) for tail in (0.025, 0.975)]
    return [np.quantile(resampled, NORMAL.cdf(bias + tail / (1 - skew * tail))) for tail in tails]


def test_bca_intervals_are_those_of_the_formula():
    """Of scores with bias, ties, skew, and resamples or functions that have none."""
    rng = np.random.default_rng(0)
    resampled = np.column_stack(
        [rng.normal(50, 5, 200), rng.integers(45, 52, 200), rng.gamma(2, 5, 200), *np.tile(np.arange(200), (3, 1))]
    )
    resampled[::7, :3] = resampled[:-1, 3] = np.nan
    left_out = np.column_stack([rng.normal(50, 1, 30), rng.gamma(1, 3, 30), rng.gamma(2, 5, 30), np.full((30, 3), 40)])
    left_out[3, :3] = np.nan
    score = np.array([51, 48, 8, 199, -1, 300])
    expected = [plain_bca(*column) for column in zip(score, resampled.T, left_out.T)]
    assert bca(score, resampled, left_out).T == pytest.approx(np.array(expected))


def test_the_interval_of_a_mean_is_that_of_a_plain_computation():
    """Of two relations that count and one that does not; one of them is in two functions, so some resamples lack it."""
    rng = np.random.default_rng(2)
    edges = rng.integers(0, 5, (12, 3)) * ((np.arange(12) < 2)[:, None] | [True, False, True]) + [[1, 0, 1]]
    hits = rng.integers(0, edges + 1)

    def mean(times):  # that each function is counted
        totals = [(times @ hits[:, r], times @ edges[:, r]) for r in (0, 1)]
        return np.mean([100 * hit / total for hit, total in totals if total])

    share = (edges[:, :2] / edges[:, :2].sum(axis=0)).sum(axis=1)
    degrees = (share**2).sum() ** 2 / (share**4).sum()  # Satterthwaite's
    drawn = np.random.default_rng(5).multinomial(12, np.full(12, 1 / 12), 300)
    assert (drawn @ edges[:, 1] == 0).any() and 2 < degrees < 12
    score, left_out = mean(np.ones(12)), [mean(1 - one) for one in np.eye(12)]
    low, high = plain_bca(score, list(map(mean, drawn)), left_out, lambda level: student(level, degrees))
    with patch.multiple(uncertainty, RESAMPLES=300, _SEED=5):
        found = estimate(outcomes_of(everywhere(hits), edges, [TEST, ARGS, COMPREHENSION]))
    assert low < score < high
    assert found.mean[:, 0, 0] == pytest.approx([score, low, high])


def test_resamples_that_tie_with_the_score_count_half():
    """So that the levels of symmetric resamples, here of 3 ties, are 2.5 and 97.5 %: of five, 0.1 steps from the ends."""
    bounds = bca(np.array([50.0]), np.array([[40, 50, 50, 50, 60.0]]).T, np.array([[50, 50.0]]).T)
    assert bounds.ravel() == pytest.approx([41, 59])


@pytest.mark.slow
def test_the_interval_of_a_mean_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    edges, (hits,) = simulated(rng, 60, np.array([0.2, 0.85]), np.array([3, 2]))
    with patch.multiple(uncertainty, RESAMPLES=20000, _SEED=1):
        found = estimate(outcomes_of(hits[:1, :1], edges))
    theirs = stats.bootstrap(
        (*hits[0, 0].T, *edges.T),
        lambda one, other, edges, others, axis: 50
        * (one.sum(axis=axis) / edges.sum(axis=axis) + other.sum(axis=axis) / others.sum(axis=axis)),
        paired=True, vectorized=True, method="BCa", n_resamples=20000, rng=np.random.default_rng(2),
    ).confidence_interval  # fmt: skip
    assert found.mean[1:, 0, 0] == pytest.approx([theirs.low, theirs.high], abs=0.3)


def wilson(share, worth):
    """Wilson's bounds: where the observed share is 1.96 standard errors away."""
    z = 1.959964
    # (share - p) ** 2 = z ** 2 * p * (1 - p) / worth
    return np.sort(np.roots([1 + z**2 / worth, -2 * share - z**2 / worth, share**2]).real)


def test_the_interval_of_a_relation_is_wilsons_for_the_edges_that_its_functions_are_worth():
    """40 functions of which each hits all of its 3 edges or none are worth 39 edges; functions of one edge each, one less
    than there are; functions that all hit alike, as many as there are, which at 0 and 100 % is the interval that scipy has
    for their number."""
    every_other = np.arange(40) % 2
    for hits, edges, share, worth in [
        (3 * every_other, np.full(40, 3), 0.5, 39),
        (np.arange(40) % 4 == 0, np.ones(40), 0.25, 39),
        (np.full(12, 2), np.full(12, 8), 0.25, 12),
        (np.concatenate([np.zeros(12), np.zeros(90)]), np.concatenate([np.full(12, 5), np.zeros(90)]), 0, 12),
    ]:
        hits, edges = (np.asarray(column, np.int32)[:, None] for column in (hits, edges))
        found = estimate(outcomes_of(everywhere(hits), edges)).relations[:, 0, 0, 0] / 100
        assert found == pytest.approx([share, *wilson(share, worth)], abs=1e-6)
    theirs = pytest.importorskip("scipy.stats").binomtest(0, 12).proportion_ci(method="wilson")
    assert found[1:] == pytest.approx([theirs.low, theirs.high], abs=1e-6)


@pytest.mark.parametrize("counts", [(9, 6, 1, 4), (1, 0, 0, 5), (6, 4, 0, 0)])
def test_the_interval_of_a_difference_is_newcombes(counts):
    """His method 10, of functions with one edge each: of so many both, one, the other or neither of two models hits it."""
    one, other = (np.repeat(hits, counts) for hits in ([1, 1, 0, 0], [1, 0, 1, 0]))
    both, only_one, only_other, neither = counts
    phi = both * neither - only_one * only_other
    phi /= np.sqrt(one.sum() * (1 - one).sum() * other.sum() * (1 - other).sum()) or 1
    worth = [len(hits) - (hits.std() > 0) for hits in (one, other)]
    (low, high), (others_low, others_high) = (wilson(hits.mean(), size) for hits, size in zip((one, other), worth))
    below, above = (
        np.sqrt(mine**2 - 2 * phi * mine * theirs + theirs**2)
        for mine, theirs in (
            (one.mean() - low, others_high - other.mean()),
            (high - one.mean(), other.mean() - others_low),
        )
    )
    models = (outcomes_of(everywhere(hits[:, None]), np.ones((len(hits), 1), np.int32)) for hits in (one, other))
    found = compare(*models).difference.relations[:, 0, 0, 0] / 100
    difference = one.mean() - other.mean()
    assert found == pytest.approx([difference, difference - below, difference + above], abs=1e-6)


def test_what_is_drawn_is_the_same_unless_told_otherwise():
    """Scores and p-values of a report follow from 1000 resamples, 9999 exchanges, and the seed 0."""
    edges, (one, other) = simulated(np.random.default_rng(0), 30, np.array([0.5, 0.6]), np.array([3, 2]), twins=2)
    one, other = outcomes_of(one, edges), outcomes_of(other, edges)
    found = estimate(one).mean, compare(one, other).p
    with patch.multiple(uncertainty, RESAMPLES=1000, PERMUTATIONS=9999, _SEED=0):
        assert np.array_equal(found[0], estimate(one).mean) and np.array_equal(found[1], compare(one, other).p)
    with patch.multiple(uncertainty, _SEED=1):
        assert not np.array_equal(found[0], estimate(one).mean)


@pytest.mark.slow
def test_intervals_of_relations_hold_in_real_functions_too(dataset_folder):
    """tests/benchmarks/coverage.py, with few of everything: 90 to 97 %, within what so few simulations vary by."""
    of_relations = [of for config in ("python", "java") for of in predictors(dataset_folder, config)]
    for sizes in ([6, 10], [30]):
        for differences in (False, True):
            share, width = coverage(of_relations, sizes, differences, draws=40, most=30, seed=1)
            assert 88 <= share.mean() <= 98
            assert width.mean() < 55


@pytest.mark.parametrize("order", "CF")
def test_sums_round_as_those_of_the_whole_table_do(order):
    """So that no digit of a result depends on how its hits are kept; in the two orders of memory numpy sums otherwise."""
    rng = np.random.default_rng(0)
    table = np.asarray(rng.integers(1, 5, (999, 3)), order=order)
    values = np.asarray(rng.random((999, 3)), order=order)
    values[::7, 1] = table[::7, 1] = 0
    found = from_hits(["r0", "r1", "r2"], table, everywhere(table)).found[1]
    assert _sum(values[None, found.places, 1], found, table).tolist() == [values.sum(axis=0)[1]]


def test_no_interval_lacks_a_width_or_leaves_the_scale():
    rng = np.random.default_rng(5)
    edges = rng.poisson([0.5, 2, 9], (30, 3)) + 1
    for one, other in itertools.product([0, 1, edges - 1, edges], repeat=2):
        hits = [np.minimum(of * np.ones_like(edges), edges)[None, None] for of in (one, other)]
        mine, theirs = (outcomes_of(of, edges) for of in hits)
        score, low, high = estimate(mine).relations
        assert (0 <= low).all() and (low <= score).all() and (score <= high).all() and (high <= 100).all()
        assert (low < high).all()
        difference, low, high = compare(mine, theirs).difference.relations
        assert (-100 <= low).all() and (low <= difference).all() and (difference <= high).all() and (high <= 100).all()


def test_an_interval_is_the_same_each_time_and_belongs_to_functions_not_edges():
    """Hits that come 10 to a function say less than as many that come alone."""
    together = estimate(outcomes_of(everywhere(10 * (np.arange(40) % 2)[:, None]), np.full((40, 1), 10)))
    alone = estimate(outcomes_of(everywhere((np.arange(400) % 2)[:, None]), np.full((400, 1), 1)))
    assert together.relations[0, 0, 0, 0] == alone.relations[0, 0, 0, 0] == 50
    width = [np.diff(each.relations[1:, 0, 0, 0])[0] for each in (together, alone)]
    assert width[0] == pytest.approx(3.16 * width[1], rel=0.15)  # the square root of 10
    again = estimate(outcomes_of(everywhere(10 * (np.arange(40) % 2)[:, None]), np.full((40, 1), 10)))
    assert np.array_equal(again.relations, together.relations)


def test_p_values_are_those_of_all_exchanges():
    """Of 8 functions all 256 exchanges are counted here; the test draws some at random, the same each time."""
    rng = np.random.default_rng(3)
    edges = np.full((8, 2), 5)
    one, other = rng.integers(2, 6, (8, 2)), rng.integers(0, 5, (8, 2))
    found = compare(outcomes_of(everywhere(one), edges), outcomes_of(everywhere(other), edges))
    gained = np.column_stack([one - other, (one - other).sum(axis=1)])  # the relations have as many edges each

    def as_large(signs):
        """Those equally far count half."""
        sums, observed = np.abs(np.asarray(signs) @ gained), np.abs(gained.sum(axis=0))
        return (sums > observed) + (sums == observed) / 2

    exact = as_large(list(itertools.product((-1, 1), repeat=8))).mean(axis=0)
    exact = np.maximum(exact, skew_corrected(gained.T))
    assert found.p[0, 0] == pytest.approx(exact[:2], abs=0.02)
    assert found.p_mean[0, 0] == pytest.approx(exact[2], abs=0.02)
    drawn = (1 + as_large(2 * np.random.default_rng(0).integers(0, 2, (9999, 8)) - 1).sum(axis=0)) / 10000
    drawn = np.maximum(drawn, skew_corrected(gained.T))
    assert [*found.p[0, 0], found.p_mean[0, 0]] == pytest.approx(drawn)
    assert found.difference.relations[0, 0, 0] == pytest.approx(100 * (one - other).sum(axis=0) / 40)


def test_the_test_of_a_mean_leaves_out_what_does_not_count():
    """Where one relation counts, the mean is that relation, whatever the other one says."""
    rng = np.random.default_rng(3)
    edges, names = np.full((9, 2), 5), [TEST, COMPREHENSION]
    one, other = (outcomes_of(everywhere(rng.integers(0, 6, (9, 2))), edges, names) for _ in range(2))
    found = compare(one, other)
    assert found.p_mean[0, 0] == pytest.approx(found.p[0, 0, 0]) != found.p[0, 0, 1]
    assert found.difference.mean[0, 0, 0] == pytest.approx(found.difference.relations[0, 0, 0, 0])


def test_equal_models_are_told_apart_in_5_of_100_simulations_and_different_ones_more_often():
    rng = np.random.default_rng(4)
    truth = np.array([0.3, 0.6])
    alarms, found = [], []
    for seed in range(10):
        edges, (one, other) = simulated(rng, 60, truth, np.array([2, 2]), twins=2)
        better = np.minimum(one + rng.binomial(1, 0.5, one.shape), edges)
        mine, same, more = (outcomes_of(hits, edges) for hits in (one, other, better))
        with patch.multiple(uncertainty, PERMUTATIONS=499, _SEED=seed):
            alarms.append(compare(mine, same).p_mean <= 0.05)
            found.append(compare(more, mine).p_mean <= 0.05)
    assert 0.03 <= np.mean(alarms) <= 0.07
    assert np.mean(found) > 0.9


def test_holm():
    """R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.6, 0.9])).tolist() == [1, 1]


def test_other_functions_or_edges_are_not_compared():
    one = published(ledger_of([(0, TEST, 0), (1, TEST, 0)]))
    with pytest.raises(LedgerError, match="scored on 2 functions and the other on 1, with 1 in common"):
        compare(one, published(ledger_of([(0, TEST, 0)])))
    with pytest.raises(LedgerError, match="different edges"):
        compare(one, published(ledger_of([(0, TEST, 0), (1, TEST, 0), (1, TEST, 0)])))
