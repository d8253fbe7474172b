"""The section of a report on the beyond-offset score."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, TABLE_KS
from probing.evidence.baselines import kinds_of
from probing.evidence.beyond import FEWER_EDGES, LEAST_EDGES, Beyond, Rivals
from probing.evidence.protocols import MEASURES, ChosenHits, Comparison, mean_of, over_models
from probing.evidence.summary import bounded, mean_at
from probing.instruments.attention.offsets import AVOIDED
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Part, Section, Table
from probing.report.figures import CIRCLE, FAINT, INK, TICK, Points
from probing.report.findings import Findings, Subject
from probing.report.kinds import COUNT, DIFFERENCE, MARKED, NAME, PERCENT, SCORE
from probing.report.scored import RULE, K, difference_on, head_name_of, tests_in_words, with_marks
from probing.report.words import counted, method
from probing.stats.intervals import Estimate

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
    place = MEASURES.index((RULE, int(K)))
    best = rivals.of(BEST_BASELINE, model).at([MEASURES[place]]).hits.mean(BEST_BASELINE)
    return [bounded(model.mean.at(place)), float(best.value[0]), float(rivals.guessed(model)[place])]


_Shown = dict[int, tuple[Beyond, Rivals]]
"""The numbers of offsets to avoid beyond which there is something to score -> what the first model finds there, and its
rivals."""


def _shown(findings: Findings) -> _Shown:
    first = findings.subjects[0].beyond
    return {
        avoided: (model, rivals)
        for avoided, rivals in findings.rivals.items()
        if (model := first[avoided]) is not None and model.in_mean and rivals is not None
    }


def _config(findings: Findings, of_models: bool) -> Section:
    key, shown = f"{findings.name}-beyond", _shown(findings)
    if not shown:
        return Section(key, findings.title, ["Too few edges lie beyond the best offset of their relation."])
    parts: list[Part] = [_figure(findings, shown), _means(findings, shown)]
    parts += [_relations(findings, subject, shown) for subject in findings.models if of_models]
    parts += [_by_strata(findings), _strata(findings)]
    notes = [note for avoided, (first, _) in shown.items() for note in _left_out(first, avoided)]
    return Section(key, findings.title, [*parts, *notes])


def _means(findings: Findings, shown: _Shown) -> Table:
    rows: list[list[Any]] = []
    for avoided, (first, rivals) in shown.items():
        # name, kind, what is found, its mean (M,), other means, comparison with the best rival
        scored: list[tuple[str, str, Beyond, Estimate | np.ndarray, np.ndarray, Comparison | None]] = []
        for subject in findings.subjects:
            if (model := subject.beyond[avoided]) is not None:
                kind, others = "model" if subject.is_model else "control", model.other_means(model.shown)
                compared = subject.beyond_compared[avoided]
                scored.append((subject.name, kind, model, model.mean, others, compared))
        for name in kinds_of(findings.config):
            title = f"{name} (further)" if name == BASELINES[0] else name
            of_baseline = mean_at(rivals.of(name, first).hits, name, map(int, TABLE_KS))
            scored.append((title, "baseline", first, of_baseline, first.other_means(rivals.hits[name]), None))
        others = first.other_means_of(rivals.guessed_shown(first))
        scored.append(("chance", "control", first, rivals.guessed(first), others, None))
        differences = over_models([mean_of(one[-1]) for one in scored], [one[1] == "model" for one in scored])
        for rule, k in product(findings.rules, TABLE_KS):
            cell = MEASURES.index((rule, int(k)))
            for (name, kind, model, mean, others, _), estimate in zip(scored, differences):
                difference = list(estimate.at(cell)[:4]) if estimate else None
                hard = sum(model.edges[relation][0] for relation in model.in_mean)
                sizes = [len(model.in_mean), hard, model.share]
                score = bounded(mean.at(cell)) if isinstance(mean, Estimate) else float(mean[cell])
                rows.append([avoided, rule, k, name, kind, *sizes, score, *others[:, cell].tolist(), difference])
    return Table(
        f"{findings.name}-beyond",
        "Mean top-k UAS on hard edges",
        [
            *map(Column, ("offsets avoided", "rule", "k", "name", "kind")),
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
    return Table(
        f"{findings.name}-strata",
        "By distance and by length: top-1 UAS on all edges",
        [
            Column("by", of=lambda subject, stratum: stratum.by),
            Column("tokens", NAME, of=lambda subject, stratum: stratum.tokens),
            Column("name", of=lambda subject, stratum: subject.name),
            Column("edges", COUNT, of=lambda subject, stratum: stratum.edges),
            Column("score", PERCENT, of=lambda subject, stratum: stratum.heads),
            Column("best offset", PERCENT, of=lambda subject, stratum: stratum.offset),
        ],
        [(subject, stratum) for subject in findings.subjects for stratum in subject.strata],
        "Distance: from the head to the first token of the dependent. Length: of the function. Percent of all edges of "
        f"the relations in the mean, held-out, rule {RULE}, without intervals: frequent relations count most.",
        filters=1,
    )


def _by_strata(findings: Findings) -> Figure:
    strata = findings.subjects[0].strata
    names = [f"{stratum.by} {stratum.tokens}" for stratum in strata]
    series = [
        Points(subject.name, [stratum.heads for stratum in subject.strata], colour)
        for subject, colour, _ in findings.styled
        if subject.is_model
    ]
    series.append(Points("best offset", [stratum.offset for stratum in strata], INK, TICK))
    return Figure(
        f"{findings.name}-strata",
        f"{findings.title}: top-1 UAS by distance from head to dependent and by length of the function, in tokens. "
        f"{findings.drawn_in_words}".rstrip(),
        "Points for each bin of the table below.",
        f"{findings.name}-strata",
        lambda: figures.rows(names, {"top-1 UAS, %": series}),
    )


def _relations(findings: Findings, subject: Subject, shown: _Shown) -> Table:
    rows = []
    for (avoided, (_, rivals)), k in product(shown.items(), TABLE_KS):
        model, compared = subject.beyond[avoided], subject.beyond_compared[avoided]
        place = MEASURES.index((RULE, int(k)))
        assert model is not None
        scores = model.by_relation.at(place)  # (R,)
        for column in np.argsort(-scores.value, kind="stable").tolist():
            name = model.shown.relations[column]
            edges, score = model.edges[name], bounded(scores.at(column))
            marks = with_marks(name)[1] or ("" if name in model.in_mean else "few edges")
            easy = float(model.easy[name][place]) if name in model.easy else None
            layer, head = model.shown.choice[name].reshape(-1, 2)[place].tolist()
            chance = float(rivals.chance[name][place])
            offsets = ", ".join(map(str, model.offsets[name]))
            cells = [easy, head_name_of(layer, head, score[0]), score, chance, *_against(compared, rivals, name, k)]
            rows.append([avoided, k, [name, marks], offsets, *edges[::-1], *cells])
    return Table(
        findings.file("beyond", subject),
        f"Hard edges by relation, {subject.name}, rule {RULE}",
        [
            *map(Column, ("offsets avoided", "k")),
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
    best = rivals.hits[BEST_BASELINE].hits
    if compared is None or name not in best.groups:
        return None, None
    group = best.groups[name]
    hits = group.sums[BEST_BASELINE].total[MEASURES.index((RULE, int(k)))]
    return float(100 * hits / group.total), difference_on(compared, name, k=k)


def _left_out(model: Beyond, avoided: int) -> list[str]:
    named = [f"{name} ({counted(count, 'function')})" for name, count in sorted(model.few.items())]
    named += [
        f"{name} ({model.edges[name][0]} edges)" for name in model.shown.relations if name not in model.chosen.relations
    ]
    named += [f"{name} (none on validation)" for name in model.unchosen]
    offsets = "the best offset" if avoided == 1 else f"the {avoided} best offsets"
    return [f"Not in the mean beyond {offsets}: {', '.join(named)}."] if named else []


def _figure(findings: Findings, shown: _Shown) -> Figure:
    """By relation, beyond the fewest offsets."""
    avoided, (first, rivals) = next(iter(shown.items()))
    place, best = MEASURES.index((RULE, int(K))), rivals.of(BEST_BASELINE, first)

    def hard(chosen: ChosenHits) -> dict[str, float]:
        return dict(zip(chosen.relations, chosen.hits.scores(chosen.system)[place].tolist()))

    of_first = hard(first.chosen)
    names = sorted(first.in_mean, key=lambda name: -of_first[name])
    series = []
    for subject, colour, _ in findings.styled:
        model = subject.beyond[avoided]
        if model is not None and subject.is_model:
            easy = [model.easy[name][0] if name in model.easy else None for name in names]
            series.append(Points(f"{subject.name}, hard", [*map(hard(model.chosen).get, names)], colour))
            series.append(Points(f"{subject.name}, easy", easy, colour, CIRCLE))
    rival = "the next best offset" + (" or keyword" if findings.language.keywords else "")
    shares = hard(best)
    series.append(Points(f"{rival}, hard", [*map(shares.get, names)], INK, TICK))
    series.append(Points("chance, hard", [rivals.chance[name][place] for name in names], FAINT, TICK))
    return Figure(
        f"{findings.name}-beyond",
        f"{findings.title}: top-1 UAS by relation, on easy edges (circles), which lie at the best offset, and on "
        "hard edges (dots), which do not. The head is the best one on the same kind of edges of validation. Lines "
        f"show the rules that need no model. {findings.drawn_in_words}".rstrip(),
        f"Points for {', '.join(names)}. The tables have the numbers.",
        f"{findings.name}-beyond",
        lambda: figures.rows(names, {"top-1 UAS, %": series}),
    )
