"""The sections of a report, made from findings. No score is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codesyntax_dataset import paper
from codesyntax_metric.topk_uas import RULES
from probing.attention.error_classes import CLASSES, PLACES
from probing.evidence.gather import PROTOCOLS
from probing.evidence.selection import FEW_FUNCTIONS, PERMUTATIONS, RESAMPLES
from probing.report import ablations, headline, means, relations
from probing.report.document import CODE, COUNT, NAME, PERCENT, Column, Section, Table
from probing.report.errors import marked
from probing.report.findings import Findings, Subject
from probing.report.scored import RULE


def sections(findings: Sequence[Findings]) -> list[Section]:
    """The whole report."""
    of_ablations = ablations.sections(findings)
    return [
        headline.section(findings),
        Section("curves", "Curves", [means.curves(found) for found in findings]),
        Section("overview", "Overview", [means.overview(findings)]),
        _method(),
        *map(_config, findings),
        *([Section("ablations", "Ablations", ablations.notes(), of_ablations)] if of_ablations else []),
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
            "without edges on validation has no held-out score, so that the published mean stands there twice: over all relations, as the paper has "
            "it, and over those of held-out, which compares with the held-out mean. A list of offsets or keywords that ends where validation has no more "
            "to gain is filled to k with the offsets nearest to it, or the keywords most frequent on validation.",
            "A mean runs over the relations that have edges, but for those that the paper leaves out, which are marked as not in "
            "the mean: comprehensions, dictionaries, slices, with and labels. Each relation weighs the same. Relations in fewer "
            f"than {FEW_FUNCTIONS} functions are marked: their scores say little, and have no interval.",
            "Intervals are of 95 %, by functions, since the edges of one function resemble each other: of a mean from a BCa "
            f"bootstrap over functions ({RESAMPLES:,} resamples), of a single relation Wilson's, for as many independent edges as its "
            "functions are worth. The choice of heads is not made again in the resamples, so the optimism of choosing is in the "
            "distance between the two protocols and not in the intervals of the first. "
            f"p-values are of a two-sided paired permutation test over functions ({PERMUTATIONS:,} permutations; the smallest "
            "possible is 0.0001). Where several tests stand in one column of a table, they are corrected by Holm's method, for "
            "the number of tests that the table's note names.",
            "The best baseline is the combined one: for each relation and k the better of a fixed offset and a keyword. Controls: "
            "random attention ranks all tokens at random; random-weights is the model's architecture before training, "
            "whose attention is nearly even: summed over the sub-tokens of a token it finds the longest token and nothing else, so that "
            "a distance to it is not what was learned. shuffled-attention asks that: the model's own weights, of each attention head "
            "dealt out anew over the tokens of a function. redrawn-dependents is the model on edges to other tokens behind the head, as "
            "many as the dependent has. Rows marked paper are the figures of "
            f"{paper.source()}: of the published dataset and other software, for orientation only.",
        ],
    )


def _config(found: Findings) -> Section:
    functions, edges = found.functions, found.edges
    made = found.settings
    intro = (
        f"{functions:,} functions and {edges:,} edges of {made['data']}, config {made['config']}, split {made['split']}, direction "
        f"{made['direction']}: those that all models below could read. Of the relations {_in_mean(found)}."
    )
    unchosen = found.subjects[0].entry["protocols"]["held-out"]["unchosen"]
    notes = [intro]
    if unchosen:
        left = ", ".join(f"{name} ({edges:,} edges)" for name, edges in sorted(unchosen.items()))
        notes.append(f"Held-out leaves out what has no edges on validation to choose on: {left}.")
    few = [
        f"{name} ({entry['functions']})"
        for name, entry in found.subjects[0].entry["protocols"]["published"]["relations"].items()
        if entry["few_functions"]
    ]
    if few:
        notes.append(f"In fewer than {FEW_FUNCTIONS} functions: {', '.join(few)}.")
    key = found.name
    of_means = [means.table(found), means.differences(found)]
    sections = [Section(f"{key}-means", "Models, controls and baselines", of_means, drawn=[means.curve_points(found)])]
    if found.models:
        preview = relations.preview(found)
        of_relations = [*([preview] if preview else []), *(relations.table(found, subject) for subject in found.models)]
        sections.append(Section(f"{key}-relations", "Relation by relation", of_relations))
    sections += [relations.layers(found, subject) for subject in found.models]
    if found.pairs:
        sections.append(Section(f"{key}-pairs", "Model against model", [means.pairs(found)]))
    if found.models:
        errors = [part for subject in found.models for part in _errors(found, subject)]
        sections.append(Section(f"{key}-errors", "What wrong heads find", errors))
    return Section(key, found.title, notes, sections)


def _in_mean(found: Findings) -> str:
    """How many relations and edges the mean of each protocol is over."""
    counts = {protocol: found.size(protocol) for protocol in PROTOCOLS}
    return " and ".join(
        f"{number} are in the {protocol} mean, with {edges:,} edges" for protocol, (number, edges) in counts.items()
    )


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
            head = f"{entry['layer']}-{entry['head']}" if entry["errors"] < entry["edges"] else None
            places = [
                100 * count / entry["errors"] if count else None for count in analysis.places(rule, name).values()
            ]
            shares.append([rule, name, entry["edges"], entry["errors"], head, *cells, *places])
            if rule == RULE:
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
                *(Column(name, PERCENT, "place") for name in PLACES),
            ],
            shares,
            f"Published protocol, top-1, on all {subject.functions:,} functions of the result. The classes are those of "
            "probing/attention/error_classes.py; each error is in the first that fits, and at one place, seen from the edge.",
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
