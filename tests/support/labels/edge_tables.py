"""Edges of one function, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probing.instruments.attention.edges import EdgeTable


def edge_table(tokens: int, edges: Sequence[tuple[int, int, int]], place: int = 0) -> EdgeTable:
    """Edges (head, first, last) of one relation in the function of `tokens` tokens at `place`."""
    head, first, last = np.array(edges, np.int32).reshape(-1, 3).T
    function, relation, size = (
        np.full(len(edges), value, np.int32) for value in (place, 0, tokens)
    )
    return EdgeTable(["relation"], function, relation, head, first, last, size)
