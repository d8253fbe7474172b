"""Mechanism beside outcome: what the best heads of a model find of a syntax, and what masking this syntax costs it.

A node type and the relations of the same syntax (`Language.syntax`) are a pair. The rank correlation over pairs
(Spearman 1904) says whether the heads' held-out scores and the losses of masking come in the same order. A few pairs
may do so for many reasons, such as how frequent or how local a syntax is; the same correlation with the scores of the
best baseline, which has no model, therefore stands beside it.

Both sides are restricted to the functions that both have. Intervals are 95 % intervals from a BCa bootstrap over these
functions, drawn for both sides together. Heads and pairs stay the same: nothing is said about other pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas

from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT
from probing.evidence.effect import Effect
from probing.evidence.gather import Evidence
from probing.evidence.masked import MaskedType
from probing.evidence.outcomes import Outcomes
from probing.evidence.statistics import FEW_FUNCTIONS, RESAMPLES, bca
from probing.evidence.uncertainty import mean_of
from probing.prediction.result import MaskSettings
from probing.runs.data import find_data, label_digest, load_functions
from probing.runs.settings import Settings

SIMILARITY = "jaccard"
"""The similarity of trees whose effect is compared."""

LEAST = 5
"""Pairs from which a correlation is computed."""


class OneGuess(NamedTuple):
    """What one guess finds, held-out, rule first, in F functions, of R relations.

    `functions` (F,): places in the split, ascending; `edges`, and those that the best `heads` and the best `baseline`
    find: (F, R).
    """

    relations: list[str]
    functions: np.ndarray
    edges: np.ndarray
    heads: np.ndarray
    baseline: np.ndarray


class Pair(NamedTuple):
    """A node type and those of its relations that have a held-out score, on the functions that both sides have.

    `heads`, `baseline`: the mean of the relations' scores, in percent; `effect`: the mean of T1 - T0; `restored`: in
    T1, in percent. `probed`, `masked`: the number of functions with an edge, and with a node.
    """

    node_type: str
    relations: list[str]
    probed: int
    masked: int
    heads: float
    baseline: float
    effect: float
    restored: float

    @property
    def few_functions(self) -> bool:
        """Whether it is in no correlation, because a side is in fewer than FEW_FUNCTIONS functions."""
        return min(self.probed, self.masked) < FEW_FUNCTIONS


class Correlations(NamedTuple):
    """Rank correlations of an outcome with the scores of the best heads and of the best baseline, and the difference of
    the two; NaN where all scores or outcomes are equal."""

    heads: Effect
    baseline: Effect
    difference: Effect


class Mechanism(NamedTuple):
    """The pairs of a model, those that masking costs most first.

    `functions`: that both sides have; `only_probed`, `only_masked`: that one of them has. `correlations`: `effect` and
    `restored` -> over the pairs that are not in few functions; empty if these are fewer than LEAST.
    """

    functions: int
    only_probed: int
    only_masked: int
    pairs: list[Pair]
    correlations: dict[str, Correlations]

    @property
    def counted(self) -> list[Pair]:
        """Those over which the correlations are."""
        return [pair for pair in self.pairs if not pair.few_functions]


def one_guess(evidence: Evidence) -> OneGuess:
    """What the heads of a model and the best baseline find, both chosen on validation."""
    heads = evidence.outcomes[HELD_OUT]
    baseline = evidence.baselines.outcomes[HELD_OUT][BEST_BASELINE].only(heads.relations)
    return OneGuess(heads.relations, heads.functions, heads.edges, _hits(heads), _hits(baseline))


def unlike(probed: Settings, file: Any, masked: MaskSettings, data: Any = None) -> str:
    """Why a probe and a masking run did not read the same functions; empty if they did.

    `file`: the result of the probe; `data`: the location of the dataset, if not the one in that result. One of the two
    may be of the first functions only. Raises DataNotFound if it is, and the data are not found.
    """
    if probed.data != masked.data:
        return f"attention was probed on {probed.data}, and the masked functions are of {masked.data}"
    labels = probed.labels
    if probed.limit != masked.limit:
        place = find_data(file, probed) if data is None else data
        labels = label_digest(load_functions(place, masked.config, masked.split)[0], masked.limit)
    if labels != masked.labels:
        return f"the functions that were probed have the labels {labels}, and those that were masked {masked.labels}"
    return ""


def beside(
    guessed: OneGuess, node_types: Mapping[str, MaskedType], syntax: Mapping[str, Sequence[str]], *, seed: int = 0
) -> Mechanism:
    """What the heads of a model find, beside what masking costs it. `syntax`: node type -> relations of the same."""
    masked = reduce(np.union1d, (one.places for one in node_types.values()), np.array([], int))
    functions = np.intersect1d(guessed.functions, masked)
    tables = [_table(guessed, node_types[name], functions, name, syntax[name]) for name in syntax if name in node_types]
    tables = [table for table in tables if table.edges.any() and table.masked.any()]
    pairs = [_pair(table) for table in tables]
    kept = [table for table, pair in zip(tables, pairs) if not pair.few_functions]
    only_probed, only_masked = (len(side) - len(functions) for side in (guessed.functions, masked))
    return Mechanism(
        functions=len(functions),
        only_probed=only_probed,
        only_masked=only_masked,
        pairs=sorted(pairs, key=lambda pair: (pair.effect, pair.node_type)),
        correlations=_correlations(kept, seed) if len(kept) >= LEAST else {},
    )


class _Table(NamedTuple):
    """A pair by function: `edges`, `heads` and `baseline` (F, R), and `masked` (F, 3): whether it has nodes, and then
    T1 - T0, and the percentage restored in T1."""

    node_type: str
    relations: list[str]
    edges: np.ndarray
    heads: np.ndarray
    baseline: np.ndarray
    masked: np.ndarray


def _table(guessed: OneGuess, one: MaskedType, functions: np.ndarray, name: str, same: Sequence[str]) -> _Table:
    probed = np.isin(guessed.functions, functions)
    columns = [
        guessed.relations.index(relation)
        for relation in same
        if relation in guessed.relations and guessed.edges[probed, guessed.relations.index(relation)].any()
    ]
    shared = np.isin(one.places, functions)
    t1, t0 = one.arms[SIMILARITY][:, shared]
    masked = np.zeros((len(functions), 3))
    masked[np.searchsorted(functions, one.places[shared])] = np.stack(
        [np.ones(len(t1)), t1 - t0, 100 * one.arms["restored"][0, shared]], axis=1
    )
    edges, heads, baseline = (
        part[probed][:, columns].astype(float) for part in (guessed.edges, guessed.heads, guessed.baseline)
    )
    return _Table(name, [guessed.relations[column] for column in columns], edges, heads, baseline, masked)


def _pair(table: _Table) -> Pair:
    probed, masked = (int(with_any.sum()) for with_any in (table.edges.any(axis=1), table.masked[:, 0]))
    heads, baseline, effect, restored = _numbers([table], lambda columns: columns.sum(axis=0)[None]).ravel().tolist()
    return Pair(table.node_type, table.relations, probed, masked, heads, baseline, effect, restored)


def _numbers(tables: Sequence[_Table], summed: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The scores of heads and baseline, the effect, and what is restored, of each of P pairs: (4, n, P).

    `summed`: from columns (F, C) to n sums over functions (n, C). NaN where those have no edge, or no node.
    """
    numbers = []
    for table in tables:
        edges, heads, baseline, masked = map(summed, (table.edges, table.heads, table.baseline, table.masked))
        nodes, *losses = masked.T
        means = [np.divide(loss, nodes, out=np.full(len(nodes), np.nan), where=nodes > 0) for loss in losses]
        numbers.append([mean_of(heads, edges), mean_of(baseline, edges), *means])
    return np.array(numbers).transpose(1, 2, 0)


def _correlations(tables: Sequence[_Table], seed: int) -> dict[str, Correlations]:
    functions = len(tables[0].masked)
    rng = np.random.default_rng(seed)
    weight = rng.multinomial(functions, np.full(functions, 1 / functions), RESAMPLES).astype(float)  # (B, F)
    estimates, resampled, left_out = (
        _correlated(_numbers(tables, summed))
        for summed in (
            lambda columns: columns.sum(axis=0)[None],
            lambda columns: weight @ columns,
            lambda columns: columns.sum(axis=0) - columns,
        )
    )
    (score,) = estimates
    low, high = bca(score, resampled, left_out)
    bounds = np.where(np.isnan(score), np.nan, [np.fmin(low, score), np.fmax(high, score)])
    effects = [Effect(*numbers) for numbers in np.stack([score, *bounds], axis=1).tolist()]
    return {"effect": Correlations(*effects[:3]), "restored": Correlations(*effects[3:])}


def _correlated(numbers: np.ndarray) -> np.ndarray:
    """The six correlations (n, 6) of `_numbers`: effect, then restored, with heads, with baseline, and the
    difference."""
    heads, baseline, *losses = numbers
    both = [(rank_correlation(heads, loss), rank_correlation(baseline, loss)) for loss in losses]
    return np.stack([column for one, other in both for column in (one, other, one - other)], axis=1)


def rank_correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's, of each row of two (n, P), over the places where both have numbers; equal numbers share their mean
    rank. NaN if one of them has nothing but equal numbers."""
    known = np.isfinite(one) & np.isfinite(other)
    # sums of other functions may differ in their last digits
    ranks = [pandas.DataFrame(np.where(known, values.round(9), np.nan)).rank(axis=1) for values in (one, other)]
    return ranks[0].corrwith(ranks[1], axis=1).to_numpy()


def _hits(outcomes: Outcomes) -> np.ndarray:
    return outcomes.at(["first"], [1]).hits[0, 0]
