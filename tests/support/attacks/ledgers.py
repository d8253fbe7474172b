"""Forged ledgers that fit their data, and whose numbers follow from them: only running again can tell.

RANKS change the ranks of the ledgers of test and validation, ROWS the rows of those of other instruments. Each is
stopped by the number that is too high.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.attacks.attack import Attack, attacks

from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.beyond import Beyond, beyond_offsets
from probing.evidence.protocols import choose
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.likelihood.result import SCORES
from probing.instruments.masking.result import FILLED, HITS, SIMILARITIES

Forge = Callable[[RankLedger, RankLedger], Any]


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


# -------------------------------------------------------------------------------- ranks of the test


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


def best(ledger: RankLedger, k: int = 1) -> dict[str, tuple[int, ...]]:
    """Of each relation, the head that finds most first tokens."""
    return {name: tuple(heads[0, k - 1].tolist()) for name, heads in choose(ledger).items()}


def claimed(most: int, k: int = 1, rules: Sequence[str] = ("first",)) -> Forge:
    """The best head of each relation with so many edges at most finds all of them."""

    def forge(test: RankLedger, validation: RankLedger) -> None:
        heads = best(test, k)
        for name, edges in relations(test, most).items():
            claim(test, edges, heads[name], k - 1, rules)

    return forge


RANKS = [
    Attack("rare relations, by all rules", claimed(20, rules=RULES), "published"),
    Attack("rare relations, by the rule that counts", claimed(20), "published"),
    Attack("the twentieth guess", claimed(60, k=20), "published .*20"),
]
in_ranks = attacks(RANKS)


@in_ranks("held-out")
def one_edge_of_each_relation(test, validation):
    """The first that its best head misses."""
    heads = best(test)
    for name, edges in relations(test).items():
        missed = test.ranks[0, edges, *heads[name]] > 0
        claim(test, edges[missed][:1], heads[name])


@in_ranks("published|held-out|beyond-offset")
def every_rank_one_better(test, validation):
    test.ranks[(test.ranks > 0) & (test.ranks < 255)] -= 1


@in_ranks("published|held-out|beyond-offset")
def rules_exchanged(test, validation):
    """What is found by any token passed off as found by the first."""
    test.ranks[0] = test.ranks[1]


@in_ranks("published|held-out|beyond-offset")
def one_rank_in_a_hundred(test, validation):
    test.ranks[np.random.default_rng(0).random(test.ranks.shape) < 0.01] = 0


# --------------------------------------------------------------- heads chosen, and hard edges found


def hard(test: RankLedger, validation: RankLedger) -> tuple[np.ndarray, np.ndarray]:
    """Where the hard edges of both stand."""
    offsets = best_offsets(validation)
    first, second = (np.flatnonzero(is_hard(ledger, offsets)) for ledger in (test, validation))
    return first, second


def electing(functions: int, only_hard: bool = False) -> Forge:
    """In so many functions of validation, the head that is best on test finds every edge, or every hard one."""

    def forge(test: RankLedger, validation: RankLedger) -> None:
        on_test, on_validation = np.arange(len(test)), np.arange(len(validation))
        if only_hard:
            on_test, on_validation = hard(test, validation)
        names = np.array(validation.relations, dtype=object)[validation.relation]
        weight = np.bincount(validation.function[on_validation])
        chosen = weight.argsort()[::-1][:functions]
        within = on_validation[np.isin(validation.function[on_validation], chosen)]
        for name, head in best(test.take(on_test)).items():
            claim(validation, within[names[within] == name], head)

    return forge


RANKS += [
    Attack("nine functions of validation elect the best heads", electing(9), "held-out"),
    Attack("nine functions elect heads for hard edges", electing(9, True), "beyond-offset"),
]


@in_ranks("held-out")
def losses_on_validation_elect_the_best_heads(test, validation):
    """Of each relation, whatever finds more there than the head that is best on test loses what it has more."""
    heads = best(test)
    for name, edges in relations(validation).items():
        hits = validation.ranks[0, edges] == 0
        keep = max(0, int(hits[:, *heads[name]].sum()) - 1) if name in heads else None
        for head in np.ndindex(hits.shape[1:]):
            if keep is not None and head != heads[name]:
                validation.ranks[0, edges[hits[:, *head]][keep:], *head] = 1


def scored_beyond(test: RankLedger, validation: RankLedger) -> Beyond:
    score = beyond_offsets(validation, test)
    assert score is not None
    return score


@in_ranks("beyond-offset")
def losses_elsewhere_pay_for_hard_edges(test, validation):
    """Three functions lose all, and hard edges of others are found."""
    chosen, (edges, _) = scored_beyond(test, validation).chosen, hard(test, validation)
    lost = np.bincount(test.function).argsort()[::-1][:3]
    inside = np.isin(test.function, lost)
    test.ranks[:, inside] = 255
    for name in chosen.relations:
        of_name = edges[(test.relation[edges] == test.relations.index(name)) & ~inside[edges]]
        claim(test, of_name, chosen.choice[name][0, 0])


@in_ranks("beyond-offset")
def half_a_point_beyond_offsets_where_it_shows_least(test, validation):
    """One hard edge in each of the functions with fewest, until the mean has gained a little more than half a point."""
    score, (edges, _) = scored_beyond(test, validation), hard(test, validation)
    names, gained = score.chosen.hits.counted, 0.0
    count = np.bincount(test.function[edges], minlength=test.function.max() + 1)
    for edge in edges[np.argsort(count[test.function[edges]], kind="stable")]:
        name = test.relations[test.relation[edge]]
        if name in names and gained <= 0.55:
            head = score.chosen.choice[name][0, 0]
            missed = test.ranks[0, edge, *head] > 0
            gained += 100 / len(names) / score.chosen.hits.groups[name].total * missed
            claim(test, np.array([edge]), head)


# --------------------------------------------------------------------------------------------- rows


MASKED: list[Attack] = []
SILENCED: list[Attack] = []
in_masked = attacks(MASKED)
in_silenced = attacks(SILENCED)


def worst_functions(rows: np.ndarray, number: int) -> np.ndarray:
    """Rows of T1 in the functions that lose most."""
    first = rows["copy"] == 0
    lost = np.bincount(rows["function"][first], 1 - np.nan_to_num(rows["jaccard"][first]))
    return first & np.isin(rows["function"], lost.argsort()[::-1][:number])


@in_masked("T1")
def the_worst_function_is_restored(rows):
    worst = worst_functions(rows, 1)
    for name in SIMILARITIES:
        rows[name][worst] = 1
    rows[HITS][worst] = rows["masked"][worst]


@in_masked("T1")
def the_worst_functions_could_not_be_parsed(rows):
    """NaN, which the means of a report leave out."""
    for name in (*SIMILARITIES, *FILLED):
        rows[name][worst_functions(rows, 5)] = np.nan


@in_masked("T1 - T0")
def controls_restore_less(rows):
    some = (rows["copy"] > 0) & (rows["function"] % 4 == 0)
    for name in SIMILARITIES:
        rows[name][some] *= 0.9
    rows[HITS][some] //= 2


@in_masked("T1")
def every_similarity_a_little_higher(rows):
    first = rows["copy"] == 0
    for name in SIMILARITIES:
        rows[name][first] = np.minimum(rows[name][first] + 0.01, 1)


@in_silenced("cost")
def the_best_head_costs_more_in_one_function(rows):
    rows["log_probability"][
        (rows["silenced"] == 1) & (rows["function"] == rows["function"][0])
    ] -= 2


@in_silenced("cost beyond matched heads")
def matched_heads_cost_nothing_in_a_third_of_functions(rows):
    some = np.flatnonzero((rows["silenced"] >= 2) & (rows["function"] % 3 == 0))
    rows["log_probability"][some] = rows["log_probability"][some - rows["silenced"][some]]


@in_silenced("cost beyond matched heads")
def matched_heads_help(rows):
    rows["log_probability"][rows["silenced"] >= 2] += 0.01


def texts_likelier(nats: float) -> Callable[[np.ndarray], None]:
    """Rows of pairs in which every good text is likelier by so much, at most certain, and every bad one less so."""

    def forge(rows: np.ndarray) -> None:
        for score in SCORES:
            rows[f"good_{score}"] = np.minimum(rows[f"good_{score}"] + nats, 0)
            rows[f"bad_{score}"] -= nats

    return forge


def one_side(column: str, amount: float) -> Callable[[np.ndarray], None]:
    """Every number of a column higher by so much, or lower, and none below 0 that was not."""

    def forge(rows: np.ndarray) -> None:
        shifted = np.round(rows[column] + amount, 6)
        rows[column] = np.where(rows[column] >= 0, np.maximum(shifted, 0), shifted)

    return forge


TEXTS = [
    Attack("7.2 nats a text", texts_likelier(7.2), "preferred"),
    Attack("0.0195 nats a text of a flat model", texts_likelier(0.0195), "preferred"),
]
BITS = [
    Attack(f"{name}, all on one side", one_side(name, amount), "added by attention")
    for name, amount in (("words_bits", 0.00145), ("both_bits", -0.00145))
]
SURPRISING = Attack("bits of nodes, all on one side", one_side("bits", -7), "foreseen")
