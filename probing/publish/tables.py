"""The tables of a board, whatever their entries are about: which rows stand in them, and their ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.languages import CONFIGS
from probing.evidence.entry import Entry, Scores
from probing.evidence.statistics import holm

ALPHA = 0.05
"""The family-wise error rate of a table: the probability of separating any two equal models, for each of its ranks."""


class LeftOut(NamedTuple):
    """A file that is not a row of the board, and the reason."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class BoardRow:
    """An entry, the name of its table, and what follows from it."""

    file: str
    entry: Entry
    table: str
    scores: Scores

    @property
    def model(self) -> str:
        return str(self.entry.settings.model)

    @property
    def revision(self) -> str:
        return str(self.entry.settings.revision)

    @property
    def family(self) -> str:
        """The architecture (`model_type` in its configuration)."""
        return str(self.entry.run.family)

    @property
    def verified(self) -> tuple[int, int] | None:
        """How many functions were run again before it was sent, and of how many, according to the entry."""
        verified = self.entry.verified
        return (verified.functions, verified.of) if verified else None


@dataclass(frozen=True, eq=False)
class BoardTable:
    """Comparable rows, sorted by model. `ranks`: of each row, its measures -> the first and the last possible rank, or
    None without a score."""

    name: str
    rows: list[BoardRow]
    ranks: list[dict[Any, tuple[int, int] | None]]

    @property
    def instrument(self) -> str:
        return self.rows[0].entry.instrument

    @property
    def settings(self) -> Any:
        """The settings of the first row; all rows agree in those that are not of the model."""
        return self.rows[0].entry.settings

    @property
    def shared(self) -> dict[str, str]:
        return self.rows[0].entry.shared


def rows_of(entries: Iterable[tuple[str, Entry]]) -> list[BoardRow]:
    """The rows of entries, each with its file."""
    rows: list[BoardRow] = []
    first: dict[str, Scores] = {}
    for file, entry in entries:
        table = entry.table
        scores = entry.scores(first.get(table))
        rows.append(BoardRow(file, entry, table, scores))
        first.setdefault(table, scores)
    return rows


def group(rows: Iterable[BoardRow]) -> tuple[list[BoardTable], list[LeftOut]]:
    """The tables of `rows`, the largest of a config first; and the duplicates.

    Of several entries for one model and revision in a table, the one with the lowest headline is kept.
    """
    by_table: dict[str, list[BoardRow]] = {}
    for row in rows:
        by_table.setdefault(row.table, []).append(row)
    tables, duplicates = [], []
    for name, of_table in by_table.items():
        by_model: dict[tuple[str, str], BoardRow] = {}
        for row in sorted(of_table, key=lambda row: (row.scores.headline, row.file)):
            kept = by_model.setdefault((row.model.lower(), row.revision), row)  # the Hub ignores the case of names
            if kept is not row:
                reason = f"the same model and revision as {kept.file}, which scores no higher"
                duplicates.append(LeftOut(row.file, reason))
        kept_rows = sorted(by_model.values(), key=lambda row: (row.model.casefold(), row.entry.signature))
        tables.append(BoardTable(name, kept_rows, _ranks_of(kept_rows)))
    configs = list(CONFIGS)
    tables.sort(
        key=lambda table: (table.instrument, configs.index(table.settings.config), -len(table.rows), table.name)
    )
    return tables, duplicates


def _ranks_of(rows: list[BoardRow]) -> list[dict[Any, tuple[int, int] | None]]:
    measures = list(rows[0].scores.cells)
    ranked = [ranks(np.stack([row.scores.shares[place] for row in rows])) for place in range(len(measures))]
    return [
        {measure: rank if row.scores.cells[measure] else None for measure, rank in zip(measures, of_row)}
        for row, of_row in zip(rows, zip(*ranked))
    ]


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
