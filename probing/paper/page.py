"""The page of a reproduction: what it was made from, and every table and figure under its number in
the paper.

Tables have our numbers, the paper's and the difference side by side; figures have the paper's
numbers where its tables have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas

from codesyntax_dataset import paper, sources
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import KS, TABLE_KS
from probing.evidence.scores import MEAN
from probing.paper import cases
from probing.paper.inputs import CODE, CONFIGS, NATURAL
from probing.paper.joined import COMPARABLE, KEY, Frame, pivot
from probing.paper.measured import BASELINE_SYSTEMS, CUBERT, NO_MODEL, OFFSET, Reproduction
from probing.report import figures, specs
from probing.report.dataset import FAR_TOKENS, offsets_figure
from probing.report.document import Column, Figure, Part, Section, Table
from probing.report.figures import COLOURS, INK, Line, Points

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

PAPER_TITLE = "The tables and figures of CodeSyntax, reproduced"

ENDS = 5
"""Relations at each end of Table 6."""


class Content(NamedTuple):
    """What an exhibit shows; `rows`: of the frame, which are the numbers of a figure."""

    parts: Sequence[Part]
    rows: Frame | None = None


class Exhibit(NamedTuple):
    """A table or figure of the paper: its number, what it shows, and the rows of the frame that it
    has: of these configs, rules, measures and k, means over relations or not. Tables have a row for
    each value of `keys`."""

    name: str
    title: str
    draw: Callable[[Reproduction, Exhibit], Content]
    configs: tuple[str, ...] = CODE
    rules: tuple[str, ...] = ("first",)
    measures: tuple[str, ...] = ("uas",)
    ks: tuple[int, ...] = (1,)
    means: bool = False
    keys: tuple[str, ...] = ("config", "group", "comparable")
    across: str = "measure"
    notes: str = ""
    filters: int = 0

    @property
    def id(self) -> str:
        return self.name.lower().replace(",", "").replace(" ", "-")

    @property
    def is_figure(self) -> bool:
        return self.name.startswith("Figure")

    def select(self, reproduction: Reproduction) -> Frame:
        """Its rows, config by config."""
        frame = reproduction.frame
        matches = (frame["group"] == MEAN) == self.means
        matches &= frame["config"].isin(self.configs)
        matches &= frame["rule"].isin(self.rules)
        matches &= frame["measure"].isin(self.measures)
        matches &= frame["k"].isin(self.ks)
        places = frame.loc[matches, "config"].map(self.configs.index)
        return frame.loc[places.sort_values(kind="stable").index]


def sections(reproduction: Reproduction) -> list[Section]:
    parts: dict[bool, list[Section]] = {False: [], True: []}
    shown = []
    for exhibit in EXHIBITS:
        content = exhibit.draw(reproduction, exhibit)
        title = f"{exhibit.name}. {exhibit.title}"
        section = Section(exhibit.id, title, content.parts)
        if content.rows is not None and exhibit.is_figure:
            section.drawn = [_figure_csv(exhibit, content.rows)]
        elif content.rows is not None:
            shown.append(content.rows)
        parts[exhibit.is_figure].append(section)
    return [
        _agreement_section(reproduction, pandas.concat(shown)),
        Section("tables", "Tables", sections=parts[False]),
        Section("figures", "Figures", sections=parts[True]),
    ]


def _figure_csv(exhibit: Exhibit, rows: Frame) -> Table:
    """The CSV file of a figure."""
    names = ["config", "rule", "k", "group", "system", "value", "paper", "items"]
    columns = [Column(name) for name in names]
    cells = rows[names].to_numpy().tolist()
    return Table(exhibit.id, "", columns, cells)


def _agreement_section(reproduction: Reproduction, shown: Frame) -> Section:
    numbers = shown.drop_duplicates(KEY).dropna(subset="paper")
    numbers = numbers[numbers["against"] == ""]
    beside = numbers["value"].count()
    compares = numbers[numbers["comparable"] == COMPARABLE]
    compares = compares.dropna(subset="difference")
    largest = (
        f", with differences of at most {compares['difference'].abs().max():.1f}"
        if len(compares)
        else ""
    )
    return Section(
        "summary",
        "What was made, and what compares",
        [
            f"Of {len(numbers):,} numbers in these tables of {paper.source()}, {beside:,} have one "
            f"of ours beside them, and {len(compares):,} of these compare{largest}. Scores follow the published "
            "protocol: the attention head of each relation and k is the one that is best on the scored data, the split "
            "test. That is optimistic; what a claim should rest on, heads chosen on validation and intervals, is in "
            "`codesyntax report`.",
            "A difference is to be 0.0, within rounding, where the inputs are the authors' own: the same functions (as "
            "many as in the paper, with as many edges of each relation), all of them, and all models of the table, "
            "because scores are of the functions that fit every model (511 sub-tokens). Otherwise the column "
            "comparable says what differs: other data; partial, by --limit; other functions, because models of the "
            "table were not given; other direction, for models that cannot see later tokens. Models are told by their "
            "names. In Java, the keyword baseline has ; among its keywords, as the paper's numbers imply, but for the "
            "config without semicolons.",
            _inputs(reproduction),
        ],
    )


def _inputs(reproduction: Reproduction) -> Table:
    rows: list[dict[str, Any]] = []
    counted = reproduction.counted
    for language, configs in CONFIGS.items():
        location = reproduction.inputs.sources.get(language)
        source = sources.shown(location) if location else ""
        functions = counted[language].functions if language in counted else None
        for config in configs:
            about: dict[str, Any] = {"config": config, "source": source}
            measured = reproduction.measured.get(config)
            if measured is None:
                missing = reproduction.inputs.missing[config]
                rows.append({**about, "differs": f"empty: {missing}"})
                continue
            about |= {"counted": functions, "scored": measured.functions}
            about["differs"] = "; ".join(reproduction.differs(config).values())
            models = measured.models.values() or [NO_MODEL]
            rows += [{**about, "model": model} for model in models]
    return specs.table("paper-inputs", rows, "inputs")


# ------------------------------------------------------------------------------------------------------------- tables


def _score_table(reproduction: Reproduction, exhibit: Exhibit) -> Content:
    rows = exhibit.select(reproduction)
    return Content([_pivoted(exhibit, rows)], rows)


def _pivoted(exhibit: Exhibit, rows: Frame) -> Table:
    return pivot(
        exhibit.id,
        exhibit.title,
        rows,
        exhibit.keys,
        exhibit.across,
        exhibit.notes,
        exhibit.filters,
    )


def _relations_table(
    reproduction: Reproduction, exhibit: Exhibit, ends: int | None = None
) -> Content:
    """Tables 6 and 9 to 12: models against the best offset, largest difference of CuBERT, or else
    the first, on top."""
    parts = []
    for _, rows in exhibit.select(reproduction).groupby("config", sort=False):
        measured, others = _ranked(rows[rows["against"] == OFFSET])
        order = [*measured, *others]
        if ends is not None:
            order = measured or others
            order = order[:ends] + order[ends:][-ends:]
        shown = rows[rows["group"].isin(order)]
        places = shown["group"].map(order.index)
        parts.append(shown.loc[places.sort_values(kind="stable").index])
    together = pandas.concat(parts)
    return Content([_pivoted(exhibit, together)], together)


def _ranked(differences: Frame) -> tuple[list[str], list[str]]:
    """The relations by the difference of CuBERT to the offset, or else of the first model; and
    those that were not measured, by the difference in the paper."""
    differences = differences.sort_values("group")
    measured = differences.dropna(subset="value")
    systems = measured["system"].tolist()
    first = CUBERT if CUBERT in systems or not systems else systems[0]
    of_first = measured[measured["system"] == first]
    ranked = of_first.sort_values("value", ascending=False, kind="stable")["group"].tolist()
    unknown = differences[~differences["group"].isin(ranked)]
    others = unknown.sort_values("paper", ascending=False)["group"].unique().tolist()
    return list(dict.fromkeys(ranked)), others


# ------------------------------------------------------------------------------------------------------------ figures


def _drawing(
    exhibit: Exhibit,
    reproduction: Reproduction,
    title: str,
    draw: Callable[[], MatplotlibFigure],
    rows: Frame,
) -> Content:
    """A drawing, if there is anything to draw, and why some of the configs are not in it."""
    missing = reproduction.inputs.missing
    empty = [f"{config} ({missing[config]})" for config in exhibit.configs if config in missing]
    reasons = [f"Empty: {', '.join(empty)}."] if empty else []
    if rows["value"].isna().all():
        return Content(reasons)
    alt = "The numbers are in the CSV file of the same name."
    figure = Figure(
        name=exhibit.id,
        title=title,
        alt=alt,
        table=exhibit.id,
        draw=draw,
    )
    return Content([figure, *reasons], rows)


def _preview(reproduction: Reproduction, exhibit: Exhibit) -> Content:
    """Figure 2: the best model and the best baseline of each language."""
    rows = exhibit.select(reproduction)
    is_baseline = rows["system"].isin(BASELINE_SYSTEMS)
    series = ("best model", ~is_baseline, COLOURS[0]), ("best baseline", is_baseline, INK)
    panels: dict[str, list[Points]] = {}
    shown = []
    for (panel, column), (kind, of_kind, colour) in product(_SIDES, series):
        known = rows[of_kind].dropna(subset=column).astype({column: float})
        best = known.loc[known.groupby("config")[column].idxmax()]
        shown.append(best)
        scores = best.set_index("config")[column].reindex(exhibit.configs)
        points = Points(kind, scores.tolist(), colour, needs_no_model=kind == "best baseline")
        panels.setdefault(panel, []).append(points)
    titles = [LANGUAGES[config].title for config in exhibit.configs]
    title = "The best model and the best baseline: top-1 UAS in percent, first token, mean of relations."
    drawn = partial(figures.rows, titles, panels)
    return _drawing(exhibit, reproduction, title, drawn, pandas.concat(shown))


_SIDES = ("here", "value"), ("paper", "paper")
"""The panels of Figure 2, and the columns of the frame that they show."""


def _offsets_figure(reproduction: Reproduction, exhibit: Exhibit) -> Content:
    """Figure 3: the mean offset of each relation."""
    title = (
        "Relations by their mean offset, from the head to the dependent, in all splits; the line is at "
        f"{FAR_TOKENS} tokens."
    )
    counted = {
        name: counts for name, counts in reproduction.counted.items() if name in exhibit.configs
    }
    drawn = partial(offsets_figure, counted)
    return _drawing(exhibit, reproduction, title, drawn, exhibit.select(reproduction))


def _curves(reproduction: Reproduction, exhibit: Exhibit) -> Content:
    """Scores over k: a row of panels for each rule, a column for each config."""
    rows = exhibit.select(reproduction)
    panels: dict[str, dict[str, list[Line]]] = {rule: {} for rule in exhibit.rules}
    for (config, rule), of_panel in rows.groupby(["config", "rule"], sort=False):
        if config in reproduction.measured:
            panels[rule][config] = list(_curves_of(of_panel))
    circles = " Circles are the paper's numbers." if rows["paper"].notna().any() else ""
    return _drawing(
        exhibit,
        reproduction,
        f"Mean top-k UAS over k.{circles}",
        partial(figures.curves, panels),
        rows,
    )


def _curves_of(rows: Frame) -> Iterator[Line]:
    """Our curves, and the paper's numbers of the same as circles."""
    colours = cycle(COLOURS)
    for system, of_system in rows.groupby("system", sort=False):
        by_k = of_system.set_index("k").reindex(KS)
        ours = by_k["value"].to_numpy(float)[None]
        printed = by_k["paper"].to_numpy(float)[None]
        if np.isnan(ours).all():
            continue
        colour = INK if system in BASELINE_SYSTEMS else next(colours)
        yield Line(system, ours, colour, _LINE_STYLES.get(system, "-"))
        if not np.isnan(printed).all():
            yield Line(f"{system} (paper)", printed, colour, points=True)


_LINE_STYLES = {"Offset": "--", "Keyword": ":"}


def _cases(reproduction: Reproduction, exhibit: Exhibit) -> Content:
    """Figures 1, 5 and 9 to 15: links to a page of single functions."""
    if not reproduction.cases:
        return Content(["Empty: no model of code, or no function that is short enough."])
    return Content([cases.table(reproduction.cases)])


_OF_ROUNDED = "Percent; difference: here less paper, both rounded to one digit."
_HEADS = (
    f"{_OF_ROUNDED} At k = 1, largest difference first. Beside a score stands the head (layer-head, from 0), or how "
    "many tokens the best offset is. The paper gives these numbers for CuBERT alone."
)
_means = partial(
    Exhibit,
    draw=_score_table,
    ks=tuple(map(int, TABLE_KS)),
    means=True,
    keys=("config", "system", "comparable"),
    across="k",
    notes=_OF_ROUNDED,
)
_by_relation = partial(
    Exhibit, draw=_relations_table, keys=("config", "group"), across="shown", notes=_HEADS
)
_over_k = partial(Exhibit, draw=_curves, ks=tuple(KS), means=True)
_PYTHON, _JAVA = CONFIGS["python"], CONFIGS["java"]
_SEMICOLONS = ("java", "java_skip_semicolon")

EXHIBITS = (
    _means("Table 3", "Code, first token of the dependent"),
    _means("Table 4", "Natural language", configs=NATURAL),
    _means("Table 5", "Code, any token of the dependent", rules=("any",)),
    _by_relation(
        "Table 6",
        f"The {ENDS} relations on which a model gains most and loses most",
        draw=partial(_relations_table, ends=ENDS),
    ),
    Exhibit(
        "Table 7",
        "Classes of errors",
        _score_table,
        measures=("errors", "percent"),
        keys=("config", "system", "group"),
        notes="What the best heads attend to most where they are wrong, with one guess, first token of the dependent. "
        "The paper counts fewer classes, of CuBERT: its numbers are not beside these. `codesyntax errors` has them for "
        "each relation, with examples.",
    ),
    Exhibit(
        "Table 8",
        "Edges of each relation, in all splits",
        _score_table,
        measures=("edges",),
        filters=1,
    ),
    _by_relation("Table 9", "Python, first token of the dependent", configs=("python",)),
    _by_relation(
        "Table 10", "Python, any token of the dependent", configs=("python",), rules=("any",)
    ),
    _by_relation("Table 11", "Java, first token of the dependent", configs=("java",)),
    _by_relation("Table 12", "Java, any token of the dependent", configs=("java",), rules=("any",)),
    Exhibit(
        "Section 4.2",
        "The code tokens that each head attends to most",
        _score_table,
        measures=("attended",),
        keys=("config", "system"),
        across="group",
        filters=1,
        notes="Percent of the reading tokens of edges, each once in a function, whose largest weight is on a token of "
        "that kind. Head: layer-head, from 0.",
    ),
    Exhibit("Figure 2", "Code and natural language", _preview, tuple(CONFIGS), means=True),
    Exhibit("Figure 3", "Offsets in code", _offsets_figure, measures=("offset",)),
    Exhibit(
        "Figure 3, continued",
        "Offsets in natural language",
        _offsets_figure,
        NATURAL,
        measures=("offset",),
    ),
    _over_k(
        "Figure 4",
        "Java with and without semicolons, last token",
        configs=_SEMICOLONS,
        rules=("last",),
    ),
    _over_k("Figure 6", "Code, first and any token of the dependent", rules=("first", "any")),
    _over_k("Figure 7", "English", configs=("english",)),
    _over_k("Figure 8", "German", configs=("german",)),
    _over_k("Figure 16", "Java and its delimiters, last token", configs=_JAVA, rules=("last",)),
    _over_k("Figure 17", "Java and its delimiters, any token", configs=_JAVA, rules=("any",)),
    _over_k("Figure 18", "Python and its delimiters, any token", configs=_PYTHON, rules=("any",)),
    _over_k("Figure 19", "Python and its delimiters, last token", configs=_PYTHON, rules=("last",)),
    Exhibit("Figures 1, 5 and 9 to 15", "Single functions", _cases),
)
"""What the paper has, by its captions; line breaks and semicolons are the delimiters."""
