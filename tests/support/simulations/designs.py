"""Hits as they occur in code, of which the truth is known, because they were made up.

Relations are in 95 to 1 % of functions, a function has 1 to 2,000 edges of one, with heavy tails, larger functions are
harder, and what is found of a relation in a function goes together. Repositories differ, and twins are alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from probing.evidence.protocols import ONE_GUESS, apply, choose, redrawn
from probing.instruments.attention.ledger import RankLedger
from probing.stats.hits import Hits

SYSTEMS = "model", "rule"
MOST_EDGES = 2000


@dataclass(frozen=True)
class Design:
    """`functions` of so many `repositories`, of sizes as 1, 1/2, 1/3 and so on, or of none; `harder`: by how many logits
    functions are for each factor of e in size; `spread`: the deviation of the logarithm of their sizes; `twins`: the
    share of functions that copy another one's numbers; `uneven`: how much systems differ by relation."""

    name: str
    relations: int
    functions: int
    repositories: int = 0
    harder: float = 0.3
    spread: float = 1.0
    twins: float = 0.0
    uneven: float = 0.5

    def draw(self, rng: np.random.Generator, functions: int) -> tuple[np.ndarray, ...]:
        """Edges (F, R), what the two systems find of them (2, F, R), and of which repository each function is, or of which
        twins (F,)."""
        fixed = np.random.default_rng(self.relations)
        easy = fixed.normal(0, 1.2, self.relations)
        gained = fixed.permutation(np.linspace(-1, 1, self.relations)) * self.uneven
        known = max(1, self.repositories)
        rates = 1 / np.arange(1, known + 1)
        repository = rng.choice(known, functions, p=rates / rates.sum())
        style = rng.normal(0, 0.6 if self.repositories else 0, (known, 2, self.relations))
        size = np.exp(rng.normal(0, self.spread, functions))
        has = rng.random((functions, self.relations)) < np.geomspace(0.95, 0.01, self.relations)
        rate = 3 * size[:, None] * rng.gamma(1, 1, (functions, self.relations))
        edges = has * np.minimum(1 + rng.poisson(rate), MOST_EDGES)
        shared = easy - self.harder * np.log(size)[:, None] + rng.normal(0, 0.8, (functions, 1))
        found = []
        for number, sign in enumerate((0.5, -0.5)):
            own = rng.normal(0, 0.8, (functions, 1)) + rng.normal(0, 0.8, edges.shape)
            logit = shared + own + style[repository, number] + sign * gained
            found.append(rng.binomial(edges, 1 / (1 + np.exp(-logit))))
        copied = np.flatnonzero(rng.random(functions) < self.twins)
        original = rng.integers(0, functions, len(copied))
        original = np.where(np.isin(original, copied), copied, original)  # no copy of a copy
        for column in (edges, *found):
            column[copied] = column[original]
        alike = np.arange(functions)
        alike[copied] = original
        return edges, np.stack(found), repository if self.repositories else alike

    @cached_property
    def truth(self) -> np.ndarray:
        """What the systems find of each relation, in percent: (2, R), over many repositories of many functions."""
        rng = np.random.default_rng(99)
        totals = [self.draw(rng, 4000)[:2] for _ in range(40 if not self.repositories else 400)]
        edges = sum(edges.sum(axis=0) for edges, _ in totals)
        return 100 * sum(found.sum(axis=1) for _, found in totals) / edges


def hits_of(edges: np.ndarray, found: np.ndarray, clusters: np.ndarray, least: int = 3) -> Hits:
    """Of relations in at least so many functions."""
    there = (edges > 0).sum(axis=0) >= least
    function, relation = np.nonzero((edges > 0) & there)
    sums = {system: of[function, relation][None] for system, of in zip(SYSTEMS, found)}
    names = np.array([f"r{number:02}" for number in range(edges.shape[1])])
    n = edges[function, relation]
    return Hits.of_rows(clusters[function], names[relation], sums, ["k"], n)


def held(design: Design, draws: int, seed: int, over_functions: bool = True) -> list[float]:
    """Percent of draws whose interval holds the true mean, and the true difference; and in which the test finds a
    difference where model and rule are exchanged at random, in all functions of a repository or twins alike."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(3)
    for _ in range(draws):
        edges, found, units = design.draw(rng, design.functions)
        clusters = np.arange(design.functions) if over_functions else units
        hits = hits_of(edges, found, clusters)
        relations = [int(name[1:]) for name in hits.names]
        true = design.truth[:, relations].mean(axis=1)
        for place, (pair, value) in enumerate(
            ((SYSTEMS[:1], true[0]), (SYSTEMS, true[0] - true[1]))
        ):
            estimate = hits.mean(*pair).at(0)
            counts[place] += estimate.low <= value <= estimate.high
        exchanged = rng.random(design.functions) < 0.5
        swapped = np.where(exchanged[units][:, None], found[::-1], found)
        counts[2] += hits_of(edges, swapped, clusters).mean(*SYSTEMS).at(0).p <= 0.05
    return (100 * counts / draws).tolist()


PLAIN = [
    Design(f"{relations} relations, {functions} functions", relations, functions)
    for relations in (12, 30)
    for functions in (40, 140, 600)
]
CLUSTERED = [
    Design("30 relations, 600 functions, half of them twins", 30, 600, twins=0.5),
    *(
        Design(f"30 relations, 600 functions of {repositories} repositories", 30, 600, repositories)
        for repositories in (4, 10, 42)
    ),
]


def exchanged(
    hits: Hits, pair: tuple[str, str], draws: int, seed: int, functions: int = 0
) -> float:
    """Percent of draws in which the test finds a difference of means, if two systems are exchanged at random, function by
    function, of the first measure; in all functions, or for each draw in so many others, of relations in at least 3."""
    rng = np.random.default_rng(seed)
    parts = 1 if not functions else max(1, draws // 50)
    found = []
    for _ in range(parts):
        part = hits
        if functions:
            chosen = np.sort(
                rng.choice(hits.clusters, min(functions, len(hits.clusters)), replace=False)
            )
            of_part = {name: np.intersect1d(hits.of(name), chosen) for name in hits.names}
            part = hits.cells({name: of for name, of in of_part.items() if len(of) >= 3})
        swap = rng.random((draws // parts, len(part.clusters))) < 0.5
        groups = {}
        for name, group in part.groups.items():
            first, second = (group.sums[system][0] for system in pair)
            mine = swap[:, group.places]
            sums = np.where(mine, second, first), np.where(mine, first, second)
            groups[name] = replace(group, sums=dict(zip(pair, sums)))
        drawn = replace(part, groups=groups, measures=tuple(range(len(swap))))
        found.append(drawn.mean(*pair).p <= 0.05)
    return float(100 * np.mean(found))


def chosen_again(ledger: RankLedger, draws: int, seed: int, functions: int = 60) -> list[float]:
    """Percent of draws whose interval of the mean, of chosen heads and with the choice, holds what heads find of all
    functions on average over choices: they are chosen on so many functions, and scored on half of the others."""
    rng = np.random.default_rng(seed)
    known = np.unique(ledger.function)
    counts = ledger.counts()
    intervals, population = [], []
    for _ in range(draws):
        order = rng.permutation(known)
        half = functions + (len(known) - functions) // 2
        validation, test = (
            ledger.only(np.sort(part)) for part in (order[:functions], order[functions:half])
        )
        choice = choose(validation)
        alone = apply(test, choice).at(ONE_GUESS)
        both = redrawn(apply(test, choice), validation, test).at(ONE_GUESS)
        intervals.append([chosen.hits.mean(chosen.system).at(0) for chosen in (alone, both)])
        heads = {name: tuple(choice[name][0, 0]) for name in alone.hits.counted}
        population.append(
            {
                name: 100 * counts.hits(name, "first")[head][0] / counts.edges(name)
                for name, head in heads.items()
            }
        )
    names = set().union(*population)
    true = {name: np.mean([of[name] for of in population if name in of]) for name in names}
    values = [np.mean([true[name] for name in of]) for of in population]
    return [
        100
        * np.mean(
            [of[which].low <= value <= of[which].high for of, value in zip(intervals, values)]
        )
        for which in (0, 1)
    ]
