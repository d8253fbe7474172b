"""Labelling in shards of functions: in this process, in several, or on a cluster, always in the order of the source.

Only some shards are in memory at any time, however large a source is.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import pyarrow as pa

from codesyntax_dataset import corpus
from codesyntax_dataset.builder import FEATURES
from codesyntax_dataset.errors import ArgumentError, DatasetError, UnknownName
from codesyntax_dataset.languages import variant_of
from codesyntax_dataset.protocol import ENGINES
from codesyntax_dataset.schema import SourceFunction

SHARD = 64
"""Functions per shard, the smallest unit of work of a process."""

CHARACTERS = 1 << 20
"""Characters of code after which a shard ends."""

_AHEAD = 4  # shards per process that wait to be labelled or written

_ANSWER = 10.0  # seconds until a cluster must answer
_STORE = 1 << 28  # bytes, of what waits in Ray's memory


class Labelled(NamedTuple):
    """The rows of a shard, and for each that has no labels for a reason, the reason and where it is."""

    rows: pa.RecordBatch
    reasons: list[tuple[str, str]]


Engine = Callable[[Iterable[SourceFunction], str], Iterator[Labelled]]
"""Labels functions for a config: shard by shard, in order. Raises DatasetError for labels that do not fit the code."""


def engine(name: str, processes: int | None) -> AbstractContextManager[Engine]:
    """The engine of a name in `ENGINES`, with so many processes; by default one, and as many as it can on Ray.

    Raises UnknownName for another name, and ArgumentError if Ray is not installed, or decides itself how many.
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    return _on_ray(processes) if name == "ray" else _local(processes or 1)


@contextmanager
def _local(processes: int) -> Iterator[Engine]:
    """An engine in this process, or in several."""
    if processes == 1:
        yield lambda functions, config: (label_shard(shard, config) for shard in shards(functions))
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)  # it knows registered languages
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
    """An engine on the Ray cluster at RAY_ADDRESS, or else on one that runs here for this build alone.

    A task whose worker dies is run again by Ray, three times at most.
    """
    if find_spec("ray") is None:  # no dependency of this package: only those who have a cluster need it
        raise ArgumentError("the engine ray needs Ray, which is not installed: pip install codesyntax[ray]")
    address = os.environ.get("RAY_ADDRESS")
    if address and processes is not None:
        raise ArgumentError("the cluster at RAY_ADDRESS sets the number of processes: leave out --num-proc")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # sends nothing
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the first is raised here
    if not address:  # it listens on all interfaces, so that without a token anybody could run code here
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray: Any = import_module("ray")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address:
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), _ANSWER).close()  # Ray would try for minutes
            ray.init(address, **quiet)
        else:
            ray.init("local", num_cpus=processes, include_dashboard=False, object_store_memory=_STORE, **quiet)
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
                raise DatasetError(f"Ray could not annotate: {' '.join(str(error).split())[:300]}") from error

        yield label
    finally:
        ray.shutdown()


def label_shard(shard: list[SourceFunction], config: str) -> Labelled:
    """Label the functions of one shard, of which each has its id."""
    variant, rows, reasons = variant_of(config), [], []
    for function in shard:
        labelled, annotation, reason = corpus.label(function, variant)
        rows.append(corpus.to_row(labelled, annotation))
        if reason:
            reasons.append((reason.reason, f"function {function.id}{reason.where and f' at {reason.where}'}"))
    return Labelled(pa.RecordBatch.from_pylist(rows, schema=FEATURES.arrow_schema), reasons)


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
    """Let a process that annotates end by a signal without a word, and when the one that began it was killed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
