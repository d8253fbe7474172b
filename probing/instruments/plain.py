"""A plain instrument says what its rows are, how a model gives them, and which hits follow; all
else is here.

    class CountLedger(PlainLedger):
        INSTRUMENT, GROUP_COLUMN, ROW = ...
        def hits(self): ...

    class CountResult(PlainResult):
        LEDGER = CountLedger

    class Counting(Experiment):
        RESULT = CountResult
        def prepare(self): ...
        def run(self, part, bar): ...

    INSTRUMENTS["counting"] = Instrument("counts:Counting", "counts:CountResult")

It is resumed, shared out in shards, cached, merged, scored, verified and reported as the others
are.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from probing.runs.ledger_file import RowLedger
from probing.runs.saved import Provenance, Result
from probing.runs.settings import RunSettings, Signature
from probing.stats.hits import Hits


class PlainLedger(RowLedger):
    """Rows by function and group.

    INSTRUMENT: its name; GROUP_COLUMN: the column of the groups; ROW: the type of rows, with the
    columns `function` and GROUP_COLUMN.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.COMMAND = cls.INSTRUMENT
        cls.ORDER = cls.DICTIONARY_COLUMNS = "function", cls.GROUP_COLUMN

    @abstractmethod
    def hits(self) -> dict[str, Hits]:
        """What is measured -> who gets how much of it, by function and group."""


class PlainSettings(RunSettings):
    """Those of all runs, and the instrument, which files are named after."""

    instrument: str

    @property
    def deviations(self) -> list[str]:
        return [self.instrument]


class PlainProvenance(Provenance):
    VERSION = 1

    settings: PlainSettings
    version: int

    def signature(self, **counts: int) -> Signature:
        settings = self.settings
        return Signature.of(settings.instrument, settings, **counts, version=self.version)


class PlainResult(Result[PlainLedger]):
    """`scores`: what is measured -> system -> group -> its score, in the unit of the hits. LEDGER:
    of its rows."""

    PROVENANCE = PlainProvenance

    settings: PlainSettings
    scores: dict[str, dict[str, dict[str, float]]]

    @classmethod
    def measured(
        cls, ledger: PlainLedger, provenance: PlainProvenance
    ) -> tuple[dict[str, int], dict[str, Any]]:
        scores = {
            name: {
                system: dict(zip(hits.names, hits.scores(system)[0].tolist()))
                for system in hits.systems
            }
            for name, hits in ledger.hits().items()
        }
        functions = len(np.unique(ledger.function))
        return {"rows": len(ledger)}, {"functions": functions, "scores": scores}

    def hits(self) -> dict[str, Hits]:
        """Those of the ledger, by the clusters that intervals are over."""
        repositories = self.ledger.repositories
        return {
            name: replace(hits, repositories=repositories)
            for name, hits in self.ledger.hits().items()
        }
