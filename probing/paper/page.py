"""The page of a reproduction: what it was made from, and every table and figure under its number in the paper.

Tables have our numbers, the paper's and the difference side by side; figures have the paper's numbers where its tables
have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import paper, sources
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import KS, TABLE_KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import head_name
from probing.models.load import load
from probing.paper.cells import COMPARABLE, NO_DATA, Compared, HeadExample, Made, Measured, compared
from probing.paper.inputs import CODE, CONFIGS, NATURAL, Model
from probing.report import figures
from probing.report.dataset import FAR, offsets_figure
from probing.report.document import Column, Figure, Section, Table
from probing.report.figures import COLOURS, FAINT, INK, Bars, Line, Predicted
from probing.report.kinds import CHOSEN, COUNT, COUNT_DIFFERENCE, MARKED, NAME, PERCENT, POINTS
from probing.report.kinds import CODE as SIGNATURE
from probing.report.pages import shown
from probing.report.scored import line
from probing.report.show import attention_over
from probing.runs.data import load_functions

TITLE = "The tables and figures of CodeSyntax, made again"

ENDS = 5
"""Relations at each end of Table 6."""

_MEANS = {
    3: ("Code, first token of the dependent", CODE, "first"),
    4: ("Natural language", NATURAL, "first"),
    5: ("Code, any token of the dependent", CODE, "any"),
}
_RELATIONS = {9: ("python", "first"), 10: ("python", "any"), 11: ("java", "first"), 12: ("java", "any")}

CUBERT = "CuBERT"
"""The model of Tables 6 and 9 to 12, which compare it alone."""

K = "1"  # of these tables

_ROUNDED = "Percent; difference: here less paper, both rounded to one digit."


class Numbered(NamedTuple):
    """A table under its number in the paper, and all its cells that have a number in the paper."""

    number: int
    title: str
    table: Table
    cells: list[Compared]

    @property
    def heading(self) -> str:
        return f"Table {self.number}. {self.title}"


def sections(made: Made) -> list[Section]:
    numbered = tables(made)
    return [
        _summary(made, numbered),
        Section(
            "tables",
            "Tables",
            sections=[Section(one.table.name, one.heading, [one.table]) for one in numbered],
        ),
        Section(
            "figures",
            "Figures",
            ["Figures 1 and 9 to 15 show single functions, as `codesyntax show` does."],
            figure_sections(made),
        ),
        _provenance(made),
    ]


def _summary(made: Made, numbered: Sequence[Numbered]) -> Section:
    cells = [cell for one in numbered for cell in one.cells]
    filled = sum(cell.here is not None for cell in cells)
    comparable = sum(cell.compares for cell in cells)
    rows = []
    for one in numbered:
        here = sum(cell.here is not None for cell in one.cells)
        differences = [abs(cell.difference or 0) for cell in one.cells if cell.compares]
        rows.append([one.heading, len(one.cells), here, len(differences), max(differences, default=None)])
    columns = [
        Column("table"),
        *Column.each(COUNT, "in the paper", "here", "comparable", group="numbers"),
        Column("largest difference of these", POINTS),
    ]
    return Section(
        "summary",
        "What was made, and what compares",
        [
            f"Of {len(cells):,} numbers in these tables of {paper.source()}, {filled:,} have one of ours beside them, "
            f"and {comparable:,} of these compare. Scores follow the published protocol: the attention head of each "
            "relation and k is the one that is best on the scored data, the split test. That is optimistic; what a "
            "claim should rest on, heads chosen on validation and intervals, is in `codesyntax report`.",
            "A difference is to be 0.0, within rounding, where the inputs are the authors' own: the same functions (as "
            "many as in the paper, with as many edges of each relation), all of them, and all models of the table, "
            "because scores are of the functions that fit every model (511 sub-tokens). Otherwise the column "
            "comparable says what differs: other data; partial, by --limit; other functions, because models of the "
            "table were not given; other direction, for models that cannot see later tokens. Models are told by their "
            "names. In Java, the keyword baseline has ; among its keywords, as the paper's numbers imply, but for the "
            "config without semicolons.",
            Table("summary", "Numbers of the paper's tables", columns, rows),
            _inputs(made),
        ],
    )


def _inputs(made: Made) -> Table:
    rows: list[list[Any]] = []
    for language, configs in CONFIGS.items():
        for config in configs:
            measured = made.measured.get(config)
            source = sources.shown(made.inputs.sources[language]) if language in made.inputs.sources else None
            if measured is None:
                rows.append([config, source, None, None, None, f"empty: {made.inputs.missing[config]}"])
                continue
            scored, models = measured.functions, ", ".join(measured.models)
            differs = "; ".join(made.differs(config).values())
            counted = made.counted[language].functions if language in made.counted else None
            rows.append([config, source, counted, scored, models, differs])
    columns = [
        Column("config", NAME),
        Column("source"),
        *Column.each(COUNT, "of all splits", "scored", group="functions or sentences"),
        Column("models"),
        Column("differs from the paper"),
    ]
    return Table("inputs", "The inputs of each config", columns, rows)


def _provenance(made: Made) -> Section:
    rows = [
        [measured.config, name, signature]
        for measured in made.measured.values()
        for name, signature in measured.signatures.items()
    ]
    if not rows:
        return Section("provenance", "Results and signatures", ["No model was given: the numbers are of baselines."])
    columns = [Column("config", NAME), Column("model"), Column("signature", SIGNATURE)]
    return Section(
        "provenance", "Results and signatures", [Table("results", "The results of this page", columns, rows)]
    )


def tables(made: Made) -> list[Numbered]:
    """Tables 3 to 12 of the paper, in this order."""
    return [
        *(_means(made, number) for number in _MEANS),
        _ends(made),
        _errors(made),
        _edges(made),
        *(_relations(made, number) for number in _RELATIONS),
    ]


def _means(made: Made, number: int) -> Numbered:
    title, configs, rule = _MEANS[number]
    rows = []
    for config in configs:
        for name in made.names(config):
            ours, theirs = made.scores(config, name, rule)["scores"], paper.scores(config, rule).get(name, {})
            if ours or theirs:
                standing = made.standing(config, name)
                numbers = [Compared(ours.get(k), theirs.get(k), standing) for k in TABLE_KS]
                rows.append([LANGUAGES[config].title, name, standing, *numbers])
    columns = [Column("language", NAME), Column("name", NAME), Column("comparable")]
    for k in TABLE_KS:
        columns += Compared.columns(f"k = {k}", PERCENT, POINTS)
    heading = "Top-k UAS, mean over relations"
    return Numbered(number, title, *compared(f"table-{number}", heading, columns, rows, _ROUNDED))


def _relations(made: Made, number: int) -> Numbered:
    """One of Tables 9 to 12: CuBERT, and each other model, against the best offset on every relation in the mean."""
    config, rule = _RELATIONS[number]
    rows = [[model, *row] for model in _models(made, config) for row in _against_offset(made, config, rule, model)]
    title = f"{LANGUAGES[config].title}, {rule} token of the dependent, relation by relation"
    columns = [Column("model"), *_RELATION_COLUMNS]
    compares = _compares({name: made.standing(config, name) for name in (CUBERT, "Offset")})
    table = Table(f"table-{number}", _HEADS, columns, rows, f"{_ROUNDED} {_BEST} {compares}", filters=1)
    return Numbered(number, title, table, _relation_cells(made, config, rule, paper.relation_scores(config, rule)))


def _ends(made: Made) -> Numbered:
    """Table 6: the relations of Tables 9 and 11 on which CuBERT, or else the first model, gains and loses most."""
    rows, cells = [], []
    for config in CODE:
        model = _models(made, config)[0]
        ranked = _against_offset(made, config, "first", model)
        ranked = [row for row in ranked if row[_DIFFERENCE] is not None] or ranked
        ends = ranked[:ENDS] + ranked[ENDS:][-ENDS:]
        rows += [[LANGUAGES[config].title, model, *row] for row in ends]
        cells += _relation_cells(made, config, "first", [row[0] for row in ends])
    title = f"The {ENDS} relations on which a model gains most and loses most"
    columns = [Column("language", NAME), Column("model"), *_RELATION_COLUMNS]
    notes = f"{_ROUNDED} {_BEST} What compares, is as in Tables 9 and 11."
    return Numbered(6, title, Table("table-6", _HEADS, columns, rows, notes), cells)


def _errors(made: Made) -> Numbered:
    """Table 7: the classes of what best heads attend to most where they are wrong, of one model a language."""
    rows = []
    for config, analysis in made.errors.items():
        counts = {kind: errors for kind, errors in analysis.classes("first").items() if errors}
        rows += [
            [LANGUAGES[config].title, analysis.settings.model, kind, errors, 100 * errors / sum(counts.values())]
            for kind, errors in sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
        ]
    columns = [Column("language", NAME), Column("model"), Column("class", NAME)]
    columns += [Column("errors", COUNT), Column("percent", PERCENT)]
    notes = (
        "With one guess, first token of the dependent. The paper counts fewer classes, of CuBERT: its numbers are not "
        "beside these. `codesyntax errors` has them for each relation, with examples."
    )
    table = Table("table-7", "What the best heads attend to most where they are wrong", columns, rows, notes)
    return Numbered(7, "Classes of errors", table, [])


def _edges(made: Made) -> Numbered:
    """Table 8: the edges of each relation, of all splits."""
    ours = {
        config: {name: one.edges for name, one in counted.relations.items()}
        for config, counted in made.counted.items()
        if config in CODE
    }
    standing = {
        config: NO_DATA if config not in ours else COMPARABLE if made.of_the_paper(config) else "no: other data"
        for config in CODE
    }
    rows = []
    for name in sorted({name for config in CODE for name in (*paper.edges(config), *ours.get(config, ()))}):
        row: list[Any] = [[name, "not in mean" if name in NOT_IN_MEAN else ""]]
        for config in CODE:
            published = paper.edges(config).get(name)
            none = 0 if config in ours and published is not None else None
            row.append(Compared(ours.get(config, {}).get(name, none), published, standing[config]))
        rows.append(row)
    columns = [Column("relation", MARKED)]
    for config in CODE:
        columns += Compared.columns(LANGUAGES[config].title, COUNT, COUNT_DIFFERENCE)
    notes = _compares({LANGUAGES[config].title: word for config, word in standing.items()})
    heading = "Edges of each relation, in all splits"
    return Numbered(8, "The dataset", *compared("table-8", heading, columns, rows, notes))


_RELATION_COLUMNS = [
    Column("relation", NAME),
    Column("edges", COUNT),
    Column("model", PERCENT, "here"),
    Column("head", group="here"),
    Column("offset", CHOSEN, "here"),
    Column("difference", POINTS, "here"),
    Column("CuBERT", PERCENT, "paper"),
    Column("offset", CHOSEN, "paper"),
    Column("difference", POINTS, "paper"),
    *Column.each(POINTS, "model", "offset", group="here less paper"),
]
_DIFFERENCE = 5  # the place of ours
_HEADS = "The best head of each relation against the best offset, largest difference first"
_BEST = (
    "At k = 1. Head: layer-head, from 0. Offset: the score of the best one, and how many tokens it is. The paper gives "
    "these numbers for CuBERT alone."
)


def _against_offset(made: Made, config: str, rule: str, model: str) -> list[list[Any]]:
    """A row for each relation in the mean, the largest difference to the best offset first; those of ours first."""
    ours, offset = made.scores(config, model, rule), made.scores(config, "Offset", rule)
    published = paper.relation_scores(config, rule)
    found = {name: one for name, one in offset["relations"].items() if one["in_mean"]}
    keyed = []
    for name in {**found, **published}:
        best = ours["relations"][name][K] if name in ours["relations"] else None
        score = best and best["score"]
        here = found[name][K]["score"] if name in found else None
        theirs = published.get(name)
        ahead = None if score is None or here is None else score - here
        theirs_ahead = None if theirs is None else round(theirs.cubert - theirs.offset_score, 1)
        picked = made.measured[config].offsets[rule].get(name, []) if name in found else []
        row = [
            name,
            found[name]["edges"] if name in found else None,
            score,
            best and head_name(best),
            here if here is None else [here, ", ".join(map(str, picked[:1]))],
            ahead,
            theirs and theirs.cubert,
            theirs and [theirs.offset_score, str(theirs.offset)],
            theirs_ahead,
            Compared(score, theirs and theirs.cubert, "").difference,
            Compared(here, theirs and theirs.offset_score, "").difference,
        ]
        keyed.append(((ahead is None, -(ahead or 0), -(theirs_ahead or 0), name), row))
    return [row for _, row in sorted(keyed, key=lambda one: one[0])]


def _relation_cells(made: Made, config: str, rule: str, relations: Iterable[str]) -> list[Compared]:
    """The cells of CuBERT and of the offset, for some relations that the paper has."""
    cells = []
    for name, attribute in ((CUBERT, "cubert"), ("Offset", "offset_score")):
        ours, standing = made.scores(config, name, rule), made.standing(config, name)
        for relation in relations:
            if (theirs := paper.relation_scores(config, rule).get(relation)) is not None:
                here = ours["relations"][relation][K]["score"] if relation in ours["relations"] else None
                cells.append(Compared(here, getattr(theirs, attribute), standing))
    return cells


def _models(made: Made, config: str) -> list[str]:
    """Our models on a config, CuBERT first; the paper's CuBERT alone if there are none."""
    models = list(made.measured[config].models) if config in made.measured else []
    return sorted(models, key=lambda model: paper.name_of(model, config) != CUBERT) or [CUBERT]


def _compares(standing: dict[str, str]) -> str:
    """A sentence that says what compares with the paper."""
    return f"Comparable: {'; '.join(f'{name} – {word}' for name, word in standing.items())}."


# ------------------------------------------------------------------------------------------------------------ figures

TOKENS = (10, 60)
"""The least and the most tokens of a function that is drawn."""


class Curves(NamedTuple):
    """The panels of a figure of curves: a row for each rule, a column for each config."""

    title: str
    rules: tuple[str, ...]
    configs: tuple[str, ...]


_JAVA = ("java", "java_with_new_lines", "java_skip_semicolon")
_PYTHON = ("python", "python_with_new_lines")

CURVES = {
    4: Curves(
        "Java with and without semicolons, last token of the dependent", ("last",), ("java", "java_skip_semicolon")
    ),
    6: Curves("Code, first and any token of the dependent", ("first", "any"), CODE),
    7: Curves("English", ("first",), ("english",)),
    8: Curves("German", ("first",), ("german",)),
    16: Curves("Java and its delimiters, last token of the dependent", ("last",), _JAVA),
    17: Curves("Java and its delimiters, any token of the dependent", ("any",), _JAVA),
    18: Curves("Python and its delimiters, any token of the dependent", ("any",), _PYTHON),
    19: Curves("Python and its delimiters, last token of the dependent", ("last",), _PYTHON),
}
"""Number of a figure in the paper -> what it shows: by its captions, line breaks and semicolons are the delimiters."""

CASE = "If:if->else"
"""The relation of Figure 5."""

_STYLES = {"Offset": "--", "Keyword": ":", "Combined": "-"}


def figure_sections(made: Made) -> list[Section]:
    """Figures 2 to 8 and 16 to 19 of the paper, each in a section, with the reason for what is empty."""
    curves = {number: _curves(made, number) for number in CURVES}
    first = curves.pop(min(curves))
    return [_preview(made), _offsets(made), first, _attention(made), *curves.values()]


def _preview(made: Made) -> Section:
    """Figure 2: the best model and the best baseline of each language, k = 1."""
    configs = list(CONFIGS)
    panels: dict[str, list[Bars]] = {"here": [], "paper": []}
    rows = []
    for where, bars in panels.items():
        for kind, colour in (("best model", COLOURS[0]), ("best baseline", FAINT)):
            best = [_best_of(made, config, where == "here", kind == "best baseline") for config in configs]
            scores = np.array([[score, np.nan, np.nan] for _, score in best], float).T
            bars.append(Bars(kind, scores, colour, [name for name, _ in best]))
            rows += [[config, where, kind, name, score] for config, (name, score) in zip(configs, best)]
    titles = [LANGUAGES[config].title for config in configs]
    columns = [Column("language"), Column("where"), Column("kind"), Column("name"), Column("score", PERCENT)]
    drawn = Figure(
        "figure-2",
        "The best model and the best baseline, by the names at the bars: top-1 UAS, first token, mean over relations.",
        "Bars of the scores; the numbers are in the CSV file of the same name.",
        "figure-2",
        lambda: figures.bars(titles, panels),
    )
    return _section(2, "Code and natural language", [drawn, *_reasons(made, configs)], columns, rows)


def _section(
    number: int, title: str, parts: Sequence[str | Figure], columns: Sequence[Column], rows: list[list[Any]]
) -> Section:
    """A figure of the paper, and the table of its numbers if that has columns."""
    name = f"figure-{number}"
    drawn = [Table(name, "", columns, rows)] if columns else []
    return Section(name, f"Figure {number}. {title}", parts, drawn=drawn)


def _best_of(made: Made, config: str, here: bool, baselines: bool) -> tuple[str, float]:
    """The name and the score of the best model or baseline; NaN if there is none."""
    scores: list[tuple[str, float]] = []
    for name in made.names(config):
        if (name in _STYLES) == baselines:
            theirs = paper.scores(config, "first").get(name, {})
            score = (made.scores(config, name, "first")["scores"] if here else theirs).get("1")
            scores += [] if score is None else [(name, score)]
    return max(scores, key=lambda one: one[1], default=("", np.nan))


def _offsets(made: Made) -> Section:
    """Figure 3: the mean offset of each relation, and the offsets of its edges."""
    parts: list[str | Figure] = []
    rows = []
    for kind, configs in (("code", CODE), ("natural language", NATURAL)):
        counted = {config: made.counted[config] for config in configs if config in made.counted}
        for config, statistics in counted.items():
            rows += [[config, name, one.edges, one.offset.mean] for name, one in statistics.relations.items()]
        if counted:
            name = f"figure-3-{kind.replace(' ', '-')}"
            parts.append(
                Figure(
                    name,
                    f"Relations of {kind} by their mean offset, from the head to the dependent, and the offsets of the "
                    f"edges of each, in all splits; the line is at {FAR} tokens.",
                    "Histograms of relations and of edges by offset; the mean offsets are in the CSV file.",
                    "figure-3",
                    partial(offsets_figure, counted),
                )
            )
    columns = [Column("config"), Column("relation"), Column("edges", COUNT), Column("mean offset", PERCENT)]
    parts += _reasons(made, list(CONFIGS))
    return _section(3, "Offsets", parts, columns, rows)


def _attention(made: Made) -> Section:
    """Figure 5: the predictions of a head in one function of each language of code."""
    parts: list[str | Figure] = []
    rows: list[list[Any]] = []
    for config in CODE:
        if config in made.examples:
            figure, edges = made.examples[config]
            parts.append(figure)
            rows += edges
        else:
            reason = made.inputs.missing.get(config) or "no model, or no function that is short enough"
            parts.append(f"Empty: {config} ({reason}).")
    columns = [Column("config"), Column("relation")]
    for name in ("read", "sought", "predicted"):
        columns += [Column(f"token {name}", COUNT), Column(name)]
    return _section(5, "Attention in single functions", parts, columns, rows)


def _curves(made: Made, number: int) -> Section:
    title, rules, configs = CURVES[number]
    name = f"figure-{number}"
    known = [config for config in configs if config in made.measured]
    reasons = _reasons(made, configs)
    if not known:
        return _section(number, title, reasons, [], [])
    panels = {rule: {config: _lines(made, config, rule) for config in known} for rule in rules}
    rows = []
    for rule in rules:
        for config in known:
            for one in made.names(config):
                ours, theirs = made.scores(config, one, rule), paper.scores(config, rule).get(one, {})
                rows += [[rule, config, one, k, ours["scores"].get(str(k)), theirs.get(str(k))] for k in KS]
    columns = [Column("rule"), Column("config"), Column("name"), Column("k", COUNT)]
    columns += [Column("here", PERCENT), Column("paper", PERCENT)]
    published = any(paper.scores(config, rule) for config in known for rule in rules)
    drawn = Figure(
        name,
        "Mean top-k UAS over k." + " Circles are the paper's numbers." * published,
        "Curves of the mean score over k from 1 to 20; the numbers are in the CSV file of the same name.",
        name,
        lambda: figures.curves(panels),
    )
    return _section(number, title, [drawn, *reasons], columns, rows)


def _lines(made: Made, config: str, rule: str) -> list[Line]:
    """Our curves, and as circles the paper's numbers of the same, and of the first model in its table."""
    curves, circles = [], []
    published = paper.scores(config, rule)
    models = [name for name in made.names(config) if name not in _STYLES]
    colours = dict(zip([name for name in models if made.scores(config, name, rule)["scores"]], cycle(COLOURS)))
    for name in made.names(config):
        colour = INK if name in _STYLES else colours.get(name, FAINT)
        if ours := made.scores(config, name, rule)["scores"]:
            curves.append(Line(name, line({rule: ours}, rule), colour, _STYLES.get(name, "-")))
        if name in published and (ours or name == models[0]):
            circles.append(Line(f"{name} (paper)", line({rule: published[name]}, rule), colour, points=True))
    return curves + circles


def _reasons(made: Made, configs: Sequence[str]) -> list[str]:
    """Why some of the configs are not in a figure, in words."""
    missing = made.inputs.missing
    empty = [f"{config} ({missing[config]})" for config in configs if config in missing]
    return [f"Empty: {', '.join(empty)}."] if empty else []


def example(model: Model, data: Path, measured: Measured, ledger: Path, device: str | None) -> HeadExample | None:
    """What the best head of a relation predicts in one function: for CASE or, if no function has it, for the relation
    in which a model gains most on the best offset, in the function with most of its edges, of equals the first; None if
    no function has any and as many tokens as TOKENS says.

    `data`: the dataset; `ledger`: the file with the model's ranks. The model runs on this function.
    """
    ranks, config = RankLedger.open(ledger), measured.config
    ours, offset = (
        scores["first"]["relations"] for scores in (measured.models[model.name], measured.baselines["offset"])
    )
    gains = {name: one["1"]["score"] - offset[name]["1"]["score"] for name, one in ours.items() if one["in_mean"]}
    fitting = (ranks.tokens >= TOKENS[0]) & (ranks.tokens <= TOKENS[1])
    for relation in sorted(gains, key=lambda name: (name != CASE, -gains[name], name)):
        places = ranks.function[fitting & (ranks.relation == ranks.relations.index(relation))]
        if len(places):
            break
    else:
        return None
    best, (dataset, _) = ours[relation]["1"], load_functions(data, config, "test")
    one = shown(None, dataset[int(np.bincount(places).argmax())]["id"], data, config, "test")
    attention = attention_over(load(model.given, device=device), one, config)
    read = {token: row for row, token in enumerate(attention.readers.tolist())}
    layer, head = best["layer"], best["head"]
    first = attention.tokens[layer, head, :, 0]
    texts = [one.code[start:end] for start, end in zip(one.start.tolist(), one.end.tolist())]
    edges, rows = [], []
    for edge in one.edges:
        if edge.relation == relation:
            ends = edge.head, edge.first
            reader, sought = ends if attention.direction == HEAD_TO_DEPENDENT else ends[::-1]
            edges.append(Predicted(reader, sought, int(first[read[reader]]) if reader in read else None))
            cells = [(place, None if place is None else texts[place]) for place in edges[-1]]
            rows.append([config, relation, *chain(*cells)])
    drawn = Figure(
        f"figure-5-{config}",
        f"{relation} in {one.name}: what head {layer}-{head} of {model.name} attends to most. It is the best of this "
        f"relation, and finds {best['score']:.1f} % over all functions.",
        "Lines between two copies of a function's tokens; the edges are in the CSV file.",
        "figure-5",
        partial(figures.predictions, texts, edges),
    )
    return HeadExample(drawn, rows)
