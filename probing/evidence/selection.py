"""Choosing the attention head of each relation, and the uncertainty of its score; for models and baselines alike.

Two protocols, always reported side by side:

- *published* (Shen et al. 2022, section 4): each relation, rule and k uses the head that is best on the scored data.
- *held-out*: the head is chosen on the validation split and scored on the test split. `choose` never sees the data that
  `apply` scores. A relation without edges to choose on is excluded from the mean, and listed; the mean of *published*
  that compares with it is over the same relations, SAME_RELATIONS.

Edges of one function are not independent, so the unit of all statistics is the function. The heads are not chosen again
in each resample: an interval belongs to the chosen heads. The intervals of *published* therefore do not include the
optimism of choosing and scoring on the same data; the distance to *held-out* shows it.

Intervals are 95 % intervals. For a mean over relations, they come from a BCa bootstrap over functions (Efron 1987),
with levels for the number of functions that the mean rests on (`_degrees`); for a single relation, they are Wilson
intervals (1927) with the effective number of independent edges, because a bootstrap has too little coverage for few
functions, and no width if all of them score the same. In tests/benchmarks, beyond.py measures the coverage of the
first, coverage.py that of the second. A relation in fewer than FEW_FUNCTIONS functions has a score but no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES, score
from probing.attention.ledger import RankLedger
from probing.evidence.statistics import FEW_FUNCTIONS, NORMAL, PERMUTATIONS, RESAMPLES, bca, holm, signs

SAME_RELATIONS = "published, held-out's relations"
"""The scores of *published* over the relations of *held-out*, which compare with those of *held-out*."""

Choice = dict[str, dict[str, list[tuple[int, int]]]]
"""Rule -> relation -> an attention head (layer, head) for each k of KS."""


def choose(ledger: RankLedger) -> Choice:
    """The best head of each rule, relation and k, ties as in `score`."""
    counts = ledger.counts()
    choice: Choice = {}
    for rule in RULES:
        relations = score(counts, KS, rule)["relations"]
        choice[rule] = {
            name: [(entry[str(k)]["layer"], entry[str(k)]["head"]) for k in KS] for name, entry in relations.items()
        }
    return choice


@dataclass(frozen=True)
class Outcomes:
    """The hits of the chosen heads by function: F functions, R relations sorted by name.

    `functions` (F,): positions in the split; `edges`: int32 (F, R); `hits`: integers (rules, k, F, R). `unchosen`:
    relations that have edges to score but none to choose on, with their number of edges; not in `relations`.
    """

    relations: list[str]
    functions: np.ndarray
    edges: np.ndarray
    hits: np.ndarray
    choice: Choice
    unchosen: dict[str, int]

    @property
    def in_mean(self) -> np.ndarray:
        """Which relations count in the mean: bool (R,)."""
        return np.array([name not in NOT_IN_MEAN for name in self.relations], bool)

    def only(self, relations: Iterable[str]) -> Outcomes:
        """The same, restricted to these relations, such as those of the other protocol, so that means compare."""
        columns = [self.relations.index(name) for name in sorted(relations)]
        names = [self.relations[column] for column in columns]
        return Outcomes(
            names, self.functions, self.edges[:, columns], self.hits[..., columns], self.choice, self.unchosen
        )


def apply(ledger: RankLedger, choice: Choice) -> Outcomes:
    """Score `ledger` with chosen heads. Raises LedgerError for heads that the ledger does not have."""
    functions, row = np.unique(ledger.function, return_inverse=True)
    present = np.bincount(ledger.relation, minlength=len(ledger.relations))
    names = sorted(name for name, edges in zip(ledger.relations, present) if edges)
    chosen = [name for name in names if name in choice[RULES[0]]]
    edges = np.zeros((len(functions), len(chosen)), np.int32)
    small = (
        np.bincount(row, minlength=1).max() < 2**15
    )  # of a whole dataset the hits of each function are most of the memory
    hits = np.zeros((len(RULES), len(KS), len(functions), len(chosen)), np.int16 if small else np.int32)
    layers, heads = ledger.ranks.shape[2:]
    worst = max(KS)  # as good as any rank behind it
    for column, name in enumerate(chosen):
        index = np.flatnonzero(ledger.relation == ledger.relations.index(name))
        edges[:, column] = np.bincount(row[index], minlength=len(functions))
        for rule, kind in enumerate(RULES):
            heads_by_k = choice[kind][name]
            for layer, head in set(heads_by_k):
                if not (layer < layers and head < heads):
                    raise LedgerError(
                        f"head {layer}-{head} was chosen for {name}, but the ledger has {layers} layers of {heads} "
                        "heads: choose on a ledger of the same model"
                    )
                rank = np.minimum(ledger.ranks[rule, index, layer, head], worst)
                cells = np.bincount(row[index] * (worst + 1) + rank, minlength=len(functions) * (worst + 1))
                within = cells.reshape(len(functions), -1).cumsum(axis=1)  # (F, ranks)
                for place, k in enumerate(KS):
                    if heads_by_k[place] == (layer, head):
                        hits[rule, place, :, column] = within[:, k - 1]
    unchosen = {name: int(present[ledger.relations.index(name)]) for name in names if name not in chosen}
    return Outcomes(chosen, functions, edges, hits, choice, unchosen)


def published(ledger: RankLedger) -> Outcomes:
    """The published protocol: the heads are chosen on the scored data."""
    return apply(ledger, choose(ledger))


def held_out(validation: RankLedger, test: RankLedger) -> Outcomes:
    """The held-out protocol: the heads are chosen on `validation` and scored on `test`, two ledgers of the same model.

    Raises LedgerError for ledgers with different settings, or of the same split.
    """
    one, other = (ledger.settings.get("settings", {}) for ledger in (validation, test))
    for name in sorted({*one, *other} - {"split", "labels", "limit"}):
        if one.get(name) != other.get(name):
            raise LedgerError(
                f"the heads were chosen with {name} {one.get(name)!r}, but are scored with {other.get(name)!r}: "
                "probe both splits in the same way"
            )
    if one and one["split"] == other["split"]:
        raise LedgerError(f"both ledgers are of the split {one['split']}: choose on another, such as validation")
    return apply(test, choose(validation))


@dataclass(frozen=True)
class Estimate:
    """Scores, or differences of scores, in percent, with 95 % intervals.

    `relations`: float64 (3, rules, k, R), score, lower and upper bound, the bounds NaN for relations in fewer than
    FEW_FUNCTIONS functions; `mean`: (3, rules, k), over the relations that count, NaN if there are none.
    """

    relations: np.ndarray
    mean: np.ndarray


def estimate(outcomes: Outcomes, *, resamples: int = RESAMPLES, seed: int = 0) -> Estimate:
    """Scores with intervals: of relations from `_scored`, of means from the bootstrap.

    A resample without edges of a relation excludes it from its mean.
    """
    relations = [[_scored(hits, outcomes.edges)[0] for hits in rule_hits] for rule_hits in outcomes.hits]
    mean = _mean(outcomes.hits, outcomes.edges, outcomes.in_mean, resamples, seed)
    return Estimate(_percent(relations, outcomes.edges), mean)


@dataclass(frozen=True)
class Comparison:
    """Differences between the scores of two on the same edges, with intervals and p-values.

    `relations`: the R names; `difference`: as in `Estimate`; `p`: (rules, k, R), two-sided, uncorrected; `p_holm`: the
    same, corrected for the R relations (Holm 1979) within a rule and k; `p_mean`: (rules, k), for the mean over
    relations, which is a single test and not corrected.
    """

    relations: list[str]
    difference: Estimate
    p: np.ndarray
    p_holm: np.ndarray
    p_mean: np.ndarray


def compare(one: Outcomes, other: Outcomes, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Comparison:
    """Compare two models, or a model and a baseline, by a paired permutation test over functions.

    If neither is better, the two are exchangeable in each function: the test counts how often random exchanges give a
    difference at least as large (Noreen 1989). Relations for which either has no chosen head are excluded.

    Raises LedgerError unless the two were scored on the same edges of the same functions.
    """
    names = [name for name in one.relations if name in other.relations]
    mine, others = ([outcomes.relations.index(name) for name in names] for outcomes in (one, other))
    edges = one.edges[:, mine]
    if not (np.array_equal(one.functions, other.functions) and np.array_equal(edges, other.edges[:, others])):
        common = len(np.intersect1d(one.functions, other.functions))
        raise LedgerError(
            f"one was scored on {len(one.functions)} functions and the other on {len(other.functions)}, with {common} "
            "in common, or on different edges: probe with --also-fits, or make the baseline for the model's functions"
        )
    in_mean = one.in_mean[mine]
    hits, others_hits = one.hits[..., mine], other.hits[..., others]  # (rules, k, F, R)
    gained = hits - others_hits
    p, p_mean = _permutation_test(gained, edges, in_mean, permutations, seed)
    relations = [[_differing(*both, edges) for both in zip(*rule_hits)] for rule_hits in zip(hits, others_hits)]
    difference = Estimate(_percent(relations, edges), _mean(gained, edges, in_mean, RESAMPLES, seed))
    return Comparison(names, difference, p, np.apply_along_axis(holm, -1, p), p_mean)


def summary(outcomes: Outcomes, estimated: Estimate) -> dict[str, Any]:
    """Everything about a protocol's scores, as JSON.

    `{"scores": {rule: {k: [score, low, high] or None}}, "relations": {name: {"edges", "functions", "few_functions",
    "in_mean", rule: {k: {"score": [score, low, high], "layer", "head"}}}}, "unchosen": {name: edges}}`. Relations in
    few functions have no interval: `[score, None, None]`.
    """
    relations: dict[str, Any] = {}
    for column, name in enumerate(outcomes.relations):
        functions = int(np.count_nonzero(outcomes.edges[:, column]))
        entry = relations[name] = {
            "edges": int(outcomes.edges[:, column].sum()),
            "functions": functions,
            "few_functions": functions < FEW_FUNCTIONS,
            "in_mean": name not in NOT_IN_MEAN,
        }
        for number, rule in enumerate(RULES):
            entry[rule] = {
                str(k): {
                    "score": bounded(estimated.relations[:, number, place, column]),
                    "layer": outcomes.choice[rule][name][place][0],
                    "head": outcomes.choice[rule][name][place][1],
                }
                for place, k in enumerate(KS)
            }
    return {"scores": means(estimated), "relations": relations, "unchosen": outcomes.unchosen}


def means(estimated: Estimate) -> dict[str, dict[str, list[float] | None]]:
    """The means as JSON: rule -> k -> [score, low, high], or None if no relation counts."""
    return {
        rule: {
            str(k): None if math.isnan((mean := estimated.mean[:, number, place])[0]) else mean.tolist()
            for place, k in enumerate(KS)
        }
        for number, rule in enumerate(RULES)
    }


def bounded(cell: np.ndarray) -> list[float | None]:
    """Score, lower and upper bound as JSON, with None for NaN."""
    return [None if math.isnan(value) else value for value in cell.tolist()]


def _scored(hits: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares (3, R) of edges hit, with lower and upper bounds; and the residuals (F, R), hits minus expected hits.

    The bounds are Wilson's for the effective sample size: the number of independent edges whose share would vary as
    much (Franco et al. 2019, Journal of Survey Statistics and Methodology 7). It is at most the number of edges and, if
    the functions with the relation do not differ, the number of these.
    """
    total, functions = edges.sum(axis=0), np.count_nonzero(edges, axis=0)  # (R,)
    share = hits.sum(axis=0) / total
    residuals = hits - share * edges
    variance = (residuals**2).sum(axis=0) / total**2 * functions / np.maximum(functions - 1, 1)
    varies = variance > 1e-15  # smaller values are rounding errors
    effective = np.divide(share * (1 - share), variance, out=functions.astype(float), where=varies)
    size, z = np.minimum(effective, total), NORMAL.inv_cdf(0.975)
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    away = z * np.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z**2 / size)
    # at 0 and 1 rounding must not push a bound past the share, or off the scale
    low, high = np.clip(middle - away, 0, share), np.clip(middle + away, share, 1)
    return np.stack([share, low, high]), residuals


def _differing(hits: np.ndarray, others: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Differences (3, R) of the shares that two hit of the same edges, with lower and upper bounds.

    Computed from the bounds of both and their correlation over functions (Newcombe 1998, Statistics in Medicine 17,
    method 10; for clusters: Zou and Donner 2008, Statistics in Medicine 27).
    """
    (one, low, high), residuals = _scored(hits, edges)
    (other, others_low, others_high), others_residuals = _scored(others, edges)
    spread = np.sqrt((residuals**2).sum(axis=0) * (others_residuals**2).sum(axis=0))
    product = (residuals * others_residuals).sum(axis=0)
    correlation = np.divide(product, spread, out=np.zeros(len(spread)), where=spread > 1e-12)

    def away(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(mine**2 - 2 * correlation * mine * theirs + theirs**2, 0))

    below, above = away(one - low, others_high - other), away(high - one, other - others_low)
    difference = one - other
    return np.stack([difference, np.maximum(difference - below, -1), np.minimum(difference + above, 1)])


def _percent(relations: list[list[np.ndarray]], edges: np.ndarray) -> np.ndarray:
    """Shares with bounds, (3, R) for each rule and k, in the form of Estimate: percent, no bounds for few functions."""
    result = 100 * np.moveaxis(np.array(relations), 2, 0)  # (3, rules, k, R)
    result[1:, ..., np.count_nonzero(edges, axis=0) < FEW_FUNCTIONS] = np.nan
    return result


def _mean(hits: np.ndarray, edges: np.ndarray, in_mean: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """The mean over relations (3, rules, k) of `hits`, or differences of hits, (rules, k, F, R) on `edges` (F, R)."""
    rules, ks, functions, _ = hits.shape
    if not in_mean.any():
        return np.full((3, rules, ks), np.nan)
    hits, edges = hits[..., in_mean], edges[:, in_mean]
    degrees = _degrees(edges)
    rng = np.random.default_rng(seed)
    weight = rng.multinomial(functions, np.full(functions, 1 / functions), resamples).astype(np.float32)  # (B, F)
    total = edges.sum(axis=0)
    drawn = weight @ edges.astype(np.float32)  # (B, R); sums in float32 are exact below 2**24 edges
    result = np.empty((3, rules, ks))
    for rule in range(rules):
        columns = hits[rule].swapaxes(0, 1).reshape(functions, -1)  # (F, k * R)
        drawn_hits = (weight @ columns.astype(np.float32)).reshape(resamples, ks, -1)
        resampled = mean_of(drawn_hits, drawn[:, None])  # (B, k)
        scores = mean_of(hits[rule].sum(axis=1), total)  # (k,)
        # the scores without each function: (F, k)
        left_out = np.stack([mean_of(counts.sum(axis=0) - counts, total - edges) for counts in hits[rule]], axis=-1)
        low, high = bca(scores, resampled, left_out, degrees)
        # with many relations of very few edges, their bias can push the interval past the score
        result[:, rule] = scores, np.minimum(low, scores), np.maximum(high, scores)
    return result


def _degrees(edges: np.ndarray) -> float:
    """The degrees of freedom of the spread of a mean over relations, for `edges` (F, R): the functions it rests on.

    Each relation has the same weight, so a function that is one of few with a relation has a large share of the mean,
    and the spread over functions is mostly that of a few of them. Its degrees of freedom are Satterthwaite's (1946,
    Biometrics Bulletin 2; for clusters: Bell and McCaffrey 2002, Survey Methodology 28), if what a function adds to the
    mean varies as its share in it: as many as there are functions if all have the same share, and at least 1.
    """
    share = (edges / edges.sum(axis=0)).sum(axis=1)
    return float((share**2).sum() ** 2 / (share**4).sum())


def mean_of(hits: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The mean over the percentages (..., R) that have edges: (...); NaN if none has."""
    scores = np.multiply(hits, 100, dtype=np.float64, order="C")  # the order of memory decides how the sum rounds
    scores /= np.maximum(edges, 1)  # without edges nothing is hit
    total = scores.sum(axis=-1)
    number = np.broadcast_to(np.count_nonzero(edges, axis=-1), total.shape)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


def _permutation_test(
    gained: np.ndarray, edges: np.ndarray, in_mean: np.ndarray, permutations: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two-sided p-values of `gained` (rules, k, F, R): (rules, k, R) for relations, and (rules, k) for their mean."""
    rules, ks, functions, relations = gained.shape
    share = np.where(in_mean, 1 / edges.sum(axis=0), 0)  # the contribution of a hit to the mean, up to a factor
    p, p_mean = np.empty((rules, ks, relations)), np.empty((rules, ks))
    for rule in range(rules):  # one at a time bounds the memory
        of_relations = gained[rule].swapaxes(0, 1).reshape(functions, -1)  # (F, k * R)
        of_relations = of_relations.astype(np.float32)  # sums in float32 are exact below 2**24 edges
        of_mean = (gained[rule] * share).sum(axis=-1).T  # (F, k)
        both = of_relations, of_mean
        # rounding must not make an equal difference smaller
        observed = [np.abs(columns.sum(axis=0)) - 1e-9 for columns in both]
        as_large = [np.ones(columns.shape[1]) for columns in both]  # the observed exchange is one of the possible ones
        for sign in signs(functions, permutations, seed):
            for count, columns, least in zip(as_large, both, observed):
                count += (np.abs(sign.astype(columns.dtype) @ columns) >= least).sum(axis=0)
        p[rule], p_mean[rule] = as_large[0].reshape(ks, relations), as_large[1]
    return p / (permutations + 1), p_mean / (permutations + 1)
