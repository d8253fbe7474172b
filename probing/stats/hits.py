"""Hits: who gets how much right, by cluster and group. Every score, interval, test, entry and board
is made from them.

Every claim has one form: *systems* (a model, a baseline, a filler, a control, a copy with random
weights) are scored on `n` things of a *group* (a relation, a node type, a phenomenon) in a
*cluster* (a function or a repository). A system's score on a group is the sum of what it gets right
over the number of things; its mean is over groups, each with the same weight, whatever its number
of things.

A group is in a part of the clusters, so numbers are kept group by group, for its clusters only.

*The family of a claim* is known here alone: whoever asks for a difference gets its p corrected, so
that one effect has one p wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import ArgumentError, LedgerError
from probing.runs.clusters import Clusters
from probing.stats.intervals import (
    FEW_CLUSTERS,
    Estimate,
    agreeing,
    corrected,
    differing,
    influence_of,
    lone_influence,
    mean_estimate,
    paired_p,
    wilson,
    wilson_difference,
    with_variance,
)

PERCENT_UNIT = "percent"
"""The unit of hits, which are counted: a thing is hit or not, and a score is a percentage."""

SHARE_UNIT = "share"
"""The unit of amounts between 0 and 1, such as similarities."""

Redrawn = Callable[[Sequence[str], Sequence[Any]], np.ndarray]
"""The means over some groups by each of several choices of a system and by measures: (draws, M)."""

Measure = Hashable
"""By what a system is scored, such as a rule and k, or an outcome."""


@dataclass(frozen=True, eq=False)
class Group:
    """A group in the f clusters that have it.

    `places` (f,): of these among all clusters; `n` int64 (f,): its things; `sums`: system -> what
    it gets right by M measures, (M, f), in as few bytes as hold them: `gained` is for sums and
    differences. `worth`: where things are weighted, `n` are sums of
    weights, and this is Kish's effective number of things (1965, Survey Sampling): the square of
    the sum over the sum of squares.
    """

    places: np.ndarray
    n: np.ndarray
    sums: Mapping[str, np.ndarray]
    worth: float | None = None

    @property
    def total(self) -> int:
        return int(self.n.sum())

    @property
    def few(self) -> bool:
        """True if it is in too few clusters for an interval."""
        return len(self.places) < FEW_CLUSTERS

    def gained(self, system: str, against: str | None) -> np.ndarray:
        """What a system gets right, or how much more than another: (M, f)."""
        sums = self.sums[system]
        gained = sums.astype(np.result_type(sums, np.int32))
        return gained if against is None else gained - self.sums[against]

    def among(self, clusters: np.ndarray, measures: np.ndarray | slice = slice(None)) -> Group:
        """In some of its clusters, bool (f,), and by some measures, places (M,)."""
        sums = {system: of_all[measures][:, clusters] for system, of_all in self.sums.items()}
        n, worth = self.n[clusters], self.worth
        if worth is not None:
            worth *= float(n.sum() / self.total)
        return Group(self.places[clusters], n, sums, worth)


class _Mean(NamedTuple):
    """A mean or difference by M measures: its `value` (M,), what each cluster adds to it, `added`
    (M, F), the `influence` of each on it (M, F), the `share` of each in it (F,), and what of that
    is in groups in which the cluster adds anything, `differs` (M, F)."""

    value: np.ndarray
    added: np.ndarray
    influence: np.ndarray
    share: np.ndarray
    differs: np.ndarray


@dataclass(frozen=True, eq=False)
class Hits:
    """F clusters, groups sorted by name, systems, and M measures.

    `clusters` (F,): their numbers, such as the places of functions in a split, ascending; `unit`:
    PERCENT_UNIT of things that are hit, or that of an amount that is summed over things, such as
    bits; `left_out`: groups that are in no mean; `families`: two systems, the first less the second
    -> how many tables of hits test this difference, such as one for each outcome, which are one
    family; by default this one alone. `redrawn`: system -> its means if it had been chosen anew on
    other data: how much these vary is part of the error of its mean.

    `over`: what intervals and tests are over, by functions of the split, of which `clusters` are
    places; None: they are over the clusters themselves.
    """

    clusters: np.ndarray
    groups: Mapping[str, Group]
    measures: tuple[Measure, ...]
    unit: str = PERCENT_UNIT
    left_out: Collection[str] = field(default=frozenset())
    families: Mapping[tuple[str, str], int] = field(default_factory=dict)
    redrawn: Mapping[str, Redrawn] = field(default_factory=dict)
    over: Clusters | None = None

    @classmethod
    def of_rows(
        cls,
        clusters: np.ndarray,
        groups: Sequence[str] | np.ndarray,
        sums: Mapping[str, np.ndarray],
        measures: Sequence[Measure],
        n: np.ndarray | None = None,
        weighted: bool = False,
        **fields: Any,
    ) -> Hits:
        """From N rows of a cluster and a group: `clusters` (N,), `groups` (N,), `sums`: system ->
        (M, N), and `n` (N,), by default 1. Rows of the same cluster and group are added up.

        `weighted`: each row is one thing, and `n` is its weight. Raises ArgumentError for `n` that
        are no counts, and for parts of other lengths.
        """
        counts = np.broadcast_to(1, len(clusters)) if n is None else np.atleast_1d(n)
        numbers = counts.astype(np.int64)
        if (numbers != counts).any() or (numbers < 0).any():
            raise ArgumentError(f"n is {n!r:.60}, expected whole numbers of at least 0")
        shapes = {(len(measures), size) for size in (len(clusters), len(groups), len(numbers))}
        if {(len(measures), len(clusters))} != shapes | {cells.shape for cells in sums.values()}:
            raise ArgumentError(
                f"{len(clusters)} clusters and {len(measures)} measures, but other parts are of other lengths"
            )
        all_clusters, positions = np.unique(clusters, return_inverse=True)
        names = sorted(set(groups))
        number_of = {name: number for number, name in enumerate(names)}
        group_of = np.fromiter(map(number_of.__getitem__, groups), np.int64, len(groups))
        parts = {}
        for number, name in enumerate(names):
            rows = np.flatnonzero(group_of == number)
            places, which = np.unique(positions[rows], return_inverse=True)
            of_systems = {
                system: _in_few_bytes(_added(cells, which, rows)) for system, cells in sums.items()
            }
            worth = None
            if weighted:
                weights = numbers[rows].astype(float)
                squares = (weights**2).sum()
                worth = float(weights.sum() ** 2 / squares)
            things = _added(numbers[rows], which)
            parts[name] = Group(places, things, of_systems, worth)
        return cls(all_clusters, parts, tuple(measures), **fields)

    # ----------------------------------------------------------------------------------------------------------- parts

    @property
    def names(self) -> list[str]:
        """Of the groups."""
        return list(self.groups)

    @cached_property
    def systems(self) -> list[str]:
        for group in self.groups.values():
            return list(group.sums)
        return []

    @property
    def counted(self) -> list[str]:
        """The groups that are in means."""
        return [name for name in self.groups if name not in self.left_out]

    @property
    def scale(self) -> float:
        """What a share of 1 is in the unit."""
        if self.unit == PERCENT_UNIT:
            return 100.0
        return 1.0

    @property
    def n(self) -> np.ndarray:
        """The things of each group: int64 (G,)."""
        return np.array([group.total for group in self.groups.values()], np.int64)

    def of(self, group: str) -> np.ndarray:
        """The clusters that have a group, by number: (f,); none have one that is not there."""
        if group not in self.groups:
            return self.clusters[:0]
        return self.clusters[self.groups[group].places]

    def total(self, system: str) -> np.ndarray:
        """What a system gets right of each group: (M, G)."""
        totals = [group.sums[system].sum(axis=1) for group in self.groups.values()]
        by_group = np.array(totals).reshape(len(totals), len(self.measures))
        return by_group.T

    def scores(self, system: str) -> np.ndarray:
        """Of each group, in the unit: (M, G)."""
        return self.scale * self.total(system) / self.n

    def where(
        self,
        groups: Iterable[str] | None = None,
        measures: Sequence[Measure] | None = None,
    ) -> Hits:
        """Some of the groups, by name, and of the measures."""
        chosen = self.measures if measures is None else tuple(measures)
        order = np.array([self.measures.index(measure) for measure in chosen], np.intp)
        parts = {}
        for name in self.names if groups is None else sorted(groups):
            group = self.groups[name]
            parts[name] = group.among(np.ones(len(group.n), bool), order)
        return replace(self, groups=parts, measures=chosen)

    def cells(self, clusters: Mapping[str, np.ndarray]) -> Hits:
        """Some of the groups, each in some of its clusters, by number, of which it has any."""
        parts = {}
        for name in sorted(clusters):
            inside = np.isin(self.of(name), clusters[name])
            parts[name] = self.groups[name].among(inside)
        return replace(self, groups=parts, redrawn={})

    def join(self, other: Hits) -> Hits:
        """The systems of both on the groups of both; raises LedgerError unless these have the same
        things in the same clusters."""
        same = self.measures == other.measures
        same &= np.array_equal(self.clusters, other.clusters)
        joined = {}
        for name in sorted(set(self.groups) & set(other.groups)):
            group = self.groups[name]
            theirs = other.groups[name]
            same &= np.array_equal(group.places, theirs.places)
            same &= np.array_equal(group.n, theirs.n)
            joined[name] = replace(group, sums={**group.sums, **theirs.sums})
        if not same:
            common = len(np.intersect1d(self.clusters, other.clusters))
            raise LedgerError(
                f"one was scored on {len(self.clusters)} functions and the other on {len(other.clusters)}, with "
                f"{common} in common, or on different edges: make the baseline for the model's functions"
            )
        return replace(self, groups=joined, redrawn={**self.redrawn, **other.redrawn})

    def named(self, systems: Mapping[str, str]) -> Hits:
        """Some of the systems, each under its new name."""
        groups = {}
        for name, group in self.groups.items():
            sums = {new: group.sums[old] for old, new in systems.items()}
            groups[name] = replace(group, sums=sums)
        known = {new: self.redrawn[old] for old, new in systems.items() if old in self.redrawn}
        return replace(self, groups=groups, redrawn=known)

    def chosen(self, new: str, systems: Mapping[str, str]) -> Hits:
        """With a `new` system, which is one of the systems in each group: `systems`, by the groups'
        names."""
        groups = {}
        for name, group in self.groups.items():
            sums = {**group.sums, new: group.sums[systems[name]]}
            groups[name] = replace(group, sums=sums)
        return replace(self, groups=groups)

    def clustered(self, larger: np.ndarray) -> Hits:
        """The same by larger clusters, such as repositories of functions: the number of that of
        each cluster (F,)."""
        clusters, positions = np.unique(larger, return_inverse=True)
        groups = {}
        for name, group in self.groups.items():
            places, which = np.unique(positions[group.places], return_inverse=True)
            sums = {system: _added(of_all, which) for system, of_all in group.sums.items()}
            groups[name] = Group(places, _added(group.n, which), sums, group.worth)
        return replace(self, clusters=clusters, groups=groups, over=None)

    @cached_property
    def drawn(self) -> Hits:
        """The same by the clusters that intervals and tests are over."""
        if self.over is None:
            return self
        return self.clustered(self.over.number[self.clusters])

    # ---------------------------------------------------------------------------------------------------------- scores

    def mean(self, system: str, against: str | None = None) -> Estimate:
        """The mean over groups, (M,), or the difference to that of another system, with p corrected
        for the tables of its family; NaN without any group. Bounds are within those of the unit."""
        if not self.counted:
            unknown = np.full(len(self.measures), np.nan)
            return Estimate(unknown, unknown, unknown, unknown, 0)
        mean = self.drawn._of_mean(system, against)
        tested = None if against is None else mean.differs
        influence = with_variance(mean.influence, self._choice_variance(system, against))
        estimate = mean_estimate(mean.value, influence, mean.share, tested)
        if against is not None:
            p = np.minimum(1, self._tables(system, against) * estimate.p)
            estimate = estimate._replace(p=p)
        return self._within(estimate, against is not None)

    def _choice_variance(self, system: str, against: str | None) -> np.ndarray:
        """By how much the mean varies with what is chosen: (M,)."""
        means = [
            sign * self.redrawn[name](self.counted, self.measures)
            for name, sign in ((system, 1), (against, -1))
            if name is not None and name in self.redrawn
        ]
        return np.sum(means, axis=0).var(axis=0, ddof=1) if means else np.zeros(len(self.measures))

    def standard_error(self, system: str) -> np.ndarray:
        """That of the mean over groups, (M,)."""
        mean = self.drawn._of_mean(system, None)
        varies = self._choice_variance(system, None)
        return np.sqrt(np.square(mean.influence).sum(axis=-1) + varies)

    def _within(self, estimate: Estimate, difference: bool) -> Estimate:
        """With bounds that end where shares and their differences do, which a few clusters may
        pass. Amounts, such as bits, have no ends."""
        if self.unit not in (PERCENT_UNIT, SHARE_UNIT):
            return estimate
        least = -self.scale if difference else 0
        low = np.clip(estimate.low, least, self.scale)
        high = np.clip(estimate.high, least, self.scale)
        return estimate._replace(low=low, high=high)

    def contrast(self, system: str, against: str, groups: Collection[str], whole: str) -> Estimate:
        """The difference of two systems in the mean over some `groups`, less that over all others,
        as percent of what `whole` has on the former, (M,), with p; NaN where that is not above 0,
        or without any such group."""
        inside = self.where(name for name in self.counted if name in groups).drawn
        others = self.where(name for name in self.counted if name not in groups).drawn
        unknown = np.full(len(self.measures), np.nan)
        if not inside.groups:
            return Estimate(unknown, unknown, unknown, unknown, 0)
        gained, elsewhere = (of_groups._of_mean(system, against) for of_groups in (inside, others))
        base = inside._of_mean(whole, None)
        scale = np.where(base.value > 0, 100 / base.value, np.nan)[:, None]
        value = (gained.value - elsewhere.value) * scale[:, 0]
        # of a ratio, which varies with what it is divided by, too
        influence = (gained.influence - elsewhere.influence) * scale
        influence -= value[:, None] / 100 * base.influence * scale
        share, differs = (
            of_groups / len(inside.groups) + of_others / max(1, len(others.groups))
            for of_groups, of_others in (
                (gained.share, elsewhere.share),
                (gained.differs, elsewhere.differs),
            )
        )
        return mean_estimate(value, influence, share, differs)

    def by_group(self, system: str, against: str | None = None) -> Estimate:
        """The score of each group, (M, G), or the difference to that of another system, with p as of
        `tested`."""
        if against is None:
            return self._by_group(system, None)
        (difference,) = self.tested((system, against))
        return difference

    def tested(self, *pairs: tuple[str, str]) -> list[Estimate]:
        """The differences of each group, (M, G) for each of `pairs`, the first system less the
        second. All of a measure are one family: p is corrected over groups and pairs (Holm), and
        for the tables of the family (Bonferroni)."""
        differences = [self._by_group(*pair) for pair in pairs]
        return corrected(differences, max(self._tables(*pair) for pair in pairs))

    def _tables(self, system: str, against: str) -> int:
        return self.families.get((system, against), 1)

    def _by_group(self, system: str, against: str | None) -> Estimate:
        groups = self.drawn.groups.values()
        cells = np.zeros((4, len(self.measures), len(groups)))
        for column, group in enumerate(groups):
            cells[..., column] = self._of_group(group, system, against)
        value, low, high, p = cells
        n = np.array([len(group.places) for group in groups], np.intp)
        few = n < FEW_CLUSTERS
        low[:, few] = np.nan
        high[:, few] = np.nan
        return Estimate(value, low, high, p, n)

    def each(self, estimate: Estimate, measure: Measure | None = None) -> dict[str, Estimate]:
        """Of an estimate of groups, as of `by_group`, that of each by a measure, the first by
        default."""
        row = 0 if measure is None else self.measures.index(measure)
        return {name: estimate.at(row, column) for column, name in enumerate(self.groups)}

    def of_cluster(self, group: str, system: str) -> np.ndarray:
        """What a system gets right of a group in each cluster that has it, over its things there,
        by each measure: (M, f)."""
        cells = self.groups[group]
        return cells.sums[system] / cells.n

    def contributions(self, system: str) -> np.ndarray:
        """What each cluster adds to the mean over groups: (M, F)."""
        return self._of_mean(system, None).added

    def _of_mean(self, system: str, against: str | None) -> _Mean:
        counted = [self.groups[name] for name in self.counted]
        added, influence, differs = np.zeros((3, len(self.measures), len(self.clusters)))
        share = np.zeros(len(self.clusters))
        for group in counted:
            share[group.places] += group.n / group.total
        clusters = int(np.count_nonzero(share))
        scores = []
        for group in counted:
            weight = self.scale / group.total / len(counted)
            gained = group.gained(system, against)
            points = weight * gained
            part = group.n / group.total
            scores.append(self.scale * gained.sum(axis=1) / group.total)
            added[:, group.places] += points
            influence[:, group.places] += influence_of(points, part, clusters)
            differs[:, group.places] += differing(points, part)
        value = sum(scores, np.zeros(len(self.measures))) / max(1, len(counted))
        for group, score in zip(counted, scores):
            if len(group.places) == 1:
                alone = lone_influence(score, value, len(counted), clusters)
                influence[:, group.places[0]] += alone
        return _Mean(value, added, influence, share, differs)

    def _of_group(self, group: Group, system: str, against: str | None) -> np.ndarray:
        """The value with bounds and p (4, M) of one group."""
        gained = group.gained(system, against)
        if self.unit != PERCENT_UNIT:
            added = gained / group.total
            part = group.n / group.total
            influence = influence_of(added, part, len(part))
            tested = None if against is None else differing(added, part)
            estimate = mean_estimate(added.sum(axis=1), influence, part, tested)
            return np.stack(self._within(estimate, against is not None)[:4])
        if against is None:
            shares, _ = wilson(gained, group.n, group.worth)
            unknown = np.full(len(self.measures), np.nan)
            return np.stack([*(100 * shares), unknown])
        systems = group.gained(system, None), group.gained(against, None)
        value, low, high = 100 * wilson_difference(*systems, group.n, group.worth)
        p = paired_p(gained)
        low, high = agreeing(value, low, high, p)
        return np.stack([value, low, high, p])

    def content(self) -> Iterator[bytes]:
        """All that scores and their intervals follow from."""
        header = [self.measures, self.unit, sorted(self.left_out), len(self.clusters)]
        yield repr(header).encode()
        yield self.clusters.astype(np.int64).tobytes()
        if self.over is not None:
            yield self.over.number[self.clusters].astype(np.int64).tobytes()
        for name, group in self.groups.items():
            yield repr([name, len(group.n), group.worth]).encode()
            yield np.array([group.places, group.n], np.int64).tobytes()
            for system, sums in group.sums.items():
                yield system.encode()
                yield np.ascontiguousarray(sums, np.float64).tobytes()


def _in_few_bytes(counts: np.ndarray) -> np.ndarray:
    """The same, as the smallest integers that hold them: all systems are in memory at once."""
    if counts.dtype.kind == "f" or not counts.size:
        return counts
    return counts.astype(np.min_scalar_type(-1 - int(np.abs(counts).max())))


def _added(values: np.ndarray, which: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Sums (..., f) of values (..., N), or of those at `rows` of them, of which `which` (N,) says to
    which of f they belong; each has any."""
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.diff(which[order], prepend=-1))
    if rows is not None:
        order = rows[order]
    sums = np.empty((*values.shape[:-1], len(starts)), np.result_type(values.dtype, np.int32))
    for measure in np.ndindex(values.shape[:-1]):  # of all at once the copy would be as large
        sums[measure] = np.add.reduceat(values[measure][order], starts, dtype=sums.dtype)
    return sums
