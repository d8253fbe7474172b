"""The repositories of functions, from the data of a result, as clusters of its intervals and
tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.errors import DatasetError, LedgerError, UnknownName
from probing.runs.clusters import CLUSTERS, REPOSITORY, read_repositories
from probing.runs.data import find_data, labels_read, load_functions

COLUMN = "repo"
"""Of a dataset: the repository of each function."""

LEAST = 2
"""Repositories without which nothing shows how much they vary."""


@contextmanager
def clustered_by(unit: str, data: Any = None) -> Iterator[None]:
    """Take intervals and tests of what is read within this block over clusters of this kind.

    `data`: the location of the dataset, if not the one in the results. Raises UnknownName unless
    `unit` is one of CLUSTERS.
    """
    if unit not in CLUSTERS:
        raise UnknownName("cluster", unit, CLUSTERS)
    before = read_repositories.set(partial(repositories_of, data) if unit == REPOSITORY else None)
    try:
        yield
    finally:
        read_repositories.reset(before)


def repositories_of(data: Any, file: Path, settings: Any, functions: np.ndarray) -> np.ndarray:
    """The number of the repository of each function of a result's split, int (split,).

    Args:
        data: the location of the dataset, None if it is the one in the result.
        file: the result, beside which its data are looked for.
        settings: of the result.
        functions: those that the result has, by their places in the split.

    Raises:
        DatasetError: if the data do not say of which repository a function is, or cannot be found.
        LedgerError: if `functions` are of fewer than LEAST repositories, or the data are others.
    """
    if data is None:
        data = find_data(file, settings)
    table, name = load_functions(data, settings.config, settings.split)
    if COLUMN not in table.column_names:
        raise DatasetError(
            f"{name}/{settings.config} does not say of which repository a function is: expected a column `{COLUMN}`, "
            "as `codesyntax build` writes it; or take intervals over functions, with --cluster function"
        )
    if (labels := labels_read(table, settings)) != settings.labels:
        raise LedgerError(
            f"{file} is of the labels {settings.labels}, but the data have {labels}: name its own --data"
        )
    names, numbers = np.unique(
        np.array(table[COLUMN].to_pylist(), object).astype(str), return_inverse=True
    )
    known = np.unique(numbers[functions])
    if len(known) < LEAST:
        raise LedgerError(
            f"all functions of {file} are of the repository {names[known[0]]}, and intervals over repositories need at "
            f"least {LEAST}: run it on functions of several, or take intervals over functions, with --cluster function"
        )
    return numbers
