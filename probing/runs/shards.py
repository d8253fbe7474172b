"""Shards: a run's parts shared among jobs that know nothing of each other, such as those of a SLURM array.

A shard in a file is the ledger of its functions, which says in its settings, under `shard`, what it is. The smallest
shard is one part, as an interrupted run keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import ValidationError

from codesyntax_dataset.errors import ArgumentError, LedgerError
from probing.runs.records import Count, Record, explain
from probing.runs.saved import Ledger

_MOST = 10_000


L = TypeVar("L", bound=Ledger)


class Shard(NamedTuple):
    """One of the shards, `of` in all, that a run is split into; `number` counts from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard in a text such as `2/7`; raises ArgumentError for any other text."""
        found = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text, re.ASCII)
        shard = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= shard.number <= shard.of <= _MOST:
            raise ArgumentError(
                f"shard is {text!r}, expected I/N, shard I of N, counted from 1: 1/7 to 7/7 for the seven jobs of "
                f"`sbatch --array=1-7`; N is at most {_MOST:,}"
            )
        return shard

    def parts(self, count: int) -> range:
        """The numbers of its parts, of `count` in the run."""
        return range(self.number - 1, count, self.of)

    def __str__(self) -> str:
        return f"shard-{self.number}-of-{self.of}"


class ShardRecord(Record):
    """A shard's record in its file: which it is, of a run of so many `parts`; the digest of its `ledger` without this
    record; and the paths of the run's data and model, as in a result, if they are local.
    """

    number: Count
    of: Count
    parts: Count
    ledger: str
    data_path: str | None
    model_path: str | None = None

    @property
    def shard(self) -> Shard:
        return Shard(self.number, self.of)


def save(table: Any, shard: Shard, parts: int, file: Path, places: Mapping[str, str] = {}) -> None:
    """Write the ledger of a shard, with its record; raises LedgerError if that cannot be done."""
    data, model = places.get("data_path"), places.get("model_path")
    record = ShardRecord(**shard._asdict(), parts=parts, ledger=table.digest(), data_path=data, model_path=model)
    replace(table, settings={**table.settings, "shard": record.model_dump()}).save(file)


def load(file: Path, read: Callable[[Path], L]) -> tuple[L, ShardRecord]:
    """The ledger of a shard as it was before `save`, and its record; raises LedgerError if either is not as written."""
    table = read(file)
    made, record = split(file, table.settings)
    table = replace(cast(Any, table), settings=made)
    if table.digest() != record.ledger:
        raise LedgerError(f"{file} is damaged or was altered: its ledger is not the one that was written")
    return table, record


def split(file: Path, settings: Any) -> tuple[dict[str, Any], ShardRecord]:
    """The origin of the ledger in a shard's file, and the record of the shard, from the settings there."""
    if not isinstance(settings, dict) or "shard" not in settings:
        raise LedgerError(f"{file} is not a shard: expected a file that a run with --shard wrote")
    try:
        record = ShardRecord.model_validate(settings["shard"])
    except ValidationError as error:
        raise LedgerError(f"{file} is not a shard, or a damaged one: {explain(error, 'the shard')}") from error
    return {name: value for name, value in settings.items() if name != "shard"}, record
