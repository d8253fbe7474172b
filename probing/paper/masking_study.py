"""SyntaxEval reproduced (Velasco et al., ICSE-NIER 2024): its functions as it read them, its masks,
its estimator; and the page with its tables and figures, the study's numbers beside ours."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
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
from probing.paper.inputs import Inputs, excluded
from probing.paper.joined import Frame, ScoreRow, join, pivot
from probing.report import figures, specs
from probing.report.document import COLOURED, Figure, Section, tested
from probing.report.figures import COLOURS, FAINT
from probing.report.scored import dots
from probing.runs.data import read_functions
from probing.stats.hits import Hits
from probing.stats.intervals import FEW_CLUSTERS, corrected

STUDY_CONFIG = syntaxeval.CONFIG

STUDY_FUNCTIONS = 7501
"""Those that the study analysed: the first of its data."""

STUDY_LENGTH = 509
"""The most sub-tokens of a function, special tokens included: fewer than the 510 of the study's
models."""

SETTINGS: dict[str, Any] = {
    "config": STUDY_CONFIG,
    "split": "test",
    "protocol": PUBLISHED,
    "max_length": STUDY_LENGTH,
}
"""Of the masking runs; the others are the defaults of `mask`."""

SOURCE, MEMBER = "source", "python/final/jsonl/test/python_test_0.jsonl.gz"
"""The folder of the functions as the study read them, and the file in it."""

_TRIPLE_QUOTED = re.compile(r'"""(?:.|\n)*?"""|' + r"'''(?:.|\n)*?'''")


STUDY_TITLE = "SyntaxEval, reproduced"

SIMILARITY_OF_FIGURES = "jaccard"
"""The similarity of the figures."""


class StudyFunctions(NamedTuple):
    """How many functions were `read` from the source, and how many of them parse without their
    triple-quoted texts and are `labelled`."""

    read: int
    labelled: int


@dataclass(frozen=True)
class Study:
    """Everything that was made: `results`: name of a model -> its masking result."""

    inputs: Inputs
    prepared: StudyFunctions
    results: dict[str, MaskResult]

    @cached_property
    def arms(self) -> dict[tuple[str, str], dict[str, np.ndarray]]:
        """Model, by the study's name or its own, and similarity -> node type -> T1 and T0 of its
        functions (2, F)."""
        return {
            (system, similarity): {kind: _arm_shares(of_model, kind) for kind in of_model.groups}
            for (system, similarity), of_model in self._hits_by_similarity.items()
        }

    @cached_property
    def _hits_by_similarity(self) -> dict[tuple[str, str], Hits]:
        measured = {}
        for name, result in self.results.items():
            by_similarity = hits(result)
            for similarity in SIMILARITIES:
                measured[published_name(name) or name, similarity] = by_similarity[similarity]
        return measured

    @cached_property
    def frame(self) -> Frame:
        """All numbers beside the study's."""
        return join(self._score_rows(), printed(), self.standing)

    def _score_rows(self) -> Iterator[ScoreRow]:
        for (system, similarity), by_type in self.arms.items():
            measured = self._hits_by_similarity[system, similarity]
            (effects,) = corrected([measured.by_group(T1, T0)])
            row = partial(ScoreRow, STUDY_CONFIG, system=system, rule=similarity)
            pooled = np.concatenate(list(by_type.values()), axis=1)
            for kind, arms in {ALL: pooled, **by_type}.items():
                for arm, values in zip(ARMS, arms):
                    yield row(kind, value=float(values.mean()), measure=f"{arm} mean")
                    yield row(kind, value=_deviation(values), measure=f"{arm} deviation")
            for kind, paired in measured.each(effects).items():
                arms = by_type[kind]
                yield row(kind, value=arms.shape[1], measure="functions")
                yield row(kind, value=tested(paired), measure=PAIRED)
                if arms.shape[1] > 1:
                    differences = arms[0] - arms[1]
                    yield row(kind, value=published(*arms), measure=ESTIMATOR)
                    yield row(kind, value=float(differences[1]), measure="of the second function")
                    yield from _placebo(row, kind, differences)

    def standing(self, config: str, system: str) -> str:
        """Why a model's numbers do not compare with the study's: at least its parser, which is of
        2022."""
        if system not in syntaxeval.MODELS:
            return "not in the study"
        if not any(published_name(name) == system for name in self.results):
            return "empty: no such model"
        other = [] if self.prepared.read == STUDY_FUNCTIONS else ["other data"]
        return f"no: {', '.join(['other parser', *other])}"


ALL = "all"
"""The group of all functions and node types."""

ESTIMATOR, PAIRED = "study's estimator", "T1 − T0, paired"
"""Measures: the effect as the study computed it, and the mean difference over functions."""


def printed() -> Iterator[ScoreRow]:
    """The numbers of the study's Table 2."""
    for similarity in SIMILARITIES:
        row = partial(ScoreRow, STUDY_CONFIG, rule=similarity)
        for system, performance in syntaxeval.performance(similarity).items():
            for arm, (mean, deviation) in zip(ARMS, performance):
                yield row(ALL, system, mean, f"{arm} mean", digits=2)
                yield row(ALL, system, deviation, f"{arm} deviation", digits=2)
        for kind, effects in syntaxeval.effects(similarity).items():
            for system, effect in effects.items():
                yield row(kind, system, effect, ESTIMATOR, digits=3)


def _arm_shares(measured: Hits, kind: str) -> np.ndarray:
    return np.concatenate([measured.of_cluster(kind, arm) for arm in ARMS])


def _deviation(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None


EXCHANGES = 100
"""Of the placebo, as in the study."""


def _placebo(
    row: Callable[..., ScoreRow], kind: str, differences: np.ndarray
) -> Iterator[ScoreRow]:
    """Both estimators where T1 and T0 of each function are exchanged at random, so that there is no
    effect."""
    signs = np.random.default_rng(0).choice((-1, 1), (EXCHANGES, len(differences)))
    exchanged = signs * differences
    by_study = np.array([published(of_exchange, 0 * of_exchange) for of_exchange in exchanged])
    for name, effects in ((ESTIMATOR, by_study), (PAIRED, exchanged.mean(axis=1))):
        yield row(kind, value=float(effects.mean()), measure=f"placebo, {name}: mean")
        yield row(kind, value=_deviation(effects), measure=f"placebo, {name}: deviation")


def published_name(model: str) -> str | None:
    """The study's name of a model, told by the last part of its Hub id or folder; None for other
    models.

    >>> published_name("models/codebert-base-mlm"), published_name("gpt2")
    ('microsoft/codebert-base-mlm', None)
    """
    last = model.rstrip("/").rpartition("/")[2].lower()
    for name in syntaxeval.MODELS:
        if name.rpartition("/")[2].lower() == last:
            return name
    return None


def text(code: str) -> str:
    """A function as the study read it: its first line not indented, and no triple-quoted text.

    >>> text("  def f():\\n    '''Doc.'''\\n    return 1")
    'def f():\\n    \\n    return 1'
    """
    first, newline, rest = code.partition("\n")
    return _TRIPLE_QUOTED.sub("", first.lstrip() + newline + rest)


def prepare(
    asked: Inputs,
    output: Path,
    data: Path,
    exclude_repositories: str | os.PathLike[str] | None = None,
) -> StudyFunctions:
    """Write the functions as the study read them into `output`, and build their dataset in the
    folder `data`."""
    without = excluded(STUDY_CONFIG, exclude_repositories)
    read = _write(asked, output / SOURCE / MEMBER, without)
    build(str(output / SOURCE), [STUDY_CONFIG], data, overwrite=True)
    return StudyFunctions(read, len(read_functions(data, STUDY_CONFIG, "test").dataset))


def published(t1: ArrayLike, t0: ArrayLike) -> float:
    """The effect that the study reports for scores (F,) of the same functions in both arms, in the
    order of its rows.

    The study matches rows by propensity, but every function is in both arms with the same
    confounders, so that all propensities are exactly 0.5, all distances tie, and the ball tree of
    scikit-learn returns the second function of the other arm for every row. What is left is half
    the mean difference plus half the difference of the second function, whichever it is: reorder
    the functions, and the effect is another.

    Raises ArgumentError for fewer than two functions.
    """
    differences = np.subtract(t1, t0)
    if len(differences) < 2:
        raise ArgumentError(
            "the published effect needs at least two functions: it depends on the second"
        )
    return float(differences.mean() + differences[1]) / 2


def _write(asked: Inputs, file: Path, without: frozenset[str]) -> int:
    """Write the first functions of the split test as CodeSearchNet has them; return how many."""
    rows: list[str] = []
    for function in corpus.read(asked.sources[STUDY_CONFIG], STUDY_CONFIG, Skips(), without):
        if function.partition != "test" or len(rows) == asked.limit:
            break  # test comes first
        code = text(function.code)
        fields = (
            code,
            function.repo,
            function.path,
            function.func_name,
            function.url,
            STUDY_CONFIG,
            "test",
        )
        rows.append(json.dumps(dict(zip(FIELDS, fields)), ensure_ascii=False))
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:  # the same bytes at any time
        stream.write("".join(f"{row}\n" for row in rows).encode())
    atomic.write(file, packed.getvalue())
    return len(rows)


# ------------------------------------------------------------------------------------------------------------- the page


def sections(study: Study) -> list[Section]:
    by_type = study.frame[study.frame["group"] != ALL]
    measure = by_type["measure"]
    keys = ("rule", "system", "group")
    performance = pivot(
        "performance",
        "Similarities by model",
        study.frame[study.frame["group"] == ALL],
        ("system", "rule", "comparable"),
        "measure",
        "Over all pairs of a function and a node type. Deviation: of the sample. Difference: here less study.",
    )
    similarities = by_type[measure.str.contains("^T[01] (?:mean|deviation)$")]
    types = pivot("types", "Similarities by node type", similarities, keys, "measure", filters=1)
    estimates = by_type[measure.isin(["functions", ESTIMATOR, "of the second function", PAIRED])]
    notes = (
        "Paired: the mean difference over functions with its 95 % interval (– in fewer than "
        f"{FEW_CLUSTERS} functions) and p, corrected (Holm) over the node types of the model. {COLOURED}"
    )
    title = "Effects of masking a node type, by two estimators on the same rows"
    effects = pivot("effects", title, estimates, (*keys, "comparable"), "measure", notes, filters=1)
    notes = (
        f"Over {EXCHANGES} exchanges. No effect is left, so a mean is to be near 0, and the deviation says how far an "
        "estimate is from it by chance. The study's placebo kept its propensity scores and could not show this."
    )
    exchanged = by_type[measure.str.startswith("placebo")]
    placebo = pivot("placebo", "Effects of nothing", exchanged, keys, "measure", notes, filters=1)
    return [
        _effects_section(study),
        Section(
            "similarities",
            "Figure 2 and Table 2. Similarities",
            [performance, *_boxes(study), types],
        ),
        Section(
            "effects",
            "Figure 3 and Table 2. Causal effects",
            [*_figure_3(study), _ARTEFACT, effects],
        ),
        Section("placebo", "Placebo: arms exchanged at random", [placebo]),
        _provenance_section(study),
    ]


def _effects_section(study: Study) -> Section:
    numbers = study.frame.dropna(subset="paper")
    beside = numbers["value"].count()
    source = sources.shown(study.inputs.sources[STUDY_CONFIG])
    read, labelled = study.prepared
    return Section(
        "summary",
        "What was made, and what compares",
        [
            f"{beside} of the {len(numbers)} numbers of {syntaxeval.SOURCE} have one of ours beside "
            "them. None compares exactly: the study parsed with the Python grammar of June 2022, and today's gives "
            "other trees. For a small model on 45 functions, similarities by the two differ by 0.03 (T1) and 0.06 (T0) "
            f"on average. A row says what else differs. The study analysed {STUDY_FUNCTIONS:,} functions.",
            f"Source: {source}. {read:,} functions, of which "
            f"{labelled:,} parse once triple-quoted text is gone, as in the study. Each model masks those of at most "
            f"{STUDY_LENGTH} sub-tokens, "
            "by the protocol published, whose flaws are kept: special tokens are masked, too, and controls may lie "
            "inside the nodes. T1 masks the nodes of a type; T0 masks as many random sub-tokens, 20 times.",
        ],
    )


_ARTEFACT = (
    "Why the study's estimate is an artefact: it matches treated rows (T1) with control rows (T0) by propensity. But "
    "every function is in both arms with the same confounders, so all propensities are exactly a half, all "
    "distances tie, and the search for the nearest neighbour returns the second function for every row. What is left "
    "is half the mean difference plus half the difference of the second function, whichever it is: another order of "
    "the data gives another effect. Pairing gives the difference of means, in any order, and needs no confounders."
)


def _boxes(study: Study) -> list[Figure]:
    kinds = _types_shown(study)
    panels = {}
    for system, by_type in _arms_shown(study).items():
        panels[system] = [by_type.get(kind) for kind in kinds]
    title = (
        "Jaccard similarity of functions by masked node type (T1) and by its control (T0). Boxes from the first to the "
        "third quartile with the median, lines to the 5th and 95th percentile."
    )
    alt = f"Box plots of {', '.join(kinds)}; means and deviations are in the table."
    return (
        [Figure("boxes", title, alt, "types", lambda: figures.boxes(kinds, panels))]
        if kinds
        else []
    )


def _figure_3(study: Study) -> list[Figure]:
    """The study's Figure 3: ours, the same rows by the study's estimator, and the study's
    numbers."""
    kinds = _types_shown(study)
    rows = study.frame[study.frame["rule"] == SIMILARITY_OF_FIGURES]
    series = []
    for number, (system, of_system) in enumerate(rows.groupby("system", sort=False)):
        for name, measure, column, filled, colour in (
            ("paired", PAIRED, "value", False, COLOURS[number % len(COLOURS)]),
            ("study's estimator", ESTIMATOR, "value", False, FAINT),
            ("published", ESTIMATOR, "paper", True, COLOURS[-1 - number % len(COLOURS)]),
        ):
            of_measure = of_system[of_system["measure"] == measure].set_index("group")
            cells = [_point(cell, filled) for cell in of_measure[column].reindex(kinds)]
            if any(cells):
                series.append(dots(f"{system}, {name}", cells, colour))
    title = (
        "Effect of masking a node type on the Jaccard similarity: ours with 95 % intervals (filled: corrected p below "
        "0.05), the same rows by the study's estimator, and the study's numbers."
    )
    alt = f"Dots and lines for {', '.join(kinds)}; the numbers are in the table."
    label = "T1 − T0, Jaccard similarity"
    draw = partial(figures.effects, kinds, series, label)
    return [Figure("effects", title, alt, "effects", draw)] if kinds else []


def _point(cell: Any, filled: bool) -> list[float] | None:
    """A difference with its interval and p as it is; a number alone without an interval, filled or
    not."""
    if isinstance(cell, list):
        return cell
    if cell is None or np.isnan(cell):
        return None
    p = 0.0 if filled else 1.0
    return [cell, cell, cell, p]


def _arms_shown(study: Study) -> dict[str, dict[str, np.ndarray]]:
    """System -> node type -> arms, by the similarity of the figures."""
    return {
        system: by_type
        for (system, similarity), by_type in study.arms.items()
        if similarity == SIMILARITY_OF_FIGURES
    }


def _types_shown(study: Study) -> list[str]:
    return sorted(set(chain.from_iterable(_arms_shown(study).values())))


def _provenance_section(study: Study) -> Section:
    rows: list[list[Any]] = []
    for name, result in study.results.items():
        skipped = sum(result.skips.values())
        dropped = sum(result.dropped.values())
        rows.append([name, result.functions, skipped, dropped, result.copies, result.signature])
    return Section(
        "provenance", "Results and signatures", [specs.table("study-results", rows, "results")]
    )
