"""Entries of means over relations: by function, the edges of each relation, and sums over these edges.

Of R relations and F functions, numbers are text, as `probing.evidence.packing` says: `places` (F,) of the functions in
the split; `edges` (R, F), of each relation in each function; and `sums`, each (R, F), in the units of SUMS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field

from codesyntax_dataset.errors import EntryError
from probing.evidence.effect import Effect
from probing.evidence.entry import (
    FunctionShare,
    GroupedEntry,
    GroupScore,
    GroupScores,
    Interval,
    Score,
    Scores,
    digest_of,
)
from probing.evidence.packing import packed, unpacked
from probing.evidence.usable import effects, summed
from probing.information.result import counts
from probing.runs.records import Texts


class RelationSums(NamedTuple):
    """`places` (F,), `edges` (F, R), and the sums of each of OUTCOMES over these edges (F, R, n)."""

    places: np.ndarray
    edges: np.ndarray
    sums: np.ndarray


class RelationEntry(GroupedEntry):
    """The base of entries whose scores are means over the edges of a relation, and over relations.

    `functions`: those with edges; `relations`: those with any, sorted. `SUMS`: the stored ones, each with the number of
    its units in 1.
    """

    GROUP, COUNTED = "relation", "edges"
    SUMS: ClassVar[dict[str, int]]

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
    def read(self) -> int:
        """How many functions were read."""
        return self.functions + sum(self.skips.values())

    @property
    def shared(self) -> dict[str, str]:
        settings = self.settings.model_dump(mode="json", exclude={"model", "revision"})
        return {name: str(value) for name, value in (settings | {"relations": self.relations}).items()}

    def content(self) -> Iterator[np.ndarray]:
        """The functions and their edges."""
        yield from self.measured()[:2]

    def numbers(self) -> str:
        return digest_of(self.stored(name) for name in self.SUMS)

    def stored(self, name: str) -> np.ndarray:
        """The edges, or one of SUMS in its units: (F, R). Raises EntryError for text that does not have them."""
        shape = len(self.relations), self.functions
        text, at = (self.edges, name) if name == "edges" else (self.sums[name], f"sums.{name}")
        return unpacked(text, at, shape[0] * shape[1]).astype(np.int64).reshape(shape).T

    def measured(self) -> RelationSums:
        """The values by function. Raises EntryError for text that does not have them."""
        places = unpacked(self.places, "places", self.functions).astype(np.int64)
        sums = [self.stored(name) / unit for name, unit in self.SUMS.items()]
        return RelationSums(places, self.stored("edges"), np.stack(sums, axis=2))

    def scores(self, beside: Scores | None = None) -> GroupScores:
        _, edges, sums = self.measured()
        counted = np.array([counts(name, edges[:, at].sum()) for at, name in enumerate(self.relations)])
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

    def _cells(self, means: list[Effect]) -> dict[str, Score | None]:
        intervals = [Interval.of(np.array(mean)) for mean in means]
        return {name: interval and Score(interval) for name, interval in zip(self.OUTCOMES, intervals)}

    def by_function(self) -> Iterator[FunctionShare]:
        places, edges, sums = self.measured()
        of_shares = sums[..., list(self.OUTCOMES).index(self.SHARES)] / 100
        for at, name in enumerate(self.relations):
            for place, asked, found in zip(places, edges[:, at], of_shares[:, at]):
                if asked:
                    yield FunctionShare(name, int(place), float(found / asked), int(asked))

    def _check(self) -> None:
        if self.sums.keys() != self.SUMS.keys():
            raise EntryError(f"sums has {', '.join(sorted(self.sums))}, expected {', '.join(self.SUMS)}")
        places, edges, _ = self.measured()
        if (np.diff(places) <= 0).any() or sorted(set(self.relations)) != list(self.relations):
            raise EntryError("places or relations are not in order")
        if not edges.any(axis=0).all() or not edges.any(axis=1).all():
            raise EntryError("a relation or a function has no edge")
        if self.verified and not self.verified.functions <= self.verified.of <= self.read:
            of = f"{self.verified.functions} of {self.verified.of} functions"
            raise EntryError(f"verified is {of}, expected {self.read}")
