"""The annotated functions to probe with: from a folder, the Hub or memory, checked before any model runs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from huggingface_hub import constants

from codesyntax_dataset.errors import DataNotFound, DatasetError, UnknownName
from codesyntax_dataset.network import UNREACHABLE, hub_answers, is_hub_id

COLUMNS = ("id", "code", "token_start", "token_end", "relations")


def load_functions(data: Any, config: str, split: str) -> tuple[datasets.Dataset, str]:
    """One split of an annotated dataset, and the name and version it goes by in signatures.

    `data` is a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded `Dataset` or `DatasetDict`. Raises
    DataNotFound where there is nothing of that name, DatasetError where it is no CodeSyntax dataset, and UnknownName for a
    config or split that it does not have.
    """
    if isinstance(data, (str, os.PathLike)):
        name = str(data)
        dataset = _load(name, config, split)
    elif isinstance(data, datasets.IterableDataset | datasets.IterableDatasetDict):
        raise DatasetError("this dataset is streamed, but a probe reads it more than once: load it without streaming=True")
    elif isinstance(data, datasets.DatasetDict):
        if split not in data:
            raise UnknownName("split", split, list(data))
        name, dataset = "", data[split]
    else:
        name, dataset = "", data
    missing = [column for column in COLUMNS if column not in (getattr(dataset, "column_names", None) or ())]
    if missing:
        raise DatasetError(
            f"{name or 'the dataset'} has no columns {', '.join(missing)}: expected a dataset that `codesyntax build` wrote"
        )
    name = os.path.basename(os.path.abspath(name)) if os.path.isdir(name) else name
    return dataset, f"{name or dataset.info.dataset_name or 'memory'}@{dataset.info.version or '0.0.0'}"


def _load(name: str, config: str, split: str) -> datasets.Dataset:
    if not os.path.isdir(name):
        _check_id(name)
    try:
        configs = datasets.get_dataset_config_names(name)
        if config not in configs:
            raise UnknownName(f"config of {name}", config, configs)
        splits = datasets.get_dataset_split_names(name, config)
        if split not in splits:
            raise UnknownName(f"split of {name}", split, splits)
        return datasets.load_dataset(name, config, split=split)
    except UnknownName:
        raise
    except Exception as error:  # datasets raises whatever its many loaders raise
        kind = "folder is no dataset" if os.path.isdir(name) else "no such folder, and no such dataset on the Hub"
        reason = " ".join(str(error).split())[:200]
        missing = isinstance(error, OSError) and not os.path.isdir(name)
        raise (DataNotFound if missing else DatasetError)(
            f"cannot load {name}: {kind} ({type(error).__name__}: {reason}). Build one with `codesyntax build`"
        ) from error


def _check_id(name: str) -> None:
    """Raise DataNotFound unless `name` can be a dataset on a Hub that answers, or is in the cache and all is offline."""
    if os.path.exists(name):
        raise DatasetError(f"{name} is a file, expected the folder of a dataset or its id on the Hub")
    if "/" not in name or not is_hub_id(name):
        raise DataNotFound(f"no folder {name}, and no name of a dataset on the Hub, USER/NAME: `codesyntax build` makes one")
    if not constants.is_offline_mode() and not hub_answers():
        raise DataNotFound(
            f"no folder {name}, and {UNREACHABLE} With HF_HUB_OFFLINE=1 a dataset that was loaded before is read again"
        )


def label_digest(dataset: datasets.Dataset, limit: int | None = None) -> str:
    """A digest over the labels of the first `limit` functions: the code, the tokens' places and the edges, in order."""
    digest = hashlib.sha256()
    try:
        for table in _labels(dataset, limit).with_format("arrow").iter(batch_size=1000):
            starts, ends = _places(table, "token_start"), _places(table, "token_end")
            for code, start, end, edges in zip(table["code"].to_pylist(), starts, ends, _edges(table)):
                digest.update(code.encode("utf-8", "surrogatepass"))
                digest.update(start)
                digest.update(end)
                if edges:
                    digest.update(f"|{edges}".encode())
    except (pa.ArrowException, AttributeError) as error:
        raise DatasetError(
            f"the dataset's columns {', '.join(COLUMNS)} are not what `codesyntax build` writes: {error}"
        ) from error
    return digest.hexdigest()[:12]


def _places(table: pa.Table, column: str) -> list[bytes]:
    """What each row has in a column of lists of integers, as little-endian int32."""
    lists = table[column].combine_chunks()
    ends = np.cumsum(pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False))
    values = lists.flatten().cast(pa.int32()).to_numpy(zero_copy_only=False).astype("<i4")
    return [part.tobytes() for part in np.split(values, ends[:-1])]


def _edges(table: pa.Table) -> list[str]:
    """The edges of each row as `relation,head,first,last|relation,head,first,last` and so on."""
    lists = table["relations"].combine_chunks()
    ends = np.cumsum(pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False))
    edges = lists.flatten()
    if not len(edges):  # then they may have no type either
        return [""] * len(lists)
    parts = [pc.struct_field(edges, name).cast(pa.string()) for name in ("relation", "head", "first", "last")]
    offsets = pa.array([0, *ends.tolist()], pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(offsets, pc.binary_join_element_wise(*parts, ",")), "|").to_pylist()


def _labels(dataset: datasets.Dataset, limit: int | None) -> datasets.Dataset:
    dataset = dataset.select_columns(list(COLUMNS))
    return dataset if limit is None else dataset.select(range(min(limit, len(dataset))))


def rows(dataset: datasets.Dataset, limit: int | None, at_once: int = 256) -> Iterator[list[dict[str, Any]]]:
    """The first `limit` rows, some at a time, with the columns that probing needs; raises DatasetError for a row that does
    not fit itself."""
    for batch in _labels(dataset, limit).with_format(None).iter(batch_size=at_once):
        chunk = [dict(zip(batch, values)) for values in zip(*batch.values())]
        for row in chunk:
            tokens = len(row["token_start"])
            if len(row["token_end"]) != tokens:
                raise DatasetError(f"function {row['id']}: {tokens} token starts but {len(row['token_end'])} ends")
            for edge in row["relations"]:
                if not (0 <= edge["head"] < tokens and 0 <= edge["first"] <= edge["last"] < tokens):
                    raise DatasetError(f"function {row['id']}: edge {edge} points outside its {tokens} tokens")
        yield chunk
