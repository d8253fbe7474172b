"""Forged ledgers that fit their data, and whose numbers follow from them: only running functions again can tell.

RANKS and CHOICES change the ranks of the ledgers of test and validation; MASKED, SILENCED and TEXTS the rows of others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.attacks.attack import Attack, attacks

from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.beyond import Beyond, beyond
from probing.evidence.protocols import choose
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import AVOIDED, best_offsets, is_hard
from probing.instruments.likelihood.result import SCORES
from probing.instruments.masking.result import FILLED, HITS, SIMILARITIES

Forge = Callable[[RankLedger, RankLedger], Any]

POINTS = "points of a mean, as the benchmark measures"


def forged(
    attack: Attack, test: RankLedger, validation: RankLedger
) -> tuple[RankLedger, RankLedger]:
    """Copies of both ledgers, changed."""
    first, second = (
        dataclasses.replace(ledger, ranks=np.array(ledger.ranks)) for ledger in (test, validation)
    )
    attack.forge(first, second)
    return first, second


def forged_rows(attack: Attack, rows: np.ndarray) -> np.ndarray:
    """A copy of rows, changed."""
    copied = rows.copy()
    attack.forge(copied)
    return copied


# -------------------------------------------------------------------------------------------------------- ranks of the test


def relations(ledger: RankLedger, most: int = 10**9) -> dict[str, np.ndarray]:
    """Relations in the mean with so many edges at most, those with the fewest first: name -> where its edges stand."""
    edges = {
        name: np.flatnonzero(ledger.relation == number)
        for number, name in enumerate(ledger.relations)
    }
    counted = [
        name
        for name, places in edges.items()
        if name not in NOT_IN_MEAN and 0 < len(places) <= most
    ]
    return {name: edges[name] for name in sorted(counted, key=lambda name: len(edges[name]))}


def claim(
    ledger: RankLedger,
    edges: np.ndarray,
    head: Sequence[int],
    rank: int = 0,
    rules: Sequence[str] = ("first",),
) -> None:
    """Ranks of `edges` by one head become `rank` if that is better."""
    for rule in map(RULES.index, rules):
        ledger.ranks[rule, edges, *head] = np.minimum(ledger.ranks[rule, edges, *head], rank)


def best(ledger: RankLedger, k: int = 1, rule: str = "first") -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(heads[RULES.index(rule), k - 1].tolist())
        for name, heads in choose(ledger).items()
    }


Pick = Callable[[RankLedger, np.ndarray, Sequence[int]], np.ndarray]


def claimed(
    pick: Pick = lambda ledger, edges, head: edges,
    most: int = 10**9,
    these: slice = slice(None),
    k: int = 1,
    rule: str = "first",
    rules: Sequence[str] = (),
) -> Forge:
    """The best head of each relation with so many edges at most, of `these` of them, finds what `pick` takes of them."""

    def forge(test: RankLedger, validation: RankLedger) -> None:
        heads = best(test, k, rule)
        for name, edges in [*relations(test, most).items()][these]:
            claim(test, pick(test, edges, heads[name]), heads[name], k - 1, rules or [rule])

    return forge


def every(number: int) -> Pick:
    """The edges in every so manyth of their functions."""
    return lambda ledger, edges, head: edges[
        np.isin(ledger.function[edges], np.unique(ledger.function[edges])[::number])
    ]


def first_missed(ledger: RankLedger, edges: np.ndarray, head: Sequence[int]) -> np.ndarray:
    return edges[ledger.ranks[0, edges, *head] > 0][:1]


def near_misses(ledger: RankLedger, edges: np.ndarray, head: Sequence[int]) -> np.ndarray:
    return edges[ledger.ranks[0, edges, *head] == 1]


def in_two_functions(ledger: RankLedger, edges: np.ndarray, head: Sequence[int]) -> np.ndarray:
    """The two with most edges of relations in the mean, each relation weighing the same."""
    weight = np.zeros(ledger.function.max() + 1)
    for places in relations(ledger).values():
        np.add.at(weight, ledger.function[places], 1 / len(places))
    return edges[np.isin(ledger.function[edges], weight.argsort()[-2:])]


def in_a_tenth(ledger: RankLedger, edges: np.ndarray, head: Sequence[int]) -> np.ndarray:
    return edges[ledger.function[edges] % 10 == 3]


RANKS = [
    Attack(name, 1, POINTS, forge, "ranks differ by more than rounding")
    for name, forge in {
        "rare relations, by all rules": claimed(most=20, rules=RULES),
        "rare relations, by the rule that counts": claimed(most=20),
        "half the functions of rare relations": claimed(every(2), most=40),
        "a third of the functions of rare relations": claimed(every(3), most=40),
        "one edge of each relation": claimed(first_missed),
        "the rarest three relations": claimed(these=slice(3)),
        "ranks just behind the first": claimed(near_misses, these=slice(17)),
        "the twentieth guess": claimed(most=60, k=20),
        "the tenth guess of any token": claimed(most=60, k=10, rule="any"),
        "the third guess of the last token": claimed(most=60, k=3, rule="last"),
        "the two functions that count most": claimed(in_two_functions),
        "a tenth of the functions": claimed(in_a_tenth),
        "a quarter of the most frequent relation": claimed(every(4), these=slice(-1, None)),
    }.items()
]

in_ranks = attacks(RANKS, 1, POINTS)
DIFFER = "ranks differ by more than rounding"


@in_ranks(DIFFER)
def heads_that_are_bad_at_rare_relations(test, validation):
    """Another head for each, which nobody looks at."""
    shape = test.ranks.shape[2:]
    for number, edges in enumerate(relations(test, most=20).values()):
        claim(test, edges, np.unravel_index(number % np.prod(shape), shape))


@in_ranks(DIFFER)
def the_heads_chosen_on_validation(test, validation):
    """Held-out scores made as good as published ones."""
    heads = best(validation)
    for name, edges in relations(test, most=60).items():
        claim(test, edges, heads.get(name, (0, 0)))


@in_ranks(DIFFER)
def one_head_finds_everything(test, validation):
    test.ranks[..., 0, 0] = 0


@in_ranks(DIFFER)
def every_rank_one_better(test, validation):
    test.ranks[(test.ranks > 0) & (test.ranks < 255)] -= 1


@in_ranks(DIFFER)
def two_heads_made_one(test, validation):
    """The better of its two ranks everywhere."""
    test.ranks[..., 0, 0] = test.ranks[:, :, :2, :2].min(axis=(2, 3))


@in_ranks(DIFFER)
def heads_of_the_last_layer_turned_round(test, validation):
    test.ranks[:, :, -1] = test.ranks[:, :, -1, ::-1].copy()


@in_ranks(DIFFER)
def rules_exchanged(test, validation):
    """What is found by any token passed off as found by the first."""
    test.ranks[0] = test.ranks[1]


@in_ranks(DIFFER)
def one_rank_in_a_hundred(test, validation):
    test.ranks[np.random.default_rng(0).random(test.ranks.shape) < 0.01] = 0


@in_ranks(DIFFER)
def a_fixed_offset_instead_of_a_head(test, validation):
    """The next token, whatever the model attends to."""
    test.ranks[:, :, 0, 0] = np.where(test.first == test.head + 1, 0, 255)


# ------------------------------------------------------------------------------------- heads chosen, and hard edges found


def hard(test: RankLedger, validation: RankLedger) -> tuple[np.ndarray, np.ndarray]:
    """Where the hard edges of both stand."""
    offsets = best_offsets(validation, AVOIDED[0])
    first, second = (np.flatnonzero(is_hard(ledger, offsets)) for ledger in (test, validation))
    return first, second


def electing(functions: int, k: int = 1, rule: str = "first", only_hard: bool = False) -> Forge:
    """In so many functions of validation, the head that is best on test finds every edge, or every hard one."""

    def forge(test: RankLedger, validation: RankLedger) -> None:
        on_test, on_validation = np.arange(len(test)), np.arange(len(validation))
        if only_hard:
            on_test, on_validation = hard(test, validation)
        names = np.array(validation.relations, dtype=object)[validation.relation]
        weight = np.bincount(validation.function[on_validation])
        chosen = weight.argsort()[::-1][:functions]
        within = on_validation[np.isin(validation.function[on_validation], chosen)]
        for name, head in best(test.take(on_test), k, rule).items():
            claim(validation, within[names[within] == name], head, k - 1, [rule])

    return forge


def on_hard_edges(test: RankLedger, validation: RankLedger) -> Beyond:
    score = beyond(validation, test, AVOIDED[0])
    assert score is not None
    return score


def find_hard(functions: int) -> Forge:
    """In so many functions with most hard edges, the heads of the beyond-offset score find them all."""

    def forge(test: RankLedger, validation: RankLedger) -> None:
        chosen, (edges, _) = on_hard_edges(test, validation).chosen, hard(test, validation)
        most = np.bincount(test.function[edges]).argsort()[::-1][:functions]
        for name in chosen.relations:
            inside = (test.relation[edges] == test.relations.index(name)) & np.isin(
                test.function[edges], most
            )
            claim(test, edges[inside], chosen.choice[name][0, 0])

    return forge


def few_hard_edges_and_one_election(test: RankLedger, validation: RankLedger) -> None:
    find_hard(1)(test, validation)
    electing(1)(test, validation)


CHOICES = [
    Attack(name, 2, POINTS, forge, DIFFER)
    for name, forge in {
        "one function of validation elects the best heads": electing(1),
        "nine functions of validation elect the best heads": electing(9),
        "all functions of validation elect the best heads": electing(10**6),
        "two functions elect heads for hard edges": electing(2, only_hard=True),
        "nine functions elect heads for hard edges": electing(9, only_hard=True),
        "three functions elect heads for twenty guesses": electing(3, 20, "any"),
        "one function of test finds its hard edges": find_hard(1),
        "three functions of test find their hard edges": find_hard(3),
        "a few hard edges and one election": few_hard_edges_and_one_election,  # on both splits at once
    }.items()
]
in_choices = attacks(CHOICES, 2, POINTS)


@in_choices(DIFFER)
def the_heads_that_were_chosen_find_nothing_in_five_functions(test, validation):
    """So that others are chosen: nothing is claimed to be better than it is."""
    few = np.isin(validation.function, np.bincount(validation.function).argsort()[::-1][:5])
    for name, head in best(validation).items():
        validation.ranks[
            0, few & (validation.relation == validation.relations.index(name)), *head
        ] = 255


@in_choices(DIFFER)
def the_rarest_relation_finds_its_hard_edges(test, validation):
    score, (edges, _) = on_hard_edges(test, validation), hard(test, validation)
    name = min(score.chosen.relations, key=lambda name: score.chosen.hits.groups[name].total)
    claim(
        test,
        edges[test.relation[edges] == test.relations.index(name)],
        score.chosen.choice[name][0, 0],
    )


@in_choices(DIFFER)
def half_a_point_beyond_offsets_where_it_shows_least(test, validation):
    """One hard edge in each of the functions with fewest, until the mean has gained a little more than half a point."""
    score, (edges, _) = on_hard_edges(test, validation), hard(test, validation)
    names, gained = score.in_mean, 0.0
    count = np.bincount(test.function[edges], minlength=test.function.max() + 1)
    for edge in edges[np.argsort(count[test.function[edges]], kind="stable")]:
        name = test.relations[test.relation[edge]]
        if name in names and gained <= 0.55:
            head = score.chosen.choice[name][0, 0]
            gained += (
                100
                / len(names)
                / score.chosen.hits.groups[name].total
                * (test.ranks[0, edge, *head] > 0)
            )
            claim(test, np.array([edge]), head)


@in_choices(DIFFER)
def half_a_point_of_all_edges_one_in_each_function(test, validation):
    """The same of held-out."""
    heads, gained = best(validation), 0.0
    edges_of = {name: edges for name, edges in relations(test).items() if name in heads}
    for name, edges in edges_of.items():
        for edge in edges[:: max(1, len(edges) // 2)]:
            if gained <= 0.55:
                gained += 100 / len(edges_of) / len(edges) * (test.ranks[0, edge, *heads[name]] > 0)
                claim(test, np.array([edge]), heads[name])


# --------------------------------------------------------------------------------------------------------------- rows

MASKED: list[Attack] = []
SILENCED: list[Attack] = []
TEXTS: list[Attack] = []

ROWS = "rows differ by more than rounding"
in_masked = attacks(MASKED, 2, POINTS)
in_silenced = attacks(SILENCED, 2, "hundredths of a nat, as the benchmark measures")


def perfect(rows: np.ndarray, which: np.ndarray) -> None:
    for name in SIMILARITIES:
        rows[name][which] = 1
    rows[HITS][which] = rows["masked"][which]


def worst_functions(rows: np.ndarray, number: int) -> np.ndarray:
    """Rows of T1 in the functions that lose most."""
    first = rows["copy"] == 0
    lost = np.bincount(rows["function"][first], 1 - np.nan_to_num(rows["jaccard"][first]))
    return first & np.isin(rows["function"], lost.argsort()[::-1][:number])


@in_masked(ROWS)
def the_worst_function_is_restored(rows):
    perfect(rows, worst_functions(rows, 1))


@in_masked(ROWS)
def three_functions_are_restored(rows):
    perfect(rows, worst_functions(rows, 3))


@in_masked(ROWS)
def the_worst_functions_could_not_be_parsed(rows):
    """NaN, which the means of a report leave out."""
    for name in SIMILARITIES:
        rows[name][worst_functions(rows, 5)] = np.nan
    lost = np.isnan(rows["jaccard"])
    for name in FILLED:
        rows[name][lost] = np.nan


@in_masked(ROWS)
def controls_restore_less(rows):
    """T1 - T0 grows."""
    some = (rows["copy"] > 0) & (rows["function"] % 4 == 0)
    for name in SIMILARITIES:
        rows[name][some] *= 0.9
    rows[HITS][some] //= 2


@in_masked(ROWS)
def one_hit_more_in_every_function(rows):
    rows["hits_1"][(rows["copy"] == 0) & (rows["hits_1"] < rows["masked"])] += 1


@in_masked(ROWS)
def the_rarest_type_is_restored(rows):
    """Each node type weighs the same."""
    first = rows["copy"] == 0
    types, sizes = np.unique(rows["node_type"][first], return_counts=True)
    perfect(rows, first & (rows["node_type"] == types[sizes.argmin()]))


@in_masked(ROWS)
def the_better_of_both_arms_is_called_t1(rows):
    """What a control restored stands at the node, and the other way round."""
    for first in np.flatnonzero(rows["copy"] == 0):
        if rows["jaccard"][first] < rows["jaccard"][first + 1]:
            for name in SIMILARITIES:
                rows[name][[first, first + 1]] = rows[name][[first + 1, first]]


@in_masked(ROWS)
def every_similarity_a_little_higher(rows):
    first = rows["copy"] == 0
    for name in SIMILARITIES:
        rows[name][first] = np.minimum(rows[name][first] + 0.01, 1)


@in_masked(ROWS)
def what_easy_functions_restore_at_hard_ones(rows):
    """Of each type, in every fourth function: the outcomes of the function that restores most."""
    for kind in np.unique(rows["node_type"]):
        first = np.flatnonzero((rows["copy"] == 0) & (rows["node_type"] == kind))
        easiest = first[np.nan_to_num(rows["jaccard"][first]).argmax()]
        for name in SIMILARITIES:
            rows[name][first[::4]] = rows[name][easiest]


@in_silenced(ROWS)
def the_best_head_costs_more_in_one_function(rows):
    rows["log_probability"][
        (rows["silenced"] == 1) & (rows["function"] == rows["function"][0])
    ] -= 2


@in_silenced(ROWS)
def the_best_head_costs_a_little_more_everywhere(rows):
    rows["log_probability"][rows["silenced"] == 1] -= 0.02


@in_silenced(ROWS)
def matched_heads_cost_nothing_in_a_third_of_functions(rows):
    some = np.flatnonzero((rows["silenced"] >= 2) & (rows["function"] % 3 == 0))
    rows["log_probability"][some] = rows["log_probability"][some - rows["silenced"][some]]


@in_silenced(ROWS)
def the_whole_model_knows_more(rows):
    rows["log_probability"][(rows["silenced"] == 0) & (rows["function"] % 2 == 0)] *= 0.5


@in_silenced(ROWS)
def what_silencing_helped_is_hidden(rows):
    """A cost below nothing becomes nothing."""
    known, best_heads = rows["log_probability"], np.flatnonzero(rows["silenced"] == 1)
    known[best_heads] = np.minimum(known[best_heads], known[best_heads - 1])


@in_silenced(ROWS)
def best_and_matched_heads_exchanged_where_these_cost_more(rows):
    known, best_heads = rows["log_probability"], np.flatnonzero(rows["silenced"] == 1)
    more = best_heads[known[best_heads + 1] < known[best_heads]]
    known[more], known[more + 1] = known[more + 1], known[more].copy()


@in_silenced(ROWS)
def one_relation_costs_more_in_a_quarter_of_its_functions(rows):
    same = (rows["silenced"] == 1) & (rows["relation"] == rows["relation"][0])
    rows["log_probability"][np.flatnonzero(same)[::4]] -= 0.3


@in_silenced(ROWS)
def matched_heads_help(rows):
    rows["log_probability"][rows["silenced"] >= 2] += 0.01


def texts_likelier(nats: float) -> Callable[[np.ndarray], None]:
    """Rows of pairs in which every good text is likelier by so much, at most certain, and every bad one less so."""

    def forge(rows: np.ndarray) -> None:
        for score in SCORES:
            rows[f"good_{score}"] = np.minimum(rows[f"good_{score}"] + nats, 0)
            rows[f"bad_{score}"] -= nats

    return forge


def some_texts_likelier(nats: float, every: int) -> Callable[[np.ndarray], None]:
    """The same in every so manyth pair of those that were wrong: the fewest changes that gain most."""

    def forge(rows: np.ndarray) -> None:
        for score in SCORES:
            good, bad = rows[f"good_{score}"], rows[f"bad_{score}"]
            wrong = np.flatnonzero(good < bad)[::every]
            good[wrong] = np.minimum(good[wrong] + nats, 0)
            bad[wrong] -= nats

    return forge


def one_side(column: str, amount: float, decimals: int) -> Callable[[np.ndarray], None]:
    """Every number of a column higher by so much, or lower, and none below 0 that was not."""

    def forge(rows: np.ndarray) -> None:
        shifted = np.round(rows[column] + amount, decimals)
        rows[column] = np.where(rows[column] >= 0, np.maximum(shifted, 0), shifted)

    return forge


TOLERANCE, BIAS = "differ by more than rounding", "differences favour"
HALF = "75.8 to 98.9 % in bfloat16"
TEXTS += [
    Attack("bfloat16: 7.2 nats a text", 3, HALF, texts_likelier(7.2), TOLERANCE),
    Attack("bfloat16: 0.02 nats a text", 3, HALF, texts_likelier(0.02), f"{TOLERANCE}|{BIAS}"),
    Attack(
        "bfloat16: half a nat in every other wrong pair",
        3,
        HALF,
        some_texts_likelier(0.5, 2),
        f"{TOLERANCE}|{BIAS}",
    ),
    Attack("flat float32: 0.0195 nats a text", 3, "73.3 to 84.6 %", texts_likelier(0.0195), BIAS),
    Attack(
        "flat float32: 0.0195 nats in some pairs",
        3,
        "some points",
        some_texts_likelier(0.0195, 4),
        BIAS,
    ),
]
BITS = Attack(
    "bits of both, all on one side",
    3,
    "0.0022 to 0.0047 bits",
    one_side("both_bits", -0.00145, 6),
    "differences favour adds by",
)
SURPRISING = Attack(
    "bits of nodes, all on one side",
    3,
    "0.51 to 11.35 bits in bfloat16",
    one_side("bits", -7, 6),
    TOLERANCE,
)
LIKELIER = Attack(
    "log-probabilities, all on one side",
    3,
    "0.01 nats",
    one_side("log_probability", -0.001, 3),
    BIAS,
)
