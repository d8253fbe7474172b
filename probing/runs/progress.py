"""Progress on standard error: a bar in a terminal, lines elsewhere, nothing if TQDM_DISABLE is set,
as by `--quiet`."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np
from tqdm import tqdm

EVERY = 30
"""Seconds between lines."""

_LINE = "{desc}: {n_fmt} of {total_fmt} {unit}s, {elapsed}, {remaining} left"


def progress(
    *arguments: Any, main: bool = True, costs: np.ndarray | None = None, **options: Any
) -> tqdm:
    """Progress in the `main` process, with the arguments of tqdm.

    `costs`: of each item that is left at first, in order; the time left is by them.
    """
    options["disable"] = not main or bool(os.environ.get("TQDM_DISABLE"))
    bar = (_ByCosts if sys.stderr.isatty() else _Lines)(*arguments, **options)
    if costs is not None:
        bar.spent = np.append(0, costs.cumsum())
    return bar


class _ByCosts(tqdm):
    """`spent`: the cost of so many items."""

    spent: np.ndarray | None = None

    @property
    def format_dict(self) -> MutableMapping[str, Any]:
        known = super().format_dict
        if self.spent is None:
            return known
        done = known["n"] - known["initial"]
        spent = self.spent[min(done, len(self.spent) - 1)]
        left, elapsed = self.spent[-1] - spent, known["elapsed"]
        # the time left is what is left to do, by this rate
        rate = (known["total"] - known["n"]) * spent / (left * elapsed) if left * elapsed else None
        return {**known, "rate": rate or None}


class _Lines(_ByCosts):
    """A line at the start, every 30 seconds and at the end."""

    def __init__(self, *arguments: Any, **options: Any):
        options |= {
            "mininterval": EVERY,
            "miniters": 1,
            "bar_format": _LINE,
            "leave": True,
            "file": io.StringIO(),
        }
        super().__init__(*arguments, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        print(str(self), file=sys.stderr, flush=True)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """No progress, no messages of ours below errors and no warnings of libraries, until the block
    ends."""
    before = os.environ.get("TQDM_DISABLE")
    ours = logging.getLogger("probing")
    level = ours.level
    os.environ["TQDM_DISABLE"] = "1"
    ours.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        ours.setLevel(level)
        if before is None:
            del os.environ["TQDM_DISABLE"]
        else:
            os.environ["TQDM_DISABLE"] = before
