"""Progress on standard error: a bar in a terminal, lines elsewhere, nothing if TQDM_DISABLE is set,
as by `--quiet`."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

EVERY = 30
"""Seconds between lines."""

_LINE = "{desc}: {n_fmt} of {total_fmt} {unit}s, {elapsed}, {remaining} left"


def progress(*arguments: Any, main: bool = True, **options: Any) -> tqdm:
    """Progress in the `main` process, with the arguments of tqdm."""
    options["disable"] = not main or bool(os.environ.get("TQDM_DISABLE"))
    return (tqdm if sys.stderr.isatty() else _Lines)(*arguments, **options)


class _Lines(tqdm):
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
