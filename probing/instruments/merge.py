"""Put the shards of runs together: the result of one process, from files alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codesyntax_dataset.arguments import StrPath, checked
from codesyntax_dataset.errors import ArgumentError, LedgerError
from probing.instruments.registry import INSTRUMENTS
from probing.runs.ledger_file import ShardRecord, kind_of, load_shard, split_shard, without
from probing.runs.saved import Result, found_at


class _Shard(NamedTuple):
    """A shard's file, by its header: `settings` as in the ledger of the whole run."""

    file: Path
    instrument: str
    settings: dict[str, object]
    record: ShardRecord


@checked
def merge(folders: Sequence[StrPath], output: StrPath | None = None) -> Iterator[Result]:
    """Put the shards of each run together, and save its result to `output`: the bytes of one
    process.

    Needs no model and no data; the shards stay as they are.

    Args:
        folders: where shards of one or several runs are.
        output: a folder for the results; by default that of the shards, if it is only one.

    Yields:
        The result of each run whose shards are complete.

    Raises:
        ArgumentError: several folders, and no output.
        LedgerError: there are no shards; or, after the complete runs, shards are missing, damaged,
            or not of one run: it says which.

    Examples:
        >>> import probing
        >>> for shard in ("1/2", "2/2"):
        ...     probing.probe("tiny-code-lm", "codesyntax", limit=4, output="shards", shard=shard)
        >>> [result.functions for result in probing.merge(["shards"])]
        [4]
    """
    places = list(dict.fromkeys(map(Path, folders)))
    if output is None and len(places) != 1:
        raise ArgumentError(
            "no output for the shards of several folders: name the folder for the results"
        )
    target = Path(places[0] if output is None else output)
    problems: list[str] = []
    for run in _shards_of_runs(places, problems):
        try:
            result = _merged_run(run)
        except LedgerError as error:
            problems.append(str(error))
            continue
        result.save(target)
        yield result
    if problems:
        raise LedgerError("; ".join(problems))


def _shards_of_runs(folders: Sequence[Path], problems: list[str]) -> list[list[_Shard]]:
    """The shards in folders, those with the same settings together; what is not a shard is told
    among `problems`."""
    runs = defaultdict(list)
    for folder in folders:
        if not folder.is_dir():
            raise LedgerError(f"no folder {folder}: expected one that a run with --shard wrote to")
        for file in sorted(folder.glob("*.shard-*-of-*.parquet")):
            instrument, settings = kind_of(file)
            try:
                if instrument not in INSTRUMENTS:
                    raise LedgerError(
                        f"{file} is not a shard, or a damaged one: remove it, and run this shard again"
                    )
                own_settings, record = split_shard(file, settings)
                if not file.stem.endswith(f".{record.shard}"):
                    raise LedgerError(
                        f"{file} holds the shard {record.shard}, not the one in its name: rename or remove it"
                    )
                run = repr(own_settings.get("settings"))
                runs[run].append(_Shard(file, instrument, own_settings, record))
            except LedgerError as error:
                problems.append(str(error))
    if not runs and not problems:
        places = " or ".join(map(str, folders))
        raise LedgerError(
            f"no shard in {places}: expected files that `codesyntax probe --shard I/N --output` wrote"
        )
    return [run for _, run in sorted(runs.items())]


def _merged_run(run: Sequence[_Shard]) -> Any:
    """The result of the shards of a run; raises LedgerError unless these are all of them."""
    first = run[0]
    of_run = _shared(first)
    by_number: dict[int, _Shard] = {}
    for shard in run:
        differing = [name for name, value in _shared(shard).items() if value != of_run.get(name)]
        if differing:
            raise LedgerError(
                f"{first.file} and {shard.file} are of different runs, with other {differing[0]}: remove the one that "
                "you do not want, and run the missing shards again"
            )
        same = by_number.setdefault(shard.record.number, shard)
        if same.record.ledger != shard.record.ledger:
            raise LedgerError(
                f"{same.file} and {shard.file} are the same shard with other ranks: remove one of them"
            )
    result = INSTRUMENTS[first.instrument].result
    total = first.record.total
    missing = [number for number in range(1, total + 1) if number not in by_number]
    if missing:
        numbers = ", ".join(map(str, missing))
        raise LedgerError(
            f"{len(missing)} of {total} shards beside {first.file} are missing, {numbers}: run "
            f"`codesyntax {result.LEDGER.COMMAND}` as before with --shard {missing[0]}/{total}, and so on"
        )
    files = [by_number[number].file for number in sorted(by_number)]
    loaded = [load_shard(file, result.LEDGER.open) for file in files]
    folder = files[0].parent
    record = loaded[0][1]
    whole = result.LEDGER.concatenate(table for table, _ in loaded)
    merged = result.from_ledger(whole, found_at(folder, record.data_path))
    return merged.of_model_at(found_at(folder, record.model_path))


def _shared(shard: _Shard) -> dict[str, object]:
    """The settings that all shards of a run share."""
    shared = without(shard.settings, INSTRUMENTS[shard.instrument].result.LEDGER.COUNTS)
    return {**shared, "shards": shard.record.total, "parts": shard.record.parts}
