"""The page of a reproduction: what it was made from, and every table and figure under its number in
the paper.

Tables have our numbers, the paper's and the difference side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from codesyntax_dataset import paper, sources
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import KS, TABLE_KS
from probing.evidence.scores import MEAN
from probing.paper.cases import SHORT_FUNCTION
from probing.paper.inputs import CODE, CONFIGS, NATURAL
from probing.paper.joined import NOTHING_RUN, NUMBERS, Frame, every_number, pivot
from probing.paper.measured import (
    BASELINE_SYSTEMS,
    BASELINES_ONLY,
    OFFSET,
    Reproduction,
)
from probing.report import figures, specs
from probing.report.dataset import offsets_figure
from probing.report.document import Figure, Part, Section
from probing.report.figures import COLOURS, FAINT, INK, Dots, Line

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

PAPER_TITLE = "The tables and figures of CodeSyntax, reproduced"


class Exhibit(NamedTuple):
    """A table or figure of the paper: its number, what it shows, and the rows of the frame that it
    has: of these configs, rules, measures and k, means over relations or not. Tables have a row for
    each value of `keys`."""

    name: str
    title: str
    draw: Callable[[Reproduction, Exhibit], Part]
    configs: tuple[str, ...] = CODE
    rules: tuple[str, ...] = ("first",)
    measures: tuple[str, ...] = ("uas",)
    ks: tuple[int, ...] = (1,)
    means: bool = False
    keys: tuple[str, ...] = ("config", "group")
    across: str = "measure"
    notes: str = ""
    filters: int = 0

    @property
    def id(self) -> str:
        return self.name.lower().replace(" ", "-")

    def select(self, reproduction: Reproduction) -> Frame:
        frame = reproduction.frame
        matches = (frame["group"] == MEAN) == self.means
        matches &= frame["config"].isin(self.configs)
        matches &= frame["rule"].isin(self.rules)
        matches &= frame["measure"].isin(self.measures)
        matches &= frame["k"].isin(self.ks)
        return frame[matches]


def sections(reproduction: Reproduction) -> list[Section]:
    parts: dict[bool, list[Section]] = {False: [], True: []}
    for exhibit in EXHIBITS:
        title = f"{exhibit.name}. {exhibit.title}"
        section = Section(exhibit.id, title, [exhibit.draw(reproduction, exhibit)])
        parts[exhibit.name.startswith("Figure")].append(section)
    about = specs.text("reproduced", source=paper.source())
    summary: list[Part] = [about, specs.table("inputs", _inputs(reproduction))]
    return [
        Section("summary", "What was measured", summary, drawn=[every_number(reproduction.frame)]),
        Section("tables", "Tables", sections=parts[False]),
        Section("figures", "Figures", sections=parts[True]),
    ]


def _inputs(reproduction: Reproduction) -> Iterator[list[str]]:
    """For each config and model: the source, the signature, and what differs from the paper."""
    for language, configs in CONFIGS.items():
        of_language = reproduction.inputs.sources.get(language)
        source = sources.shown(of_language) if of_language else ""
        for config in configs:
            measured = reproduction.measured.get(config)
            models = measured.models if measured else {}
            for system, model in (models or {"": BASELINES_ONLY}).items():
                differs = reproduction.differs(config, system)
                yield [config, source, model.name, model.signature, differs]


# ------------------------------------------------------------------------------------------- tables


def _score_table(reproduction: Reproduction, exhibit: Exhibit) -> Part:
    return pivot(
        exhibit.id,
        "",  # the heading has it
        exhibit.select(reproduction),
        exhibit.keys,
        exhibit.across,
        exhibit.notes,
        exhibit.filters,
    )


def _cases(reproduction: Reproduction, exhibit: Exhibit) -> Part:
    rows = sorted(reproduction.cases, key=itemgetter(0))
    return specs.table("cases", rows, tokens=SHORT_FUNCTION)


# ------------------------------------------------------------------------------------------ figures


def _drawing(
    exhibit: Exhibit, rows: Frame, title: str, draw: Callable[[], MatplotlibFigure]
) -> Part:
    """A drawing, if there is anything to draw."""
    if rows["value"].isna().all():
        return NOTHING_RUN
    return Figure(exhibit.id, title, "The numbers are in the CSV file.", NUMBERS, draw)


def _preview(reproduction: Reproduction, exhibit: Exhibit) -> Part:
    """Figure 2: the best model of each language and the offset baseline, here and in the paper."""
    rows = exhibit.select(reproduction)
    rows = rows[(rows["system"] == OFFSET) | ~rows["system"].isin(BASELINE_SYSTEMS)]
    who = np.where(rows["system"] == OFFSET, "offset", "best model")
    looks = {"value": ("here", COLOURS[0], INK), "paper": ("in the paper", COLOURS[5], FAINT)}
    points = []
    for column, (where, *colours) in looks.items():
        best = rows[column].astype(float).groupby([rows["config"], who]).max().unstack()
        best = best.reindex(index=exhibit.configs)
        points += [
            Dots(f"{name}, {where}", best[name].tolist(), colour, name == "offset")
            for name, colour in zip(("best model", "offset"), colours)
        ]
    title = "Top-1 UAS of the best model and of the best offset, first token, mean of relations."
    names = [LANGUAGES[config].title for config in exhibit.configs]
    return _drawing(exhibit, rows, title, partial(figures.dots, names, {"UAS, %": points}))


def _offsets_figure(reproduction: Reproduction, exhibit: Exhibit) -> Part:
    """Figure 3: the mean offset of each relation."""
    title = "Tokens from the head to the dependent, mean of each relation, in all splits."
    rows = exhibit.select(reproduction)
    return _drawing(exhibit, rows, title, partial(offsets_figure, reproduction.counted))


def _curves(reproduction: Reproduction, exhibit: Exhibit) -> Part:
    """Scores over k: a row of panels for each rule, a column for each config."""
    rows = exhibit.select(reproduction)
    panels: dict[str, dict[str, list[Line]]] = {rule: {} for rule in exhibit.rules}
    known = rows.dropna(subset="value")
    for (config, rule), of_panel in known.groupby(["config", "rule"], sort=False):
        panels[rule][config] = [
            Line(
                system,
                scores.set_index("k")["value"].reindex(KS).to_numpy(float)[None],
                colour,
                "--" if system in BASELINE_SYSTEMS else "-",
            )
            for (system, scores), colour in zip(
                of_panel.groupby("system", sort=False), cycle(COLOURS)
            )
        ]
    title = "Mean top-k UAS over k."
    return _drawing(exhibit, rows, title, partial(figures.curves, panels))


_HEADS = (
    "Percent, at k = 1, in the order of the paper, whose Table 6 is the first and the last five relations of "
    "Tables 9 and 11. Beside a score stands the head (layer-head, from 0), or how many tokens the best offset is. The "
    "paper gives these numbers for CuBERT alone."
)
_means = partial(
    Exhibit,
    draw=_score_table,
    ks=tuple(map(int, TABLE_KS)),
    means=True,
    keys=("config", "system", "differs"),
    across="k",
    notes="Percent.",
)
_by_relation = partial(
    Exhibit, draw=_score_table, keys=("config", "group"), across="system", notes=_HEADS
)
_over_k = partial(Exhibit, draw=_curves, ks=tuple(KS), means=True)
_PYTHON, _JAVA = CONFIGS["python"], CONFIGS["java"]
_SEMICOLONS = ("java", "java_skip_semicolon")

EXHIBITS = (
    _means("Table 3", "Code, first token of the dependent"),
    _means("Table 4", "Natural language", configs=NATURAL),
    _means("Table 5", "Code, any token of the dependent", rules=("any",)),
    Exhibit(
        "Table 7",
        "Classes of errors",
        _score_table,
        measures=("errors",),
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
    Exhibit(
        "Figure 2",
        "The best model beside the offset baseline",
        _preview,
        tuple(CONFIGS),
        means=True,
    ),
    Exhibit(
        "Figure 3",
        "Relations by their mean offset",
        _offsets_figure,
        tuple(CONFIGS),
        measures=("offset",),
    ),
    _over_k(
        "Figure 4",
        "Over k: Java with and without semicolons, last token",
        configs=_SEMICOLONS,
        rules=("last",),
    ),
    _over_k(
        "Figure 6", "Over k: code, first and any token of the dependent", rules=("first", "any")
    ),
    _over_k("Figure 7", "Over k: English", configs=("english",)),
    _over_k("Figure 8", "Over k: German", configs=("german",)),
    _over_k(
        "Figure 16", "Over k: Java and its delimiters, last token", configs=_JAVA, rules=("last",)
    ),
    _over_k(
        "Figure 17", "Over k: Java and its delimiters, any token", configs=_JAVA, rules=("any",)
    ),
    _over_k(
        "Figure 18", "Over k: Python and its delimiters, any token", configs=_PYTHON, rules=("any",)
    ),
    _over_k(
        "Figure 19",
        "Over k: Python and its delimiters, last token",
        configs=_PYTHON,
        rules=("last",),
    ),
    Exhibit("Figures 1, 5 and 9 to 15", "Single functions", _cases),
)
"""What the paper has, by its captions; line breaks and semicolons are the delimiters."""
