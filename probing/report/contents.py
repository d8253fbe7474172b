"""The sections of a report, made from findings. No score is computed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.schema import CONFIGS
from codesyntax_metric.topk_uas import RULES
from probing.align import NOT_PREDICTED
from probing.baselines import KINDS
from probing.error_classes import CLASSES
from probing.evidence import BEST_BASELINE, PROTOCOLS
from probing.report import figures
from probing.report.document import (
    CHOSEN,
    CODE,
    COUNT,
    DIFFERENCE,
    MARKED,
    NAME,
    PERCENT,
    SCORE,
    Column,
    Figure,
    P,
    Section,
    Table,
)
from probing.report.errors import marked
from probing.report.figures import COLOURS, FAINT, INK, Bars, Line
from probing.report.findings import BASELINES, RANDOM_HEADS, Findings, Subject
from probing.result import KS, TABLE_KS
from probing.selection import FEW_EDGES, PERMUTATIONS, RESAMPLES, holm

PREVIEWED = 5
"""Relations at each end of the preview bars."""

_RULE, _K = "first", "1"  # of what is shown for one rule and k only, as in the paper
_FILTERS = [Column("rule"), Column("k")]


def sections(findings: Sequence[Findings]) -> list[Section]:
    """The whole report."""
    ablations = _ablations(findings)
    return [
        Section("overview", "Overview", [_overview(findings)]),
        _method(),
        *map(_config, findings),
        *([Section("ablations", "Ablations", _ablation_notes(), ablations)] if ablations else []),
        _provenance(findings),
    ]


def _method() -> Section:
    return Section(
        "method",
        "How to read this",
        [
            "The score is top-k UAS in percent: how often the dependent of an edge is among the k tokens that an attention head "
            "attends to most, when it reads the edge's head token (Shen et al. 2022). The rules first, any and last say which "
            "token of the dependent counts. In the direction dependent-to-head, the dependent's row is read and the head token "
            "is to be found.",
            "Two protocols stand side by side. Published: each relation, rule and k takes the head that is best on the scored "
            "data, as in the paper; choosing and scoring on the same data flatters. Held-out: the head is chosen on the split "
            "validation and scored on data that the choice has not seen. Baselines are chosen in the same two ways. A relation "
            "without edges on validation has no held-out score; a list of offsets or keywords that ends where validation has no more "
            "to gain is filled to k with the offsets nearest to it, or the keywords most frequent on validation.",
            "A mean runs over the relations that have edges, but for those that the paper leaves out, which are marked as not in "
            "the mean: comprehensions, dictionaries, slices, with and labels. Each relation weighs the same. Relations with fewer "
            f"than {FEW_EDGES} edges are marked: their scores and intervals say little.",
            f"Intervals are of 95 %, from a BCa bootstrap over functions ({RESAMPLES:,} resamples), since the edges of one function "
            "resemble each other. The choice of heads is not made again in the resamples, so the optimism of choosing is in the "
            "distance between the two protocols and not in the intervals of the first. "
            f"p-values are of a two-sided paired permutation test over functions ({PERMUTATIONS:,} permutations; the smallest "
            "possible is 0.0001). Where several tests stand in one column of a table, they are corrected by Holm's method, for "
            "the number of tests that the table's note names.",
            "The best baseline is the combined one: for each relation and k the better of a fixed offset and a keyword. Controls: "
            "random attention ranks all tokens at random; random-weights is the model's architecture before training; "
            "shuffled-labels is the model on edges that relate the wrong tokens of a function. Rows marked paper are the figures of "
            f"{paper.source()}: of the published dataset and other software, for orientation only.",
        ],
    )


# Overview and means


class _Scored(NamedTuple):
    """What has a mean over relations. `scores`: protocol -> rule -> k -> cell; `differences`: protocol, rule and k -> the
    difference to the best baseline and its p, corrected."""

    name: str
    kind: str
    functions: int
    edges: int
    scores: dict[str, Any]
    differences: dict[tuple[str, str, str], list[Any]]

    def cell(self, protocol: str, rule: str, k: str) -> Any:
        return self.scores.get(protocol, {}).get(rule, {}).get(k)

    def difference(self, protocol: str, rule: str, k: str) -> list[Any]:
        return self.differences.get((protocol, rule, k), [None, None])


def _scored(found: Findings) -> list[_Scored]:
    """Models, controls and baselines, all on the same functions."""
    size = found.functions, found.edges
    differences = _differences_of(found)
    rows = []
    for place, subject in enumerate(found.subjects):
        kind = "; ".join(["model" if subject.is_model else "control"] + ([subject.marks] if subject.marks else []))
        scores = {protocol: subject.entry["protocols"][protocol]["scores"] for protocol in PROTOCOLS}
        rows.append(_Scored(subject.name, kind, *size, scores, differences[place]))
    chance = dict.fromkeys(PROTOCOLS, found.chance)
    rows.append(_Scored(f"random attention, best of {RANDOM_HEADS} heads", "control", *size, found.random, {}))
    rows.append(_Scored("random attention, a head on average", "control", *size, chance, {}))
    for kind in BASELINES:
        scores = {protocol: found.baselines[protocol][kind]["scores"] for protocol in PROTOCOLS}
        rows.append(_Scored(kind, "baseline", *size, scores, {}))
    return rows


def _paper(found: Findings) -> list[_Scored]:
    """The paper's own rows, where it has such a config."""
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for rule in RULES if found.as_published else ():
        for name, of_k in paper.scores(found.config, rule).items():
            scores.setdefault(name, {})[rule] = of_k
    functions, edges = paper.functions(found.config), sum(paper.edges(found.config).values())
    return [_Scored(name, "paper", functions, edges, {PROTOCOLS[0]: of}, {}) for name, of in scores.items()]


def _differences_of(found: Findings) -> list[dict[tuple[str, str, str], list[Any]]]:
    """For each subject: protocol, rule and k -> difference to the best baseline and p, corrected over the subjects."""
    of_subjects: list[dict[tuple[str, str, str], list[Any]]] = [{} for _ in found.subjects]
    for place, subject in enumerate(found.subjects):
        for protocol, of_rule in subject.entry["differences"].items():
            for rule, of_k in of_rule.items():
                for k, cell in of_k.items():
                    of_subjects[place][protocol, rule, k] = [cell["difference"], cell["p"]]
    for key in {key for of_subject in of_subjects for key in of_subject}:
        together = [of_subject[key] for of_subject in of_subjects if key in of_subject]
        for cells, p in zip(together, holm(np.array([p for _, p in together])).tolist()):
            cells[1] = p
    return of_subjects


def _overview(findings: Sequence[Findings]) -> Table:
    rows = []
    everything = [(found.title, scored) for found in findings for scored in [*_scored(found), *_paper(found)]]
    for rule in RULES:
        for k in TABLE_KS:
            for title, scored in everything:
                cells = []
                for protocol in PROTOCOLS:
                    cells += [scored.cell(protocol, rule, k), *scored.difference(protocol, rule, k)]
                if scored.kind != "paper" or cells[0] is not None:
                    rows.append([rule, k, title, scored.name, scored.kind, scored.functions, scored.edges, *cells])
    columns = [
        Column("config", NAME),
        Column("name"),
        Column("kind"),
        Column("functions", COUNT),
        Column("edges", COUNT),
    ]
    for protocol in PROTOCOLS:
        columns += [
            Column("score", SCORE, protocol),
            Column("less best baseline", DIFFERENCE, protocol),
            Column("p", P, protocol),
        ]
    return Table(
        "overview",
        "Mean top-k UAS over relations, models beside controls, baselines and the paper",
        [*_FILTERS, *columns],
        rows,
        "Percent with 95 % intervals. Less best baseline: the score less that of the combined baseline on the same "
        "functions, over the relations that both have; green or red where the interval excludes 0. p: corrected (Holm) "
        f"within a config for {_tests(findings)}.",
        filters=2,
    )


def _tests(findings: Sequence[Findings]) -> str:
    numbers = sorted({sum(bool(subject.comparisons) for subject in found.subjects) for found in findings})
    return " or ".join(map(str, numbers)) + (" test" if numbers == [1] else " tests, as many as rows have a difference")


def _means(found: Findings) -> Table:
    rows = []
    everything = [*_scored(found), *_paper(found)]
    for rule in RULES:
        for scored in everything:
            cells = [scored.cell(protocol, rule, k) for protocol in PROTOCOLS for k in TABLE_KS]
            if scored.kind != "paper" or cells[0] is not None:
                rows.append([rule, scored.name, scored.kind, *cells])
    columns = [Column(f"k = {k}", SCORE, protocol) for protocol in PROTOCOLS for k in TABLE_KS]
    return Table(
        f"{found.name}-means",
        "Mean over relations, as Tables 3 (first) and 5 (any) of the paper",
        [Column("rule"), Column("name"), Column("kind"), *columns],
        rows,
        "Percent with 95 % intervals.",
        filters=1,
    )


def _differences(found: Findings) -> Table:
    rows = []
    for rule in RULES:
        for scored in _scored(found):
            for k in TABLE_KS if scored.differences else ():
                cells = [cell for protocol in PROTOCOLS for cell in scored.difference(protocol, rule, k)]
                rows.append([rule, scored.name, scored.kind, int(k), *cells])
    columns = [Column("rule"), Column("name"), Column("kind"), Column("k", COUNT)]
    for protocol in PROTOCOLS:
        columns += [Column("difference", DIFFERENCE, protocol), Column("p", P, protocol)]
    return Table(
        f"{found.name}-differences",
        f"Mean over relations less that of the best baseline ({BEST_BASELINE})",
        columns,
        rows,
        f"Percentage points with 95 % intervals; p corrected (Holm) at each k for {_tests([found])}. Shuffled labels have "
        "other edges than the baselines, and no difference.",
        filters=1,
    )


# Figures


def _figure(name: str, title: str, alt: str, draw: Callable[[], Any]) -> Figure:
    with figures.style():
        drawn = figures.lay_out(draw())
        return Figure(name, title, alt, figures.to_svg(drawn), figures.to_png(drawn))


def _line(scores: dict[str, Any], rule: str) -> np.ndarray:
    """The curve of rule -> k -> cell: (3, k), or (1, k) where cells have no interval; NaN where there is none."""
    cells = [scores[rule].get(str(k)) for k in KS]
    cells = [cell if isinstance(cell, (list, tuple)) else [cell] for cell in cells]
    width = max(map(len, cells))
    padded = [(list(cell) + [None] * width)[:width] for cell in cells]
    return np.array(padded, float).T


def _curves(found: Findings) -> Figure:
    panels: dict[str, dict[str, list[Line]]] = {}
    for rule in RULES:
        for protocol in PROTOCOLS:
            lines = panels.setdefault(rule, {}).setdefault(protocol, [])
            for subject, colour, style in _styled(found):
                scores = _line(subject.entry["protocols"][protocol]["scores"], rule)
                lines.append(Line(subject.name, scores, colour, style))
            for kind, style in zip(BASELINES, ("--", ":", "-")):
                lines.append(Line(kind, _line(found.baselines[protocol][kind]["scores"], rule), INK, style))
            lines.append(Line("random attention", _line(found.random[protocol], rule), FAINT, ":"))
            if protocol == PROTOCOLS[0]:
                theirs = {scored.name: scored.scores[protocol] for scored in _paper(found)}
                for name, colour in (("Combined", INK), ("CuBERT", FAINT)):
                    if rule in theirs.get(name, {}):
                        lines.append(Line(f"{name} (paper)", _line(theirs[name], rule), colour, points=True))
    return _figure(
        f"{found.name}-curves",
        f"{found.title}: mean top-k UAS over k, by rule (rows) and protocol (columns). Bands are 95 % intervals. "
        "Lines without colour are baselines, broken coloured lines are controls; circles are the paper's figures for its own data.",
        f"Curves of the mean score over k from 1 to 20 on {found.title}; the numbers of k = 1, 3, 10 and 20 are in the table "
        "of means above.",
        lambda: figures.curves(panels),
    )


def _curve_points(found: Findings) -> Table:
    """What the curves show, and the rest of the k."""
    rows = [
        [rule, protocol, scored.name, scored.kind, k, scored.cell(protocol, rule, str(k))]
        for rule in RULES
        for protocol in PROTOCOLS
        for scored in _scored(found)
        for k in KS
    ]
    names = [Column(name) for name in ("rule", "protocol", "name", "kind")]
    return Table(f"{found.name}-curves", "", [*names, Column("k", COUNT), Column("score", SCORE)], rows)


def _styled(found: Findings) -> list[tuple[Subject, str, str]]:
    """Subjects with their colour and line: a control has the colour of its model."""
    models = list(dict.fromkeys(subject.settings["model"] for subject in found.subjects))
    styled, seen = [], 0
    for subject in found.subjects:
        if subject.is_model:
            colour, style = COLOURS[seen % len(COLOURS)], "-"
            seen += 1
        else:
            colour = COLOURS[models.index(subject.settings["model"]) % len(COLOURS)]
            style = {"random-weights": "--", "shuffled-labels": "-."}[subject.settings["control"]]
        styled.append((subject, colour, style))
    return styled


def _preview(found: Findings) -> Figure | None:
    """Best and worst relations of the first model, by the held-out difference to the best baseline."""
    if not found.models:
        return None
    comparison = found.models[0].comparisons["held-out"]
    relations = found.models[0].entry["protocols"]["held-out"]["relations"]
    by_difference = sorted(
        (-comparison.difference.relations[0, 0, 0, place], name)
        for place, name in enumerate(comparison.relations)
        if not relations[name]["few_edges"]
    )
    names = [name for _, name in by_difference]
    chosen = names if len(names) <= 2 * PREVIEWED else names[:PREVIEWED] + names[-PREVIEWED:]
    if not chosen:
        return None
    columns: dict[str, list[Bars]] = {}
    for protocol in PROTOCOLS:
        offset = found.baselines[protocol]["offset"]["relations"]
        scores = [[offset[name][_RULE][_K] if name in offset else np.nan] * 3 for name in chosen]
        columns[protocol] = [Bars("best offset", np.array(scores, float).T, FAINT)]
        for subject, colour, _ in _styled(found):
            if subject.is_model:
                of = subject.entry["protocols"][protocol]["relations"]
                scores = [of[name][_RULE][_K]["score"] if name in of else [np.nan] * 3 for name in chosen]
                columns[protocol].insert(-1, Bars(subject.name, np.array(scores, float).T, colour))
    first = found.models[0].name
    return _figure(
        f"{found.name}-preview",
        f"{found.title}: models beside the best single offset, top-1, first token. Of the relations with at least {FEW_EDGES} "
        f"edges, those where {first} gains most over the best baseline (top) and loses most (bottom), held-out.",
        f"Bars of the top-1 scores of {', '.join(chosen)}; the numbers are in the table of relations.",
        lambda: figures.bars(chosen, columns),
    )


# Relations


def _relations(found: Findings, subject: Subject) -> Table:
    """Every relation by both protocols, as Tables 6 and 9 to 12."""
    rows = []
    for rule_number, rule in enumerate(RULES):
        published = paper.relation_scores(found.config, rule)
        for k in TABLE_KS:
            of_rule = []
            for name, entry in subject.entry["protocols"]["published"]["relations"].items():
                row = [rule, k, [name, _relation_marks(entry)], entry["edges"]]
                for protocol in PROTOCOLS:
                    row += _relation_cells(found, subject, protocol, name, rule_number, k)
                held_out = row[-2]  # the difference
                if found.as_published:
                    theirs = published.get(name) if k == _K else None
                    row += [theirs and theirs.cubert, theirs and [theirs.offset_score, str(theirs.offset)]]
                of_rule.append(((held_out is None, -(held_out or [0])[0], name), row))
            rows += [row for _, row in sorted(of_rule, key=lambda keyed: keyed[0])]
    columns = [*_FILTERS, Column("relation", MARKED), Column("edges", COUNT)]
    for protocol in PROTOCOLS:
        columns += [
            Column("score", SCORE, protocol),
            Column("head", group=protocol),
            Column("offset", CHOSEN, protocol),
            Column("keyword", CHOSEN, protocol),
            Column("difference", DIFFERENCE, protocol),
            Column("p", P, protocol),
        ]
    if found.as_published:
        columns += [Column("CuBERT", PERCENT, "paper"), Column("offset", CHOSEN, "paper")]
    tests = {len(of.relations) for of in subject.comparisons.values()}
    return Table(
        f"{found.name}-relations-{found.subjects.index(subject) + 1}",
        f"Relations, {subject.name}: best heads and baselines, the largest held-out difference first",
        columns,
        rows,
        "Percent with 95 % intervals. Head: layer-head of the best attention head, counted from 0. Offset, keyword: the score "
        "of the best k, and which (the first three). Difference: the score less that of the best baseline (the better of "
        "offset and keyword); green or red where the interval excludes 0. "
        f"p: corrected (Holm) for the {' or '.join(map(str, sorted(tests)))} relations of a protocol. Paper: CuBERT and the best single "
        "offset, at k = 1, on the published dataset (Tables 9 to 12).",
        filters=2,
    )


def _relation_marks(entry: dict[str, Any]) -> str:
    marks = (["few edges"] if entry["few_edges"] else []) + ([] if entry["in_mean"] else ["not in mean"])
    return "; ".join(marks)


def _relation_cells(found: Findings, subject: Subject, protocol: str, name: str, rule: int, k: str) -> list[Any]:
    """Score, head, offset, keyword, difference and p of one protocol."""
    entry = subject.entry["protocols"][protocol]["relations"].get(name)
    if entry is None:
        return [None] * 6
    of = entry[RULES[rule]][k]
    cells = [of["score"], f"{of['layer']}-{of['head']}"]
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
    return [*cells, difference, float(comparison.p_holm[rule, number, place])]


# Where relations live


def _layers(found: Findings, subject: Subject) -> Section:
    number = found.subjects.index(subject) + 1
    names = [
        name
        for name in subject.heads
        if subject.entry["protocols"]["published"]["relations"][name]["edges"] >= FEW_EDGES
    ]
    by_layer = {name: subject.heads[name].max(axis=1) for name in names}
    best = {name: divmod(int(subject.heads[name].argmax()), subject.heads[name].shape[1]) for name in names}
    names.sort(key=lambda name: (best[name], -by_layer[name].max(), name))
    section = Section(f"{found.name}-layers-{number}", f"Where relations live in {subject.name}")
    if len(names) < 2:
        section.parts = [f"Fewer than two relations have {FEW_EDGES} edges."]
        return section
    scores = np.stack([by_layer[name] for name in names])
    table = Table(
        f"{found.name}-layers-{number}",
        f"Score of the best head of each layer, {subject.name}, top-1, first token",
        [Column("relation", NAME), *(Column(f"layer {layer}", PERCENT) for layer in range(scores.shape[1]))],
        [[name, *row.tolist()] for name, row in zip(names, scores)],
        "In percent, chosen on the scored data.",
    )
    heat = _figure(
        f"{found.name}-layers-{number}",
        f"{subject.name} on {found.title}: score of the best head of each layer (top-1, first token; bold: the best layer), for "
        f"relations with at least {FEW_EDGES} edges, in the order of their best head.",
        "Heat map of relation by layer; every number is written in its cell, and in the CSV file of the same name.",
        lambda: figures.by_layer(names, scores),
    )
    # ranks would make much of the order of heads that all find next to nothing
    flat = np.stack([subject.heads[name].ravel() for name in names])
    with np.errstate(invalid="ignore"):
        correlation = np.corrcoef(flat)
    alike = _figure(
        f"{found.name}-agreement-{number}",
        f"{subject.name} on {found.title}: agreement of two relations, the correlation (Pearson) of their top-1 scores over all "
        f"{flat.shape[1]} attention heads. Red: the same heads find both. The order is that of the heat map.",
        "Heat map of the correlation between relations; the heads that several relations share are in the table below.",
        lambda: figures.agreement(names, correlation),
    )
    agreement = Table(
        f"{found.name}-agreement-{number}",
        "",
        [Column("relation", NAME), *(Column(name, PERCENT) for name in names)],
        [[name, *row.tolist()] for name, row in zip(names, correlation)],
    )
    section.parts = [heat, alike, _shared_heads(found, subject, number)]
    section.drawn = [table, agreement]
    return section


def _shared_heads(found: Findings, subject: Subject, number: int) -> Table:
    """Heads that are the best one of several relations, by each protocol."""
    served: dict[tuple[int, int], dict[str, list[str]]] = {}
    kept = counted = 0
    chosen = {protocol: subject.entry["protocols"][protocol]["relations"] for protocol in PROTOCOLS}
    for protocol, relations in chosen.items():
        for name, entry in relations.items():
            cell = entry[_RULE][_K]
            served.setdefault((cell["layer"], cell["head"]), {of: [] for of in PROTOCOLS})[protocol].append(name)
    for name, entry in chosen["held-out"].items():
        one, other = (chosen[protocol][name][_RULE][_K] for protocol in PROTOCOLS)
        counted += 1
        kept += (one["layer"], one["head"]) == (other["layer"], other["head"])
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
        f"For {kept} of {counted} relations the head chosen on validation is the one that is best on the scored data.",
    )


# Models, ablations, errors, provenance


def _pairs(found: Findings) -> Table:
    rows = []
    for rule_number, rule in enumerate(RULES):
        for k in TABLE_KS:
            corrected = {
                protocol: holm(np.array([of[protocol].p_mean[rule_number, int(k) - 1] for of in found.pairs.values()]))
                for protocol in PROTOCOLS
            }
            for place, ((one, other), of) in enumerate(found.pairs.items()):
                row = [rule, k, found.subjects[one].name, found.subjects[other].name]
                for protocol in PROTOCOLS:
                    difference = of[protocol].difference.mean[:, rule_number, int(k) - 1].tolist()
                    row += [difference, float(corrected[protocol][place])]
                rows.append(row)
    columns = [Column("model"), Column("less model")]
    for protocol in PROTOCOLS:
        columns += [Column("difference", DIFFERENCE, protocol), Column("p", P, protocol)]
    return Table(
        f"{found.name}-pairs",
        "Models compared in pairs, mean over relations",
        [*_FILTERS, *columns],
        rows,
        f"Percentage points with 95 % intervals, on the same functions; p corrected (Holm) for {len(found.pairs)} "
        f"{'pair' if len(found.pairs) == 1 else 'pairs'}.",
        filters=2,
    )


def _ablation_notes() -> list[str]:
    notes = [
        f"In {config}, labels leave out {token!r}, and models may not predict it either (their signatures say not-predicted)."
        for config, token in NOT_PREDICTED.items()
    ]
    return [
        "The same functions with other tokens: with line breaks and indentation as tokens, or without semicolons. Labels and "
        "relations differ, and each config has the functions that all its models could read, so the configs are not compared "
        "by a test.",
        *notes,
    ]


def _ablations(findings: Sequence[Findings]) -> list[Section]:
    """A section for each language, and for each direction and the like, of which there are several configs."""
    alike: dict[tuple, list[Findings]] = {}
    for found in findings:
        made, (language, _) = found.settings, CONFIGS[found.config]
        told = (language, made["data"].partition("@")[0], made["split"], made["direction"], made["limit"])
        alike.setdefault(told, []).append(found)
    sections: dict[str, Section] = {}
    for (language, *_), of in alike.items():
        if len({found.config for found in of}) > 1:
            number = sum(name.startswith(language) for name in sections) + 1
            name = f"{language}-ablations" + (f"-{number}" if number > 1 else "")
            sections[name] = _ablation(name, language, of)
    return list(sections.values())


def _ablation(name: str, language: str, findings: Sequence[Findings]) -> Section:
    kinds = ("model", "control", "baseline")
    everything = [(found.title, scored) for found in findings for scored in _scored(found)]
    # what has the same name stands together
    everything.sort(key=lambda line: (kinds.index(line[1].kind.partition(";")[0]), line[1].name))
    rows = []
    for rule in RULES:
        for k in TABLE_KS:
            for title, scored in everything:
                cells = [
                    cell
                    for protocol in PROTOCOLS
                    for cell in (scored.cell(protocol, rule, k), scored.difference(protocol, rule, k)[0])
                ]
                rows.append([rule, k, scored.name, scored.kind, title, scored.functions, *cells])
    columns = [Column("name"), Column("kind"), Column("config", NAME), Column("functions", COUNT)]
    for protocol in PROTOCOLS:
        columns += [Column("score", SCORE, protocol), Column("less best baseline", DIFFERENCE, protocol)]
    table = Table(
        name,
        f"Mean over relations in the configs of {language.capitalize()}",
        [*_FILTERS, *columns],
        rows,
        "Percent with 95 % intervals.",
        filters=2,
    )
    panels: dict[str, dict[str, list[Line]]] = {}
    styles = ("-", "--", ":", "-.")
    for rule in RULES[:2]:  # those of the paper's figures
        for protocol in PROTOCOLS:
            lines = panels.setdefault(rule, {}).setdefault(protocol, [])
            for found, style in zip(findings, cycle(styles)):
                baseline = _line(found.baselines[protocol][BEST_BASELINE]["scores"], rule)
                lines.append(Line(f"{BEST_BASELINE}, {found.title}", baseline, INK, style))
                for subject, colour, _ in _styled(found):
                    if subject.is_model:
                        scores = _line(subject.entry["protocols"][protocol]["scores"], rule)
                        lines.append(Line(f"{subject.name}, {found.title}", scores, colour, style))
    figure = _figure(
        name,
        f"{language.capitalize()}: mean top-k UAS over k in each config, models and the best baseline. Bands are 95 % intervals.",
        "Curves of the mean score over k from 1 to 20, a line style for each config; the numbers are in the table.",
        lambda: figures.curves(panels),
    )
    told = findings[0].title.removeprefix(findings[0].config)
    return Section(name, language.capitalize() + told, [table, figure])


def _errors(found: Findings, subject: Subject) -> list[str | Table]:
    analysis = subject.errors
    if analysis is None:
        return [
            f"{subject.name}: not analysed. `codesyntax errors {subject.file.name}`, in the folder of the result, runs the model "
            "once more and classes the wrong first choices; the report then shows them."
        ]
    number = found.subjects.index(subject) + 1
    occurring = [name for name in CLASSES if any(analysis.classes(rule)[name] for rule in RULES)]
    shares, examples = [], []
    for rule in RULES:
        of_rule = sorted(analysis.rules[rule].items(), key=lambda item: (-item[1]["errors"], item[0]))
        for name, entry in of_rule:
            cells = [entry["classes"].get(kind, {"share": None})["share"] for kind in occurring]
            shares.append([rule, name, entry["edges"], entry["errors"], f"{entry['layer']}-{entry['head']}", *cells])
            if rule == _RULE:
                for kind, of_kind in entry["classes"].items():
                    shown = marked(of_kind["examples"][0])
                    examples.append(
                        [name, kind, of_kind["errors"], of_kind["share"], of_kind["examples"][0]["function"], shown]
                    )
    counts = [Column("edges", COUNT), Column("errors", COUNT), Column("head")]
    return [
        Table(
            f"{found.name}-errors-{number}",
            f"What the best heads of {subject.name} rank first where they are wrong, in percent of a relation's errors",
            [
                Column("rule"),
                Column("relation", NAME),
                *counts,
                *(Column(name, PERCENT, "class") for name in occurring),
            ],
            shares,
            f"Published protocol, top-1, on all {subject.functions:,} functions of the result. The classes are those of "
            "probing/error_classes.py; each error is in the first that fits.",
            filters=1,
        ),
        Table(
            f"{found.name}-error-examples-{number}",
            f"An example of each class of errors, {subject.name}, first token",
            [
                Column("relation", NAME),
                Column("class"),
                Column("errors", COUNT),
                Column("percent", PERCENT),
                Column("function"),
                Column("code", CODE),
            ],
            examples,
            "«head» token, ⟦token⟧ of the dependent that is asked for, ✗wrong choice✗.",
            filters=1,
        ),
    ]


def _config(found: Findings) -> Section:
    functions, edges = found.functions, found.edges
    made = found.settings
    intro = (
        f"{functions:,} functions and {edges:,} edges of {made['data']}, config {made['config']}, split {made['split']}, direction "
        f"{made['direction']}: those that all models below could read."
    )
    unchosen = found.subjects[0].entry["protocols"]["held-out"]["unchosen"]
    notes = [intro]
    if unchosen:
        left = ", ".join(f"{name} ({edges:,} edges)" for name, edges in sorted(unchosen.items()))
        notes.append(f"Held-out leaves out what has no edges on validation to choose on: {left}.")
    few = [
        f"{name} ({entry['edges']})"
        for name, entry in found.subjects[0].entry["protocols"]["published"]["relations"].items()
        if entry["few_edges"]
    ]
    if few:
        notes.append(f"Fewer than {FEW_EDGES} edges: {', '.join(few)}.")
    preview = _preview(found)
    key = found.name
    means = [_means(found), _differences(found), _curves(found)]
    sections = [Section(f"{key}-means", "Models, controls and baselines", means, drawn=[_curve_points(found)])]
    if found.models:
        relations = [*([preview] if preview else []), *(_relations(found, subject) for subject in found.models)]
        sections.append(Section(f"{key}-relations", "Relation by relation", relations))
    sections += [_layers(found, subject) for subject in found.models]
    if found.pairs:
        sections.append(Section(f"{key}-pairs", "Model against model", [_pairs(found)]))
    if found.models:
        errors = [part for subject in found.models for part in _errors(found, subject)]
        sections.append(Section(f"{key}-errors", "What wrong heads find", errors))
    return Section(key, found.title, notes, sections)


def _provenance(findings: Sequence[Findings]) -> Section:
    rows = []
    skips: list[list[Any]] = []
    for found in findings:
        for subject in found.subjects:
            made, entry = subject.settings, subject.entry
            rows.append(
                [
                    found.title,
                    subject.name,
                    subject.functions,
                    entry["functions"],
                    entry["chosen_on"]["functions"],
                    entry["edges"],
                    f"{made['layers']} × {made['heads']}",
                    made["dtype"],
                    entry["signature"],
                ]
            )
            skips += [[found.title, subject.name, reason, count] for reason, count in entry["skips"].items()]
    columns = [
        Column("config", NAME),
        Column("name"),
        Column("probed", COUNT, "functions"),
        Column("common", COUNT, "functions"),
        Column("to choose on", COUNT, "functions"),
        Column("edges", COUNT),
        Column("layers × heads", NAME),
        Column("precision"),
        Column("signature", CODE),
    ]
    parts: list[str | Table] = [
        Table(
            "results",
            "The results that this report is made of",
            columns,
            rows,
            "Compare numbers whose signatures agree. The folder entries holds each as JSON, complete.",
        )
    ]
    if skips:
        names = [Column("config", NAME), Column("name"), Column("reason"), Column("functions", COUNT)]
        parts.append(Table("skips", "Functions that were not scored, and why", names, skips))
    else:
        parts.append("No function was skipped.")
    return Section("provenance", "Results and signatures", parts)
