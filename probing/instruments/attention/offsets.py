"""The best offsets of each relation, and the *hard* edges, at which none of them leads.

An edge is hard if its dependent does not begin at one of the n best offsets of its relation: the n
distances from head to dependent that are most frequent on the split `validation`, of equals the
nearer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from probing.instruments.attention.edges import EdgeTable

AVOIDED = (1, 3)
"""The numbers of offsets, n, that hard edges are defined by."""

Offsets = Mapping[str, list[int]]
"""Relation -> distances from head to first token of the dependent, the most frequent first."""


def best_offsets(validation: EdgeTable, most: int) -> Offsets:
    """The `most` distances of each relation that are most frequent; of equals the nearer, then the
    one forward."""
    distance = validation.first - validation.head
    best: dict[str, list[int]] = {}
    for number, name in enumerate(validation.relations):
        values, counts = np.unique(distance[validation.relation == number], return_counts=True)
        order = np.lexsort((-values, np.abs(values), -counts))
        best[name] = values[order[:most]].tolist()
    return best


def is_hard(edges: EdgeTable, offsets: Offsets) -> np.ndarray:
    """Which edges do not begin at one of these offsets of their relation: bool (E,)."""
    distance = edges.first - edges.head
    hard = np.ones(len(edges), bool)
    for number, name in enumerate(edges.relations):
        hard &= (edges.relation != number) | ~np.isin(distance, offsets.get(name, []))
    return hard
