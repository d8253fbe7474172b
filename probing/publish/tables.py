"""What the tables of a board share, whatever their entries are about: which rows stand in them, and their ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from probing.evidence.statistics import holm

ALPHA = 0.05
"""The family-wise error rate of a table: the probability of separating any two equal models, for each of its ranks."""


class LeftOut(NamedTuple):
    """A file that is not a row of the board, and the reason."""

    file: str
    reason: str


class Ranked(Protocol):
    """A row. `key`: equal for the rows of one table."""

    @property
    def file(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def signature(self) -> str: ...

    @property
    def settings(self) -> Any: ...


Row = TypeVar("Row", bound=Ranked)


def by_table(rows: Iterable[Row], lowest_first: Callable[[Row], Any]) -> tuple[dict[str, list[Row]], list[LeftOut]]:
    """The rows of each table by its key, sorted by model, and the duplicates.

    `lowest_first`: the sort key of rows for the same model and revision in a table, of which the first is kept.
    """
    by_key: dict[str, dict[tuple[str, str], Row]] = {}
    twice = []
    for row in sorted(rows, key=lowest_first):
        by_model = by_key.setdefault(row.key, {})
        model = row.model.lower(), row.settings.revision  # the Hub ignores the case of names
        if model in by_model:
            reason = f"the same model and revision as {by_model[model].file}, which scores no higher"
            twice.append(LeftOut(row.file, reason))
        else:
            by_model[model] = row
    in_order = {
        key: sorted(by_model.values(), key=lambda row: (row.model.casefold(), row.signature))
        for key, by_model in by_key.items()
    }
    return in_order, twice


def ranks(shares: np.ndarray) -> list[tuple[int, int]]:
    """The first and the last possible rank of each of n models, from each function's contribution to its score (n, F).

    Two models differ if p is at most ALPHA in a test that exchanges them at random in each
    function, corrected for the number of pairs (Holm 1979). Here p is not counted but bounded from above, for any
    number of functions: a sum of terms with random signs exceeds z standard deviations at most 1 / (4 P(N > sqrt 2)) =
    3.178 times as often as the normal N (Bentkus and Dzindzalieta 2015, Bernoulli 21, theorem 1.1).

    >>> ranks(np.array([[3.0] * 20, [5.0] * 20, [3.0] * 19 + [4.0]]))
    [(2, 3), (1, 1), (2, 3)]
    """
    shares = shares.astype(np.float64)
    number, functions = shares.shape
    score = shares.sum(axis=1)
    one, other = np.triu_indices(number, 1)
    gained = score[one] - score[other]
    products = shares @ shares.T
    squares = products.diagonal()[one] + products.diagonal()[other] - 2 * products[one, other]
    squares = np.maximum(squares, gained**2 / functions)  # the lower bound, which rounding may violate
    z = np.divide(np.abs(gained), np.sqrt(squares), out=np.zeros(len(gained)), where=np.abs(gained) > 1e-4)
    separate = holm(np.minimum(1, 2 * _BOUND * _above(z))) <= ALPHA
    before, behind = (np.where(gained > 0, *pair)[separate] for pair in ((one, other), (other, one)))
    first = 1 + np.bincount(behind, minlength=number)
    last = number - np.bincount(before, minlength=number)
    return list(zip(first.tolist(), last.tolist()))


def _above(z: np.ndarray) -> np.ndarray:
    return np.array([_NORMAL.cdf(-value) for value in z.tolist()])


_NORMAL = NormalDist()
_BOUND = 1 / (4 * _NORMAL.cdf(-(2**0.5)))
