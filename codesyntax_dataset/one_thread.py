"""Small products on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Compute many small products with numpy and scipy on one thread within this block: the others
    would wait between them, and keep their cores busy all the while."""
    return _linear_algebra().limit(limits=1)


@cache
def _linear_algebra() -> Any:
    """The libraries that multiply for numpy and scipy; to look for them takes as long as many
    products."""
    import scipy.linalg  # noqa: F401 -- has one of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
