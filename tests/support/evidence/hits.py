"""Hits of tables of numbers."""

from __future__ import annotations

import numpy as np

from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.protocols import MEASURES, ChosenHits
from probing.stats.hits import Group, Hits


def from_hits(relations: list[str], edges: np.ndarray, hits: np.ndarray) -> ChosenHits:
    """What a model hits, (rules, k, F, R), of edges (F, R), whoever found them."""
    groups = {}
    for column, name in enumerate(relations):
        places = np.flatnonzero(edges[:, column])
        sums = {"model": hits[..., places, column].reshape(len(MEASURES), -1)}
        groups[name] = Group(places, edges[places, column].astype(np.int64), sums)
    return ChosenHits(
        "model", Hits(np.arange(len(edges)), groups, MEASURES, left_out=NOT_IN_MEAN), {}
    )
