"""Outcomes of tables of hits."""

from __future__ import annotations

import numpy as np

from probing.evidence.protocols import Found, Outcomes


def from_hits(relations: list[str], edges: np.ndarray, hits: np.ndarray) -> Outcomes:
    """Outcomes of hits (rules, k, F, R) on edges (F, R), whoever found them."""
    found = []
    for column in range(len(relations)):
        places = np.flatnonzero(edges[:, column])
        found.append(Found.of(places, edges[places, column], hits[..., places, column]))
    return Outcomes(relations, np.arange(len(edges)), edges, found, {}, {})
