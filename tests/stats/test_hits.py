"""Hits: by hand, against plain loops, and what may change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.references import plain_intervals

from codesyntax_dataset.errors import ArgumentError, LedgerError
from probing.stats.hits import PERCENT_UNIT, Hits
from probing.stats.intervals import FEW_CLUSTERS

MEASURES = ("first", "last")


def drawn(seed=0, clusters=12, unit=PERCENT_UNIT, factor=1, numbers=None, left_out=()):
    """Two systems on three groups, each in some clusters, of which `c` is in few."""
    rng = np.random.default_rng(seed)
    rows = [
        (cluster, name)
        for cluster in range(clusters)
        for name in "abc"
        if rng.random() < 0.8 or cluster < 3
    ]
    rows = [(cluster, name) for cluster, name in rows if name != "c" or cluster < FEW_CLUSTERS - 1]
    cluster, names = zip(*rows)
    n = 1 + rng.poisson(2, len(rows))
    if unit == PERCENT_UNIT:
        sums = {
            system: rng.binomial(n, share, (2, len(rows)))
            for system, share in (("model", 0.7), ("rival", 0.4))
        }
    else:
        sums = {system: rng.exponential(n, (2, len(rows))) for system in ("model", "rival")}
    cluster = np.array(cluster) if numbers is None else np.array(numbers)[list(cluster)]
    scaled = {system: factor * of for system, of in sums.items()}
    return Hits.of_rows(
        cluster, names, scaled, MEASURES, factor * n, unit=unit, left_out=frozenset(left_out)
    )


def same(one, other):
    return all(
        np.asarray(mine) == pytest.approx(np.asarray(of), nan_ok=True)
        for mine, of in zip(one, other)
    )


@pytest.fixture(params=[PERCENT_UNIT, "bits"])
def hits(request):
    return drawn(unit=request.param)


@pytest.mark.parametrize("n", [[0.5, 1.7], [1, -1], 0.5, [np.nan, 1]])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_what_is_scored_is_counted(n):
    with pytest.raises(ArgumentError, match="expected whole numbers of at least 0"):
        Hits.of_rows(np.arange(2), ["a", "a"], {"model": np.ones((1, 2))}, ["k"], n)


@pytest.mark.parametrize(
    "changed",
    [
        {"clusters": np.arange(3)},
        {"groups": ["a"]},
        {"groups": ["a", "a", "b"]},
        {"sums": {"model": np.ones((1, 3))}},
        {"sums": {"model": np.ones((2, 2))}},
        {"measures": ["k", "m"]},
        {"n": np.ones(3)},
    ],
)
def test_no_row_is_left_out_because_parts_have_other_lengths(changed):
    given = {
        "clusters": np.arange(2),
        "groups": ["a", "a"],
        "sums": {"model": np.ones((1, 2))},
        "measures": ["k"],
        "n": np.ones(2),
    }
    assert Hits.of_rows(**given).n.tolist() == [2]
    with pytest.raises(ArgumentError, match="of other lengths"):
        Hits.of_rows(**{**given, **changed})


def test_rows_of_a_cluster_and_group_are_added_up():
    hits = Hits.of_rows(
        np.array([7, 3, 7, 7]), ["b", "a", "a", "a"], {"model": np.array([[1, 2, 0, 3]])}, ["k"]
    )
    assert hits.clusters.tolist() == [3, 7]
    assert hits.names == ["a", "b"]
    assert hits.systems == ["model"]
    assert hits.groups["a"].n.tolist() == [1, 2]
    assert hits.groups["a"].sums["model"].tolist() == [[2, 3]]
    assert hits.n.tolist() == [3, 1]
    assert hits.total("model").tolist() == [[5, 1]]
    assert hits.scores("model") == pytest.approx(np.array([[500 / 3, 100]]))
    assert hits.of("b").tolist() == [7]
    assert hits.of("c").tolist() == []
    assert hits.of_cluster("a", "model").tolist() == [[2, 1.5]]


@pytest.mark.parametrize("things", [1, 127, 128, 255, 256, 40_000])
def test_counts_take_few_bytes_and_no_sum_or_difference_of_them_overflows(things):
    """Of two functions, each with so many things, the model finds all and the rival none."""
    clusters = np.repeat([0, 1], things)
    found = {"model": np.ones((1, 2 * things), bool), "rival": np.zeros((1, 2 * things), bool)}
    hits = Hits.of_rows(clusters, ["a"] * len(clusters), found, ("k",))
    group = hits.groups["a"]
    assert group.sums["rival"].itemsize == 1
    assert group.sums["model"].max() == things
    assert group.gained("rival", "model").tolist() == [[-things, -things]]
    assert hits.total("model").tolist() == [[2 * things]]
    assert hits.by_group("model").value.tolist() == [[100]]
    assert hits.mean("rival", "model").value.tolist() == [-100]


def test_no_rows_have_no_scores():
    hits = Hits.of_rows(np.array([], int), [], {"model": np.zeros((2, 0))}, MEASURES)
    assert hits.names == hits.systems == []
    assert np.isnan(hits.mean("model").value).all()
    assert hits.by_group("model").value.shape == hits.by_group("model", "model").p.shape == (2, 0)


def test_means_are_over_groups_with_the_same_weight(hits):
    scores = hits.scores("model")
    mean, difference = hits.mean("model"), hits.mean("model", "rival")
    assert mean.value == pytest.approx(scores.mean(axis=1))
    assert np.isnan(mean.p).all()
    assert difference.value == pytest.approx((scores - hits.scores("rival")).mean(axis=1))
    assert (mean.low < mean.value).all()
    assert (mean.value < mean.high).all()
    assert mean.n == 12
    assert hits.contributions("model").sum(axis=1) == pytest.approx(mean.value)


def test_groups_left_out_are_in_no_mean_but_have_scores():
    whole, part = drawn(), drawn(left_out="c")
    assert part.counted == ["a", "b"]
    assert part.mean("model").value == pytest.approx(whole.scores("model")[:, :2].mean(axis=1))
    assert same(part.by_group("model"), whole.by_group("model"))
    assert np.isnan(drawn(left_out="abc").mean("model").value).all()


def test_the_mean_of_amounts_is_that_of_plain_loops():
    hits = drawn(unit="bits")
    n, sums = np.zeros((3, 12)), np.zeros((3, 12))
    for row, group in enumerate(hits.groups.values()):
        n[row, group.places], sums[row, group.places] = group.n, group.sums["model"][0]
    parts = n / n.sum(axis=1, keepdims=True)
    of_groups = [
        plain_intervals.jackknifed(list(sums[row] / n[row].sum() / 3), list(parts[row]), 12)
        for row in range(3)
    ]
    influence, shares = [sum(of) for of in zip(*of_groups)], list(parts.sum(axis=0))
    value = float(np.mean([sums[row].sum() / n[row].sum() for row in range(3)]))
    expected = plain_intervals.hall_interval(value, influence, plain_intervals.degrees(shares))
    estimate = hits.mean("model").at(0)
    assert estimate[:3] == pytest.approx((value, *expected))


def rare(clusters, scores):
    """A group in all clusters, of which every second is hit, and one in the first of them for each of the scores."""
    alone = [f"r{number}" for number in range(len(scores))]
    return Hits.of_rows(
        np.array([*range(clusters), *range(len(scores))]),
        ["a"] * clusters + alone,
        {
            "model": np.array([[*[0, 10] * (clusters // 2), *scores]]),
            "rival": np.full((1, clusters + len(scores)), 5),
        },
        ["k"],
        np.full(clusters + len(scores), 10),
    )


def test_groups_in_one_cluster_make_a_mean_less_certain():
    """They had no part in how much it varies, and made its interval narrower."""
    without, with_them = rare(20, []).mean("model"), rare(20, [0, 10, 10, 0]).mean("model")
    assert without.value == with_them.value == 50
    widths = [float((mean.high - mean.low)[0]) for mean in (without, with_them)]
    assert widths[1] > 0.8 * widths[0]


def test_of_a_difference_only_what_differs_tells_how_much_it_varies():
    """Six groups in the same two of 40 clusters have most of it: as sure as two are, not as 40."""
    clusters, names = [*range(40)], ["a"] * 40
    for name in "bcdefg":
        clusters += [0, 1, 2, 3, 4, 5]
        names += [name] * 6
    gained = np.array([[1, -1] * 20 + [4, 4, 0, 0, 0, 0] * 6])
    n = np.full(len(names), 4)
    hits = Hits.of_rows(clusters, names, {"model": gained, "rival": 0 * gained}, ["k"], n)
    shares = np.zeros(40)
    for group in hits.groups.values():
        shares[group.places] += group.n / group.total * (group.sums["model"][0] != 0)
    difference = hits.mean("model", "rival")
    influence = hits._of_mean("model", "rival").influence[0]
    expected = plain_intervals.influence_p(
        float(difference.value[0]), influence, plain_intervals.degrees(shares)
    )
    assert plain_intervals.degrees(shares) < 2
    assert difference.p[0] == pytest.approx(expected)


def test_shares_of_groups_have_wilsons_interval_and_few_clusters_none():
    hits = drawn()
    estimate = hits.by_group("model")
    assert estimate.n.tolist() == [len(group.places) for group in hits.groups.values()]
    for column, (name, group) in enumerate(hits.groups.items()):
        share, low, high = plain_intervals.wilson(group.sums["model"][1], group.n)
        found = estimate.at(1, column)
        assert found.value == pytest.approx(100 * share)
        assert group.few == (name == "c") == np.isnan(found.low) == np.isnan(found.high)
        assert group.few or (found.low, found.high) == pytest.approx((100 * low, 100 * high))


def weighted(rng, rate, pairs=30, clusters=10):
    """Pairs of three strata, of which two have few and all the same weight, and who gets them right."""
    stratum = np.concatenate([np.arange(3), rng.choice(3, pairs - 3, p=[0.05, 0.9, 0.05])])
    weights = (10**6 / np.bincount(stratum)[stratum]).astype(np.int64)
    right = rng.random((2, pairs)) < rate
    return rng.integers(0, clusters, pairs), weights, right


def test_weighted_things_are_worth_fewer_of_equal_weight():
    clusters, weights, right = weighted(np.random.default_rng(0), 0.8)
    sums = {"model": right[:1] * weights, "rival": right[1:] * weights}
    group = ["a"] * len(weights)
    hits = Hits.of_rows(clusters, group, sums, ["k"], weights, weighted=True)
    worth = sum(weights.tolist()) ** 2 / sum(weight**2 for weight in weights.tolist())
    assert worth < len(weights) / 2
    inside = hits.groups["a"]
    assert inside.worth == pytest.approx(worth)
    share, low, high = plain_intervals.wilson(inside.sums["model"][0], inside.n, worth)
    assert hits.by_group("model").at(0, 0)[:3] == pytest.approx(
        (100 * share, 100 * low, 100 * high)
    )
    plain = Hits.of_rows(clusters, group, sums, ["k"], weights)
    for against in (None, "rival"):
        wide, narrow = (of.by_group("model", against).at(0, 0) for of in (hits, plain))
        assert wide.high - wide.low > narrow.high - narrow.low
    heavy = {system: columns * 10**6 for system, columns in sums.items()}
    scaled = Hits.of_rows(clusters, group, heavy, ["k"], weights * 10**6, weighted=True)
    assert scaled.by_group("model").at(0, 0) == pytest.approx(
        hits.by_group("model").at(0, 0), nan_ok=True
    )
    in_pairs = hits.clustered(hits.clusters // 2).groups["a"]
    some = hits.cells({"a": hits.clusters[:4]}).groups["a"]
    assert in_pairs.worth == inside.worth
    assert some.worth == pytest.approx(worth * some.total / inside.total)


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_intervals_of_weighted_things_hold(rate):
    """95 % of them, of which 73 to 90 held when their weights were taken for their number."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        clusters, weights, right = weighted(rng, rate)
        sums = {"model": right[:1] * weights}
        hits = Hits.of_rows(clusters, ["a"] * 30, sums, ["k"], weights, weighted=True)
        estimate = hits.by_group("model").at(0, 0)
        held += estimate.low - 1e-3 <= 100 * rate <= estimate.high + 1e-3
    assert held >= 184


def test_a_group_of_the_fewest_clusters_has_an_interval():
    for clusters in (FEW_CLUSTERS - 1, FEW_CLUSTERS):
        hits = Hits.of_rows(
            np.arange(clusters), ["a"] * clusters, {"model": np.arange(clusters)[None] % 2}, ["k"]
        )
        assert np.isfinite(hits.by_group("model").low).all() == (clusters == FEW_CLUSTERS)


def test_p_of_groups_are_one_family(hits):
    raw = plain_intervals.groups_p(hits, "model", "rival")
    assert hits.by_group("model", "rival").p[0] == pytest.approx(plain_intervals.holm(raw))
    back, forth = hits.tested(("rival", "model"), ("model", "rival"))
    twice = plain_intervals.holm([*raw, *raw])
    assert [*back.p[0], *forth.p[0]] == pytest.approx(twice)


def test_p_of_a_family_of_tables_is_as_many_times_as_large(hits):
    """Of groups and of the mean, however the hits are restricted; the other way round is no claim of it."""
    alone, both = ("rival", "model"), ("model", "rival")
    several = replace(hits, families={both: 3})
    assert several.by_group(*both).p == pytest.approx(np.minimum(1, 3 * hits.by_group(*both).p))
    assert several.mean(*both).p == pytest.approx(np.minimum(1, 3 * hits.mean(*both).p))
    assert same(several.by_group(*alone), hits.by_group(*alone))
    part = several.where(groups="ab").clustered(several.clusters // 2)
    expected = hits.where(groups="ab").clustered(hits.clusters // 2).mean(*both).p
    assert part.mean(*both).p == pytest.approx(np.minimum(1, 3 * expected))


# What may change nothing


def test_other_numbers_of_clusters_change_nothing(hits):
    renamed = drawn(unit=hits.unit, numbers=3 + 5 * np.arange(12))
    assert same(hits.mean("model", "rival"), renamed.mean("model", "rival"))
    assert same(hits.by_group("model", "rival"), renamed.by_group("model", "rival"))


def test_twice_as_many_things_with_twice_as_much_have_the_same_values(hits):
    twice = drawn(unit=hits.unit, factor=2)
    assert same(hits.mean("model", "rival"), twice.mean("model", "rival"))
    one, other = hits.by_group("model", "rival"), twice.by_group("model", "rival")
    assert same(one[::3], other[::3])


# Parts


def test_some_groups_and_measures(hits):
    part = hits.where(groups=["b", "a"], measures=["last"])
    assert part.names == ["a", "b"]
    assert part.measures == ("last",)
    assert (part.clusters == hits.clusters).all()
    group, whole = part.groups["a"], hits.groups["a"]
    assert (part.of("a") == hits.of("a")).all()
    assert (group.n == whole.n).all()
    assert (group.sums["model"] == whole.sums["model"][1:]).all()
    assert same(hits.where().by_group("model"), hits.by_group("model"))


def test_cells_are_chosen_group_by_group(hits):
    part = hits.cells({"b": np.append(hits.of("b")[1:4], 99), "a": hits.of("a")})
    assert part.names == ["a", "b"]
    assert part.of("b").tolist() == hits.of("b")[1:4].tolist()
    assert (part.groups["a"].n == hits.groups["a"].n).all()
    assert (part.groups["b"].sums["rival"] == hits.groups["b"].sums["rival"][:, 1:4]).all()


def test_systems_of_the_same_cells_are_joined_and_renamed(hits):
    one, other = hits.named({"model": "first"}), hits.named({"rival": "second"})
    assert one.systems == ["first"]
    assert same(one.join(other).by_group("first", "second"), hits.by_group("model", "rival"))


@pytest.mark.parametrize("unlike", [{"clusters": 11}, {"factor": 2}])
def test_systems_of_other_cells_are_not_joined(unlike):
    with pytest.raises(LedgerError, match="functions and the other on .* or on different edges"):
        drawn().join(drawn(**unlike))


def test_a_system_may_be_another_in_each_group(hits):
    chosen = hits.chosen("best", {"a": "rival", "b": "model", "c": "model"})
    assert chosen.systems == ["model", "rival", "best"]
    expected = hits.scores("model")
    expected[:, 0] = hits.scores("rival")[:, 0]
    assert chosen.scores("best") == pytest.approx(expected)


def test_estimates_by_name(hits):
    estimate = hits.by_group("model")
    assert list(hits.each(estimate)) == ["a", "b", "c"]
    assert hits.each(estimate)["b"].value == estimate.value[0, 1]
    assert hits.each(estimate, "last")["b"].value == estimate.value[1, 1]


def test_repositories_as_clusters_keep_values_and_add_up_functions(hits):
    larger = hits.clustered(hits.clusters // 2)
    assert larger.clusters.tolist() == [0, 1, 2, 3, 4, 5]
    for one, other in (
        (hits.mean("model"), larger.mean("model")),
        (hits.by_group("model"), larger.by_group("model")),
    ):
        assert one.value == pytest.approx(other.value)
    assert larger.mean("model").n == 6
    assert (larger.n == hits.n).all()
    assert larger.total("rival") == pytest.approx(hits.total("rival"))
    assert same(hits.clustered(hits.clusters).by_group("model"), hits.by_group("model"))


def test_content_tells_other_hits_apart(hits):
    def content(of):
        return list(of.content())

    assert content(hits) == content(drawn(unit=hits.unit)) != content(drawn(1, unit=hits.unit))
    assert content(hits) != content(hits.named({"rival": "model", "model": "rival"}))
    clusters, weights, right = weighted(np.random.default_rng(0), 0.8)
    rows = (clusters, ["a"] * len(weights), {"model": right[:1] * weights}, ["k"], weights)
    assert content(Hits.of_rows(*rows, weighted=True)) != content(Hits.of_rows(*rows))


@pytest.mark.parametrize("right, low, high", [([90, 0, 0], 0, None), ([10, 100, 100], None, 100)])
def test_the_bounds_of_percent_end_at_0_and_100(right, low, high):
    """Student's t of three clusters puts one of them outside."""
    clusters = np.arange(3)
    hits = Hits.of_rows(clusters, ["r"] * 3, {"model": np.array([right])}, ["k"], np.full(3, 100))
    mean = hits.mean("model").at(0)
    assert 0 <= mean.low <= mean.value <= mean.high <= 100
    assert mean.value == pytest.approx(sum(right) / 3)
    assert low is None or mean.low == low
    assert high is None or mean.high == high
