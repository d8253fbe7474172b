"""Effects: of masking the nodes of a type on a score, of silencing the best head of a relation, of attention beside
words and positions; and accuracies on minimal pairs.

*Masking.* T1, where the nodes are masked, against T0, where as many sub-tokens are at random. Three estimates, for
different designs (Velasco et al., ICSE-NIER 2024, section 3, asked for the average treatment effect):

- `paired`, the default: every function has both scores, so that the effect is the mean difference T1 - T0. Whatever
  belongs to the function is the same in both arms and cannot confound. The interval is a BCa bootstrap over functions,
  the test is the paired one of `probing.stats.statistics`, and p-values are corrected over node types.
- `published`: what the study reports for the same design, reproduced.
- `unpaired`: each function has one score, in one of two arms (two corpora, two models on other functions). Weighting
  by the inverse propensity, and a doubly robust estimate, adjust for confounders such as
  `probing.paper.masking_study.confounders`; overlap and a placebo say whether they can.

Estimates are differences in the unit of the scores, treated minus control.

*Silencing.* Heads that look and heads that serve: the cost of silencing the best head of a relation is paired by
function with the mean cost of the matched heads, other heads of the same layer, as `paired` does, with p-values
corrected over relations. Since any two heads differ in enough functions, how many of the matched heads cost more is
counted, too: a head picked at random from a layer of H costs most of them with the probability 1 / H.

*Information.* The probe is fitted once, on validation: an interval belongs to the fitted probe. Relations and means get
a BCa bootstrap over functions, with the levels of `probing.evidence.uncertainty`; a relation in fewer than
FEW_FUNCTIONS functions has no interval.

*Minimal pairs.* What is drawn are repositories. As for heads (`probing.evidence.uncertainty`), intervals of a mean over
phenomena come from a BCa bootstrap, and those of one phenomenon, distance or depth are Wilson's, with the number of
independent pairs that the repositories are worth: a bootstrap has no width where all pairs are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from codesyntax_dataset.errors import ArgumentError
from probing.instruments.information.result import InformationLedger, InformationResult
from probing.instruments.likelihood.result import LEAST_PAIRS, PreferenceResult
from probing.instruments.silencing.result import SilencingResult
from probing.runs.ledger_file import RowLedger
from probing.stats import statistics
from probing.stats.statistics import FEW_FUNCTIONS, PERMUTATIONS, RESAMPLES, Found, bootstrapped, degrees_of, scored

CLIP = 0.05
"""Propensities are kept this far from 0 and 1, so that no row weighs more than 20; as in DoWhy."""

POWER = 0.8
"""With which a difference is found that is called detectable."""

PLACEBOS = 100
"""Random assignments of the placebo, as in the study."""


class Effect(NamedTuple):
    """An estimate with its 95 % interval; the bounds are NaN for fewer than FEW_FUNCTIONS functions."""

    estimate: float
    low: float
    high: float


class PairedEffect(NamedTuple):
    """The mean difference of one node type over `functions`.

    `p`: two-sided p-value of the test; `p_holm`: the same, corrected over the node types (Holm 1979) and outcomes;
    `detectable`: the mean difference that a test at 5 %, corrected for as many, finds with a probability of 80 %, NaN
    for fewer than FEW_FUNCTIONS functions.
    """

    functions: int
    effect: Effect
    p: float
    p_holm: float
    detectable: float


class Overlap(NamedTuple):
    """The degree to which confounders tell the two arms apart: the less, the better they can be adjusted for.

    `treated`, `control`: the lowest and highest propensity in each arm; `clipped`: rows outside of CLIP to 1 - CLIP;
    `effective`: how many rows the weighted arms are worth (Kish 1965), treated first; `balance`: the difference of each
    confounder's means in standard deviations, before and after weighting.
    """

    treated: tuple[float, float]
    control: tuple[float, float]
    clipped: int
    effective: tuple[float, float]
    balance: dict[str, tuple[float, float]]


class Placebo(NamedTuple):
    """Doubly robust effects of random assignments, each fitted anew: `mean` and `sd`, which should be 0 and the error.

    `covered`: the share whose interval holds 0, which should be 0.95; `p`: how often an effect as large as the
    estimate comes by chance, two-sided.
    """

    mean: float
    sd: float
    covered: float
    p: float


class UnpairedEffect(NamedTuple):
    """The plain difference of means, which confounders bias, and two estimates that adjust for them."""

    naive: Effect
    weighted: Effect
    doubly_robust: Effect
    overlap: Overlap
    placebo: Placebo


def paired(
    treated: Mapping[str, ArrayLike], control: Mapping[str, ArrayLike], *, seed: int = 0, outcomes: int = 1
) -> dict[str, PairedEffect]:
    """The effect of each node type from the scores (F,) of the same functions in both arms, in the same order.

    Types may be of different functions; the same seed gives the same intervals and p-values. `outcomes`: as many scores
    are tested of each type, which p-values are corrected for, too (Bonferroni). Raises ArgumentError for arms of
    different types or sizes, and for scores that are missing or not finite.
    """
    if set(treated) != set(control):
        one_sided = ", ".join(sorted(set(treated) ^ set(control)))
        raise ArgumentError(f"only one arm has {one_sided}: pass the scores of every node type in both")
    differences = {name: _differences(treated[name], control[name], name) for name in treated}
    found = [_paired(of_type, seed) for of_type in differences.values()]
    corrected = np.minimum(1, outcomes * statistics.holm(np.array([p for *_, p in found])))
    return {
        name: PairedEffect(*result, float(p), _detectable(of_type, outcomes * len(found)))
        for (name, of_type), result, p in zip(differences.items(), found, corrected)
    }


def _detectable(differences: np.ndarray, tests: int) -> float:
    functions = len(differences)
    if functions < FEW_FUNCTIONS:
        return np.nan
    away = stdtrit(functions - 1, (1 - 0.025 / tests, POWER)).sum()
    return float(away * differences.std(ddof=1) / np.sqrt(functions))


def _paired(differences: np.ndarray, seed: int) -> tuple[int, Effect, float]:
    functions = len(differences)
    tables, draws = (np.ones(functions), differences), statistics.drawn_functions(functions, RESAMPLES, seed)
    bounds = statistics.bootstrapped(lambda number, total: (total / number)[..., None], tables, draws)
    return functions, Effect(*bounds[:, 0].tolist()), float(statistics.paired_test(differences, PERMUTATIONS, seed))


def published(treated: ArrayLike, control: ArrayLike) -> float:
    """The effect that the study reports for scores (F,) of the same functions in both arms, in the order of its rows.

    The study matches rows by propensity, but every function is in both arms with the same confounders, so that all
    propensities are exactly 0.5, all distances tie, and the ball tree of scikit-learn returns the second function of
    the other arm for every row. What is left is half the mean difference plus half the difference of the second
    function, whichever it is: reorder the functions, and the effect is another.

    Raises ArgumentError for fewer than two functions, other sizes, and for scores that are missing or not finite.
    """
    differences = _differences(treated, control, "the published effect")
    if len(differences) < 2:
        raise ArgumentError("the published effect needs at least two functions: it depends on the second")
    return float(differences.mean() + differences[1]) / 2


def unpaired(
    scores: ArrayLike,
    treated: ArrayLike,
    confounders: Mapping[str, ArrayLike],
    *,
    placebos: int = PLACEBOS,
    seed: int = 0,
) -> UnpairedEffect:
    """The effect of being treated on `scores` (N,), where each of the N rows is in one arm.

    `treated` (N,): 1 or True for treated rows; `confounders`: name -> values (N,); `placebos`: random assignments, at
    least two. The propensity is a logistic regression with a ridge penalty of 1 on the confounders as they are, as in
    the study, and clipped to CLIP. The weighted estimate compares the means of the scores weighted by its inverse
    (Hajek); the doubly robust one corrects linear models of the scores in each arm by the weighted residuals (Robins
    et al. 1994), and is right if either the propensity or these models are. Their intervals come from influence
    functions (Lunceford and Davidian 2004), and take rows for independent: for functions that are in both arms, use
    `paired`. With little overlap, or some hundred rows, they hold less often than they say, the weighted one most of
    all (tests/benchmarks/effects.py).

    Raises ArgumentError for other sizes, values that are missing or not finite, an arm with too few rows, or without
    variation in a confounder, to fit its model, and for confounders that separate the arms, which then do not overlap.
    """
    if placebos < 2:
        raise ArgumentError(f"placebos is {placebos}, expected at least 2")
    y, t, z = _rows(scores, treated, confounders)
    design = np.column_stack([np.ones(len(y)), z])
    spread = np.where(z.std(axis=0) > 0, z.std(axis=0), 1)
    scaled = np.column_stack([np.ones(len(y)), (z - z.mean(axis=0)) / spread])
    for arm, rows in (("treated", t), ("control", ~t)):
        if np.linalg.matrix_rank(scaled[rows]) < np.linalg.matrix_rank(scaled):
            raise ArgumentError(
                f"a model of the {rows.sum()} {arm} rows cannot hold for the others: they are too few for "
                f"{z.shape[1]} confounders, or do not vary in one that varies there; leave it out, or add rows"
            )
    propensity = _propensity(design, t)
    if propensity[t].min() > propensity[~t].max():
        raise ArgumentError("the confounders separate the arms: no two rows compare, and no effect can be estimated")
    naive = y[t].mean() - y[~t].mean()
    influence = np.where(t, (y - y[t].mean()) / t.mean(), -(y - y[~t].mean()) / (~t).mean())
    doubly_robust = _doubly_robust(y, t, design, propensity)
    return UnpairedEffect(
        _wald(naive, influence),
        _weighted(y, t, design, propensity),
        doubly_robust,
        _overlap(t, z, list(confounders), propensity),
        _placebo(y, t, design, doubly_robust.estimate, placebos, seed),
    )


def _weighted(y: np.ndarray, t: np.ndarray, design: np.ndarray, propensity: np.ndarray) -> Effect:
    """The difference of weighted means; its influence is what the scores of the propensity's fit do not explain."""
    weight = _weights(t, propensity)
    one, other = (np.average(y[rows], weights=weight[rows]) for rows in (t, ~t))
    influence = weight * np.where(t, (y - one) / (weight * t).mean(), -(y - other) / (weight * ~t).mean())
    of_fit = design * (t - propensity)[:, None]
    explained = of_fit @ np.linalg.lstsq(of_fit, influence, rcond=None)[0]
    return _wald(one - other, influence - explained)


def _doubly_robust(y: np.ndarray, t: np.ndarray, design: np.ndarray, propensity: np.ndarray) -> Effect:
    """Augmented inverse propensity weighting: the mean of its influence function."""
    one, other = (design @ np.linalg.lstsq(design[rows], y[rows], rcond=None)[0] for rows in (t, ~t))
    weight = _weights(t, propensity)
    influence = one - other + weight * np.where(t, y - one, other - y)
    return _wald(influence.mean(), influence)


def _weights(t: np.ndarray, propensity: np.ndarray) -> np.ndarray:
    """The inverse of the clipped propensity of the arm in which each row is: (N,)."""
    clipped = np.clip(propensity, CLIP, 1 - CLIP)
    return 1 / np.where(t, clipped, 1 - clipped)


def _wald(estimate: float, influence: np.ndarray) -> Effect:
    if len(influence) < FEW_FUNCTIONS:
        return Effect(float(estimate), np.nan, np.nan)
    away = ndtri(0.975) * influence.std(ddof=1) / np.sqrt(len(influence))
    return Effect(float(estimate), float(estimate - away), float(estimate + away))


def _propensity(design: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The fitted probability (N,) to be treated: logistic regression with an unpenalised intercept, ridge penalty 1.

    Newton's method from zero, with half steps where a full one would not improve the fit. If both arms have the same
    confounders it stays at zero, and every probability is exactly a half.
    """
    penalty = np.append(0.0, np.ones(design.shape[1] - 1))

    def loss(coefficients: np.ndarray) -> float:
        logit = design @ coefficients
        return (np.logaddexp(0, logit) - t * logit).sum() + (penalty * coefficients**2).sum() / 2

    coefficients = np.zeros(design.shape[1])
    for _ in range(100):
        probability = 0.5 * (1 + np.tanh(design @ coefficients / 2))
        gradient = design.T @ (probability - t) + penalty * coefficients
        curvature = (design * (probability * (1 - probability))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        size, before = 1.0, loss(coefficients)
        while loss(coefficients - size * step) > before and size > 1e-6:
            size /= 2
        coefficients = coefficients - size * step
        if np.abs(gradient @ step) < 1e-16 * max(1.0, before):
            return probability
    raise ArgumentError("the propensity could not be fitted: bring the confounders to similar scales")


def _overlap(t: np.ndarray, z: np.ndarray, names: Sequence[str], propensity: np.ndarray) -> Overlap:
    weight = _weights(t, propensity)
    one, other = (float(weight[rows].sum() ** 2 / (weight[rows] ** 2).sum()) for rows in (t, ~t))
    spread = np.sqrt((z[t].var(axis=0) + z[~t].var(axis=0)) / 2)
    apart = [
        np.average(z[t], axis=0, weights=weights[t]) - np.average(z[~t], axis=0, weights=weights[~t])
        for weights in (np.ones(len(t)), weight)
    ]
    before, after = (np.divide(part, spread, out=np.zeros(len(spread)), where=spread > 0).tolist() for part in apart)
    return Overlap(
        treated=(float(propensity[t].min()), float(propensity[t].max())),
        control=(float(propensity[~t].min()), float(propensity[~t].max())),
        clipped=int(((propensity < CLIP) | (propensity > 1 - CLIP)).sum()),
        effective=(one, other),
        balance=dict(zip(names, zip(before, after))),
    )


def _placebo(y: np.ndarray, t: np.ndarray, design: np.ndarray, estimate: float, placebos: int, seed: int) -> Placebo:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(placebos):
        assigned = rng.permutation(t)
        found.append(_doubly_robust(y, assigned, design, _propensity(design, assigned)))
    effects, low, high = np.array(found).T
    return Placebo(
        mean=float(effects.mean()),
        sd=float(effects.std(ddof=1)),
        covered=float(((low <= 0) & (0 <= high)).mean()),
        p=float(1 + np.count_nonzero(np.abs(effects) >= abs(estimate))) / (1 + placebos),
    )


def _differences(treated: ArrayLike, control: ArrayLike, of: str) -> np.ndarray:
    one, other = (_numbers(scores, of) for scores in (treated, control))
    if len(one) != len(other):
        raise ArgumentError(f"{of} has {len(one)} treated and {len(other)} control scores: expected those of the same")
    if not len(one):
        raise ArgumentError(f"{of} has no scores")
    return one - other


def _rows(
    scores: ArrayLike, treated: ArrayLike, confounders: Mapping[str, ArrayLike]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores (N,), bool (N,) and confounders (N, C), checked."""
    y, t = _numbers(scores, "scores"), _numbers(treated, "treated")
    if not confounders:
        raise ArgumentError("there are no confounders to adjust for: compare the means")
    columns = {name: _numbers(values, name) for name, values in confounders.items()}
    for name, column in {"treated": t, **columns}.items():
        if len(column) != len(y):
            raise ArgumentError(f"{name} has {len(column)} values for {len(y)} scores")
    if not set(t.tolist()) <= {0.0, 1.0}:
        raise ArgumentError("treated has other values than 0 and 1")
    if len(set(t.tolist())) < 2:
        raise ArgumentError(f"all {len(y)} rows are in one arm, and the other has none to compare with")
    return y, t == 1, np.column_stack(list(columns.values()))


def _numbers(values: ArrayLike, of: str) -> np.ndarray:
    try:
        numbers = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{of}: expected numbers, got {values!r:.80}") from None
    if numbers.ndim != 1:
        raise ArgumentError(f"{of} has the shape {numbers.shape}, expected one dimension")
    if not np.isfinite(numbers).all():
        missing = int((~np.isfinite(numbers)).sum())
        raise ArgumentError(
            f"{of} has {missing} of {len(numbers)} values that are missing or not finite: leave them out"
        )
    return numbers


class SilencingEffect(NamedTuple):
    """A relation: what silencing its best head costs, in nats per sub-token, above 0 if the head helps to predict.

    `cost`: the mean over functions; `head`: layer and head; `matched`: the mean over the matched heads, of which there
    are `rivals`, and `costlier` of them cost more than the best; `difference`: of the best head to their mean;
    `together`: number of heads -> the same of the best ones together, to matched sets, corrected over relations.
    """

    cost: Effect
    matched: float
    difference: PairedEffect
    rivals: int
    costlier: int
    head: tuple[int, int]
    together: dict[int, PairedEffect]

    @property
    def few_functions(self) -> bool:
        return self.difference.functions < FEW_FUNCTIONS


def silencing_effects(result: SilencingResult) -> dict[str, SilencingEffect]:
    """Relation -> what its best head serves; the relations of which heads look best come first."""
    costs = result.costs()
    against: dict[int, dict[str, PairedEffect]] = {}
    for number in sorted({number for one in costs.values() for number in one.together}):
        both = {name: one.together[number] for name, one in costs.items() if number in one.together}
        matched = {name: matched.mean(axis=1) for name, (_, matched) in both.items()}
        against[number] = paired({name: best for name, (best, _) in both.items()}, matched)
    alone = paired({name: one.best for name, one in costs.items()}, {name: 0 * one.best for name, one in costs.items()})
    order = sorted(costs, key=lambda name: (-result.heads[name].score, name))
    return {
        name: SilencingEffect(
            cost=alone[name].effect,
            matched=result.relations[name].matched,
            difference=against[1][name],
            rivals=costs[name].matched.shape[1],
            costlier=result.relations[name].costlier,
            head=result.heads[name].best,
            together={number: of[name] for number, of in against.items() if number > 1 and name in of},
        )
        for name in order
    }


def by_chance(relations: dict[str, SilencingEffect]) -> tuple[int, float, float]:
    """The number of heads that are best for a relation; of those, the number that no matched head outdoes; and the
    number expected at random.

    A head that is best for several relations is one fact: it counts once, as the mean over these.
    """
    weight = {head: 1 / count for head, count in Counter(one.head for one in relations.values()).items()}
    most = sum(weight[one.head] for one in relations.values() if not one.costlier)
    return len(weight), most, sum(weight[one.head] / (1 + one.rivals) for one in relations.values())


MEASURED = ("best", "attention", "words", "both", "adds", "open")
"""Top-1 UAS in percent of one head and of the three choices; bits that attention adds; bits that words leave open."""


@dataclass(frozen=True)
class Usable:
    """Each of MEASURED with an interval: `relations`, name -> effects, and `mean` over those that count, None without
    any; `share`: percent of the open bits that attention adds, of the mean."""

    relations: dict[str, dict[str, Effect]]
    mean: dict[str, Effect] | None
    share: Effect | None


def usable(result: InformationResult) -> Usable:
    """The measurements of a result, with intervals."""
    names, edges, sums = by_function(result.ledger)
    counted = np.array([result.relations[name].in_mean for name in names], bool)
    relations = {}
    for column, name in enumerate(names):
        there = edges[:, column] > 0
        found = effects(edges[there, column, None], sums[there, column, None])
        relations[name] = dict(zip(MEASURED, found))
    if not counted.any():
        return Usable(relations, None, None)
    found = effects(edges[:, counted], sums[:, counted], _with_share)
    return Usable(relations, dict(zip(MEASURED, found)), found[-1])


def by_function(ledger: InformationLedger) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The R relations that have edges, their edges in each function (F, R), and the sums of MEASURED (F, R, 6)."""
    rows = ledger.rows
    adds = rows["words_bits"] - rows["both_bits"]
    hits = [100.0 * (rows[f"{name}_rank"] == 0) for name in MEASURED[:4]]
    names, sums = summed(ledger, [np.ones(len(rows)), *hits, adds, rows["words_bits"]])
    return names, sums[..., 0].astype(np.int64), sums[..., 1:]


def summed(ledger: RowLedger, columns: Sequence[np.ndarray]) -> tuple[list[str], np.ndarray]:
    """The R names of a ledger that its rows have, and the sums of n columns (N,) over the rows of each function, or
    other CLUSTER, and name: (F, R, n)."""
    _, function = np.unique(ledger.rows[ledger.CLUSTER], return_inverse=True)
    there, named = np.unique(ledger.rows[ledger.NAMED], return_inverse=True)
    sums = np.zeros((function.max() + 1, len(there), len(columns)))
    np.add.at(sums, (function, named), np.stack(columns, axis=1))
    return [ledger.names[number] for number in there], sums


def means(edges: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Of edges (..., R) and sums (..., R, n), the means over edges, and of these over relations: (..., n); relations
    without edges are left out."""
    there = edges > 0
    of_relations = np.where(there[..., None], sums / np.maximum(edges, 1)[..., None], 0).sum(axis=-2)
    return of_relations / np.maximum(there.sum(axis=-1), 1)[..., None]


def _with_share(edges: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The means of MEASURED, and at last the share of the open bits that attention adds: (..., 7)."""
    of_all = means(edges, sums)
    adds, left = of_all[..., -2], of_all[..., -1]
    share = np.divide(100 * adds, left, out=np.zeros_like(left), where=left > 0)
    return np.concatenate([of_all, share[..., None]], axis=-1)


def effects(
    edges: np.ndarray, sums: np.ndarray, estimate: Callable[[np.ndarray, np.ndarray], np.ndarray] = means
) -> list[Effect]:
    """Each mean of `estimate`, over the edges (F, R) of F functions and sums over them (F, R, n), with its interval."""
    functions = len(edges)
    draws = np.random.default_rng(0).multinomial(functions, np.full(functions, 1 / functions), RESAMPLES)
    found, low, high = bootstrapped(estimate, (edges, sums), [draws.astype(float)], degrees_of(edges))
    return [Effect(*map(float, bounds)) for bounds in zip(found, np.minimum(low, found), np.maximum(high, found))]


class Preferred(NamedTuple):
    """Percent of pairs by each of SCORES, with intervals. `groups`: by what pairs are grouped -> group -> accuracies;
    `mean`: over the phenomena that count, None without any."""

    groups: dict[str, dict[str, list[Effect]]]
    mean: list[Effect] | None


def preferred(result: PreferenceResult) -> Preferred:
    """The accuracies of a result, with intervals; none for fewer than FEW_FUNCTIONS repositories."""
    ledger = result.ledger
    columns = [np.ones(len(ledger)), *100 * ledger.preferred().T]

    def of(chosen: np.ndarray) -> list[Effect]:
        repositories, at = np.unique(ledger.rows["repository"][chosen], return_inverse=True)
        pairs, *sums = (np.bincount(at, column[chosen], len(repositories)) for column in columns)
        return accuracies(pairs, np.stack(sums, axis=1))

    groups = {by: {name: of(chosen) for name, chosen in each} for by, each in ledger.groups().items()}
    _, sums = summed(ledger, columns)
    counted = sums[..., 0].sum(axis=0) >= LEAST_PAIRS
    pairs, preferences = sums[:, counted, 0], sums[:, counted, 1:]
    return Preferred(groups, effects(pairs, preferences) if counted.any() else None)


def accuracies(pairs: np.ndarray, sums: np.ndarray) -> list[Effect]:
    """Percent with intervals, from the `pairs` (F,) of F repositories and sums of percent over them (F, n)."""
    found = Found(np.arange(len(pairs)), pairs, sums.T / 100, np.arange(sums.shape[1]))
    bounds, _ = scored(found, pairs[:, None])
    if len(pairs) < FEW_FUNCTIONS:
        bounds[1:] = np.nan
    return [Effect(*map(float, 100 * of)) for of in bounds.T]
