"""Labelling in shards of functions: in this process or in several, always in the order of the source.

Only some shards are in memory at any time, however large a source is.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from codesyntax_dataset import corpus
from codesyntax_dataset.builder import FEATURES
from codesyntax_dataset.errors import DatasetError
from codesyntax_dataset.languages import variant_of
from codesyntax_dataset.schema import SourceFunction

SHARD = 64
"""Functions per shard, the smallest unit of work of a process."""

_AHEAD = 4  # shards per process that wait to be labelled or written


class Labelled(NamedTuple):
    """The rows of a shard, and for each that has no labels for a reason, the reason and its id."""

    rows: pa.RecordBatch
    reasons: list[tuple[str, int]]


Engine = Callable[[Iterable[SourceFunction], str], Iterator[Labelled]]
"""Labels functions for a config: shard by shard, in order. Raises DatasetError for labels that do not fit the code."""


@contextmanager
def local(processes: int) -> Iterator[Engine]:
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
                    "a process that annotates was killed, perhaps because memory ran out: try fewer (--num-proc)"
                ) from error

        yield label


def label_shard(shard: list[SourceFunction], config: str) -> Labelled:
    """Label the functions of one shard, of which each has its id."""
    variant, rows, reasons = variant_of(config), [], []
    for function in shard:
        labelled, annotation, reason = corpus.label(function, variant)
        rows.append(corpus.to_row(labelled, annotation))
        if reason:
            assert function.id is not None  # `corpus.read` gives one to each
            reasons.append((reason, function.id))
    return Labelled(pa.RecordBatch.from_pylist(rows, schema=FEATURES.arrow_schema), reasons)


def shards(functions: Iterable[SourceFunction]) -> Iterator[list[SourceFunction]]:
    remaining = iter(functions)
    while shard := list(islice(remaining, SHARD)):
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
    """Let a process that annotates end by an interrupt without a word, and when the one that began it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
