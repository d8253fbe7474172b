"""Progress bars: only in terminals, and not if TQDM_DISABLE is set, as `codesyntax --quiet` does."""

from __future__ import annotations

import os
from typing import Any

from tqdm.auto import tqdm


def progress(*arguments: Any, main: bool = True, **options: Any) -> tqdm:
    """A progress bar in the `main` process, with the arguments of tqdm."""
    shown = main and not os.environ.get("TQDM_DISABLE")
    options["disable"] = None if shown else True  # None: where there is no terminal
    return tqdm(*arguments, **options)
