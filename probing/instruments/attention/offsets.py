"""The best offset of each relation, and the *hard* edges, at which it does not lead.

An edge is hard if its dependent does not begin at the best offset of its relation: the distance
from head to dependent that is most frequent on the split `validation`, of equals the nearer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from probing.instruments.attention.edges import EdgeTable

Offsets = Mapping[str, int]
"""Relation -> the most frequent distance from head to first token of the dependent."""


def best_offsets(validation: EdgeTable) -> Offsets:
    """The distance of each relation that is most frequent; of equals the nearer, then the one
    forward."""
    distance = validation.first - validation.head
    best = {}
    for number, name in enumerate(validation.relations):
        values, counts = np.unique(distance[validation.relation == number], return_counts=True)
        if len(values):
            best[name] = int(values[np.lexsort((-values, np.abs(values), -counts))[0]])
    return best


def is_hard(edges: EdgeTable, offsets: Offsets) -> np.ndarray:
    """Which edges do not begin at the offset of their relation, if it has one: bool (E,)."""
    distance = edges.first - edges.head
    hard = np.ones(len(edges), bool)
    for number, name in enumerate(edges.relations):
        if name in offsets:
            hard &= (edges.relation != number) | (distance != offsets[name])
    return hard
