"""Entries on attention: by function, how many edges of each relation the chosen heads and the baselines hit.

Numbers of functions are text, as `probing.evidence.entry` says, for the k of tables: `places` (F,), positions in the
split of all functions with edges; `edges` (R, F), of each relation of *published* in each function; `unread`, the
places of the functions that the model could not read, where it has no hits. Of the hits by each protocol
stand `heads` (rules, k, R), the model's chosen ones, layer * heads + head; `better` (rules, k, R), which of KINDS the
combined baseline is, 0 or 1; and the hits of `model`, `offset` and `keyword` (rules, k, n): the n pairs of a relation
and a function with edges, in the order of `edges`, for the relations of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import FailFast, Field

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import (
    ATTENTION,
    BASELINES,
    BEST_BASELINE,
    BEYOND_OFFSET,
    DIRECTIONS,
    HELD_OUT,
    PROTOCOLS,
    PUBLISHED,
    TABLE_KS,
)
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence import entry
from probing.evidence.baselines import KINDS
from probing.evidence.beyond import LEAST_EDGES
from probing.evidence.entry import Entry, Interval, Score, Scores, digest_of, packed, unpacked
from probing.evidence.protocols import MODEL, SAME_RELATIONS, TABLE_MEASURES, TABLE_PLACES, ChosenHits
from probing.instruments.attention.result import ProbeProvenance, ProbeRun
from probing.runs import records
from probing.runs.records import PLAIN, Record, Texts, listed, matching, shown
from probing.runs.settings import BY_ATTENTION, BY_SUM, Settings, Signature
from probing.stats.hits import Columns, Group, Hits
from probing.stats.intervals import FEW_CLUSTERS

CELLS = [(protocol, rule, k) for protocol in PROTOCOLS for rule in RULES for k in TABLE_KS]
"""The scores of each relation."""

MEANS = (*PROTOCOLS, SAME_RELATIONS, BEYOND_OFFSET)
"""The means over relations, by each rule and k."""

NO_RELATIONS = "no relations"
"""Why a function is skipped that has nothing to score; skipped for any other reason, it is missed."""

WHO = ("model", *KINDS)
"""Whose hits are in an entry. Those of the combined baseline are of the better of the other two."""

_MANY = 10
"""With so many relations, held-out heads are never all the best ones: of two models, 32 and 56 % of the scores were."""

_MOST_EDGES = 10**6  # of a relation in a function

Size = Annotated[int, Field(ge=1, le=1000)]


class AttentionEntrySettings(entry.ModelRun, Settings):  # type: ignore[misc]  # whose control may be none
    """The settings of a probe of a model."""

    direction: Annotated[str, entry.one_of(DIRECTIONS)]
    also_fits: Annotated[tuple[entry.Model, ...], FailFast(), listed]
    weights: Annotated[str, entry.one_of([ATTENTION])] = BY_ATTENTION
    pool: Literal["sum"] = BY_SUM


class AttentionEntryRun(entry.EntryRun, ProbeRun):
    """The circumstances of the probe."""

    attention: Literal["captured", "eager"]
    attention_why: Annotated[str, matching(PLAIN + "{0,1000}", "plain text")]


class ChosenOn(Record):
    """The probe of the split `validation`, on which the held-out protocol chooses its heads."""

    labels: entry.Labels
    functions: entry.Number
    edges: entry.Number


class Digests(Record):
    """SHA-256 of the content of the ledgers."""

    test: entry.Sha256
    validation: entry.Sha256


class ProtocolHits(Record):
    """The hits by one protocol, of its `relations`, sorted."""

    relations: Annotated[Texts, Field(max_length=1000)]
    heads: str
    better: str
    model: str
    offset: str
    keyword: str


class HardHits(ProtocolHits):
    """The same beyond offsets: of hard edges (R, F), in the functions that have any, of all relations."""

    functions: entry.Number
    places: str
    edges: str


def pack(model: ChosenHits, baselines: Mapping[str, ChosenHits], heads: int) -> dict[str, Any]:
    """The fields of ProtocolHits: of a model with so many `heads` in a layer, and the baselines on the same edges.

    Raises EntryError for a relation that the baselines do not have.
    """

    if unknown := sorted(set(model.relations) - set(baselines[BEST_BASELINE].relations)):
        raise EntryError(f"the result has the relation {shown(unknown[0])}, expected a relation of the dataset")
    layer, head = np.moveaxis(_chosen(model, model.relations), -1, 0)
    return {
        "relations": model.relations,
        "heads": packed(layer * heads + head),
        "model": _packed_hits(model),
        **pack_baselines(baselines, model.relations),
    }


def pack_baselines(baselines: Mapping[str, ChosenHits], relations: list[str]) -> dict[str, str]:
    """The fields of ProtocolHits that are of the baselines."""
    better = _chosen(baselines[BEST_BASELINE], relations)[..., 1]
    return {"better": packed(better), **{kind: _packed_hits(baselines[kind].only(relations)) for kind in KINDS}}


def _chosen(hits: ChosenHits, relations: list[str]) -> np.ndarray:
    """Layer and head: (rules, k, R, 2)."""
    chosen = np.array([hits.choice[name][:, TABLE_PLACES] for name in relations], np.int64)
    return np.moveaxis(chosen.reshape(len(relations), len(RULES), len(TABLE_KS), 2), 0, 2)


def _packed_hits(chosen: ChosenHits) -> str:
    groups = chosen.at(TABLE_MEASURES).hits.groups.values()
    none = np.zeros((len(TABLE_MEASURES), 0), np.int64)
    return packed(np.concatenate([none, *(group.sums[chosen.system].sums for group in groups)], axis=-1))


def edges_of(hits: Hits) -> np.ndarray:
    """The edges of each relation in each function: (R, F)."""
    edges = np.zeros((len(hits.groups), len(hits.clusters)), np.int64)
    for row, group in zip(edges, hits.groups.values()):
        row[group.places] = group.n
    return edges


class CountedHits(NamedTuple):
    """The hits by one protocol as numbers: `functions` (F,); `edges` (R, F); `heads`, `better` (rules, k, R); `hits`:
    one of WHO -> (rules, k, n)."""

    relations: list[str]
    functions: np.ndarray
    edges: np.ndarray
    heads: np.ndarray
    better: np.ndarray
    hits: dict[str, np.ndarray]

    def by_relation(self, who: str) -> list[np.ndarray]:
        """Of each relation the hits in the f functions that have it: (rules, k, f)."""
        functions = np.count_nonzero(self.edges, axis=1)
        if who == BEST_BASELINE:
            hits = np.where(np.repeat(self.better, functions, axis=-1) == 0, *(self.hits[kind] for kind in KINDS))
        else:
            hits = self.hits[who]
        return np.split(hits, functions.cumsum()[:-1], axis=-1) if len(functions) else []

    def total(self, who: str) -> np.ndarray:
        """The hits in all functions: (rules, k, R)."""
        totals = [hits.sum(axis=-1) for hits in self.by_relation(who)]
        return np.moveaxis(np.reshape(totals, (-1, len(RULES), len(TABLE_KS))), 0, -1)

    def as_hits(self) -> Hits:
        """Of MODEL and BASELINES, at the k of tables."""
        groups, of_systems = {}, {who: self.by_relation(who) for who in (MODEL, *BASELINES)}
        for number, (name, edges) in enumerate(zip(self.relations, self.edges)):
            sums = {who: Columns.of(of[number].reshape(len(TABLE_MEASURES), -1)) for who, of in of_systems.items()}
            groups[name] = Group(np.flatnonzero(edges), edges[edges > 0].astype(np.int64), sums)
        return Hits(self.functions, groups, TABLE_MEASURES, left_out=NOT_IN_MEAN)


class ChosenHead(NamedTuple):
    """The score of a relation in percent, with its interval, and the attention head that has it."""

    score: Interval
    layer: int
    head: int


Cell = tuple[str, str, str]
"""One of MEANS, a rule, and a k."""


class RelationScore(NamedTuple):
    """A relation of an entry. `found`, `combined`: one of CELLS -> the score of the model's head, and of the combined
    baseline in percent; without those for which no head was chosen."""

    edges: int
    functions: int
    few_functions: bool
    in_mean: bool
    found: dict[Cell, ChosenHead]
    combined: dict[Cell, float]


@dataclass(frozen=True, eq=False)
class AttentionScores(Scores):
    """The scores of a model, against the combined baseline, by mean, rule and k. `baselines`: one of BASELINES -> the
    same of it; `relations`: by name; `on_read`: if functions are missed, one of PROTOCOLS or BEYOND_OFFSET -> the
    headline without these."""

    baselines: dict[str, dict[Cell, Score | None]]
    relations: dict[str, RelationScore]
    on_read: dict[str, float]

    @property
    def means(self) -> tuple[str, ...]:
        """Those of MEANS to show: both protocols, SAME_RELATIONS between them if *held-out* lacks relations, and any
        BEYOND_OFFSET."""
        lacks = any(relation.in_mean and CELLS[0] not in relation.found for relation in self.relations.values())
        both = (HELD_OUT, SAME_RELATIONS, PUBLISHED) if lacks else PROTOCOLS
        return (*both, BEYOND_OFFSET) if self.cells[BEYOND_OFFSET, RULES[0], TABLE_KS[0]] else both


class AttentionEntry(Entry):
    """A published entry on the attention heads of a model on one config. `heads`: of each layer."""

    instrument: Literal["attention"]
    scoring: Literal[2]
    settings: AttentionEntrySettings
    run: AttentionEntryRun
    layers: Size
    heads: Size
    chosen_on: ChosenOn
    ledgers: Digests
    missed: records.Number
    unread: str
    places: str
    edges: str
    published: ProtocolHits
    held_out: ProtocolHits
    beyond_offset: HardHits | None = None

    @property
    def _signature(self) -> Signature:
        read = ~np.isin(self._places(), self._unread())
        counts = {"functions": self.functions, "edges": int(self._edges()[:, read].sum())}
        return ProbeProvenance.signature_of(self.settings, counts)

    @property
    def signature(self) -> str:
        return str(self._signature)

    @property
    def shared(self) -> dict[str, str]:
        parts = {name: of for name, of in self._signature.parts.items() if name not in ("model", "also-fits")}
        return parts | {
            "functions": str(self.scored),
            "edges": str(self._edges().sum()),
            "labels chosen on": self.chosen_on.labels,
            "relations": ", ".join(self.published.relations),
            "functions of the split": str(self.functions + sum(self.skips.values())),
        }

    @property
    def scored(self) -> int:
        """The number of functions in the numbers: those that were read, and those that are missed."""
        return self.functions + self.missed

    def content(self) -> Iterator[np.ndarray]:
        """The functions and their edges, also the hard ones."""
        for counted in self.counted().values():
            yield from (counted.functions, counted.edges)

    @property
    def digests(self) -> dict[str, str]:
        return self.ledgers.model_dump()

    def numbers(self) -> str:
        return digest_of(part for of in self.counted().values() for part in (of.heads, of.hits["model"]))

    def baselines(self) -> str:
        of_kinds = (part for of in self.counted().values() for part in (of.better, *(of.hits[kind] for kind in KINDS)))
        return digest_of(of_kinds)

    def beside(self, other: Entry) -> AttentionEntry:
        assert isinstance(other, AttentionEntry)
        return self.against({at: hits.model_dump(include={"better", *KINDS}) for at, hits in other.protocols.items()})

    def against(self, baselines: Mapping[str, Mapping[str, str]]) -> Self:
        """The same with other baselines: one of PUBLISHED, HELD_OUT and BEYOND_OFFSET -> `better` and one of KINDS ->
        text."""
        hits = {at: self.protocols[at].model_copy(update=of) for at, of in baselines.items()}
        return self.model_copy(update={at.replace("-", "_"): of for at, of in hits.items()})

    @property
    def protocols(self) -> dict[str, ProtocolHits]:
        """PUBLISHED, HELD_OUT, and BEYOND_OFFSET if there is such a score -> the hits as text."""
        hits = {PUBLISHED: self.published, HELD_OUT: self.held_out, BEYOND_OFFSET: self.beyond_offset}
        return {at: of for at, of in hits.items() if of is not None}

    def counted(self) -> dict[str, CountedHits]:
        """Each of `protocols` -> the hits. Raises EntryError for text that does not have them."""
        names, all_edges, places = self.published.relations, self._edges(), self._places()
        result = {}
        for at, hits in self.protocols.items():
            if unknown := sorted(set(hits.relations) - set(names)):
                raise EntryError(f"{at}.relations has {shown(unknown[0])}, which has no published hits")
            edges, functions = all_edges, places
            if hits.relations != names:
                edges = all_edges[[names.index(name) for name in hits.relations]]
            if isinstance(hits, HardHits):
                functions = unpacked(hits.places, f"{at}.places", hits.functions).astype(np.int64)
                known = edges[:, np.isin(places, functions)]
                if known.shape[1] != hits.functions or (np.diff(functions) <= 0).any():
                    raise EntryError(f"{at}.places are not among places, in order")
                edges = unpacked(hits.edges, f"{at}.edges", known.size).reshape(known.shape)
                if (edges > known).any():
                    raise EntryError(f"{at}.edges has more hard edges in a function than it has edges")
            result[at] = self._counted(hits, at, functions, edges)
        return result

    def scores(self, beside: Scores | None = None) -> AttentionScores:
        counted = self.counted()
        means = _means(counted)
        if isinstance(beside, AttentionScores):
            baselines = beside.baselines
        else:
            baselines = {kind: _cells(means, kind) for kind in BASELINES}
            for cell in baselines[KINDS[0]]:
                if cell[0] == BEYOND_OFFSET:  # where only the combined one is shown
                    baselines[KINDS[0]][cell] = baselines[KINDS[1]][cell] = None
        added = np.zeros((len(MEANS), len(RULES) * len(TABLE_KS), self.scored), np.float32)
        for number, mean in enumerate(MEANS):
            if mean in means:
                places = np.searchsorted(counted[PUBLISHED].functions, means[mean].clusters)
                added[number][:, places] = means[mean].contributions(MODEL)
        return AttentionScores(
            cells=_cells(means, MODEL, baselines[BEST_BASELINE]),
            shares=added.reshape(-1, self.scored),
            baselines=baselines,
            relations=self._relations(counted, means),
            on_read={at: self._on_read(of) for at, of in counted.items()} if self.missed else {},
        )

    def _on_read(self, counted: CountedHits) -> float:
        """The headline of a protocol on the functions that the model could read, in percent."""
        edges = counted.edges[:, ~np.isin(counted.functions, self._unread())].sum(axis=1)
        kept = (edges > 0) & [name not in NOT_IN_MEAN for name in counted.relations]
        return float(np.mean(100 * counted.total("model")[0, 0][kept] / edges[kept])) if kept.any() else 0.0

    def _relations(self, counted: dict[str, CountedHits], means: dict[str, Hits]) -> dict[str, RelationScore]:
        published = counted[PUBLISHED]
        functions = np.count_nonzero(published.edges, axis=1).tolist()
        relations = {
            name: RelationScore(edges, size, size < FEW_CLUSTERS, name not in NOT_IN_MEAN, {}, {})
            for name, edges, size in zip(published.relations, published.edges.sum(axis=1).tolist(), functions)
        }
        for protocol in PROTOCOLS:
            hits, scores = means[protocol], means[protocol].by_group(MODEL)  # (M, R)
            combined, heads = hits.scores(BEST_BASELINE), counted[protocol].heads.reshape(len(TABLE_MEASURES), -1)
            for (place, column), best in np.ndenumerate(combined):
                rule, k = TABLE_MEASURES[place]
                cell, relation = (protocol, rule, str(k)), relations[hits.names[column]]
                score = Interval.of(scores.at(place, column))
                assert score is not None
                layer, head = divmod(int(heads[place, column]), self.heads)
                relation.found[cell] = ChosenHead(score, layer, head)
                relation.combined[cell] = float(best)
        return relations

    # ---------------------------------------------------------------------------------------------------------- checks

    def _places(self) -> np.ndarray:
        """(F,)."""
        places = unpacked(self.places, "places", self.scored).astype(np.int64)
        rows = self.functions + sum(self.skips.values())
        if (np.diff(places) <= 0).any() or places[-1] >= rows:
            raise EntryError(
                f"places are not {self.scored} places in a split of {rows} functions, scored and skipped, in order"
            )
        return places

    def _unread(self) -> np.ndarray:
        """(`missed`,)."""
        return unpacked(self.unread, "unread", self.missed).astype(np.int64)

    def _edges(self) -> np.ndarray:
        """(R, F), of the relations of *published*."""
        shape = len(self.published.relations), self.scored
        return unpacked(self.edges, "edges", shape[0] * shape[1]).reshape(shape)

    def _counted(self, hits: ProtocolHits, at: str, functions: np.ndarray, edges: np.ndarray) -> CountedHits:
        shape = len(RULES), len(TABLE_KS), len(hits.relations)
        chosen = {}
        for name, number in (("heads", self.layers * self.heads), ("better", len(KINDS))):
            chosen[name] = unpacked(getattr(hits, name), f"{at}.{name}", shape[0] * shape[1] * shape[2]).reshape(shape)
            if (chosen[name] >= number).any():
                raise EntryError(
                    f"{at}.{name} has {chosen[name].max()}, expected a whole number from 0 to {number - 1}"
                )
        most, counts = edges[edges > 0], {}
        for who in WHO:
            numbers = unpacked(getattr(hits, who), f"{at}.{who}", shape[0] * shape[1] * len(most))
            counts[who] = numbers.reshape(*shape[:2], len(most))
            if (counts[who] > most).any():
                raise EntryError(f"{at}.{who} has more hits in a function than it has edges")
            counts[who] = counts[who].astype(np.int32)
        return CountedHits(list(hits.relations), functions, edges, chosen["heads"], chosen["better"], counts)

    @property
    def verifiable(self) -> tuple[int, int]:
        functions = self.functions + self.chosen_on.functions
        return functions, functions

    def problems(self) -> Iterator[tuple[Any, str]]:
        yield from super().problems()
        config = self.settings.config
        counted = self.counted()
        published, held_out, hard = counted[PUBLISHED], counted[HELD_OUT], counted.get(BEYOND_OFFSET)
        language, variant = language_of(config), variant_of(config)
        for at, hits in counted.items():
            for name in hits.relations:
                why = f"a name in {at}.relations is {shown(name)}, expected a relation of {config}"
                yield not language.has_relation(name, variant), why
            yield hits.relations != sorted(set(hits.relations)), f"{at}.relations is not sorted, or has one twice"
            for kind in KINDS:
                why = f"{at}.{kind} has fewer hits in a function than with one guess fewer"
                yield (np.diff(hits.hits[kind], axis=1) < 0).any(), why
        unread = self._unread()
        scored, why = sum(of for reason, of in self.skips.items() if reason != NO_RELATIONS), "but with edges"
        yield self.missed != scored, f"{self.missed} functions are missed, {scored} were skipped {why}"
        wrong = bool((np.diff(unread) <= 0).any() or np.setdiff1d(unread, published.functions).size)
        yield wrong, "unread is not among places, in order"
        for at, hits in counted.items():
            missed = [edges > 0 for edges in hits.edges]
            lost = [np.isin(hits.functions, unread)[of] for of in missed]
            found = any((of[..., none] > 0).any() for of, none in zip(hits.by_relation("model"), lost))
            yield found, f"{at}.model has hits in a function that the model could not read"
        edges = published.edges
        each_has_one = edges.any(axis=0).all() and edges.any(axis=1).all()
        yield not each_has_one, "edges has a function or a relation without any"
        yield (edges > _MOST_EDGES).any(), f"edges has a function with more than {_MOST_EDGES:,} of a relation"
        if hard is not None:
            for name, edges in zip(hard.relations, hard.edges):
                functions, total, at = np.count_nonzero(edges), edges.sum(), f"{BEYOND_OFFSET}.edges"
                why = f"{at} has {total} of {name} in {functions} functions, expected at least {LEAST_EDGES} in "
                yield functions < FEW_CLUSTERS or total < LEAST_EDGES, f"{why}{FEW_CLUSTERS}"
                yield name not in held_out.relations, f"{BEYOND_OFFSET}.relations has {name}, without held-out hits"
            none_in_mean = all(name in NOT_IN_MEAN for name in hard.relations)
            yield none_in_mean, f"{BEYOND_OFFSET}.relations has none of the mean, expected no such score then"
        # *published* uses the best head, and the better baseline, on the scored data
        most = published.total("model")
        first, any_, last = most
        offset, keyword = (published.total(kind) for kind in KINDS)
        combined = published.total(BEST_BASELINE)
        yield (np.diff(most, axis=1) < 0).any(), "published.model has fewer hits than with one guess fewer"
        yield (any_ < np.maximum(first, last)).any(), "published.model has fewer hits than by a stricter rule"
        worse = bool((combined < np.maximum(offset, keyword)).any())
        yield worse, "published.better is a combined baseline that is not the better of offset and keyword"
        for at, hits in counted.items():
            best = most[..., [published.relations.index(name) for name in hits.relations]]
            for name, more in zip(hits.relations, np.moveaxis(hits.total("model") > best, -1, 0)):
                yield more.any(), f"{at}.model has more hits of {name} than the best head, which is published"
        names = held_out.relations
        copied = (held_out.total("model") == most[..., [published.relations.index(name) for name in names]]).all()
        yield (
            bool(copied) and len(names) >= _MANY,
            f"held-out has the hits of published for all {len(names)} relations, rules and k: it was copied, heads "
            "chosen on other data miss the best one somewhere",
        )
        yield from _of_one_head(counted)


def _of_one_head(counted: dict[str, CountedHits]) -> Iterator[tuple[Any, str]]:
    """Problems, as of `Entry.problems`: a head hits the same edges of a relation wherever named: no fewer with more
    guesses, most by rule `any`, and what it hits in all has place among the hard and the other edges."""
    functions, hits_of = counted[PUBLISHED].functions, {at: of.by_relation("model") for at, of in counted.items()}
    for name in counted[PUBLISHED].relations:
        cells, heads, hits, edges = [], [], [], []
        for at, of in counted.items():
            if name in of.relations:
                column, places = of.relations.index(name), np.searchsorted(functions, of.functions)
                dense = np.zeros((1 + len(RULES) * len(TABLE_KS), len(functions)), np.int64)
                dense[0, places] = of.edges[column]
                dense[1:, dense[0] > 0] = hits_of[at][column].reshape(len(dense) - 1, -1)
                cells += [(at, rule, k) for rule in RULES for k in TABLE_KS]
                heads.append(of.heads[..., column].ravel())
                hits.append(dense[1:])
                edges.append(np.repeat(dense[:1], len(dense) - 1, axis=0))
        rules, ks = np.array([rule for _, rule, _ in cells]), np.array([int(k) for *_, k in cells])
        head, hit, edge = np.concatenate(heads), np.concatenate(hits), np.concatenate(edges)
        more = (ks[:, None] <= ks) & ((rules[:, None] == rules) | (rules == "any"))
        fewer, most = np.nonzero(more & (head[:, None] == head))
        others = np.maximum(edge[fewer] - edge[most], 0)  # that are not hard
        wrong = (hit[fewer] > hit[most] + others).any(axis=1)
        one, other = (" ".join(cells[at[wrong.argmax()]]) for at in (fewer, most))
        lacks = f"{one} has hits in a function that {other} lacks, which no head can do"
        yield wrong.any(), f"{name}: of one and the same head, {lacks}"


def _means(counted: dict[str, CountedHits]) -> dict[str, Hits]:
    """One of MEANS, if there is such a score -> what it is the mean of."""
    hits = {protocol: of.as_hits() for protocol, of in counted.items()}
    return {**hits, SAME_RELATIONS: hits[PUBLISHED].where(groups=counted[HELD_OUT].relations)}


def _cells(
    means: dict[str, Hits], system: str, references: dict[Cell, Score | None] | None = None
) -> dict[Cell, Score | None]:
    """The scores of a system, and its differences to the combined baseline, whose scores are `references`."""
    cells: dict[Cell, Score | None] = {}
    for mean, (rule, k) in product(MEANS, TABLE_MEASURES):
        cells[mean, rule, str(k)] = None
    for mean, hits in means.items():
        estimate = hits.mean(system)
        compared = hits.mean(system, BEST_BASELINE) if references else None
        for place, (rule, k) in enumerate(TABLE_MEASURES):
            cell = mean, rule, str(k)
            score = Interval.of(estimate.at(place))
            reference = references[cell] if references else None
            cells[cell] = score and Score(score)
            if score and reference and compared:
                difference = compared.at(place)
                cells[cell] = Score(score, reference.mean, Interval.of(difference), difference.p)
    return cells
