"""Effects: of masking the nodes of a type on a score, of silencing the best head of a relation, of attention beside
words and positions; and accuracies on minimal pairs.

*Masking.* T1, where the nodes are masked, against T0, where as many sub-tokens are at random. Every function has both
scores, so that the effect is the mean difference T1 - T0, in the unit of the scores: whatever belongs to the function
is the same in both arms and cannot confound. The interval is a BCa bootstrap over functions, the test is the paired one
of `probing.stats.statistics`, and p-values are corrected over node types.

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
from scipy.special import stdtrit

from codesyntax_dataset.errors import ArgumentError
from probing.instruments.information.result import InformationLedger, InformationResult
from probing.instruments.likelihood.result import LEAST_PAIRS, PreferenceResult
from probing.instruments.silencing.result import SilencingResult
from probing.runs.ledger_file import RowLedger
from probing.stats import statistics
from probing.stats.statistics import FEW_FUNCTIONS, PERMUTATIONS, RESAMPLES, Found, bootstrapped, degrees_of, scored

POWER = 0.8
"""With which a difference is found that is called detectable."""


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


def _differences(treated: ArrayLike, control: ArrayLike, of: str) -> np.ndarray:
    one, other = (_numbers(scores, of) for scores in (treated, control))
    if len(one) != len(other):
        raise ArgumentError(f"{of} has {len(one)} treated and {len(other)} control scores: expected those of the same")
    if not len(one):
        raise ArgumentError(f"{of} has no scores")
    return one - other


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
