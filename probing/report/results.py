"""A result on its own: the tables and texts that commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import BEST_BASELINE, PUBLISHED, TABLE_KS
from probing.evidence.baselines import kinds_of
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.attention.result import WIDEST, ProbeResult, head_name
from probing.instruments.registry import INSTRUMENTS
from probing.report import specs
from probing.report.document import Part
from probing.report.words import RULE, K, number_of, skipped, starred
from probing.stats.intervals import FEW_CLUSTERS

if TYPE_CHECKING:  # each is imported by what makes it
    from probing.evidence.baselines import BaselineResult
    from probing.evidence.compared import ModelsCompared


def parts(result: Any) -> list[Part]:
    """The tables and texts of a result, as its instrument makes them."""
    few = f"{number_of(result.functions, result.UNIT)}: too few for a claim, or to compare models"
    warned = [few] * (result.functions < FEW_CLUSTERS)
    return [*INSTRUMENTS[result.instrument].parts(result), *warned]


def probe_parts(result: ProbeResult) -> list[Part]:
    """The relations, best first, with the score and its head, that of one offset, and the mean."""
    by_offset = _of_best_offset(result.ledger)
    rows = []
    for name, entry in result.relations.items():
        scores = entry[RULE]
        rows.append(
            {
                "relation": starred(name, entry.in_mean),
                "edges": entry.edges,
                "best_head": head_name(scores[K]),
                "offset": by_offset[name],
                **{k: scores[k].score for k in TABLE_KS},
            }
        )
    rows.sort(key=lambda row: (-row[K], row["relation"]))
    in_mean = [name for name, entry in result.relations.items() if entry.in_mean]
    total = {
        "relation": f"mean of {len(in_mean)} relations",
        "edges": sum(result.relations[name].edges for name in in_mean),
        "best_head": "",
        **{k: result.scores[RULE][k] for k in TABLE_KS},
        "offset": float(np.mean([by_offset[name] for name in in_mean])) if in_mean else None,
    }
    units = language_of(result.settings.config).units
    table = specs.table("probed", rows, "relations", totals=[total], result=result, units=units)
    why = result.run.attention_why
    eager = [f"probed with eager attention maps: {why}"] if why else []
    return [
        table,
        result.signature,
        *eager,
        *[WIDEST] * (in_mean != [] and not total[K]),
        *skipped(functions=result.skips),
    ]


def _of_best_offset(edges: EdgeTable) -> dict[str, float]:
    """The percentage of the edges of each relation that its best offset finds."""
    hard, count = (
        np.bincount(edges.relation, weights, len(edges.relations))
        for weights in (is_hard(edges, best_offsets(edges)), None)
    )
    return dict(zip(edges.relations, (100 * (1 - hard / np.maximum(count, 1))).tolist()))


def compared_parts(result: ModelsCompared) -> list[Part]:
    """The relations, those in which the first model gains most first, with the paired difference,
    and the mean."""
    difference = result.difference
    mean = difference.of_mean(RULE, int(K))
    columns = result.in_mean, result.edges.tolist(), *result.relations.tolist()
    rows = [
        [starred(name, in_mean), *numbers, difference.on(name, RULE, int(K))]
        for name, in_mean, *numbers in zip(difference.hits.names, *columns)
    ]
    counted = int(sum(result.in_mean))
    edges = int(result.edges[result.in_mean].sum())
    table = specs.table(
        "compared",
        sorted(rows, key=lambda row: (-row[-1].value, row[0])),
        totals=[[f"mean of {counted} relations", edges, *result.means, mean]],
        names=result.names,
        result=result,
        units=language_of(result.config).units,
    )
    return [table]


def baseline_parts(result: BaselineResult) -> list[Part]:
    """The relations at k = 1 by both protocols, best first, and the mean."""
    from probing.evidence.scores import MEAN, of_offsets_and_keywords

    scored: dict[str, dict[str, dict[str, float]]] = {}
    for row in of_offsets_and_keywords(result):
        if (row["rule"], row["k"]) == (RULE, int(K)):
            by_protocol = scored.setdefault(row["group"], {})
            by_protocol.setdefault(row["protocol"], {})[row["system"]] = row["value"]
    mean = scored.pop(MEAN, {})
    hits = result.hits[PUBLISHED][BEST_BASELINE].hits
    picks = result.picks[PUBLISHED]
    rows = []
    for name in sorted(scored, key=lambda name: (-scored[name][PUBLISHED][BEST_BASELINE], name)):
        group = hits.groups[name]
        picked = [*picks.names("offset", RULE, name)[:1], *picks.names("keyword", RULE, name)[:1]]
        relation = starred(name, name in hits.counted) + (" !" if group.few else "")
        row = {
            "relation": relation,
            "edges": group.total,
            "picked": " ".join(map(str, picked)),
            **scored[name],
        }
        rows.append(row)
    counted = [hits.groups[name].total for name in hits.counted]
    total = {
        "relation": f"mean of {len(counted)} relations",
        "edges": sum(counted),
        "picked": "",
        **mean,
    }
    units = language_of(result.settings.config).units
    kinds = {protocol: kinds_of(result.settings.config, protocol) for protocol in result.hits}
    table = specs.table("baselines", rows, totals=[total], result=result, units=units, kinds=kinds)
    return [table]
