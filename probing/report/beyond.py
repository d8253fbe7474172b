"""The section of a report on the beyond-offset score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import kinds_of
from probing.evidence.beyond import AVOIDED, FEWER_EDGES, Beyond, Rivals
from probing.evidence.statistics import LEAST_EDGES, holm
from probing.evidence.uncertainty import Comparison, bounded, mean_score
from probing.report import figures
from probing.report.document import (
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
from probing.report.figures import CIRCLE, FAINT, INK, TICK, Points
from probing.report.findings import Findings, Subject
from probing.report.scored import (
    RULE,
    K,
    difference_on,
    drawn_in_words,
    head_name_of,
    mean_difference,
    styled,
    tests_in_words,
    with_marks,
)
from probing.report.words import counted, method

TITLE = "Beyond offsets"


def section(all_findings: Sequence[Findings], *, of_models: bool) -> Section:
    """Hits of heads on the edges that no fixed offset finds: a figure and tables for each config; `of_models`: with the
    relations of each model.
    """
    return Section("beyond", TITLE, method("beyond"), [_config(findings, of_models) for findings in all_findings])


def relations(findings: Findings, subject: Subject) -> list[Table]:
    """Scores of a model on the hard edges of each relation; none if there are too few."""
    shown = _shown(findings)
    return [_relations(findings, subject, shown)] if shown else []


def scores(findings: Findings, subject: Subject) -> list[Any]:
    """What finds the dependents beyond the best offset with one guess: the heads of a model with their interval, the
    combined baseline, and chance; None where there are too few edges."""
    model, rivals = subject.beyond[AVOIDED[0]], findings.rivals[AVOIDED[0]]
    if model is None or rivals is None or not model.in_mean:
        return [None] * 3
    place = RULES.index(RULE), int(K) - 1
    best = mean_score(rivals.of(BEST_BASELINE, model), [int(K)])[0, RULES.index(RULE), 0]
    return [model.estimate.mean[:, *place].tolist(), float(best), float(rivals.guessed(model)[place])]


def _rival(findings: Findings) -> str:
    """The combined baseline on hard edges, in words."""
    return "the next best offset" + (" or keyword" if findings.language.keywords else "")


def _config(findings: Findings, of_models: bool) -> Section:
    key = f"{findings.name}-beyond"
    shown = _shown(findings)
    if not shown:
        return Section(key, findings.title, ["Too few edges lie beyond the best offset of their relation."])
    parts: list[str | Table | Figure] = [_figure(findings, shown[0]), _means(findings, shown)]
    parts += [_relations(findings, subject, shown) for subject in findings.models if of_models]
    parts += [_by_strata(findings), _strata(findings)]
    notes = [note for avoided in shown for note in _left_out(findings, avoided)]
    return Section(key, findings.title, [*parts, *notes])


def _shown(findings: Findings) -> list[int]:
    """The numbers of offsets to avoid beyond which there is something to score."""
    return [avoided for avoided in AVOIDED if _scored(findings, avoided)]


def _scored(findings: Findings, avoided: int) -> bool:
    first = findings.subjects[0].beyond[avoided]
    return findings.rivals[avoided] is not None and first is not None and bool(first.in_mean)


def _means(findings: Findings, shown: Sequence[int]) -> Table:
    rows: list[list[Any]] = []
    for avoided in shown:
        rivals, first = findings.rivals[avoided], findings.subjects[0].beyond[avoided]
        assert rivals is not None and first is not None
        baselines = {
            kind: mean_score(rivals.of(kind, first), [int(k) for k in TABLE_KS]) for kind in kinds_of(findings.config)
        }
        for number, rule in enumerate(findings.rules):
            for k in TABLE_KS:
                place = int(k) - 1
                differences = {
                    subject.name: mean_difference(compared, number, k)
                    for subject in findings.subjects
                    if (compared := subject.beyond_compared[avoided])
                }
                tested = [differences[model.name] for model in findings.models if model.name in differences]
                for cell, p in zip(tested, holm(np.array([cell[-1] for cell in tested])).tolist()):
                    cell[-1] = p
                for subject in findings.subjects:
                    if (model := subject.beyond[avoided]) is None:
                        continue
                    kind = "model" if subject.is_model else "control"
                    score = model.estimate.mean[:, number, place].tolist()
                    others = model.other_means(model.shown)[:, number, place].tolist()
                    cells = [score, *others, differences.get(subject.name)]
                    rows.append([avoided, rule, k, subject.name, kind, *_sizes(model), *cells])
                for name, mean in baselines.items():
                    title = f"{name} (further)" if name == BASELINES[0] else name
                    score = mean[:, number, place].tolist()
                    others = first.other_means(rivals.outcomes[name])[:, number, place].tolist()
                    rows.append([avoided, rule, k, title, "baseline", *_sizes(first), score, *others, None])
                chance = float(rivals.guessed(first)[number, place])
                others = first.other_means_of(rivals.guessed_shown(first))[:, number, place].tolist()
                rows.append([avoided, rule, k, "chance", "control", *_sizes(first), chance, *others, None])
    return Table(
        f"{findings.name}-beyond",
        "Mean top-k UAS on hard edges",
        [
            Column("offsets avoided"),
            Column("rule"),
            Column("k"),
            Column("name"),
            Column("kind"),
            *Column.each(COUNT, "relations", "hard edges"),
            Column("% hard", PERCENT),
            Column("score", SCORE),
            *(Column(f"≥ {least} edges", PERCENT) for least in FEWER_EDGES),
            Column("all edges", PERCENT),
            Column("vs combined", DIFFERENCE),
        ],
        rows,
        f"Percent with 95 % intervals. The mean covers relations with at least {LEAST_EDGES} hard edges; other "
        "columns give the mean with lower limits, and the share of all hard edges. % hard: the share of hard edges, "
        "mean over relations. Combined: for each relation and k, the better of a further offset and a keyword. p: "
        f"corrected (Holm) for {tests_in_words([findings])}, and uncorrected for controls. {COLOURED}",
        filters=3,
    )


def _strata(findings: Findings) -> Table:
    rows = [
        [stratum.by, stratum.tokens, subject.name, stratum.edges, stratum.found, stratum.offset]
        for subject in findings.subjects
        for stratum in subject.strata
    ]
    return Table(
        f"{findings.name}-strata",
        "By distance and by length: top-1 UAS on all edges",
        [
            Column("by"),
            Column("tokens", NAME),
            Column("name"),
            Column("edges", COUNT),
            *Column.each(PERCENT, "score", "best offset"),
        ],
        rows,
        "Distance: from the head to the first token of the dependent. Length: of the function. Percent of all edges of "
        f"the relations in the mean, held-out, rule {RULE}, without intervals: frequent relations count most.",
        filters=1,
    )


def _by_strata(findings: Findings) -> Figure:
    names = [f"{stratum.by} {stratum.tokens}" for stratum in findings.subjects[0].strata]
    series = [
        Points(subject.name, np.array([stratum.found for stratum in subject.strata]), colour)
        for subject, colour, _ in styled(findings)
        if subject.is_model
    ]
    offsets = np.array([stratum.offset for stratum in findings.subjects[0].strata])
    series.append(Points("best offset", offsets, INK, TICK))
    return Figure(
        f"{findings.name}-strata",
        f"{findings.title}: top-1 UAS by distance from head to dependent and by length of the function, in tokens. "
        f"{drawn_in_words(findings)}".rstrip(),
        "Points for each bin of the table below.",
        f"{findings.name}-strata",
        lambda: figures.rows(names, {"top-1 UAS, %": series}),
    )


def _sizes(model: Beyond) -> tuple[int, int, float]:
    return len(model.in_mean), sum(model.edges[name][0] for name in model.in_mean), model.share


def _relations(findings: Findings, subject: Subject, shown: Sequence[int]) -> Table:
    number, rows = RULES.index(RULE), []
    for avoided in shown:
        model, compared, rivals = subject.beyond[avoided], subject.beyond_compared[avoided], findings.rivals[avoided]
        assert model is not None and rivals is not None
        for k in TABLE_KS:
            place = int(k) - 1
            order = sorted(
                range(len(model.shown.relations)),
                key=lambda column: -model.shown_estimate.relations[0, number, place, column],
            )
            for column in order:
                name = model.shown.relations[column]
                layer, head = model.shown.choice[name][number, place].tolist()
                score = bounded(model.shown_estimate.relations[:, number, place, column])
                in_mean = name in model.in_mean
                rows.append(
                    [
                        avoided,
                        k,
                        [name, with_marks(name)[1] or ("" if in_mean else "few edges")],
                        ", ".join(map(str, model.offsets[name])),
                        model.edges[name][1],
                        model.edges[name][0],
                        float(model.easy[name][place]) if name in model.easy else None,
                        head_name_of(layer, head, score[0]),
                        score,
                        float(rivals.chance[name][number, place]),
                        *_against(compared, rivals, name, k),
                    ]
                )
    return Table(
        findings.file("beyond", subject),
        f"Hard edges by relation, {subject.name}, rule {RULE}",
        [
            Column("offsets avoided"),
            Column("k"),
            Column("relation", MARKED),
            Column("offsets", NAME),
            *Column.each(COUNT, "edges", "hard"),
            Column("score, easy", PERCENT),
            Column("head"),
            Column("score", SCORE),
            *Column.each(PERCENT, "chance", "combined"),
            Column("vs combined", DIFFERENCE),
        ],
        rows,
        "Offsets: the distances from head to dependent that hard edges avoid. Score: on hard edges. Easy: on the "
        "other edges, by the head that finds most of them on validation. Percent with 95 % intervals. p: corrected "
        f"(Holm) over the relations of a k. {COLOURED}",
        filters=2,
    )


def _against(compared: Comparison | None, rivals: Rivals, name: str, k: str) -> tuple[Any, Any]:
    """The score of the combined baseline on a relation, and the difference to it; None if it has none."""
    best = rivals.outcomes[BEST_BASELINE]
    if compared is None or name not in best.relations:
        return None, None
    difference = difference_on(compared, name, RULES.index(RULE), k)
    column = best.relations.index(name)
    hits, edges = best.total[RULES.index(RULE), int(k) - 1, column], best.edges[:, column].sum()
    return float(100 * hits / edges), difference


def _left_out(findings: Findings, avoided: int) -> list[str]:
    model = findings.subjects[0].beyond[avoided]
    assert model is not None
    named = [f"{name} ({counted(count, 'function')})" for name, count in sorted(model.few.items())]
    named += [
        f"{name} ({model.edges[name][0]} edges)"
        for name in model.shown.relations
        if name not in model.outcomes.relations
    ]
    named += [f"{name} (none on validation)" for name in model.unchosen]
    offsets = "the best offset" if avoided == 1 else f"the {avoided} best offsets"
    return [f"Not in the mean beyond {offsets}: {', '.join(named)}."] if named else []


def _figure(findings: Findings, avoided: int) -> Figure:
    number, rivals = RULES.index(RULE), findings.rivals[avoided]
    first = findings.subjects[0].beyond[avoided]
    assert rivals is not None and first is not None
    names = sorted(
        first.in_mean, key=lambda name: -first.estimate.relations[0, number, 0, first.outcomes.relations.index(name)]
    )
    series = []
    for subject, colour, _ in styled(findings):
        model = subject.beyond[avoided]
        if model is None:
            continue
        places = [model.outcomes.relations.index(name) if name in model.outcomes.relations else None for name in names]
        hard = [np.nan if place is None else model.estimate.relations[0, number, 0, place] for place in places]
        if subject.is_model:
            series.append(Points(f"{subject.name}, hard", np.array(hard), colour))
            easy = np.array([model.easy[name][0] if name in model.easy else np.nan for name in names])
            series.append(Points(f"{subject.name}, easy", easy, colour, CIRCLE))
    best = rivals.of(BEST_BASELINE, first)
    shares = 100 * best.total[number, 0] / best.edges.sum(axis=0)
    baseline = np.array([shares[best.relations.index(name)] if name in best.relations else np.nan for name in names])
    series.append(Points(f"{_rival(findings)}, hard", baseline, INK, TICK))
    chance = np.array([rivals.chance[name][number, 0] for name in names])
    series.append(Points("chance, hard", chance, FAINT, TICK))
    return Figure(
        f"{findings.name}-beyond",
        f"{findings.title}: top-1 UAS by relation, on easy edges (circles), which lie at the best offset, and on "
        "hard edges (dots), which do not. The head is the best one on the same kind of edges of validation. Lines "
        f"show the rules that need no model. {drawn_in_words(findings)}".rstrip(),
        f"Points for {', '.join(names)}. The tables have the numbers.",
        f"{findings.name}-beyond",
        lambda: figures.rows(names, {"top-1 UAS, %": series}),
    )
