"""Submissions on attention: by function, how many edges of each relation heads and baselines hit.

There is a table of hits for each protocol: *published*, *held-out* and, if there is such a score,
*beyond-offset*, of hard edges alone. Relations are groups, functions are clusters, edges are what
there is to hit. The metadata say by which heads, and which baseline is the better one; the hits of
the *combined* baseline are that one's. A function that the model could not read has no hits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

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
from probing.evidence import submission
from probing.evidence.baselines import KINDS
from probing.evidence.beyond import LEAST_EDGES
from probing.evidence.protocols import (
    MODEL,
    SAME_RELATIONS,
    TABLE_MEASURES,
    TABLE_PLACES,
    ChosenHits,
)
from probing.evidence.submission import Facts, Submission, Tables, digest_of
from probing.instruments.attention.result import ProbeProvenance, ProbeRun
from probing.runs import records
from probing.runs.records import PLAIN, Record, listed, matching, shown
from probing.runs.settings import BY_ATTENTION, BY_SUM, Settings
from probing.stats.hits import Columns, Group, Hits
from probing.stats.hits_file import Layout
from probing.stats.intervals import FEW_CLUSTERS

NO_RELATIONS = "no relations"
"""Why a function is skipped that has nothing to score; skipped for another reason, it is missed."""

MeanCell = tuple[str, str, str]
"""A protocol or SAME_RELATIONS, a rule, and a k."""

_MANY = 10
"""With so many relations, held-out heads are never all the best ones: of two models, 32 and 56 % of
the scores were."""

_MOST_EDGES = 10**6  # of a relation in a function
_BY_K = (len(RULES), len(TABLE_KS), -1)
_OF_MODEL = ("model", "also-fits", "begin")  # parts of a signature that models of one table need not share

Size = Annotated[int, Field(ge=1, le=1000)]
Places = Annotated[tuple[records.Number, ...], FailFast(), listed, Field(max_length=10**5)]
ByMeasure = Annotated[tuple[records.Number, ...], listed, Field(min_length=12, max_length=len(TABLE_MEASURES))]
ByRelation = Annotated[tuple[ByMeasure, ...], FailFast(), listed, Field(max_length=1000)]


class AttentionSettings(submission.ModelRun, Settings):  # type: ignore[misc]  # whose control may be none
    """The settings of a probe of a model."""

    direction: Annotated[str, submission.one_of(DIRECTIONS)]
    also_fits: Annotated[tuple[submission.Model, ...], FailFast(), listed]
    weights: Annotated[str, submission.one_of([ATTENTION])] = BY_ATTENTION
    pool: Literal["sum"] = BY_SUM


class AttentionRun(submission.SubmittedRun, ProbeRun):
    """The circumstances of the probe."""

    attention: Literal["captured", "eager"]
    attention_why: Annotated[str, matching(PLAIN + "{0,1000}", "plain text")]


class ChosenOn(Record):
    """The probe of the split `validation`, on which the held-out protocol chooses its heads."""

    labels: submission.Labels
    functions: submission.Whole
    edges: submission.Whole


class Digests(Record):
    """SHA-256 of the content of the ledgers."""

    test: submission.Sha256
    validation: submission.Sha256


class ChosenHeads(Record):
    """What a protocol chose for each relation of its table, by each rule and k: the model's `heads`,
    layer * heads + head; and which of KINDS is the `better` baseline, 0 or 1."""

    heads: ByRelation
    better: ByRelation


def table_of(model: ChosenHits, baselines: Mapping[str, ChosenHits]) -> Hits:
    """The table of a protocol: a model and the baselines on the same edges.

    Raises EntryError for a relation that the baselines do not have.
    """
    if unknown := sorted(set(model.relations) - set(baselines[BEST_BASELINE].relations)):
        why = f"the result has the relation {shown(unknown[0])}, expected a relation of the dataset"
        raise EntryError(why)
    table = model.at(TABLE_MEASURES).hits.named({model.system: MODEL})
    return table.join(rivals_of(baselines, model.relations))


def rivals_of(baselines: Mapping[str, ChosenHits], relations: list[str]) -> Hits:
    """The baselines of a protocol on some relations: KINDS, and the combined one."""
    first, *others = (
        baselines[kind].only(relations).at(TABLE_MEASURES).hits.named({baselines[kind].system: kind})
        for kind in BASELINES
    )
    for other in others:
        first = first.join(other)
    return first


def chosen_of(model: ChosenHits, baselines: Mapping[str, ChosenHits], heads: int) -> dict[str, list[list[int]]]:
    """The fields of ChosenHeads; the model has so many `heads` in a layer."""
    layer, head = np.moveaxis(_choices(model, model.relations), -1, 0)
    better = _choices(baselines[BEST_BASELINE], model.relations)[..., 1]
    return {"heads": (layer * heads + head).tolist(), "better": better.tolist()}


def _choices(hits: ChosenHits, relations: list[str]) -> np.ndarray:
    """Layer and head: (R, M, 2)."""
    choices = np.array([hits.choice[name][:, TABLE_PLACES] for name in relations], np.int64)
    return choices.reshape(len(relations), len(TABLE_MEASURES), 2)


class AttentionSubmission(Submission):
    """A submission on the attention heads of a model on one config. `heads`: of each layer;
    `unread`: the functions that the model could not read."""

    SYSTEM, RIVAL, BASELINES = MODEL, BEST_BASELINE, BASELINES
    LAYOUT = Layout((MODEL, *KINDS), TABLE_MEASURES, left_out=NOT_IN_MEAN)
    PROTOCOLS: ClassVar = ((PUBLISHED, HELD_OUT), (PUBLISHED, HELD_OUT, BEYOND_OFFSET))

    instrument: Literal["attention"]
    scoring: Literal[2]
    settings: AttentionSettings
    run: AttentionRun
    layers: Size
    heads: Size
    chosen_on: ChosenOn
    ledgers: Digests
    unread: Places
    chosen: dict[str, ChosenHeads]

    def completed(self, table: str, hits: Hits) -> Hits:
        """With the combined baseline."""
        chosen = self.chosen.get(table)
        if chosen is None or {len(chosen.heads), len(chosen.better)} != {len(hits.groups)}:
            raise EntryError(f"chosen does not have a head for each relation of {table}")
        groups = {}
        for (name, group), better in zip(hits.groups.items(), chosen.better):
            offset, keyword = (group.sums[kind].sums for kind in KINDS)
            combined = Columns.of(np.where(np.array(better)[:, None] == 0, offset, keyword))
            groups[name] = Group(group.places, group.n, {**group.sums, BEST_BASELINE: combined})
        return Hits(hits.clusters, groups, hits.measures, hits.unit, hits.left_out)

    def facts(self, tables: Tables) -> Facts:
        published = tables[PUBLISHED]
        edges = int(published.n.sum())
        unread = published.where(clusters=np.array(self.unread, np.int64))
        counts = {"functions": self.functions, "edges": edges - int(unread.n.sum())}
        signature = ProbeProvenance.signature_of(self.settings, counts)
        parts = {name: text for name, text in signature.parts.items() if name not in _OF_MODEL}
        scored = len(published.clusters)
        shared = {
            "functions": str(scored),
            "edges": str(edges),
            "labels chosen on": self.chosen_on.labels,
            "relations": ", ".join(published.names),
            "functions of the split": str(self.functions + sum(self.skips.values())),
        }
        functions = self.functions + self.chosen_on.functions
        return Facts(str(signature), parts | shared, scored, (functions, functions))

    def means(self, tables: Tables) -> Tables:
        same = tables[PUBLISHED].where(groups=tables[HELD_OUT].names)
        hard = {name: hits for name, hits in tables.items() if name == BEYOND_OFFSET}
        return {**{name: tables[name] for name in PROTOCOLS}, SAME_RELATIONS: same, **hard}

    @staticmethod
    def cell(mean: str, measure: Any) -> MeanCell:
        rule, k = measure
        return mean, rule, str(k)

    @property
    def missed(self) -> int:
        """The functions that the model could not read."""
        return len(self.unread)

    @property
    def digests(self) -> dict[str, str]:
        return self.ledgers.model_dump()

    def digest_of_system(self, tables: Tables, system: str) -> str:
        heads = [of_table.heads for of_table in self.chosen.values()] if system == MODEL else ""
        return digest_of((hits.named({system: system}) for hits in tables.values()), f"{heads}")

    @property
    def on_read(self) -> Mapping[str, float]:
        """If functions are missed, protocol -> the headline without these, in percent."""
        if not self.unread:
            return {}
        scores = {}
        for name, hits in self.tables.items():
            read = hits.where(clusters=np.setdiff1d(hits.clusters, self.unread))
            counted = [name not in NOT_IN_MEAN for name in read.names]
            of_relations = read.scores(MODEL)[0][counted] if any(counted) else np.zeros(1)
            scores[name] = float(np.mean(of_relations))
        return scores

    def head(self, table: str, relation: int, measure: int) -> str:
        """The chosen head, layer-head."""
        layer, head = divmod(self.chosen[table].heads[relation][measure], self.heads)
        return f"{layer}-{head}"

    # ---------------------------------------------------------------------------------------- checks

    def problems(self, tables: Tables) -> Iterator[tuple[Any, str]]:
        config = self.settings.config
        language, variant = language_of(config), variant_of(config)
        names = tuple(tables)
        expected = "expected published and held-out, and perhaps beyond-offset"
        yield names not in self.PROTOCOLS, f"the tables are {shown(', '.join(names))}, {expected}"
        yield tuple(self.chosen) != names, f"chosen is of {shown(', '.join(self.chosen))}, {expected}"
        published, held_out = tables[PUBLISHED], tables[HELD_OUT]
        for table, hits in tables.items():
            for name in hits.names:
                why = f"a name in {table} is {shown(name)}, expected a relation of {config}"
                yield not language.has_relation(name, variant), why
                why = f"{table} has {shown(name)}, which has no published hits"
                yield name not in published.groups, why
        yield from self._impossible_choices(tables)
        yield from self._impossible_functions(tables)
        for table, hits in tables.items():
            for kind in KINDS:
                falls = any(
                    (np.diff(group.sums[kind].sums.reshape(*_BY_K[:2], len(group.n)), axis=1) < 0).any()
                    for group in hits.groups.values()
                )
                yield falls, f"{table}.{kind} has fewer hits in a function than with one guess fewer"
        if BEYOND_OFFSET in tables:
            yield from _impossible_beyond(tables[BEYOND_OFFSET], held_out)
        # *published* uses the best head, and the better baseline, on the scored data
        most = published.total(MODEL).reshape(_BY_K)
        first, any_, last = most
        offset, keyword, combined = (published.total(kind) for kind in BASELINES)
        yield (np.diff(most, axis=1) < 0).any(), "published.model has fewer hits than with one guess fewer"
        stricter = (any_ < np.maximum(first, last)).any()
        yield stricter, "published.model has fewer hits than by a stricter rule"
        worse = (combined < np.maximum(offset, keyword)).any()
        yield worse, "published.better is a combined baseline that is not the better of offset and keyword"
        best = published.total(MODEL)
        for table, hits in tables.items():
            columns = [published.names.index(name) for name in hits.names]
            for name, more in zip(hits.names, (hits.total(MODEL) > best[:, columns]).T):
                why = f"{table}.model has more hits of {name} than the best head, which is published"
                yield more.any(), why
        columns = [published.names.index(name) for name in held_out.names]
        copied = (held_out.total(MODEL) == best[:, columns]).all()
        yield (
            bool(copied) and len(columns) >= _MANY,
            f"held-out has the hits of published for all {len(columns)} relations, rules and k: it was "
            "copied, heads chosen on other data miss the best one somewhere",
        )
        for name in published.names:
            yield self._of_one_head(name, tables)

    def _impossible_choices(self, tables: Tables) -> Iterator[tuple[Any, str]]:
        for table in tables:
            for field, number in (("heads", self.layers * self.heads), ("better", len(KINDS))):
                most = np.max(getattr(self.chosen[table], field))
                why = f"{table}.{field} has {most}, expected a whole number from 0 to {number - 1}"
                yield most >= number, why

    def _impossible_functions(self, tables: Tables) -> Iterator[tuple[Any, str]]:
        published, rows = tables[PUBLISHED], self.functions + sum(self.skips.values())
        clusters, unread = published.clusters, np.array(self.unread, np.int64)
        known = [published.of(name) for name in published.groups]
        lacking = np.setdiff1d(clusters, np.concatenate(known)).size
        yield lacking, "published has a function or a relation without any edge"
        yield (
            len(clusters) != self.functions + self.missed or clusters[-1] >= rows,
            f"the functions are not {self.functions + self.missed} places in a split of {rows}, scored and skipped",
        )
        skipped = sum(count for reason, count in self.skips.items() if reason != NO_RELATIONS)
        why = f"{self.missed} functions are missed, {skipped} were skipped but with edges"
        yield self.missed != skipped, why
        wrong = (np.diff(unread) <= 0).any() or np.setdiff1d(unread, clusters).size
        yield wrong, "unread is not among the functions, in order"
        largest = max(int(group.n.max()) for group in published.groups.values())
        yield largest > _MOST_EDGES, f"published has a function with more than {_MOST_EDGES:,} edges"
        yield len(tables[HELD_OUT].clusters) < len(clusters), "held-out lacks functions of published"
        for table, hits in tables.items():
            foreign = np.setdiff1d(hits.clusters, clusters).size
            yield foreign, f"the functions of {table} are not among those of published"
            for name, group in hits.groups.items():
                places = hits.clusters[group.places]
                lost = np.isin(places, unread)
                hit = group.sums[MODEL].distinct[:, lost].any()
                yield hit, f"{table}.model has hits in a function that the model could not read"
                beside = published.groups[name].n[np.isin(published.of(name), places)]
                if table == BEYOND_OFFSET:
                    wrong = len(beside) < len(places) or (group.n > beside).any()
                    yield wrong, f"{table} has more hard edges in a function than it has edges"
                else:
                    wrong = not np.array_equal(group.n, published.groups[name].n)
                    wrong = wrong or not np.array_equal(places, published.of(name))
                    yield wrong, f"{table} has other edges of {name} than published"

    def _of_one_head(self, name: str, tables: Tables) -> tuple[Any, str]:
        """A head hits the same edges of a relation wherever named: no fewer with more guesses, most by
        rule `any`, and what it hits in all has place among the hard and the other edges."""
        clusters, cells, hits, edges = tables[PUBLISHED].clusters, [], [], []
        heads: list[int] = []
        for table, of_table in tables.items():
            if name in of_table.groups:
                group = of_table.groups[name]
                columns = np.searchsorted(clusters, of_table.of(name))
                dense = np.zeros((1 + len(TABLE_MEASURES), len(clusters)), np.int64)
                dense[0, columns] = group.n
                dense[1:, columns] = group.sums[MODEL].sums
                cells += [(table, rule, k) for rule, k in TABLE_MEASURES]
                heads += self.chosen[table].heads[of_table.names.index(name)]
                hits.append(dense[1:])
                edges.append(np.repeat(dense[:1], len(dense) - 1, axis=0))
        rules, ks = np.array([rule for _, rule, _ in cells]), np.array([k for *_, k in cells])
        head, hit, edge = np.array(heads), np.concatenate(hits), np.concatenate(edges)
        more = (ks[:, None] <= ks) & ((rules[:, None] == rules) | (rules == "any"))
        fewer, most = np.nonzero(more & (head[:, None] == head))
        others = np.maximum(edge[fewer] - edge[most], 0)  # that are not hard
        wrong = (hit[fewer] > hit[most] + others).any(axis=1)
        first, second = (" ".join(map(str, cells[side[wrong.argmax()]])) for side in (fewer, most))
        lacks = f"{first} has hits in a function that {second} lacks, which no head can do"
        return wrong.any(), f"{name}: of one and the same head, {lacks}"


def _impossible_beyond(hard: Hits, held_out: Hits) -> Iterator[tuple[Any, str]]:
    for name, group in hard.groups.items():
        functions, total = len(group.n), group.total
        why = f"{BEYOND_OFFSET} has {total} hard edges of {name} in {functions} functions, expected at least "
        few = functions < FEW_CLUSTERS or total < LEAST_EDGES
        yield few, f"{why}{LEAST_EDGES} in {FEW_CLUSTERS}"
        without = name not in held_out.groups
        yield without, f"{BEYOND_OFFSET} has {name}, without held-out hits"
    none = f"{BEYOND_OFFSET} has no relation of the mean, expected no such score then"
    yield not hard.counted, none
