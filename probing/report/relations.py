"""Results by relation: best heads against baselines, the layers of the heads, and the analysis of
their errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import KINDS, kinds_of
from probing.evidence.gather import PUBLISHED_FIRST
from probing.instruments.attention.errors import (
    CLASSES,
    PLACES,
    ErrorAnalysis,
    ErrorExample,
    RelationErrors,
)
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Section, Table
from probing.report.figures import FAINT, Bars, stacked
from probing.report.findings import Findings, Subject
from probing.report.kinds import CHOSEN, CODE, COUNT, MARKED, NAME, PERCENT
from probing.report.scored import (
    FILTERS,
    RULE,
    K,
    Place,
    counted,
    difference,
    gains,
    head,
    picked,
    said,
    score,
    with_marks,
)
from probing.stats.intervals import FEW_CLUSTERS

PREVIEWED = 5
"""Relations at each end of the preview bars."""


def preview(findings: Findings) -> Figure | None:
    """Bars of the best and worst relations of the best model, by the held-out difference to the
    best baseline."""
    best = findings.best_model
    names = gains(findings, best)
    chosen = names if len(names) <= 2 * PREVIEWED else names[:PREVIEWED] + names[-PREVIEWED:]
    if not chosen:
        return None
    shown = [(subject.name, colour) for subject, colour, _ in findings.styled if subject.is_model]
    columns = {
        protocol: [
            *(_bars(findings, protocol, name, chosen, colour) for name, colour in shown),
            _baseline_bars(findings, protocol, chosen),
        ]
        for protocol in PUBLISHED_FIRST
    }
    return Figure(
        f"{findings.name}-preview",
        f"{findings.title}: models and the best baseline, top-1, first token. The bar of the baseline names its "
        f"offset or keyword. {findings.drawn_in_words}Of the relations in at least {FEW_CLUSTERS} "
        f"{findings.language.units}, those where {best.name} gains most over the best baseline (top) and loses most "
        "(bottom), held-out. Bars without a line have no interval.",
        f"Bars of the top-1 scores of {', '.join(chosen)}. The table of relations has the numbers.",
        findings.file("relations", best),
        lambda: figures.bars(chosen, columns),
    )


def _bars(findings: Findings, protocol: str, name: str, chosen: Sequence[str], colour: str) -> Bars:
    scores = findings.relations(name, protocol)
    cells = [scores[relation].cell if relation in scores else None for relation in chosen]
    return Bars(name, stacked(cells), colour)


def _baseline_bars(findings: Findings, protocol: str, chosen: Sequence[str]) -> Bars:
    """Without intervals, each with its offset or keyword, such as `offset 2` or `keyword else`."""
    best = findings.relations(BEST_BASELINE, protocol)
    which = []
    for relation in chosen:
        kind = best[relation].chosen if relation in best else ""
        which.append(
            f"{kind} {findings.relations(kind, protocol)[relation].chosen}" if kind else ""
        )
    values = [best[relation].value if relation in best else None for relation in chosen]
    return Bars("best baseline", stacked(values), FAINT, which)


def table(findings: Findings, subject: Subject) -> Table:
    """Every relation by both protocols, as in Tables 6 and 9 to 12 of the paper."""
    columns = [
        *FILTERS,
        Column("relation", MARKED, of=_marked),
        counted("edges", PUBLISHED, "items"),
        counted(findings.language.units, PUBLISHED, "functions"),
    ]
    for protocol in PUBLISHED_FIRST:
        baselines = [picked(protocol, kind) for kind in KINDS if kind in kinds_of(findings.config)]
        compared_with = Column(
            "compared with", group=protocol, of=partial(_compared_with, protocol)
        )
        columns += [score(protocol), head(protocol), *baselines, compared_with]
        columns += [difference(protocol), said(protocol)]
    if findings.paper and paper.relation_scores(findings.config, RULE):
        columns.append(Column("CuBERT", PERCENT, "paper", of=lambda row: _in_paper(row)[0]))
        columns.append(Column("offset", CHOSEN, "paper", of=lambda row: _in_paper(row)[1]))
    tests = {_tested(findings, subject, protocol) for protocol in PUBLISHED_FIRST} - {0}
    return Table(
        findings.file("relations", subject),
        f"Relations, {subject.name}: best heads and baselines, largest held-out difference first",
        columns,
        [
            row
            for rule, k in product(findings.rules, TABLE_KS)
            for row in _places(findings, subject, rule, k)
        ],
        "Percent with 95 % intervals (– if the relation is in too few functions). Head: layer-head of the best "
        "attention head, counted from 0; empty if the score is 0. Offset, keyword: the score of the best k, and the "
        "first three of them. Compared with: the better of the two, chosen on the scored data (published) or on "
        "validation (held-out). Difference: to that baseline. p: corrected (Holm) for the "
        f"{' or '.join(map(str, sorted(tests)))} relations of a protocol. {COLOURED} Paper: CuBERT and the best "
        "single offset, at k = 1, on the published dataset (Tables 9 to 12).",
        filters=2,
    )


def _places(findings: Findings, subject: Subject, rule: str, k: str) -> list[Place]:
    """The relations by a rule and k, largest held-out difference first, those without any last."""
    names = findings.relations(subject.name, PUBLISHED)
    places = [Place(findings, subject.name, rule, k, name) for name in names]

    def order(row: Place) -> tuple[bool, float, str]:
        gained = row.difference(HELD_OUT)
        return gained is None, -gained[0] if gained else 0, row.group

    return sorted(places, key=order)


def _marked(row: Place) -> list[str]:
    entry = row.score(PUBLISHED)
    return with_marks(row.group, entry is not None and entry.few_functions)


def _compared_with(protocol: str, row: Place) -> str | None:
    best = row.score(protocol, BEST_BASELINE)
    return best.chosen if best and row.difference(protocol) else None


def _in_paper(row: Place) -> tuple[float | None, list[Any] | None]:
    """The paper's scores of CuBERT and of the best offset, with one guess."""
    in_paper = paper.relation_scores(row.findings.config, row.rule) if row.k == K else {}
    theirs = in_paper.get(row.group)
    return (theirs.cubert, [theirs.offset_score, str(theirs.offset)]) if theirs else (None, None)


def _tested(findings: Findings, subject: Subject, protocol: str) -> int:
    """The number of relations that are compared with the best baseline."""
    names = findings.relations(subject.name, protocol)
    return sum(
        findings.difference(subject.name, protocol, group=name) is not None for name in names
    )


def layers(findings: Findings, subject: Subject) -> Section:
    published, title = (
        findings.relations(subject.name, PUBLISHED),
        f"Relations by layer in {subject.name}",
    )
    names = [name for name in subject.heads if not published[name].few_functions]
    key, least = (
        findings.file("layers", subject),
        f"in at least {FEW_CLUSTERS} {findings.language.units}",
    )
    if len(names) < 2:
        return Section(key, title, [f"Too few functions: fewer than two relations are {least}."])
    by_layer = {name: subject.heads[name].max(axis=1) for name in names}
    best = {
        name: divmod(int(subject.heads[name].argmax()), subject.heads[name].shape[1])
        for name in names
    }
    names.sort(
        key=lambda name: (not by_layer[name].any(), best[name], -by_layer[name].max(), name)
    )  # none found: last
    scores = np.stack([by_layer[name] for name in names])
    layer_scores = Table(
        key,
        f"Score of the best head of each layer, {subject.name}, top-1, first token",
        [
            Column("relation", NAME),
            *(Column(f"layer {layer}", PERCENT) for layer in range(scores.shape[1])),
        ],
        [[name, *row.tolist()] for name, row in zip(names, scores)],
        "In percent. Heads are chosen on the scored data.",
    )
    heat = Figure(
        key,
        f"{subject.name} on {findings.title}: the score of the best head of each layer (top-1, first token; bold: "
        f"the best layer), for relations {least}, ordered by the layer of their best head.",
        "Heat map of relation by layer. Each cell and the CSV file of the same name have the number.",
        key,
        lambda: figures.by_layer(names, scores),
    )
    return Section(key, title, [heat, _shared_heads(findings, subject)], drawn=[layer_scores])


def _shared_heads(findings: Findings, subject: Subject) -> Table:
    """For each head, the relations of which it is the best one, by each protocol."""
    best = {protocol: findings.relations(subject.name, protocol) for protocol in PUBLISHED_FIRST}
    served: dict[str, dict[str, list[str]]] = {}
    for protocol, of_relations in best.items():
        for name, entry in of_relations.items():
            if entry.chosen:
                served.setdefault(entry.chosen, {each: [] for each in PUBLISHED_FIRST})[
                    protocol
                ].append(name)
    both = [name for name in best[HELD_OUT] if best[PUBLISHED][name].chosen]
    same = sum(best[HELD_OUT][name].chosen == best[PUBLISHED][name].chosen for name in both)
    rows: list[list[Any]] = []
    for served_by, names in served.items():
        rows.append([served_by])
        for relations in names.values():
            rows[-1] += [len(relations), ", ".join(relations)]
    rows.sort(key=lambda row: (-row[1], -row[3], row[0]))
    columns = [Column("head")]
    for protocol in PUBLISHED_FIRST:
        columns += [Column("count", COUNT, protocol), Column("relations", group=protocol)]
    return Table(
        findings.file("heads", subject),
        f"Relations by their best head in {subject.name} (top-1, first token)",
        columns,
        rows,
        f"For {same} of {len(both)} relations, the best head on validation is also the best on the scored data. "
        "Relations with a score of 0 have no best head.",
    )


# --------------------------------------------------------------------------------------------------------------- errors

_MARKS = {"head": ("«", "»"), "dependent": ("⟦", "⟧"), "chosen": ("✗", "✗")}
_MARKED = "«head» token, ⟦token⟧ of the dependent that counts by the rule, ✗wrong choice✗"


def error_parts(analysis: ErrorAnalysis, rule: str) -> list[str | Table]:
    """The share of each class and place in the wrong first choices of each relation, and an example
    of each class."""
    differing = analysis.differing[rule]
    settings = analysis.settings
    title = (
        f"{settings.model} on {settings.data}, {settings.config}/{settings.split}: what the best heads rank first "
        f"where they are wrong, in percent of their errors, {rule} token of the dependent"
    )
    shares, counts = _error_shares(analysis, [rule], "errors", title), analysis.classes(rule)
    edges = sum(entry.edges for entry in analysis.rules[rule].values())
    errors = sum(counts.values())
    places = Counter[str]()
    for relation in analysis.rules[rule]:
        places.update(analysis.places(rule, relation))
    everything = ["all relations", edges, errors, ""]
    everything += [_percent(counts[name], errors) for name in _occurring(analysis, [rule])]
    everything += [_percent(places[name], errors) for name in PLACES]
    text = f"rounding changed {differing} edges: this run hits them and the ledger does not, or the reverse"
    most = sorted(
        _classes(analysis, rule), key=lambda row: (CLASSES.index(row[1]), -row[2].errors, row[0])
    )
    of_each = {kind: (relation, kind, errors) for relation, kind, errors in reversed(most)}
    rows = [of_each[kind] for kind in CLASSES if kind in of_each]
    examples = _error_examples(
        rows, "error-examples", "An example of each class of errors", filters=0
    )
    return [
        replace(shares, totals=[everything]),
        examples,
        analysis.signature,
        *([text] if differing else []),
    ]


def error_tables(findings: Findings, subject: Subject) -> list[str | Table]:
    """The same in a report, by all rules."""
    analysis = subject.errors
    if analysis is None:
        return [
            f"{subject.name}: not analysed. Run `codesyntax errors {subject.file.name}` in the folder of the result. "
            "The command runs the model again and classifies its wrong first choices; the report then shows them."
        ]
    title = f"What the best heads of {subject.name} find where they are wrong, in percent of the relation's errors"
    shares = _error_shares(analysis, RULES, findings.file("errors", subject), title)
    shares.notes = (
        f"Published protocol, top-1, on all {subject.functions:,} {findings.language.units} of the result. "
        "probing/instruments/attention/errors.py defines the classes; each error belongs to the first class that "
        "applies, and to one place relative to the edge."
    )
    title = f"An example of each class of errors, {subject.name}, first token"
    return [
        shares,
        _error_examples(
            _classes(analysis, RULE), findings.file("error-examples", subject), title, filters=1
        ),
    ]


def _most_errors_first(analysis: ErrorAnalysis, rule: str) -> list[tuple[str, RelationErrors]]:
    return sorted(analysis.rules[rule].items(), key=lambda item: (-item[1].errors, item[0]))


def _occurring(analysis: ErrorAnalysis, rules: Sequence[str]) -> list[str]:
    return [name for name in CLASSES if any(analysis.classes(rule)[name] for rule in rules)]


def _error_shares(analysis: ErrorAnalysis, rules: Sequence[str], name: str, title: str) -> Table:
    """The share of each class and place among the errors of each relation; a narrow terminal drops
    rare classes first, then the places."""
    occurring, rows = _occurring(analysis, rules), []
    for rule in rules:
        for relation, entry in _most_errors_first(analysis, rule):
            head = f"{entry.layer}-{entry.head}" if entry.errors < entry.edges else None
            classes = [
                entry.classes[kind].share if kind in entry.classes else None for kind in occurring
            ]
            places = [
                _percent(count, entry.errors) for count in analysis.places(rule, relation).values()
            ]
            rows.append([rule, relation, entry.edges, entry.errors, head, *classes, *places])
    several = len(rules) > 1
    counts = analysis.classes(rules[0])
    rarest_first = sorted(occurring, key=lambda kind: counts[kind])
    return Table(
        name,
        title,
        [
            *([Column("rule")] if several else []),
            Column("relation", NAME),
            *Column.each(COUNT, "edges", "errors"),
            Column("head"),
            *(
                Column(kind, PERCENT, "class", (1 + rarest_first.index(kind),))
                for kind in occurring
            ),
            *(Column(where, PERCENT, "place", (1 + len(occurring),)) for where in PLACES),
        ],
        rows if several else [row[1:] for row in rows],
        "Head: layer-head at k = 1, counted from 0. Place: relative to the edge.",
        filters=int(several),
    )


def _percent(count: int, total: int) -> float | None:
    return 100 * count / total if count else None


def _classes(analysis: ErrorAnalysis, rule: str) -> list[tuple[str, str, Any]]:
    """Relations, those with most errors first, and each class of their errors."""
    return [
        (relation, kind, errors)
        for relation, entry in _most_errors_first(analysis, rule)
        for kind, errors in entry.classes.items()
    ]


def _error_examples(rows: list[tuple[str, str, Any]], name: str, title: str, filters: int) -> Table:
    return Table(
        name,
        title,
        [
            Column("relation", NAME, of=lambda relation, kind, errors: relation),
            Column("class", of=lambda relation, kind, errors: kind),
            Column("errors", COUNT, spare=(2,), of=lambda relation, kind, errors: errors.errors),
            Column("percent", PERCENT, spare=(1,), of=lambda relation, kind, errors: errors.share),
            Column(
                "function",
                spare=(3,),
                of=lambda relation, kind, errors: errors.examples[0]["function"],
            ),
            Column("code", CODE, of=lambda relation, kind, errors: marked(errors.examples[0])),
        ],
        rows,
        f"{_MARKED}.",
        filters=filters,
    )


def marked(example: ErrorExample) -> str:
    """The lines of an example with their numbers, and its tokens between marks."""
    lines = dict(example["lines"])
    places = [(example[name], marks) for name, marks in _MARKS.items() if example[name]]
    for (line, start, end), (before, behind) in sorted(
        places, reverse=True
    ):  # from the right, so that columns stay
        code = lines[str(line)]
        lines[str(line)] = code[:start] + before + code[start:end] + behind + code[end:]
    return "\n".join(f"{line}: {code.strip()}" for line, code in lines.items())
