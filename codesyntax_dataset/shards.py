"""Labelling in shards of functions: in this process, in several, or on a cluster, always in the
order of the source.

Only some shards are in memory at any time, however large a source is.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from codesyntax_dataset import corpus
from codesyntax_dataset.errors import ArgumentError, DatasetError, UnknownName
from codesyntax_dataset.features import FEATURES, PAIR_FEATURES
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.pairs import Pair, certify, to_rows
from codesyntax_dataset.pairs.rivals import Rivals
from codesyntax_dataset.protocol import ENGINES
from codesyntax_dataset.schema import SourceFunction
from codesyntax_dataset.twins import COLUMN as TWIN
from codesyntax_dataset.twins import Twins

SHARD = 64
"""Functions per shard, the smallest unit of work of a process."""

CHARACTERS = 1 << 20
"""Characters of code after which a shard ends."""

_AHEAD = 4  # shards per process that wait to be labelled or written

_ANSWER = 10.0  # seconds until a cluster must answer
_STORE = 1 << 28  # bytes, of what waits in Ray's memory


_OF_PAIR = [field.name for field in fields(Pair)]


def _pair_of(row: Mapping[str, Any]) -> Pair:
    return Pair(**{name: row[name] for name in _OF_PAIR})


class Labelled(NamedTuple):
    """The rows of a shard, and for each that has no labels, or each pair left out, the reason and
    where it is."""

    rows: pa.RecordBatch
    reasons: list[tuple[str, str]]


Engine = Callable[[Iterable[SourceFunction], str], Iterator[Labelled]]
"""Labels functions for a config: shard by shard, in order. Raises DatasetError for labels that do
not fit the code."""


@contextmanager
def engine(name: str, processes: int | None) -> Iterator[Engine]:
    """The engine of a name in `ENGINES`, with so many processes; by default one, and as many as it
    can on Ray.

    Raises UnknownName for another name, and ArgumentError if Ray is not installed, or decides
    itself how many.
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    with _on_ray(processes) if name == "ray" else _local(processes or 1) as label:

        def labelled(functions: Iterable[SourceFunction], config: str) -> Iterator[Labelled]:
            rows = label(functions, config)
            if variant_of(config).pairs:
                return balanced(rows, language_of(config).name)
            return with_twins(rows)

        yield labelled


@contextmanager
def _local(processes: int) -> Iterator[Engine]:
    """An engine in this process, or in several."""
    if processes == 1:
        yield lambda functions, config: (label_shard(shard, config) for shard in shards(functions))
        return
    # it knows registered languages
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    with ProcessPoolExecutor(processes, context, _end_with_parent) as pool:

        def label(functions: Iterable[SourceFunction], config: str) -> Iterator[Labelled]:
            try:
                futures = (pool.submit(label_shard, shard, config) for shard in shards(functions))
                for future in ahead(futures, _AHEAD * processes):
                    yield future.result()
            except BrokenProcessPool as error:
                raise DatasetError(
                    "a labelling process was killed, perhaps because memory ran out: try fewer processes (--num-proc)"
                ) from error

        yield label


@contextmanager
def _on_ray(processes: int | None) -> Iterator[Engine]:
    """An engine on the Ray cluster at RAY_ADDRESS, or else on one that runs here for this build
    alone.

    A task whose worker dies is run again by Ray, three times at most.
    """
    # no dependency of this package: only those who have a cluster need it
    if find_spec("ray") is None:
        raise ArgumentError(
            "the engine ray needs Ray, which is not installed: pip install -e '.[ray]'"
        )
    address = os.environ.get("RAY_ADDRESS")
    if address and processes is not None:
        raise ArgumentError(
            "the cluster at RAY_ADDRESS sets the number of processes: leave out --num-proc"
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # sends nothing
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the first is raised here
    # it listens on all interfaces, so that without a token anybody could run code here
    if not address:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray: Any = import_module("ray")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address:
            host, _, port = address.rpartition(":")
            socket.create_connection(
                (host, int(port)), _ANSWER
            ).close()  # Ray would try for minutes
            ray.init(address, **quiet)
        else:
            ray.init(
                "local",
                num_cpus=processes,
                include_dashboard=False,
                object_store_memory=_STORE,
                **quiet,
            )
    except Exception as error:  # of many types
        where = f" at RAY_ADDRESS={address} (expected HOST:PORT)" if address else ""
        raise DatasetError(f"Ray{where} cannot be used: {' '.join(str(error).split())}") from error
    try:
        remote = ray.remote(label_shard)
        workers = int(ray.cluster_resources().get("CPU", 1))

        def label(functions: Iterable[SourceFunction], config: str) -> Iterator[Labelled]:
            try:
                begun = (remote.remote(shard, config) for shard in shards(functions))
                for labelled in ahead(begun, _AHEAD * workers):
                    yield ray.get(labelled)
            except ray.exceptions.RayTaskError as error:  # raised by what ran there
                raise error.cause from error
            except ray.exceptions.RayError as error:
                raise DatasetError(
                    f"Ray could not annotate: {' '.join(str(error).split())[:300]}"
                ) from error

        yield label
    finally:
        ray.shutdown()


def label_shard(shard: list[SourceFunction], config: str) -> Labelled:
    """Label the functions of one shard, of which each has its id."""
    variant, rows, reasons = variant_of(config), [], []
    if variant.pairs:
        for function in shard:
            of_function, left_out = to_rows(function)
            rows += of_function
            reasons += [(reason, f"function {function.id} ({function.url})") for reason in left_out]
        return Labelled(
            pa.RecordBatch.from_pylist(rows, schema=PAIR_FEATURES.arrow_schema), reasons
        )
    for function in shard:
        labelled, annotation, reason = corpus.label(function, variant)
        rows.append(corpus.to_row(labelled, annotation))
        if reason:
            reasons.append(
                (
                    reason.reason,
                    f"function {function.id} ({function.url}){reason.where and f' at {reason.where}'}",
                )
            )
    return Labelled(pa.RecordBatch.from_pylist(rows, schema=FEATURES.arrow_schema), reasons)


def with_twins(labelled: Iterable[Labelled]) -> Iterator[Labelled]:
    """The functions of a split, in order, with the first one of which each is a near copy."""
    twins = Twins()
    for rows, reasons in labelled:
        codes = zip(rows["id"].to_pylist(), rows["code"].to_pylist())
        first = pa.array([twins.first_of(*function) for function in codes], pa.int64())
        yield Labelled(rows.set_column(rows.schema.names.index(TWIN), TWIN, first), reasons)


_SAID = ("certified", "prefix", "refused_by")
"""The columns of a pair that only its certificate tells."""


def balanced(labelled: Iterable[Labelled], language: str) -> Iterator[Labelled]:
    """The certified pairs on which rivals are at chance, in order.

    Pairs wait on disk, as only all of them together tell which these are. Parsers are asked of
    those that would be kept, and where they refuse some, of those that take their places.
    """
    rivals, repositories = Rivals(), set()
    # a slice would keep all rows in memory
    nothing = pa.RecordBatch.from_pylist([], schema=PAIR_FEATURES.arrow_schema)
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_stream(file, PAIR_FEATURES.arrow_schema) as writer:
            for rows, reasons in labelled:
                writer.write_batch(rows)
                repositories.update(rows["repo"].to_pylist())
                yield Labelled(nothing, reasons)

        def waiting() -> Iterator[tuple[pa.RecordBatch, list[dict[str, Any]]]]:
            file.seek(0)
            with pa.ipc.open_stream(file) as reader:
                for rows in reader:
                    yield rows, rows.to_pylist()

        origin = "repo" if len(repositories) > 1 else "path"
        for _, rows in waiting():
            for (from_, good), _ in groupby(rows, itemgetter(origin, "good")):
                rivals.train(from_, good)
        for _, rows in waiting():
            rivals.score(
                (row["id"], row[origin], row["phenomenon"], row["good"], row["bad"]) for row in rows
            )
        # without the texts, which take kilobytes a pair
        certified: dict[str, tuple[str | bool, ...] | str] = {}
        refused: set[str] = set()
        while new := (balanced_ids := rivals.kept(refused)) - certified.keys():
            for _, rows in waiting():
                asked = [row for row in rows if row["id"] in new]
                verdicts = certify([_pair_of(row) for row in asked], language)
                said = (
                    pair if isinstance(pair, str) else tuple(getattr(pair, name) for name in _SAID)
                    for pair in verdicts
                )
                certified |= zip((row["id"] for row in asked), said)
            refused |= {id_ for id_ in new if isinstance(certified[id_], str)}
        for _, rows in waiting():
            left_out, pairs = [], []
            for row in rows:
                id_, said_of = row["id"], certified.get(row["id"])
                if isinstance(said_of, str):
                    left_out.append((said_of, id_))
                elif said_of is None or id_ not in balanced_ids:
                    left_out.append(
                        (f"a 5-gram model {rivals.preferred[id_]}, and no pair balances it", id_)
                    )
                else:
                    pairs.append(row | dict(zip(_SAID, said_of)))
            yield Labelled(
                pa.RecordBatch.from_pylist(pairs, schema=PAIR_FEATURES.arrow_schema), left_out
            )


def shards(functions: Iterable[SourceFunction]) -> Iterator[list[SourceFunction]]:
    """The functions in shards of `SHARD`, or fewer if they are long."""
    shard: list[SourceFunction] = []
    for function in functions:
        shard.append(function)
        if len(shard) == SHARD or sum(len(function.code) for function in shard) >= CHARACTERS:
            yield shard
            shard = []
    if shard:
        yield shard


def ahead(begun: Iterable[Any], most: int) -> Iterator[Any]:
    """The items of `begun`, of which up to `most` are drawn ahead of the one that is yielded."""
    waiting: deque[Any] = deque()
    for item in begun:
        waiting.append(item)
        if len(waiting) > most:
            yield waiting.popleft()
    yield from waiting


def _end_with_parent() -> None:
    """Let a process that annotates end by a signal without a word, and when the one that began it
    was killed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
