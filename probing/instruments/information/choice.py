"""A log-linear choice among candidates: conditional logit (McFadden 1974) with an L2 penalty.

The probability of candidate j in choice i is proportional to exp(w . f(i, j)). Where only some
candidates of a choice are kept, those drawn at random stand for all that might have been drawn:
each has the logarithm of how many as an offset in its score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from codesyntax_dataset.one_thread import one_thread

CLOSE, ROUGH = 3e-8, 1e-4
"""The largest slope of the mean loss at the end of a fit, and of one that only chooses."""

_REMEMBERED = 50
"""The steps by which L-BFGS knows how the slope changes."""


@dataclass(frozen=True)
class Choices:
    """E choices among P candidates in all, those of a choice in a row.

    `begin` (E,): the first candidate of each choice; `chosen` (E,): the right one. Features are
    indicators, of which each candidate has those in `codes` (K, P), numbers below `indicators`; and
    `values` (P, D). `offset` (P,): added to the scores.
    """

    begin: np.ndarray
    chosen: np.ndarray
    codes: np.ndarray
    indicators: int
    values: np.ndarray
    offset: np.ndarray

    @property
    def features(self) -> int:
        return self.indicators + self.values.shape[1]

    @cached_property
    def choice(self) -> np.ndarray:
        """The choice of each candidate: (P,)."""
        return np.repeat(np.arange(len(self.begin)), np.diff(self.begin, append=len(self.offset)))

    @cached_property
    def indicated(self) -> csr_array:
        """The indicators as a sparse matrix (P, indicators)."""
        of_each = self.codes.T.ravel()
        codes, candidates = self.codes.shape
        ends = codes * np.arange(candidates + 1)
        return csr_array(
            (np.ones(len(of_each), self.values.dtype), of_each, ends), (candidates, self.indicators)
        )

    @classmethod
    def joined(cls, parts: Sequence[Choices]) -> Choices:
        ends = np.cumsum([0, *(len(part.offset) for part in parts)])
        places = {
            name: np.concatenate([getattr(part, name) + end for part, end in zip(parts, ends)])
            for name in ("begin", "chosen")
        }
        rows = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("values", "offset")
        }
        codes = np.concatenate([part.codes for part in parts], axis=1)
        return cls(**places, **rows, codes=codes, indicators=parts[0].indicators)

    def take(self, choices: np.ndarray) -> Self:
        """Some of the choices, by a mask (E,)."""
        return self.keep(choices[self.choice], choices)

    def keep(self, candidates: np.ndarray, choices: np.ndarray) -> Self:
        """Some of the candidates, by a mask (P,) that has the right ones of the kept `choices`
        (E,)."""
        last = np.cumsum(candidates) - 1
        begin = np.flatnonzero(np.diff(self.choice[candidates], prepend=-1))
        rows = {name: getattr(self, name)[candidates] for name in ("values", "offset")}
        codes = np.ascontiguousarray(self.codes[:, candidates])
        return replace(self, begin=begin, chosen=last[self.chosen[choices]], codes=codes, **rows)

    def prefix(self, rows: int, indicators: int) -> Self:
        """The same with the first rows of `codes` alone, which have so many indicators."""
        return replace(self, codes=self.codes[:rows], indicators=indicators)

    def of_type(self, dtype: type) -> Self:
        """The same with values of this type: single precision chooses a penalty as well, in half
        the time."""
        return replace(self, values=self.values.astype(dtype, copy=False))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """(P,), of weights (features,)."""
        weights = weights.astype(self.values.dtype)
        return (
            self.values @ weights[self.indicators :]
            + self.indicated @ weights[: self.indicators]
            + self.offset
        )

    def nats(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log-loss of each choice (E,), and the probability of each candidate (P,)."""
        top = np.maximum.reduceat(scores, self.begin)
        likely = np.exp(scores - top[self.choice])
        total = np.add.reduceat(likely, self.begin)
        return np.log(total) + top - scores[self.chosen], likely / total[self.choice]

    def losses(self, weights: np.ndarray) -> np.ndarray:
        """The log-loss of each choice, in nats: (E,)."""
        return self.nats(self.scores(weights))[0]

    def penalized(
        self, weights: np.ndarray, penalty: float, centre: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The sum of log-losses plus half the `penalty` on squared distances from `centre`, by
        choice; its gradient."""
        losses, residual = self.nats(self.scores(weights))
        residual[self.chosen] -= 1
        away = weights - centre
        of_weights = penalty * away
        edges = len(self.begin)
        return (losses.sum() + of_weights @ away / 2) / edges, (
            self.slope(residual) + of_weights
        ) / edges

    def slope(self, residual: np.ndarray) -> np.ndarray:
        """The features summed over candidates, each times its `residual` (P,): (features,)."""
        residual = residual.astype(self.values.dtype)
        return np.concatenate([self.indicated.T @ residual, residual @ self.values])


def fit(
    choices: Choices,
    penalty: float,
    centre: np.ndarray,
    start: np.ndarray | None = None,
    close: float = CLOSE,
) -> np.ndarray:
    """The weights (features,) of least penalized loss, by L-BFGS in double precision, from those of
    `start`.

    `centre` (features,): the weights without any choices.
    """
    if not len(choices.begin):
        return centre
    options = {"gtol": close, "ftol": 0, "maxcor": _REMEMBERED, "maxiter": 10**4, "maxfun": 10**5}
    start = centre if start is None else start
    with one_thread():
        return minimize(
            choices.penalized, start, (penalty, centre), "L-BFGS-B", jac=True, options=options
        ).x


class OverFolds(NamedTuple):
    """A chosen `penalty`; for each fold the weights (features,) fitted on the others, and the
    losses (E,) by these."""

    penalty: float
    of_folds: list[np.ndarray]
    unseen: np.ndarray

    def fit(self, choices: Choices, centre: np.ndarray) -> np.ndarray:
        """The weights (features,) fitted on all choices."""
        start = np.mean(self.of_folds, axis=0)
        return fit(choices.of_type(np.float64), self.penalty, centre, start)


def fit_over_folds(
    choices: Choices, fold: np.ndarray, penalties: Sequence[float], centres: Sequence[np.ndarray]
) -> OverFolds:
    """The fits with the penalty of least loss on unseen folds, from the strongest on until the loss
    of a fold rises.

    `fold`: that of each choice (E,); `centres`: weights for each fold, from which distances count.
    """
    of_folds = list(centres)
    single = choices.of_type(np.float32)
    seen = [single.take(fold != number) for number in range(len(of_folds))]
    best = None
    for penalty in penalties:
        of_folds = [
            fit(part, penalty, centre, start, ROUGH)
            for part, centre, start in zip(seen, centres, of_folds)
        ]
        losses = out_of_fold(fold, [single.losses(weights) for weights in of_folds])
        if best is not None and (np.bincount(fold, losses - best.unseen) > 0).any():
            break
        best = OverFolds(penalty, of_folds, losses)
    assert best is not None, "at least one penalty"
    return best


def out_of_fold(index: np.ndarray, of_folds: Sequence[np.ndarray]) -> np.ndarray:
    """Of each row (N,) the value by the fit without its fold: `index` (N,) is that fold, `of_folds`
    each (N,)."""
    return np.stack(of_folds)[index, np.arange(len(index))]
