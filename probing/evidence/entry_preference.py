"""Entries on minimal pairs: in how many pairs of each repository a language model finds the good text likelier."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from codesyntax_dataset.errors import EntryError
from probing.evidence import entry
from probing.evidence.effect import Effect
from probing.evidence.entry import CompleteRun, Outcome
from probing.evidence.entry_relations import RelationEntry, RelationSums
from probing.evidence.preferred import accuracies
from probing.prediction.preference_result import (
    SCORES,
    VERSION,
    PreferenceProvenance,
    PreferenceResult,
    PreferenceRun,
    PreferenceSettings,
)


class PreferenceEntrySettings(CompleteRun, PreferenceSettings):
    """The settings of a run of a model over minimal pairs."""

    dtype: entry.Dtype
    control: Annotated[None, entry.none("a control is not a model")]
    seed: None


class PreferenceEntryRun(PreferenceRun):
    """The circumstances of the run."""

    family: entry.Family = "unknown"
    device: entry.Device


class PreferenceEntry(RelationEntry):
    """A published entry on the minimal pairs of one config. Its `functions` are repositories, its `relations`
    phenomena, and its `edges` pairs; `sums`: halves of a pair, two where the good text is likelier, one where both tie.
    """

    GROUP, COUNTED, UNITS = "phenomenon", "pairs", "repositories"
    ARMS = "accuracy", ""
    OUTCOMES: ClassVar = {"whole": Outcome("whole texts"), "place": Outcome("the place where they differ")}
    SHOWN = SCORES
    SHARED = ("config", "data", "labels", "split", "max_length", "dtype", "version")
    SHARES = "whole"
    SUMS: ClassVar = dict.fromkeys(SCORES, 2)

    instrument: Literal["preference"]
    version: Literal[2]
    settings: PreferenceEntrySettings
    run: PreferenceEntryRun

    @property
    def signature(self) -> str:
        return str(PreferenceProvenance.signature_of(self.settings, {"pairs": int(self.stored("edges").sum())}))

    @property
    def read(self) -> int:
        return int(self.stored("edges").sum()) + sum(self.skips.values())

    @property
    def shared(self) -> dict[str, str]:
        return super().shared | {"version": str(self.version)}

    def measured(self) -> RelationSums:
        places, pairs, sums = super().measured()
        return RelationSums(places, pairs, 100 * sums)

    def _of_group(self, edges: np.ndarray, sums: np.ndarray) -> list[Effect]:
        return accuracies(edges, sums)

    def _check(self) -> None:
        super()._check()
        for name in SCORES:
            if (self.stored(name) > 2 * self.stored("edges")).any():
                raise EntryError(f"{name} counts more pairs than there are")


def of_result(result: PreferenceResult, data: Any = None) -> PreferenceEntry:
    """The entry of a result on minimal pairs; it needs no `data`. Raises EntryError for what no board takes."""
    columns = {"edges": np.ones(len(result.ledger)), **dict(zip(SCORES, result.ledger.preferred().T))}
    return PreferenceEntry.of(result, columns, version=VERSION, dropped={})
