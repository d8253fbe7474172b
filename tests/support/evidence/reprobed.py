"""Probing again what was probed once: draws of `verify` that cost no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.attacks.attack import Attack
from support.attacks.ledgers import forged_rows
from tqdm import tqdm

from probing.evidence import reruns, verify
from probing.evidence.protocols import MODEL
from probing.evidence.verify import Criterion, Draw, Influence, Verifier
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.ranking import RankBounds
from probing.instruments.attention.runner import Runner
from probing.instruments.masking.result import MaskingLedger
from probing.instruments.registry import INSTRUMENTS
from probing.runs.session import Session


def bounds(task: Probing) -> dict[int, np.ndarray]:
    """Function -> what `verify` would find of its ranks: (rules, edges, layers, heads, 3)."""
    listener = partial(RankBounds, slack=reruns.SLACK[task.settings.dtype])
    found = Runner(task.encoder, task.settings.direction, None).run(
        task.functions, tqdm(disable=True), listener
    )
    ends = np.cumsum([len(function.edges) for function in task.functions])
    return {
        function.index: part
        for function, part in zip(task.functions, np.split(found, ends[:-1], axis=1))
    }


_whole_splits = cache(reruns.WholeSplits)  # read once


@contextmanager
def recorded(found: dict[int, np.ndarray]) -> Iterator[None]:
    """`verify` finds what was found before."""

    class Recorded:
        def __init__(self, *arguments: Any):
            pass

        def run(self, functions: Sequence, *arguments: Any) -> np.ndarray:
            return np.concatenate([found[function.index] for function in functions], axis=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reruns, "Runner", Recorded)
        patch.setattr(reruns, "WholeSplits", _whole_splits)
        yield


class InMemory(reruns.RanksVerifier):
    """Verifies a ledger that is in no file, beside that of the other split; all draws have the same influence."""

    def __init__(self, task: Probing, ledger: RankLedger, counterpart: RankLedger | None):
        self.ledger, self.experiment, self.provenance = ledger, task, task.provenance
        self._other = counterpart

    def drawn(
        self, seed: int | None = None, functions: int | None = None, everything: bool = False
    ) -> tuple:
        """What `verify` finds of ranks that fit their data."""
        return self.again(functions, everything, verify.rng_of(self.ledger.digest(), seed))

    def influence(self) -> Influence:
        return self._influence

    @cached_property
    def _influence(self) -> Influence:
        return super().influence()

    @property
    def counterpart(self) -> RankLedger | None:  # type: ignore[override]
        return self._other


class Rows(NamedTuple):
    """What a run finds of every function, in rows: drawn and compared again at no cost."""

    verifier: type[Verifier]
    result: Any
    experiment: Any

    def again(self, rows: np.ndarray, seed: int, **drawn: Any) -> tuple[Criterion, Draw]:
        """What `verify` finds of a ledger with other rows."""
        ledger = type(self.result.ledger)(
            self.result.ledger.names, rows, self.result.ledger.settings
        )
        made = type(self.result).from_ledger(ledger)
        rng = verify.rng_of(ledger.digest(), seed)
        options = {"number": None, "everything": False, **drawn}
        return self.verifier(Path("none"), made, self.experiment).again(rng=rng, **options)


def rerun_once(result: Any, data: Any, model: str) -> Rows:
    """A result whose functions are run again once: its experiment answers with what was found."""
    instrument = INSTRUMENTS[result.instrument]
    provenance = result.PROVENANCE.of(result.ledger)
    session = Session.again("", provenance.settings, model)
    experiment = instrument.experiment.again(provenance, session, data)
    found = experiment.run(experiment.functions, tqdm(disable=True))
    if isinstance(found, MaskingLedger):
        unsure = {}
        tables, counts = experiment.rows(experiment.functions, tqdm(disable=True))
        for function in experiment.functions:
            of = tables.rows["function"] == function.index
            unsure[function.index] = counts[of]

        def rows(part: Sequence, bar: Any) -> tuple[MaskingLedger, np.ndarray]:
            ledgers = [found.only(np.array([function.index])) for function in part]
            whole = MaskingLedger(
                found.names, np.concatenate([of.rows for of in ledgers]), found.settings
            )
            return whole, np.concatenate([unsure[function.index] for function in part])

        experiment.rows = rows
    experiment.run = lambda part, bar: found.only(np.array([function.index for function in part]))
    return Rows(instrument.verifier, result, experiment)


def check_refused(honest: Rows, attack: Attack) -> None:
    """Honest rows are accepted, and those of an attack refused, when all functions are run again."""
    rows = honest.result.ledger.rows
    assert honest.again(rows, 0)[0].passed
    check, _ = honest.again(forged_rows(attack, rows), 0, everything=True)
    assert check.passed is False
    assert re.search(attack.stopped_by, check.finding), check.finding


def means(test: RankLedger, validation: RankLedger) -> np.ndarray:
    """Every published mean, in points: held-out, published and beyond offsets, by each rule and k."""
    return np.concatenate(
        [mean.chosen.hits.mean(MODEL).value for mean in reruns.means(test, validation)]
    )
