"""Submissions on attention: by function, how many edges of each relation heads and baselines hit.

There is a table of hits for each protocol: *published*, *held-out* and, if there is such a score,
*beyond-offset*, of hard edges alone. Relations are groups, functions are clusters, edges are what
there is to hit. The metadata say by which heads, and which baseline is the better one; the hits of
the *combined* baseline are that one's. A function that the model could not read has no hits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import FailFast, Field

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    BEYOND_OFFSET,
    DIRECTIONS,
    PROTOCOLS,
    PUBLISHED,
)
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence import impossible, submission
from probing.evidence.baselines import KINDS
from probing.evidence.protocols import (
    MODEL,
    TABLE_MEASURES,
    TABLE_PLACES,
    ChosenHits,
)
from probing.evidence.submission import Facts, Submission, Tables
from probing.instruments.attention.result import ProbeProvenance, ProbeRun
from probing.runs import records
from probing.runs.records import PLAIN, Record, listed, matching, shown
from probing.runs.settings import Settings
from probing.stats.hits import Hits
from probing.stats.hits_file import Layout

MeanCell = tuple[str, str, str]
"""A protocol, a rule, and a k."""

# parts of a signature that models of one table need not share
_OF_MODEL = ("model", "begin")

Size = Annotated[int, Field(ge=1, le=1000)]
Places = Annotated[tuple[records.Number, ...], FailFast(), listed, Field(max_length=10**5)]
ByMeasure = Annotated[
    tuple[records.Number, ...], listed, Field(min_length=12, max_length=len(TABLE_MEASURES))
]
ByRelation = Annotated[tuple[ByMeasure, ...], FailFast(), listed, Field(max_length=1000)]


class AttentionSettings(submission.ModelRun, Settings):  # type: ignore[misc]  # whose control may be none
    """The settings of a probe of a model."""

    direction: Annotated[str, submission.one_of(DIRECTIONS)]


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
    """What a protocol chose for each relation of its table, by each rule and k: the model's
    `heads`, layer * heads + head; and which of KINDS is the `better` baseline."""

    heads: ByRelation
    better: ByRelation


def table_of(model: ChosenHits, baselines: Mapping[str, ChosenHits]) -> Hits:
    """The table of a protocol: a model and the baselines on the same edges.

    Raises EntryError for a relation that the baselines do not have.
    """
    if unknown := sorted(set(model.relations) - set(baselines[BEST_BASELINE].relations)):
        why = f"the result has the relation {shown(unknown[0])}, expected a relation of the dataset"
        raise EntryError(why)
    return model.at(TABLE_MEASURES).hits.join(rivals_of(baselines, model.relations))


def rivals_of(baselines: Mapping[str, ChosenHits], relations: list[str]) -> Hits:
    """The baselines of a protocol on some relations: KINDS, of which those that it does not have
    find nothing, and the combined one."""
    first, *others = (hits.hits.where(relations, TABLE_MEASURES) for hits in baselines.values())
    for other in others:
        first = first.join(other)
    groups = {}
    for name, group in first.groups.items():
        nothing = dict.fromkeys(KINDS, 0 * group.sums[KINDS[0]])
        groups[name] = replace(group, sums={**nothing, **group.sums})
    return replace(first, groups=groups)


def chosen_of(
    model: ChosenHits, baselines: Mapping[str, ChosenHits], heads: int
) -> dict[str, list[list[int]]]:
    """The fields of ChosenHeads; the model has so many `heads` in a layer."""
    layer, head = np.moveaxis(_chosen_heads_of(model, model.relations), -1, 0)
    better = _chosen_heads_of(baselines[BEST_BASELINE], model.relations)[..., 1]
    return {"heads": (layer * heads + head).tolist(), "better": better.tolist()}


def _chosen_heads_of(hits: ChosenHits, relations: list[str]) -> np.ndarray:
    """Layer and head: (R, M, 2)."""
    choices = np.array([hits.choice[name][:, TABLE_PLACES] for name in relations], np.int64)
    return choices.reshape(len(relations), len(TABLE_MEASURES), 2)


class AttentionSubmission(Submission):
    """A submission on the attention heads of a model on one config. `heads`: of each layer;
    `unread`: the functions that the model could not read."""

    SYSTEM, RIVAL = MODEL, BEST_BASELINE
    LAYOUT = Layout((MODEL, *KINDS), TABLE_MEASURES, left_out=NOT_IN_MEAN)

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
            hits_of = [group.sums[kind] for kind in KINDS]
            combined = np.choose(np.array(better)[:, None], hits_of, mode="clip")
            groups[name] = replace(group, sums={**group.sums, BEST_BASELINE: combined})
        return replace(hits, groups=groups)

    def facts(self, tables: Tables) -> Facts:
        published = tables[PUBLISHED]
        edges = int(published.n.sum())
        unread = published.cells(dict.fromkeys(published.names, np.array(self.unread, np.int64)))
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
        return Facts(str(signature), parts | shared, scored)

    def means(self, tables: Tables) -> Tables:
        return {name: tables[name] for name in (*PROTOCOLS, BEYOND_OFFSET) if name in tables}

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

    def digest_of_numbers(self, tables: Tables, text: str = "") -> str:
        heads = [of_table.heads for of_table in self.chosen.values()]
        return super().digest_of_numbers(tables, f"{heads}")

    def head(self, table: str, relation: int, measure: int) -> str:
        """The chosen head, layer-head."""
        layer, head = divmod(self.chosen[table].heads[relation][measure], self.heads)
        return f"{layer}-{head}"

    def problems(self, tables: Tables) -> impossible.Problems:
        return impossible.of_attention(self, tables)
