"""SyntaxEval reproduced (Velasco et al., ICSE-NIER 2024): its functions as it read them, its masks,
its estimator; and the page with its tables and figures, the study's numbers beside ours."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import ArrayLike

from codesyntax_dataset import atomic, corpus, sources, syntaxeval
from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources.codesearchnet import FIELDS
from probing.instruments.masking.hits import ARMS, T0, T1, hits
from probing.instruments.masking.masking import PUBLISHED
from probing.instruments.masking.result import SIMILARITIES, MaskResult
from probing.paper.inputs import Inputs
from probing.paper.joined import NOTHING_RUN, Frame, ScoreRow, beside_paper, every_number, pivot
from probing.report import figures, specs
from probing.report.document import COLOURED, Figure, Part, Section, tested_cell
from probing.report.figures import COLOURS, INK, Dots
from probing.report.syntaxeval import SHOWN_SIMILARITY
from probing.stats.intervals import FEW_CLUSTERS

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


@dataclass(frozen=True)
class Study:
    """Everything that was measured. `functions`: how many were read; `results`: name of a model ->
    its masking result."""

    inputs: Inputs
    functions: int
    results: dict[str, MaskResult]

    @cached_property
    def frame(self) -> Frame:
        """All numbers beside the study's."""
        return beside_paper(self._score_rows(), printed())

    def _score_rows(self) -> Iterator[ScoreRow]:
        for name, result in self.results.items():
            system = published_name(name) or name
            by_outcome = hits(result)
            for similarity in SIMILARITIES:
                measured = by_outcome[similarity]
                row = partial(ScoreRow, STUDY_CONFIG, system=system, rule=similarity)
                arms = {
                    kind: np.concatenate([measured.of_cluster(kind, arm) for arm in ARMS])
                    for kind in measured.groups
                }
                pooled = np.concatenate(list(arms.values()), axis=1)
                for kind, of_kind in {ALL: pooled, **arms}.items():
                    for arm, values in zip(ARMS, of_kind):
                        yield row(kind, value=float(values.mean()), measure=f"{arm} mean")
                        yield row(kind, value=_deviation(values), measure=f"{arm} deviation")
                for kind, paired in measured.each(measured.by_group(T1, T0)).items():
                    yield row(kind, value=arms[kind].shape[1], measure="functions")
                    yield row(kind, value=tested_cell(paired), measure=PAIRED)
                    yield from _by_study(row, kind, *arms[kind])


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


def _deviation(values: np.ndarray) -> float:
    """Of a sample; NaN for one value."""
    return float(pandas.Series(values).std())


EXCHANGES = 100
"""Of the placebo, as in the study."""


def _by_study(
    row: Callable[..., ScoreRow], kind: str, t1: np.ndarray, t0: np.ndarray
) -> Iterator[ScoreRow]:
    """The study's estimate; and both estimators where T1 and T0 of each function are exchanged at
    random, so that there is no effect. Nothing for one function."""
    differences = t1 - t0
    if len(differences) < 2:
        return
    yield row(kind, value=published_effect(t1, t0), measure=ESTIMATOR)
    yield row(kind, value=float(differences[1]), measure="of the second function")
    signs = np.random.default_rng(0).choice((-1, 1), (EXCHANGES, len(differences)))
    exchanged = signs * differences
    by_study = np.array(
        [published_effect(of_exchange, 0 * of_exchange) for of_exchange in exchanged]
    )
    for name, effects in ((ESTIMATOR, by_study), (PAIRED, exchanged.mean(axis=1))):
        yield row(kind, value=float(effects.mean()), measure=f"placebo, {name}: mean")
        yield row(kind, value=_deviation(effects), measure=f"placebo, {name}: deviation")


def published_name(model: str) -> str | None:
    """The study's name of a model, told by the last part of its Hub id or folder; None for other
    models.

    >>> published_name("models/codebert-base-mlm"), published_name("gpt2")
    ('microsoft/codebert-base-mlm', None)
    """
    names = {name.rpartition("/")[2].lower(): name for name in syntaxeval.MODELS}
    return names.get(model.rstrip("/").rpartition("/")[2].lower())


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
    exclude_repositories: StrPath | None = None,
) -> int:
    """Write the first functions of the split test, as CodeSearchNet has them and the study read
    them, into `output`, and build their dataset in the folder `data`; return how many were read."""
    without = frozenset[str]()
    if exclude_repositories is not None:
        without = corpus.read_repositories(exclude_repositories)
    rows: list[str] = []
    for function in corpus.read(asked.sources[STUDY_CONFIG], STUDY_CONFIG, Skips(), without):
        if function.partition != "test" or len(rows) == asked.limit:
            break  # test comes first
        fields = {name: getattr(function, name) for name in FIELDS}
        fields["code"] = text(function.code)
        rows.append(json.dumps(fields, ensure_ascii=False))
    content = "".join(f"{row}\n" for row in rows).encode()
    # the same bytes at any time
    atomic.write(output / SOURCE / MEMBER, gzip.compress(content, mtime=0))
    build(str(output / SOURCE), [STUDY_CONFIG], data, overwrite=True)
    return len(rows)


def published_effect(t1: ArrayLike, t0: ArrayLike) -> float:
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


# ----------------------------------------------------------------------------------------- the page


_TABLES = {
    "types": (
        "Similarities by node type",
        "^T[01] (?:mean|deviation)$",
        "",
    ),
    "effects": (
        "Effects of masking a node type, by two estimators on the same rows",
        f"^(?:functions|{ESTIMATOR}|of the second function|{PAIRED})$",
        "Paired: the mean difference over functions with its 95 % interval (– in fewer than "
        f"{FEW_CLUSTERS} functions) and p, corrected for the node types of the model (Holm) and "
        f"for three outcomes. {COLOURED}",
    ),
    "placebo": (
        "Effects of nothing",
        "^placebo",
        f"Over {EXCHANGES} exchanges. No effect is left, so a mean is to be near 0, and the deviation says how far an "
        "estimate is from it by chance. The study's placebo kept its propensity scores and could not show this.",
    ),
}
"""The tables by node type: the title, the measures, and what is said below."""


def sections(study: Study) -> list[Section]:
    of_all, by_type = (
        of_groups for _, of_groups in study.frame.groupby(study.frame["group"] != ALL)
    )
    performance = pivot(
        "performance",
        "Similarities by model",
        of_all,
        ("system", "rule"),
        "measure",
        "Over all pairs of a function and a node type. Deviation: of the sample.",
    )
    tables = {}
    for name, (title, measures, notes) in _TABLES.items():
        rows = by_type[by_type["measure"].str.contains(measures)]
        keys = "rule", "system", "group"
        tables[name] = pivot(name, title, rows, keys, "measure", notes, filters=1)
    about = specs.text("study", functions=STUDY_FUNCTIONS, length=STUDY_LENGTH)
    summary: list[Part] = [about, specs.table("inputs", _study_inputs(study))]
    effects = [_figure_3(by_type), specs.text("artefact"), tables["effects"]]
    return [
        Section("summary", "What was measured", summary, drawn=[every_number(study.frame)]),
        Section(
            "similarities",
            "Figure 2 and Table 2. Similarities",
            [_figure_2(by_type), performance, tables["types"]],
        ),
        Section("effects", "Figure 3 and Table 2. Causal effects", effects),
        Section("placebo", "Placebo: arms exchanged at random", [tables["placebo"]]),
    ]


def _study_inputs(study: Study) -> Iterator[list[str]]:
    """For each model: the source, the signature, and what differs from the study."""
    source = sources.shown(study.inputs.sources[STUDY_CONFIG])
    differs = "parser" + ", data" * (study.functions != STUDY_FUNCTIONS)
    for name, result in study.results.items():
        yield [STUDY_CONFIG, source, name, result.signature, differs]


def _figure_2(by_type: Frame) -> Part:
    """The study's Figure 2: the mean similarity of T0 beside that of T1, by node type."""
    rows = by_type[by_type["rule"] == SHOWN_SIMILARITY].set_index("group")
    kinds = sorted(rows.index[rows["measure"] == PAIRED].unique())
    looks = {T1: "T1: nodes of the type masked", T0: "T0: as many random sub-tokens"}
    panels = {}
    for system, of_system in rows[rows["value"].notna()].groupby("system", sort=False):
        panels[system] = [
            Dots(label, of_arm["value"].reindex(kinds).tolist(), colour, arm == T0)
            for (arm, label), colour in zip(looks.items(), (COLOURS[0], INK))
            if len(of_arm := of_system[of_system["measure"] == f"{arm} mean"])
        ]
    title = "Mean Jaccard similarity of the trees of the code and of what is restored."
    alt = f"Dots and lines for {', '.join(kinds)}; the numbers are in the table."
    draw = partial(figures.dots, kinds, panels)
    return Figure("types", title, alt, "types", draw) if kinds else NOTHING_RUN


def _figure_3(by_type: Frame) -> Part:
    """The study's Figure 3: ours, and the study's numbers."""
    rows = by_type[by_type["rule"] == SHOWN_SIMILARITY].set_index("group")
    ours, published = rows[rows["measure"] == PAIRED], rows[rows["measure"] == ESTIMATOR]
    kinds = sorted(ours.index.unique())
    panels = {}
    for (system, paired), colour in zip(ours.groupby("system", sort=False), cycle(COLOURS)):
        of_study = published.loc[published["system"] == system, "paper"].reindex(kinds)
        panels[system] = [
            Dots("paired, with 95 % intervals", paired["value"].reindex(kinds).tolist(), colour)
        ]
        if of_study.notna().any():
            panels[system].append(Dots("published", of_study.tolist(), INK, needs_no_model=True))
    title = (
        "Effect of masking a node type (T1 − T0) on the Jaccard similarity, here and in the study."
    )
    alt = f"Dots and lines for {', '.join(kinds)}; the numbers are in the table."
    draw = partial(figures.dots, kinds, panels)
    return Figure("effects", title, alt, "effects", draw) if kinds else NOTHING_RUN
