"""Read a dataset folder that `codesyntax build` wrote, directly from disk.

`datasets.load_dataset` caches a folder by its name and card, and would return the cached rows for
another folder with the same name and card, or after a Parquet file has changed. We therefore read
the files ourselves and check them against `SHA256SUMS`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import yaml

from codesyntax_dataset import safe_files
from codesyntax_dataset.batches import check_row_groups, columns_of, parquet_file
from codesyntax_dataset.errors import DatasetError, UnknownName
from codesyntax_dataset.languages import CONFIGS, variant_of
from codesyntax_dataset.protocol import CARD, MARKER, SPLITS, SUMS


def read_split(
    folder: Path, config: str, split: str, columns: Sequence[str], newer: Sequence[str] = ()
) -> tuple[pa.Table, str]:
    """The rows of a split with the given columns and, where the dataset has them, `newer` ones; and
    the version of its config.

    Raises DatasetError if `folder` is not a dataset that `codesyntax build` wrote, or if its card
    or the split was altered since; UnknownName for a config or split that it does not have.
    """
    text = _read(folder, CARD).decode("utf-8", "replace")
    if MARKER not in text:
        raise DatasetError(
            f"{folder} is not a dataset that `codesyntax build` wrote: its {CARD} does not say so"
        )
    sums = _sums(folder)
    _check(folder, CARD, text.encode(), sums)
    try:
        configs = _configs(text.split("---\n")[1])
    except (yaml.YAMLError, LookupError, TypeError, RecursionError) as error:
        raise DatasetError(
            f"{folder}: {CARD} does not begin with the YAML header of a dataset ({error}): build it again"
        ) from error
    if config not in configs:
        from codesyntax_dataset.card import how_to_add

        advice = how_to_add(text, config, folder) if config in CONFIGS else ""
        raise UnknownName(f"config of {folder}", config, configs, advice)
    version, splits = configs[config]
    if split not in splits:
        advice = ""
        if split in SPLITS:
            advice = "its source had too few files for it: build from more"
            if splits:
                advice += f", or ask for one that there is alone (--split {next(iter(splits))})"
        raise UnknownName(f"split of {folder}", split, splits, advice)
    name = f"{config}/{split}.parquet"
    data = _read(folder, name)
    _check(folder, name, data, sums)
    try:
        parquet = parquet_file(pa.BufferReader(data))
        if missing := set(columns) - set(parquet.schema_arrow.names):
            rows = "minimal pairs" if variant_of(config).pairs else "functions"
            raise DatasetError(
                f"the rows of {config} are {rows}: they have no {', '.join(sorted(missing))}"
            )
        columns = [*columns, *(name for name in newer if name in parquet.schema_arrow.names)]
        check_row_groups(parquet, columns)
        table = columns_of(parquet, columns).replace_schema_metadata()
        table.validate(full=True)  # that texts are UTF-8, too
        return table, version
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{folder}: {name} cannot be read ({error}): build it again") from error


@functools.lru_cache(maxsize=4)  # each of its splits asks for it
def _configs(header: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Config -> its version and its splits, as in the YAML header of a card."""
    configs = {}
    for config in yaml.safe_load(header)["configs"]:
        splits = tuple(file["split"] for file in config["data_files"])
        configs[str(config["config_name"])] = str(config["version"]), splits
    return configs


def _sums(folder: Path) -> dict[str, str]:
    """File -> its SHA-256, as listed in SHA256SUMS."""
    lines = _read(folder, SUMS).decode("utf-8", "replace").splitlines()
    pairs = [line.partition("  ") for line in lines]
    return {name: checksum for checksum, _, name in pairs}


def _check(folder: Path, name: str, data: bytes, sums: dict[str, str]) -> None:
    if hashlib.sha256(data).hexdigest() != sums.get(name):
        raise DatasetError(
            f"{folder}: {name} was altered since it was built (its checksum is not the one in {SUMS}): build it again"
        )


def _read(folder: Path, name: str) -> bytes:
    try:
        with safe_files.opened(folder / name) as file:
            return file.read()
    except OSError as error:
        raise DatasetError(
            f"{folder} is not a dataset that `codesyntax build` wrote: {name} cannot be read ({error.strerror}). Build "
            "one with `codesyntax build`"
        ) from error
