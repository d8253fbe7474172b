"""The page of SyntaxEval made again: its tables and figures, with the study's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from codesyntax_dataset import sources, syntaxeval
from probing.evidence.statistics import FEW_FUNCTIONS
from probing.paper.cells import Compared, compared
from probing.paper.masking_study import CONFIG, FUNCTIONS, LENGTH, Cell, Study
from probing.prediction.result import SIMILARITIES
from probing.report import figures
from probing.report.document import (
    CODE,
    COLOURED,
    COUNT,
    EFFECT,
    NAME,
    ROUNDED,
    SIGNED,
    SIMILARITY,
    Column,
    Figure,
    Section,
    Table,
    separated,
)
from probing.report.figures import COLOURS, FAINT, ArmPercentiles, Dots

TITLE = "SyntaxEval, made again"

SHOWN = "jaccard"
"""The similarity of the figures."""

_PERCENTILES = np.arange(0, 101, 5)
_ARMS = ("T1", "T0")


def sections(made: Study) -> list[Section]:
    performance, effects = _performance(made), _effects(made)
    return [
        _summary(made, [*performance[1], *effects[1]]),
        Section("similarities", "Similarities of syntax trees", [performance[0], *_boxes(made), _types(made)]),
        Section("effects", "Causal effects", [*_effects_figure(made), effects[0]]),
        Section("estimators", "Why the study's estimate is an artefact", [*_ARTEFACT, _estimators(made)]),
        _provenance(made),
    ]


def _summary(made: Study, cells: list[Compared]) -> Section:
    filled = sum(cell.here is not None for cell in cells)
    source, labelled = len(made.prepared.sizes), len(made.prepared.places)
    return Section(
        "summary",
        "What was made, and what compares",
        [
            f"{filled} of the {len(cells)} numbers of {syntaxeval.SOURCE} have one of ours beside them. None compares "
            "exactly: the study parsed with the Python grammar of June 2022, and today's gives other trees. For a "
            "small model on 45 functions, similarities by the two differ by 0.03 (T1) and 0.06 (T0) on average. A row "
            f"says what else differs. The study analysed {FUNCTIONS:,} functions.",
            f"Source: {sources.shown(made.inputs.sources[CONFIG])}. {source:,} functions, of which {labelled:,} parse "
            f"once triple-quoted text is gone, as in the study. Each model masks those of at most {LENGTH} sub-tokens, "
            "by the protocol published, whose flaws are kept: special tokens are masked, too, and controls may lie "
            "inside the nodes. T1 masks the nodes of a type; T0 masks as many random sub-tokens, 20 times.",
        ],
    )


def _performance(made: Study) -> tuple[Table, list[Compared]]:
    """Mean and standard deviation over all pairs of a function and a node type."""
    rows = []
    for name in made.names:
        standing, given = made.standing(name), made.given(name)
        for similarity in SIMILARITIES:
            here = _pooled(made.cells[given][similarity]) if given else [(None, None)] * len(_ARMS)
            theirs = syntaxeval.performance(similarity).get(name) or [(None, None)] * len(_ARMS)
            numbers = zip(chain(*here), chain(*theirs))
            row = [Compared(ours, published, standing, 2) for ours, published in numbers]
            rows.append([name, _title(similarity), standing, *row])
    columns = [Column("model", NAME), Column("similarity"), Column("comparable")]
    for arm in _ARMS:
        for what in ("mean", "deviation"):
            columns += Compared.columns(f"{arm} {what}", ROUNDED, SIGNED, "study")
    notes = "Over all pairs of a function and a node type. Deviation: of the sample. Difference: here less study."
    return compared("performance", "Similarities by model", columns, rows, notes)


def _pooled(by_type: dict[str, Cell]) -> list[tuple[float, float]]:
    pooled = np.concatenate([cell.arms for cell in by_type.values()], axis=1)
    return [(float(values.mean()), _deviation(values)) for values in pooled]


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _types(made: Study) -> Table:
    rows = []
    for labels, cell in _cells(made):
        means, deviations = cell.arms.mean(axis=1).tolist(), map(_deviation, cell.arms)
        rows.append([*labels, cell.functions, *chain(*zip(means, deviations))])
    columns = [*_LABELS, Column("functions", COUNT)]
    columns += [Column(what, SIMILARITY, arm) for arm in _ARMS for what in ("mean", "deviation")]
    return Table("types", "Similarities by node type", columns, rows, filters=1)


def _effects(made: Study) -> tuple[Table, list[Compared]]:
    rows = []
    for similarity in SIMILARITIES:
        theirs = syntaxeval.effects(similarity)
        for name in made.names:
            standing, given = made.standing(name), made.given(name)
            here = made.cells[given][similarity] if given else {}
            for kind in sorted({*here, *(theirs if name in syntaxeval.MODELS else ())}):
                cell = here.get(kind)
                numbers = Compared(cell and cell.study, theirs.get(kind, {}).get(name), standing, 3)
                ours = cell and [*cell.ours.effect, cell.ours.p_holm]
                rows.append([_title(similarity), name, kind, standing, numbers, ours])
    columns = [*_LABELS, Column("comparable"), *Compared.columns("study's estimator", SIGNED, SIGNED, "study")]
    columns.append(Column("T1 − T0", EFFECT, "paired, ours"))
    notes = (
        "Paired: the mean difference over functions with its 95 % interval (– in fewer than "
        f"{FEW_FUNCTIONS} functions) and p, corrected (Holm) over the node types of the model. {COLOURED}"
    )
    return compared("effects", "Effects of masking a node type", columns, rows, notes, filters=1)


_ARTEFACT = (
    "The study matches treated rows (T1) with control rows (T0) by propensity. But every function is in both arms with "
    "the same confounders, so all propensities are exactly a half, all distances tie, and the search for the nearest "
    "neighbour returns the second function for every row. What is left is half the mean difference plus half the "
    "difference of the second function, whichever it is: another order of the data gives another effect.",
    "The other estimators ask the same of the same rows. Where confounders are balanced by design, weighting and the "
    "doubly robust estimate give the plain difference of means, and so does pairing, which needs no confounders.",
)


def _estimators(made: Study) -> Table:
    rows = []
    for labels, cell in _cells(made):
        second = float(cell.arms[0, 1] - cell.arms[1, 1]) if cell.functions > 1 else None
        adjusted: list[float | None] = [None] * 5
        if (one := cell.unpaired) is not None:
            overlap = [*one.overlap.treated, *one.overlap.control]
            estimates = [effect.estimate for effect in (one.naive, one.weighted, one.doubly_robust)]
            adjusted = [*estimates, min(overlap), max(overlap)]
        rows.append([*labels, cell.functions, cell.study, second, cell.ours.effect.estimate, *adjusted])
    columns = [
        *(*_LABELS, Column("functions", COUNT)),
        *Column.each(SIGNED, "effect", "of the second function", group="study's estimator"),
        *Column.each(SIGNED, "paired", "plain", "weighted", "doubly robust", group="T1 − T0"),
        *Column.each(SIMILARITY, "lowest", "highest", group="propensity"),
    ]
    unknown = sum(None in size for size in made.prepared.sizes)
    notes = (
        f"Plain, weighted and doubly robust use the functions in which lizard finds a function (all but {unknown:,}), "
        "and are empty where these are too few for six confounders."
    )
    return Table("estimators", "Five estimators on the same rows", columns, rows, notes, filters=1)


def _boxes(made: Study) -> list[Figure]:
    kinds = _kinds(made)
    if not kinds:
        return []
    panels: dict[str, list[ArmPercentiles | None]] = {}
    for number, name in enumerate(made.results):
        by_type, colour = made.cells[name][SHOWN], COLOURS[number % len(COLOURS)]
        panels[name] = [_percentiles(by_type[kind].arms, colour) if kind in by_type else None for kind in kinds]
    title = (
        "Jaccard similarity of functions by masked node type (T1) and by its control (T0). Boxes from the first to the "
        "third quartile with the median, lines to the 5th and 95th percentile."
    )
    alt = f"Box plots of {', '.join(kinds)}; means and deviations are in the table."
    return [Figure("boxes", title, alt, "types", lambda: figures.boxes(kinds, panels))]


def _percentiles(arms: np.ndarray, colour: str) -> ArmPercentiles:
    t1, t0 = np.percentile(arms, _PERCENTILES, axis=1).T
    return ArmPercentiles(t1, t0, colour)


def _effects_figure(made: Study) -> list[Figure]:
    kinds = _kinds(made)
    series = []
    for number, name in enumerate(made.results):
        by_type, colour = made.cells[name][SHOWN], COLOURS[number % len(COLOURS)]
        ours = [by_type[kind].ours.effect if kind in by_type else (np.nan,) * 3 for kind in kinds]
        filled = [kind in by_type and separated(by_type[kind].ours.p_holm) for kind in kinds]
        study = [by_type[kind].study if kind in by_type else None for kind in kinds]
        series += [
            Dots(f"{name}, paired", np.array(ours, float).T, colour, filled),
            Dots(f"{name}, study's estimator", _points(study), FAINT, [False] * len(kinds)),
        ]
    published = syntaxeval.effects(SHOWN)
    for number, name in enumerate(syntaxeval.MODELS):
        points = _points([published.get(kind, {}).get(name) for kind in kinds])
        series.append(Dots(f"{name}, published", points, COLOURS[-1 - number], [True] * len(kinds)))
    title = (
        "Effect of masking a node type on the Jaccard similarity: ours with 95 % intervals (filled: corrected p below "
        "0.05), the same rows by the study's estimator, and the study's numbers."
    )
    alt = f"Dots and lines for {', '.join(kinds)}; the numbers are in the table."
    label = "T1 − T0, Jaccard similarity"
    return [Figure("effects", title, alt, "effects", lambda: figures.effects(kinds, series, label))] if kinds else []


def _points(values: list[float | None]) -> np.ndarray:
    """Effects without intervals, (3, rows)."""
    estimates = np.array(values, float)
    return np.stack([estimates, estimates, estimates])


def _kinds(made: Study) -> list[str]:
    return sorted({kind for by_similarity in made.cells.values() for kind in by_similarity[SHOWN]})


_LABELS = (Column("similarity"), Column("model", NAME), Column("node type", NAME))


def _cells(made: Study) -> Iterator[tuple[list[str], Cell]]:
    """Similarity, model and node type of every cell, and the cell."""
    for similarity in SIMILARITIES:
        for name, by_similarity in made.cells.items():
            for kind, cell in sorted(by_similarity[similarity].items()):
                yield [_title(similarity), name, kind], cell


def _title(similarity: str) -> str:
    return similarity.replace("_", "-").title()


def _provenance(made: Study) -> Section:
    rows: list[list[Any]] = []
    for name, result in made.results.items():
        skipped, dropped = sum(result.skips.values()), sum(result.dropped.values())
        rows.append([name, result.functions, skipped, dropped, result.copies, result.signature])
    columns = [
        *(Column("model", NAME), Column("masked", COUNT, "functions"), Column("too long", COUNT, "functions")),
        *(Column("pairs without a mask", COUNT), Column("copies", COUNT), Column("signature", CODE)),
    ]
    notes = "Pairs without a mask: a function and a node type that it does not have, or that no sub-token is in."
    return Section(
        "provenance", "Results and signatures", [Table("results", "The results of this page", columns, rows, notes)]
    )
