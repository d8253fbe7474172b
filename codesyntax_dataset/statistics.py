"""Statistics of a split: edges by relation, offsets from head to dependent, lengths of functions.

These are Table 8 and Figure 3 of Shen et al. (2022), for any dataset with our columns. The *offset*
of an edge is `first - head`, in tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codesyntax_dataset.errors import DatasetError

_ROWS = 1000  # at a time


class Distribution(NamedTuple):
    """Summary of some numbers: mean, quartiles (linearly interpolated), minimum and maximum."""

    mean: float
    min: int
    q1: float
    median: float
    q3: float
    max: int


@dataclass(frozen=True)
class RelationStatistics:
    """The edges of one relation: their number, the number of functions with them, offsets and
    lengths of dependents.

    `offsets`: {offset: edges}, ascending. `mode`: the most frequent offset, of equals the lowest;
    `mode_share`: the percentage of edges that have it.
    """

    edges: int
    functions: int
    offset: Distribution
    mode: int
    mode_share: float
    offsets: dict[int, int]
    dependent: Distribution  # tokens


@dataclass(frozen=True)
class Statistics:
    """Statistics of some functions; distributions are over functions, that of `dependent` is over
    edges.

    `without_relations` functions take no part in any score; of these, `without_tokens` could not
    even be tokenized. `relations` are sorted by name. The distribution of no numbers is None.
    """

    functions: int
    without_relations: int
    without_tokens: int
    tokens: Distribution | None
    characters: Distribution | None
    edges: Distribution | None
    dependent: Distribution | None  # tokens
    relations: dict[str, RelationStatistics]

    def to_dict(self) -> dict[str, Any]:
        """As JSON: a distribution is {"mean", "min", "q1", "median", "q3", "max"}."""

        def plain(value: Any) -> Any:
            if isinstance(value, Distribution):
                return value._asdict()
            return (
                {str(key): plain(item) for key, item in value.items()}
                if isinstance(value, dict)
                else value
            )

        return {name: plain(value) for name, value in asdict(self).items()}


def statistics(splits: datasets.Dataset | Iterable[datasets.Dataset]) -> Statistics:
    """Count one split, or several together, as loaded by `load_dataset`. Raises DatasetError if
    columns are missing.

    Only the counts of equal numbers are in memory, whatever the number of functions.
    """
    splits = [splits] if isinstance(splits, datasets.Dataset) else list(splits)
    functions = without_relations = without_tokens = 0
    tokens, characters, edges, dependent = (_Histogram() for _ in range(4))
    relations: dict[str, _Relation] = {}
    for rows in chain.from_iterable(map(_rows, splits)):
        lengths = {
            name: _to_numpy(pc.list_value_length(rows[name]))
            for name in ("token_start", "relations")
        }
        functions += len(rows)
        without_relations += int((lengths["relations"] == 0).sum())
        without_tokens += int((lengths["token_start"] == 0).sum())
        tokens.add(lengths["token_start"])
        edges.add(lengths["relations"])
        characters.add(_to_numpy(pc.utf8_length(rows["code"])))
        flat = pc.list_flatten(rows["relations"]).combine_chunks()
        names = pc.struct_field(flat, "relation").dictionary_encode()
        head, first, last = (
            _to_numpy(pc.struct_field(flat, name)).astype(np.int64)
            for name in ("head", "first", "last")
        )
        dependent.add(last - first + 1)
        function, relation = (
            np.repeat(np.arange(len(rows)), lengths["relations"]),
            _to_numpy(names.indices),
        )
        for number, name in enumerate(names.dictionary.to_pylist()):
            index = relation == number
            counts = relations.setdefault(name, _Relation())
            counts.functions += len(np.unique(function[index]))
            counts.offset.add((first - head)[index])
            counts.dependent.add((last - first + 1)[index])
    return Statistics(
        functions=functions,
        without_relations=without_relations,
        without_tokens=without_tokens,
        tokens=tokens.distribution_of_any(),
        characters=characters.distribution_of_any(),
        edges=edges.distribution_of_any(),
        dependent=dependent.distribution_of_any(),
        relations={name: counts.statistics() for name, counts in sorted(relations.items())},
    )


def edges_by_relation(rows: pa.RecordBatch) -> dict[str, int]:
    """Relation -> number of edges, for rows with the column `relations`."""
    names = pc.struct_field(pc.list_flatten(rows["relations"]), "relation")
    return counts_of(names)


def counts_of(names: pa.Array) -> dict[str, int]:
    """Name -> how often it is there."""
    return {count["values"]: count["counts"] for count in pc.value_counts(names).to_pylist()}


def _rows(split: datasets.Dataset) -> Iterator[pa.Table]:
    """The rows of a split, some at a time."""
    needed = ["code", "token_start", "relations"]
    if missing := [
        name for name in needed if name not in (getattr(split, "column_names", None) or ())
    ]:
        raise DatasetError(
            f"the dataset lacks the columns {', '.join(missing)}: expected one that `codesyntax build` wrote"
        )
    return split.select_columns(needed).with_format("arrow").iter(_ROWS)


def _to_numpy(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return (
        array.to_numpy()
        if isinstance(array, pa.ChunkedArray)
        else array.to_numpy(zero_copy_only=False)
    )


class _Histogram(Counter[int]):
    """Counts of each number."""

    def add(self, values: np.ndarray) -> None:
        for value, count in zip(*(part.tolist() for part in np.unique(values, return_counts=True))):
            self[value] += count

    def distribution_of_any(self) -> Distribution | None:
        return self.distribution() if self else None

    def distribution(self) -> Distribution:
        values = sorted(self)
        counts = np.cumsum([self[value] for value in values])
        number = int(counts[-1])

        def quantile(share: float) -> float:
            """Between the two numbers around its place, as `numpy.quantile`."""
            rank, beyond = divmod((number - 1) * share, 1)
            low, high = (
                values[int(np.searchsorted(counts, min(index, number - 1), side="right"))]
                for index in (rank, rank + 1)
            )
            return low + (high - low) * beyond

        mean = sum(value * count for value, count in self.items()) / number
        return Distribution(
            mean, values[0], quantile(0.25), quantile(0.5), quantile(0.75), values[-1]
        )


@dataclass
class _Relation:
    """Counts of the edges of a relation."""

    functions: int = 0
    offset: _Histogram = field(default_factory=_Histogram)
    dependent: _Histogram = field(default_factory=_Histogram)

    def statistics(self) -> RelationStatistics:
        edges, offsets = self.offset.total(), dict(sorted(self.offset.items()))
        # the lowest of equals, because they are sorted
        mode = max(offsets, key=lambda offset: offsets[offset])
        return RelationStatistics(
            edges=edges,
            functions=self.functions,
            offset=self.offset.distribution(),
            mode=mode,
            mode_share=100 * offsets[mode] / edges,
            offsets=offsets,
            dependent=self.dependent.distribution(),
        )
