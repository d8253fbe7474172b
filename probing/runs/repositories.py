"""The repositories and near copies of functions, from the data of a result, as clusters of its
intervals and tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from codesyntax_dataset.errors import DatasetError, LedgerError, UnknownName
from codesyntax_dataset.twins import COLUMN as TWIN
from probing.runs.clusters import (
    CLUSTERS,
    FUNCTION,
    LEAST_REPOSITORIES,
    REPOSITORY,
    Clusters,
    reading,
    units_of,
)
from probing.runs.data import find_split, labels_read, load_functions

COLUMN = "repo"
"""Of a dataset: the repository of each function."""

LEAST = 2
"""Repositories without which nothing shows how much they vary."""


@contextmanager
def clustered_by(unit: str | None, data: Any = None) -> Iterator[None]:
    """Take intervals and tests of what is read within this block over clusters of this kind; None:
    of each result over repositories, if it has enough, or else over functions.

    `data`: the location of the dataset, if not the one in the results. Raises UnknownName unless
    `unit` is one of CLUSTERS.
    """
    if unit is not None and unit not in CLUSTERS:
        raise UnknownName("cluster", unit, CLUSTERS)
    now = reading.get()
    if not isinstance(now, _RepositoriesRead) or now.unit != unit or now.data is not data:
        now = _RepositoriesRead(unit, data)
    before = reading.set(now)
    try:
        yield
    finally:
        reading.reset(before)


class _RepositoriesRead:
    """`probing.runs.clusters.Reading` of the data of results; arguments as of `clustered_by`."""

    def __init__(self, unit: str | None, data: Any):
        self.unit, self.data = unit, data
        self.found: set[str] = set()
        self._tables: dict[tuple[str, ...], pa.Table] = {}

    def __call__(self, file: Path, settings: Any, functions: np.ndarray) -> Clusters | None:
        """Raises DatasetError and LedgerError where repositories are asked for, and the data do not
        tell them, or those of `functions` are fewer than LEAST."""
        clusters = self._clusters(file, settings, functions)
        self.found.add(units_of(clusters))
        return clusters

    def _clusters(self, file: Path, settings: Any, functions: np.ndarray) -> Clusters | None:
        try:
            table = self._table(file, settings)
        except (DatasetError, LedgerError):
            if self.unit == REPOSITORY:
                raise
            return None
        if self.unit == REPOSITORY:
            _check_repositories(table, file, settings, functions)
        return clusters_of(table, functions, self.unit)

    def _table(self, file: Path, settings: Any) -> pa.Table:
        """The columns that tell clusters."""
        names = "data", "config", "split", "labels"
        key = tuple(getattr(settings, name) for name in names)
        if key not in self._tables:
            table = find_split(file, settings) if self.data is None else self._given(file, settings)
            there = [name for name in (COLUMN, TWIN) if name in table.column_names]
            self._tables[key] = table.select(there)
        return self._tables[key]

    def _given(self, file: Path, settings: Any) -> pa.Table:
        table, _ = load_functions(self.data, settings.config, settings.split)
        if (labels := labels_read(table, settings)) != settings.labels:
            raise LedgerError(
                f"{file} is of the labels {settings.labels}, but the data have {labels}: name its own --data"
            )
        return table


def _check_repositories(table: pa.Table, file: Path, settings: Any, functions: np.ndarray) -> None:
    """Raise DatasetError if the data do not say of which repository a function is, and LedgerError
    if `functions` are of fewer than LEAST."""
    if COLUMN not in table.column_names:
        raise DatasetError(
            f"{settings.data}/{settings.config} does not say of which repository a function is: expected a column "
            f"`{COLUMN}`, as `codesyntax build` writes it; or take intervals over functions, with --cluster function"
        )
    known = sorted(set(table[COLUMN].take(pa.array(np.unique(functions))).to_pylist()))
    if len(known) < LEAST:
        raise LedgerError(
            f"all functions of {file} are of the repository {known[0]}, and intervals over repositories need at "
            f"least {LEAST}: run it on functions of several, or take intervals over functions, with --cluster function"
        )


def clusters_of(table: pa.Table, functions: np.ndarray, unit: str | None = None) -> Clusters | None:
    """The clusters of a split.

    `table`: its rows; `functions`: those that are scored, by their places; `unit`: one of CLUSTERS,
    by default repositories, if those of `functions` are at least LEAST_REPOSITORIES. None if each
    function is one, since the data do not say which are near copies.
    """
    repositories = _numbers(table, COLUMN)
    if unit is None:
        known = 0 if repositories is None else len(np.unique(repositories[functions]))
        unit = REPOSITORY if known >= LEAST_REPOSITORIES else FUNCTION
    number = repositories if unit == REPOSITORY else _numbers(table, TWIN)
    return None if number is None else Clusters(unit, number)


def _numbers(table: pa.Table, column: str) -> np.ndarray | None:
    """The number of each of the different values of a column, in order, (split,); None without
    it."""
    if column not in table.column_names:
        return None
    values = np.array(table[column].to_pylist(), object).astype(str)
    return np.unique(values, return_inverse=True)[1]
