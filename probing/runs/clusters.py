"""The clusters of intervals and tests: the functions of a split or, where asked, the repositories
that these are from.

Functions of one repository resemble each other, so intervals over repositories say more of other
repositories. They are chosen once, for all that is read within
`probing.runs.repositories.clustered_by`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

CLUSTERS = {"function": "functions", "repository": "repositories"}
"""What a cluster can be, and its plural."""

FUNCTION, REPOSITORY = CLUSTERS

ReadRepositories = Callable[[Path, Any, np.ndarray], np.ndarray]
"""What reads the repositories of a result, from its file, its settings and its functions."""

read_repositories: ContextVar[ReadRepositories | None] = ContextVar(
    "read_repositories", default=None
)
"""None: clusters are functions."""


def over_repositories() -> bool:
    """True if intervals and tests of what is read now are over repositories."""
    return read_repositories.get() is not None


def cluster_unit() -> str:
    """One of CLUSTERS: what intervals and tests are over."""
    return REPOSITORY if over_repositories() else FUNCTION


def clusters_in_words() -> str:
    """The plural of `cluster_unit`."""
    return CLUSTERS[cluster_unit()]
