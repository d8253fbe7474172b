"""Relation by relation: best heads beside baselines, and where the heads are."""

from __future__ import annotations

from typing import Any

import numpy as np

from codesyntax_dataset import paper
from codesyntax_metric.topk_uas import RULES
from probing.attention.result import TABLE_KS
from probing.evidence.baselines import KINDS
from probing.evidence.gather import BEST_BASELINE, PROTOCOLS
from probing.evidence.selection import FEW_FUNCTIONS
from probing.report import figures
from probing.report.document import (
    CHOSEN,
    COLOURED,
    COUNT,
    DIFFERENCE,
    MARKED,
    NAME,
    PERCENT,
    SCORE,
    Column,
    Figure,
    Section,
    Table,
)
from probing.report.figures import FAINT, Bars
from probing.report.findings import Findings, Subject
from probing.report.scored import FILTERS, RULE, K, best_model, figure, gains, head_name, styled

PREVIEWED = 5
"""Relations at each end of the preview bars."""


def preview(found: Findings) -> Figure | None:
    """Best and worst relations of the best model, by the held-out difference to the best baseline."""
    if not found.models:
        return None
    best = best_model(found)
    names = [name for name, *_ in gains(best)]
    chosen = names if len(names) <= 2 * PREVIEWED else names[:PREVIEWED] + names[-PREVIEWED:]
    if not chosen:
        return None
    columns: dict[str, list[Bars]] = {}
    for protocol in PROTOCOLS:
        baseline = found.baselines[protocol][BEST_BASELINE]["relations"]
        scores = [[baseline[name][RULE][K] if name in baseline else np.nan, np.nan, np.nan] for name in chosen]
        which = [_which(found, protocol, name) for name in chosen]
        columns[protocol] = [Bars("best baseline", np.array(scores, float).T, FAINT, which)]
        for subject, colour, _ in styled(found):
            if subject.is_model:
                of = subject.entry["protocols"][protocol]["relations"]
                scores = [of[name][RULE][K]["score"] if name in of else [np.nan] * 3 for name in chosen]
                columns[protocol].insert(-1, Bars(subject.name, np.array(scores, float).T, colour))
    return figure(
        f"{found.name}-preview",
        f"{found.title}: models beside the best baseline, the offset or keyword named at its bar, top-1, first token. Of the "
        f"relations in at least {FEW_FUNCTIONS} functions, those where {best.name} gains most over the best baseline (top) and loses "
        "most (bottom), held-out. Bars without a line for the interval have none.",
        f"Bars of the top-1 scores of {', '.join(chosen)}; the numbers are in the table of relations.",
        _table_name(found, best),
        lambda: figures.bars(chosen, columns),
    )


def _which(found: Findings, protocol: str, name: str) -> str:
    """The predictor that the best baseline of a relation is, such as `offset 2` or `keyword else`."""
    if name not in found.chosen[protocol][RULE]:
        return ""
    kind = found.chosen[protocol][RULE][name][int(K) - 1]
    return " ".join([kind, *map(str, found.picked[protocol][kind][RULE].get(name, [])[: int(K)])])


def table(found: Findings, subject: Subject) -> Table:
    """Every relation by both protocols, as Tables 6 and 9 to 12."""
    rows = []
    for rule_number, rule in enumerate(RULES):
        published = paper.relation_scores(found.config, rule)
        for k in TABLE_KS:
            of_rule = []
            for name, entry in subject.entry["protocols"]["published"]["relations"].items():
                row = [rule, k, [name, _relation_marks(entry)], entry["edges"], entry["functions"]]
                for protocol in PROTOCOLS:
                    row += _relation_cells(found, subject, protocol, name, rule_number, k)
                held_out = row[-1]  # the difference
                if found.as_published:
                    theirs = published.get(name) if k == K else None
                    row += [theirs and theirs.cubert, theirs and [theirs.offset_score, str(theirs.offset)]]
                of_rule.append(((held_out is None, -(held_out or [0])[0], name), row))
            rows += [row for _, row in sorted(of_rule, key=lambda keyed: keyed[0])]
    columns = [*FILTERS, Column("relation", MARKED), Column("edges", COUNT), Column("functions", COUNT)]
    for protocol in PROTOCOLS:
        columns += [
            Column("score", SCORE, protocol),
            Column("head", group=protocol),
            Column("offset", CHOSEN, protocol),
            Column("keyword", CHOSEN, protocol),
            Column("compared with", group=protocol),
            Column("difference", DIFFERENCE, protocol),
        ]
    if found.as_published:
        columns += [Column("CuBERT", PERCENT, "paper"), Column("offset", CHOSEN, "paper")]
    tests = {len(of.relations) for of in subject.comparisons.values()}
    return Table(
        _table_name(found, subject),
        f"Relations, {subject.name}: best heads and baselines, the largest held-out difference first",
        columns,
        rows,
        "Percent with 95 % intervals, – where too few functions hold the relation. Head: layer-head of the best attention head, counted from 0; none where the score is 0. "
        "Offset, keyword: the score of the best k, and which (the first three). Compared with: the best baseline, the better of "
        "the two where it is chosen: for published on the scored data, for held-out on validation. Difference: the score less "
        f"that baseline's. p: corrected (Holm) for the {' or '.join(map(str, sorted(tests)))} relations of a protocol. {COLOURED} "
        "Paper: CuBERT and the best single offset, at k = 1, on the published dataset (Tables 9 to 12).",
        filters=2,
    )


def _table_name(found: Findings, subject: Subject) -> str:
    return f"{found.name}-relations-{found.subjects.index(subject) + 1}"


def _relation_marks(entry: dict[str, Any]) -> str:
    marks = (["few functions"] if entry["few_functions"] else []) + ([] if entry["in_mean"] else ["not in mean"])
    return "; ".join(marks)


def _relation_cells(found: Findings, subject: Subject, protocol: str, name: str, rule: int, k: str) -> list[Any]:
    """Score, head, offset, keyword, which of the two is the best baseline, and the difference to it, of one protocol."""
    entry = subject.entry["protocols"][protocol]["relations"].get(name)
    if entry is None:
        return [None] * 6
    of = entry[RULES[rule]][k]
    cells = [of["score"], head_name(of)]
    for kind in KINDS:
        picked = found.picked[protocol][kind][RULES[rule]].get(name, [])[: int(k)]
        which = ", ".join(map(str, picked[:3])) + (" …" if len(picked) > 3 else "")
        scores = found.baselines[protocol][kind]["relations"].get(name)
        cells.append(scores and [scores[RULES[rule]][k], which])
    comparison = subject.comparisons.get(protocol)
    if comparison is None or name not in comparison.relations:
        return [*cells, None, None]
    place, number = comparison.relations.index(name), int(k) - 1
    difference = comparison.difference.relations[:, rule, number, place].tolist()
    p = float(comparison.p_holm[rule, number, place])
    return [*cells, found.chosen[protocol][RULES[rule]][name][number], [*difference, p]]


def layers(found: Findings, subject: Subject) -> Section:
    number = found.subjects.index(subject) + 1
    names = [
        name
        for name in subject.heads
        if not subject.entry["protocols"]["published"]["relations"][name]["few_functions"]
    ]
    by_layer = {name: subject.heads[name].max(axis=1) for name in names}
    best = {name: divmod(int(subject.heads[name].argmax()), subject.heads[name].shape[1]) for name in names}
    names.sort(key=lambda name: (not by_layer[name].any(), best[name], -by_layer[name].max(), name))  # none found: last
    section = Section(f"{found.name}-layers-{number}", f"Where relations live in {subject.name}")
    if len(names) < 2:
        section.parts = [f"Fewer than two relations are in {FEW_FUNCTIONS} functions."]
        return section
    scores = np.stack([by_layer[name] for name in names])
    of_layers = Table(
        f"{found.name}-layers-{number}",
        f"Score of the best head of each layer, {subject.name}, top-1, first token",
        [Column("relation", NAME), *(Column(f"layer {layer}", PERCENT) for layer in range(scores.shape[1]))],
        [[name, *row.tolist()] for name, row in zip(names, scores)],
        "In percent, chosen on the scored data.",
    )
    heat = figure(
        f"{found.name}-layers-{number}",
        f"{subject.name} on {found.title}: score of the best head of each layer (top-1, first token; bold: the best layer), for "
        f"relations in at least {FEW_FUNCTIONS} functions, in the order of their best head.",
        "Heat map of relation by layer; every number is written in its cell, and in the CSV file of the same name.",
        of_layers.name,
        lambda: figures.by_layer(names, scores),
    )
    # ranks would make much of the order of heads that all find next to nothing
    flat = np.stack([subject.heads[name].ravel() for name in names])
    with np.errstate(invalid="ignore"):
        correlation = np.corrcoef(flat)
    agreement = Table(
        f"{found.name}-agreement-{number}",
        "",
        [Column("relation", NAME), *(Column(name, PERCENT) for name in names)],
        [[name, *row.tolist()] for name, row in zip(names, correlation)],
    )
    alike = figure(
        f"{found.name}-agreement-{number}",
        f"{subject.name} on {found.title}: agreement of two relations, the correlation (Pearson) of their top-1 scores over all "
        f"{flat.shape[1]} attention heads. Red: the same heads find both. The order is that of the heat map.",
        "Heat map of the correlation between relations; the heads that several relations share are in the table below.",
        agreement.name,
        lambda: figures.agreement(names, correlation),
    )
    section.parts = [heat, alike, _shared_heads(found, subject, number)]
    section.drawn = [of_layers, agreement]
    return section


def _shared_heads(found: Findings, subject: Subject, number: int) -> Table:
    """Heads that are the best one of several relations, by each protocol."""
    served: dict[tuple[int, int], dict[str, list[str]]] = {}
    kept = counted = 0
    chosen = {protocol: subject.entry["protocols"][protocol]["relations"] for protocol in PROTOCOLS}
    for protocol, relations in chosen.items():
        for name, entry in relations.items():
            cell = entry[RULE][K]
            if head_name(cell) is None:
                continue
            served.setdefault((cell["layer"], cell["head"]), {of: [] for of in PROTOCOLS})[protocol].append(name)
    for name in chosen["held-out"]:
        best, other = (chosen[protocol][name][RULE][K] for protocol in PROTOCOLS)
        if head_name(best) is not None:
            counted += 1
            kept += (best["layer"], best["head"]) == (other["layer"], other["head"])
    rows = [
        [
            f"{layer}-{head}",
            len(of["published"]),
            ", ".join(of["published"]),
            len(of["held-out"]),
            ", ".join(of["held-out"]),
        ]
        for (layer, head), of in served.items()
    ]
    rows.sort(key=lambda row: (-row[1], -row[3], row[0]))
    columns = [Column("head")]
    for protocol in PROTOCOLS:
        columns += [Column("count", COUNT, protocol), Column("relations", group=protocol)]
    return Table(
        f"{found.name}-heads-{number}",
        f"Which relations a head of {subject.name} is the best for (top-1, first token)",
        columns,
        rows,
        f"For {kept} of {counted} relations the head chosen on validation is the one that is best on the scored data. Relations "
        "whose score is 0 have no best head.",
    )
