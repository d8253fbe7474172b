"""The uncertainty of scores, and of differences between scores.

Edges of one function are not independent, so the unit of all statistics is the function. The heads are not chosen again
in each resample: an interval belongs to the chosen heads. The intervals of *published* therefore do not include the
optimism of choosing and scoring on the same data; the distance to *held-out* shows it.

Intervals are 95 % intervals. For a mean over relations, they come from a BCa bootstrap over functions (Efron 1987),
with levels for the number of functions that the mean rests on (`degrees_of`); for a single relation, they are Wilson
intervals (1927) with the effective number of independent edges, because a bootstrap has too little coverage for few
functions, and no width if all of them score the same. In tests/benchmarks, beyond.py measures the coverage of the
first, coverage.py that of the second. A relation in fewer than FEW_FUNCTIONS functions has a score but no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.special import ndtri

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.selection import Found, Outcomes, exchanged, exchanged_together, resampled
from probing.runs.records import FieldsByName
from probing.stats.statistics import (
    FEW_FUNCTIONS,
    PERMUTATIONS,
    RESAMPLES,
    Arrays,
    as_far,
    bca,
    cached,
    holm,
    paired_p,
)

_SEED = 0
"""Of drawing and of exchanging functions: the same numbers come out each time."""


@dataclass(frozen=True)
class Estimate:
    """Scores, or differences of scores, in percent, with 95 % intervals.

    `relations`: float64 (3, rules, k, R), score, lower and upper bound, the bounds NaN for relations in fewer than
    FEW_FUNCTIONS functions; `mean`: (3, rules, k), over the relations that count, NaN if there are none.
    """

    relations: np.ndarray
    mean: np.ndarray


def estimate(outcomes: Outcomes) -> Estimate:
    """Scores with intervals: of relations from `scored`, of means from the bootstrap.

    A resample without edges of a relation excludes it from its mean.
    """

    def compute() -> Arrays:
        return {"relations": relation_scores(outcomes), "mean": _mean(outcomes)}

    return Estimate(**cached(f"estimate {RESAMPLES}", outcomes.content(), compute))


def relation_scores(outcomes: Outcomes) -> np.ndarray:
    """The `relations` of `estimate`."""
    return _percent([scored(found, outcomes.edges)[0][:, found.which] for found in outcomes.found], outcomes)


@dataclass(frozen=True)
class Comparison:
    """Differences between the scores of two on the same edges, with intervals and p-values.

    `relations`: the R names; `difference`: as in `Estimate`; `p`: (rules, k, R), two-sided, uncorrected, NaN where
    relations were not tested; `p_holm`: the same, corrected for the R relations (Holm 1979) within a rule and k;
    `p_mean`: (rules, k), for the mean over relations, which is a single test and not corrected.
    """

    relations: list[str]
    difference: Estimate
    p: np.ndarray
    p_holm: np.ndarray
    p_mean: np.ndarray


def compare(one: Outcomes, other: Outcomes, *, relations_at: Sequence[int] | None = None) -> Comparison:
    """Compare two models, or a model and a baseline, by the paired test of `probing.stats.statistics`.

    `relations_at`: the places on the axis of k where relations are tested, too, most of the work; by default all.

    Relations for which either has no chosen head are excluded.

    Raises LedgerError unless the two were scored on the same edges of the same functions.
    """
    one, other = _same_edges(one, other)
    tested = list(range(one.shape[1]) if relations_at is None else relations_at)
    (of_mean,) = compare_means([one, other], [(0, 1)])

    def compute() -> Arrays:
        relations = [_differing(mine, theirs, one.edges) for mine, theirs in zip(one.found, other.found)]
        gained = [mine.minus(theirs, tested) for mine, theirs in zip(one.found, other.found)]
        p = np.full((*one.shape, len(relations)), np.nan)
        for place, (of_columns, found) in enumerate(zip(_exchange_p(gained, len(one.functions)), gained)):
            p[:, tested, place] = of_columns[found.which]
        return {"relations": _percent(relations, one), "p": p}

    made_of = chain(one.content(), other.content())
    found = cached(f"compare {tested} {PERMUTATIONS}", made_of, compute)
    difference, p = Estimate(found["relations"], of_mean.mean), found["p"]
    return Comparison(one.relations, difference, p, np.apply_along_axis(holm, -1, p), of_mean.p)


def mean_score(outcomes: Outcomes, ks: Sequence[int] = KS) -> np.ndarray:
    """The mean of `estimate`, with bounds: (3, rules, k), NaN for k of KS that are not among `ks`."""
    scores = np.full((3, len(RULES), len(KS)), np.nan)
    scores[..., [KS.index(k) for k in ks]] = mean_with_bounds(outcomes.at(RULES, ks))
    return scores


def mean_with_bounds(outcomes: Outcomes) -> np.ndarray:
    """The same at all k of the outcomes, whichever they are: (3, rules, k)."""
    return cached(f"mean {RESAMPLES}", outcomes.content(), lambda: {"mean": _mean(outcomes)})["mean"]


@dataclass(frozen=True)
class MeanComparison:
    """The difference of two means over relations: `mean` (3, rules, k), with bounds; `p` (rules, k), as `p_mean`."""

    mean: np.ndarray
    p: np.ndarray


def compare_means(several: Sequence[Outcomes], pairs: Sequence[tuple[int, int]]) -> list[MeanComparison]:
    """The means of some pairs of several models, compared as in `compare`: functions are drawn once for all models.

    Raises LedgerError unless all were scored on the same edges of the same functions.
    """
    names = set.intersection(*(set(one.relations) for one in several))
    several = [_same_edges(several[0], one.only(names))[1] for one in several]
    (rules, ks), in_mean = several[0].shape, several[0].in_mean
    if not in_mean.any():
        return [MeanComparison(np.full((3, rules, ks), np.nan), np.ones((rules, ks))) for _ in pairs]
    made_of = chain([repr(pairs).encode()], *(one.content() for one in several))
    what = f"compare means {RESAMPLES} {PERMUTATIONS}"
    found = cached(what, made_of, lambda: _compare_means(several, pairs))
    return list(map(MeanComparison, found["mean"], found["p"]))


def _compare_means(several: Sequence[Outcomes], pairs: Sequence[tuple[int, int]]) -> Arrays:
    """The means (pairs, 3, rules, k) and p (pairs, rules, k) of `compare_means`."""
    first, (rules, ks), in_mean = several[0], several[0].shape, several[0].in_mean
    kept = [one.only(np.array(first.relations)[in_mean].tolist()) for one in several]
    edges, functions = kept[0].edges, len(first.functions)
    by_relation = list(zip(*(one.found for one in kept)))
    joint = [Found.of(one[0].places, one[0].edges, np.concatenate([of.counts for of in one])) for one in by_relation]
    share = 1 / edges.sum(axis=0)  # what a hit adds to the mean, up to a factor
    by_model = np.stack([_shares(one.found, share, functions, one.shape) for one in kept])
    differences = np.stack([by_model[one] - by_model[other] for one, other in pairs])
    farther = np.zeros(differences.shape[:2])
    few = len(pairs) < len(several)  # sums over functions are linear: of pairs or, if they are fewer, of models
    exchanged = differences if few else by_model
    for sums in exchanged_together(exchanged.reshape(-1, functions), PERMUTATIONS, _SEED):
        of_each = sums.reshape(*exchanged.shape[:2], -1)
        for place, (one, other) in enumerate(pairs):
            difference = of_each[place] if few else of_each[one] - of_each[other]
            farther[place] += as_far(difference, differences[place].sum(axis=-1))
    drawn_edges, drawn = resampled(joint, functions, RESAMPLES, _SEED)
    drawn = drawn.reshape(RESAMPLES, len(several), rules * ks, -1)
    mean = np.empty((len(pairs), 3, rules, ks))
    for place, (one, other) in enumerate(pairs):
        gained = [of[one].minus(of[other]) for of in by_relation]
        mean[place] = _with_bounds(gained, edges, drawn_edges, drawn[:, one] - drawn[:, other])
    p = paired_p(farther, PERMUTATIONS, differences)
    return {"mean": mean, "p": p.reshape(len(pairs), rules, ks)}


def _same_edges(one: Outcomes, other: Outcomes) -> tuple[Outcomes, Outcomes]:
    """The two, restricted to the relations of both; raises LedgerError for other edges or functions."""
    common = len(np.intersect1d(one.functions, other.functions))
    names = set(one.relations) & set(other.relations)
    mine, theirs = one.only(names), other.only(names)
    if not (np.array_equal(one.functions, other.functions) and np.array_equal(mine.edges, theirs.edges)):
        raise LedgerError(
            f"one was scored on {len(one.functions)} functions and the other on {len(other.functions)}, with {common} "
            "in common, or on different edges: probe with --also-fits, or make the baseline for the model's functions"
        )
    return mine, theirs


Means = dict[str, dict[str, list[float] | None]]
"""Rule -> k -> [score, low, high] of a mean over relations, in percent, or None if no relation counts."""


class HeadEstimate(FieldsByName):
    """[score, low, high] of a relation in percent, and its head; in few functions there is no interval."""

    score: list[float | None]
    layer: int
    head: int


class RelationSummary(FieldsByName):
    """The scores of a relation by each rule: k -> score and head."""

    edges: int
    functions: int
    few_functions: bool
    in_mean: bool
    first: dict[str, HeadEstimate]
    any: dict[str, HeadEstimate]
    last: dict[str, HeadEstimate]


class Summary(FieldsByName):
    """Everything about a protocol's scores. `unchosen`: relation without a chosen head -> its edges."""

    scores: Means
    relations: dict[str, RelationSummary]
    unchosen: dict[str, int]


def summary(outcomes: Outcomes, estimated: Estimate) -> Summary:
    """The summary of one protocol."""

    def of_relation(column: int, name: str) -> RelationSummary:
        functions = int(np.count_nonzero(outcomes.edges[:, column]))
        by_rule = {
            rule: {
                str(k): HeadEstimate(
                    score=bounded(estimated.relations[:, number, place, column]),
                    layer=int(outcomes.choice[name][number, place, 0]),
                    head=int(outcomes.choice[name][number, place, 1]),
                )
                for place, k in enumerate(KS)
            }
            for number, rule in enumerate(RULES)
        }
        return RelationSummary(
            edges=int(outcomes.edges[:, column].sum()),
            functions=functions,
            few_functions=functions < FEW_FUNCTIONS,
            in_mean=name not in NOT_IN_MEAN,
            **by_rule,
        )

    relations = {name: of_relation(column, name) for column, name in enumerate(outcomes.relations)}
    return Summary(scores=means(estimated.mean), relations=relations, unchosen=outcomes.unchosen)


def means(estimated: np.ndarray) -> Means:
    """The means (3, rules, k) as JSON: rule -> k -> [score, low, high], or None if no relation counts."""
    return {
        rule: {
            str(k): None if math.isnan((cell := estimated[:, number, place])[0]) else cell.tolist()
            for place, k in enumerate(KS)
        }
        for number, rule in enumerate(RULES)
    }


def bounded(cell: Iterable[float]) -> list[float | None]:
    """Score, lower and upper bound as JSON, with None for NaN."""
    return [None if math.isnan(value) else float(value) for value in cell]


def scored(found: Found, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares (3, columns) of the edges of a relation that its columns hit, with lower and upper bounds; and the
    residuals (columns, f), hits minus expected hits. `table` (F, R): the edges of all relations.

    The bounds are Wilson's for the effective sample size: the number of independent edges whose share would vary as
    much (Franco et al. 2019, Journal of Survey Statistics and Methodology 7). It is at most the number of edges and, if
    the functions with the relation do not differ, the number of these.
    """
    total, functions = found.edges.sum(), len(found.edges)
    share = found.columns.sum(axis=1) / total
    residuals = found.columns - share[:, None] * found.edges
    variance = _sum(residuals**2, found, table) / total**2 * functions / max(functions - 1, 1)
    varies = variance > 1e-15  # smaller values are rounding errors
    effective = np.divide(share * (1 - share), variance, out=np.full(len(share), float(functions)), where=varies)
    size, z = np.minimum(effective, total), ndtri(0.975)
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    away = z * np.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z**2 / size)
    # at 0 and 1 rounding must not push a bound past the share, or off the scale
    low, high = np.clip(middle - away, 0, share), np.clip(middle + away, share, 1)
    return np.stack([share, low, high]), residuals


def _sum(values: np.ndarray, found: Found, table: np.ndarray) -> np.ndarray:
    """The sums (columns,) of `values` (columns, f) over functions, rounded like those of the columns of `table` (F, R).

    numpy adds a column of a table in C order from top to bottom, and one in Fortran order pairwise.
    """
    if not table.flags.f_contiguous:
        return np.add.accumulate(values, axis=1)[:, -1]
    of_all = np.zeros((len(values), len(table)))
    of_all[:, found.places] = values
    return of_all.sum(axis=1)


def _differing(mine: Found, theirs: Found, table: np.ndarray) -> np.ndarray:
    """Differences (3, rules, k) of the shares that two hit of the same edges, with lower and upper bounds.

    Computed from the bounds of both and their correlation over functions (Newcombe 1998, Statistics in Medicine 17,
    method 10; for clusters: Zou and Donner 2008, Statistics in Medicine 27).
    """
    both, which = np.unique([mine.which.ravel(), theirs.which.ravel()], axis=1, return_inverse=True)
    sides = [scored(side, table) for side in (mine, theirs)]
    (one, low, high), (other, others_low, others_high) = (scored[:, at] for (scored, _), at in zip(sides, both))
    residuals, others_residuals = (of_side for _, of_side in sides)
    spreads = (_sum(of_side**2, mine, table)[at] for (_, of_side), at in zip(sides, both))
    spread = np.sqrt(np.prod(list(spreads), axis=0))
    product = _sum(residuals[both[0]] * others_residuals[both[1]], mine, table)
    correlation = np.divide(product, spread, out=np.zeros(len(spread)), where=spread > 1e-12)

    def away(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(mine**2 - 2 * correlation * mine * theirs + theirs**2, 0))

    below, above = away(one - low, others_high - other), away(high - one, other - others_low)
    difference = one - other
    bounded = np.stack([difference, np.maximum(difference - below, -1), np.minimum(difference + above, 1)])
    return bounded[:, which.reshape(mine.which.shape)]


def _percent(relations: list[np.ndarray], outcomes: Outcomes) -> np.ndarray:
    """Shares with bounds, (3, rules, k) for each relation, in the form of Estimate: percent, no bounds for few
    functions."""
    result = 100 * np.moveaxis(np.array(relations).reshape(-1, 3, *outcomes.shape), 0, -1)  # (3, rules, k, R)
    result[1:, ..., np.count_nonzero(outcomes.edges, axis=0) < FEW_FUNCTIONS] = np.nan
    return result


def _mean(outcomes: Outcomes) -> np.ndarray:
    """The mean over relations (3, rules, k), with bounds."""
    in_mean = outcomes.in_mean
    if not in_mean.any():
        return np.full((3, *outcomes.shape), np.nan)
    counts, edges = [one for one, kept in zip(outcomes.found, in_mean) if kept], outcomes.edges[:, in_mean]
    return _with_bounds(counts, edges, *resampled(counts, len(edges), RESAMPLES, _SEED))


def _with_bounds(counts: Sequence[Found], edges: np.ndarray, drawn_edges: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The mean (3, rules, k) of `counts` on `edges` (F, R), from sums over drawn functions, as of `resampled`."""
    (rules, ks), resamples = counts[0].which.shape, len(drawn)
    degrees, total = degrees_of(edges), edges.sum(axis=0)
    left = total - edges  # without each function
    drawn_scores = mean_of(drawn, drawn_edges[:, None]).reshape(resamples, rules, ks)
    of_all = np.stack([one.total for one in counts], axis=-1)  # (rules, k, R)
    result = np.empty((3, rules, ks))
    for rule in range(rules):
        scores = mean_of(of_all[rule], total)  # (k,)
        left_out = _without_each(counts, left, rule)
        low, high = bca(scores, np.ascontiguousarray(drawn_scores[:, rule]), left_out, degrees)
        # with many relations of very few edges, their bias can push the interval past the score
        result[:, rule] = scores, np.minimum(low, scores), np.maximum(high, scores)
    return result


def _without_each(counts: Sequence[Found], left: np.ndarray, rule: int) -> np.ndarray:
    """The mean over relations without each of the functions, of which `left` (F, R) edges are left: (F, k)."""
    hits = np.empty((counts[0].which.shape[1], *left.shape), np.int64)
    for column, one in enumerate(counts):
        of_relation = one.columns[one.which[rule]]  # (k, f)
        hits[:, :, column] = of_relation.sum(axis=1, dtype=np.int64)[:, None]
        hits[:, one.places, column] -= of_relation
    return np.ascontiguousarray(mean_of(hits, left).T)


def degrees_of(edges: np.ndarray) -> float:
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


def _exchange_p(parts: Sequence[Found], functions: int) -> list[np.ndarray]:
    """Two-sided p-values (columns,) of the paired test of the columns of each part, of so many functions in all."""
    farther, observed = [np.zeros(len(one.columns)) for one in parts], [one.columns.sum(axis=1) for one in parts]
    for sums in exchanged(parts, functions, PERMUTATIONS, _SEED) if parts else ():
        for count, of_relation, total in zip(farther, sums, observed):
            count += as_far(of_relation, total)
    return [paired_p(count, PERMUTATIONS, one.columns) for count, one in zip(farther, parts)]


def shares(outcomes: Outcomes) -> np.ndarray:
    """Each function's contribution to the mean over relations, in percent: float64 (rules * k, F)."""
    in_mean = outcomes.in_mean
    weight = np.where(in_mean, 100 / outcomes.edges.sum(axis=0) / max(1, in_mean.sum()), 0)
    return _shares(outcomes.found, weight, len(outcomes.edges), outcomes.shape)


def _shares(parts: Sequence[Found], share: np.ndarray, functions: int, shape: tuple[int, ...]) -> np.ndarray:
    """The share of each function in the means over relations, up to a factor: float64 (rules * k, F)."""
    added = np.zeros((math.prod(shape), functions))
    for weight, one in zip(share, parts):
        added[:, one.places] += weight * one.columns[one.which.ravel()]
    return added
