"""Printed results: tables, and the texts below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.attention.edges import EdgeTable
from probing.attention.result import ProbeResult, at_step, head_name
from probing.evidence.baselines import BaselineResult, kinds_of
from probing.evidence.beyond import AVOIDED, best_offsets, beyond, is_hard
from probing.evidence.compared import ModelsCompared
from probing.evidence.effect import paired, silencing_effects
from probing.evidence.gather import alike
from probing.evidence.masked import gains
from probing.information.result import InformationResult
from probing.prediction.preference_result import PreferenceResult
from probing.prediction.result import FLOORS, MaskResult
from probing.prediction.silencing_result import SilencingResult
from probing.prediction.surprisal_result import SurprisalResult
from probing.report import information as of_information
from probing.report import preferences, surprisal
from probing.report.document import (
    COUNT,
    DIFFERENCE,
    EFFECT,
    NAME,
    PERCENT,
    SCORE,
    SHORT,
    SIMILARITY,
    Column,
    Kind,
    P,
    Table,
    separated,
)
from probing.report.silencing import left_out, sentence
from probing.report.silencing import table as silencing_table
from probing.report.syntaxeval import RANDOM, without_place
from probing.report.words import counted, interval

if TYPE_CHECKING:
    from probing.models.catalogue import Description

_RULE, _K = "first", "1"
_SIMILARITY = "jaccard"


@singledispatch
def parts(result: object) -> list[str | Table]:
    """The tables and texts of a result; an instrument registers its own."""
    raise TypeError(f"{type(result).__name__} has no table")


@parts.register
def attention(result: ProbeResult) -> list[str | Table]:
    """The relations, best first, with the score and its head, that of one offset, and the mean."""
    by_offset = _of_best_offset(result.ledger)
    ranked = sorted(result.relations.items(), key=lambda item: (-item[1][_RULE][_K]["score"], item[0]))
    rows = [
        [
            name + ("" if entry["in_mean"] else " *"),
            entry["edges"],
            head_name(entry[_RULE][_K]),
            *(entry[_RULE][k]["score"] for k in TABLE_KS),
            by_offset[name],
        ]
        for name, entry in ranked
    ]
    in_mean = {name: entry["edges"] for name, entry in ranked if entry["in_mean"]}
    means = [result.scores[_RULE][k] for k in TABLE_KS]
    offset = float(np.mean([by_offset[name] for name in in_mean])) if in_mean else None
    columns = [Column("relation", NAME), Column("edges", COUNT, spare=(2,)), Column("best head", SHORT)]
    table = Table(
        "relations",
        f"{result.title}: published top-k UAS in percent, {_RULE} token of the dependent, "
        f"{result.functions} {language_of(result.settings.config).units}",
        [*columns, *_over_k(PERCENT, {"10": 1, "3": 3}), Column("offset", PERCENT)],
        rows,
        "best head: layer-head at k = 1, counted from 0; each k has its own. offset: what the best distance in "
        "tokens finds with one guess, without a model. published: heads and offsets are chosen on the functions that "
        "they are scored on. *: not in the mean, as in the paper.",
        totals=[[f"mean of {len(in_mean)} relations", sum(in_mean.values()), "", *means, offset]],
    )
    why = result.run.attention_why
    eager = [f"probed with eager attention maps: {why}"] if why else []
    return [table, result.signature, *eager, *_skipped(result.skips)]


def _of_best_offset(edges: EdgeTable) -> dict[str, float]:
    """The percentage of the edges of each relation that its best offset finds."""
    hard, count = (
        np.bincount(edges.relation, weights, len(edges.relations))
        for weights in (is_hard(edges, best_offsets(edges, 1)), None)
    )
    return dict(zip(edges.relations, (100 * (1 - hard / np.maximum(count, 1))).tolist()))


def mean_row(result: ProbeResult) -> list[object]:
    """A result as a row of `summary`."""
    settings, run = result.settings, result.run
    where = f"{settings.config}/{settings.split}" + (f", first {settings.limit}" if settings.limit is not None else "")
    scores = [result.scores[_RULE][k] for k in TABLE_KS]
    name = ", ".join([at_step(settings.model, run.step), *settings.instead])
    return [name, where, result.functions, *scores]


def summary(rows: list[list[object]]) -> Table:
    """Several results in one table."""
    return Table(
        "summary",
        f"Mean top-k UAS over relations in percent, {_RULE} token of the dependent, published: heads are chosen on the "
        "scored data",
        [
            *Column.each(NAME, "model", "on"),
            Column("functions", COUNT, spare=(2,)),
            *_over_k(PERCENT, {"10": 1}),
        ],
        rows,
        "A report on results of the splits test and validation also has held-out means, which are not optimistic.",
    )


def beyond_offsets(results: Sequence[ProbeResult]) -> list[str | Table]:
    """The score beyond offsets of each model that has results on both splits."""
    chosen_on = {alike(result): result for result in results if result.settings.split == "validation"}
    pairs = [
        (validation, result)
        for result in results
        if result.settings.split != "validation" and (validation := chosen_on.get(alike(result)))
    ]
    return [part for pair in pairs for avoided in AVOIDED for part in _beyond(*pair, avoided)]


def _beyond(validation: ProbeResult, result: ProbeResult, avoided: int) -> list[str | Table]:
    offsets = "the best offset" if avoided == 1 else f"the {avoided} best offsets"
    found = beyond(validation.ledger, result.ledger, avoided)
    if found is None or not found.in_mean:
        return [f"too few edges lie beyond {offsets} of their relation"]
    rule = RULES.index(_RULE)
    ks = [int(k) - 1 for k in TABLE_KS]
    scores, names = found.estimate.relations[0, rule], found.outcomes.relations  # (k, R)
    rows = []
    for column in sorted(range(len(names)), key=lambda column: -scores[0, column]):
        name = names[column]
        hard, edges = found.edges[name]
        head = "-".join(map(str, found.outcomes.choice[name][rule, 0]))
        star = " *" if name in NOT_IN_MEAN else ""
        rows.append([name + star, edges, hard, head, *scores[ks, column].tolist()])
    columns = [Column("relation", NAME), Column("edges", COUNT, spare=(2,)), Column("hard", COUNT)]
    columns += [Column("best head", SHORT, spare=(1,))]
    means = found.estimate.mean[:, rule]  # (3, k)
    table = Table(
        "beyond",
        f"{result.title}, beyond {offsets}: held-out top-k UAS in percent, {_RULE} token of the dependent",
        [*columns, *_over_k(PERCENT, {"10": 3})],
        rows,
        "hard: edges whose dependent does not begin there. *: not in the mean, as in the paper.",
        totals=[[f"mean of {len(found.in_mean)} relations", "", f"{found.share:.0f} %", "", *means[0, ks].tolist()]],
    )
    excluded = [f"{name} ({counted(count, 'function')})" for name, count in sorted(found.few.items())]
    excluded += [f"{name} (none on validation)" for name in found.unchosen]
    interval = f"95 % interval of the mean at k = 1: {means[1, 0]:.1f} to {means[2, 0]:.1f}"
    return [table, interval, *([f"not in the mean: {', '.join(excluded)}"] if excluded else [])]


@parts.register
def masking(result: MaskResult) -> list[str | Table]:
    """The node types, those that lose most first, with both arms and the effect of masking the type."""
    arms = {name: arm for name, arm in result.arms(_SIMILARITY).items() if len(arm.functions)}
    effects = paired({name: arm.t1 for name, arm in arms.items()}, {name: arm.t0 for name, arm in arms.items()})
    columns = {
        column: {name: np.stack(of[1:]) for name, of in result.arms(column).items() if name in arms}
        for column in (_SIMILARITY, *FLOORS[_SIMILARITY])
    }
    over_fillers = gains(columns, _SIMILARITY)
    rows: list[list[object]] = []
    for name in sorted(effects, key=lambda name: effects[name].effect.estimate):
        arm, scores, (functions, effect, _, p, _) = arms[name], result.node_types[name], effects[name]
        restored = scores.t1.restored, scores.t0.restored
        gained = [[*gain.effect, gain.p_holm] for _, _, gain in over_fillers[name]]
        means = arm.t1.mean(), arm.t0.mean()
        rows.append([name, functions, *means, [*effect, p], *gained, *restored, scores.masked])
    table = Table(
        "masking",
        f"{result.title}: {_SIMILARITY.title()} similarity of syntax trees, {result.functions} functions",
        [
            Column("node type", NAME),
            Column("functions", COUNT, spare=(4,)),
            *Column.each(SIMILARITY, "T1", "T0"),
            Column("effect", EFFECT),
            Column("gain T1", EFFECT, spare=(7, 5, 6)),
            Column("gain T0", EFFECT, spare=(8, 5, 6)),
            Column("restored T1", PERCENT, spare=(2,)),
            Column("restored T0", PERCENT, spare=(3,)),
            Column("masked", COUNT, spare=(1,)),
        ],
        rows,
        f"T1: all nodes of the type are masked. T0: {RANDOM[result.settings.control]}. Effect: the mean difference "
        "over functions, with its 95 % interval; p by the paired test over functions, corrected over the types "
        "(Holm). Gain: how much more the model has than the letter x, or nothing, in place of each masked "
        "sub-token; corrected over both. Restored: the percentage of masked sub-tokens that the model predicts "
        "exactly.",
    )
    failed = sum(scores.failed for scores in result.node_types.values())
    failures = [f"failed comparisons, left out of all means: {failed}"] if failed else []
    unplaced = [without_place(result.without_place)] if result.without_place else []
    return [table, *unplaced, result.signature, *failures, *_skipped(result.skips)]


@parts.register
def silencing(result: SilencingResult) -> list[str | Table]:
    """The relations, those that heads find best first, with what silencing the best head of each costs."""
    relations = silencing_effects(result)
    table, below = silencing_table("silencing", result, relations), filter(None, [left_out(result)])
    return [table, sentence(relations), result.signature, *below]


@parts.register
def preference(result: PreferenceResult) -> list[str | Table]:
    """The accuracy on minimal pairs."""
    return preferences.parts_of(result)


@parts.register
def surprise(result: SurprisalResult) -> list[str | Table]:
    """The surprisal of nodes beside that of their controls."""
    return surprisal.parts_of(result)


@parts.register
def information(result: InformationResult) -> list[str | Table]:
    """The relations, those to which attention adds most first."""
    return of_information.parts_of(result)


@parts.register
def compared(result: ModelsCompared) -> list[str | Table]:
    """The relations, those in which the first model gains most first, with the paired difference, and the mean."""
    difference, p = result.difference.difference, result.difference.p_holm[0, 0]
    cells = [[*difference.relations[:, 0, 0, place].tolist(), float(p[place])] for place in range(len(p))]
    mean = [*difference.mean[:, 0, 0].tolist(), float(result.difference.p_mean[0, 0])]
    names = [name + ("" if in_mean else " *") for name, in_mean in zip(result.difference.relations, result.in_mean)]
    rows = [list(row) for row in zip(names, result.edges.tolist(), *result.relations.tolist(), cells)]
    rows.sort(key=lambda row: (-row[-1][0], row[0]))
    one, other = result.names
    table = Table(
        "compared",
        f"{one} against {other} on {result.config}/{result.split}: held-out top-1 UAS in percent, {_RULE} token of "
        f"the dependent, {result.functions} {language_of(result.config).units} that both can read, {result.direction}",
        [
            Column("relation", NAME),
            Column("edges", COUNT, spare=(3,)),
            Column(one, PERCENT, spare=(1,)),
            Column(other, PERCENT, spare=(2,)),
            Column("difference", DIFFERENCE, spare=(0, 0, 0)),
        ],
        rows,
        "Difference: first model minus second, in points, paired by function. p: corrected (Holm) over relations, "
        "and uncorrected for the mean. *: not in the mean, as in the paper.",
        totals=[
            [
                f"mean of {sum(result.in_mean)} relations",
                int(result.edges[result.in_mean].sum()),
                *result.means,
                mean,
            ]
        ],
    )
    points = f"{DIFFERENCE.show(mean[0])} points, {interval(mean[1], mean[2], DIFFERENCE)}, p = {P.show(mean[3])}"
    if not separated(mean[3]):
        return [table, f"The test does not separate the held-out means of {one} and {other}: {points}."]
    return [table, f"{one} finds {'more' if mean[0] > 0 else 'less'} than {other}, held-out: {points}."]


def baselines(result: BaselineResult) -> list[str | Table]:
    """The relations at k = 1 and the means, by both protocols."""
    unchosen = result.summaries["held-out"]["offset"].unchosen
    return [
        _baseline_relations(result),
        _baseline_means(result),
        *(
            f"{name} ({edges} edges) has no held-out score: the validation split has no edges of it"
            for name, edges in unchosen.items()
        ),
    ]


def _baseline_relations(result: BaselineResult) -> Table:
    settings, protocols = result.settings, result.summaries
    kinds, picks = kinds_of(settings.config), result.picks["published"]
    rows = []
    best = protocols["published"]["combined"].relations
    for name, entry in sorted(best.items(), key=lambda item: (-item[1][_RULE][_K].score[0], item[0])):
        marks = ("" if entry.in_mean else " *") + (" !" if entry.few_functions else "")
        picked = [picks.names(kind, _RULE, name)[:1] for kind in ("offset", "keyword")]
        cells = [
            scores and scores[_RULE][_K].score[0]
            for summaries in protocols.values()
            for scores in [summaries[kind].relations.get(name) for kind in kinds]
        ]
        rows.append([name + marks, entry.edges, " ".join(str(best) for names in picked for best in names), *cells])
    columns = [Column("relation", NAME), Column("edges", COUNT, spare=(4,)), Column("picked", SHORT, spare=(1,))]
    spare = iter([2, 3])
    columns += [Column(kind, PERCENT, protocol, spare=(next(spare, 0),)) for protocol in protocols for kind in kinds]
    return Table(
        "baselines",
        f"baselines on {settings.data}, {settings.config}/{settings.split}: top-1 UAS in percent, "
        f"{_RULE} token of the dependent, {settings.direction}, {settings.functions} "
        f"{language_of(settings.config).units}",
        columns,
        rows,
        "picked: the offset and keyword of the published protocol, chosen on the scored data; held-out: chosen on "
        "validation. *: not in the mean, as in the paper. !: in fewer than 6 functions.",
    )


def _baseline_means(result: BaselineResult) -> Table:
    """Means by both protocols; if held-out has fewer relations, published ones over these are added."""
    kinds, protocols = kinds_of(result.settings.config), result.summaries
    counted = {
        protocol: sum(entry.in_mean for entry in summaries["combined"].relations.values())
        for protocol, summaries in protocols.items()
    }
    means = [
        (protocol, counted[protocol], {kind: summaries[kind].scores for kind in kinds})
        for protocol, summaries in protocols.items()
    ]
    if counted["published"] > counted["held-out"]:
        means.insert(1, ("published", counted["held-out"], result.same_relations))
    return Table(
        "baseline-means",
        f"mean over relations, {_RULE} token, with 95 % intervals from a bootstrap over functions",
        [Column("baseline"), Column("relations", COUNT, spare=(1,)), *_over_k(SCORE, {"3": 2, "10": 3})],
        [
            [f"{kind}, {protocol}", number, *(scores[kind][_RULE][k] for k in TABLE_KS)]
            for protocol, number, scores in means
            for kind in kinds
        ],
    )


def models(descriptions: Iterable[Description]) -> list[str | Table]:
    """A row for each model, and remarks."""
    rows: list[list[object]] = []
    remarks: list[str | Table] = []
    for model in descriptions:
        direction = "both" if len(model.directions) > 1 else "".join(model.directions) or None
        sizes = [model.layers or None, model.heads or None, model.longest or "any"]
        known = [model.family, *sizes, direction] if model.path != "unknown" else [None] * 5
        rows.append([model.model, *known, model.path])
        remarks += [f"{model.model}: {model.path}: {model.why}"] if model.why else []
    columns = [
        Column("model"),
        Column("family", NAME, spare=(1,)),
        *Column.each(COUNT, "layers", "heads"),
        Column("sub-\ntokens", SHORT),
        Column("direction", NAME, spare=(2,)),
        Column("attention", NAME),
    ]
    return [Table("models", "Models, and how their attention is read", columns, rows), *remarks]


def _over_k(kind: Kind, spare: dict[str, int]) -> list[Column]:
    return [Column(f"k={k}", kind, spare=(spare.get(k, 0),)) for k in TABLE_KS]


def _skipped(skips: dict[str, int]) -> list[str]:
    return ["skipped: " + ", ".join(f"{count} ({reason})" for reason, count in skips.items())] if skips else []
