"""Probing again what was probed once: draws of `verify` that cost no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

from probing.attention.ledger import RankLedger
from probing.attention.probe import Probing, Runner
from probing.attention.ranking import RankBounds
from probing.evidence import verify
from probing.evidence.checks import Criterion
from probing.evidence.draw import Draw


def bounds(task: Probing) -> dict[int, np.ndarray]:
    """Function -> what `verify` would find of its ranks: (rules, edges, layers, heads, 3)."""
    listener = partial(RankBounds, slack=verify.SLACK[task.settings.dtype])
    found = Runner(task.encoder, task.settings.direction, None).run(task.functions, tqdm(disable=True), listener)
    ends = np.cumsum([len(function.edges) for function in task.functions])
    return {function.index: part for function, part in zip(task.functions, np.split(found, ends[:-1], axis=1))}


@contextmanager
def recorded(found: dict[int, np.ndarray]) -> Iterator[None]:
    """`verify` finds what was found before."""

    class Recorded:
        def __init__(self, *arguments: Any):
            pass

        def run(self, functions: Sequence, *arguments: Any) -> np.ndarray:
            return np.concatenate([found[function.index] for function in functions], axis=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "Runner", Recorded)
        yield


class InMemory(verify.RanksVerifier):
    """Verifies a ledger that is in no file, beside that of the other split."""

    def __init__(self, task: Probing, ledger: RankLedger, counterpart: RankLedger | None):
        self.ledger, self.experiment, self.made = ledger, task, task.provenance
        self._other = counterpart

    @property
    def counterpart(self) -> RankLedger | None:  # type: ignore[override]
        return self._other


def again(
    task: Probing,
    ledger: RankLedger,
    counterpart: RankLedger | None,
    *,
    seed: int | None = None,
    functions: int | None = None,
    everything: bool = False,
) -> tuple[Criterion, Draw]:
    """What `verify` finds of ranks that fit their data."""
    rng = verify.rng_of(ledger.digest(), seed)
    return InMemory(task, ledger, counterpart).again(functions, everything, rng)
