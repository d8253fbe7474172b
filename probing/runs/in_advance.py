"""Work in a thread beside the main one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def in_advance(work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """What `work` makes of each item, in order, in a thread: of one item while the one before is
    used, and the one after is made.

    When it is closed, or an item fails, work that began is done first.
    """
    with ThreadPoolExecutor(1) as thread:
        begun: deque[Future[T]] = deque()
        for item in items:
            begun.append(thread.submit(work, item))
            if len(begun) > 1:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
