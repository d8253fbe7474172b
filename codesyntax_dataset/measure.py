"""Count and digest the Parquet files of a dataset: the facts in its card and metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.compute as pc

from codesyntax_dataset.batches import batches, parquet_file
from codesyntax_dataset.features import features_of
from codesyntax_dataset.languages import Language, language_of, variant_of
from codesyntax_dataset.schema import LABELS, Skips
from codesyntax_dataset.statistics import counts_of, edges_by_relation

ROW_GROUP = 1000  # rows; a few megabytes, which a streaming reader fetches at once

ORIGIN = ["code", "repo", "path", "func_name", "url", "language"]
"""The columns that come from the source."""


def origin_of(config: str) -> list[str]:
    """The columns of a config that come from the source."""
    return ["good", "repo", "path"] if variant_of(config).pairs else ORIGIN


@dataclass(frozen=True)
class ConfigReport:
    """The content of one config of a built dataset, counted from its Parquet files.

    `pairs`: whether its rows are minimal pairs. `treebanks`: the names of the treebanks of its
    sentences, in order.
    """

    language: Language
    pairs: bool
    info: datasets.DatasetInfo
    # relation -> split -> edges; of pairs, phenomenon -> split -> pairs
    edges: dict[str, dict[str, int]]
    digest: str  # SHA-256 of the functions, without their labels
    treebanks: list[str]
    skips: Skips

    @property
    def version(self) -> str:
        return str(self.info.version)

    @property
    def units(self) -> str:
        """What its rows are, in words."""
        return "pairs" if self.pairs else self.language.units

    @property
    def functions(self) -> dict[str, int]:
        """Split -> functions."""
        return {name: split.num_examples for name, split in self.info.splits.items()}

    def edges_of(self, split: str) -> int:
        return sum(counts.get(split, 0) for counts in self.edges.values())

    def lacks(self) -> list[str]:
        """A sentence for each missing split: which, and what it is needed for."""
        needs = {
            "validation": "held-out scores need it to choose attention heads",
            "test": "scores need it",
        }
        return [
            f"no {split} split: {need}"
            for split, need in needs.items()
            if split not in self.functions
        ]


@dataclass(frozen=True)
class BuildReport:
    """The result of a build: the folder and its configs by name."""

    output: Path
    configs: dict[str, ConfigReport]

    def text(self) -> str:
        lines = []
        for name, config in self.configs.items():
            splits = (
                f"{split} {functions:,} {config.units}"
                + ("" if config.pairs else f", {config.edges_of(split):,} edges")
                for split, functions in config.functions.items()
            )
            lines.append(f"{name} {config.version}: {'; '.join(splits)}")
            lines += [f"  warning: {lack}" for lack in config.lacks()]
            for reason, count in config.skips.counts.items():
                lines.append(
                    f"  {reason}: {count:,} (first: {', '.join(config.skips.names[reason])})"
                )
        return "\n".join(lines)


class _Digest:
    """SHA-256 over the values of `columns`, independent of file format, chunking and version of
    Arrow.

    `begin` is called for each file with its number of rows, `update` for each `ROW_GROUP` of them.
    """

    def __init__(self, columns: Iterable[str]):
        self.columns = list(columns)
        self._sha256 = hashlib.sha256()
        self.hexdigest = self._sha256.hexdigest

    def begin(self, rows: int) -> None:
        self._sha256.update(f"{rows} rows".encode())

    def update(self, batch: pa.RecordBatch) -> None:
        for column in self.columns:
            self._update(batch[column])

    def _update(self, array: pa.Array) -> None:
        if pa.types.is_list(array.type):
            self._sha256.update(_numbers(pc.list_value_length(array)))
            self._update(array.flatten())
        elif pa.types.is_struct(array.type):
            for field in array.flatten():
                self._update(field)
        elif pa.types.is_string(array.type):
            self._sha256.update(_numbers(pc.binary_length(array)))
            self._sha256.update("".join(array.to_pylist()).encode())
        else:
            self._sha256.update(_numbers(array))


def _numbers(array: pa.Array) -> bytes:
    return array.to_numpy(zero_copy_only=False).astype("<i8").tobytes()


def measure(folder: Path, skips: Skips) -> ConfigReport:
    """Measure the Parquet files in the folder of a config, of which only some rows are in memory at
    a time."""
    language = language_of(folder.name)
    features, pairs = features_of(folder.name), variant_of(folder.name).pairs
    functions, rows = _Digest(origin_of(folder.name)), _Digest(features)
    edges: dict[str, dict[str, int]] = {}
    splits = datasets.SplitDict()
    treebanks: set[str] = set()
    for file in _parquet(folder):
        split, parquet = file.stem, parquet_file(file)
        functions.begin(parquet.metadata.num_rows)
        rows.begin(parquet.metadata.num_rows)
        size = 0
        for batch in batches(parquet, ROW_GROUP):
            functions.update(batch)
            rows.update(batch)
            size += batch.nbytes
            for relation, count in (
                counts_of(batch["phenomenon"]) if pairs else edges_by_relation(batch)
            ).items():
                counts = edges.setdefault(relation, {})
                counts[split] = counts.get(split, 0) + count
            if language.of_treebanks:
                treebanks.update(pc.unique(batch["repo"]).to_pylist())
        splits[split] = datasets.SplitInfo(split, size, parquet.metadata.num_rows)
    info = datasets.DatasetInfo(
        features=features,
        version=f"{LABELS}.{int(rows.hexdigest()[:8], 16)}",
        splits=splits,
        download_size=sum(file.stat().st_size for file in _parquet(folder)),
        dataset_size=sum(split.num_bytes for split in splits.values()),
    )
    return ConfigReport(
        language, pairs, info, edges, functions.hexdigest(), sorted(treebanks), skips
    )


def digest(folder: Path) -> str:
    """The digest of the functions in the folder of a config, as in its report."""
    functions = _Digest(origin_of(folder.name))
    for file in _parquet(folder):
        parquet = parquet_file(file)
        functions.begin(parquet.metadata.num_rows)
        for batch in batches(parquet, ROW_GROUP, functions.columns):
            functions.update(batch)
    return functions.hexdigest()


def _parquet(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())  # "test" < "validation", as ids run
