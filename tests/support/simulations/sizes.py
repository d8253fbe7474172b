"""How often tests reject at 5 % where there is nothing to find (their size), and where there is (their power)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from probing.evidence.selection import Found, Outcomes
from probing.evidence.uncertainty import compare

from codesyntax_metric.topk_uas import RULES
from probing.evidence import effect, uncertainty
from probing.evidence.effect import silencing_effects
from probing.evidence.masked import gains
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.masking.result import FLOORS
from probing.instruments.silencing import ablate
from probing.instruments.silencing.result import Costs
from probing.report.silencing import MOST, verdict
from probing.stats.statistics import paired_test

Draw = Callable[[np.random.Generator, int], np.ndarray]

DIFFERENCES: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
    "discrete": lambda rng, size: rng.integers(-2, 3, size) / 2,
    "half zero": lambda rng, size: rng.normal(size=size) * (rng.random(size) < 0.5),
    "half zero, skewed": lambda rng, size: (rng.exponential(size=size) - 1) * (rng.random(size) < 0.5),
}
"""Differences of functions, with the mean 0."""


def paired_rejects(draw: Draw, functions: int, simulations: int, seed: int, shift: float = 0) -> float:
    """How often the paired test rejects, in percent, if `shift` standard deviations are added to the differences."""
    rng = np.random.default_rng(seed)
    shift *= float(draw(rng, 100_000).std())
    drawn = np.array([draw(rng, functions) for _ in range(simulations)]) + shift
    return float(100 * (paired_test(drawn, 999, seed) <= 0.05).mean())


def heads_differ(functions: int, simulations: int, seed: int, more: float = 0) -> tuple[float, float]:
    """How often heads are told apart from a baseline on the same edges of ten relations, in percent: by the mean, and on
    a relation: any, or, if one side finds `more` of the edges, as a share, the first."""
    rng, names = np.random.default_rng(seed), [f"R{number}:a->b" for number in range(10)]
    by_mean, by_relation = [], []
    for _ in range(simulations):
        edges = rng.poisson(1.5, (functions, len(names))) + np.eye(len(names), dtype=int)[np.arange(functions) % 10]
        share = np.clip(rng.beta(1, 3, (functions, 1)), 0.02, 0.98 - more)
        both = [
            Outcomes(
                names, np.arange(functions), edges, [*map(_found, rng.binomial(edges, share + of).T, edges.T)], {}, {}
            )
            for of in (more, 0)
        ]
        with patch.multiple(uncertainty, PERMUTATIONS=999):
            found = compare(*both)
        by_mean.append(found.p_mean[0, 0] < 0.05)
        by_relation.append(found.p_holm[0, 0, 0] < 0.05 if more else (found.p_holm < 0.05).any())
    return 100 * float(np.mean(by_mean)), 100 * float(np.mean(by_relation))


def _found(hits: np.ndarray, edges: np.ndarray) -> Found:
    there = np.flatnonzero(edges)
    return Found.of(there, edges[there], hits[None, None, there])


def heads_serve(functions: int, simulations: int, seed: int, more: float = 0) -> tuple[float, float]:
    """How often a head is said to serve most, and sets of heads to cost more together, in percent: of ten relations any,
    if all heads of a layer cost the same; or the first, if its heads cost so many standard deviations more."""
    rng, claimed = np.random.default_rng(seed), []
    names = [f"R{number}" for number in range(10)]
    heads = {name: SimpleNamespace(score=0.0, best=(0, number)) for number, name in enumerate(names)}
    with patch.multiple(effect, RESAMPLES=100, PERMUTATIONS=999):
        for _ in range(simulations):
            costs = {}
            for name in names:
                of_sets = rng.exponential(size=(2, 16, functions)) + rng.exponential(size=functions)
                of_sets[:, 0] += more
                together = {number: (one[0], one[1:].T) for number, one in zip((1, 3), of_sets - 1.5)}
                costs[name] = Costs(np.arange(functions), together)
            means = {name: of.matched.mean(axis=0) for name, of in costs.items()}
            relations = {
                name: SimpleNamespace(matched=of.mean(), costlier=int((of > costs[name].best.mean()).sum()))
                for name, of in means.items()
            }
            made = SimpleNamespace(costs=lambda costs=costs: costs, relations=relations, heads=heads)
            said = silencing_effects(made).values()
            found = [(verdict(one) == MOST, _more(one.together[3])) for one in said]
            claimed.append(found[0] if more else np.any(found, axis=0))
    serves, together = 100 * np.mean(claimed, axis=0)
    return float(serves), float(together)


def _more(found: effect.PairedEffect) -> bool:
    return found.p_holm < 0.05 and found.effect.estimate > 0


def fillers_beaten(functions: int, simulations: int, seed: int, more: float = 0) -> float:
    """How often a model is said to have more than fillers, in percent: in any of four node types, if it has what each
    of the two has; or in the first, if it has so many standard deviations more."""
    rng, beaten = np.random.default_rng(seed), []
    with patch.multiple(effect, RESAMPLES=20, PERMUTATIONS=999):
        for _ in range(simulations):
            of_function = rng.random(functions)
            arms = {
                column: {name: 0.4 * (of_function + rng.beta(4, 1, (2, functions))) for name in "abcd"}
                for column in ("jaccard", *FLOORS["jaccard"])
            }
            for of in arms["jaccard"].values():
                of += 0.4 * more * np.sqrt(4 / 150)  # the variance of the beta distribution
            found = gains(arms, "jaccard")
            beaten.append(found["a"][0].separated if more else any(of.separated for of in chain(*found.values())))
    return 100 * float(np.mean(beaten))


def candidates_chosen(functions: int, simulations: int, seed: int, more: float = 0) -> float:
    """How often a head becomes a candidate, in percent: in any of ten relations, if all 16 find what a guess by distance
    finds; or in the first, if one head finds so much more of the edges."""
    rng, chosen = np.random.default_rng(seed), []
    names, distances = [f"R{number}" for number in range(10)], 1 + np.arange(12)
    share = 1 / distances / (1 / distances).sum()
    function = np.repeat(np.arange(functions), 40)
    relation = np.tile(np.repeat(np.arange(10), 4), functions)
    with patch.object(ablate, "PERMUTATIONS", 999):
        for _ in range(simulations):
            drawn = rng.choice(len(distances), len(function), p=share)
            hit = rng.random((len(function), 16)) < share[drawn][:, None]
            hit[:, 5] |= rng.random(len(function)) < more
            ranks = np.broadcast_to(np.where(hit, 0, 9).astype(np.uint8)[:, None], (len(function), 1, 16))
            head = np.zeros_like(function)
            table = EdgeTable(names, function, relation, head, distances[drawn], distances[drawn], head + 50)
            ledger = RankLedger.of(table, np.broadcast_to(ranks, (len(RULES), *ranks.shape)), {})
            chosen_on, unseen = ablate.halves(ledger)
            found = ablate.beats_guess(unseen, chosen_on, ablate.ranked_heads(chosen_on))
            chosen.append(names[0] in found if more else bool(found))
    return 100 * float(np.mean(chosen))
