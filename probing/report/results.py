"""A result on its own: the tables and texts that commands print, and its plot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import TABLE_KS
from probing.evidence.baselines import BaselineResult, kinds_of
from probing.evidence.compared import ModelsCompared
from probing.evidence.masked import gains
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.attention.result import ProbeResult, at_step, head_name
from probing.instruments.masking.hits import T0, T1, hits
from probing.instruments.masking.result import MaskResult
from probing.instruments.plain import PlainResult
from probing.report import figures, information, silencing
from probing.report.document import Column, Table, bounded, separated, tested
from probing.report.figures import COLOURS
from probing.report.kinds import (
    COST,
    COUNT,
    DIFFERENCE,
    EFFECT,
    NAME,
    PERCENT,
    SCORE,
    SHORT,
    SIMILARITY,
    Kind,
    P,
)
from probing.report.scored import RULE, K, difference_on, dots, mean_difference
from probing.report.syntaxeval import RANDOM, without_place
from probing.report.words import DIRECTIONS, interval, starred
from probing.runs.clusters import cluster_unit, clusters_in_words
from probing.stats.hits import PERCENT_UNIT, Hits
from probing.stats.intervals import Estimate, corrected

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SIMILARITY = "jaccard"


@singledispatch
def parts(result: object) -> list[str | Table]:
    """The tables and texts of a result; an instrument registers its own."""
    raise TypeError(f"{type(result).__name__} has no table")


parts.register(silencing.silencing_parts)
parts.register(information.parts_of)
parts.register(information.preference_parts)
parts.register(information.surprisal_parts)


@parts.register
def attention(result: ProbeResult) -> list[str | Table]:
    """The relations, best first, with the score and its head, that of one offset, and the mean."""
    by_offset = _of_best_offset(result.ledger)
    ranked = sorted(result.relations.items(), key=lambda item: (-item[1][RULE][K].score, item[0]))
    in_mean = {name: entry.edges for name, entry in ranked if entry.in_mean}
    means = [result.scores[RULE][k] for k in TABLE_KS]
    offset = float(np.mean([by_offset[name] for name in in_mean])) if in_mean else None
    table = Table(
        "relations",
        f"{result.title}: published top-k UAS in percent, {RULE} token of the dependent, "
        f"{result.functions} {language_of(result.settings.config).units}",
        [
            Column("relation", NAME, of=lambda name, entry: starred(name, entry.in_mean)),
            Column("edges", COUNT, spare=(2,), of=lambda name, entry: entry.edges),
            Column("best head", SHORT, of=lambda name, entry: head_name(entry[RULE][K])),
            *_over_k(PERCENT, {"10": 1, "3": 3}, lambda k, name, entry: entry[RULE][k].score),
            Column("offset", PERCENT, of=lambda name, entry: by_offset[name]),
        ],
        ranked,
        "best head: layer-head at k = 1, counted from 0; each k has its own. offset: what the best distance in "
        "tokens finds with one guess, without a model. published: heads and offsets are chosen on the functions that "
        "they are scored on. *: not in the mean, as in the paper.",
        totals=[[f"mean of {len(in_mean)} relations", sum(in_mean.values()), "", *means, offset]],
    )
    why = result.run.attention_why
    eager = [f"probed with eager attention maps: {why}"] if why else []
    return [table, result.signature, *result.run.layers_note, *eager, *_skipped(result.skips)]


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
    where = f"{settings.config}/{settings.split}" + (
        f", first {settings.limit}" if settings.limit is not None else ""
    )
    scores = [result.scores[RULE][k] for k in TABLE_KS]
    name = ", ".join([at_step(settings.model, run.step), *settings.deviations])
    return [name, where, settings.direction, result.functions, *scores]


def summary(rows: list[list[object]]) -> Table:
    """Several results in one table."""
    several = len({row[2] for row in rows}) > 1
    return Table(
        "summary",
        f"Mean top-k UAS over relations in percent, {RULE} token of the dependent, published: heads are chosen on the "
        "scored data",
        [
            *Column.each(NAME, "model", "on", "direction"),
            Column("functions", COUNT, spare=(2,)),
            *_over_k(PERCENT, {"10": 1}),
        ],
        rows,
        "A report on results of the splits test and validation also has held-out means, which are not optimistic."
        f"{DIRECTIONS * several}",
    )


@parts.register
def masking(result: MaskResult) -> list[str | Table]:
    """The node types, those that lose most first, with both arms and the effect of masking the
    type."""
    measured = hits(result)[_SIMILARITY]
    effects, t1, t0 = (
        _effects(measured),
        *(dict(zip(measured.groups, measured.scores(arm)[0])) for arm in (T1, T0)),
    )
    gained = {
        name: [filler.gain for filler in fillers] for name, fillers in gains(measured).items()
    }
    table = Table(
        "masking",
        f"{result.title}: {_SIMILARITY.title()} similarity of syntax trees, {result.functions} functions",
        [
            Column("node type", NAME, of=lambda name: name),
            Column("functions", COUNT, spare=(4,), of=lambda name: len(measured.of(name))),
            Column("T1", SIMILARITY, of=lambda name: t1[name]),
            Column("T0", SIMILARITY, of=lambda name: t0[name]),
            Column("effect", EFFECT, of=lambda name: tested(effects[name])),
            Column("gain T1", EFFECT, spare=(7, 5, 6), of=lambda name: tested(gained[name][0])),
            Column("gain T0", EFFECT, spare=(8, 5, 6), of=lambda name: tested(gained[name][1])),
            Column(
                "restored T1",
                PERCENT,
                spare=(2,),
                of=lambda name: result.node_types[name].t1.restored,
            ),
            Column(
                "restored T0",
                PERCENT,
                spare=(3,),
                of=lambda name: result.node_types[name].t0.restored,
            ),
            Column("masked", COUNT, spare=(1,), of=lambda name: result.node_types[name].masked),
        ],
        sorted(effects, key=lambda name: effects[name].value),
        f"T1: all nodes of the type are masked. T0: {RANDOM[result.settings.control]}. Effect: the mean difference "
        f"over functions, with its 95 % interval; p by the paired test over {clusters_in_words()}, corrected over the "
        "types (Holm). Gain: how much more the model has than the letter x, or nothing, in place of each masked "
        "sub-token; corrected over both. Restored: the percentage of masked sub-tokens that the model predicts "
        "exactly.",
    )
    failed = sum(scores.failed for scores in result.node_types.values())
    failures = [f"failed comparisons, left out of all means: {failed}"] if failed else []
    unplaced = [without_place(result.without_place)] if result.without_place else []
    return [table, *unplaced, result.signature, *failures, *_skipped(result.skips)]


@parts.register
def plain(result: PlainResult) -> list[str | Table]:
    """The groups with the scores of all systems, of each thing that is measured."""
    tables = [
        _plain_table(name, f"{result.title}: {name}", hits) for name, hits in result.hits().items()
    ]
    return [*tables, result.signature, *_skipped(result.skips)]


def _plain_table(name: str, title: str, hits: Hits) -> Table:
    kind = SCORE if hits.unit == PERCENT_UNIT else COST
    cells = {system: hits.each(hits.by_group(system)) for system in hits.systems}
    means = [bounded(hits.mean(system).at(0)) for system in hits.systems]
    return Table(
        name,
        f"{title}, {hits.unit}",
        [
            Column("group", NAME, of=lambda group: group),
            Column("functions", COUNT, of=lambda group: len(hits.of(group))),
            *(
                Column(system, kind, of=lambda group, of=of: bounded(of[group]))
                for system, of in cells.items()
            ),
        ],
        hits.names,
        "With 95 % intervals.",
        totals=[[f"mean of {len(hits.counted)}", len(hits.clusters), *means]],
    )


def _effects(measured: Hits) -> dict[str, Estimate]:
    """Node type -> the effect of masking it, with p corrected."""
    (effects,) = corrected([measured.by_group(T1, T0)])
    return measured.each(effects)


@parts.register
def compared(result: ModelsCompared) -> list[str | Table]:
    """The relations, those in which the first model gains most first, with the paired difference,
    and the mean."""
    first, other = result.names
    relations = zip(
        result.difference.relations,
        result.in_mean,
        result.edges.tolist(),
        *result.relations.tolist(),
    )
    rows = [
        [starred(name, in_mean), *numbers, difference_on(result.difference, name)]
        for name, in_mean, *numbers in relations
    ]
    mean = mean_difference(result.difference)
    table = Table(
        "compared",
        f"{first} against {other} on {result.config}/{result.split}: held-out top-1 UAS in percent, {RULE} token of "
        f"the dependent, {result.functions} {language_of(result.config).units} that both can read, {result.direction}",
        [
            Column("relation", NAME),
            Column("edges", COUNT, spare=(3,)),
            Column(first, PERCENT, spare=(1,)),
            Column(other, PERCENT, spare=(2,)),
            Column("difference", DIFFERENCE, spare=(0, 0, 0)),
        ],
        sorted(rows, key=lambda row: (-row[-1][0], row[0])),
        f"Difference: first model minus second, in points, paired by {cluster_unit()}. p: corrected (Holm) over "
        "relations, and uncorrected for the mean. *: not in the mean, as in the paper.",
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
        return [f"{first} and {other} do not differ significantly, held-out: {points}.", table]
    return [
        f"{first} finds {'more' if mean[0] > 0 else 'less'} than {other}, held-out: {points}.",
        table,
    ]


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
    kinds, picks, spare = kinds_of(settings.config), result.picks["published"], iter([2, 3])
    best = sorted(
        protocols["published"]["combined"].relations.items(),
        key=lambda item: (-item[1][RULE][K].score[0], item[0]),
    )

    def marked(name: str, entry: Any) -> str:
        return starred(name, entry.in_mean) + (" !" if entry.few_functions else "")

    def picked(name: str, _: Any) -> str:
        return " ".join(
            str(best)
            for kind in ("offset", "keyword")
            for best in picks.names(kind, RULE, name)[:1]
        )

    def score(protocol: str, kind: str, name: str, _: Any) -> float | None:
        scores = protocols[protocol][kind].relations.get(name)
        return scores[RULE][K].score[0] if scores else None

    return Table(
        "baselines",
        f"baselines on {settings.data}, {settings.config}/{settings.split}: top-1 UAS in percent, "
        f"{RULE} token of the dependent, {settings.direction}, {settings.functions} "
        f"{language_of(settings.config).units}",
        [
            Column("relation", NAME, of=marked),
            Column("edges", COUNT, spare=(4,), of=lambda name, entry: entry.edges),
            Column("picked", SHORT, spare=(1,), of=picked),
            *(
                Column(kind, PERCENT, protocol, (next(spare, 0),), partial(score, protocol, kind))
                for protocol in protocols
                for kind in kinds
            ),
        ],
        best,
        "picked: the offset and keyword of the published protocol, chosen on the scored data; held-out: chosen on "
        "validation. *: not in the mean, as in the paper. !: in fewer than 6 functions.",
    )


def _baseline_means(result: BaselineResult) -> Table:
    """Means by both protocols; if held-out has fewer relations, published ones over these are
    added."""
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
        f"mean over relations, {RULE} token, with 95 % intervals over functions",
        [
            Column("baseline", of=lambda protocol, kind, *_: f"{kind}, {protocol}"),
            Column(
                "relations", COUNT, spare=(1,), of=lambda protocol, kind, number, scores: number
            ),
            *_over_k(
                SCORE,
                {"3": 2, "10": 3},
                lambda k, protocol, kind, number, scores: scores[kind][RULE][k],
            ),
        ],
        [(protocol, kind, number, scores) for protocol, number, scores in means for kind in kinds],
    )


def _over_k(
    kind: Kind, spare: dict[str, int], of: Callable[..., Any] | None = None
) -> list[Column]:
    """A column for each k; `of`: the cell of k and a record."""
    return [
        Column(f"k={k}", kind, spare=(spare.get(k, 0),), of=of and partial(of, k)) for k in TABLE_KS
    ]


def _skipped(skips: dict[str, int]) -> list[str]:
    return (
        ["skipped: " + ", ".join(f"{count} ({reason})" for reason, count in skips.items())]
        if skips
        else []
    )


# ---------------------------------------------------------------------------------------------------------------- plots


@singledispatch
def plot(result: object, axes: Axes | None = None) -> Axes:
    """Draw a result on `axes`, or on new ones of a figure of their own, and return them.

    Of `probe`: the published top-1 UAS of each relation, rule first. Of `mask`: the effect of
    masking each node type on the Jaccard similarity, with 95 % intervals; filled if the test
    separates it from 0. Raises TypeError for others.
    """
    raise TypeError(f"{type(result).__name__} has no plot: expected a result of probe or mask")


@plot.register(ProbeResult)
def _plot_attention(result: ProbeResult, axes: Axes | None = None) -> Axes:
    scores = {name: entry[RULE][K].score for name, entry in result.relations.items()}
    names = sorted(scores, key=lambda name: -scores[name])
    axes = axes or _new(len(names))
    axes.barh(names, [scores[name] for name in names], color=COLOURS[0])
    axes.invert_yaxis()
    axes.set_xlabel("published top-1 UAS, %")
    return axes


@plot.register(MaskResult)
def _plot_masking(result: MaskResult, axes: Axes | None = None) -> Axes:
    effects = _effects(hits(result)[_SIMILARITY])
    names = sorted(effects, key=lambda name: effects[name].value)
    axes = axes or _new(len(names))
    figures.dots(axes, names, [dots("", [tested(effects[name]) for name in names], COLOURS[0])])
    axes.set_xlabel("T1 − T0, Jaccard similarity")
    return axes


def _new(rows: int) -> Axes:
    from matplotlib.figure import Figure

    with figures.style():
        return Figure(figsize=(6, 0.22 * rows + 1), layout="constrained").subplots()
