"""The tables of a board, whatever their entries are about: which rows stand in them, and their ranks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.tasks import RESTORED, RULE, TASK_PROTOCOLS, K
from probing.evidence.entry import Entry, Scores
from probing.evidence.statistics import holm

ALPHA = 0.05
"""The family-wise error rate of a table: the probability of separating any two equal models, for each of its ranks."""


OTHER_BASELINES = "it claimed other baselines"
CONFLICT = "in conflict with another entry"

_LOOK_ALIKE = str.maketrans("0135i", "olesl")


class LeftOut(NamedTuple):
    """A file that is not a row of the board, and the reason."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class BoardRow:
    """An entry, the name of its table, and what follows from it.

    `verified`: how many functions this board ran again, and of how many; None: its numbers are claimed. `remarks`: what
    a reader should know before believing them.
    """

    file: str
    entry: Entry
    table: str
    scores: Scores
    verified: tuple[int, int] | None = None
    remarks: tuple[str, ...] = ()

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
    def identity(self) -> tuple[str, str]:
        """Model and revision; the Hub ignores the case of names."""
        return self.model.casefold(), self.revision

    def remarked(self, remarks: Iterable[str]) -> BoardRow:
        return replace(self, remarks=(*self.remarks, *remarks))


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


def rows_of(entries: Iterable[tuple[str, Entry]], verified: Mapping[str, tuple[int, int]] = {}) -> list[BoardRow]:
    """The rows of entries, each with its file; `verified`: file -> what this board ran again.

    All rows of a table have the same baselines: those of entries that this board verified or, without any, those that
    most entries have.
    """
    by_table: dict[str, list[tuple[str, Entry]]] = {}
    for file, entry in sorted(entries, key=lambda one: one[0]):
        by_table.setdefault(entry.table, []).append((file, entry))
    rows: list[BoardRow] = []
    for table, of_table in by_table.items():
        checked = [entry.baselines() for file, entry in of_table if file in verified]
        ((common, _),) = Counter(checked or [entry.baselines() for _, entry in of_table]).most_common(1)
        of_table.sort(key=lambda one: one[1].baselines() != common)  # the first has the baselines of the others
        first: Scores | None = None
        for file, entry in of_table:
            other = entry.baselines() != common
            scores = (entry.beside(of_table[0][1]) if other else entry).scores(first)
            first = first or scores
            row = BoardRow(file, entry, table, scores, verified.get(file))
            rows.append(row.remarked([OTHER_BASELINES] if other else []))
    return rows


def group(rows: Iterable[BoardRow]) -> tuple[list[BoardTable], list[LeftOut]]:
    """The tables of `rows`, the largest of a config first; and the rows that stand in none.

    Of several entries for one model and revision in a table, those that this board verified count, otherwise all; where
    their numbers differ, all stand there, with a remark.
    """
    by_table: dict[str, list[BoardRow]] = {}
    for row in suspicious(list(rows)):
        by_table.setdefault(row.table, []).append(row)
    tables: list[BoardTable] = []
    left_out: list[LeftOut] = []
    for name, of_table in by_table.items():
        by_model: dict[tuple[str, str], list[BoardRow]] = {}
        for row in sorted(of_table, key=lambda row: row.file):
            by_model.setdefault(row.identity, []).append(row)
        kept = [row for of_model in by_model.values() for row in _kept(of_model, left_out)]
        kept.sort(key=lambda row: (row.model.casefold(), row.entry.signature, row.file))
        tables.append(BoardTable(name, kept, _ranks_of(kept)))
    configs = list(CONFIGS)
    tables.sort(
        key=lambda table: (table.instrument, configs.index(table.settings.config), -len(table.rows), table.name)
    )
    return tables, left_out


def _kept(rows: list[BoardRow], left_out: list[LeftOut]) -> list[BoardRow]:
    """Those rows of one model and revision that a table shows."""
    checked = [row for row in rows if row.verified]
    for row in rows:
        if checked and not row.verified:
            why = f"the same model and revision as {checked[0].file}, which this board verified"
            left_out.append(LeftOut(row.file, why))
    numbers: dict[str, BoardRow] = {}
    for row in checked or rows:
        first = numbers.setdefault(row.entry.numbers(), row)
        if first is not row:
            why = f"the same model, revision and numbers as {first.file}"
            left_out.append(LeftOut(row.file, why))
    if len(numbers) == 1:
        return [*numbers.values()]
    return [row.remarked([CONFLICT]) for row in numbers.values()]


def task_values(scores: Scores) -> list[float]:
    """The numbers of an entry that are results of the Hub's tasks."""
    measures = [*((mean, RULE, K) for mean in TASK_PROTOCOLS), RESTORED]
    return [score.mean.value for measure in measures if (score := scores.cells.get(measure))]


def suspicious(rows: list[BoardRow]) -> list[BoardRow]:
    """The same rows; those that may be of another model than they say have remarks."""
    by_ledger, by_numbers, by_name = (defaultdict[str, set[str]](set) for _ in range(3))
    for row in rows:
        by_name[folded(row.model)].add(row.model.casefold())
        by_numbers[row.table + row.entry.numbers()].add(row.model.casefold())
        for digest in row.entry.digests.values():
            by_ledger[digest].add(row.model.casefold())
    found = []
    for row in rows:
        of_ledgers = set.union(*(by_ledger[digest] for digest in row.entry.digests.values()))
        alike = (
            ("the ledger", of_ledgers),
            ("the numbers", by_numbers[row.table + row.entry.numbers()]),
            ("a name like that", by_name[folded(row.model)]),
        )
        remarks = [(what, sorted(names - {row.model.casefold()})) for what, names in alike]
        found.append(row.remarked(f"{what} of {_first(names)}" for what, names in remarks if names))
    return found


def _first(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def folded(name: str) -> str:
    """A name as a reader in a hurry sees it.

    >>> folded("Micros0ft/code-BERT") == folded("rnicrosoft/CodeBert")
    True
    """
    return re.sub(r"[-_.]", "", name.casefold()).translate(_LOOK_ALIKE).replace("rn", "m").replace("vv", "w")


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
    separate = holm(np.minimum(1, 2 * _BOUND * ndtr(-z))) <= ALPHA
    before, behind = (np.where(gained > 0, *pair)[separate] for pair in ((one, other), (other, one)))
    first = 1 + np.bincount(behind, minlength=number)
    last = number - np.bincount(before, minlength=number)
    return list(zip(first.tolist(), last.tolist()))


_BOUND = 1 / (4 * ndtr(-(2**0.5)))
