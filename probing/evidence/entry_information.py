"""Entries on usable information: what a log-linear choice finds in each function, and what its log-loss is."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from codesyntax_dataset import protocol
from codesyntax_dataset.errors import EntryError
from probing.evidence import entry
from probing.evidence.entry import CompleteRun, Number, Outcome, digest_of
from probing.evidence.entry_relations import RelationEntry, RelationSums
from probing.evidence.usable import MEASURED
from probing.information.result import (
    ATTENTION,
    BOTH,
    DECIMALS,
    LEFT_OUT,
    VERSION,
    WORDS,
    InformationResult,
    InformationRun,
    InformationSettings,
    signature_of,
)
from probing.runs import records
from probing.runs.records import exactly
from probing.runs.settings import BY_ATTENTION, BY_SUM

_HITS = MEASURED[:4]
_BITS = {WORDS: "words_bits", BOTH: "both_bits"}


class InformationEntrySettings(CompleteRun, InformationSettings):
    """The settings of an information probe of a model."""

    learned_on: entry.Labels
    dtype: entry.Dtype
    edges: Number
    control: Annotated[None, entry.none("a control is not a model")]
    seed: None
    weights: Annotated[str, entry.one_of([protocol.ATTENTION])] = BY_ATTENTION
    pool: Literal["sum"] = BY_SUM
    states: Literal[False] = Field(default=False, exclude=True)


class InformationEntryRun(InformationRun):
    """The circumstances of the probe."""

    family: entry.Family = "unknown"
    transform: entry.Plain
    device: entry.Device


class InformationEntry(RelationEntry):
    """A published entry on what attention adds to words and positions on one config; edges are those drawn.

    `sums`: the edges with the dependent first, by one head and by each choice; and the bits of words and positions, and
    of both.
    """

    ARMS = "score", "words and positions"
    OUTCOMES: ClassVar = {
        "adds": Outcome("bits that attention adds", "bits"),
        "best": Outcome("best head"),
        "attention": Outcome("all heads"),
        "both": Outcome("both"),
        "words": Outcome("words and positions"),
        "open": Outcome("bits that words and positions leave open", "bits"),
    }
    SHOWN = ("adds", "best", "attention", "both", "words")
    SHARED = ("config", "data", "labels", "learned_on", "split", "max_length", "edges", "dtype", "version")
    SHARES = "both"
    SUMS: ClassVar = dict.fromkeys(_HITS, 1) | dict.fromkeys(_BITS.values(), 10**DECIMALS)

    instrument: Literal["information"]
    version: Literal[2]
    settings: InformationEntrySettings
    run: InformationEntryRun
    dropped: Annotated[dict[str, records.Number], exactly(LEFT_OUT)]

    @property
    def signature(self) -> str:
        return str(signature_of(self.settings, int(self.stored("edges").sum())))

    @property
    def shared(self) -> dict[str, str]:
        return super().shared | {"version": str(self.version)}

    def numbers(self) -> str:
        return digest_of(map(self.stored, (ATTENTION, _BITS[BOTH])))

    def baselines(self) -> str:
        return digest_of(map(self.stored, (WORDS, _BITS[WORDS])))

    def beside(self, other: entry.Entry) -> InformationEntry:
        assert isinstance(other, InformationEntry)
        shared = {name: other.sums[name] for name in (WORDS, _BITS[WORDS])}
        return self.model_copy(update={"sums": self.sums | shared})

    def measured(self) -> RelationSums:
        places, edges, stored = super().measured()
        best, attention, words, both, words_bits, both_bits = np.moveaxis(stored, -1, 0)
        hits = (100 * hits for hits in (best, attention, both, words))
        return RelationSums(places, edges, np.stack([words_bits - both_bits, *hits, words_bits], axis=2))

    def _check(self) -> None:
        super()._check()
        edges = self.stored("edges")
        for name in _HITS:
            if (self.stored(name) > edges).any():
                raise EntryError(f"{name} finds more edges than there are")
        for name, of_bits in _BITS.items():
            # an edge whose dependent is not the most likely one costs at least a bit; each is rounded
            if (self.stored(of_bits) < (edges - self.stored(name)) * self.SUMS[of_bits] - edges).any():
                raise EntryError(f"{name} is too sure for so few edges that it finds")


def of_result(result: InformationResult, data: Any = None) -> InformationEntry:
    """The entry of an information result; its functions need no `data`. Raises EntryError for what no board takes."""
    rows = result.ledger.rows
    ranks = {name: rows[f"{name}_rank"] == 0 for name in _HITS}
    bits = {name: rows[name] for name in _BITS.values()}
    edges = np.ones(len(rows))
    return InformationEntry.of(result, {"edges": edges} | ranks | bits, version=VERSION, dropped=result.left_out)
