"""Results by relation: best heads against baselines, and the layers of the heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.protocol import BEST_BASELINE, TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import KINDS
from probing.evidence.gather import PUBLISHED_FIRST
from probing.evidence.statistics import FEW_FUNCTIONS
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
from probing.report.scored import (
    FILTERS,
    RULE,
    K,
    best_model,
    difference_on,
    drawn_in_words,
    gains,
    head_name,
    styled,
    with_marks,
)

PREVIEWED = 5
"""Relations at each end of the preview bars."""


def preview(findings: Findings) -> Figure | None:
    """Bars of the best and worst relations of the best model, by the held-out difference to the best baseline."""
    if not findings.models:
        return None
    best = best_model(findings)
    names = [name for name, *_ in gains(best)]
    chosen = names if len(names) <= 2 * PREVIEWED else names[:PREVIEWED] + names[-PREVIEWED:]
    if not chosen:
        return None
    columns: dict[str, list[Bars]] = {}
    for protocol in PUBLISHED_FIRST:
        baseline = findings.baselines[protocol][BEST_BASELINE]["relations"]
        found = [baseline[name][RULE][K]["score"][0] if name in baseline else np.nan for name in chosen]
        scores = [[score, np.nan, np.nan] for score in found]
        which = [_which(findings, protocol, name) for name in chosen]
        columns[protocol] = [Bars("best baseline", np.array(scores, float).T, FAINT, which)]
        for subject, colour, _ in styled(findings):
            if subject.is_model:
                entries = subject.scores["protocols"][protocol]["relations"]
                scores = [entries[name][RULE][K]["score"] if name in entries else [np.nan] * 3 for name in chosen]
                columns[protocol].insert(-1, Bars(subject.name, np.array(scores, float).T, colour))
    return Figure(
        f"{findings.name}-preview",
        f"{findings.title}: models and the best baseline, top-1, first token. The bar of the baseline names its "
        f"offset or keyword. {drawn_in_words(findings)}Of the relations in at least {FEW_FUNCTIONS} "
        f"{findings.language.units}, those where {best.name} gains most over the best baseline (top) and loses most "
        "(bottom), held-out. Bars without a line have no interval.",
        f"Bars of the top-1 scores of {', '.join(chosen)}. The table of relations has the numbers.",
        findings.file("relations", best),
        lambda: figures.bars(chosen, columns),
    )


def _which(findings: Findings, protocol: str, name: str) -> str:
    """The predictor behind the best baseline of a relation, such as `offset 2` or `keyword else`."""
    if name not in findings.chosen[protocol][RULE]:
        return ""
    kind = findings.chosen[protocol][RULE][name][int(K) - 1]
    return " ".join([kind, *map(str, findings.picked[protocol][kind][RULE].get(name, [])[: int(K)])])


def table(findings: Findings, subject: Subject) -> Table:
    """Every relation by both protocols, as in Tables 6 and 9 to 12 of the paper."""
    rows = []
    as_published = findings.as_published and bool(paper.relation_scores(findings.config, RULE))
    for rule_number, rule in enumerate(findings.rules):
        published = paper.relation_scores(findings.config, rule)
        for k in TABLE_KS:
            keyed_rows = []
            for name, entry in subject.scores["protocols"]["published"]["relations"].items():
                row = [rule, k, with_marks(name, entry["few_functions"]), entry["edges"], entry["functions"]]
                for protocol in PUBLISHED_FIRST:
                    row += _relation_cells(findings, subject, protocol, name, rule_number, k)
                held_out = row[-1]  # the difference
                if as_published:
                    theirs = published.get(name) if k == K else None
                    row += [theirs and theirs.cubert, theirs and [theirs.offset_score, str(theirs.offset)]]
                keyed_rows.append(((held_out is None, -(held_out or [0])[0], name), row))
            rows += [row for _, row in sorted(keyed_rows, key=lambda keyed: keyed[0])]
    columns = [*FILTERS, Column("relation", MARKED), Column("edges", COUNT), Column(findings.language.units, COUNT)]
    for protocol in PUBLISHED_FIRST:
        columns += [
            Column("score", SCORE, protocol),
            Column("head", group=protocol),
            *Column.each(CHOSEN, "offset", "keyword", group=protocol),
            Column("compared with", group=protocol),
            Column("difference", DIFFERENCE, protocol),
        ]
    if as_published:
        columns += [Column("CuBERT", PERCENT, "paper"), Column("offset", CHOSEN, "paper")]
    tests = {len(comparison.relations) for comparison in subject.comparisons.values()}
    return Table(
        findings.file("relations", subject),
        f"Relations, {subject.name}: best heads and baselines, largest held-out difference first",
        columns,
        rows,
        "Percent with 95 % intervals (– if the relation is in too few functions). Head: layer-head of the best "
        "attention head, counted from 0; empty if the score is 0. Offset, keyword: the score of the best k, and the "
        "first three of them. Compared with: the better of the two, chosen on the scored data (published) or on "
        "validation (held-out). Difference: to that baseline. p: corrected (Holm) for the "
        f"{' or '.join(map(str, sorted(tests)))} relations of a protocol. {COLOURED} Paper: CuBERT and the best "
        "single offset, at k = 1, on the published dataset (Tables 9 to 12).",
        filters=2,
    )


def _relation_cells(findings: Findings, subject: Subject, protocol: str, name: str, rule: int, k: str) -> list[Any]:
    """For one protocol: score, head, offset, keyword, which of these two is the best baseline, difference to it."""
    entry = subject.scores["protocols"][protocol]["relations"].get(name)
    if entry is None:
        return [None] * 6
    cell = entry[RULES[rule]][k]
    cells = [cell["score"], head_name(cell)]
    for kind in KINDS:
        picked = findings.picked[protocol][kind][RULES[rule]].get(name, [])[: int(k)]
        which = ", ".join(map(str, picked[:3])) + (" …" if len(picked) > 3 else "")
        scores = findings.baselines[protocol][kind]["relations"].get(name)
        cells.append(scores and [scores[RULES[rule]][k]["score"][0], which])
    difference = difference_on(subject.comparisons.get(protocol), name, rule, k)
    return [*cells, difference and findings.chosen[protocol][RULES[rule]][name][int(k) - 1], difference]


def layers(findings: Findings, subject: Subject) -> Section:
    names = [
        name
        for name in subject.heads
        if not subject.scores["protocols"]["published"]["relations"][name]["few_functions"]
    ]
    by_layer = {name: subject.heads[name].max(axis=1) for name in names}
    best = {name: divmod(int(subject.heads[name].argmax()), subject.heads[name].shape[1]) for name in names}
    names.sort(key=lambda name: (not by_layer[name].any(), best[name], -by_layer[name].max(), name))  # none found: last
    section = Section(findings.file("layers", subject), f"Relations by layer in {subject.name}")
    if len(names) < 2:
        section.parts = [
            (f"Too few functions: fewer than two relations are in at least {FEW_FUNCTIONS} {findings.language.units}.")
        ]
        return section
    scores = np.stack([by_layer[name] for name in names])
    layer_scores = Table(
        findings.file("layers", subject),
        f"Score of the best head of each layer, {subject.name}, top-1, first token",
        [Column("relation", NAME), *(Column(f"layer {layer}", PERCENT) for layer in range(scores.shape[1]))],
        [[name, *row.tolist()] for name, row in zip(names, scores)],
        "In percent. Heads are chosen on the scored data.",
    )
    heat = Figure(
        findings.file("layers", subject),
        f"{subject.name} on {findings.title}: the score of the best head of each layer (top-1, first token; bold: "
        f"the best layer), for relations in at least {FEW_FUNCTIONS} {findings.language.units}, ordered by the layer "
        "of their best head.",
        "Heat map of relation by layer. Each cell and the CSV file of the same name have the number.",
        layer_scores.name,
        lambda: figures.by_layer(names, scores),
    )
    # a rank correlation would overrate the order of heads that all find next to nothing
    flat = np.stack([subject.heads[name].ravel() for name in names])
    with np.errstate(invalid="ignore"):
        correlation = np.corrcoef(flat)
    agreement = Table(
        findings.file("agreement", subject),
        "",
        [Column("relation", NAME), *(Column(name, PERCENT) for name in names)],
        [[name, *row.tolist()] for name, row in zip(names, correlation)],
    )
    alike = Figure(
        findings.file("agreement", subject),
        f"{subject.name} on {findings.title}: how far two relations share heads, as the Pearson correlation of their "
        f"top-1 scores over all {flat.shape[1]} attention heads. Red: the same heads find both. The order is that of "
        "the heat map of layers.",
        "Heat map of the correlation between relations. The table below lists the heads that several relations share.",
        agreement.name,
        lambda: figures.agreement(names, correlation),
    )
    section.parts = [heat, alike, _shared_heads(findings, subject)]
    section.drawn = [layer_scores, agreement]
    return section


def _shared_heads(findings: Findings, subject: Subject) -> Table:
    """For each head, the relations of which it is the best one, by each protocol."""
    served: dict[tuple[int, int], dict[str, list[str]]] = {}
    kept = counted = 0
    chosen = {protocol: subject.scores["protocols"][protocol]["relations"] for protocol in PUBLISHED_FIRST}
    for protocol, relations in chosen.items():
        for name, entry in relations.items():
            cell = entry[RULE][K]
            if head_name(cell) is None:
                continue
            names = served.setdefault((cell["layer"], cell["head"]), {each: [] for each in PUBLISHED_FIRST})
            names[protocol].append(name)
    for name in chosen["held-out"]:
        best, other = (chosen[protocol][name][RULE][K] for protocol in PUBLISHED_FIRST)
        if head_name(best) is not None:
            counted += 1
            kept += (best["layer"], best["head"]) == (other["layer"], other["head"])
    rows: list[list[Any]] = [
        [
            f"{layer}-{head}",
            len(names["published"]),
            ", ".join(names["published"]),
            len(names["held-out"]),
            ", ".join(names["held-out"]),
        ]
        for (layer, head), names in served.items()
    ]
    rows.sort(key=lambda row: (-row[1], -row[3], row[0]))
    columns = [Column("head")]
    for protocol in PUBLISHED_FIRST:
        columns += [Column("count", COUNT, protocol), Column("relations", group=protocol)]
    return Table(
        findings.file("heads", subject),
        f"Relations by their best head in {subject.name} (top-1, first token)",
        columns,
        rows,
        f"For {kept} of {counted} relations, the best head on validation is also the best on the scored data. "
        "Relations with a score of 0 have no best head.",
    )
