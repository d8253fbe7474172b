"""Statistics of a split: edges by relation, offsets from head to dependent, lengths of functions.

These are Table 8 and Figure 3 of Shen et al. (2022), for any dataset with our columns. The *offset* of an edge is
`first - head`, in tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codesyntax_dataset.errors import DatasetError


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
    """The edges of one relation: their number, the number of functions with them, offsets and lengths of dependents.

    `offsets`: {offset: edges}, ascending. `mode`: the most frequent offset, of equals the lowest; `mode_share`: the
    percentage of edges that have it.
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
    """Statistics of some functions; distributions are over functions, that of `dependent` is over edges.

    `without_relations` functions take no part in any score; of these, `without_tokens` could not even be tokenized.
    `relations` are sorted by name. The distribution of no numbers is None.
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
            return {str(key): plain(item) for key, item in value.items()} if isinstance(value, dict) else value

        return {name: plain(value) for name, value in asdict(self).items()}


def statistics(splits: datasets.Dataset | Iterable[datasets.Dataset]) -> Statistics:
    """Count one split, or several together, as loaded by `load_dataset`. Raises DatasetError if columns are missing."""
    splits = [splits] if isinstance(splits, datasets.Dataset) else list(splits)
    table = pa.concat_tables([_columns(split) for split in splits])
    lengths = {name: _to_numpy(pc.list_value_length(table[name])) for name in ("token_start", "relations")}
    characters = _to_numpy(pc.utf8_length(table["code"]))
    edges = pc.list_flatten(table["relations"]).combine_chunks()
    names = pc.struct_field(edges, "relation").dictionary_encode()
    head, first, last = (_to_numpy(pc.struct_field(edges, name)).astype(np.int64) for name in ("head", "first", "last"))
    function = np.repeat(np.arange(len(table)), lengths["relations"])
    relation = _to_numpy(names.indices)
    by_relation = np.argsort(relation, kind="stable")
    ends = np.cumsum(np.bincount(relation, minlength=len(names.dictionary)))
    relations = {
        name: _relation_statistics(function[index], (first - head)[index], (last - first + 1)[index])
        for name, index in zip(names.dictionary.to_pylist(), np.split(by_relation, ends[:-1]))
    }
    return Statistics(
        functions=len(table),
        without_relations=int((lengths["relations"] == 0).sum()),
        without_tokens=int((lengths["token_start"] == 0).sum()),
        tokens=_distribution_of_any(lengths["token_start"]),
        characters=_distribution_of_any(characters),
        edges=_distribution_of_any(lengths["relations"]),
        dependent=_distribution_of_any(last - first + 1),
        relations=dict(sorted(relations.items())),
    )


def edges_by_relation(rows: pa.RecordBatch) -> dict[str, int]:
    """Relation -> number of edges, for rows with the column `relations`."""
    names = pc.struct_field(pc.list_flatten(rows["relations"]), "relation")
    return {count["values"]: count["counts"] for count in pc.value_counts(names).to_pylist()}


def _columns(split: datasets.Dataset) -> pa.Table:
    needed = ["code", "token_start", "relations"]
    if missing := [name for name in needed if name not in (getattr(split, "column_names", None) or ())]:
        raise DatasetError(
            f"the dataset lacks the columns {', '.join(missing)}: expected one that `codesyntax build` wrote"
        )
    return split.select_columns(needed).with_format("arrow")[:]


def _to_numpy(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return array.to_numpy() if isinstance(array, pa.ChunkedArray) else array.to_numpy(zero_copy_only=False)


def _relation_statistics(function: np.ndarray, offset: np.ndarray, dependent: np.ndarray) -> RelationStatistics:
    values, counts = np.unique(offset, return_counts=True)
    return RelationStatistics(
        edges=len(offset),
        functions=len(np.unique(function)),
        offset=_distribution(offset),
        mode=int(values[counts.argmax()]),
        mode_share=100 * int(counts.max()) / len(offset),
        offsets=dict(zip(values.tolist(), counts.tolist())),
        dependent=_distribution(dependent),
    )


def _distribution_of_any(values: np.ndarray) -> Distribution | None:
    return _distribution(values) if len(values) else None


def _distribution(values: np.ndarray) -> Distribution:
    q1, median, q3 = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return Distribution(float(values.mean()), int(values.min()), q1, median, q3, int(values.max()))
