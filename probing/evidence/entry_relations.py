"""Entries of means over relations: by function, the edges of each relation, and sums over these edges.

Of R relations and F functions, numbers are text, as `probing.evidence.entry` says: `places` (F,) of the functions in
the split; `edges` (R, F), of each relation in each function; and `sums`, each (R, F), in the units of SUMS.

They are on usable information, what a log-linear choice finds in each function, and what its log-loss is; and on
minimal pairs, in how many pairs of each repository a language model finds the good text likelier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field

from codesyntax_dataset import protocol
from codesyntax_dataset.errors import EntryError
from probing.evidence import entry
from probing.evidence.effect import MEASURED, Effect, accuracies, effects, summed
from probing.evidence.entry import GroupedEntry, GroupScore, GroupScores, Outcome, packed, unpacked
from probing.instruments.information import result as information
from probing.instruments.information.result import BOTH, WORDS, InformationResult, InformationRun, InformationSettings
from probing.instruments.likelihood import result as likelihood
from probing.instruments.likelihood.result import SCORES, PreferenceResult, PreferenceRun, PreferenceSettings
from probing.runs import records
from probing.runs.records import Texts, exactly
from probing.runs.settings import BY_ATTENTION, BY_SUM


class RelationSums(NamedTuple):
    """`places` (F,), `edges` (F, R), and the sums of each of OUTCOMES over these edges (F, R, n)."""

    places: np.ndarray
    edges: np.ndarray
    sums: np.ndarray


class RelationEntry(GroupedEntry):
    """The base of entries whose scores are means over the edges of a relation, and over relations.

    `functions`: those with edges; `relations`: those with any, sorted. `SUMS`: the stored ones, each with the number of
    its units in 1; `HITS`: those of them that count edges, which are told in percent.
    """

    GROUP, COUNTED = "relation", "edges"
    SUMS: ClassVar[dict[str, int]]
    HITS: ClassVar[tuple[str, ...]] = ()

    relations: Annotated[Texts, Field(min_length=1, max_length=1000)]
    places: str
    edges: str
    sums: dict[str, str]

    @classmethod
    def of(cls, result: Any, columns: Mapping[str, np.ndarray], **more: Any) -> Self:
        """The entry of a result. `columns`: "edges" and each of SUMS -> that of each row of the ledger, (N,).

        Raises EntryError for what no board takes.
        """
        ledger = result.ledger
        if not len(ledger):
            raise EntryError("there is no edge")
        names, found = summed(ledger, [columns[name] for name in ("edges", *cls.SUMS)])
        order = np.argsort(names)
        edges, *sums = found[:, order].transpose(2, 1, 0)
        fields = {
            "functions": len(found),
            "ledger": ledger.digest(),
            "relations": [names[at] for at in order],
            "places": packed(np.unique(ledger.rows[ledger.CLUSTER])),
            "edges": packed(edges),
            "sums": {name: packed(np.round(unit * of)) for (name, unit), of in zip(cls.SUMS.items(), sums)},
        }
        return cls.of_result(result, **fields, **more)

    @property
    def verifiable(self) -> tuple[int, int]:
        return 1, self.functions + sum(self.skips.values())

    @property
    def shared(self) -> dict[str, str]:
        settings = self.settings.model_dump(mode="json", exclude={"model", "revision"})
        own = {name: getattr(self, name) for name in ("relations", "version") if name in type(self).model_fields}
        return {name: str(value) for name, value in (settings | own).items()}

    def content(self) -> Iterator[np.ndarray]:
        """The functions and their edges."""
        yield from self.measured()[:2]

    def numbers(self) -> str:
        return entry.digest_of(self.stored(name) for name in self.SUMS)

    def stored(self, name: str) -> np.ndarray:
        """The edges, or one of SUMS in its units: (F, R). Raises EntryError for text that does not have them."""
        shape = len(self.relations), self.functions
        text, at = (self.edges, name) if name == "edges" else (self.sums[name], f"sums.{name}")
        return unpacked(text, at, shape[0] * shape[1]).astype(np.int64).reshape(shape).T

    def measured(self) -> RelationSums:
        """The values by function. Raises EntryError for text that does not have them."""
        places = unpacked(self.places, "places", self.functions).astype(np.int64)
        scale = {name: 100 if name in self.HITS else 1 for name in self.SUMS}
        sums = [scale[name] * (self.stored(name) / unit) for name, unit in self.SUMS.items()]
        return RelationSums(places, self.stored("edges"), np.stack(sums, axis=2))

    def scores(self, beside: entry.Scores | None = None) -> GroupScores:
        _, edges, sums = self.measured()
        counted = np.array([information.counts(name, edges[:, at].sum()) for at, name in enumerate(self.relations)])
        groups = {}
        for at, name in enumerate(self.relations):
            there = edges[:, at] > 0
            cells = self._cells(self._of_group(edges[there, at], sums[there, at]))
            known = {name: score for name, score in cells.items() if score is not None}
            groups[name] = GroupScore(int(there.sum()), int(edges[:, at].sum()), known)
        shares = np.zeros((len(self.OUTCOMES), len(edges)), np.float32)
        if not counted.any():
            return GroupScores(dict.fromkeys(self.OUTCOMES), shares, groups, {})
        shares[:] = (sums[:, counted] / edges[:, counted].sum(axis=0)[:, None]).sum(axis=1).T / counted.sum()
        return GroupScores(self._cells(effects(edges[:, counted], sums[:, counted])), shares, groups, {})

    def _of_group(self, edges: np.ndarray, sums: np.ndarray) -> list[Effect]:
        """The means of a relation over its edges (f,) in the functions that have it, from sums over these (f, n)."""
        return effects(edges[:, None], sums[:, None])

    def _cells(self, means: list[Effect]) -> dict[str, entry.Score | None]:
        intervals = [entry.Interval.of(np.array(mean)) for mean in means]
        return {name: interval and entry.Score(interval) for name, interval in zip(self.OUTCOMES, intervals)}

    def by_function(self) -> Iterator[entry.FunctionShare]:
        places, edges, sums = self.measured()
        of_shares = sums[..., list(self.OUTCOMES).index(self.SHARES)] / 100
        for at, name in enumerate(self.relations):
            for place, asked, found in zip(places, edges[:, at], of_shares[:, at]):
                if asked:
                    yield entry.FunctionShare(name, int(place), float(found / asked), int(asked))

    def problems(self) -> Iterator[tuple[Any, str]]:
        stored = ", ".join(sorted(self.sums))
        yield self.sums.keys() != self.SUMS.keys(), f"sums has {stored}, expected {', '.join(self.SUMS)}"
        places, edges, _ = self.measured()
        wrong = (np.diff(places) <= 0).any() or sorted(set(self.relations)) != list(self.relations)
        yield wrong, "places or relations are not in order"
        each_has_one = edges.any(axis=0).all() and edges.any(axis=1).all()
        yield not each_has_one, "a relation or a function has no edge"
        yield from super().problems()
        for name in self.HITS:
            wrong = (self.stored(name) > self.SUMS[name] * edges).any()
            yield wrong, f"{name} counts more {self.COUNTED} than there are"


_BITS = {WORDS: "words_bits", BOTH: "both_bits"}


class InformationEntrySettings(entry.ModelRun, InformationSettings):
    """The settings of an information probe of a model."""

    learned_on: entry.Labels
    edges: entry.Number
    weights: Annotated[str, entry.one_of([protocol.ATTENTION])] = BY_ATTENTION
    pool: Literal["sum"] = BY_SUM
    states: Literal[False] = Field(default=False, exclude=True)


class InformationEntryRun(entry.EntryRun, InformationRun):
    """The circumstances of the probe."""

    transform: entry.Plain


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
    SUMS: ClassVar = dict.fromkeys(MEASURED[:4], 1) | dict.fromkeys(_BITS.values(), 10**information.DECIMALS)
    HITS = MEASURED[:4]

    instrument: Literal["information"]
    version: Literal[3]
    settings: InformationEntrySettings
    run: InformationEntryRun
    dropped: Annotated[dict[str, records.Number], exactly(information.LEFT_OUT)]

    @property
    def signature(self) -> str:
        values = {"edges": int(self.stored("edges").sum())}
        return str(information.InformationProvenance.signature_of(self.settings, values))

    def numbers(self) -> str:
        return entry.digest_of(map(self.stored, (information.ATTENTION, _BITS[BOTH])))

    def baselines(self) -> str:
        return entry.digest_of(map(self.stored, (WORDS, _BITS[WORDS])))

    def beside(self, other: entry.Entry) -> InformationEntry:
        assert isinstance(other, InformationEntry)
        shared = {name: other.sums[name] for name in (WORDS, _BITS[WORDS])}
        return self.model_copy(update={"sums": self.sums | shared})

    def measured(self) -> RelationSums:
        places, edges, stored = super().measured()
        best, attention, words, both, words_bits, both_bits = np.moveaxis(stored, -1, 0)
        measured = words_bits - both_bits, best, attention, both, words, words_bits
        return RelationSums(places, edges, np.stack(measured, axis=2))

    def problems(self) -> Iterator[tuple[Any, str]]:
        yield from super().problems()
        edges = self.stored("edges")
        for name, of_bits in _BITS.items():
            # an edge whose dependent is not the most likely one costs at least a bit; each is rounded
            least = (edges - self.stored(name)) * self.SUMS[of_bits] - edges
            yield (self.stored(of_bits) < least).any(), f"{name} is too sure for so few edges that it finds"


def of_information(result: InformationResult, data: Any = None) -> InformationEntry:
    """The entry of an information result; its functions need no `data`. Raises EntryError for what no board takes."""
    rows = result.ledger.rows
    ranks = {name: rows[f"{name}_rank"] == 0 for name in InformationEntry.HITS}
    bits = {name: rows[name] for name in _BITS.values()}
    edges = np.ones(len(rows))
    return InformationEntry.of(
        result, {"edges": edges} | ranks | bits, version=information.VERSION, dropped=result.left_out
    )


class PreferenceEntrySettings(entry.ModelRun, PreferenceSettings):
    """The settings of a run of a model over minimal pairs."""


class PreferenceEntryRun(entry.EntryRun, PreferenceRun):
    """The circumstances of the run."""


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
    HITS = SCORES

    instrument: Literal["preference"]
    version: Literal[2]
    settings: PreferenceEntrySettings
    run: PreferenceEntryRun

    @property
    def signature(self) -> str:
        values = {"pairs": int(self.stored("edges").sum())}
        return str(likelihood.PreferenceProvenance.signature_of(self.settings, values))

    @property
    def verifiable(self) -> tuple[int, int]:
        return 1, int(self.stored("edges").sum()) + sum(self.skips.values())

    def _of_group(self, edges: np.ndarray, sums: np.ndarray) -> list[Effect]:
        return accuracies(edges, sums)


def of_preference(result: PreferenceResult, data: Any = None) -> PreferenceEntry:
    """The entry of a result on minimal pairs; it needs no `data`. Raises EntryError for what no board takes."""
    columns = {"edges": np.ones(len(result.ledger)), **dict(zip(SCORES, result.ledger.preferred().T))}
    return PreferenceEntry.of(result, columns, version=likelihood.PreferenceProvenance.VERSION, dropped={})
