"""Tables of edges."""

from __future__ import annotations

import numpy as np

from probing.instruments.attention.edges import EdgeTable, stacked


def row(tokens, *edges):
    names = ("relation", "head", "first", "last")
    return {
        "token_start": list(range(tokens)),
        "relations": [dict(zip(names, edge)) for edge in edges],
    }


def test_rows_become_columns():
    """Two functions with three edges, and one without; relations are numbered as they come."""
    rows = [(4, row(9, ("b", 0, 1, 2), ("a", 3, 4, 4))), (5, row(3)), (7, row(5, ("b", 1, 2, 4)))]
    table = EdgeTable.from_rows(rows)
    assert table.relations == ["b", "a"]
    assert len(table) == 3
    assert {name: column.tolist() for name, column in table.columns.items()} == {
        "function": [4, 4, 7],
        "relation": [0, 1, 0],
        "head": [0, 3, 1],
        "first": [1, 4, 2],
        "last": [2, 4, 4],
        "tokens": [9, 9, 5],
    }
    assert {column.dtype for column in table.columns.values()} == {np.dtype(np.int32)}


def test_tables_that_share_their_relations_can_be_stacked():
    known = ["z"]
    parts = [
        EdgeTable.from_rows([(place, row(2, (name, 0, 1, 1)))], known)
        for place, name in enumerate(("y", "z", "x"))
    ]
    assert known == ["z", "y", "x"]
    both = stacked([*parts, EdgeTable.from_rows([], known)])
    assert [both.relations[number] for number in both.relation] == ["y", "z", "x"]
    assert both.function.tolist() == [0, 1, 2]
