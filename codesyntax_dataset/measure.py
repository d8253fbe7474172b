"""Count and digest the Parquet files of a dataset: the facts in its card and metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from codesyntax_dataset.builder import FEATURES
from codesyntax_dataset.languages import Language, language_of
from codesyntax_dataset.schema import LABELS, Skips
from codesyntax_dataset.statistics import edges_by_relation

ROW_GROUP = 1000  # rows; a few megabytes, which a streaming reader fetches at once

ORIGIN = ["code", "repo", "path", "func_name", "url", "language"]
"""The columns that come from the source."""


@dataclass(frozen=True)
class ConfigReport:
    """The content of one config of a built dataset, counted from its Parquet files.

    `treebanks`: the names of the treebanks of its sentences, in order.
    """

    language: Language
    info: datasets.DatasetInfo
    edges: dict[str, dict[str, int]]  # relation -> split -> edges
    digest: str  # SHA-256 of the functions, without their labels
    treebanks: list[str]
    skips: Skips

    @property
    def version(self) -> str:
        return str(self.info.version)

    @property
    def functions(self) -> dict[str, int]:
        """Split -> functions."""
        return {name: split.num_examples for name, split in self.info.splits.items()}

    def edges_of(self, split: str) -> int:
        return sum(counts.get(split, 0) for counts in self.edges.values())

    def lacks(self) -> list[str]:
        """A sentence for each missing split: which, and what it is needed for."""
        needs = {
            "validation": "held-out scores choose attention heads on it",
            "test": "scores are computed on it",
        }
        return [f"no {split} split: {need}" for split, need in needs.items() if split not in self.functions]


@dataclass(frozen=True)
class BuildReport:
    """The result of a build: the folder and its configs by name."""

    output: Path
    configs: dict[str, ConfigReport]

    def text(self) -> str:
        lines = []
        for name, config in self.configs.items():
            splits = (
                f"{split} {functions:,} {config.language.units}, {config.edges_of(split):,} edges"
                for split, functions in config.functions.items()
            )
            lines.append(f"{name} {config.version}: {'; '.join(splits)}")
            lines += [f"  warning: {lack}" for lack in config.lacks()]
            for reason, count in config.skips.counts.items():
                lines.append(f"  {reason}: {count:,} (first: {', '.join(config.skips.names[reason])})")
        return "\n".join(lines)


def measure(folder: Path, skips: Skips) -> tuple[ConfigReport, dict[str, pa.Table]]:
    """Measure the Parquet files in the folder of a config; also return their tables by split."""
    tables = read_tables(folder)
    info = datasets.DatasetInfo(
        features=FEATURES,
        version=f"{LABELS}.{int(digest(tables.values(), FEATURES)[:8], 16)}",
        splits=datasets.SplitDict(
            {split: datasets.SplitInfo(split, table.nbytes, table.num_rows) for split, table in tables.items()}
        ),
        download_size=sum(file.stat().st_size for file in folder.iterdir()),
        dataset_size=sum(table.nbytes for table in tables.values()),
    )
    language = language_of(folder.name)
    treebanks = {name for table in tables.values() for name in pc.unique(table["repo"]).to_pylist()}
    return ConfigReport(
        language=language,
        info=info,
        edges=_edges_by_relation(tables),
        digest=digest(tables.values(), ORIGIN),
        treebanks=sorted(treebanks) if language.of_treebanks else [],
        skips=skips,
    ), tables


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Split -> rows of a config."""
    return {file.stem: pq.read_table(file) for file in sorted(folder.iterdir())}  # "test" < "validation", as ids run


def digest(tables: Iterable[pa.Table], columns: Iterable[str]) -> str:
    """SHA-256 over the values of `columns`, independent of file format, chunking and version of Arrow."""
    sha256 = hashlib.sha256()

    def update(array: pa.Array) -> None:
        if pa.types.is_list(array.type):
            sha256.update(pc.list_value_length(array).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
            update(array.flatten())
        elif pa.types.is_struct(array.type):
            for field in array.flatten():
                update(field)
        elif pa.types.is_string(array.type):
            sha256.update(pc.binary_length(array).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
            sha256.update("".join(array.to_pylist()).encode())
        else:
            sha256.update(array.to_numpy(zero_copy_only=False).astype("<i8").tobytes())

    for table in tables:
        sha256.update(f"{table.num_rows} rows".encode())
        for start in range(0, table.num_rows, ROW_GROUP):
            rows = table.slice(start, ROW_GROUP)
            for column in columns:
                update(pa.concat_arrays(rows[column].chunks))
    return sha256.hexdigest()


def _edges_by_relation(tables: dict[str, pa.Table]) -> dict[str, dict[str, int]]:
    """Relation -> split -> edges."""
    edges: dict[str, dict[str, int]] = {}
    for split, table in tables.items():
        for relation, count in edges_by_relation(table).items():
            edges.setdefault(relation, {})[split] = count
    return edges
