"""SyntaxEval made again (Velasco et al., ICSE-NIER 2024): its functions as it read them, its masks, its estimator; and
the page with its tables and figures, the study's numbers beside ours."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from codesyntax_dataset import atomic, corpus, sources, syntaxeval
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources.codesearchnet import FIELDS
from probing.instruments.masking.hits import ARMS, T0, T1, hits
from probing.instruments.masking.masking import PUBLISHED
from probing.instruments.masking.result import SIMILARITIES, MaskResult
from probing.paper.cells import Compared, compared
from probing.paper.inputs import Inputs
from probing.report import figures
from probing.report.document import COLOURED, Column, Figure, Section, Table, tested
from probing.report.figures import COLOURS, FAINT, ArmPercentiles, Dots
from probing.report.kinds import CODE, COUNT, EFFECT, NAME, ROUNDED, SIGNED, SIMILARITY
from probing.runs.data import read_functions
from probing.stats.hits import Hits
from probing.stats.intervals import FEW_CLUSTERS, Estimate, corrected

CONFIG = syntaxeval.CONFIG

FUNCTIONS = 7501
"""Those that the study analysed: the first of its data."""

LENGTH = 509
"""The most sub-tokens of a function, special tokens included: fewer than the 510 of the study's models."""

SETTINGS: dict[str, Any] = {"config": CONFIG, "split": "test", "protocol": PUBLISHED, "max_length": LENGTH}
"""Of the masking runs; the others are the defaults of `mask`."""

COPIES = 118, 52
"""Masked copies of a function and bytes of a row: 22,785 and 1,190,277 of 193 functions."""

SOURCE, MEMBER = "source", "python/final/jsonl/test/python_test_0.jsonl.gz"
"""The folder of the functions as the study read them, and the file in it."""

_TRIPLE_QUOTED = re.compile(r'"""(?:.|\n)*?"""|' + r"'''(?:.|\n)*?'''")


TITLE = "SyntaxEval, made again"

SHOWN = "jaccard"
"""The similarity of the figures."""

_PERCENTILES = np.arange(0, 101, 5)


class Cell(NamedTuple):
    """One node type by one similarity. `arms`: T1 and T0 of its functions (2, F), in the order of the data.

    `study`: the effect by the study's own estimator, None for a single function; `ours`: the paired one.
    """

    arms: np.ndarray
    study: float | None
    ours: Estimate

    @property
    def functions(self) -> int:
        return self.arms.shape[1]


class StudyFunctions(NamedTuple):
    """How many functions were `read` from the source, and how many of them parse without their triple-quoted texts and
    are `labelled`."""

    read: int
    labelled: int


@dataclass(frozen=True)
class Study:
    """Everything that was made: `results`: name of a model -> its masking result."""

    inputs: Inputs
    prepared: StudyFunctions
    results: dict[str, MaskResult]

    @cached_property
    def cells(self) -> dict[str, dict[str, dict[str, Cell]]]:
        """Name -> similarity -> node type -> cell."""
        cells = {}
        for name, result in self.results.items():
            measured = hits(result)
            cells[name] = {similarity: _cells(measured[similarity]) for similarity in SIMILARITIES}
        return cells

    @property
    def names(self) -> list[str]:
        """The study's models, then ours that it does not have."""
        return [*syntaxeval.MODELS, *(name for name in self.results if published_name(name) is None)]

    def given(self, name: str) -> str | None:
        """The name in results of one of `names`; None if it was not given."""
        return next((model for model in self.results if name in (model, published_name(model))), None)

    def standing(self, name: str) -> str:
        """Why a model's numbers do not compare with the study's: at least its parser, which is of 2022."""
        if name not in syntaxeval.MODELS:
            return "not in the study"
        if self.given(name) is None:
            return "empty: no such model"
        other = [] if self.prepared.read == FUNCTIONS else ["other data"]
        return f"no: {', '.join(['other parser', *other])}"


def published_name(model: str) -> str | None:
    """The study's name of a model, told by the last part of its Hub id or folder; None for other models.

    >>> published_name("models/codebert-base-mlm"), published_name("gpt2")
    ('microsoft/codebert-base-mlm', None)
    """
    last = model.rstrip("/").rpartition("/")[2].lower()
    return next((name for name in syntaxeval.MODELS if name.rpartition("/")[2].lower() == last), None)


def text(code: str) -> str:
    """A function as the study read it: its first line not indented, and no triple-quoted text.

    >>> text("  def f():\\n    '''Doc.'''\\n    return 1")
    'def f():\\n    \\n    return 1'
    """
    first, newline, rest = code.partition("\n")
    return _TRIPLE_QUOTED.sub("", first.lstrip() + newline + rest)


def prepare(
    asked: Inputs, output: Path, data: Path, exclude_repositories: str | os.PathLike[str] | None = None
) -> StudyFunctions:
    """Write the functions as the study read them into `output`, and build their dataset in the folder `data`."""
    excluded = frozenset() if exclude_repositories is None else corpus.read_repositories(exclude_repositories)
    read = _write(asked, output / SOURCE / MEMBER, excluded)
    build(str(output / SOURCE), [CONFIG], data, overwrite=True)
    return StudyFunctions(read, len(read_functions(data, CONFIG, "test").dataset))


def published(t1: ArrayLike, t0: ArrayLike) -> float:
    """The effect that the study reports for scores (F,) of the same functions in both arms, in the order of its rows.

    The study matches rows by propensity, but every function is in both arms with the same confounders, so that all
    propensities are exactly 0.5, all distances tie, and the ball tree of scikit-learn returns the second function of
    the other arm for every row. What is left is half the mean difference plus half the difference of the second
    function, whichever it is: reorder the functions, and the effect is another.

    Raises ArgumentError for fewer than two functions.
    """
    differences = np.subtract(t1, t0)
    if len(differences) < 2:
        raise ArgumentError("the published effect needs at least two functions: it depends on the second")
    return float(differences.mean() + differences[1]) / 2


def _write(asked: Inputs, file: Path, excluded: frozenset[str]) -> int:
    """Write the first functions of the split test as CodeSearchNet has them; return how many."""
    rows: list[str] = []
    for function in corpus.read(asked.sources[CONFIG], CONFIG, Skips(), excluded):
        if function.partition != "test" or len(rows) == asked.limit:
            break  # test comes first
        code = text(function.code)
        fields = (code, function.repo, function.path, function.func_name, function.url, CONFIG, "test")
        rows.append(json.dumps(dict(zip(FIELDS, fields)), ensure_ascii=False))
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:  # the same bytes at any time
        stream.write("".join(f"{row}\n" for row in rows).encode())
    atomic.write(file, packed.getvalue())
    return len(rows)


def _cells(measured: Hits) -> dict[str, Cell]:
    """Node type -> its cell; types whose trees could never be compared have none."""
    (effects,) = corrected([measured.by_group(T1, T0)])
    cells = {}
    for name, ours in measured.each(effects).items():
        t1, t0 = arms = np.concatenate([measured.of_cluster(name, arm) for arm in ARMS])
        cells[name] = Cell(arms, published(t1, t0) if len(t1) > 1 else None, ours)
    return cells


# ------------------------------------------------------------------------------------------------------------- the page


def sections(made: Study) -> list[Section]:
    performance, effects = _performance(made), _effects(made)
    return [
        _summary(made, [*performance[1], *effects[1]]),
        Section("similarities", "Figure 2 and Table 2. Similarities", [performance[0], *_boxes(made), _types(made)]),
        Section("effects", "Figure 3 and Table 2. Causal effects", [*_effects_figure(made), effects[0]]),
        Section("estimators", "Why the study's estimate is an artefact", [_ARTEFACT, _estimators(made)]),
        Section("placebo", "Placebo: arms exchanged at random", [_placebo(made)]),
        _provenance(made),
    ]


def _summary(made: Study, cells: list[Compared]) -> Section:
    filled = sum(cell.here is not None for cell in cells)
    read, labelled = made.prepared
    return Section(
        "summary",
        "What was made, and what compares",
        [
            f"{filled} of the {len(cells)} numbers of {syntaxeval.SOURCE} have one of ours beside them. None compares "
            "exactly: the study parsed with the Python grammar of June 2022, and today's gives other trees. For a "
            "small model on 45 functions, similarities by the two differ by 0.03 (T1) and 0.06 (T0) on average. A row "
            f"says what else differs. The study analysed {FUNCTIONS:,} functions.",
            f"Source: {sources.shown(made.inputs.sources[CONFIG])}. {read:,} functions, of which {labelled:,} parse "
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
            here = _pooled(made.cells[given][similarity]) if given else [(None, None)] * len(ARMS)
            theirs = syntaxeval.performance(similarity).get(name) or [(None, None)] * len(ARMS)
            numbers = zip(chain(*here), chain(*theirs))
            row = [Compared(ours, published, standing, 2) for ours, published in numbers]
            rows.append([name, _title(similarity), standing, *row])
    columns = [Column("model", NAME), Column("similarity"), Column("comparable")]
    for arm in ARMS:
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
    for labels, cell in _labelled(made):
        means, deviations = cell.arms.mean(axis=1).tolist(), map(_deviation, cell.arms)
        rows.append([*labels, cell.functions, *chain(*zip(means, deviations))])
    columns = [*_LABELS, Column("functions", COUNT)]
    columns += [Column(what, SIMILARITY, arm) for arm in ARMS for what in ("mean", "deviation")]
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
                ours = cell and tested(cell.ours)
                rows.append([_title(similarity), name, kind, standing, numbers, ours])
    columns = [*_LABELS, Column("comparable"), *Compared.columns("study's estimator", SIGNED, SIGNED, "study")]
    columns.append(Column("T1 − T0", EFFECT, "paired, ours"))
    notes = (
        "Paired: the mean difference over functions with its 95 % interval (– in fewer than "
        f"{FEW_CLUSTERS} functions) and p, corrected (Holm) over the node types of the model. {COLOURED}"
    )
    return compared("effects", "Effects of masking a node type", columns, rows, notes, filters=1)


_ARTEFACT = (
    "The study matches treated rows (T1) with control rows (T0) by propensity. But every function is in both arms with "
    "the same confounders, so all propensities are exactly a half, all distances tie, and the search for the nearest "
    "neighbour returns the second function for every row. What is left is half the mean difference plus half the "
    "difference of the second function, whichever it is: another order of the data gives another effect. Pairing gives "
    "the difference of means, in any order, and needs no confounders."
)


def _estimators(made: Study) -> Table:
    rows = []
    for labels, cell in _labelled(made):
        second = float(cell.arms[0, 1] - cell.arms[1, 1]) if cell.functions > 1 else None
        rows.append([*labels, cell.functions, cell.study, second, cell.ours.value])
    columns = [
        *(*_LABELS, Column("functions", COUNT)),
        *Column.each(SIGNED, "effect", "of the second function", group="study's estimator"),
        Column("paired", SIGNED, "T1 − T0"),
    ]
    return Table("estimators", "Two estimators on the same rows", columns, rows, filters=1)


EXCHANGES = 100
"""Of the placebo, as in the study."""


def _placebo(made: Study) -> Table:
    """Both estimators where T1 and T0 of each function are exchanged at random, so that there is no effect."""
    rows = []
    for labels, cell in _labelled(made):
        if cell.functions > 1:
            signs = np.random.default_rng(0).choice((-1, 1), (EXCHANGES, cell.functions))
            differences = signs * (cell.arms[0] - cell.arms[1])
            by_study = np.array([published(of_exchange, 0 * of_exchange) for of_exchange in differences])
            paired = differences.mean(axis=1)
            numbers = (by_study.mean(), by_study.std(ddof=1), paired.mean(), paired.std(ddof=1))
            rows.append([*labels, cell.functions, *map(float, numbers)])
    columns = [*_LABELS, Column("functions", COUNT)]
    for group in ("study's estimator", "paired"):
        columns += Column.each(SIGNED, "mean", "deviation", group=group)
    notes = (
        f"Over {EXCHANGES} exchanges. No effect is left, so a mean is to be near 0, and the deviation says how far an "
        "estimate is from it by chance. The study's placebo kept its propensity scores and could not show this."
    )
    return Table("placebo", "Effects of nothing", columns, rows, notes, filters=1)


def _boxes(made: Study) -> list[Figure]:
    kinds = _kinds(made)
    if not kinds:
        return []
    panels: dict[str, list[ArmPercentiles | None]] = {}
    for (name, cells), colour in zip(made.cells.items(), cycle(COLOURS)):
        by_type = cells[SHOWN]
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
    for (name, cells), colour in zip(made.cells.items(), cycle(COLOURS)):
        by_type = cells[SHOWN]
        ours = [by_type[kind].ours if kind in by_type else None for kind in kinds]
        filled = [effect is not None and effect.significant for effect in ours]
        study = [by_type[kind].study if kind in by_type else None for kind in kinds]
        series += [
            Dots(f"{name}, paired", figures.stacked(ours), colour, filled),
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


def _labelled(made: Study) -> Iterator[tuple[list[str], Cell]]:
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
