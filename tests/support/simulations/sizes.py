"""How often sentences claim at 5 % where there is nothing to find (their size), and where there is (their power)."""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

from codesyntax_metric.topk_uas import RULES
from probing.evidence.masked import gains
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.masking.result import FILLERS
from probing.instruments.silencing import choose
from probing.instruments.silencing import hits as silencing
from probing.report.silencing import MOST, verdict
from probing.stats.hits import Hits
from probing.stats.intervals import corrected


def heads_differ(
    functions: int, simulations: int, seed: int, more: float = 0
) -> tuple[float, float]:
    """How often heads are told apart from a baseline on the same edges of ten relations, in percent: by the mean, and on
    a relation: any, or, if one side finds `more` of the edges, as a share, the first."""
    rng, by_mean, by_relation = np.random.default_rng(seed), [], []
    for _ in range(simulations):
        edges = rng.poisson(1.5, (functions, 10)) + np.eye(10, dtype=int)[np.arange(functions) % 10]
        share = np.broadcast_to(
            np.clip(rng.beta(1, 3, (functions, 1)), 0.02, 0.98 - more), edges.shape
        )
        function, relation = np.nonzero(edges)
        n, found = edges[function, relation], share[function, relation]
        sums = {
            "heads": rng.binomial(n, found + more)[None],
            "baseline": rng.binomial(n, found)[None],
        }
        hits = Hits.of_rows(function, [f"R{number}" for number in relation], sums, ["first"], n)
        by_mean.append(hits.mean("heads", "baseline").at(0).significant)
        (relations,) = corrected([hits.by_group("heads", "baseline")])
        significant = relations.significant[0]
        by_relation.append(significant[0] if more else significant.any())
    return 100 * float(np.mean(by_mean)), 100 * float(np.mean(by_relation))


def heads_serve(functions: int, simulations: int, seed: int, more: float = 0) -> float:
    """How often a head is said to serve most, in percent: of ten relations any, if all heads of a layer cost the same;
    or the first, if its head costs so many standard deviations more."""
    rng, claimed = np.random.default_rng(seed), []
    names = [f"R{number}" for number in range(10)]
    heads = {
        name: SimpleNamespace(score=0.0, best=(0, place), matched=range(15))
        for place, name in enumerate(names)
    }
    function, relation = (
        np.tile(np.arange(functions), len(names)),
        np.repeat(np.array(names, object), functions),
    )
    if True:
        for _ in range(simulations):
            costs = rng.exponential(size=(16, len(names), functions)) - 1.5
            costs += rng.exponential(size=(len(names), functions))
            costs[0] += more
            best, *matched = costs
            kept = 0 * best, -best, -np.mean(matched, axis=0)
            sums = {system: of.reshape(1, -1) for system, of in zip(silencing.SYSTEMS, kept)}
            measured = Hits.of_rows(function, relation, sums, ["log_probability"], unit="nats")
            means = costs.mean(axis=-1)  # of heads, by relation
            relations = {
                name: SimpleNamespace(matched=of[1:].mean(), costlier=int((of[1:] > of[0]).sum()))
                for name, of in zip(names, means.T)
            }
            made = SimpleNamespace(relations=relations, heads=heads)
            with patch.object(silencing, "hits", lambda _, measured=measured: measured):
                said = silencing.silencing_effects(made).values()
            found = [verdict(one) == MOST for one in said]
            claimed.append(found[0] if more else any(found))
    return float(100 * np.mean(claimed))


def fillers_beaten(functions: int, simulations: int, seed: int, more: float = 0) -> float:
    """How often a model is said to have more than fillers, in percent: in any of four node types, if it has what each
    of the two has; or in the first, if it has so many standard deviations more."""
    rng, beaten = np.random.default_rng(seed), []
    function, node_type = (
        np.tile(np.arange(functions), 4),
        np.repeat(np.array([*"abcd"], object), functions),
    )
    for _ in range(simulations):
        of_function = np.tile(rng.random(functions), 4)
        sums = {}
        for filler in ("", *(f"{name} " for name in FILLERS)):
            for arm in ("T1", "T0"):
                sums[filler + arm] = 0.4 * (of_function + rng.beta(4, 1, (1, 4 * functions)))
        for arm in ("T1", "T0"):
            sums[arm] += 0.4 * more * np.sqrt(4 / 150)  # the variance of the beta distribution
        found = gains(Hits.of_rows(function, node_type, sums, ["jaccard"], unit="share"))
        beaten.append(
            found["a"][0].separated if more else any(of.separated for of in chain(*found.values()))
        )
    return 100 * float(np.mean(beaten))


def candidates_chosen(functions: int, simulations: int, seed: int, more: float = 0) -> float:
    """How often a head becomes a candidate, in percent: in any of ten relations, if all 16 find what a guess by distance
    finds; or in the first, if one head finds so much more of the edges."""
    rng, chosen = np.random.default_rng(seed), []
    names, distances = [f"R{number}" for number in range(10)], 1 + np.arange(12)
    share = 1 / distances / (1 / distances).sum()
    function = np.repeat(np.arange(functions), 40)
    relation = np.tile(np.repeat(np.arange(10), 4), functions)
    for _ in range(simulations):
        drawn = rng.choice(len(distances), len(function), p=share)
        hit = rng.random((len(function), 16)) < share[drawn][:, None]
        hit[:, 5] |= rng.random(len(function)) < more
        ranks = np.broadcast_to(
            np.where(hit, 0, 9).astype(np.uint8)[:, None], (len(function), 1, 16)
        )
        head = np.zeros_like(function)
        table = EdgeTable(
            names, function, relation, head, distances[drawn], distances[drawn], head + 50
        )
        ledger = RankLedger.of(table, np.broadcast_to(ranks, (len(RULES), *ranks.shape)), {})
        chosen_on, unseen = choose.halves(ledger)
        found = choose.beats_guess(unseen, chosen_on, choose.ranked_heads(chosen_on))
        chosen.append(names[0] in found if more else bool(found))
    return 100 * float(np.mean(chosen))
