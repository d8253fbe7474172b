"""Edges as columns: from a head token to the tokens of its dependent, each in a function of a
dataset split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from probing.runs.clusters import Clusters

EDGE_COLUMNS = ("function", "relation", "head", "first", "last", "tokens")


@dataclass(eq=False)
class EdgeTable:
    """E edges, grouped by function.

    `function`: the position of the edge's function in its split; `relation`: an index into
    `relations`; `head`, `first`, `last`: token indices, `last` inclusive; `tokens`: the number of
    tokens of the function. Each int32 (E,). `over`: as in `probing.stats.hits.Hits`.
    """

    relations: list[str]
    function: np.ndarray
    relation: np.ndarray
    head: np.ndarray
    first: np.ndarray
    last: np.ndarray
    tokens: np.ndarray
    over: Clusters | None = field(default=None, kw_only=True)

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[int, Mapping[str, Any]]], relations: list[str] | None = None
    ) -> EdgeTable:
        """The edges of (position in the split, row of the dataset) pairs, in order.

        `relations`: the names that `relation` refers to; new names are appended to it.
        """
        relations = [] if relations is None else relations
        numbers = {name: number for number, name in enumerate(relations)}
        cells = [
            (
                function,
                numbers.setdefault(edge["relation"], len(numbers)),
                edge["head"],
                edge["first"],
                edge["last"],
                len(row["token_start"]),
            )
            for function, row in rows
            for edge in row["relations"]
        ]
        relations += list(numbers)[len(relations) :]
        columns = np.ascontiguousarray(np.array(cells, np.int32).reshape(-1, len(EDGE_COLUMNS)).T)
        return EdgeTable(relations, *columns)

    def __len__(self) -> int:
        return len(self.function)

    def take(self, edges: np.ndarray) -> Self:
        """Some of the edges, by a mask (E,)."""
        return replace(self, **{name: column[edges] for name, column in self.columns.items()})

    @property
    def relation_names(self) -> np.ndarray:
        """The relation of each edge: objects (E,)."""
        return np.asarray(self.relations, object)[self.relation]

    def in_order(self) -> tuple[EdgeTable, np.ndarray]:
        """The edges with their functions in the order of the dataset, and relations as they come
        there first; and from where each edge is (E,)."""
        order = np.argsort(self.function, kind="stable")
        columns = {name: column[order] for name, column in self.columns.items()}
        number, first, relation = np.unique(
            columns["relation"], return_index=True, return_inverse=True
        )
        rank = first.argsort()
        columns["relation"] = rank.argsort().astype(np.int32)[relation]
        return EdgeTable([self.relations[name] for name in number[rank]], **columns), order

    @property
    def columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in EDGE_COLUMNS}


def stacked(tables: Sequence[EdgeTable]) -> EdgeTable:
    """The concatenated edges of tables, with all their relations."""
    names = {name: None for table in tables for name in table.relations}
    numbers = {name: number for number, name in enumerate(names)}
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in EDGE_COLUMNS
    }
    columns["relation"] = np.concatenate(
        [
            np.array([numbers[name] for name in table.relations], np.int32)[table.relation]
            for table in tables
        ]
    )
    return EdgeTable([*names], **columns)


def runs(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers from `begin` until `end` (E,), and before each the place of its run."""
    size = np.maximum(end - begin, 0)
    run = np.repeat(np.arange(len(size)), size)
    start = begin - (size.cumsum() - size)
    return run, np.arange(len(run)) + start[run]
