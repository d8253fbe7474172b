"""The clusters of intervals and tests: the functions of a split, of which near copies are one, or
the repositories that these are from.

Functions of one repository resemble each other, so intervals over repositories say more of other
repositories: by default they are taken where there are LEAST_REPOSITORIES. What is asked for holds
for all that is read within `probing.runs.repositories.clustered_by`.
"""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

CLUSTERS = {"function": "functions", "repository": "repositories"}
"""What a cluster can be, and its plural."""

FUNCTION, REPOSITORY = CLUSTERS

LEAST_REPOSITORIES = 6
"""Repositories from which on intervals are over them by default."""


class Clusters(NamedTuple):
    """What intervals and tests are over. `unit`: one of CLUSTERS; `number`: that of the cluster of
    each function of a split, int (split,); near copies are one function."""

    unit: str
    number: np.ndarray


class Reading(Protocol):
    """What finds the clusters of a result, from its file, its settings and its functions; None if
    nothing says which of these are near copies, and each is one.

    `found`: the units of the results so far, in the plural.
    """

    found: set[str]

    def __call__(self, file: Path, settings: Any, functions: np.ndarray) -> Clusters | None: ...


reading: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""None: clusters are functions."""

UNKNOWN = "functions, of which near copies are unknown"


def unit_of(over: Clusters | None) -> str:
    """One of CLUSTERS: what a cluster of results or hits is."""
    return over.unit if over else FUNCTION


def units_of(over: Clusters | None) -> str:
    """What intervals and tests of results or hits are over, in the plural."""
    return CLUSTERS[over.unit] if over else UNKNOWN


def clusters_in_words() -> str:
    """What intervals and tests of what was read are over, in the plural."""
    now = reading.get()
    return " or ".join(sorted(now.found)) if now and now.found else CLUSTERS[FUNCTION]


def cluster_in_words() -> str:
    """The same, in the singular."""
    plural = clusters_in_words()
    return " or ".join(unit for unit, units in CLUSTERS.items() if units in plural)


def over_in_words(words: str | None = None) -> str:
    """The end of the titles of intervals and tests that are not over functions, or not over known
    copies; else empty. `words`: what they are over, by default all that was read."""
    words = words or clusters_in_words()
    return f"; intervals and p over {words}" if words != CLUSTERS[FUNCTION] else ""
